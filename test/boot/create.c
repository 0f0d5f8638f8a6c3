/* Ranks find each other and exchange, as processes and as threads, 1 to 9 of them; nobody is left waiting, and what is
 * exchanged is what was given. Prints the time of a creation (for reading, not asserted). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/gate.h"
#include "boot/boot.h"

typedef struct rank {
    const rondo_unique_id_t *id;
    int rank, nranks, bad;
} rank_t;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static int exchange(rd_boot_t *boot, int rank, int n, size_t each)
{
    unsigned char *all = calloc((size_t)n, each);
    int bad = 0;
    memset(all + (size_t)rank * each, 17 * rank + 1, each);
    if (rd_boot_allgather(boot, all, each) != RONDO_SUCCESS)
        bad = 1;
    for (int r = 0; r < n; r++)
        for (size_t i = 0; i < each; i++)
            bad |= all[(size_t)r * each + i] != (unsigned char)(17 * r + 1);
    free(all);
    return bad;
}

static void *run_rank(void *arg)
{
    rank_t *r = arg;
    rd_env_t env;
    rd_log_ctx_t ctx = {.rank = r->rank, .nranks = r->nranks};
    rd_stop_t stop = {0};
    rd_boot_t *boot;
    unsigned char key[2][32];
    r->bad = 1;
    snprintf(ctx.name, sizeof(ctx.name), "test");
    double began = now_ms();
    if (rd_env_read(&env) != RONDO_SUCCESS)
        return NULL;
    if (rd_boot_create(&boot, r->id, r->rank, r->nranks, &env, &ctx, &stop) != RONDO_SUCCESS)
        return NULL;
    double took = now_ms() - began;
    r->bad = exchange(boot, r->rank, r->nranks, 1) || exchange(boot, r->rank, r->nranks, 100) ||
             exchange(boot, r->rank, r->nranks, 65536);
    rd_boot_key(boot, "a", key[0]);
    rd_boot_key(boot, "b", key[1]);
    r->bad |= memcmp(key[0], key[1], 32) == 0;
    for (int i = 0; i < r->nranks; i++)
        r->bad |= strchr(rd_boot_whois(boot, i), ':') == NULL;
    rd_boot_farewell(boot, RONDO_SUCCESS, -1);
    rd_boot_destroy(boot);
    if (r->rank == 0)
        printf("%d ranks: created in %.2f ms\n", r->nranks, took);
    return NULL;
}

static int as_threads(int n)
{
    rondo_unique_id_t id;
    rd_env_t env;
    rank_t r[16];
    pthread_t t[16];
    int bad = 0;
    rd_env_read(&env);
    if (rd_boot_id_create(&id, &env) != RONDO_SUCCESS)
        return 1;
    for (int i = 0; i < n; i++) {
        r[i] = (rank_t){.id = &id, .rank = i, .nranks = n};
        pthread_create(&t[i], NULL, run_rank, &r[i]);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(t[i], NULL);
        bad |= r[i].bad;
    }
    return bad;
}

/* The id is made by the parent (a launcher) or, when `inside`, by rank 0 itself. */
static int as_processes(int n, int inside)
{
    rondo_unique_id_t id = {{0}};
    rd_env_t env;
    int status, bad = 0, pipes[2];
    rd_env_read(&env);
    if (pipe(pipes) != 0)
        return 1;
    gate_t gate = gate_make();
    fflush(stdout);
    for (int i = 0; i < n; i++) {
        if (fork() != 0)
            continue;
        alarm(20);
        id = gate_wait(&gate);
        if (inside && i == 0) {
            if (rd_boot_id_create(&id, &env) != RONDO_SUCCESS)
                exit(1);
            for (int k = 1; k < n; k++)
                if (write(pipes[1], &id, sizeof(id)) != sizeof(id))
                    exit(1);
        } else if (inside && read(pipes[0], &id, sizeof(id)) != sizeof(id)) {
            exit(1);
        }
        rank_t r = {.id = &id, .rank = i, .nranks = n};
        run_rank(&r);
        exit(r.bad);
    }
    if (!inside && rd_boot_id_create(&id, &env) != RONDO_SUCCESS)
        return 1;
    gate_open(&gate, &id, n);
    for (int i = 0; i < n; i++)
        bad |= wait(&status) < 0 || status != 0;
    close(pipes[0]);
    close(pipes[1]);
    return bad;
}

int main(void)
{
    alarm(60);
    for (int n = 1; n <= 9; n++) {
        if (as_threads(n) || as_processes(n, 1) || as_processes(n, 0)) {
            printf("FAILED with %d ranks\n", n);
            return 1;
        }
    }
    return 0;
}
