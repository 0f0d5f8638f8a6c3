/* What the files of the transport by a net plugin share. They begin with what all transports between nodes have in
 * common (transport/network/network.h), and add to it:
 *
 *   rd_plug_net       a plugin's context and one of its devices
 *     peers[rank]     two comms in each direction, with buffers for short messages, and what waits to be sent
 *
 * A plugin promises little: comms of one direction, on which a receive has to be posted for each send, long enough and
 * in the same order, before the send is sure to end. So one comm of a pair and direction is for short messages, for
 * which RD_PLUG_POSTED receives are always posted, and one for long payloads. Every message is a header on the short
 * comm, up to RD_PLUG_SHORT bytes with the payload behind it. A longer payload is announced so; the receiver checks the
 * announcement, and posts a receive of just that length in the slot where it belongs. On each comm sends and receives
 * end in their order, and of each queue only the oldest is asked for (`test`).
 *
 * A plugin may still use what a comm had posted when it was closed, so an orderly end leaves nothing posted. Two ranks
 * that have both sent their farewells and confirmed each other's send each other as many messages again as receives are
 * left (rd_plug_fill), and post no more.
 *
 * plug_load.c finds a plugin; plug_calls.c has its calls that differ by version; plug_connect.c makes and ends comms;
 * plug_send.c sends, plug_receive.c takes what arrives; plug_net.c and plug_leave.c implement the operations of
 * transport/transport.h with these. */
#ifndef RD_NETPLUGIN_NETPLUGIN_H
#define RD_NETPLUGIN_NETPLUGIN_H

#include <stdbool.h>

#include "netplugin/plug_load.h"
#include "netplugin/transport_plugin.h"
#include "transport/network/network.h"

#define RD_PLUG_SHORT 8192 /* payload of the longest message that needs no announcement */
#define RD_PLUG_POSTED 16  /* receives that are posted for short messages; NCCL itself lets a comm have 32 at most */
#define RD_PLUG_AHEAD 16   /* short messages that the plugin may have at a time, of one peer */
#define RD_PLUG_LONGS 8    /* the same for long ones, either way */
#define RD_PLUG_TAG 1      /* of every message: each comm is one stream */
#define RD_PLUG_BUFFER (RD_LINE + RD_PLUG_SHORT)
#define RD_PLUG_WHY 160

typedef enum { RD_PLUG_COMM_SHORT, RD_PLUG_COMM_LONG, RD_PLUG_COMMS } rd_plug_kind_t;

typedef struct rd_plug_net rd_plug_net_t;
typedef struct rd_plug_message rd_plug_message_t;

/* Rings of a connection that are registered with a comm. */
typedef struct rd_plug_ring {
    char *slots; /* NULL: it is not */
    void *registration;
} rd_plug_ring_t;

typedef struct rd_plug_conn {
    rd_net_conn_t base;
    rd_plug_ring_t sent[RD_RINGS + 1], received[RD_RINGS + 1];
} rd_plug_conn_t;

/* A message that is being sent. */
struct rd_plug_message {
    rd_plug_message_t *next;
    rd_plug_conn_t *conn; /* of data and credits */
    const void *data;     /* in its slot; NULL: it was copied, or there is none */
    rd_ring_t ring;       /* of that slot */
    uint32_t bytes;       /* of the payload */
    bool announced;       /* its payload goes by the long comm */
    rd_net_header_t header;
};

typedef struct rd_plug_list {
    rd_plug_message_t *first, *last;
} rd_plug_list_t;

/* What the plugin has of one comm and direction, the oldest at `first` modulo the number of entries. */
typedef struct rd_plug_flight {
    void *request;
    rd_plug_message_t *message; /* a send's */
} rd_plug_flight_t;

/* A long payload that was announced and is to be received. */
typedef struct rd_plug_landing {
    struct rd_plug_landing *next;
    rd_plug_conn_t *conn;
    void *request; /* NULL: it is not posted yet */
    char *slot;
    rd_ring_t ring;
    uint32_t bytes;
    uint64_t at; /* the message's number modulo the ring (rd_net_land) */
} rd_plug_landing_t;

typedef struct rd_plug_peer {
    rd_net_peer_t base;
    void *listens[RD_PLUG_COMMS], *sends[RD_PLUG_COMMS], *recvs[RD_PLUG_COMMS];
    unsigned char (*handles)[RD_PLUG_HANDLE]; /* of its listens, while they are connected */
    unsigned begun;                           /* sends that a connect has been called for, by bits */
    char *memory; /* RD_PLUG_AHEAD buffers to send from, then RD_PLUG_POSTED to receive into */
    void *sent_mr, *received_mr;
    rd_plug_flight_t out[RD_PLUG_AHEAD], in[RD_PLUG_POSTED], longs[RD_PLUG_LONGS];
    unsigned out_first, nout, in_first, nin, longs_first, nlongs;
    rd_plug_list_t waiting;  /* for a buffer, or until the plugin takes them */
    rd_plug_list_t payloads; /* announced, and not taken by the plugin yet */
    rd_plug_landing_t *landings, *last_landing;
    int64_t left_ms; /* when its farewell came; 0: it did not */
    bool filled;     /* it was sent a message for each receive that it still has posted */
    int due;         /* such messages that are still to come from it, once it has left and taken this rank's farewell */
    char why[RD_PLUG_WHY]; /* what the plugin said when it was lost */
} rd_plug_peer_t;

