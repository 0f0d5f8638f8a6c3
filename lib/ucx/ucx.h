/* What the files of the UCX transport share: the network of one communicator, its peers, and what travels.
 *
 *   rd_ucx_net        one UCX context and worker, used by the rank's own thread only
 *     peers[rank]     a remote rank: its worker address, its endpoint once there is one, whether it has left or is lost
 *       conns[ch]     a channel with that peer: the memory of the two directions, bound by the communicator
 *
 * context.c makes and ends context and worker, with the settings of ucx_config.c; exchange.c exchanges the addresses;
 * wireup.c makes the connections; endpoint.c connects, sends, and learns of peers that are gone; receive.c checks and
 * delivers what arrives; ucx_gdr.c, rndv.c and rkey.c carry what goes past all connections; net.c and disconnect.c are
 * the operations of transport/transport.h over these; linger.c has what has outlived its communicator.
 */
#ifndef RD_UCX_UCX_H
#define RD_UCX_UCX_H

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare" /* UCX 1.22's own headers */
#include <ucp/api/ucp.h>
#pragma GCC diagnostic pop

#include "ucx/transport_ucx.h"

#define RD_UCX_TOKEN 16          /* bytes of the communicator's key that every message carries */
#define RD_UCX_AM 7              /* the active message number of all of rondo's traffic */
#define RD_UCX_MAX_CHANNELS 1024 /* more is a mistake */
#define RD_UCX_MAX_SLOTS 65536   /* more is a mistake */
#define RD_UCX_GRACE_MS 250      /* between a broken connection and the verdict that its peer has died */

typedef enum {
    RD_UCX_DATA = 1,
    RD_UCX_CREDIT,
    RD_UCX_BYE,
    RD_UCX_HELLO,
    RD_UCX_DIRECT,
    RD_UCX_RTS,
    RD_UCX_ACK
} rd_ucx_kind_t;

/* Ahead of every message, or behind the data of a short one, of which two may come as one. All ranks of a job have one
 * byte order. */
typedef struct rd_ucx_header {
    unsigned char token[RD_UCX_TOKEN];
    uint32_t rank;    /* of the sender */
    uint16_t channel; /* 0 in a greeting, a farewell and what goes past connections */
    uint8_t kind;     /* rd_ucx_kind_t */
    uint8_t zero;
    uint64_t number; /* data, direct: of the message; offer: of the first one; credit: messages consumed so far;
                      * farewell: a rondo_result_t; else 0 */
    uint64_t bytes;  /* data, direct: payload; offer: messages; taken: places, as bits; credit: 0; farewell: the
                      * failed rank's rank plus one, or 0; and in the upper half likewise who found out about it */
    uint64_t credit; /* data: messages consumed so far of the same channel's other direction; farewell: messages sent
                      * before it, on all channels; else 0 */
} rd_ucx_header_t;

typedef struct rd_ucx_net rd_ucx_net_t;
typedef struct rd_ucx_conn rd_ucx_conn_t;
typedef struct rd_ucx_gdr rd_ucx_gdr_t; /* ucx_gdr.c: what goes to and fro past connections */

typedef struct rd_ucx_peer {
    rd_ucx_net_t *net;
    rd_ucx_conn_t **conns; /* by channel; NULL where nothing is bound */
    int nconns;
    int rank;
    const ucp_address_t *address; /* in net->addresses; NULL: not remote */
    ucp_ep_h ep;                  /* NULL until first used */
    int zcopies;                  /* messages on their way out of the user's memory, or straight into it */
    rd_ucx_gdr_t *direct;         /* made when first needed */
    int used;                     /* something went to it or came from it: it will want a farewell */
    int greeted;                  /* its greeting has arrived */
    int settled;                  /* something sent to it has gone out: the connection is made */
    int parted;                   /* this rank's farewell was sent to it */
    int flushing;                 /* its UCX has yet to say that it has taken all */
    int little;                   /* what it may not have consumed is so little that its kernel holds it */
    int left;                     /* its farewell has arrived */
    rondo_result_t farewell;      /* what that said, */
    uint64_t sent;                /* and how many messages went before it */
    int judged;                   /* its connection broke, and it was declared dead */
    int64_t lost_ms;              /* when its connection broke, 0: it did not */
    const char *lost_why;
    struct rd_ucx_peer *next_used;
    rd_ucx_header_t hello, bye; /* stay until sent */
} rd_ucx_peer_t;

/* Stands for one slot of an inbox while UCX fetches into it: its place in conn->landings is the message's number modulo
 * the ring. */
typedef struct rd_ucx_landing {
    rd_ucx_conn_t *conn;
} rd_ucx_landing_t;

