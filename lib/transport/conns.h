/* Where the connections of a communicator lie: the layout of a rank's segment, and the two tables of connections.
 *
 *   segment of rank m:  | control | credits, a pair for each (peer, channel) | inboxes, one for each (peer, channel) |
 *                       | board, if all ranks share the node: shm/board.h |
 *   inbox:              | tail, signatures | lengths | LL ring | signatures if they are many | slots, page aligned |
 *
 * A rank's inboxes lie in its own segment and are written by its peers; the credits for what it has sent come back into
 * its own segment, too. So everything that a rank polls is local to it, and everything that it stores into other
 * segments is posted. */
#ifndef RD_TRANSPORT_CONNS_H
#define RD_TRANSPORT_CONNS_H

#include <stdbool.h>

#include "base/health.h"
#include "monitor/called.h"
#include "transport/shm/board.h"
#include "transport/transport.h"
#include "sched/step.h"

/* RONDO_CHECK=1: where the thread waits that was the last to call this communicator on this rank (progress/deadlock.h,
 * which defines the fields). `version` is odd while the others are written. */
#define RD_WAITING_BYTES 192
typedef struct rd_waiting {
    _Alignas(RD_LINE) _Atomic uint64_t version;
    _Atomic uint64_t caller, awaited;
    _Atomic int64_t since_ms, still_ms;
    _Atomic int here, crosses, margin_ms;
    _Atomic uint64_t call[RD_WAITING_BYTES / 8];
} rd_waiting_t;

/* What a rank tells the others of its node. It is the first part of its segment. */
typedef struct rd_control {
    _Alignas(RD_LINE) _Atomic int left; /* this rank has destroyed its communicator in order */
    /* A call has failed here, so the user has the buffers back although a peer may still be reading what was posted of
     * them. Set before the call returns; a peer checks it after it has read, and so never uses data that was changed.
     */
    _Alignas(RD_LINE) _Atomic int failed;
    /* Incremented when this rank begins to read what a rank of its own process has posted, or to put into its window,
     * and again when it ends: so it is odd while the rank does. A rank that takes its memory back waits for it, because
     * within a process memory that vanishes would crash the other one. */
    _Alignas(RD_LINE) _Atomic uint32_t reading;
    /* The rank that this rank waits for, and when it last stored that: (clock in ms << 32) | (rank + 1); 0: it has
     * never waited. From this the others distinguish a rank that is late from one that waits for it as they do. */
    _Alignas(RD_LINE) _Atomic uint64_t waits;
    /* Likewise a rank of another node for which it waits besides: lanes wait for several ranks, and `waits` names one.
     */
    _Atomic uint64_t waits_far;
    /* Set by a peer that aborts or fails: rd_notice(), or 0 if all is well. Read at every miss. */
    _Alignas(RD_LINE) _Atomic uint64_t notice;
    /* The sentence of the mismatch or NaN that this rank has found or heard of, of its own failure, or of that of a
     * rank of another node, `cause_of`, which may have died. `caused` is 0, 1 while it is being written, or 2. */
    _Alignas(RD_LINE) _Atomic int caused;
    int cause_of;
    bool cause_died;
    char cause[RD_ERROR_BYTES];
    _Alignas(RD_LINE) _Atomic int core; /* the core on which this rank ran when it last waited; used where ranks share
                                           cores */
    rd_waiting_t waiting;
    /* On the first rank of the node: the rank, plus one, that says what is wrong; and until when another one says what
     * a long wait is for, or looks whether ranks wait for each other in a circle. */
    _Atomic int says;
    _Atomic int64_t late_until_ms, circle_until_ms;
    /* Likewise the first failure that a rank of the node, `first_by`, has found or heard of. `first` is 0, 1 while it
     * is being written, or 2. */
    _Atomic int first;
    int first_by;
    rd_failure_t failure;
    rd_called_t called; /* what this rank has called lately, if calls are signed */
} rd_control_t;

