/* How much of a rank's memory a communicator takes: see rondo_memory_t. */
#ifndef RD_CORE_FOOTPRINT_H
#define RD_CORE_FOOTPRINT_H

#include "core/comm.h"

/* Makes one layout for all ranks: every node is laid out like the fullest, of `most` ranks. `cuda`: of a CUDA
 * communicator, whose data does not use these connections: its ranks share memory only for their controls. */
void rd_footprint_layout(rd_layout_t *layout, int most, int nnodes, bool cuda, const rd_env_t *env);

/* Adds what a communicator would take of a rank, host or CUDA. Every field of the shape is set. It asks nothing of
 * CUDA, so a plan for GPUs needs none. */
void rd_footprint_foresee(const rd_env_t *env, const rondo_shape_t *shape, bool cuda, rondo_memory_t *memory);

/* Sets the fields that the caller has left open, and refuses what cannot be. */
rondo_result_t rd_footprint_shape(rondo_shape_t *full, const rondo_shape_t *given);

/* Adds what the communicator holds, its net communicators included. */
void rd_footprint_count(const struct rondo_comm *comm, rondo_memory_t *memory);

#endif
