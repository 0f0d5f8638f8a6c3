/* NCCL's XML of graphs (NCCL_GRAPH_FILE, NCCL_GRAPH_DUMP_FILE), version 1: of its graphs rondo has the ring.
 *
 *     <graphs version="1">
 *       <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="20" ...>
 *         <channel>
 *           <gpu dev="0x0" rank="0"/>      in the order of the ring; numbers of devices in hexadecimal
 *           ...
 *
 * A channel of several machines has a <net dev=""/> at either end. Where machines share their NVSwitches, as those of
 * an NVL72, NCCL 2.28 writes the machine's number into the upper 8 bits of each `dev`. A <gpu> need not have a rank.
 * What is read is checked whole: a file that names a GPU twice, or another number of channels than it has, makes NCCL
 * hang or write outside its memory, and is refused here with the line.
 */
#ifndef RD_TOPO_RING_FILE_H
#define RD_TOPO_RING_FILE_H

#include "topo/search.h"

typedef struct rd_ring_gpu {
    int64_t dev; /* on a machine that shares its NVSwitches with others: its number there in the upper 8 bits */
    int rank;    /* -1: not said */
} rd_ring_gpu_t;

/* The ring of the file's first channel; the others have the same GPUs. */
typedef struct rd_ring_read {
    int n;
    rd_ring_gpu_t *gpu;
    int line; /* of the channel */
    bool ranked;
} rd_ring_read_t;

/* The caller frees ring->gpu. */
rondo_result_t rd_ring_read(rd_ring_read_t *ring, const char *file, const char *variable);
/* order[i]: which of `n` GPUs stands at place i. `numbers`: of their devices, or, by `ranked`, of their ranks. Returns
 * NULL, or what does not fit: the ring has another number of GPUs, or one that is not there. */
const char *rd_ring_order(const rd_ring_read_t *ring, const int *numbers, int n, bool ranked, int *order);

/* The ring as XML, which the caller frees. `rank`: of each GPU in the ring; NULL: it has none. */
rondo_result_t rd_ring_xml(rd_xml_t **graphs, const rd_graph_t *graph, const rd_tour_t *ring, const int *rank);

#endif
