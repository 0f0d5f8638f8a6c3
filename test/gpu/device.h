/* What tests on devices share. They see rondo.h and the CUDA runtime alone, so that the same source runs on GPUs
 * (make check-gpu) and on the runtime of test/sim, where there is none. */
#ifndef TEST_DEVICE_H
#define TEST_DEVICE_H

#include <cuda_runtime_api.h>

#include "util/harness.h"
#include "util/operation.h"

/* A failure with the text of the call and what CUDA says. */
#define TEST_CUDA(t, call) test_cuda(t, call, #call)
void test_cuda(test_rank_t *t, cudaError_t error, const char *text);

/* Of the simulated runtime, where that is linked: what has been made and not been destroyed. Elsewhere NULL. */
__attribute__((weak)) int sim_live(char *text, size_t size);
__attribute__((weak)) void rd_sim_patience(int seconds);

/* Is there no device? Asked in a process of its own: ranks are forked later, and CUDA does not survive that. */
int device_none(void);
/* Plays nodes: "2+1" puts two ranks on one and the third on another, and so does "aab", as long as ranks are processes.
 * Returns their number; 0: that is no such text. NULL: all on one again. */
int device_nodes(const char *text);
/* Goes to device rank % devices, whose number it returns, and to the rank's node: then communicators may be made. */
int device_begin(test_rank_t *t);
/* A communicator on device rank % devices, which becomes the current one; the rank ends when it cannot be made. */
rondo_comm_t device_comm(test_rank_t *t);
/* The same with a config of the caller's, whose device is set here. */
rondo_comm_t device_comm_config(test_rank_t *t, rondo_config_t config);

/* A call whose buffers have copies on the device. */
typedef struct device_call {
    do_call_t call;
    char *send_block, *recv_block;
    char *send_host, *recv_host; /* pinned: what comes from there and goes there is copied in stream order */
    size_t send_bytes, recv_bytes;
} device_call_t;

/* `kind`: 0 device memory, 1 pinned, 2 managed. */
void device_prepare(test_rank_t *t, device_call_t *d, const do_case_t *c, int kind);
/* The same as another rank than t's: for a thread that has several. */
void device_prepare_as(test_rank_t *t, device_call_t *d, const do_case_t *c, int kind, int rank, int nranks);
void device_refill(device_call_t *d); /* for another run: what device_fill copies is the input again */
void device_fill(test_rank_t *t, device_call_t *d, cudaStream_t stream); /* copies the input there, in the stream */
rondo_result_t device_post(device_call_t *d, rondo_comm_t comm, cudaStream_t stream);
/* Copies the result back behind what is in the stream, waits, compares. */
void device_verify(test_rank_t *t, device_call_t *d, int values, cudaStream_t stream);
void device_release(device_call_t *d);
/* Collective: destroys graphs when all ranks are at rest. CUDA waits with that for what runs on the device, be it the
 * kernel of a rank beside, which may wait for this one. */
void device_graphs_destroy(test_rank_t *t, cudaGraphExec_t *exec, int n);
/* Collective: frees the memory that this rank has had, given back or not, which is kept till then, because cudaFree
 * waits for whatever runs on the device. */
void device_finish(test_rank_t *t);
/* Collective: the same behind the end of `comm`, where it is not NULL, and of so many streams. */
void device_end(test_rank_t *t, rondo_comm_t comm, const cudaStream_t *streams, int n);
/* Returns how many nodes of this kind the graph has, which has no more than 256 of all kinds. */
size_t device_nodes_of(test_rank_t *t, cudaGraph_t graph, enum cudaGraphNodeType kind);
/* Waits until the communicator has failed, of itself or because another rank's has. */
void device_failed(test_rank_t *t, rondo_comm_t comm);
/* Takes memory of all kinds on the current device, which device_comm does too: not to be done beside a kernel that
 * waits for this rank. */
void device_pools(test_rank_t *t);
/* Memory of that sort for a test's own use. */
void *device_memory(test_rank_t *t, size_t bytes, int kind);
void device_memory_back(void *memory);

#endif
