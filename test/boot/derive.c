/* Derived ids: after ranks have died, the survivors meet again without anything to exchange by; a rank whose list of
 * survivors differs does not join and is not waited for beyond the deadline; several generations; one rank alone. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/gate.h"
#include "boot/boot.h"

#define RANKS 6

static rd_env_t env;
static atomic_int *through; /* shared: ranks that have made the first communicator */
static rd_stop_t fresh[8];
static rd_log_ctx_t ctx = {.name = "test"};

static rd_boot_t *join(const rondo_unique_id_t *id, int rank, int nranks, rondo_result_t *code)
{
    static int n;
    rd_boot_t *boot = NULL;
    ctx.rank = rank;
    ctx.nranks = nranks;
    *code = rd_boot_create(&boot, id, rank, nranks, &env, &ctx, &fresh[n++]);
    return boot;
}

static int exchange(rd_boot_t *boot, int rank, int nranks)
{
    int all[RANKS] = {0};
    all[rank] = rank + 1;
    if (rd_boot_allgather(boot, all, sizeof(all[0])) != RONDO_SUCCESS)
        return 1;
    for (int r = 0; r < nranks; r++)
        if (all[r] != r + 1)
            return 1;
    return 0;
}

static int position(const int *members, int n, int rank)
{
    for (int i = 0; i < n; i++)
        if (members[i] == rank)
            return i;
    return -1;
}

static rd_boot_t *rendezvous_again(rd_boot_t *boot, int rank, const int *members, int n, uint64_t epoch, rondo_result_t *code)
{
    rondo_unique_id_t id;
    *code = rd_boot_id_derive(boot, members, n, epoch, &id);
    return *code ? NULL : join(&id, position(members, n, rank), n, code);
}

static void leave(rd_boot_t *boot)
{
    rd_boot_farewell(boot, RONDO_SUCCESS, -1);
    rd_boot_destroy(boot);
}

/* Rank 2 believes that rank 1 is dead too. */
static int lists_that_differ(rd_boot_t *boot, int rank)
{
    static const int most[] = {1, 2, 4}, fewer[] = {2, 4};
    rondo_result_t code;
    env.create_timeout_ms = 300;
    rd_boot_t *other =
        rank == 2 ? rendezvous_again(boot, rank, fewer, 2, 9, &code) : rendezvous_again(boot, rank, most, 3, 9, &code);
    env.create_timeout_ms = 20000;
    if (other || code == RONDO_SUCCESS) {
        printf("rank %d: joined with a list that differs\n", rank);
        return 1;
    }
    return 0;
}

static int run_rank(const rondo_unique_id_t *id, int rank)
{
    static const int alive[] = {1, 2, 4, 5}, again[] = {0, 1, 2}, unsorted[] = {2, 1, 4, 5}, without[] = {0, 3};
    rondo_result_t code;
    rondo_unique_id_t scratch;
    rd_boot_t *boot = join(id, rank, RANKS, &code);
    if (!boot || exchange(boot, rank, RANKS))
        return 1;
    atomic_fetch_add(through, 1);
    while (atomic_load(through) < RANKS) /* nobody dies while others still exchange */
        usleep(100);
    if (rank == 0 || rank == 3)
        kill(getpid(), SIGKILL);
    if (rd_boot_id_derive(boot, unsorted, 4, 0, &scratch) != RONDO_ERR_INVALID_ARGUMENT ||
        rd_boot_id_derive(boot, without, 2, 0, &scratch) != RONDO_ERR_INVALID_ARGUMENT)
        return 1;
    int self = position(alive, 4, rank);
    rd_boot_t *second = rendezvous_again(boot, rank, alive, 4, 1, &code);
    if (!second || exchange(second, self, 4))
        return 1;
    if (rank != 5 && lists_that_differ(boot, rank))
        return 1;
    rd_boot_t *third = self < 3 ? rendezvous_again(second, self, again, 3, 1, &code) : NULL;
    if (self < 3 && (!third || exchange(third, self, 3)))
        return 1;
    rd_boot_t *alone = rendezvous_again(boot, rank, &rank, 1, 7, &code);
    if (!alone || exchange(alone, 0, 1))
        return 1;
    leave(alone);
    if (third)
        leave(third);
    if (exchange(second, self, 4))
        return 1;
    leave(second);
    leave(boot);
    return 0;
}

int main(void)
{
    rondo_unique_id_t id;
    pid_t pids[RANKS];
    int status, bad = 0;
    alarm(60);
    through = mmap(NULL, sizeof(*through), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (through == MAP_FAILED)
        return 1;
    if (rd_env_read(&env) != RONDO_SUCCESS)
        return 1;
    rd_log_set_level(RD_LOG_NONE);
    gate_t gate = gate_make();
    for (int r = 0; r < RANKS; r++) {
        pids[r] = fork();
        if (pids[r] == 0) {
            alarm(30);
            id = gate_wait(&gate);
            int failed = run_rank(&id, r);
            if (failed)
                printf("rank %d: %s\n", r, rd_log_ctx_error(&ctx));
            exit(failed);
        }
    }
    if (rd_boot_id_create(&id, &env) != RONDO_SUCCESS)
        return 1;
    gate_open(&gate, &id, RANKS);
    for (int r = 0; r < RANKS; r++) {
        waitpid(pids[r], &status, 0);
        int good = r == 0 || r == 3 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0;
        if (!good)
            printf("rank %d: status %x\n", r, (unsigned)status);
        bad |= !good;
    }
    return bad;
}
