/* A communicator that is made from another one, by a split or by a shrink by a list, fails because one rank, or every
 * one of a split, has no descriptor left; and each rank aborts the old communicator, or ends, as soon as it has the
 * error. That is the consequence: every rank gets the cause, "open files", unless it comes late: who made the id has
 * given up by then. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/harness.h"

#define RANKS 3
#define BYTES 4096

typedef enum { SPLIT, SHRINK, WINDOW, MEMORY, CALLS } call_t; /* MEMORY: a window that rondo allocates */
static const char *const names[CALLS] = {"split", "shrink", "window", "window of rondo's memory"};

typedef struct job {
    call_t call;
    int who; /* the rank without descriptors; -1: all */
    bool ends;
    atomic_int *over; /* ranks that have got their error */
} job_t;

static void leave_no_descriptor(test_rank_t *t)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        test_stop(t, "no limit");
    limit.rlim_cur = 3;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        test_stop(t, "the limit cannot be set");
}

/* Its maker has given up, and in a shrink others may have left the old communicator as well. */
static bool came_late(const job_t *j, rondo_result_t result, bool behind)
{
    const char *sentence = rondo_last_error(NULL);
    bool nobody = strstr(sentence, "of those that are left") || (behind && strstr(sentence, "leave it out as well"));

    return test_came_late(result, sentence) || (j->call == SHRINK && result == RONDO_ERR_REMOTE && nobody);
}

static rondo_result_t derive(const test_rank_t *t, call_t call, rondo_comm_t comm)
{
    static char buffer[BYTES];
    rondo_config_t config = test_host_config();
    rondo_window_t window;
    rondo_comm_t made;

    if (call == SPLIT)
        return rondo_comm_split(comm, 0, t->rank, &made, &config);
    if (call == SHRINK)
        return rondo_comm_shrink(comm, NULL, 0, &made, &config);
    return rondo_window_create(comm, call == MEMORY ? NULL : buffer, BYTES, &window, 0);
}

static void body(test_rank_t *t, void *arg)
{
    const job_t *j = arg;
    rondo_config_t config = test_host_config();

    setenv("RONDO_CMA", j->call == WINDOW ? "0" : "1", 1); /* without it messages carry what is put into a window */
    rondo_comm_t comm = test_comm(t, &config);
    test_note(t, "%s, rank %d has no descriptors (-1: all), then %s", names[j->call], j->who,
              j->ends ? "an end" : "an abort");
    if (j->who < 0 || j->who == t->rank)
        leave_no_descriptor(t);
    test_barrier(t);
    bool behind = atomic_load(j->over) > 0;
    rondo_result_t result = derive(t, j->call, comm);
    TEST_TRUE(t, result != RONDO_SUCCESS);
    atomic_fetch_add(j->over, 1);
    if (j->who < 0 || j->who == t->rank || !came_late(j, result, behind))
        test_sentence(t, "open files");
    if (j->ends)
        _exit(0);
    rondo_comm_abort(comm);
}

int main(void)
{
    int bad = 0;

    test_begin("derived_cause", 120);
    atomic_int *over = mmap(NULL, sizeof *over, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (over == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    for (int i = 0; i < 6 * CALLS; i++) {
        job_t j = {.call = i / 6, .who = i % 3 - 1, .ends = i / 3 % 2, .over = over};
        atomic_store(over, 0);
        bad += test_run(TEST_PROCESSES, RANKS, 30, body, &j) != 0;
    }
    return bad != 0;
}
