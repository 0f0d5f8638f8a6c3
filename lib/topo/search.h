/* The search for a ring: an order in which all GPUs of a machine pass data on, so that the slowest link on the way
 * carries as much as possible.
 *
 * What an order carries is the least, over all links, of the link's GB/s divided by the number of neighbours whose way
 * leads over it. The two directions of a link count apart, so a ring that crosses from one NUMA node to the other and
 * back loads that link once in each direction. Among orders that carry the same, the one with the nearest ways
 * (rd_way_t) is better.
 *
 * With a port, the ring is one of several machines: it comes in by that port to the first GPU and leaves by it from the
 * last one. The search tries near neighbours first, leaves what cannot be better than the best so far, and ends at once
 * where no order could be better. Otherwise it tries a fixed number of steps, not of seconds, and devices in the order
 * of their PCI addresses: so its result depends on the graph alone.
 */
#ifndef RD_TOPO_SEARCH_H
#define RD_TOPO_SEARCH_H

#include "topo/graph.h"

typedef struct rd_tour {
    int n;          /* GPUs */
    int *gpu;       /* their node numbers, in the order of the ring */
    int net;        /* the port's node number; -1: the ring is closed on this machine */
    double gbps;    /* 0: the GPUs do not all reach each other */
    rd_way_t worst; /* the farthest way between neighbours */
    bool best;      /* no order carries more; false: the search ended before it knew */
    int ways;       /* the sum of the ways between neighbours: of orders that carry the same, the least is best */
    long steps;     /* that were tried */
} rd_tour_t;

/* Searches a ring of the `n` GPUs, node numbers of the graph, by the port `net` or -1. The caller frees it by
 * rd_tour_free. Returns RONDO_ERR_NO_MEMORY if there is no memory. */
rondo_result_t rd_tour_search(rd_tour_t *ring, const rd_graph_t *graph, const int *gpu, int n, int net);
/* What the ring in this order carries; `best` is not known, and false. */
rondo_result_t rd_tour_rate(rd_tour_t *ring, const rd_graph_t *graph, const int *gpu, int n);
void rd_tour_free(rd_tour_t *ring);

#endif
