/* A rank is killed at a moment that nobody chose, and a survivor that holds its record knows what it did last: within
 * one call of the truth, which each rank writes into a page of the test's own before and after each call. Runs of equal
 * calls and calls that differ, by seeds. RONDO_TEST_TRIALS and RONDO_TEST_SEED set how many and which.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "monitor/read.h"
#include "sched/program.h"
#include "util/harness.h"

#define RANKS 3
#define TRIALS 60
#define FLOATS 4096

typedef struct truth {
    _Alignas(64) _Atomic uint64_t begun, done; /* calls that it was about to make, and that had returned */
    _Atomic int pid;
} truth_t;

typedef struct trial {
    truth_t *truth; /* shared by all */
    uint64_t seed;
    int victim, killed;
    uint64_t after; /* calls of the victim, then it is killed when the parent looks next */
} trial_t;

/* ---- the calls ---- */

enum { SHORT, LONG, BROADCAST, BARRIER, KINDS };

/* Runs of 1 to 64 equal calls. */
static int kind_of(const trial_t *trial, uint64_t number)
{
    unsigned shift = (unsigned)(trial->seed % 7);

    return (int)(test_mix(trial->seed ^ (number >> shift)) % KINDS);
}

static rondo_result_t make_call(int kind, float *buffer, rondo_comm_t comm)
{
    switch (kind) {
    case SHORT:
        return rondo_allreduce(buffer, buffer, 2, RONDO_FLOAT32, RONDO_MAX, comm, NULL);
    case LONG:
        return rondo_allreduce(buffer, buffer, FLOATS, RONDO_FLOAT32, RONDO_MAX, comm, NULL);
    case BROADCAST:
        return rondo_broadcast(buffer, buffer, 16, RONDO_FLOAT32, 1, comm, NULL);
    default:
        return rondo_barrier(comm, NULL);
    }
}

static int says(const rd_monitor_event_t *e, int kind)
{
    static const struct {
        rd_coll_t coll;
        uint64_t count;
    } as[KINDS] = {{RD_ALLREDUCE, 2}, {RD_ALLREDUCE, FLOATS}, {RD_BROADCAST, 16}, {RD_BARRIER, 0}};

    return e->kind == as[kind].coll && e->count == as[kind].count;
}

/* ---- a survivor ---- */

/* Opens the victim's record among this process's descriptors. */
static int find_record(rd_reader_t *reader, int pid)
{
    for (int fd = 3; fd < 1024; fd++) {
        if (fcntl(fd, F_GET_SEALS) < 0 || rd_reader_open(reader, fd))
            continue;
        if (reader->head.pid == pid)
            return 1;
        rd_reader_close(reader);
    }
    return 0;
}

static void look(test_rank_t *t, const trial_t *trial)
{
    const truth_t *truth = &trial->truth[trial->victim];
    uint64_t was = truth->begun, done = truth->done;
    rd_monitor_comm_t c;
    rd_monitor_event_t e;
    rd_reader_t r;

    if (!find_record(&r, truth->pid)) {
        test_fail(t, "the record of rank %d is not held here", trial->victim);
        return;
    }
    if (!rd_reader_comm(&r, 0, &c) || c.rank != trial->victim || c.size != RANKS) {
        test_fail(t, "the record has no such rank");
        rd_reader_close(&r);
        return;
    }
    uint64_t begun = c.calls[0].begun, ended = c.calls[0].ended;
    if (begun > was || begun + 1 < was || ended < done || ended > done + 1 || ended > begun || begun > ended + 1)
        test_fail(t, "seed %llu: begun %llu and ended %llu, in truth %llu and %llu", (unsigned long long)trial->seed,
                  (unsigned long long)begun, (unsigned long long)ended, (unsigned long long)was,
                  (unsigned long long)done);
    if (c.state != RD_MONITOR_ALIVE)
        test_fail(t, "seed %llu: the state is %d", (unsigned long long)trial->seed, c.state);
    if (!rd_reader_last(&r, &c, RD_TRACK_COLLECTIVE, &e))
        test_fail(t, "seed %llu: its last event cannot be read", (unsigned long long)trial->seed);
    else if (e.number > begun + 1 || !says(&e, kind_of(trial, e.number)) ||
             (e.number <= begun && kind_of(trial, begun) != kind_of(trial, e.number)))
        test_fail(t, "seed %llu: the event of call %llu is of another call than number %llu",
                  (unsigned long long)trial->seed, (unsigned long long)e.number, (unsigned long long)begun);
    rd_reader_close(&r);
}

static void body(test_rank_t *t, void *arg)
{
    const trial_t *trial = arg;
    truth_t *truth = &trial->truth[t->rank];
    static float buffer[FLOATS];
    rondo_comm_t comm;
    rondo_result_t result = RONDO_SUCCESS;

    truth->pid = getpid();
    comm = test_comm(t, NULL);
    for (uint64_t number = 1; result == RONDO_SUCCESS; number++) {
        atomic_store(&truth->begun, number);
        result = make_call(kind_of(trial, number), buffer, comm);
        atomic_store(&truth->done, number);
    }
    TEST_TRUE(t, result == RONDO_ERR_REMOTE);
    look(t, trial);
    TEST_OK(t, NULL, rondo_comm_abort(comm));
}

/* ---- the parent ---- */

static void step(test_director_t *d, const pid_t *pid)
{
    trial_t *trial = d->arg;

    if (trial->killed || !pid[trial->victim] || trial->truth[trial->victim].begun < trial->after)
        return;
    trial->killed = 1;
    kill(pid[trial->victim], SIGKILL);
}

int main(void)
{
    const char *count = getenv("RONDO_TEST_TRIALS"), *from = getenv("RONDO_TEST_SEED");
    uint64_t first = from ? strtoull(from, NULL, 10) : 1;
    int trials = count ? atoi(count) : TRIALS, bad = 0;
    truth_t *truth = mmap(NULL, RANKS * sizeof *truth, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    test_begin("monitor/killed", trials * 5);
    if (truth == MAP_FAILED)
        return 1;
    printf("%d trials, seeds from %llu\n", trials, (unsigned long long)first);
    for (int i = 0; i < trials && !bad; i++) {
        uint64_t seed = first + (uint64_t)i, random = test_mix(seed);
        trial_t trial = {
            .truth = truth, .seed = seed, .victim = (int)(random % RANKS), .after = 1 + (random >> 8) % 5000};
        test_director_t director = {.step = step, .arg = &trial, .victims = 1u << trial.victim};
        memset(truth, 0, RANKS * sizeof *truth);
        bad += test_run_directed(&director, RANKS, 20, body, &trial);
        if (bad)
            printf("with the seed %llu\n", (unsigned long long)seed);
    }
    return bad != 0;
}
