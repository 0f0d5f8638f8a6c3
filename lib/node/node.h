/* Which ranks share a node, and the memory that they share.
 *
 * "The same node" means that a descriptor could be passed over a unix socket: ranks that look alike (boot id and
 * RONDO_HOSTID) try, the lowest as leader, and who cannot reach the leader forms the next group. The leader makes one
 * memfd, seals its size, reserves its pages after looking at the limits (memory, cgroup, RLIMIT_FSIZE, RLIMIT_AS), and
 * passes it together with a pidfd of every member. Each rank maps it whole: member m's segment is
 * base + m * segment_bytes, one flat range with a fixed stride. Nothing has a name, so nothing is left after kill -9.
 */
#ifndef RD_NODE_NODE_H
#define RD_NODE_NODE_H

#include "boot/boot.h"

typedef struct rd_node {
    int nnodes;
    int *node_of;         /* node number of each rank, nranks entries; nodes are numbered by their lowest rank */
    int fewest, most;     /* ranks on the emptiest and the fullest node */
    int nlocal;           /* ranks on this node */
    int *local;           /* their ranks, ascending */
    int self;             /* this rank's index in local[] */
    int *pidfd;           /* of each local rank, -1: unknown or the same process */
    char *base;           /* the node's shared memory; NULL if nlocal == 1 */
    size_t segment_bytes; /* of each member */
    int fd;               /* the memfd, or -1 (ranks that are threads of one process share plain memory) */
} rd_node_t;

/* Collective over the bootstrap. Fills all but base and segment_bytes. */
rondo_result_t rd_node_find(rd_node_t *node, rd_boot_t *boot, int rank, int nranks, const rd_env_t *env,
                            rd_log_ctx_t *ctx, rd_stop_t *stop);
/* Collective over the bootstrap; every rank passes the same segment_bytes (a multiple of 4096). Memory is zeroed.
 * If one node cannot have it, every rank fails. */
rondo_result_t rd_node_map(rd_node_t *node, rd_boot_t *boot, size_t segment_bytes, const rd_env_t *env,
                           rd_log_ctx_t *ctx, rd_stop_t *stop);
void rd_node_free(rd_node_t *node); /* also one that is all zero */

#endif
