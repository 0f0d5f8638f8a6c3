/* What the files of the UCX transport share. They begin with what all transports between nodes have in common
 * (transport/network/network.h), and add to it:
 *
 *   rd_ucx_net        one UCX context and worker
 *     peers[rank]     its worker address, and its endpoint if there is one
 *       conns[ch]     headers, and what is being fetched
 *
 * ucx_load.c opens UCX, ucx_guard.c guards what it calculates; ucx_choose.c agrees on transports; context.c makes and
 * ends context and worker, with the settings of ucx_config.c; exchange.c exchanges the addresses; wireup.c greets;
 * endpoint.c connects, sends, and learns of peers that are gone; receive.c takes what arrives, question.c asks and
 * answers; ucx_gdr.c, rndv.c and rkey.c carry GDR messages; net.c and disconnect.c implement the operations of
 * transport/transport.h with these; ucx_linger.c says how a network outlives its communicator. */
#ifndef RD_UCX_UCX_H
#define RD_UCX_UCX_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/fd.h"
#include "transport/network/network.h"
#include "ucx/transport_ucx.h"
#include "ucx/ucx_load.h"

#define RD_UCX_AM 7           /* the active message number of all of rondo's traffic */
#define RD_UCX_DEVICES 512    /* bytes of a list of devices */
#define RD_UCX_RESOURCES 4096 /* bytes of a list of resources: five or so for each of sixteen devices, and more */

typedef struct rd_ucx_net rd_ucx_net_t;
typedef struct rd_ucx_conn rd_ucx_conn_t;
typedef struct rd_ucx_gdr rd_ucx_gdr_t;   /* ucx_gdr.h: the GDR messages of a peer */
typedef struct rd_ucx_said rd_ucx_said_t; /* question.c: what is being sent of questions and answers */

/* How far this rank's greeting of a peer is, over tcp: see wireup.c. */
typedef enum {
    RD_UCX_UNGREETED,  /* or greeted at once */
    RD_UCX_CONNECTING, /* UCX makes the connection, and has nothing to send on it */
    RD_UCX_CONNECTED,  /* the greeting is due: nothing was sent yet */
    RD_UCX_GREETED
} rd_ucx_greeting_t;

typedef struct rd_ucx_peer {
    rd_net_peer_t base;
    const ucp_address_t *address; /* points into net->addresses; NULL: the rank is not remote */
    ucp_ep_h ep;                  /* NULL until first used */
    rd_ucx_gdr_t *gdr;            /* made when first needed */
    rd_ucx_said_t *said;          /* likewise */
    int flushing;                 /* its UCX has yet to confirm that it has taken all */
    int little;                   /* what it may not have consumed is so little that its kernel can hold it */
    rd_ucx_greeting_t greeting;
    rd_net_header_t hello, bye; /* must stay until they have been sent, */
    ucp_dt_iov_t hello_list;    /* and so must this one, which is of the greeting */
} rd_ucx_peer_t;

/* Represents one slot of an inbox while UCX fetches into it: its index in conn->landings is the message's number modulo
 * the ring. */
typedef struct rd_ucx_landing {
    rd_ucx_conn_t *conn;
} rd_ucx_landing_t;

struct rd_ucx_conn {
    rd_net_conn_t base;
    /* These are made when first needed: most pairs of ranks never exchange messages. */
    rd_net_header_t *headers;   /* one for each message in the mirror: UCX reads it until the message has been sent */
    rd_ucx_landing_t *landings; /* one for each message in the inbox */
    ucp_dt_iov_t *held;         /* the list, in its slot, of a short message that waits for the next one; or NULL */
    uint64_t longer;            /* the number of messages up to the last one that was not short, */
    size_t longest;             /* and the bytes of the longest of them */
    rd_net_header_t credit_header;
};

