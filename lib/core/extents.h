/* Which elements of its buffers a call reads and writes on this rank: of a broadcast and a scatter only the root reads,
 * of a gather and a reduction to one only the root writes, of a barrier nothing is; of blocks that lie apart, as tables
 * say, not what is between them. */
#ifndef RD_CORE_EXTENTS_H
#define RD_CORE_EXTENTS_H

#include "core/comm.h"
#include "plan/call.h"

/* Gets `count` elements, from element `at` of the buffer on. If `count` is 0, the buffer may be any pointer. */
typedef void (*rd_extent_fn)(void *arg, const void *buffer, size_t at, size_t count, rondo_type_t type);

void rd_extents_read(const struct rondo_comm *comm, const rd_call_t *call, rd_extent_fn each, void *arg);
void rd_extents_written(const struct rondo_comm *comm, const rd_call_t *call, rd_extent_fn each, void *arg);

#endif
