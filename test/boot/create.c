/* Ranks find each other, exchange and meet, as processes and as threads, 1 to 9 of them; nobody is left waiting or goes
 * on too early, what is exchanged is what was given, and of failures all hear the same one. Prints the time of a
 * creation (for reading, not asserted). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/gate.h"
#include "boot/boot.h"
#include "util/harness.h"

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

static _Atomic int *came; /* to barriers, of all ranks */

/* Nobody leaves a barrier before the one has come that comes late. */
static int barriers(rd_boot_t *boot, int rank, int n)
{
    int bad = 0;
    for (int late = 0; late < n; late++) {
        if (late == rank)
            usleep(2000);
        atomic_fetch_add(came, 1);
        bad |= rd_boot_barrier(boot) != RONDO_SUCCESS || atomic_load(came) < n * (late + 1);
    }
    return bad;
}

/* From rank `first` on all have failed, each for another reason. */
static int meets(rd_boot_t *boot, int rank, int n)
{
    int bad = rd_boot_meet(boot, RONDO_SUCCESS, "of no matter") != RONDO_SUCCESS;
    char why[40], want[40], text[RD_ERROR_BYTES];
    for (int first = 0; first < n; first++) {
        snprintf(why, sizeof(why), "rank %d lacks it", rank);
        snprintf(want, sizeof(want), "rank %d lacks it", first);
        rondo_result_t own = rank < first ? RONDO_SUCCESS : first % 2 ? RONDO_ERR_NO_MEMORY : RONDO_ERR_CUDA;
        own = rank > first ? RONDO_ERR_SYSTEM : own;
        bad |= rd_boot_meet(boot, own, why) != (first % 2 ? RONDO_ERR_NO_MEMORY : RONDO_ERR_CUDA);
        bad |= rank != first && (!strstr(rd_thread_error(), want) || !strchr(rd_thread_error(), ':'));
        bad |= rd_boot_cause(boot, first, why, text) != RONDO_SUCCESS || strcmp(text, want) != 0;
    }
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
             exchange(boot, r->rank, r->nranks, 65536) || barriers(boot, r->rank, r->nranks) ||
             meets(boot, r->rank, r->nranks);
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
    const unsigned left = alarm(0); /* a fork's child has no alarm */
    alarm(left);
    rd_env_read(&env);
    if (pipe(pipes) != 0)
        return 1;
    gate_t gate = gate_make();
    fflush(stdout);
    for (int i = 0; i < n; i++) {
        if (fork() != 0)
            continue;
        alarm(left);
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
    test_begin("boot/create", 60);
    came = mmap(NULL, sizeof(*came), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (came == MAP_FAILED)
        return 1;
    for (int n = 1; n <= 9; n++)
        for (int how = 0; how < 3; how++) {
            atomic_store(came, 0);
            if (how == 0 ? as_threads(n) : as_processes(n, how == 1)) {
                printf("FAILED with %d ranks\n", n);
                return 1;
            }
        }
    return 0;
}