struct rd_ucx_conn {
    rd_ucx_peer_t *peer;
    int channel;
    rd_send_t *send; /* NULL: not bound */
    rd_recv_t *recv;
    /* All made when first needed: most pairs of ranks never talk. */
    rd_ucx_header_t *headers;   /* of each message in the mirror: UCX reads them until it has gone */
    rd_ucx_landing_t *landings; /* one a message in the inbox */
    uint64_t *claimed;          /* bit per message in the inbox: it has come out of turn and is not published; */
    uint64_t *landed;           /* behind them, bit per message: and its bytes are all there */
    uint64_t next;              /* the message to be published next */
    ucp_dt_iov_t *held;         /* a short message that waits for the next one: its list, in its slot; or NULL */
    uint64_t credited;          /* consumed messages of which the sender has been told */
    uint64_t longer;            /* messages up to the last one that was not short, */
    size_t longest;             /* and bytes of the longest of them */
    int credit_busy;            /* credit_header is on its way */
    rd_ucx_header_t credit_header;
};

/* Messages are counted modulo the longest of the rings: what is kept for each message has so many. */
static inline uint64_t rd_ucx_ring(const rd_ring_t *shorter, uint32_t slots_mask)
{
    uint32_t mask = slots_mask;
    for (int i = 0; i < RD_RINGS; i++)
        mask = shorter[i].bytes != 0 && shorter[i].mask > mask ? shorter[i].mask : mask;
    return mask + UINT64_C(1);
}

/* As many consumed messages make a credit worth sending, if the last one was of this ring. */
static inline uint64_t rd_ucx_batch(uint32_t mask)
{
    return mask != 0 ? (mask + UINT64_C(1)) / 2 : 1;
}

/* What a network that lingers has of its own, for it had the communicator's. */
typedef struct rd_ucx_alone {
    rd_log_ctx_t ctx;
    rd_stop_t stop; /* is never set */
    rd_ucx_net_t *next;
} rd_ucx_alone_t;

struct rd_ucx_net {
    rd_transport_t base; /* zcopy_pending is of all peers, but for what goes past connections */
    ucp_context_h context;
    ucp_worker_h worker;
    rd_boot_t *boot;
    rd_log_ctx_t *ctx;
    rd_stop_t *stop;
    int rank, nranks;
    unsigned char token[RD_UCX_TOKEN];
    rd_ucx_alone_t *alone; /* it lingers; NULL: it is a communicator's */
    rd_ucx_peer_t *peers;
    rd_ucx_peer_t *used;   /* list of those that were used */
    char *addresses;       /* worker addresses of all ranks, one after another */
    uint64_t outstanding;  /* requests that UCX has not completed */
    uint64_t flushes;      /* of these, so many that say, at the end, that a peer's UCX has taken all that was sent */
    int64_t left_ms;       /* when the farewells were said; 0: not yet */
    int keeps, kept;       /* UCX may keep a copy of what it says it has sent; it may have one */
    uint32_t sends, takes; /* bytes of a segment that UCX's tcp sends, and takes, at most; 0: it says nothing of that */
    uint64_t dropped;      /* messages refused; only the first is talked of */
    int fetching;          /* into slots of inboxes */
    int straight;          /* which is so many that UCX, or a peer's, has the memory of */
    int direct;            /* and so many that somebody waits for */
    int unsaid;            /* there may be offers to make, or fetched ones to tell of */
    struct rd_ucx_key *keys; /* to this rank's memory, the last used one first */
    int lists;               /* short messages go as lists: rd_ucx_send_list says why */
    rd_ucx_conn_t *held;     /* has a short message that goes with the next one; NULL: there is none */
    int buffers_set;         /* the user has said how long the sockets' are */
    int leaving;             /* what is announced now is wanted no more */
    int quiet;               /* looks at the network in a row that found nothing */
    int nlost;               /* peers with a broken connection and no verdict yet */
    int progressed;          /* set where something is delivered */
};

static inline rd_ucx_net_t *rd_ucx_of(rd_transport_t *transport)
{
    return (rd_ucx_net_t *)transport;
}

/* context.c */
const char *rd_ucx_unusable(void);
rondo_result_t rd_ucx_probe(const rd_env_t *env, const char *address, int place, rd_transport_report_t *report);
/* `address`: where the bootstrap listens. `place`: how many lower ranks are on this node. */
rondo_result_t rd_ucx_open(rd_ucx_net_t *net, const rd_env_t *env, const char *address, int place);
void rd_ucx_close(rd_ucx_net_t *net);
int rd_ucx_fetches_host(void); /* by keys, and not only a device's memory */

/* ucx_config.c */
rondo_result_t rd_ucx_settings_put(rd_ucx_net_t *net, ucp_config_t *config, const rd_env_t *env, const char *address,
                                   int place);
int rd_ucx_tls_may(const rd_env_t *env, const char *name); /* the transport be among them */
int rd_ucx_may_fetch(const rd_env_t *env);                 /* by keys, from and to a device's memory */
/* Of RONDO_UCX_TLS. Nonzero: host memory goes by tcp, on the interface where ranks meet; other transports that it may
 * name move what lies on GPUs. */
int rd_ucx_tcp_alone(const char *tls);
const char *rd_ucx_fragile(void);
/* This UCX may end the process when a peer is lost while a message is announced to it: forced, or straight from GPU to
 * GPU. */
int rd_ucx_announcing_ends(void);
/* This UCX ends the process when a worker is closed whose answer to somebody's first message could not yet be sent. */
int rd_ucx_answer_ends(void);

