/* The CUDA side of a communicator: everything that touches a device lies behind these functions. They are built from
 * lib/exec/cuda where configure found CUDA; elsewhere cuda_none.c takes their place.
 *
 * A CUDA communicator keeps its bootstrap, node and liveness thread as a host communicator does. Its operations go to
 * the device instead of the queue: a kernel is chosen (exec/cuda/kernel_choose.c), bound to the call
 * (exec/cuda/collective.c), and launched in call order (exec/cuda/order.c). */
#ifndef RD_EXEC_CUDA_CUDA_H
#define RD_EXEC_CUDA_CUDA_H

#include <stdbool.h>
#include <stdio.h>

#include "plan/call.h"
#include "progress/net_comm.h"
#include "topo/topo_gpu.h"

typedef struct rd_cuda rd_cuda_t;

bool rd_cuda_built(void);

/* Translates config.device, `wanted`, into *device: a device's number, or RONDO_DEVICE_HOST. */
rondo_result_t rd_cuda_device(int wanted, int *device);
/* Returns the PCI address of a device by its number (topo/locality.h), or 0 for RONDO_DEVICE_HOST. */
uint32_t rd_cuda_pci(int device);

/* Collective over the team's bootstrap, after its node is known. If one rank has an error, every rank returns one.
 * *cuda may be set even then, and has to be passed to rd_cuda_free. */
rondo_result_t rd_cuda_create(rd_cuda_t **cuda, const rd_team_t *team, const rd_net_comm_ops_t *net_comms);
/* Adds what a CUDA communicator would take of a rank beside its controls; `net_comm` does so for each net communicator.
 * Every field of the shape is set. Asks nothing of CUDA. */
void rd_cuda_foresee(const rd_env_t *env, const rondo_shape_t *shape, rd_foresee_fn net_comm, rondo_memory_t *memory);
/* Adds what it holds now. Not while an operation of it is called. */
void rd_cuda_count(const rd_cuda_t *cuda, rondo_memory_t *memory);
/* Waits that begin from now on have the team's timeout. */
void rd_cuda_limit(rd_cuda_t *cuda);
/* The liveness thread calls this for a CUDA communicator several times a second. */
void rd_cuda_health_poll(rd_cuda_t *cuda);
/* Waits until everything enqueued is over, or, after an error, until the kernels that have begun have left; then closes
 * the mappings of the peers' memory. Returns true if this rank touches no peer's memory any more, so that its control
 * segment may say that it has left; otherwise that is said there when the last kernel is over. */
bool rd_cuda_close(rd_cuda_t *cuda);
/* Frees the rest. What peers may still touch is left to a later communicator of this process; in that case `node`,
 * whose memory shows when the peers have left, is taken over and is empty afterwards. `cuda` may be NULL. */
void rd_cuda_free(rd_cuda_t *cuda, rd_node_t *node);
/* Waits until everything enqueued is over; behind a failure not for what has not begun. */
rondo_result_t rd_cuda_drain(rd_cuda_t *cuda);
rondo_result_t rd_cuda_drained(rd_cuda_t *cuda); /* the same without waiting: may return RONDO_IN_PROGRESS */
/* Gives back the device memory that can be given back, when everything enqueued is over, and takes it again; both are
 * collective over the team's bootstrap. If rd_cuda_suspend fails, and the communicator has not, nothing has changed;
 * nor has it if rd_cuda_resume does. In between nothing but these two, the questions and the end may be called. */
rondo_result_t rd_cuda_suspend(rd_cuda_t *cuda);
rondo_result_t rd_cuda_resume(rd_cuda_t *cuda);
/* Fails the communicator if a kernel has failed. Returns RONDO_SUCCESS if none has. */
rondo_result_t rd_cuda_check(rd_cuda_t *cuda);

/* Of a communicator that has failed because of another rank (stall.c). rd_cuda_stall puts a kernel into the stream that
 * runs until rd_cuda_release or for RONDO_NCCL_STALL_MS; it returns the failure's code if the stream is captured, or if
 * that time is over. rd_cuda_complete returns true if all that was enqueued has been done nevertheless; it waits until
 * the kernels have left. */
rondo_result_t rd_cuda_stall(rd_cuda_t *cuda, rondo_stream_t stream);
void rd_cuda_release(rd_cuda_t *cuda);
/* From here on kernels go on waiting for a second when another rank has ended. rd_cuda_shown returns true if that
 * second is over, or if there is none. */
void rd_cuda_patient(rd_cuda_t *cuda);
bool rd_cuda_shown(rd_cuda_t *cuda);
bool rd_cuda_complete(rd_cuda_t *cuda);
/* Its end waits for nobody's kernels from here on, as behind a failure. */
void rd_cuda_hasten(rd_cuda_t *cuda);

/* Enqueue an operation, or record it in this thread's group. */
rondo_result_t rd_cuda_collective(rd_cuda_t *cuda, const rd_call_t *call);
rondo_result_t rd_cuda_message(rd_cuda_t *cuda, const rd_message_t *message);

/* The outermost end of a group: enqueues what this thread has recorded. If `pending` is not NULL, *pending is set to
 * what rd_cuda_pending_test can then test for completion. */
typedef struct rd_cuda_pending rd_cuda_pending_t;
rondo_result_t rd_cuda_group_submit(rd_cuda_pending_t **pending);
void rd_cuda_group_clear(void);
/* Of all that this thread has recorded: returns the expected microseconds of the collectives of one communicator, the
 * one for which they take longest; a negative number if something has no price. */
