/* What the files of rails know of each other: see rail.c. */
#ifndef RD_CUDA_RAIL_H
#define RD_CUDA_RAIL_H

#include "exec/cuda/proxy/proxy.h"

/* rail.c: a part of the call, by the kernels of the node's ranks, one of which is `root`; nothing without elements. And
 * by this rank's rail, where `root` is a node: what is scaled has been by then. */
rondo_result_t rd_rail_inside(rd_cuda_t *cuda, const rd_call_t *call, rd_coll_t coll, int root, size_t count,
                              const void *in, void *out);
rondo_result_t rd_rail_between(rd_cuda_t *cuda, const rd_call_t *call, int root, size_t count, const void *in,
                               void *out);

/* Bytes of what is left over when a vector is cut, at most: less than an element of each rank. */
#define RD_RAIL_REST 256
_Static_assert(RD_KRANKS * 16 <= RD_RAIL_REST, "elements have 16 bytes at most");

int rd_rail_place(const rd_node_t *node, int rank); /* of a rank on its node, whichever that is */
int rd_rail_alike(const rd_cuda_t *cuda);           /* nodes have equally many ranks */
int rd_rail_extra(const rd_cuda_t *cuda);           /* this node has ranks without a rail */
/* The node's sum of a vector, in the parts of rails: `part` elements to `own` of each rank that has one, and `rest`
 * more behind them at place `rests`, the last one where nodes differ. */
rondo_result_t rd_rail_sum(rd_cuda_t *cuda, const rd_call_t *call, size_t part, size_t rest, int rests, const void *in,
                           void *own);
/* Where there are extra ranks: such parts, which lie in `vector`, from each rank that has one to all. */
rondo_result_t rd_rail_spread(rd_cuda_t *cuda, const rd_call_t *call, size_t part, size_t rest, void *vector);
/* Where nodes differ: a vector in such parts, the last one with the rest, each at `own`, to blocks of the node's ranks.
 * That of place i lies between begins[i] and begins[i + 1], and goes to its `out`. */
rondo_result_t rd_rail_deliver(rd_cuda_t *cuda, const rd_call_t *call, size_t count, const size_t *begins,
                               const void *own, void *out);
/* One piece of the call's elements after the other, of `piece` but for the last. */
typedef rondo_result_t (*rd_rail_piece_fn)(rd_cuda_t *cuda, const rd_call_t *call, size_t at, size_t count);
rondo_result_t rd_rail_pieces(rd_cuda_t *cuda, const rd_call_t *call, size_t piece, rd_rail_piece_fn serve);

/* rail_vectors.c */
rondo_result_t rd_rail_allreduce(rd_cuda_t *cuda, const rd_call_t *call);
size_t rd_rail_reduce_piece(const rd_cuda_t *cuda, const rd_call_t *call); /* of a vector, elements */
rondo_result_t rd_rail_reduce(rd_cuda_t *cuda, const rd_call_t *call);
rondo_result_t rd_rail_broadcast(rd_cuda_t *cuda, const rd_call_t *call);

/* rail_blocks.c */
rondo_result_t rd_rail_allgather(rd_cuda_t *cuda, const rd_call_t *call); /* with or without tables */
size_t rd_rail_piece(const rd_cuda_t *cuda, const rd_call_t *call);       /* of a block that is reduced, elements */
rondo_result_t rd_rail_reduce_scatter(rd_cuda_t *cuda, const rd_call_t *call);
/* All-to-all, with or without tables; gather and scatter as such. */
rondo_result_t rd_rail_exchange(rd_cuda_t *cuda, const rd_call_t *call);

/* rail_ranges.c: the same where nodes differ, ranks are counted node by node, and blocks lie one behind the other. */
int rd_rail_has_ranges(const rd_cuda_t *cuda, const rd_call_t *call);
size_t rd_rail_range_bytes(const rd_cuda_t *cuda, const rd_call_t *call); /* of a node's range, on average */
rondo_result_t rd_rail_ranges_allgather(rd_cuda_t *cuda, const rd_call_t *call);
size_t rd_rail_ranges_pieces(const rd_cuda_t *cuda, const rd_call_t *call); /* of a reduce-scatter; 0: too many nodes */
rondo_result_t rd_rail_ranges_reduce_scatter(rd_cuda_t *cuda, const rd_call_t *call);

#endif
