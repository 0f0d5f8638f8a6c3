/* Where the connections of a communicator lie: the layout of a rank's segment, and the two tables of connections.
 *
 *   segment of rank m:  | control | credits, one pair a (peer, channel) | inboxes, one a (peer, channel) |
 *   inbox:              | tail, own pair of lines | LL ring | slots, page aligned |
 *
 * A rank's inboxes lie in its own segment and are written by its peers; the credits for what it sent come back into its
 * own segment too. So everything that a rank polls is local to it, and everything that it stores into others is posted.
 */
#ifndef RD_TRANSPORT_CONNS_H
#define RD_TRANSPORT_CONNS_H

#include "base/health.h"
#include "transport/transport.h"
#include "sched/step.h"

/* What a rank tells the others of its node: first line of its segment. */
typedef struct rd_control {
    _Alignas(RD_LINE) _Atomic int left; /* this rank has destroyed its communicator in order */
    /* A call has failed here, so the user has his buffers back although a peer may still be reading what was posted of
     * them. Set before the call returns; a peer looks at it after it has read, and so never takes what was changed. */
    _Alignas(RD_LINE) _Atomic int failed;
    /* Counts up when this rank begins, and again when it ends, to read what a rank of its own process has posted: odd
     * while it does. Whoever takes his posts back waits for it, because there a vanished buffer would be a crash. */
    _Alignas(RD_LINE) _Atomic uint32_t reading;
    /* Whom this rank waits for, and when it last said so: (clock in ms << 32) | (rank + 1); 0: it has never waited. By
     * this the others tell who is late from who waits for him as they do. */
    _Alignas(RD_LINE) _Atomic uint64_t waits;
    /* Set by a peer that aborts or fails: rd_notice(), or 0: all is well. Read at every miss. */
    _Alignas(RD_LINE) _Atomic uint64_t notice;
    _Alignas(RD_LINE) _Atomic int core; /* where this rank ran when it last waited; of use where ranks share cores */
} rd_control_t;

typedef struct rd_layout {
    uint32_t slots, lines; /* a connection, powers of two */
    size_t slot_bytes;     /* a multiple of the page */
    uint32_t long_slots;   /* the same between nodes, where there are as many as `slots` of `slot_bytes`, too */
    size_t long_bytes;
    size_t ring_bytes;  /* of the LL ring */
    size_t inbox_bytes; /* of one connection */
    size_t inboxes;     /* where they begin in a segment */
    size_t segment_bytes;
    uint32_t shorter[RD_RINGS]; /* slots of each ring of shorter ones, between nodes; 0: there is none */
    size_t mirror_bytes;        /* of one direction of a mirrored connection */
} rd_layout_t;

typedef struct rd_conns {
    int nranks;
    int cma; /* every rank may read the memory of every rank of its node: cma/cma.h */
    rd_layout_t layout;
    rd_send_t *sends; /* [channel * nranks + peer] */
    rd_recv_t *recvs;
    char *mirrors; /* memory of the mirrored connections */
    size_t mirror_bytes;
    rd_control_t **controls; /* of each rank on this node, NULL elsewhere */
    rd_control_t *self;      /* this rank's own; never NULL */
    rd_control_t own;        /* stands in where there is no shared segment */
} rd_conns_t;

void rd_layout_init(rd_layout_t *layout, int nlocal, int nnodes, const rd_env_t *env);

/* Makes the tables; nothing is bound yet. */
rondo_result_t rd_conns_create(rd_conns_t *conns, const rd_layout_t *layout, const rd_node_t *node, int nranks,
                               rd_log_ctx_t *ctx);
/* The memory of mirrored connections, before their transport is created: that one may register it. */
rondo_result_t rd_conns_map(rd_conns_t *conns, const rd_node_t *node, rd_log_ctx_t *ctx);
/* Binds the connections to all ranks that the transport reaches. On failure it has some of them, and ends before the
 * tables do. */
rondo_result_t rd_conns_bind(rd_conns_t *conns, rd_transport_t *transport, const rd_transport_args_t *args);
/* Where a connection's inbox lies, which is `layout->inbox_bytes` long, and its pair of credits. */
void rd_send_lay(rd_send_t *send, const rd_layout_t *layout, char *inbox, rd_counter_t *credits, int peer);
void rd_recv_lay(rd_recv_t *recv, const rd_layout_t *layout, char *inbox, rd_counter_t *credits, int peer);
void rd_conns_free(rd_conns_t *conns);

/* Tells every rank of the node that this one aborts or fails. */
void rd_conns_notify(rd_conns_t *conns, rondo_result_t code, int failed_rank, int reporter); /* ranks plus one */
/* Nonzero: another rank of the node is a thread of this process, and may read what is posted here by itself. */
int rd_conns_shared(const rd_conns_t *conns);
/* Waits until none of them reads any more. This rank's `failed` stands, and all threads can see it. */
void rd_conns_wait_unread(const rd_conns_t *conns);

#endif
