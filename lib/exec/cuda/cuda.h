/* The CUDA side of a communicator: everything that touches a device lies behind these functions. Built from lib/cuda
 * where configure found CUDA; cuda_none.c stands in elsewhere.
 *
 * A CUDA communicator keeps bootstrap, node and watch as a host one does; its operations go to the device instead of
 * the queue: chosen (exec/cuda/kernel_choose.c), bound to a kernel (exec/cuda/collective.c), launched in call order
 * (exec/cuda/order.c). */
#ifndef RD_EXEC_CUDA_CUDA_H
#define RD_EXEC_CUDA_CUDA_H

#include <stdio.h>

#include "plan/call.h"
#include "progress/net_comm.h"
#include "topo/topo_gpu.h"

typedef struct rd_cuda rd_cuda_t;

int rd_cuda_built(void);

/* What config.device means here: a device's number, or RONDO_DEVICE_HOST. */
rondo_result_t rd_cuda_device(int wanted, int *device);

/* Collective over the team's bootstrap, after its node is known. On an error every rank has one, and *cuda may have
 * been set: it is for rd_cuda_free. */
rondo_result_t rd_cuda_create(rd_cuda_t **cuda, const rd_team_t *team, const rd_net_comm_ops_t *net_comms);
/* What the watch does for a CUDA communicator several times a second. */
void rd_cuda_health_poll(rd_cuda_t *cuda);
/* Waits for what is enqueued, or, after an error, until kernels have left; then closes what is the peers'. After it
 * this rank touches no peer's memory: its control may say that it has left. */
rondo_result_t rd_cuda_close(rd_cuda_t *cuda);
/* Frees the rest. What peers may still touch is freed by a later communicator of this process, or with it; then `node`,
 * whose memory tells when they have left, is taken over, and empty afterwards. NULL: there is nothing to free. */
void rd_cuda_free(rd_cuda_t *cuda, rd_node_t *node);
/* Waits for what is enqueued. */
rondo_result_t rd_cuda_drain(rd_cuda_t *cuda);
rondo_result_t rd_cuda_drained(rd_cuda_t *cuda); /* without the wait: RONDO_IN_PROGRESS */
/* Has a kernel failed? Then the communicator has. */
rondo_result_t rd_cuda_check(rd_cuda_t *cuda);

/* Enqueues, or records in this thread's group. */
rondo_result_t rd_cuda_collective(rd_cuda_t *cuda, const rd_call_t *call);
rondo_result_t rd_cuda_message(rd_cuda_t *cuda, const rd_message_t *message);

/* The outermost end of a group: enqueues what this thread has recorded. What it then waits for, if `pending` is not
 * NULL, is left there. */
typedef struct rd_cuda_pending rd_cuda_pending_t;
rondo_result_t rd_cuda_group_submit(rd_cuda_pending_t **pending);
void rd_cuda_group_clear(void);
/* Expected microseconds of the longest communicator's collectives in what this thread has recorded. */
double rd_cuda_group_estimate(void);
/* Of a group that was submitted: RONDO_IN_PROGRESS while it runs; then it is freed, and the result is RONDO_SUCCESS or
 * what CUDA has found wrong. The health of the communicators is for the caller to look at. */
rondo_result_t rd_cuda_pending_test(rd_cuda_pending_t **pending);

/* Collective. *number: -1, it is a promise and no more; else what rd_cuda_deregister is told. */
rondo_result_t rd_cuda_register(rd_cuda_t *cuda, void *buffer, size_t bytes, int *number);
rondo_result_t rd_cuda_deregister(rd_cuda_t *cuda, int number);
void rd_cuda_windows(rd_cuda_t *cuda); /* see rondo_comm_windows */

rondo_result_t rd_cuda_mem_alloc(rd_cuda_t *cuda, void **buffer, size_t bytes);
rondo_result_t rd_cuda_mem_free(rd_cuda_t *cuda, void *buffer);

/* A line for each device, for rondo-info. */
void rd_cuda_print(FILE *file);
/* Multiprocessors of the device at this PCI address; 0: this process does not see it. */
int rd_cuda_multiprocessors(const char *bus);

/* GPUs of one node, as a plan wants them: those of a machine that is only described will do. */
typedef struct rd_cuda_shape {
    int nranks, sms;
    rd_gpu_path_t way; /* between the farthest pair */
} rd_cuda_shape_t;
/* Expected us of a collective of `bytes` as in rondo-perf, float sums, by this algorithm's kernel, protocol and
 * prices; 0: they do not serve it. */
double rd_cuda_expected(const rd_cuda_shape_t *shape, const rd_prices_t *prices, const rd_env_t *env, rd_coll_t coll,
                        uint64_t bytes, const rd_algo_t *algo, rd_proto_t proto);
/* Whether the algorithm's kernel goes by the protocol. */
int rd_cuda_goes_by(const rd_algo_t *algo, rd_proto_t proto);
/* Every kernel that could serve, the cheapest first, what would be chosen marked; float sums. */
rondo_result_t rd_cuda_plan_print(FILE *file, rd_coll_t coll, rondo_type_t type, size_t count,
                                  const rd_cuda_shape_t *shape, const rd_env_t *env);
/* What would be chosen, for every operation from 8 bytes to 1 GB. */
rondo_result_t rd_cuda_choices_print(FILE *file, const rd_cuda_shape_t *shape, const rd_env_t *env);

#endif
