/* A meeting names the rank that failed first, and not one that has failed because of it and whose program has ended in
 * order for that. Rank 2 of six has failed, and lives. Rank 1 passes that on, its call fails, and its process ends
 * without another word. Ranks 0, 3 and 5 of its node see that end; rank 4, on another node, has no connection to
 * rank 1 and hears of both from the others. All of them are in a meeting of all six. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/gate.h"
#include "transport/silent_ops.h"

#define RANKS 6
#define FAILS 2 /* and lives */
#define ENDS 1  /* because of that */
#define FAR 4

typedef struct board { /* shared */
    _Atomic int failed[RANKS], there, through;
} board_t;

static bool has_left(void *arg, int rank)
{
    (void)arg;
    (void)rank;
    return false;
}

static bool has_failed(void *arg, int rank)
{
    board_t *board = arg;

    return atomic_load(&board->failed[rank]);
}

static const rd_liveness_ops_t ops = {has_left, has_failed, SILENT_OPS};

/* Returns 0 if the meeting of this rank has named the rank that failed. The alarm ends it when nothing comes. */
static int meet(rd_liveness_t *liveness, rd_stop_t *stop, int rank)
{
    while (rd_stop_get(stop) == RONDO_SUCCESS || !rd_liveness_died(liveness, ENDS))
        usleep(1000);
    if (rd_stop_get(stop) == RONDO_ERR_REMOTE && atomic_load(&stop->failed_rank) == FAILS &&
        strstr(stop->text, "has failed before"))
        return 0;
    printf("FAILED: rank %d must hear that rank %d has failed: %s\n", rank, FAILS, stop->text);
    return 1;
}

static void wait_for_all(_Atomic int *count, int n)
{
    while (atomic_load(count) < n)
        usleep(1000);
}

static void end_for_that(board_t *board, rd_boot_t *boot)
{
    rd_boot_farewell(boot, RONDO_ERR_REMOTE, FAILS);
    atomic_store(&board->failed[ENDS], 1);
    _exit(0);
}

static int run_rank(board_t *board, const rondo_unique_id_t *id, int rank)
{
    static const int members[RANKS] = {0, 1, 2, 3, 4, 5};
    rd_log_ctx_t ctx = {.rank = rank, .nranks = RANKS, .name = "test"};
    rd_stop_t stop = {0}, met = {0};
    rd_meeting_t meeting;
    rd_env_t env;
    rd_boot_t *boot;
    rd_node_t node;
    rd_liveness_t *liveness;
    int bad = 0;

    if (rd_env_read(&env) != RONDO_SUCCESS)
        return 1;
    rd_log_set_level(RD_LOG_NONE);
    snprintf(env.hostid, sizeof env.hostid, "%s", rank == FAR ? "far" : "near");
    if (rd_boot_create(&boot, id, rank, RANKS, &env, &ctx, &stop) != RONDO_SUCCESS ||
        rd_node_find(&node, boot, rank, RANKS, &env, -1, &ctx, &stop) != RONDO_SUCCESS ||
        rd_node_map(&node, boot, 4096, NULL, &env, &ctx, &stop) != RONDO_SUCCESS ||
        rd_liveness_add(&liveness, boot, &node, &ctx, &stop, &ops, board) != RONDO_SUCCESS)
        return 1;
    rd_liveness_meeting(liveness, &meeting, members, RANKS);
    rd_liveness_meeting_begin(&meeting, &ctx, &met);
    atomic_fetch_add(&board->there, 1);
    wait_for_all(&board->there, RANKS);
    if (rank == ENDS)
        end_for_that(board, boot);
    if (rank != FAILS) {
        bad = meet(liveness, &met, rank);
        atomic_fetch_add(&board->through, 1);
    }
    wait_for_all(&board->through, RANKS - 2); /* nobody leaves before all have seen it */
    rd_liveness_meeting_end(&meeting);
    rd_boot_farewell(boot, RONDO_SUCCESS, -1);
    rd_liveness_remove(liveness);
    rd_node_free(&node);
    rd_boot_destroy(boot);
    return bad;
}

int main(void)
{
    board_t *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    rondo_unique_id_t id;
    rd_env_t env;
    int status, bad = 0;
    pid_t pids[RANKS];

    alarm(60);
    if (board == MAP_FAILED || rd_env_read(&env) != RONDO_SUCCESS)
        return 1;
    gate_t gate = gate_make();
    for (int r = 0; r < RANKS; r++) {
        pids[r] = fork();
        if (pids[r] == 0) {
            alarm(50);
            id = gate_wait(&gate);
            _exit(run_rank(board, &id, r) | (fflush(stdout) != 0));
        }
    }
    if (rd_boot_id_create(&id, &env) != RONDO_SUCCESS)
        return 1;
    gate_open(&gate, &id, RANKS);
    for (int r = 0; r < RANKS; r++) {
        waitpid(pids[r], &status, 0);
        if (status)
            printf("FAILED: rank %d ended with status %x\n", r, status);
        bad |= status != 0;
    }
    return bad;
}
