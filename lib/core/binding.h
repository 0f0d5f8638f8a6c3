/* For rondo's bindings to other languages, which know more about an argument than C does. This header is not installed:
 * programs have no use for it. */
#ifndef RD_CORE_BINDING_H
#define RD_CORE_BINDING_H

#include <rondo.h>
#include <stdbool.h>

#include "base/error.h"
#include "plan/tuner.h"

#pragma GCC visibility push(default)

/* Called by a binding that refuses a call before rondo has seen it; returns `result`. Like any refusal it leaves the
 * communicator unharmed, becomes the text of rondo_last_error, and inside a group is what the end of the group returns.
 * `sentence` is printed after "CALL: ". */
rondo_result_t rondo_call_refuse(rondo_comm_t comm, rondo_result_t result, const char *call, const char *sentence);

/* To be called on all ranks before any operation. It declares that every buffer registered on this communicator is
 * registered on all ranks alike whenever an operation uses it, while other buffers may be used as well. So
 * RONDO_CUDA_COPY concerns registered buffers only, and refuses no others. NCCL's symmetric windows are like this. */
rondo_result_t rondo_comm_windows(rondo_comm_t comm);

/* Refuses a buffer that the communicator's GPU cannot reach, as its operations do, and memory of another GPU, which
 * they take where they reach it. NCCL does so where it is asked to check pointers. On host communicators everything
 * passes.
 */
rondo_result_t rondo_buffer_check(rondo_comm_t comm, const char *call, const char *what, const void *buffer);

/* Memory as rondo_mem_alloc's, for operations that a binding adds to the program's. *bytes may become more.
 * rondo_scratch_free, to be called when the communicator is about to end, waits for nothing: where they may still be
 * under way, it is kept until they are over, and given to later communicators. */
rondo_result_t rondo_scratch_alloc(void **buffer, size_t *bytes, rondo_comm_t comm);
void rondo_scratch_free(void *buffer, size_t bytes, rondo_comm_t comm);

/* Local: this rank's part of a window takes no messages any more, and its memory is the caller's again, who knows that
 * no rank accesses it. The rest of the window goes with the communicator. NCCL's deregistration is like this. */
rondo_result_t rondo_window_close(rondo_comm_t comm, rondo_window_t window);
/* Local, on a CUDA communicator: the registered buffer as a window for one-sided operations, until rondo_window_close,
 * which comes before rondo_comm_deregister. *window is NULL if the ranks have not mapped each other's buffers. */
rondo_result_t rondo_registration_window(rondo_comm_t comm, rondo_registration_t reg, rondo_window_t *window);

/* For a call that has returned RONDO_ERR_REMOTE, on a device. Has the stream stall, as NCCL does, until the
 * communicator is revoked, aborted or destroyed, but not longer than RONDO_NCCL_STALL_MS after the first such call.
 * Returns the communicator's error if it does not stall: that time is over, the stream is captured, or the communicator
 * has another error or is one of host memory. */
rondo_result_t rondo_comm_stall(rondo_comm_t comm, rondo_stream_t stream);

/* To be called when a communicator has been made. On a device its kernels then wait for a second longer when another
 * rank has ended, and rondo_comm_shown returns false for so long: a rank that comes to its own end in this second never
 * notices, as with NCCL. rondo_comm_get_error does not wait. */
void rondo_comm_patient(rondo_comm_t comm);
bool rondo_comm_shown(rondo_comm_t comm);

/* To be called before the destroy that stands for the abort of a communicator at rest: on a device, it then waits for
 * no kernel of another communicator, which the same thread may be about to abort. */
void rondo_comm_hasten(rondo_comm_t comm);

/* Returns true if all operations that this rank has enqueued on a communicator which has failed were complete before,
 * or were not enqueued at all. Waits until no kernel runs any more. */
bool rondo_comm_complete(rondo_comm_t comm);

/* Returns the algorithm, as RONDO_ALGO names it, that performs `operation` on host memory or between GPUs in the way of
 * NCCL's algorithm `nccl`, a name of `letters` letters. `proto` restricts it to algorithms with this protocol of
 * RONDO_PROTO; NULL allows any. Returns NULL if there is none, or it needs a switch that RONDO_COLLNET does not ask
 * for.
 */
const char *rondo_nccl_algo(const char *operation, const char *nccl, size_t letters, int gpus, const char *proto);

/* rondo_comm_create_scalable, which another thread may end: known(made, arg) is called when the creation begins, and
 * known(NULL, arg) when it is over, both by the calling thread. In between any thread may call
 * rondo_comm_give_up(made), and the creation ends with RONDO_ERR_ABORTED, unless it is complete by then. If the
 * arguments are refused, `known` is not called. For blocking = 1; it may be NULL. */
rondo_result_t rondo_comm_create_known(rondo_comm_t *comm, int nranks, const rondo_unique_id_t *ids, int nids, int rank,
                                       const rondo_config_t *config, void (*known)(rondo_comm_t made, void *arg),
                                       void *arg);
void rondo_comm_give_up(rondo_comm_t made);

/* Has this tuner a say in the choices of all communicators that this process makes from now on; NULL: none. It must
 * last. */
void rondo_tuner_set(const rd_tuner_t *tuner);

/* Writes a line into rondo's log, from a binding. */
void rondo_log_line(rd_log_level_t level, const char *text);
/* Would it be written? */
bool rondo_log_takes(rd_log_level_t level);

#pragma GCC visibility pop
#endif
