/* A rank that lacks memory, file size or descriptors for a while. */
#include "fault/trial.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define STACK (256 << 10) /* more than any call takes */

int limit_is_now(const rank_t *r)
{
    const plan_t *p = &r->trial->plan;

    return p->kind == LIMIT && p->stage == IN_OPERATION && r->steps == (int)(p->seed % (unsigned)p->operations);
}

static long mapped_bytes(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (!file || fscanf(file, "%ld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* A limit ends a process that needs more stack than is there; that is nobody's but the process's own. */
static __attribute__((noinline)) void touch_stack(void)
{
    volatile char stack[STACK];

    for (size_t i = 0; i < sizeof stack; i += 1024)
        stack[i] = 1;
}

void limit_set(rank_t *r, int on)
{
    static const int resource[NUM_LIMITS] = {RLIMIT_AS, RLIMIT_FSIZE, RLIMIT_NOFILE};
    const plan_t *p = &r->trial->plan;
    long used = !on                       ? 0
                : p->limit == SPACE       ? mapped_bytes()
                : p->limit == DESCRIPTORS ? test_count_entries("/proc/self/fd") - 1
                                          : 0;
    struct rlimit all;

    touch_stack();
    if (on)
        trial_fate(r->trial->board, r->t->rank, LACKS, NULL);
    if (getrlimit(resource[p->limit], &all) != 0)
        test_stop(r->t, "no limit to set");
    all.rlim_cur = on ? (rlim_t)(used + p->room) : all.rlim_max;
    if (setrlimit(resource[p->limit], &all) != 0)
        test_stop(r->t, "cannot set a limit");
}

static void note_failure(rank_t *r, rondo_comm_t comm, rondo_result_t result, const char *what)
{
    judge_sentence(r, comm, result, what);
    if (result != RONDO_SUCCESS)
        atomic_fetch_add(&r->trial->board->failed, 1);
}

/* All but one shrink; when it has failed for lack of something, once more. */
static void shrink_twice(rank_t *r)
{
    const plan_t *p = &r->trial->plan;
    int out = (p->victim + 1) % p->nranks, nout = p->nranks > 2, mine = nout == 0 || r->t->rank != out;
    rondo_comm_t small = NULL;
    rondo_result_t result;

    setenv("RONDO_CREATE_TIMEOUT_MS", TRIAL_PATIENCE_MS, 1);
    if (mine) {
        if (r->t->rank == p->victim)
            limit_set(r, 1);
        result = recover_shrink(r, &out, nout, &small);
        if (r->t->rank == p->victim)
            limit_set(r, 0);
        note_failure(r, NULL, result, "rondo_comm_shrink");
    }
    setenv("RONDO_CREATE_TIMEOUT_MS", TRIAL_CREATE_MS, 1);
    trial_note(r, "waits for the others to have shrunk");
    test_barrier(r->t);
    if (mine && atomic_load(&r->trial->board->failed)) {
        if (small)
            TEST_OK(r->t, NULL, rondo_comm_destroy(small));
        small = NULL;
        TEST_OK(r->t, NULL, recover_shrink(r, &out, nout, &small));
    }
    if (small) {
        judge_group(r, small, &out, nout);
        TEST_OK(r->t, NULL, rondo_comm_destroy(small));
    }
}

void limit_run(rank_t *r, rondo_result_t result)
{
    const plan_t *p = &r->trial->plan;
    board_t *board = r->trial->board;
    int k;

    note_failure(r, NULL, result, "rondo_comm_create");
    while (p->stage == IN_OPERATION && atomic_load(&board->ready) < p->nranks)
        sched_yield(); /* a failure before creation is over everywhere is a failure of that */
    for (k = 0; k < p->operations && result == RONDO_SUCCESS; k++)
        result = step_once(r);
    if (r->comm && p->stage == IN_SHRINK) {
        TEST_OK(r->t, r->comm, result); /* nothing is lacking yet */
    } else if (r->comm && result != RONDO_SUCCESS) {
        note_failure(r, r->comm, result, "an operation");
        if (p->stage == IN_OPERATION && r->t->rank != p->victim)
            judge_pending(r, result);
    }
    trial_note(r, "waits for the others to be through");
    test_barrier(r->t);
    if (p->stage == IN_OPERATION && atomic_load(&board->failed) && r->t->rank != p->victim)
        recover_by_list(r, test_clock_us());
    else if (p->stage == IN_SHRINK)
        shrink_twice(r);
    trial_note(r, "destroy");
    if (r->comm)
        TEST_OK(r->t, NULL, rondo_comm_destroy(r->comm));
}
