/* The plan of a trial, drawn from its seed: which ranks there are, what happens to which of them, how, and while they
 * do what.
 *
 *   kill   it dies (see way_t): every other rank's pending or next call returns RONDO_ERR_REMOTE and names the rank
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
#ifndef PLAN_H
#define PLAN_H

#include <stdint.h>

#include "util/harness.h"
#include "sched/algo.h"

#define PLAN_MOST_ALGOS 32 /* of rd_algos; plan_fits looks */
#define PLAN_MOST_RANKS 32 /* of which a set of victims has bits */

typedef enum { KILL, STOP, LATE, ABORT, BIRTH, SECOND, LIMIT, NUM_KINDS } kind_t;
typedef enum { SPACE, FILE_SIZE, DESCRIPTORS, NUM_LIMITS } limit_t;
typedef enum { IN_CREATION, IN_OPERATION, IN_SHRINK, NUM_STAGES } stage_t;
/* How a victim dies: by a signal; the same, but a child that a bare clone has made lives on and holds copies of its
 * descriptors; it executes another program; it dumps core. */
typedef enum { BY_SIGNAL, WITH_CHILD, BY_EXEC, BY_CORE, NUM_WAYS } way_t;
/* What the ranks do most of the time. */
typedef enum { CALLS, GROUPS, SUBMITS, SPLITS, SHRINKS, GROWS, NUM_WORKS } work_t;
/* Where ranks are: all on one node, on nodes in turns, or in blocks, or the victim alone on its node. */
typedef enum { TOGETHER, IN_TURNS, IN_BLOCKS, ALONE, NUM_PLACES } place_t;

extern const char *const kind_names[NUM_KINDS],
    *const limit_names[NUM_LIMITS], *const stage_names[NUM_STAGES], *const way_names[NUM_WAYS],
                                                                        *const work_names[NUM_WORKS],
                                                                            *const place_names[NUM_PLACES];

typedef struct {
    kind_t kind;
    way_t way;
    work_t work;
    place_t place;
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

/* What may be drawn: sets of bits, and bounds. */
typedef struct {
    unsigned kinds, ways, works;
    int most;   /* ranks */
    int nnodes; /* 0: drawn */
    int cores;  /* this machine writes cores to files */
} plan_choice_t;

/* 0 if there are more algorithms than a plan and a tally have room for. */
int plan_fits(void);
void plan_draw(plan_t *p, uint64_t seed, const plan_choice_t *choice);
void plan_describe(const plan_t *p, uint64_t seed, const char *verdict);
int plan_node_of(const plan_t *p, int rank);
/* The set of those names that `text` has. */
unsigned plan_parse(const char *text, const char *const *names, int n);

#endif