double rd_cuda_group_estimate(void);
/* Tests a group that was submitted. Returns RONDO_IN_PROGRESS while it runs; afterwards *pending is freed, and the
 * result is RONDO_SUCCESS or an error that CUDA has found. The caller has to check the health of the communicators. */
rondo_result_t rd_cuda_pending_test(rd_cuda_pending_t **pending);

/* Registers a buffer; collective. *number is what rd_cuda_deregister takes, or -1 if the registration is a promise
 * only. */
rondo_result_t rd_cuda_register(rd_cuda_t *cuda, void *buffer, size_t bytes, int *number);
rondo_result_t rd_cuda_deregister(rd_cuda_t *cuda, int number);
void rd_cuda_windows(rd_cuda_t *cuda); /* see rondo_comm_windows */
rondo_result_t rd_cuda_buffer_own(rd_cuda_t *cuda, const char *call, const char *what,
                                  const void *buffer); /* see rondo_buffer_check */

/* user_window.c, user_device.c: what kernels of the program's own use (rondo_device.cuh). Creation and destruction are
 * collective. rd_cuda_window_buffer returns where this rank's part lies. */
typedef struct rd_cuda_window rd_cuda_window_t;
rondo_result_t rd_cuda_window_create(rd_cuda_t *cuda, void *buffer, size_t bytes, rd_cuda_window_t **window);
rondo_result_t rd_cuda_window_destroy(rd_cuda_t *cuda, rd_cuda_window_t *window);
bool rd_cuda_has_window(const rd_cuda_t *cuda, const rd_cuda_window_t *window);
void *rd_cuda_window_buffer(const rd_cuda_t *cuda, const rd_cuda_window_t *window);
void rd_cuda_window_view(const rd_cuda_t *cuda, const rd_cuda_window_t *window, rondo_device_window_t *view);
rondo_result_t rd_cuda_device_create(rd_cuda_t *cuda, const rondo_device_config_t *config, rondo_device_t *device);
rondo_result_t rd_cuda_device_destroy(rd_cuda_t *cuda, rondo_device_t *device);
bool rd_cuda_has_device(const rd_cuda_t *cuda, const rondo_device_t *device);

/* stream_access.c: one-sided operations on streams, which are enqueued, or recorded in this thread's group. Windows of
 * registered memory serve them, too: rd_cuda_window_of makes one of the buffer that rd_cuda_register has given this
 * number, which is local, or returns NULL if the ranks have not mapped it; rd_cuda_window_close ends such a window. */
typedef enum { RD_CUDA_PUT, RD_CUDA_GET, RD_CUDA_SIGNAL, RD_CUDA_AWAIT, RD_CUDA_FLUSH } rd_cuda_access_t;
typedef struct rd_cuda_onesided {
    rd_cuda_access_t access;
    bool signals; /* a put with a signal behind it; of a signal, true */
    bool group;
    int peer, context, signal;
    const rd_cuda_window_t *window; /* of the communicator */
    size_t offset, bytes;
    void *local;
    const rondo_wait_desc_t *waits;
    int nwaits;
    int signals_each; /* of a context */
    rondo_stream_t stream;
} rd_cuda_onesided_t;
rondo_result_t rd_cuda_onesided(rd_cuda_t *cuda, const rd_cuda_onesided_t *op, const char *call);
rd_cuda_window_t *rd_cuda_window_of(rd_cuda_t *cuda, int number);
void rd_cuda_window_close(rd_cuda_t *cuda, rd_cuda_window_t *window);

rondo_result_t rd_cuda_mem_alloc(rd_cuda_t *cuda, void **buffer, size_t bytes);
rondo_result_t rd_cuda_mem_free(rd_cuda_t *cuda, void *buffer);
/* See rondo_scratch_alloc. */
rondo_result_t rd_cuda_scratch_alloc(rd_cuda_t *cuda, void **buffer, size_t *bytes);
void rd_cuda_scratch_free(rd_cuda_t *cuda, void *buffer, size_t bytes);

/* Prints a line for each device, for rondo-info. */
void rd_cuda_print(FILE *file);
/* Returns the number of multiprocessors of the device at this PCI address, or 0 if this process does not see it. */
int rd_cuda_multiprocessors(const char *bus);

/* The GPUs of one node, as a plan needs to know them. The machine may be one that is only described. */
typedef struct rd_cuda_shape {
    int nranks, sms;
    rd_gpu_path_t path; /* path between the farthest pair */
} rd_cuda_shape_t;
/* Returns the expected microseconds of a collective of `bytes` (counted as in rondo-perf, float sums) by this
 * algorithm's kernel, protocol and prices, or 0 if the algorithm and protocol do not serve it. */
double rd_cuda_expected(const rd_cuda_shape_t *shape, const rd_prices_t *prices, const rd_env_t *env, rd_coll_t coll,
                        uint64_t bytes, const rd_algo_t *algo, rd_proto_t proto);
/* Returns true if the algorithm's kernel can use the protocol. */
bool rd_cuda_goes_by(const rd_algo_t *algo, rd_proto_t proto);
/* Prints every kernel that could serve a float sum, the cheapest first, and marks the one that would be chosen. */
rondo_result_t rd_cuda_plan_print(FILE *file, rd_coll_t coll, rondo_type_t type, size_t count,
                                  const rd_cuda_shape_t *shape, const rd_env_t *env);
/* Prints what would be chosen for every operation from 8 bytes to 1 GB. */
rondo_result_t rd_cuda_choices_print(FILE *file, const rd_cuda_shape_t *shape, const rd_env_t *env);

#endif
