/* A transport carries messages between ranks. This header is what a transport has to provide, and all that the rest of
 * the library knows of it: shared memory (shm/), reading a peer's memory (cma/), and UCX (lib/ucx/) all implement the
 * same operations; what those between nodes have in common is in network/. lib/core/transports.c holds their table;
 * doc/architecture.md has a section "Adding a transport".
 *
 * A communicator makes one handle of each transport that it needs, by `create`, and binds connections (conn.h) to it.
 * Each is one direction of a pair of ranks on one channel. There are two kinds of connections:
 *
 *   shared     Both ranks see the inbox. The executor's stores into it are the message (shm/ll.h, shm/slots.h), and
 *              the transport has nothing to do: `post` is NULL.
 *   mirrored   The sender's inbox is a mirror in its own memory. The executor writes a message into a slot of the
 *              mirror, increments `tail` there and calls `post`. `progress` of the receiver's transport copies the
 *              bytes into the same ring of the receiver's inbox and increments the `tail` of that inbox. When the
 *              receiver has consumed the message it calls `credit`, and `progress` of the sender's transport advances
 *              `head`.
 *
 * What the operations of a mirrored transport guarantee, and what they need not:
 *   - Messages of one connection are published in the order of their numbers. Nothing is promised between connections,
 *     nor between messages and `gdr`: where the network itself keeps no order, the transport sorts by number.
 *   - A sender posts a message only when it has a credit for its slot, so the receiver always has space. A transport
 *     checks the number and length of what arrives nevertheless, because it comes from another process.
 *   - All operations are called by one thread at a time, mostly the rank's own, and progress is made only in such
 *     calls. No operation but `create` and `destroy` waits for a peer. An operation returns an error only if the
 *     communicator cannot go on, and has then told the others (rd_stop_fail); a lost peer is no such error, but is
 *     reported in the same way later, when nothing else has told what has become of it.
 *   - What `create` exchanges over the bootstrap (addresses, versions, keys) is the transport's own matter: it receives
 *     the bytes of the other ranks as they gave them. Only the bind operations are called before all connections are
 *     bound, though a peer that is ahead may have posted by then.
 *   - The memory of all mirrored connections is one piece, conns->mirrors, and exists before `create`: a transport
 *     whose device needs it registered may register it there and exchange keys. The user's memory is registered when a
 *     message with it is posted.
 *   - A receiver names in `dest` of rd_recv_t where it wants the message `received`, if that is `dest_bytes` long and,
 *     where signatures come along, has `dest_sign`. The transport may put it there instead of into its slot, and then
 *     sets `delivered`. It never clears `delivered`, because the next message may come into its slot while the one
 *     before lies there. */
#ifndef RD_TRANSPORT_TRANSPORT_H
#define RD_TRANSPORT_TRANSPORT_H

#include <stdbool.h>

#include "monitor/called.h"
#include "node/node.h"
#include "transport/conn.h"

struct rd_conns;

typedef struct rd_transport_ops rd_transport_ops_t;

/* A handle: the transport of one communicator. A transport's own struct begins with it. */
typedef struct rd_transport {
    const rd_transport_ops_t *ops;
    struct rd_transport *next;   /* the next handle of the same communicator, which keeps a list of them */
    struct rd_transport *beside; /* another one that moves with it: the switch (switch.h); NULL: there is none */
    int zcopy_pending; /* messages of post_zcopy whose bytes have not all been read from the user's memory yet */
    bool cuda;         /* `gdr` takes the memory of a CUDA device */
    bool fetches;      /* `gdr` uses what is known of the memory around a message: rd_net_memory_t */
} rd_transport_t;

/* What a handle is made for. What it points to lives at least as long as the handle. */
typedef struct rd_transport_args {
    int rank, nranks;
    const rd_node_t *node;
    struct rd_conns *conns; /* NULL: the caller binds its own connections (some tests do) */
    const rd_env_t *env;
    rd_boot_t *boot;
    rd_log_ctx_t *ctx;
    rd_stop_t *stop;
} rd_transport_args_t;

/* A GDR message: it goes from or to memory that may be a device's, and that the host itself does not access, without
 * connections and their slots. The messages of a pair match in the order of the calls; both sides know each length. */
