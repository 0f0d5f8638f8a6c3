/* What the transports between nodes have in common, whatever library carries their messages (lib/ucx, lib/ofi,
 * lib/netplugin): the network of one communicator, its peers, their channels, and the header of what travels.
 *
 *   rd_net            used by the rank's own thread only
 *     peers[rank]     a remote rank: whether it has left or is lost
 *       conns[ch]     a channel with that peer: the memory of the two directions, bound by the communicator
 *
 * A library's own structs begin with these as their member `base`, and add what it needs: an endpoint, requests.
 * net_conns.c makes and binds connections; net_wireup.c greets; net_receive.c checks and delivers what arrives;
 * net_peers.c knows which peers were used, have left or are lost; net_question.c keeps what a peer says that it has
 * called; net_say.c says what a header alone says, for lib/ofi and lib/netplugin; net_leave.c ends the network;
 * net_fork.c knows whether a fork has taken the library from this process. */
#ifndef RD_TRANSPORT_NETWORK_NETWORK_H
#define RD_TRANSPORT_NETWORK_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "transport/linger.h"
#include "transport/transport.h"

#define RD_NET_TOKEN 16          /* the bytes of the communicator's key that every message carries */
#define RD_NET_MAX_CHANNELS 1024 /* more is a mistake */
#define RD_NET_MAX_SLOTS 65536   /* more is a mistake */
#define RD_NET_GRACE_MS 250      /* the time between a broken connection and the verdict that its peer has died */
#define RD_NET_BYE_DIED (UINT64_C(1) << 31) /* in the `bytes` of a farewell: the failed rank has died */
#define RD_NET_QUIET 16 /* polls of the network that found nothing, some microseconds, before credits go */

typedef enum {
    RD_NET_DATA = 1,
    RD_NET_CREDIT,
    RD_NET_BYE,
    RD_NET_HELLO,
    RD_NET_ASK,
    RD_NET_CALLED,
    RD_NET_TAKEN, /* lib/ofi, lib/netplugin: confirms a farewell and all before it */
    RD_NET_GDR,   /* lib/ucx */
    RD_NET_RTS,   /* lib/ucx */
    RD_NET_ACK    /* lib/ucx */
} rd_net_kind_t;

/* The header of every message. All ranks of a job have the same byte order. */
typedef struct rd_net_header {
    unsigned char token[RD_NET_TOKEN];
    uint32_t rank;    /* of the sender */
    uint16_t channel; /* 0 unless it is data or a credit */
    uint8_t kind;     /* rd_net_kind_t */
    uint8_t zero;
    uint64_t number; /* data, GDR: number of the message; RTS: number of the first one; credit: messages consumed so
                        far; farewell: a rondo_result_t; greeting, lib/ofi: 1 if it is an answer; else 0 */
    uint64_t bytes; /* data: payload, and in the upper half the signature of the call; GDR, called: payload; RTS: number
                       of messages; ACK: slots, as bits; farewell: the failed rank plus one, or 0, and in the upper
                       half, likewise, the rank that found it out; else 0 */
    uint64_t credit; /* data: messages consumed so far of the same channel's other direction; farewell: messages sent
                        before it, on all channels; else 0 */
} rd_net_header_t;

typedef struct rd_net rd_net_t;
typedef struct rd_net_conn rd_net_conn_t;
typedef struct rd_net_peer rd_net_peer_t;
typedef struct rd_net_called rd_net_called_t; /* net_question.c */

struct rd_net_peer {
    rd_net_t *net;
    rd_net_conn_t **conns; /* by channel; NULL where nothing is bound */
    int nconns;
    int rank;
    int pending;               /* messages to it that are not complete (not lib/ucx) */
    int zcopies;               /* messages under way from the user's memory, or directly into it */
    bool remote;               /* it is on another node */
    bool used;                 /* something was sent to it or came from it: it needs a farewell */
    bool greeted;              /* its greeting has arrived */
    bool settled;              /* something has been sent to it completely: the connection is made */
    bool parted;               /* this rank's farewell was sent to it */
    bool taken;                /* it has confirmed that it has all that was sent before this rank's farewell */
    bool left;                 /* its farewell has arrived */
    bool confirmed;            /* its farewell was confirmed */
    bool judged;               /* its connection broke, and it has been declared dead */
    rondo_result_t farewell;   /* the result in its farewell, */
    int failed_rank, reporter; /* the rank that failed, and the one that found it out, plus one, */
    int64_t due_ms;            /* when they are due to be taken in; 0: they are not */
    uint64_t sent;             /* and the number of messages that were sent before it */
    int64_t lost_ms;           /* when its connection broke; 0: it did not */
    const char *lost_why;
    rd_net_called_t *called; /* made when first needed */
    rd_net_peer_t *next_used;
};

