/* Which ranks share a node, and the memory that they share.
 *
 * "The same node" means that a descriptor can be passed over a unix socket. Ranks that look alike (boot id and
 * RONDO_HOSTID) try it, with the lowest one as leader, and the ranks that cannot reach the leader form the next group.
 * The leader makes one memfd, seals its size, reserves its pages after checking the limits (memory, cgroup,
 * RLIMIT_FSIZE, RLIMIT_AS), and passes it together with a pidfd of every member. Each rank maps all of it: member m's
 * segment is base + m * segment_bytes, one flat range with a fixed stride. Nothing has a name, so nothing is left after
 * kill -9. */
#ifndef RD_NODE_NODE_H
#define RD_NODE_NODE_H

#include "boot/boot.h"
#include "topo/locality.h"

typedef struct rd_node {
    int nnodes;
    int *node_of;         /* node number of each rank, nranks entries; nodes are numbered by their lowest rank */
    int fewest, most;     /* ranks on the emptiest and the fullest node */
    int nlocal;           /* ranks on this node */
    int *local;           /* their ranks, ascending */
    int self;             /* this rank's index in local[] */
    int *pidfd;           /* of each local rank; -1: unknown, or the same process */
    int *brought;         /* what each local rank has brought along; -1: nothing, or the same process */
    char *base;           /* the node's shared memory; NULL if nlocal == 1 */
    size_t segment_bytes; /* bytes of each member's segment */
    rd_locality_t *at;    /* where each local rank is; NULL: not said */
    int *order; /* the rank at each place of the machine's order (sched/visits.h), then the place of each rank; NULL:
                   every rank's place is its number */
    int fd;     /* the memfd, or -1 (ranks that are threads of one process share plain memory) */
} rd_node_t;

/* Collective over the bootstrap. Fills all fields but base and segment_bytes. `bring` is a descriptor that the other
 * processes of this node get, too; it stays the caller's. -1: this rank brings none. */
rondo_result_t rd_node_find(rd_node_t *node, rd_boot_t *boot, int rank, int nranks, const rd_env_t *env, int bring,
                            rd_log_ctx_t *ctx, rd_stop_t *stop);
/* Sets `at`, and, unless `by_number`, `order`, from the places that all ranks have told each other. */
rondo_result_t rd_node_locate(rd_node_t *node, const rd_locality_t *localities, int nranks, bool by_number,
                              rd_log_ctx_t *ctx);
/* Collective over the bootstrap. Every rank passes the same segment_bytes (a multiple of 4096). The memory is zeroed.
 * If one node cannot get it, every rank fails, and the error names `less`, what needs less memory ("a smaller window");
 * NULL: the slots of connections. */
rondo_result_t rd_node_map(rd_node_t *node, rd_boot_t *boot, size_t segment_bytes, const char *less,
                           const rd_env_t *env, rd_log_ctx_t *ctx, rd_stop_t *stop);
/* The same for segments of which rank r, of the communicator, touches its first used[r] bytes alone: no more than those
 * need to be free and are reserved. NULL: all. */
rondo_result_t rd_node_map_used(rd_node_t *node, rd_boot_t *boot, size_t segment_bytes, const size_t *used,
                                const char *less, const rd_env_t *env, rd_log_ctx_t *ctx, rd_stop_t *stop);
/* Closes what tells whether the node's processes live, for a node of which only the memory is used. */
void rd_node_close_pidfds(rd_node_t *node);
void rd_node_free(rd_node_t *node); /* also accepts one that is all zero */

#endif