struct rd_plug_net {
    rd_net_t base;
    const rd_plug_t *plug;
    void *context;
    bool began;
    int device;
    rd_plug_message_t *free; /* list of messages that are not used */
    int outstanding;         /* data and credits that are not complete */
    bool guarded;            /* rd_fd_guard_begin was called */
};

static inline rd_plug_net_t *rd_plug_of(rd_transport_t *transport)
{
    return (rd_plug_net_t *)transport;
}

static inline rd_plug_net_t *rd_plug_net_of(const rd_plug_peer_t *peer)
{
    return (rd_plug_net_t *)peer->base.net;
}

static inline rd_plug_peer_t *rd_plug_peer_of(const rd_net_peer_t *peer)
{
    return (rd_plug_peer_t *)(uintptr_t)peer;
}

static inline rd_plug_peer_t *rd_plug_peer(const rd_plug_net_t *net, int rank)
{
    return (rd_plug_peer_t *)net->base.peers + rank;
}

/* The peers that were used: the first of them, and the one after another; NULL: there is none. */
static inline rd_plug_peer_t *rd_plug_first(const rd_plug_net_t *net)
{
    return (rd_plug_peer_t *)net->base.used;
}

static inline rd_plug_peer_t *rd_plug_next(const rd_plug_peer_t *peer)
{
    return (rd_plug_peer_t *)peer->base.next_used;
}

/* plug_connect.c */
/* Collective: loads the plugin, takes a device, and connects every pair of ranks on different nodes. `longest`: payload
 * of the longest message. */
rondo_result_t rd_plug_open(rd_plug_net_t *net, const rd_env_t *env, const rd_node_t *node, size_t longest);
/* The error that the plugin has no device which RONDO_NET names. */
rondo_result_t rd_plug_no_device(rd_log_ctx_t *ctx, const rd_plug_t *plug, const char *name);
void rd_plug_close_longs(rd_plug_net_t *net); /* what uses the communicator's memory */
void rd_plug_close(rd_plug_net_t *net);
/* Returns in *registration that of a ring with a comm, which is made when first needed. Returns NCCL's result. */
int rd_plug_register(rd_plug_peer_t *peer, bool send, rd_plug_ring_t *rings, rd_ring_t ring, void **registration);

/* plug_send.c */
/* Declares the peer lost; `call` has failed with `error` of NCCL's. */
void rd_plug_peer_lost(rd_plug_peer_t *peer, const char *call, int error);
/* The same where rd_plug_register has failed with it, which is this rank's own failure, and says nothing of the peer.
 */
void rd_plug_unregistered(rd_plug_peer_t *peer, int error);
void rd_plug_forget(rd_plug_peer_t *peer); /* gives up all that is being sent to it, at the end */
/* Returns a message with its header filled; NULL: there is no memory, and the stop word says so. */
rd_plug_message_t *rd_plug_message(rd_plug_peer_t *peer, rd_net_kind_t kind, int channel);
void rd_plug_release(rd_plug_net_t *net, rd_plug_message_t *m); /* one that was not pushed */
/* Sends it, now or when the plugin takes it. Returns true if nothing of it lies in its slot any more. `now`: it is
 * dropped if it cannot be sent at once. */
bool rd_plug_push(rd_plug_peer_t *peer, rd_plug_message_t *m, bool now);
bool rd_plug_say(rd_net_peer_t *peer, rd_net_conn_t *conn, const rd_net_header_t *header); /* rd_net_library_t's */
bool rd_plug_poll_sends(rd_plug_peer_t *peer); /* returns true if anything was completed */
void rd_plug_fill(rd_plug_peer_t *peer);

/* plug_receive.c */
void rd_plug_post(rd_plug_peer_t *peer);          /* posts the receives that are missing */
bool rd_plug_poll_receives(rd_plug_peer_t *peer); /* returns true if anything has come */
void rd_plug_answer(rd_net_peer_t *peer);         /* rd_net_library_t's */

/* plug_net.c */
bool rd_plug_poll(rd_net_t *net); /* rd_net_library_t's */
extern const rd_net_library_t rd_plug_library;

/* plug_leave.c */
void rd_plug_cancel(rd_transport_t *transport);
void rd_plug_leave(rd_transport_t *transport);
void rd_plug_destroy(rd_transport_t *transport);

#endif