struct rd_net_conn {
    rd_net_peer_t *peer;
    int channel;
    rd_send_t *send; /* NULL: not bound */
    rd_recv_t *recv;
    uint64_t *claimed; /* a bit for each message in the inbox: it has come out of turn and is not published; */
    uint64_t *landed;  /* after these, a bit for each message: all its bytes have arrived. Made when first needed */
    uint64_t next;     /* the number of the message to be published next */
    uint64_t credited; /* consumed messages for which the sender has received a credit */
    int credit_busy;   /* a credit is being sent */
};

/* What this code calls of a library's. */
typedef struct rd_net_library {
    const rd_transport_ops_t *ops;
    size_t peer_bytes, conn_bytes;       /* of its structs, which begin with these */
    const char *unreached;               /* behind "does a firewall close the ports between the hosts " */
    void (*greet)(rd_net_peer_t *peer);  /* during the wireup */
    void (*credit)(rd_net_conn_t *conn); /* sends a credit for all that was consumed, unless one is under way */
    void (*say_bye)(rd_net_t *net);      /* sends the farewells, once to each peer */
    /* The others are NULL in lib/ucx, which does by itself what net_say.c does with them. */
    /* Sends a header alone; `conn`: whose credit it is. Returns false if there is no memory, as the stop word says. */
    bool (*say)(rd_net_peer_t *peer, rd_net_conn_t *conn, const rd_net_header_t *header);
    void (*answer)(rd_net_peer_t *peer); /* a question about what this rank has called */
    bool (*poll)(rd_net_t *net);         /* takes what has come or is complete; true if there was anything */
} rd_net_library_t;

/* How a network of a library ends in order. */
typedef struct rd_net_ending {
    bool (*is_parted)(rd_net_t *net);     /* all peers have sent farewells as well, and nothing is under way to them */
    bool (*is_over)(rd_net_t *net);       /* it may be closed, though a peer may still be there */
    bool (*is_read)(rd_net_t *net);       /* no live peer has yet to take what was sent to it */
    bool (*is_given_back)(rd_net_t *net); /* nothing of the communicator's memory, or the user's, is being sent */
    bool (*linger)(rd_net_t *net);        /* returns true if it will be closed later (rd_net_linger) */
} rd_net_ending_t;

/* What a network that lingers has of its own in place of the communicator's. */
typedef struct rd_net_alone {
    rd_linger_t linger; /* the first member */
    rd_log_ctx_t ctx;
    rd_stop_t stop; /* is never set */
} rd_net_alone_t;

struct rd_net {
    rd_transport_t transport;
    const rd_net_library_t *library;
    rd_boot_t *boot;
    rd_log_ctx_t *ctx;
    rd_stop_t *stop;
    int rank, nranks, nremotes;
    const rd_called_t *self; /* what this rank has called; NULL: nobody says */
    unsigned char token[RD_NET_TOKEN];
    rd_net_alone_t *alone; /* set if it lingers; NULL: it belongs to a communicator */
    char *peers;           /* of library->peer_bytes each */
    rd_net_peer_t *used;   /* the list of the peers that were used */
    int64_t left_ms;       /* when the farewells were sent; 0: not yet */
    uint64_t dropped;      /* messages refused; only the first one is logged */
    int quiet;             /* successive polls of the network that found nothing */
    int nlost;             /* number of peers with a broken connection and no verdict yet */
    int ndue;              /* number of peers whose farewell is due to be taken in */
    bool progressed;       /* set when something is delivered */
    bool greets;           /* rd_net_wireup runs, and liveness does not yet: nobody else hears the bootstrap */
};

static inline rd_net_peer_t *rd_net_peer(const rd_net_t *net, int rank)
{
    return (rd_net_peer_t *)(net->peers + (size_t)rank * net->library->peer_bytes);
}

