/* One trial: ranks run random operations, and at a random moment something happens to one of them. trials.c draws the
 * plan, does to the ranks what comes from outside, and counts; trial.c is what a rank does.
 *
 *   kill   SIGKILL: every other rank's pending or next call returns RONDO_ERR_REMOTE and names the rank
 *   stop   SIGSTOP: RONDO_ERR_TIMEOUT at the set time; the stopped one, let go again, gets an error too
 *   late   it comes late, or is stopped for a moment shorter than the timeout: nothing but time is lost
 *   abort  another thread of it calls rondo_comm_abort: its own call ends with RONDO_ERR_ABORTED, the others as in kill
 *   birth  SIGKILL while the communicator is being made: nobody hangs
 *   second as kill; then another one is killed while the survivors shrink. Whether that shrink fails or what it makes
 *          does: all others shrink once more, without both
 *   limit  it has no memory, file size or descriptors left while the communicator is made, in an operation, or in a
 *          shrink: it does without, or returns an error with a sentence, and then the others do too; when there is
 *          enough again, the same shrink succeeds
 *
 * After kill, stop, abort and an operation's failure the others shrink: by a list of who is gone, or (half of kill,
 * abort and second) to RONDO_SURVIVORS. All members of the smaller communicator agree on who they are, and its
 * allreduce is right. Every operation that succeeds is verified. */
#ifndef TRIAL_H
#define TRIAL_H

#include <stdatomic.h>

#include "util/harness.h"
#include "sched/algo.h"

#define TRIAL_LIMIT_S 120 /* what counts as a hang, on a machine that does much else */

typedef enum { KILL, STOP, LATE, ABORT, BIRTH, SECOND, LIMIT, NUM_KINDS } kind_t;
typedef enum { SPACE, FILE_SIZE, DESCRIPTORS, NUM_LIMITS } limit_t;
typedef enum { IN_CREATION, IN_OPERATION, IN_SHRINK, NUM_STAGES } stage_t;

typedef struct {
    kind_t kind;
    uint64_t seed;
    int nranks, nnodes, victim, delay_us, resume_early, operations;
    int second, again_us; /* the second victim, and how long after the first survivor began to shrink */
    int slow;             /* a rank that comes to that shrink when the others have given it up; -1: none */
    int unnamed;          /* they shrink to RONDO_SURVIVORS: nobody says who is gone */
    limit_t limit;
    stage_t stage;
    long room;                           /* what is left under the limit: bytes or descriptors */
    const rd_algo_t *algo[RD_NUM_COLLS]; /* forced; NULL: chosen by cost */
    const char *proto;                   /* likewise */
    int narrow;                          /* connections as narrow as they may be */
} plan_t;

#define TRIAL_MOST_ALGOS 32 /* of rd_algos */

/* Between the parent and the ranks. */
typedef struct {
    _Atomic int ready;                       /* ranks that have their communicator */
    _Atomic int noticed;                     /* ranks that have got their error */
    _Atomic int shrinking;                   /* ranks that have begun to */
    _Atomic int finished;                    /* ranks other than the victim that are through */
    _Atomic int failed;                      /* limit: ranks that got an error */
    _Atomic int failed_shrink, failed_later; /* second: shrinks that failed; communicators that did */
    _Atomic int wrong, leftovers;            /* wrong results; ranks that kept something */
    _Atomic int64_t happened, again;         /* when, us; 0: not yet */
    int64_t took_us[TEST_MAX_RANKS];         /* from then to the error; -1: none */
    int64_t back_us[TEST_MAX_RANKS];         /* from the (second) error to a right result of fewer ranks; -1: none */
    int64_t abort_us;                        /* rondo_comm_abort took; -1: not called */
    _Atomic int served[TRIAL_MOST_ALGOS];    /* operations that went through by a forced algorithm */
    _Atomic int chosen, refused;             /* by the cheapest one; none could serve */
} board_t;

typedef struct {
    plan_t plan;
    board_t *board;
    int64_t ready_at, shrinking_at;
    int resumed;
} trial_t;

void trial_body(test_rank_t *t, void *arg);

#endif
