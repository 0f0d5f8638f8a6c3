/* One step by the CMA protocol: the messages are posts of addresses in the sender's memory, and the receiver reads
 * there (`read` of transport/conn.h). */
#ifndef RD_EXEC_HOST_CMA_STEP_H
#define RD_EXEC_HOST_CMA_STEP_H

#include <stdbool.h>

#include "exec/host/run.h"

/* The ends of a step, resolved: local addresses, or connections. */
typedef struct rd_cma_step {
    const rd_plan_t *plan;
    const rd_step_t *step;
    uint64_t sign;                /* of its messages: the signature of the call */
    const char *src[RD_MAX_ENDS]; /* NULL: a peer */
    char *dst[RD_MAX_ENDS];       /* NULL: a peer */
    bool put; /* the sender puts the message where the receiver wants it, if it may: transport/cma/room.h */
    size_t bytes;
    char *staging; /* RD_MAX_ENDS blocks */
} rd_cma_step_t;

/* Returns true if the step was done or has failed, with its result in *result. If not, *waits_for is the peer that it
 * waits for. With RONDO_ERR_MISMATCH, *sent is the number of bytes that this peer has posted. */
bool rd_cma_step(const rd_cma_step_t *s, int *waits_for, uint64_t *sent, rondo_result_t *result);
/* Copies buffers into slots for peers that may not read them and have asked. To be called as often as the run advances.
 * Returns true if something has moved. */
bool rd_cma_answer(const rd_plan_t *plan);
/* Returns true when every peer has read what was posted to it: only then may the user have the buffer back. */
bool rd_cma_settled(const rd_plan_t *plan, int *waits_for);

#endif