typedef struct rd_layout {
    uint32_t slots, lines; /* of a connection; powers of two */
    size_t slot_bytes;     /* a multiple of the page size */
    uint32_t
        long_slots; /* the number of long slots between nodes, where there are also `slots` slots of `slot_bytes` */
    size_t long_bytes;
    size_t ring_bytes;  /* bytes of the LL ring */
    size_t inbox_bytes; /* bytes of the inbox of one connection */
    size_t inboxes;     /* the offset of the inboxes in a segment */
    size_t board;       /* the offset of the board; 0: there is none */
    size_t segment_bytes;
    uint32_t
        shorter[RD_RINGS]; /* number of slots of each ring of shorter slots, between nodes; 0: there is no such ring */
    size_t mirror_bytes;   /* bytes of one direction of a mirrored connection */
} rd_layout_t;

typedef struct rd_conns {
    int nranks;
    int cma; /* nonzero: every rank may read the memory of every rank of its node, see cma/cma.h */
    rd_layout_t layout;
    rd_send_t *sends; /* [channel * nranks + peer] */
    rd_recv_t *recvs;
    char *mirrors; /* the memory of the mirrored connections */
    size_t mirror_bytes;
    rd_control_t **controls; /* of each rank on this node, NULL elsewhere */
    rd_board_t board;
    struct rd_collnet *collnet; /* the switch; NULL: there is none */
    rd_control_t *self;         /* this rank's own; never NULL */
    rd_control_t own;           /* used where there is no shared segment */
} rd_conns_t;

void rd_layout_init(rd_layout_t *layout, int nlocal, int nnodes, const rd_env_t *env);
/* Returns the bytes of the mirrored connections to `remotes` ranks. */
size_t rd_layout_mirrors(const rd_layout_t *layout, int remotes);

/* Makes the tables. Nothing is bound yet. */
rondo_result_t rd_conns_create(rd_conns_t *conns, const rd_layout_t *layout, const rd_node_t *node, int nranks,
                               rd_log_ctx_t *ctx);
/* Maps the memory of mirrored connections. This must precede the creation of their transport, which may register it. */
rondo_result_t rd_conns_map(rd_conns_t *conns, const rd_node_t *node, rd_log_ctx_t *ctx);
/* Binds the connections to all ranks that the transport reaches. If it fails, the transport has some of them and must
 * be destroyed before the tables are freed. */
rondo_result_t rd_conns_bind(rd_conns_t *conns, rd_transport_t *transport, const rd_transport_args_t *args);
/* Sets where a connection's inbox, of `layout->inbox_bytes`, and its pair of credits lie. */
void rd_send_lay(rd_send_t *send, const rd_layout_t *layout, char *inbox, rd_counter_t *credits, int peer);
void rd_recv_lay(rd_recv_t *recv, const rd_layout_t *layout, char *inbox, rd_counter_t *credits, int peer);
/* This rank's creation has failed, so that its end is no death. Also for tables that were never made. */
static inline void rd_conns_failed(const rd_conns_t *conns)
{
    if (conns->controls && conns->self)
        atomic_store_explicit(&conns->self->failed, 1, memory_order_release);
}

void rd_conns_free(rd_conns_t *conns);

/* Notifies every rank of the node that this one, `self`, aborts or fails with what failure->said calls it. The sentence
 * goes along with an error of all ranks, and with what has failed on this rank itself or on another node. */
void rd_conns_notify(rd_conns_t *conns, int self, const rd_failure_t *failure);
/* Copies the sentence that a rank of the node has published on the failure of `rank`, or, with -1, any of them, and
 * whether that is a death. Returns the rank that has published it, which gives the reason alone if the failure was its
 * own; -1: there is none. */
int rd_conns_cause(const rd_conns_t *conns, int rank, rd_failure_t *failure);
/* Makes `own` the first failure of the node. Returns -1, or, if there has been one, the rank that had it first, and the
 * failure through *first. */
int rd_conns_first(const rd_conns_t *conns, int self, const rd_failure_t *own, rd_failure_t *first);
/* Returns true if another rank of the node is a thread of this process, and so may read by itself what is posted
 * here. */
bool rd_conns_shared(const rd_conns_t *conns);
/* Waits until none of those ranks reads any more. This rank's `failed` must be set, and all threads must be able to see
 * it. */
void rd_conns_wait_unread(const rd_conns_t *conns);

#endif