struct rd_ucx_net {
    rd_net_t base; /* its zcopy_pending counts those of all peers, but no GDR messages */
    ucp_context_h context;
    ucp_worker_h worker;
    void *reserve;           /* memory that UCX gets for its first messages; NULL: it has it, or none is needed */
    char *addresses;         /* the worker addresses of all ranks, one after another */
    uint64_t outstanding;    /* requests that UCX has not completed */
    uint64_t flushes;        /* those of them that confirm, at the end, that a peer's UCX has taken all that was sent */
    int keeps, kept;         /* keeps: UCX may keep a copy of what it reports as sent; kept: it may have one */
    uint32_t sends, takes;   /* the longest segments, in bytes, that UCX's tcp sends and takes; 0: unknown */
    int fetching;            /* messages that are being fetched into slots of inboxes */
    int gdr_flying;          /* GDR messages of which this rank's UCX, or a peer's, has the memory */
    int gdr_waited;          /* GDR messages that a caller waits for */
    int rndv_due;            /* there may be RTS or ACK messages to send */
    struct rd_ucx_key *keys; /* keys to this rank's memory, the last used one first */
    bool shares;             /* the user has named a transport over shared memory */
    const char *fabric;      /* what rd_ucx_fabric_folder has returned */
    bool named;              /* RONDO_NET names InfiniBand devices, of this host or of another rank's */
    bool fast;               /* a transport faster than tcp was chosen, because RONDO_UCX_TLS is "auto", */
    char devices[RD_UCX_DEVICES]; /* with these devices: "mlx5_0:1,mlx5_1:1" */
    int lists;                    /* short messages are sent as lists: see rd_ucx_send_list for the reason */
    rd_ucx_conn_t
        *held;       /* the connection with a short message that will be sent with the next one; NULL: there is none */
    int buffers_set; /* the user has set the sizes of the socket buffers */
    bool broken;     /* UCX must not be polled any more, because that would end the process: see wireup.c */
    bool saw_routes; /* as this was made: see rd_ucx_is_blind */
    bool blind;      /* that is why it is broken */
    int leaving;     /* what is announced from now on is no longer wanted */
    bool greetings;  /* some peer's greeting is due */
    int asides;      /* set when a question or an answer of question.c comes, which is no progress of a call */
};

static inline rd_ucx_net_t *rd_ucx_of(rd_transport_t *transport)
{
    return (rd_ucx_net_t *)transport;
}

static inline rd_ucx_net_t *rd_ucx_net_of(const rd_net_peer_t *peer)
{
    return (rd_ucx_net_t *)peer->net;
}

static inline rd_ucx_peer_t *rd_ucx_peer_of(const rd_net_peer_t *peer)
{
    return (rd_ucx_peer_t *)(uintptr_t)peer;
}

static inline rd_ucx_peer_t *rd_ucx_peer(const rd_ucx_net_t *net, int rank)
{
    return (rd_ucx_peer_t *)net->base.peers + rank;
}

/* The peers that were used: the first of them, and the one after another; NULL: there is none. */
static inline rd_ucx_peer_t *rd_ucx_first(const rd_ucx_net_t *net)
{
    return (rd_ucx_peer_t *)net->base.used;
}

static inline rd_ucx_peer_t *rd_ucx_next(const rd_ucx_peer_t *peer)
{
    return (rd_ucx_peer_t *)peer->base.next_used;
}

/* context.c */
const char *rd_ucx_unusable(void);
rondo_result_t rd_ucx_probe(const rd_env_t *env, const char *address, int local_rank, rd_transport_report_t *report);
/* `address`: the address on which the bootstrap listens. `local_rank`: this rank's turn among the
 * devices of RONDO_NET (node/rails.h): without those the number of lower ranks on this node. */
rondo_result_t rd_ucx_open(rd_ucx_net_t *net, const rd_env_t *env, const char *address, int local_rank);
void rd_ucx_close(rd_ucx_net_t *net); /* it may be opened again */
/* Notes whether this process has changed its root to one without /proc. UCX's tcp reads a file there as a worker is
 * made, which fails then, and as connections begin and end, where it ends the process: so the network is not polled any
 * more, and receives nothing. Returns true if that is so. Defined in context.c; endpoint.c tells the other ranks. */
