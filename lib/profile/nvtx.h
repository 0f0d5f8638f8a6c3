/* Ranges of NVTX, NVIDIA's interface for annotations: a range a call, in the domain "rondo", with what is called as its
 * payload, for Nsight Systems and other tools. Without NVTX's headers nvtx_none.c stands in. */
#ifndef RD_PROFILE_NVTX_H
#define RD_PROFILE_NVTX_H

#include <stdbool.h>
#include <stdint.h>

/* The payload, as its schema describes it. */
typedef struct rd_nvtx_call {
    uint64_t comm;   /* its number */
    uint64_t number; /* of the call in its communicator, from 1 on: of collectives, of sends or of receives; 0: the call
                        is in a group, and has none yet */
    uint64_t bytes;  /* count times size of type; of blocks of different lengths, this rank's own */
    int32_t root;    /* or the peer */
    int32_t op;      /* rondo_op_t; -1: none */
    /* The communicator's ranks by their numbers in the job: the first one's, the step from one to the next, and how
     * many there are. A step of 0: they are not known, or at no equal steps. */
    int32_t ranks_start, ranks_stride, ranks_size;
} rd_nvtx_call_t;

/* What RONDO_NVTX says, auto being whether a tool asks for it. */
bool rd_nvtx_wanted(const char *setting);

/* The calling thread's range begins, and ends. `name` must last. */
void rd_nvtx_begin(const char *name, const rd_nvtx_call_t *call);
void rd_nvtx_end(void);

#endif
