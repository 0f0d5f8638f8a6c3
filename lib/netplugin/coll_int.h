/* What the files of the switch by a CollNet plugin share: coll_connect.c makes it and takes it down, coll_switch.c
 * posts and polls. */
#ifndef RD_NETPLUGIN_COLL_INT_H
#define RD_NETPLUGIN_COLL_INT_H

#include "netplugin/coll_load.h"
#include "netplugin/coll_switch.h"

/* A message on its way to the switch or back. */
typedef struct rd_coll_flight {
    void *request; /* NULL: the plugin has not taken it yet */
    rd_coll_t by;  /* which of the plugin's calls: an allreduce, an allgather, a reduce_scatter */
    size_t bytes;  /* that are added, or of the blocks of all ranks */
    size_t each;   /* of a block */
    size_t own;    /* where in the result the block is that is to be published, if not at its beginning */
    rondo_type_t type;
    rondo_op_t op;
} rd_coll_flight_t;

/* What the plugin has of a group: it is taken down as a whole, in the end perhaps by a thread that nobody waits for. */
typedef struct rd_coll_held {
    const rd_coll_plug_t *plug;
    void *context, *comm;
    bool began;  /* the context is to be ended */
    char *slots; /* those to the switch, then those from it, then the signatures of what is posted */
    void *registration;
    _Atomic int state; /* of the thread that takes it down: 0, 1 when it has, 2 when nobody waits any more */
} rd_coll_held_t;

typedef struct rd_coll_net {
    rd_collnet_t base;
    rd_coll_held_t *held;
    rd_transport_t *net; /* that it is beside */
    rd_health_t *health;
    rd_counter_t posted_tail, consumed, arrived; /* the counters of both connections */
    rd_coll_flight_t flights[RD_COLLNET_SLOTS];
    uint64_t posted, taken, done; /* messages: by the executor, by the plugin, and those that have come back */
    int node, nodes;              /* this rank's in its group, and their number */
    int64_t moved_ms;             /* when one of these was last counted up */
    int error;                    /* NCCL's, of the call that has failed; 0: none has */
    const char *call;
    int64_t failed_ms;
} rd_coll_net_t;

extern const rd_transport_ops_t rd_collnet_ops;

void rd_coll_held_end(rd_coll_held_t *held);
/* Ends it in a thread, for which it waits a while: after a failure a plugin may wait for ranks that are gone. */
void rd_coll_held_leave(rd_coll_held_t *held);

#endif
