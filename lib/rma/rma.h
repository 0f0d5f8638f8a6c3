/* One-sided operations of a host communicator: windows, puts, gets and signals. rondo.h says what they promise.
 *
 * Each rank's part of a window is reached in one of four ways, which is found out when the window is made:
 *
 *   mapped     It lies in this process's memory too, and stays there until this rank's own window is freed: memory that
 *              rondo has made for the ranks of a node. A put is a copy, and needs nothing of the target.
 *   beside     It is memory of the user's, of a rank of this process. A put is a copy, too, and this rank says while it
 *              lasts (rd_control_t.reading), because the user may have that memory back after a failure.
 *   cma        The kernel copies (process_vm_writev, process_vm_readv). It needs nothing of the target either, which
 *              takes its memory back after a failure all the same (transport/cma/room.h).
 *   messages   Elsewhere. A put is messages on connections of a net communicator (progress/net_comm.h), made for this
 *              alone, and the target copies when one of its threads is in a call that waits, or in a one-sided one. The
 *              same messages serve a node where the kernel refuses, and another node by any transport.
 *
 * Signals are counters in memory of the target, one for each origin, context and index. Within a node the origin adds
 * to them itself; but where some of what it puts to that rank goes by messages, so do its signals, behind that.
 *
 * Operations wait in one list. Those of one context are done in the order of their calls; one that cannot go on (no
 * credit, no signal, no answer) holds up those of its context behind it. The queue (progress/queue.h) makes turns here,
 * whatever this rank waits for. */
#ifndef RD_RMA_RMA_H
#define RD_RMA_RMA_H

#include <stdbool.h>

#include "progress/net_comm.h"
#include "progress/queue.h"
#include "transport/conns.h"

#define RD_RMA_CONTEXTS_MOST 64
#define RD_RMA_SIGNALS_MOST 4096
#define RD_RMA_SIGNALS 16 /* of each rank and context, unless the config says otherwise */

typedef enum { RD_RMA_MAPPED, RD_RMA_BESIDE, RD_RMA_CMA, RD_RMA_MESSAGES } rd_rma_way_t;

/* A rank's part of a window. */
typedef struct rd_rma_part {
    rd_rma_way_t way;
    char *mapped; /* where it lies in this process */
    uint64_t address;
    size_t bytes;
} rd_rma_part_t;

typedef struct rondo_window {
    struct rondo_window *next;
    uint32_t number;  /* alike on all ranks, and of no other window of the communicator */
    rd_node_t memory; /* what rondo has allocated for the ranks of this node; all zero: nothing */
    char *alone;      /* the same where this rank is alone on its node */
    size_t alone_bytes;
    rd_rma_part_t *parts; /* of each rank */
} rd_rma_window_t;

typedef enum { RD_RMA_PUT, RD_RMA_SIGNAL, RD_RMA_WAIT, RD_RMA_GET, RD_RMA_FLUSH, RD_RMA_FENCE } rd_rma_kind_t;

typedef struct rd_rma_op {
    struct rd_rma_op *next;
    struct rd_rma *rma;
    rd_rma_kind_t kind;
    bool signals; /* a put with a signal behind it */
    int peer;     /* RONDO_PEER_ALL: all of them */
    int context, signal;
    rd_rma_window_t *window;
    size_t offset, bytes;
    char *local; /* what is put, or where it is got to */
    const rondo_wait_desc_t *waits;
    int nwaits;
    /* How far it is. */
    int at;       /* the next of `waits`, or the next rank that is to be asked */
    bool tried;   /* it could not be done at once: messages do it */
    bool headed;  /* its first message has been posted */
    bool zcopied; /* the transport may still read `local` */
    bool over;
    size_t done;                 /* bytes that were posted, or got */
    int answers;                 /* that are still to come */
    uint64_t id;                 /* by which an answer finds it */
    rd_completion_t *completion; /* NULL: the op is the caller's, who waits for `over` */
} rd_rma_op_t;

