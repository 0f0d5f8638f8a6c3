/* RONDO_HASH: the blocks of a call in host memory that are hashed (monitor/hashed.h). What it reads is hashed when the
 * call is made, in a group, too; what it writes when it has ended. */
#ifndef RD_CORE_HASHES_H
#define RD_CORE_HASHES_H

#include "core/comm.h"
#include "monitor/hashed.h"
#include "plan/call.h"

/* Set *input to the hash of what the call reads on this rank, and *output to what it will write, which the caller
 * frees; NULL: nothing, or there is no memory. */
void rd_hashes_collective(const struct rondo_comm *comm, const rd_call_t *call, uint64_t *input, rd_hashed_t **output);
void rd_hashes_message(const rd_message_t *message, uint64_t *input, rd_hashed_t **output);

#endif
