/* The host executor: runs plans by interpreting their programs; the calling thread makes the progress.
 *
 * A run is one plan in flight. Each of its lanes is a cursor over (pass, step, repetition): it is advanced until it
 * would wait, then the next lane gets its turn, so no lane blocks another.
 */
#ifndef RD_EXEC_HOST_RUN_H
#define RD_EXEC_HOST_RUN_H

#include <stdbool.h>

#include "monitor/seat.h"
#include "plan/plan.h"

typedef struct rd_lane_run {
    const rd_lane_plan_t *plan;
    const rd_step_t *step, *first, *end;
    int32_t repetition, shift; /* of the current step: the repetitions done, and the chunk numbers advanced */
    size_t start;              /* pass * slice: where the current slice begins in each chunk */
    size_t passes;             /* passes that remain, including the current one */
    bool opens;                /* room for its messages has yet to be given */
    bool announces;            /* the message's length has yet to be sent, or to come and be compared */
} rd_lane_run_t;

typedef struct rd_run {
    const rd_plan_t *plan;
    const char *in; /* chunk offsets count from here */
    char *out;
    char *tmp;     /* plan->program->ntmp slices, then one for loaded input */
    int open;      /* lanes that are not done, and one more until all posts have been read */
    int in_place;  /* input and output share memory */
    int flat;      /* of a flat plan: the current step */
    int waits_for; /* the peer for which a lane waited last */
    int waits_far; /* the same of those on other nodes, in the last turn; -1: none */
    rondo_result_t result;
    uint64_t sent, wanted; /* with RONDO_ERR_MISMATCH: what `waits_for` sends, and what this rank expects */
    int room;              /* the number of entries of lanes[] */
    rd_lane_run_t *lanes;
    uint64_t sign;   /* of all messages: the signature of the call, or 0 */
    rd_seat_t *seat; /* where it is told how fast messages come; NULL: nowhere */
} rd_run_t;

/* Begins a run. The caller provides `run->lanes`, `room` and `seat`. `sign`: monitor/called.h. */
void rd_run_begin(rd_run_t *run, const rd_plan_t *plan, const void *in, void *out, char *tmp, uint64_t sign);
/* Advances every lane as far as it goes. Returns true if anything moved. The run is over when `open` is 0 (then
 * `finish` has been applied) or `result` is an error. */
bool rd_run_advance(rd_run_t *run);

/* Ends the run: `recv` sends a message of another length than this rank expects. */
void rd_run_mismatch(rd_run_t *run, const rd_recv_t *recv, uint64_t sent, uint64_t wanted);

#endif