/* What serves messages: a net communicator. */
typedef struct rd_rma_net {
    rd_queue_t *queue;
    rd_conns_t *conns;
} rd_rma_net_t;

typedef struct rd_rma_peer rd_rma_peer_t;

typedef struct rd_rma {
    rd_side_t side;
    const rd_team_t *team;
    rd_conns_t *conns; /* the communicator's own: who may read whose memory */
    rd_queue_t *queue;
    int contexts, signals;
    rd_rma_window_t *windows;
    rd_node_t memory;            /* the counters of the ranks of this node, each rank's in its segment */
    _Atomic uint64_t **counters; /* of each rank of this node; NULL: elsewhere */
    _Atomic uint64_t *alone;     /* this rank's where it is alone on its node */
    uint64_t *consumed;          /* of this rank's counters: what was waited for */
    bool *by_message;            /* of each rank: some of its windows are reached by messages; so are its signals */
    bool *mixed;                 /* and others are not */
    rd_rma_net_t net;
    rd_rma_peer_t *peers; /* how messages stand with each rank; NULL: there is no net */
    rd_rma_op_t *first, *last;
    const rd_rma_op_t *own; /* the one for which the calling thread waits; NULL: for none */
    uint64_t ids;
} rd_rma_t;

/* The bytes of one rank's counters and rooms, in whole pages. */
size_t rd_rma_counters_bytes(int nranks, int contexts, int signals);

/* Makes what serves all windows of a communicator. `memory` has a segment of the counters' bytes for each rank of this
 * node and is taken over on success; its base is NULL where this rank is alone. */
rondo_result_t rd_rma_create(rd_rma_t **rma, const rd_team_t *team, rd_conns_t *conns, rd_queue_t *queue,
                             const rd_node_t *memory, int contexts, int signals);
/* From here on messages are served. Takes the net communicator over, which the caller ends after rd_rma_free. */
rondo_result_t rd_rma_serve(rd_rma_t *rma, const rd_rma_net_t *net);
void rd_rma_free(rd_rma_t *rma); /* also frees the windows that are left; NULL does nothing */

/* Makes a window of parts whose addresses and lengths are set, and finds the way to each. Whoever has allocated
 * `memory` has a part in it. A peer that knows earlier than this rank that all have made theirs may use it from here
 * on. Returns NULL if there is no memory. */
rd_rma_window_t *rd_rma_window_make(rd_rma_t *rma, uint32_t number, const rd_node_t *memory, const bool *allocated,
                                    rd_rma_part_t *parts);
/* All have made theirs: from here on this rank uses it. */
void rd_rma_window_open(rd_rma_t *rma, const rd_rma_window_t *window);
bool rd_rma_window_needs_messages(const rd_rma_t *rma, const rd_rma_window_t *window);
bool rd_rma_has(const rd_rma_t *rma, const rd_rma_window_t *window);
void rd_rma_window_free(rd_rma_t *rma, rd_rma_window_t *window);
/* Takes the memory of all windows back in which the kernel copies for ranks of this node. When it returns, none of them
 * uses it, nor will. This rank's `failed` must be set, with a full fence behind it. */
void rd_rma_take_back(const rd_rma_t *rma);

/* Does an operation if it can be done at once: nothing waits, and it is a matter of memory alone. Returns
 * RONDO_IN_PROGRESS if it has to be added. */
rondo_result_t rd_rma_try(rd_rma_t *rma, rd_rma_op_t *op);
void rd_rma_add(rd_rma_t *rma, rd_rma_op_t *op);
/* Adds the caller's operation, and returns when it is over. */
rondo_result_t rd_rma_run(rd_rma_t *rma, rd_rma_op_t *op);
/* Returns when no operation that was added uses the window, in whatever context. */
rondo_result_t rd_rma_window_rest(rd_rma_t *rma, const rd_rma_window_t *window);

#endif
