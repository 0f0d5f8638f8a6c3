/* A rank that has a bootstrap and a network and nothing else, on a node of its own. */
#ifndef TEST_NET_RANK_H
#define TEST_NET_RANK_H

#include "transport/transport.h"

/* The id, in memory that the ranks share, zero at first. Rank 0 makes it once all are forked: the rendezvous is a
 * thread, and a child forked beside one may inherit a lock of UCX's memory hooks that nobody will ever give back. */
typedef struct net_id {
    _Atomic int made;
    rondo_unique_id_t id;
} net_id_t;

typedef struct net_rank {
    rd_env_t env;
    rd_log_ctx_t ctx; /* name, rank and nranks are the caller's */
    rd_stop_t stop;
    rd_boot_t *boot;
    rd_node_t node;
    rd_transport_t *net;
} net_rank_t;

/* Each is collective; nonzero: it has failed. */
int net_rank_meet(net_rank_t *r, net_id_t *id); /* the bootstrap */
int net_rank_join(net_rank_t *r);               /* the network */
void net_rank_leave(net_rank_t *r);

#endif
