/* A transport carries messages between ranks. This header is what one has to provide, and all that the rest of the
 * library knows of one: shared memory (shm/), reading a peer's memory (cma/), and UCX (lib/ucx/) stand behind the same
 * operations. lib/core/transports.c holds the table of them; doc/architecture.md has a section "Adding a transport".
 *
 * A communicator makes one handle of each transport that it needs, by `create`, and binds connections (conn.h) to it,
 * each one direction of a pair of ranks on one channel. There are two kinds of connections:
 *
 *   shared     Both ranks see the inbox. The executor's stores into it are the message (shm/ll.h, shm/slots.h), and
 *              the transport has nothing to do: `post` is NULL.
 *   mirrored   The sender's inbox is a mirror in its own memory. The executor writes a message into a slot of the
 *              mirror, counts `tail` up there and calls `post`. `progress` of the receiver's transport copies the bytes
 *              into the same ring of the inbox there and counts that one's `tail` up. When the receiver has consumed
 *              the message it calls `credit`, and `progress` of the sender's transport advances `head`.
 *
 * What the operations of a mirrored transport guarantee, and need not:
 *   - Messages of one connection are published in the order of their numbers. Nothing is promised between connections,
 *     nor between messages and `direct`: where the network itself keeps no order, the transport sorts by number.
 *   - A sender posts a message only when it has a credit for its slot, so that the receiver never lacks room. A
 *     transport checks the number and length of what arrives nevertheless, for it comes from another process.
 *   - Everything is called by one thread at a time, mostly the rank's own, and nothing moves but in such a call: no
 *     operation but `create` and `destroy` waits for a peer. An operation returns an error only if the communicator
 *     cannot go on; a peer that is lost is no such error, but is told by the stop word (base/wait.h).
 *   - What `create` exchanges over the bootstrap (addresses, versions, keys) is the transport's own matter: the other
 *     ranks' bytes come back as they were given. Nothing but the binding is called before all connections are bound,
 *     though a peer that is ahead may have posted by then.
 *   - The memory of all mirrored connections is one piece, conns->mirrors, and is there before `create`: a transport
 *     whose device wants it registered may do so there and exchange keys. The user's memory is registered when it is
 *     given.
 *   - A receiver names in `place` of rd_recv_t where it wants the message `received`, if that is `place_bytes` long.
 *     The transport may bring it there instead of into its slot, and then sets `placed`. It never clears that, because
 *     the next message may come into its slot while the one before lies in its place.
 */
#ifndef RD_TRANSPORT_TRANSPORT_H
#define RD_TRANSPORT_TRANSPORT_H

#include <stdbool.h>

#include "node/node.h"
#include "transport/conn.h"

struct rd_conns;

typedef struct rd_transport_ops rd_transport_ops_t;

/* One communicator's. A transport's own struct begins with it. */
typedef struct rd_transport {
    const rd_transport_ops_t *ops;
    struct rd_transport *next; /* of the same communicator, which keeps a list of them */
    int zcopy_pending;         /* messages of post_zcopy whose bytes have yet to be read from the user's memory */
    bool cuda;                 /* `direct` takes the memory of a CUDA device */
    bool fetches;              /* `direct` makes use of what is known of the memory around a message: rd_net_memory_t */
} rd_transport_t;

/* What a handle is made for. What it points to is there as long as the handle. */
typedef struct rd_transport_args {
    int rank, nranks;
    const rd_node_t *node;
    struct rd_conns *conns; /* NULL: the caller binds what it likes (some tests do) */
    const rd_env_t *env;
    rd_boot_t *boot;
    rd_log_ctx_t *ctx;
    rd_stop_t *stop;
} rd_transport_args_t;

/* A message straight from or to memory that may be a device's, which the host itself does not touch: past connections
 * and their slots. Messages of a pair match in the order of the calls; both sides know how long each is. */
#define RD_NET_DIRECT 32 /* of a pair and direction under way at most; a power of two */
typedef struct rd_net_memory {
    void *base;
    size_t bytes;    /* 0: it is not known */
    uint64_t number; /* of the allocation, unlike that of any other that lies or has lain there; 0: it has none */
} rd_net_memory_t;
typedef struct rd_net_direct {
    int peer, send;
    int device; /* the memory is a CUDA device's, and the host cannot reach it */
    void *data;
    size_t bytes;
    _Atomic int *pending; /* becomes one less when it is over; a failure comes by the stop word */
    /* What is sent lies in it: where that is known the peer may fetch the bytes by a key to the whole, and messages
     * that are given behind one another are announced together, at the latest by `progress` or `idle`. */
    rd_net_memory_t whole;
} rd_net_direct_t;

/* What a transport would take on this host, for rondo-info. */
typedef struct rd_transport_report {
    char devices[1024]; /* "tcp/eth0 tcp/eth1"; "": it has found none */
    char settings[128]; /* what it was told: "transports tcp (RONDO_UCX_TLS)" */
    const char *reason; /* why these devices */
    const char *advice; /* what the user can set where it has found none, or has failed */
    bool cuda;          /* it takes the memory of CUDA devices */
} rd_transport_report_t;

typedef enum {
    RD_WITHIN_NODE, /* it reaches the ranks of this rank's node */
    RD_BETWEEN_NODES
} rd_reach_t;

