/* For rondo's bindings to other languages, which see of an argument what C does not. Not installed: programs have no
 * use for it.
 */
#ifndef RD_CORE_BINDING_H
#define RD_CORE_BINDING_H

#include <rondo.h>

#pragma GCC visibility push(default)

/* The binding refuses a call before rondo has seen it, and returns `result`. Like any refusal it leaves the
 * communicator unharmed, is what rondo_last_error says, and inside a group what its end returns. The sentence goes on
 * after "CALL: ".
 */
rondo_result_t rondo_call_refuse(rondo_comm_t comm, rondo_result_t result, const char *call, const char *sentence);

/* All ranks, before any operation: what is registered on this communicator lies alike on all ranks whenever an
 * operation uses it, and other buffers may be used as well. So RONDO_CUDA_COPY speaks of registered buffers alone, and
 * refuses no other one. NCCL's symmetric windows are such.
 */
rondo_result_t rondo_comm_windows(rondo_comm_t comm);

/* The algorithm, as RONDO_ALGO names it, that does `operation` on host memory or between GPUs as NCCL's algorithm of
 * this name does: `nccl` has so many letters. `proto`: one that goes by this protocol of RONDO_PROTO; NULL: by any.
 * NULL: there is none.
 */
const char *rondo_nccl_algo(const char *operation, const char *nccl, size_t letters, int gpus, const char *proto);

#pragma GCC visibility pop
#endif
