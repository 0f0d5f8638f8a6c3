/* In which order rings and trees visit the GPUs that a communicator has on one machine.
 *
 * Where every pair of GPUs has the same way to each other, as by an NVSwitch, all orders are alike, and the numbers of
 * the ranks are taken. Elsewhere the search (topo/search.h) finds the ring that carries most, and its order is taken if
 * it carries more than the one by number, or as much by nearer ways. RONDO_GRAPH_FILE names a ring that is taken in
 * its place, RONDO_TOPO_FILE the machine that is searched.
 *
 * One rank looks, and tells the others: ranks may see different parts of a machine, or have different files. */
#ifndef RD_TOPO_GPU_RING_H
#define RD_TOPO_GPU_RING_H

#include "base/env.h"
#include "topo/topo_gpu.h"

typedef struct rd_gpu_ring {
    bool is;                  /* false: the order is that of the numbers */
    bool given;               /* it was read, not searched */
    int rank[RD_GPUS_MOST];   /* at each place, as they are counted here: 0 to n - 1; 0 is the first */
    double gbps, number_gbps; /* what it carries, and the order by number, as NCCL reckons; 0: not known */
} rd_gpu_ring_t;

/* The GPUs of one machine. */
typedef struct rd_ring_gpus {
    int n;
    const char *const *bus; /* the PCI address of each */
    const int *rank;        /* in the communicator, ascending: by these a file names them, or by device numbers */
} rd_ring_gpus_t;

/* `dump`: write the ring to RONDO_GRAPH_DUMP_FILE. Returns an error if a file that a variable names cannot be read. A
 * machine that is not known has no order. */
rondo_result_t rd_gpu_ring_find(rd_gpu_ring_t *ring, const rd_env_t *env, const rd_ring_gpus_t *gpus, bool dump,
                                const rd_log_ctx_t *ctx);

#endif