bool rd_ucx_is_blind(rd_ucx_net_t *net);
/* From now on UCX may send: it finds the memory that rd_ucx_open has reserved for that. */
void rd_ucx_memory_back(rd_ucx_net_t *net);
/* Checks that UCX works in this process, and blocks all signals: the program's handlers do not run in UCX's threads.
 * Where it succeeds, the caller sets the mask to `before` again. */
rondo_result_t rd_ucx_enter(rd_ucx_net_t *net, sigset_t *before);
/* Lists the context's resources between hosts: "tcp/eth0 rc_mlx5/mlx5_0:1". */
void rd_ucx_resources(ucp_context_h context, char *text, size_t size);
bool rd_ucx_fetches_host(void); /* true if host memory is fetched by keys, and not only a device's memory */

/* ucx_choose.c. They replace "auto" in env->ucx_tls by what is used, and set what the network knows of it. The first is
 * collective, and has no failure of this rank's own; the second is for rondo-info. */
rondo_result_t rd_ucx_choose(rd_ucx_net_t *net, rd_env_t *env, const char *address, const rd_node_t *node,
                             int local_rank);
void rd_ucx_choose_alone(rd_ucx_net_t *net, rd_env_t *env, const char *address, int local_rank);
/* Empties RONDO_NET in `env` where data goes by tcp and it names InfiniBand devices, which tcp does not know; on a host
 * without such devices, too, where another rank with the same RONDO_NET has them. */
void rd_ucx_tcp_names(rd_ucx_net_t *net, rd_env_t *env);
/* Returns where Linux shows InfiniBand and RoCE; NULL: a job that meets on this address does not use it. */
const char *rd_ucx_fabric_folder(const char *address);

/* ucx_config.c */
const char *rd_ucx_said(const char *name); /* the user's setting, which takes precedence; NULL: there is none */
/* Returns the variable that names the network devices; NULL: none does, or only for another library. */
const char *rd_ucx_devices_by(const rd_env_t *env);
/* Sets NET_DEVICES to this rank's one of `devices`. */
rondo_result_t rd_ucx_device_put(rd_ucx_net_t *net, ucp_config_t *config, const char *devices, int local_rank);
rondo_result_t rd_ucx_settings_put(rd_ucx_net_t *net, ucp_config_t *config, const rd_env_t *env, const char *address,
                                   int local_rank);
bool rd_ucx_tls_may(const rd_env_t *env, const char *name); /* whether the transport `name` may be used */
bool rd_ucx_may_fetch(const rd_env_t *env); /* whether it may fetch by keys, from and to a device's memory */
/* `tls` is RONDO_UCX_TLS. Returns true if host memory uses only tcp, on the interface where ranks meet; other
 * transports that it may name move what lies on GPUs. */
bool rd_ucx_tcp_alone(const char *tls);
bool rd_ucx_tls_shares(const char *tls); /* true if it names a transport over shared memory */
const char *rd_ucx_fragile(void);
/* Returns true if this UCX ends the process when a worker is closed that could not yet send its answer to a peer's
 * first message. */
bool rd_ucx_answer_ends(void);

/* exchange.c */
/* Collective, also for a rank whose own rd_ucx_open failed with `opened`, so that all ranks learn of it. Refuses
 * versions of UCX that are not known to understand each other. */
rondo_result_t rd_ucx_exchange(rd_ucx_net_t *net, const rd_env_t *env, rondo_result_t opened);

/* ucx_gdr.c */
/* Takes an announcement of a GDR message. Returns UCS_INPROGRESS if it is kept; else UCS_OK, and in *wrong what is
 * wrong with it, or NULL. */
ucs_status_t rd_ucx_announced(rd_ucx_peer_t *peer, const rd_net_header_t *h, void *announced, const char **wrong);
rondo_result_t rd_ucx_gdr(rd_transport_t *transport, const rd_gdr_message_t *ask);
int rd_ucx_gdr_peer(const rd_transport_t *transport);
void rd_ucx_gdr_back(
    rd_ucx_net_t *net); /* takes back all GDR messages: nobody waits for them any more, and nothing new begins */