/* Messages are counted modulo the longest of the rings: whatever is kept for each message has that many entries. */
static inline uint64_t rd_net_ring(const rd_ring_t *shorter, uint32_t slots_mask)
{
    uint32_t mask = slots_mask;
    for (int i = 0; i < RD_RINGS; i++)
        mask = shorter[i].bytes != 0 && shorter[i].mask > mask ? shorter[i].mask : mask;
    return mask + UINT64_C(1);
}

/* Returns the number of consumed messages from which a credit is worth sending, if the last one was of this ring. */
static inline uint64_t rd_net_batch(uint32_t mask)
{
    return mask != 0 ? (mask + UINT64_C(1)) / 2 : 1;
}

static inline bool rd_net_owes(const rd_net_conn_t *conn, uint64_t credits)
{
    return conn->recv && conn->recv->received - conn->credited >= credits;
}

/* net_conns.c. Fills a network that is all zeros; returns false if there is no memory. */
bool rd_net_init(rd_net_t *net, const rd_net_library_t *library, const rd_transport_args_t *args);
void rd_net_release(rd_net_t *net); /* frees what rd_net_init and the others have made, but not the struct */
rondo_result_t rd_net_bind_send(rd_transport_t *transport, int peer, int channel, rd_send_t *send);
rondo_result_t rd_net_bind_recv(rd_transport_t *transport, int peer, int channel, rd_recv_t *recv);
/* Checks whether the message that is about to be posted can be sent, and fills its header. */
rondo_result_t rd_net_head(const rd_send_t *send, size_t bytes, rd_net_header_t *header);
int rd_net_zcopy_peer(const rd_transport_t *transport);
/* Sends credits that were held back: all of them, or only those that make a batch. */
void rd_net_credits_flush(rd_net_t *net, bool least_a_batch);
/* The network has been polled, and something has moved or not: peers that are lost are judged. Where nothing comes any
 * more, a peer may be waiting to send a long message: it gets the credits of short ones that were held back. */
void rd_net_polled(rd_net_t *net, bool moved);
void rd_net_credit_sent(rd_net_conn_t *conn);

/* net_peers.c */
void rd_net_header_fill(rd_net_header_t *header, const rd_net_t *net, int channel, rd_net_kind_t kind, uint64_t number,
                        uint64_t bytes);
void rd_net_peer_used(rd_net_peer_t *peer);
bool rd_net_peer_lost(rd_net_peer_t *peer, const char *why); /* returns false if that was known */
/* Returns the error where a rank's own part in `create` has failed, as all have seen in an exchange. `cannot`: "has no
 * working UCX". `why`: the reason, if it is this rank. */
rondo_result_t rd_net_has_failed(const rd_net_t *net, int rank, const char *cannot, const char *why);
rondo_result_t rd_net_has_left(rd_net_peer_t *peer); /* it has left but is still needed: the communicator fails */
void rd_net_judge_lost(rd_net_t *net);               /* to be called while net->nlost is not 0 */
/* Fills a farewell, which says that this rank leaves in order, or names the failure that it knows. */
void rd_net_bye_fill(rd_net_header_t *header, const rd_net_peer_t *peer);
void rd_net_byes_due(rd_net_t *net);             /* net_receive.c; to be called while net->ndue is not 0 */
uint64_t rd_net_come(const rd_net_peer_t *peer); /* messages that have come from it in order, on all channels */

/* net_wireup.c. The first returns true if every rank greets every other one. */
bool rd_net_wires_all(const rd_net_t *net);
rondo_result_t rd_net_wireup(rd_net_t *net, const rd_env_t *env); /* collective */
/* A peer cannot be reached. It may have died, or have left because another rank has, and that is what the others will
 * be told, so it goes before: waits for such news of the bootstrap a moment. Returns RONDO_SUCCESS if none comes. */
rondo_result_t rd_net_why_unreached(const rd_net_t *net);

/* net_question.c. The library sends questions and answers. */
bool rd_net_asks(rd_net_peer_t *peer);          /* true if it is to be asked; that is noted until the answer comes */
bool rd_net_answers(const rd_net_peer_t *peer); /* whether its question gets an answer */
void rd_net_take_answer(rd_net_peer_t *peer, const void *data, size_t bytes);
const rd_called_t *rd_net_called(const rd_transport_t *transport, int rank);