#define RD_GDR_MOST 32 /* the most that may be under way for a pair and direction; a power of two */
typedef struct rd_net_memory {
    void *base;
    size_t bytes;    /* 0: it is not known */
    uint64_t number; /* identifies the allocation among all that lie or have lain there; 0: it has no number */
} rd_net_memory_t;
typedef struct rd_gdr_message {
    int peer, send;
    int device; /* nonzero: the memory is a CUDA device's, and the host cannot access it */
    void *data;
    size_t bytes;
    _Atomic int *pending; /* decremented when the message is complete; a failure is reported by the stop word */
    /* The memory that contains what is sent. If it is known, the peer may fetch the bytes with a key to the whole of
     * it, and messages that are given one after another are announced together, at the latest by `progress` or `idle`.
     */
    rd_net_memory_t whole;
} rd_gdr_message_t;

/* What a transport would use on this host, for rondo-info. */
typedef struct rd_transport_report {
    char devices[1024]; /* "tcp/eth0 tcp/eth1"; "": it has found no device */
    char settings[128]; /* what the user has set: "transports tcp (RONDO_UCX_TLS)" */
    const char *reason; /* why these devices */
    const char *advice; /* what the user can set if it has found none, or has failed */
    bool cuda;          /* it accepts the memory of CUDA devices */
} rd_transport_report_t;

typedef enum {
    RD_WITHIN_NODE, /* it reaches the ranks of this rank's node */
    RD_BETWEEN_NODES
} rd_reach_t;

struct rd_transport_ops {
    const char *name; /* in RONDO_TRANSPORT and in what rondo-info prints */
    rd_reach_t reach;
    bool asked_for; /* it is used only if RONDO_TRANSPORT names it */
    /* Mirrored: it carries signatures (monitor/called.h): what lies at send->signs for a message comes to lie at
     * recv->signs, before the message is counted there. Connections without memory for them have NULL there. */
    bool signs;
    const char *(*version)(void); /* the name and version of the library behind it; NULL: there is no such library */
    /* Returns a sentence that says why it cannot be used in this process, or NULL if it can. May itself be NULL. */
    const char *(*unusable)(void);
    /* Returns why a peer's death may end this process as well, or NULL if it may not. May itself be NULL. */
    const char *(*fragile)(void);
    /* Reports what it would use with these settings, for a rank that listens on `address` and has `local_rank` lower
     * ranks on its node. If `address` is NULL, reports all that there is, whatever the settings are. May be NULL. */
    rondo_result_t (*probe)(const rd_env_t *env, const char *address, int local_rank, rd_transport_report_t *report);
    size_t (*conn_bytes)(
        void); /* its own memory for a bound pair (peer, channel) that has carried nothing; may be NULL */

    /* ---- a handle: collective over the bootstrap; if it fails, nothing is left. The liveness thread does not run yet:
     * who waits for a peer in `create` calls rd_boot_check between two looks */
    rondo_result_t (*create)(rd_transport_t **transport, const rd_transport_args_t *args);
    /* Gives the connection of (peer, channel) what it lacks: its memory if it is shared, or the transport's own record
     * in `link` if it is mirrored. Either may be NULL. */
    rondo_result_t (*bind_send)(rd_transport_t *transport, int peer, int channel, rd_send_t *send);
    rondo_result_t (*bind_recv)(rd_transport_t *transport, int peer, int channel, rd_recv_t *recv);
    /* Sends the farewells, after which nothing is sent. `destroy` does so if it was not done; but a caller that
     * destroys several handles begins with `leave` for all of them before it waits for one. May be NULL. */
    void (*leave)(rd_transport_t *transport);
    /* Never waits for a dead peer, nor for long for one that makes no progress. */
    void (*destroy)(rd_transport_t *transport);

    /* ---- messages of mirrored connections; all are NULL if its connections are shared */
    /* Carries the message number `send->sent - 1`, of `bytes`, which lies in its slot, number `send->slot`. If the
     * slot is still needed on return, the transport increments `slot`; else the next message uses the same slot.
     * `more`: the next message is about to be posted, too, and this one, if it has up to RD_JOINED bytes, may wait for
     * it, though not beyond `progress` or `idle`. */
    rondo_result_t (*post)(rd_send_t *send, size_t bytes, int more);
    /* `recv->received` messages have been consumed, the last one of `bytes`: tells the sender, in batches if that is
     * cheaper. But a batch must not exceed half of the long slots, or the sender may wait for ever. */
    rondo_result_t (*credit)(rd_recv_t *recv, size_t bytes);
    bool (*progress)(rd_transport_t *transport); /* returns true if something happened */
    /* Returns true if every post and credit has left this rank's memory; no call returns before that. So credits must
     * find space where the peer makes no progress; posts may wait for it, since the peer has yet to make a call that
     * takes them. */
    bool (*idle)(rd_transport_t *transport);