struct rd_transport_ops {
    const char *name; /* in RONDO_TRANSPORT and in what rondo-info prints */
    rd_reach_t reach;
    const char *(*version)(void); /* of the library behind it, with that one's name; NULL: there is none */
    /* Why it cannot be used in this process: a sentence; or NULL: it can. The whole operation may be NULL. */
    const char *(*unusable)(void);
    /* Why a peer's death may end this process as well; or NULL: it does not. May be NULL. */
    const char *(*fragile)(void);
    /* What it would take with these settings, for a rank that listens on `address` and has `place` ranks of its node
     * below it; `address` NULL: all that there is, whatever the settings are. May be NULL. */
    rondo_result_t (*probe)(const rd_env_t *env, const char *address, int place, rd_transport_report_t *report);
    size_t (*conn_bytes)(
        void); /* memory of its own for a bound pair (peer, channel) that has carried nothing; or NULL */

    /* ---- a handle: collective over the bootstrap; on failure nothing is left */
    rondo_result_t (*create)(rd_transport_t **transport, const rd_transport_args_t *args);
    /* Gives the connection of (peer, channel) what it lacks: its memory, if it is shared, or the transport's own
     * record in `link`, if it is mirrored. Either may be NULL. */
    rondo_result_t (*bind_send)(rd_transport_t *transport, int peer, int channel, rd_send_t *send);
    rondo_result_t (*bind_recv)(rd_transport_t *transport, int peer, int channel, rd_recv_t *recv);
    /* Says farewell, behind which nothing is sent; `destroy` does it if it was not done, but who ends several has begun
     * with all before it waits for one. May be NULL. */
    void (*leave)(rd_transport_t *transport);
    /* Never waits for a dead peer, nor for long for one that makes no progress. */
    void (*destroy)(rd_transport_t *transport);

    /* ---- messages of mirrored connections; all NULL: its connections are shared */
    /* The message number `send->sent - 1`, `bytes` long, lies in its slot, number `send->place`: carry it. If the slot
     * is still needed when this returns, count `place` up; else the same one serves the next message. `more`: the next
     * one is about to be posted, too, and this one, up to RD_JOINED bytes, may wait for it, though not beyond
     * `progress` or `idle`. */
    rondo_result_t (*post)(rd_send_t *send, size_t bytes, int more);
    /* `recv->received` messages are consumed, the last one of `bytes`: tell the sender, in batches if that is cheaper;
     * but half of the long slots must always be told of, or he may wait for ever. */
    rondo_result_t (*credit)(rd_recv_t *recv, size_t bytes);
    bool (*progress)(rd_transport_t *transport); /* did something happen? */
    /* Has every post and credit left this rank's memory? No call ends before. So credits must find room where the peer
     * makes no progress; posts may wait for it, since it has a call to make that takes them. */
    bool (*idle)(rd_transport_t *transport);

    /* ---- zero-copy sends; both NULL: every message goes through its slot */
    /* As `post`, but the bytes lie at `data`, in the user's memory, which stays as it is while `zcopy_pending` is not
     * 0. The transport may copy them all the same. */
    rondo_result_t (*post_zcopy)(rd_send_t *send, const void *data, size_t bytes, int more);
    int (*zcopy_peer)(const rd_transport_t *transport); /* whom one of these is for; -1: there is none */

    /* ---- messages past connections; both NULL: there are none */
    rondo_result_t (*direct)(rd_transport_t *transport, const rd_net_direct_t *message);
    int (*direct_peer)(const rd_transport_t *transport); /* the peer of one under way; -1: there is none */

    /* ---- peers; all NULL where connections are shared, for there the others' state lies in memory (conns.h) */
    /* This rank has waited for a rank for a while: makes the connection to it, if it is not there, so that each hears
     * of the other's end. */
    void (*seek)(rd_transport_t *transport, int peer);
    /* How a rank has left: RONDO_SUCCESS, in order, or RONDO_ERR_MISMATCH; what it had sent is all here.
     * RONDO_IN_PROGRESS: it has not, or that is still to come. Who has left otherwise has set the stop word. */
    rondo_result_t (*farewell)(const rd_transport_t *transport, int peer);
    /* After a failure, before the user gets his buffers back: nothing reads or writes them from here on (`place` is
     * NULL, zcopy_pending is 0 where that can be had), but a peer that had a key and has not heard of the failure yet,
     * which then reads for an operation that has failed. Connections to peers that do not take what they are being sent
     * are broken for it. */
    void (*cancel)(rd_transport_t *transport);
};

/* ---- what callers use: right for every transport, whatever it lacks */

static inline const char *rd_transport_version(const rd_transport_ops_t *ops)
{
    return ops->version ? ops->version() : ops->name;
}

/* Do messages need `progress`? */
static inline bool rd_transport_polled(const rd_transport_t *t)
{
    return t->ops->progress != NULL;
}

static inline bool rd_transport_progress(rd_transport_t *t)
{
    return t->ops->progress && t->ops->progress(t);
}

static inline bool rd_transport_idle(rd_transport_t *t)
{
    return !t->ops->idle || t->ops->idle(t);
}

/* Whom what is under way in the user's memory, and not by a connection's slots, is for or from; -1: nobody. */
static inline int rd_transport_direct_peer(const rd_transport_t *t)
{
    return t->ops->direct_peer ? t->ops->direct_peer(t) : -1;
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

static inline rondo_result_t rd_transport_farewell(const rd_transport_t *t, int peer)
{
    return t->ops->farewell ? t->ops->farewell(t, peer) : RONDO_IN_PROGRESS;
}

/* NULL: the communicator has not got that far. */
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
