/* What the parts of shim.c share. */
#ifndef TEST_SHIM_H
#define TEST_SHIM_H

#include "nccl/nccl_harness.h"
#include "gpu/device.h"

/* Of the simulated runtime: the devices that this process has used, a bit each. */
__attribute__((weak)) unsigned sim_contexts(void);

extern uint64_t shim_seed;

/* The tests' memory is taken before there is a kernel that waits, which CUDA's allocations might wait for. */
void shim_memory_first(test_rank_t *t);
int shim_device(test_rank_t *t); /* of this rank */
/* Collective: a communicator of all ranks on this rank's device; `policy`: ncclConfig_t.CTAPolicy. */
ncclComm_t shim_comm(test_rank_t *t, int blocking);
ncclComm_t shim_comm_by(test_rank_t *t, int blocking, int policy);
cudaStream_t shim_stream(test_rank_t *t);
/* Draws what is left of a case, alike on all ranks. */
void shim_draw(do_case_t *c, uint64_t *random, int nranks);
ncclResult_t shim_post(device_call_t *d, ncclComm_t comm, cudaStream_t stream);
/* One number a rank in memory that both sides reach: what comes of it is seen when the stream has been waited for. */
int32_t *shim_number(test_rank_t *t, int32_t value);

/* Sums numbers by an allreduce, and compares with `expected`. */
void shim_sum_is(test_rank_t *t, ncclComm_t comm, cudaStream_t stream, int expected);

/* Parts of shim_aborted.c. */
void shim_aborted(test_rank_t *t, void *arg);
void shim_behind(test_rank_t *t, void *arg);
void shim_watched(test_rank_t *t, void *arg);

/* Parts: shim_memory.c. */
void shim_memory(test_rank_t *t, void *arg);
void shim_pointers(test_rank_t *t, void *arg);

/* A part: shim_signals.c. */
void shim_signals(test_rank_t *t, void *arg);

/* A part: one rank, which is that thread. */
void shim_one_thread(test_rank_t *t, void *arg);

/* Parts of shim_gone.c. shim_gone_killed runs those in which a rank is killed, and returns the number of failures. */
void shim_gone(test_rank_t *t, void *arg);
void shim_shrunk(test_rank_t *t, void *arg);
void shim_resplit(test_rank_t *t, void *arg);
void shim_unmatched(test_rank_t *t, void *arg);
void shim_traps(test_rank_t *t, void *arg);
void shim_lost(test_rank_t *t, void *arg);
int shim_gone_killed(void);

#endif