void rd_ucx_gdr_release(rd_ucx_net_t *net); /* releases announcements that nobody has requested or will request */
void rd_ucx_gdr_free(rd_ucx_net_t *net);    /* to be called before the worker is destroyed */

/* rndv.c. What arrived came from a rank of this communicator. They return what is wrong with it, or NULL. */
const char *rd_ucx_offered(rd_ucx_peer_t *peer, const rd_net_header_t *h, const char *data, size_t bytes);
const char *rd_ucx_ack(rd_ucx_peer_t *peer, const rd_net_header_t *h);
void rd_ucx_rndv_advance(rd_ucx_net_t *net);
/* Takes back the offers that were not sent; with `announced` also those that were, because the peer is lost and fetches
 * nothing more. */
void rd_ucx_offers_back(rd_ucx_peer_t *peer, int announced);

/* wireup.c */
void rd_ucx_greet(rd_net_peer_t *peer);
void rd_ucx_greetings_send(rd_ucx_net_t *net); /* those that are due */
void rd_ucx_seek(rd_transport_t *transport, int rank);

/* question.c */
void rd_ucx_ask_called(rd_transport_t *transport, int rank);
void rd_ucx_asked(rd_ucx_peer_t *peer); /* takes a question */

/* endpoint.c */
rondo_result_t rd_ucx_peer_connect(rd_ucx_peer_t *peer);
void rd_ucx_peer_lost(rd_ucx_peer_t *peer, ucs_status_t status); /* UCX has given up what was under way with it */
unsigned rd_ucx_poll(rd_ucx_net_t *net); /* returns the number of events; every poll of UCX is this one */
/* If *pending is nonzero on return, `done(request, status, arg)` is called later, and `header` and `data` must stay
 * until then. Nothing is sent to a peer that is lost, and that is no error here: the verdict is reported by the stop
 * word. */
rondo_result_t rd_ucx_send(rd_ucx_peer_t *peer, const rd_net_header_t *header, const void *data, size_t bytes,
                           ucp_send_nbx_callback_t done, void *arg, int *pending);
/* The same for `n` short messages, each of which is one piece that ends with its header; only one where net->lists is
 * 0. The list must stay as well. */
rondo_result_t rd_ucx_send_list(rd_ucx_peer_t *peer, const ucp_dt_iov_t *list, size_t n, ucp_send_nbx_callback_t done,
                                void *arg, int *pending);
void rd_ucx_sent(void *request, ucs_status_t status,
                 void *peer);             /* the `done` of messages that only need to be counted */
void rd_ucx_forsake(rd_ucx_peer_t *peer); /* breaks the connection and gives up what it has yet to carry */
void rd_ucx_say_bye(rd_ucx_net_t *net, int zcopies_alone); /* sends the farewells, once to each peer */
/* Ends all endpoints. Returns 0 if UCX has not completed everything, and so would end the process if the worker were
 * destroyed. */
bool rd_ucx_disconnect(rd_ucx_net_t *net);

/* net.c */
bool rd_ucx_progress(rd_transport_t *transport);
void rd_ucx_send_held(rd_ucx_net_t *net); /* a failure is reported by the stop word */
extern const rd_net_library_t rd_ucx_library;

/* disconnect.c */
void rd_ucx_cancel(rd_transport_t *transport);
void rd_ucx_leave(rd_transport_t *transport);
void rd_ucx_destroy(rd_transport_t *transport);
/* For a network that has left in order: */
bool rd_ucx_unread(rd_ucx_net_t *net); /* true if something might be lost if it were closed now */
void rd_ucx_end(rd_ucx_net_t *net);

/* ucx_linger.c */
/* Returns true if the network will be closed later, when all has been read; the caller then no longer owns it. */
bool rd_ucx_linger(rd_ucx_net_t *net);

/* receive.c */
ucs_status_t rd_ucx_arrive(void *net, const void *header, size_t header_bytes, void *data, size_t bytes,
                           const ucp_am_recv_param_t *param);

#endif
