/* What the tests of libnccl.so.2 share: the id by the harness's way, results with NCCL's sentence, operations as data.
 */
#ifndef TEST_NCCL_HARNESS_H
#define TEST_NCCL_HARNESS_H

#include "util/harness.h"
#include "util/operation.h"
#include "nccl/nccl.h"

/* First thing in main, after test_begin: host memory. */
void nccl_begin(void);

/* A failure with the text of the call and the library's sentence, unless the result is as wanted. Nonzero: as wanted.
 */
int nccl_result(test_rank_t *t, ncclResult_t got, ncclResult_t want, const char *text);
#define NCCL_OK(t, call) nccl_result(t, call, ncclSuccess, #call)
#define NCCL_GIVES(t, want, call) nccl_result(t, call, want, #call)

/* Collective: a new id on all ranks. */
ncclUniqueId nccl_id(test_rank_t *t);
/* Collective: a communicator of all ranks; the rank ends when it cannot be made. */
ncclComm_t nccl_comm(test_rank_t *t);

/* Posts the case by NCCL's call; -1: NCCL has none. */
int nccl_posts(do_what_t what);
ncclResult_t nccl_post(do_call_t *call, ncclComm_t comm, cudaStream_t stream);
/* rondo's types and operators in NCCL's numbers; -1: it has none. */
int nccl_type(rondo_type_t type);
int nccl_op(rondo_op_t op);

/* All-to-all in place, of NCCL_PLACE ints for each rank: the buffer before, and whether it is right afterwards. */
#define NCCL_PLACE 1500
void nccl_place(const test_rank_t *t, int *x, int round);
void nccl_placed(test_rank_t *t, const int *x, int round);

/* Waits until a communicator with blocking = 0 has finished; its result. */
ncclResult_t nccl_settled(ncclComm_t comm, ncclResult_t result);

#endif
