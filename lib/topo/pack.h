/* What a machine carries by several rings, or trees, at once. One ring leaves links idle wherever a GPU has links to
 * more than two others: a DGX-1V carries 40 GB/s by its best ring, and three times as much by several that share its
 * links. This is what a program can reach at most, and what NCCL's channels are compared with; rondo's own kernels go
 * by one order (topo/gpu_ring.h).
 *
 * Each ring has a part of the data, and is as fast as its part needs, so that no link carries more than it can, the two
 * directions of each counted apart. Which rings, and how much by each, is a linear program, whose columns are all rings
 * of all GPUs. It is solved with the few that matter: at any time each link has a price, and a ring that costs less
 * than what it would earn goes in (topo/cheapest.h finds the cheapest). When there is none, no packing carries more,
 * and the prices prove it: whatever is packed pays all links' GB/s at their prices at most, and each GB/s at least what
 * the cheapest ring costs.
 *
 * By ports, each ring comes in and leaves by one port of a network device, so that all machines' rings of a port meet
 * each other on one rail; crossed, it may leave by another port than it comes in by.
 *
 * Trees go from the first GPU to all others, as a broadcast does: what they carry is at most what each cut lets through
 * that parts that GPU from another one. With any roots, each goes from the GPU where it is best, which is how NCCL
 * counts its trees. Either counts one way, from the root to all others: an allreduce goes up as well, and so carries
 * less.
 */
#ifndef RD_TOPO_PACK_H
#define RD_TOPO_PACK_H

#include "topo/cheapest.h"
#include "topo/graph.h"

#define RD_PACK_GPUS (RD_CHEAPEST_ENDS - 1) /* the most; with a port they are as many ends as there may be */

typedef enum { RD_PACK_RINGS, RD_PACK_PORTS, RD_PACK_CROSSED, RD_PACK_TREES, RD_PACK_ANY_ROOTS } rd_pack_kind_t;

typedef struct rd_packed {
    double gbps;
    int net, out;            /* by ports: by which it comes in and leaves, node numbers; else -1 */
    int gpu[RD_PACK_GPUS];   /* node numbers: in the order of the ring, or each behind the one above it */
    int above[RD_PACK_GPUS]; /* trees: that it gets the data from, a node number; -1: it is the root */
} rd_packed_t;

typedef struct rd_pack {
    int n; /* GPUs */
    int count;
    rd_packed_t *part; /* the fastest first */
    double gbps;       /* of all together; 0: there is none */
    double bound;      /* that no packing exceeds; INFINITY: not known */
    double *price;     /* of each link of the graph: the bound follows from these */
    long steps;        /* that it took: when there are too many, what was found counts */
} rd_pack_t;

/* Is it a matter of a second at most? `ports` is 0 where rings do not go by ports. */
bool rd_pack_serves(int n, int ports);
/* Packs the `n` GPUs, two or more node numbers of the graph, the root of trees first. The result depends on the graph
 * alone. The caller frees it by rd_pack_free. Returns RONDO_ERR_NO_MEMORY, or RONDO_ERR_UNSUPPORTED if there are too
 * many GPUs or ports. */
rondo_result_t rd_pack_search(rd_pack_t *pack, const rd_graph_t *graph, const int *gpu, int n, rd_pack_kind_t kind);
void rd_pack_free(rd_pack_t *pack);

#endif