/* net_say.c: of libraries that have all functions of rd_net_library_t */
void rd_net_say(rd_net_peer_t *peer, rd_net_kind_t kind, uint64_t number);
void rd_net_say_credit(rd_net_conn_t *conn); /* a library's `credit` */
void rd_net_say_bye(rd_net_t *net);          /* its `say_bye` */
void rd_net_confirm(rd_net_peer_t *peer);    /* confirms a farewell, once all that was sent before it is here */
/* Takes what is about the peer as a whole. Returns false if the message is about a channel. */
bool rd_net_take_control(rd_net_peer_t *peer, const rd_net_header_t *h, const void *data, size_t bytes);
/* Operations of transport/transport.h. */
rondo_result_t rd_net_credit(rd_recv_t *recv, size_t bytes);
bool rd_net_progress(rd_transport_t *transport);
void rd_net_seek(rd_transport_t *transport, int rank);
void rd_net_ask_called(rd_transport_t *transport, int rank);

/* net_leave.c */
void rd_net_dests_back(rd_net_t *net); /* from here on nothing comes directly into the user's memory */
rondo_result_t rd_net_farewell(const rd_transport_t *transport, int rank);
bool rd_net_poll_some(rd_net_t *net); /* makes progress while there is any; returns true if there was */
/* Waits until a network that this rank has left in order may be closed; a peer that greets this rank only now gets a
 * farewell, too. Returns true if the network lingers: the caller then no longer owns it. */
bool rd_net_end_in_order(rd_net_t *net, const rd_net_ending_t *ending);
int64_t rd_net_failed_ms(const rd_net_t *net); /* the most time to send farewells after this failure */
/* The next ones are for libraries that have all functions of rd_net_library_t. */
void rd_net_part(rd_net_t *net);                  /* sends the last credits, and farewells: `leave`, once */
bool rd_net_is_unread(const rd_net_peer_t *peer); /* a live peer may not have taken all that was sent to it */
bool rd_net_all_read(rd_net_t *net);
/* Waits until the network may be closed, in order or after a failure. Returns true if it lingers, likewise. */
bool rd_net_end_wait(rd_net_t *net, const rd_net_ending_t *ending);
/* Says at the end what may be lost, and how much was dropped. `is_unread`: it may not have taken all. */
void rd_net_end_say(const rd_net_t *net, bool (*is_unread)(const rd_net_peer_t *peer));
/* Returns true if the network will be closed later; the caller then no longer owns it. `how` has its functions. */
bool rd_net_linger(rd_net_t *net, const rd_linger_t *how);
void rd_net_detach(rd_linger_t *linger); /* gives the communicator's memory back to it */

/* net_receive.c. Nothing in a message is used before rd_net_sender has found its sender. */
void rd_net_drop(rd_net_t *net, const char *what, uint64_t value);
bool rd_net_is_token(const rd_net_t *net, const unsigned char *token);
/* Returns who has sent it; NULL: it is wrong, and was dropped. `bytes`: of its payload, which `has_data` says that its
 * kind may have. */
rd_net_peer_t *rd_net_sender(rd_net_t *net, const rd_net_header_t *h, size_t bytes, bool has_data);
/* Returns the channel of data or a credit; NULL: nothing is bound to it, and the message was dropped. */
rd_net_conn_t *rd_net_conn_of(rd_net_peer_t *peer, const rd_net_header_t *h);
/* Checks data and takes note of them. `later`: only their announcement is here, and rd_net_land follows when the bytes
 * lie in their slot. Returns false if the message was dropped or failed. */
bool rd_net_data_due(rd_net_conn_t *conn, const rd_net_header_t *h, size_t bytes, bool later);
void rd_net_land(rd_net_conn_t *conn, uint64_t at); /* `at`: the message's number modulo the ring */
void rd_net_take_data(rd_net_conn_t *conn, const rd_net_header_t *h, const void *data, size_t bytes);
void rd_net_take_credit(rd_net_conn_t *conn, const rd_net_header_t *h);
void rd_net_take_bye(rd_net_peer_t *peer, const rd_net_header_t *h);

#endif
