/* One trial: ranks run random operations, and something of plan.h happens to one of them. trials.c does to the ranks
 * what comes from outside, and counts. What a rank does is in trial.c; its operations are in steps.c, what becomes of
 * the survivors in recover.c, and a rank that lacks something in limits.c. judge.c compares every error with the truth:
 * with what has really happened to whom, which whoever does it writes down before. */
#ifndef TRIAL_H
#define TRIAL_H

#include <stdatomic.h>
#include <sys/types.h>

#include "fault/plan.h"

#define TRIAL_LIMIT_S 120 /* what counts as a hang, on a machine that does much else */
#define TRIAL_CREATE_MS "60000"
#define TRIAL_GROW_MS "4000"     /* for a new rank that was killed before it came, on a busy machine */
#define TRIAL_PATIENCE_MS "5000" /* for one that was killed, or found itself without means, before it came */

/* What has happened to a rank. */
typedef enum { UNHARMED, DIED, STOPPED, ABORTED, LACKS } fate_t;

#define TRIAL_NOTE 160

/* Between the parent and the ranks. */
typedef struct {
    /* The truth. */
    _Atomic int fate[TEST_MAX_RANKS];
    pid_t pid[TEST_MAX_RANKS];
    char doing[TEST_MAX_RANKS][TRIAL_NOTE]; /* what each rank does */
    char where[TEST_MAX_RANKS][TRIAL_NOTE]; /* what it did when that happened to it */

    _Atomic int ready;                       /* ranks that have their communicator */
    _Atomic int armed;                       /* the victim has made its child */
    _Atomic int over;                        /* the trial is: what a victim has left behind ends */
    _Atomic int noticed;                     /* ranks that have got their error */
    _Atomic int shrinking;                   /* ranks that have begun to */
    _Atomic int finished;                    /* ranks other than the victim that are through */
    _Atomic int failed;                      /* limit: ranks that got an error */
    _Atomic int failed_shrink, failed_later; /* second: shrinks that failed; communicators that did */
    _Atomic int wrong, leftovers, blamed;    /* wrong results; ranks that kept something; errors that are not true */
    _Atomic int judged;                      /* errors that were compared with the truth */
    _Atomic int64_t happened, again;         /* when, us; 0: not yet */
    int64_t took_us[TEST_MAX_RANKS];         /* from then to the error; -1: none */
    int64_t back_us[TEST_MAX_RANKS];         /* from the (second) error to a right result of fewer ranks; -1: none */
    int64_t abort_us;                        /* rondo_comm_abort took; -1: not called */
    _Atomic int served[PLAN_MOST_ALGOS];     /* operations that went through by a forced algorithm */
    _Atomic int chosen, refused;             /* by the cheapest one; none could serve */
    _Atomic int derived;                     /* splits, shrinks and grows that went through */
    _Atomic uint64_t grow;                   /* the number of the grow whose id this is: */
    rondo_unique_id_t id;
} board_t;

typedef struct {
    plan_t plan;
    board_t *board;
    int64_t ready_at, shrinking_at;
    int resumed;
    char folder[32]; /* where the victim dumps core; "": nowhere */
} trial_t;

typedef struct {
    test_rank_t *t;
    trial_t *trial;
    rondo_comm_t comm;          /* of all ranks */
    rondo_comm_t in;            /* in which it is at work: that, or a smaller one */
    int rank, nranks;           /* there */
    int member[TEST_MAX_RANKS]; /* the ranks of `in`, by their numbers in `comm` */
    uint64_t random;            /* the same on all ranks */
    int steps, descriptors;
    _Atomic int inside, aborting;
} rank_t;

void trial_body(test_rank_t *t, void *arg);
/* To be called by whoever does it, before it is done. */
void trial_fate(board_t *board, int rank, fate_t fate, _Atomic int64_t *when);
/* test_note, and what this rank was doing if something happens to it now. */
void trial_note(rank_t *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- steps.c ---- */

/* One call, group, split, shrink or grow of random numbers; what has succeeded is verified, and what one of the last
 * three ends with is judged. Returns what `in` has come to. */
rondo_result_t step_once(rank_t *r);

/* ---- judge.c ---- */

/* An error of a communicator whose rank i is `member[i]`, of which ranks in `culprits`, a set, have been done something
 * to: is the result the right one, and does the sentence name one of those, and what has been done to it? */
void judge_error(rank_t *r, rondo_comm_t comm, rondo_result_t result, const int *member, int nmembers,
                 unsigned culprits, const char *what);
/* The pending call's error of the communicator of all ranks, and that every later call gives the same. */
void judge_pending(rank_t *r, rondo_result_t result);
/* "missing: 1, 3" has the rank; "missing: 1, 3 and more" may mean each that is higher. */
int judge_missing(const char *text, int rank);
/* Of a creation during which a rank is killed or lacks something. */
void judge_creation(rank_t *r, rondo_result_t result);
void judge_sentence(rank_t *r, rondo_comm_t comm, rondo_result_t result, const char *what);
/* Size and number are right, all members mean the same group, and the sum is right. */
void judge_group(rank_t *r, rondo_comm_t small, const int *out, int nout);
void judge_leftovers(rank_t *r);

/* ---- recover.c ---- */

rondo_result_t recover_shrink(rank_t *r, const int *out, int nout, rondo_comm_t *small);
/* The others go on without the victim, and without the second one. `began`: when that was needed. */
void recover_by_list(rank_t *r, int64_t began);
/* Another rank dies while they shrink: the shrink fails, or what it has made does. */
void recover_in_vain(rank_t *r);
/* Nobody is told who is gone. */
void recover_survivors(rank_t *r);

/* ---- limits.c ---- */

/* Is this the operation in which the victim lacks something? */
int limit_is_now(const rank_t *r);
void limit_set(rank_t *r, int on);
void limit_run(rank_t *r, rondo_result_t result);

#endif