    /* ---- zero-copy sends; the first is NULL if every message goes through its slot, and the second may be */
    /* Like `post`, but the bytes lie at `data` in the user's memory, which does not change while `zcopy_pending` is not
     * 0. The transport may copy them all the same. */
    rondo_result_t (*post_zcopy)(rd_send_t *send, const void *data, size_t bytes, int more);
    /* The receiver of one of these, or of another message for which `idle` keeps a call waiting; -1: there is none. */
    int (*zcopy_peer)(const rd_transport_t *transport);

    /* ---- GDR messages; both are NULL if it has none */
    rondo_result_t (*gdr)(rd_transport_t *transport, const rd_gdr_message_t *message);
    int (*gdr_peer)(const rd_transport_t *transport); /* the peer of a GDR message under way; -1: there is none */

    /* ---- peers; all are NULL where connections are shared, because there the state of peers lies in memory (conns.h)
     */
    /* Called when this rank has waited for `peer` for a while: makes the connection to it, if there is none, so that
     * each learns of the other's end. */
    void (*seek)(rd_transport_t *transport, int peer);
    /* Asks a peer what it has called lately; nothing is done if it has not answered the last question. The answer comes
     * by the `progress` of both, and `called` returns what is known by then; NULL: nothing. Both may be NULL. */
    void (*ask_called)(rd_transport_t *transport, int peer);
    const rd_called_t *(*called)(const rd_transport_t *transport, int peer);
    /* Returns how a rank has left: RONDO_SUCCESS (in order) or RONDO_ERR_MISMATCH, when all that it had sent is here,
     * or RONDO_IN_PROGRESS if it has not left or some of that is still to come. A rank that has left otherwise has set
     * the stop word. */
    rondo_result_t (*farewell)(const rd_transport_t *transport, int peer);
    /* Called after a failure, before the user gets the buffers back: from here on nothing reads or writes them (`dest`
     * is NULL, and zcopy_pending is 0 where that is possible), except a peer that had a key and has not heard of the
     * failure yet, which then reads for an operation that has failed. Connections to peers that do not take what they
     * are being sent are broken for this. */
    void (*cancel)(rd_transport_t *transport);
};

/* ---- for callers: these work for every transport, whatever operations it lacks */

static inline const char *rd_transport_version(const rd_transport_ops_t *ops)
{
    return ops->version ? ops->version() : ops->name;
}

/* Returns true if messages need `progress`. */
static inline bool rd_transport_polled(const rd_transport_t *t)
{
    return t->ops->progress != NULL;
}

static inline bool rd_transport_progress(rd_transport_t *t)
{
    const bool moved = t->ops->progress && t->ops->progress(t);

    return (t->beside && t->beside->ops->progress(t->beside)) || moved;
}

static inline bool rd_transport_idle(rd_transport_t *t)
{
    return !t->ops->idle || t->ops->idle(t);
}

/* Return the peer of a GDR message, or of a zero-copy one, that is under way in the user's memory; -1: there is
 * none. */
static inline int rd_transport_gdr_peer(const rd_transport_t *t)
{
    return t->ops->gdr_peer ? t->ops->gdr_peer(t) : -1;
}

static inline int rd_transport_zcopy_peer(const rd_transport_t *t)
{
    return t->ops->zcopy_peer ? t->ops->zcopy_peer(t) : -1;
}

static inline void rd_transport_seek(rd_transport_t *t, int peer)
{
    if (t->ops->seek)
        t->ops->seek(t, peer);
}

static inline void rd_transport_ask_called(rd_transport_t *t, int peer)
{
    if (t->ops->ask_called)
        t->ops->ask_called(t, peer);
}

static inline const rd_called_t *rd_transport_called(const rd_transport_t *t, int peer)
{
    return t->ops->called ? t->ops->called(t, peer) : NULL;
}

static inline rondo_result_t rd_transport_farewell(const rd_transport_t *t, int peer)
{
    const rondo_result_t left = t->ops->farewell ? t->ops->farewell(t, peer) : RONDO_IN_PROGRESS;

    return left == RONDO_SUCCESS && t->beside ? t->beside->ops->farewell(t->beside, peer) : left;
}

/* `t` is NULL if the communicator has not been made that far. */
static inline void rd_transport_cancel(rd_transport_t *t)
{
    if (t && t->ops->cancel)
        t->ops->cancel(t);
}

static inline void rd_transport_leave(rd_transport_t *t)
{
    if (t->ops->leave)
        t->ops->leave(t);
}

#endif