/* exchange.c */
/* Collective, also for a rank whose own rd_ucx_open failed with `opened`: so all ranks learn of it. Versions of UCX
 * that are not known to understand each other are refused. */
rondo_result_t rd_ucx_exchange(rd_ucx_net_t *net, const rd_env_t *env, rondo_result_t opened, const int *node_of);

/* ucx_gdr.c */
/* A message that goes past connections, announced: UCS_INPROGRESS; or UCS_OK and what is wrong with it, or NULL. */
ucs_status_t rd_ucx_announced(rd_ucx_peer_t *peer, const rd_ucx_header_t *h, void *announced, const char **wrong);
rondo_result_t rd_ucx_gdr(rd_transport_t *transport, const rd_net_direct_t *ask);
int rd_ucx_gdr_peer(const rd_transport_t *transport);
void rd_ucx_gdr_back(rd_ucx_net_t *net);    /* nobody waits for them any more, and nothing new begins */
void rd_ucx_gdr_release(rd_ucx_net_t *net); /* announcements that nobody has asked for or will */
void rd_ucx_gdr_free(rd_ucx_net_t *net);    /* before the worker goes */

/* rndv.c; what arrived was of a rank of this communicator. What is wrong with it, or NULL. */
const char *rd_ucx_offered(rd_ucx_peer_t *peer, const rd_ucx_header_t *h, const char *data, size_t bytes);
const char *rd_ucx_ack(rd_ucx_peer_t *peer, const rd_ucx_header_t *h);
void rd_ucx_gdr_say(rd_ucx_net_t *net);
/* What is not said will not be; with `said` the peer is lost as well, and fetches nothing more. */
void rd_ucx_offers_back(rd_ucx_peer_t *peer, int said);

/* wireup.c; does every rank greet every other one? */
int rd_ucx_wires_all(const rd_ucx_net_t *net);
rondo_result_t rd_ucx_wireup(rd_ucx_net_t *net, const rd_env_t *env);
void rd_ucx_seek(rd_transport_t *transport, int rank);

/* endpoint.c */
void rd_ucx_peer_used(rd_ucx_peer_t *peer);
rondo_result_t rd_ucx_peer_connect(rd_ucx_peer_t *peer);
void rd_ucx_peer_lost(rd_ucx_peer_t *peer, const char *why);
rondo_result_t rd_ucx_has_left(rd_ucx_peer_t *peer); /* and is needed: the communicator fails */
void rd_ucx_judge_lost(rd_ucx_net_t *net);
/* Nonzero in *pending: `done(request, status, arg)` comes later, and `header` and `data` must stay until then. To a
 * peer that is lost nothing is sent, and that is no error here: the verdict comes by the stop word. */
rondo_result_t rd_ucx_send(rd_ucx_peer_t *peer, const rd_ucx_header_t *header, const void *data, size_t bytes,
                           ucp_send_nbx_callback_t done, void *arg, int *pending);
/* The same for `n` short messages, each one piece that ends with its header; one alone where net->lists is 0. The list
 * must stay as well. */
rondo_result_t rd_ucx_send_list(rd_ucx_peer_t *peer, const ucp_dt_iov_t *list, size_t n, ucp_send_nbx_callback_t done,
                                void *arg, int *pending);
void rd_ucx_sent(void *request, ucs_status_t status, void *peer); /* `done` of what needs no more than counting */
void rd_ucx_forsake(rd_ucx_peer_t *peer); /* breaks the connection: what it has yet to carry is given up */
void rd_ucx_header_fill(rd_ucx_header_t *header, const rd_ucx_net_t *net, int channel, rd_ucx_kind_t kind,
                        uint64_t number, uint64_t bytes);
void rd_ucx_say_bye(rd_ucx_net_t *net, int zcopies_alone); /* once to each */
/* Ends all endpoints. 0: UCX has not completed everything, and would end the process if the worker went. */
int rd_ucx_disconnect(rd_ucx_net_t *net);

/* net.c */
const char *rd_ucx_version(void); /* "ucx 1.13.1" */
bool rd_ucx_progress(rd_transport_t *transport);
void rd_ucx_send_held(rd_ucx_net_t *net); /* a failure comes by the stop word */
/* Credits that were kept back: all of them, or where they make a batch. */
void rd_ucx_credits_flush(rd_ucx_net_t *net, int least_a_batch);

/* disconnect.c */
void rd_ucx_cancel(rd_transport_t *transport);
rondo_result_t rd_ucx_farewell(const rd_transport_t *transport, int rank);
void rd_ucx_leave(rd_transport_t *transport);
void rd_ucx_destroy(rd_transport_t *transport);
/* Of a network that has left in order: */
int rd_ucx_unread(rd_ucx_net_t *net); /* nonzero: there is something that may be lost if it were closed now */
void rd_ucx_end(rd_ucx_net_t *net);

/* linger.c */
/* Nonzero: it is closed later, when all has been read, and no longer the caller's. */
int rd_ucx_linger(rd_ucx_net_t *net);

/* receive.c */
ucs_status_t rd_ucx_arrive(void *net, const void *header, size_t header_bytes, void *data, size_t bytes,
                           const ucp_am_recv_param_t *param);

#endif
