/* What the files of the libfabric transport share. They begin with what all transports between nodes have in common
 * (transport/network/network.h), and add to it:
 *
 *   rd_ofi_net        one endpoint (FI_EP_RDM) with its completion queue
 *     peers[rank]     its address, and what waits to be sent to it
 *
 * Everything is a tagged message that begins with a header. There are two tags, for messages up to RD_OFI_SHORT bytes
 * and for longer ones, and for each some buffers are posted, for whoever sends. What has come is copied from there into
 * its slot. So a provider needs no more than tagged messages: no remote writes, and no order between messages
 * (net_receive.c sorts them by number).
 *
 * ofi_load.c opens libfabric; ofi_provider.c asks for providers, and lets all ranks agree on one; ofi_context.c makes
 * and ends the endpoint; ofi_exchange.c exchanges addresses; ofi_send.c sends, and learns of peers that are gone;
 * ofi_receive.c takes what arrives; ofi_net.c and ofi_disconnect.c implement the operations of transport/transport.h
 * with these; ofi_dial.c finds out whether one listens; ofi_forgotten.c closes what libfabric leaves open. */
#ifndef RD_OFI_OFI_H
#define RD_OFI_OFI_H

#include <netinet/in.h>
#include <stdbool.h>

#include "ofi/ofi_load.h"
#include "ofi/transport_ofi.h"
#include "transport/network/net_load.h"
#include "transport/network/network.h"

#define RD_OFI_COPY (sizeof(rd_called_digest_t) > RD_SHORT ? sizeof(rd_called_digest_t) : RD_SHORT)
#define RD_OFI_COPIES 128  /* requests with space for a copy of a short message */
#define RD_OFI_ADDRESS 256 /* the most bytes of an address */
#define RD_OFI_NAME 64     /* bytes of a provider's name */

typedef enum { RD_OFI_TAG_SHORT = 1, RD_OFI_TAG_LONG } rd_ofi_tag_t;

#define RD_OFI_SHORT (8192 + 128) /* payload of the longest message with the short tag */

typedef struct rd_ofi_net rd_ofi_net_t;
typedef struct rd_ofi_request rd_ofi_request_t;
typedef struct rd_ofi_socket rd_ofi_socket_t;

typedef struct rd_ofi_peer {
    rd_net_peer_t base;
    fi_addr_t address;
    struct sockaddr_in6 at; /* the same, where it is an IP address of either kind */
    bool met;               /* something came from it, or was sent to it completely */
    int dialled;            /* ofi_dial.c: a descriptor; -1: none */
    int dial_pause_ms;
    int64_t dial_ms;                /* when the next one is due; 0: nothing has waited yet */
    int64_t tried_ms;               /* when what waits was last given to the provider, until the two have met */
    rd_ofi_request_t *first, *last; /* what waits until the provider takes it */
} rd_ofi_peer_t;

/* A message that is being sent. Most short ones are copied behind their header; others are sent from their slot. */
struct rd_ofi_request {
    struct fi_context2 context; /* the provider's own, and the first member */
    rd_ofi_request_t *next;
    rd_ofi_peer_t *peer;
    rd_net_conn_t *conn; /* of a credit */
    const void *data;    /* payload that is not behind the header; NULL: there is none */
    void *desc;          /* of `data` */
    void *own_desc;      /* of the request itself */
    void *joined;        /* header and payload in one piece, from malloc; NULL: the provider takes two */
    uint32_t bytes;      /* of the payload */
    bool zcopy;          /* `data` is the user's */
    bool copies;         /* there are RD_OFI_COPY bytes behind the header */
    rd_net_header_t header;
    char copy[]; /* follows the header directly */
};

/* A buffer for whatever comes. */
typedef struct rd_ofi_buffer {
    struct fi_context2 context; /* the provider's own, and the first member */
    struct rd_ofi_buffer *next; /* the next one that the provider has not taken */
    rd_ofi_tag_t tag;
    char *at; /* the header; the payload behind it is aligned to a line */
} rd_ofi_buffer_t;

/* Memory that is registered if the provider wants that of all that it sends or receives (FI_MR_LOCAL). */
typedef struct rd_ofi_memory {
    char *base;
    size_t bytes;
    struct fid_mr *mr;
    void *desc;
} rd_ofi_memory_t;

struct rd_ofi_net {
    rd_net_t base;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    char *mirrored;           /* the communicator's memory for connections, in equal pieces */
    size_t piece;             /* bytes of a piece, which is one direction of a connection */
    size_t npieces;           /* the number of pieces */
    rd_ofi_memory_t *mirrors; /* of each; NULL: none is registered */
    rd_ofi_memory_t arena;    /* requests that copy, and buffers */
    rd_ofi_memory_t *slabs;   /* of further requests */
    int nslabs;
    rd_ofi_request_t *free, *free_copying;
    rd_ofi_buffer_t *buffers, *unposted;
    int nbuffers, nshort;     /* the short ones come first */
    size_t longest;           /* payload of the longest message */
    int flying, most;         /* requests that the provider has, and how many it may have */
    int waiting;              /* requests that wait for it */
    int outstanding;          /* data and credits that are not complete */
    bool regs, joins;         /* FI_MR_LOCAL; a message must be one piece */
    uint64_t key;             /* of the next registration */
    bool guarded;             /* rd_fd_guard_begin was called */
    rd_ofi_socket_t *sockets; /* ofi_forgotten.c: that the endpoint had when it was closed */
    int nsockets;
};

static inline rd_ofi_net_t *rd_ofi_of(rd_transport_t *transport)
{
    return (rd_ofi_net_t *)transport;
}

static inline rd_ofi_net_t *rd_ofi_net_of(const rd_net_peer_t *peer)
{
    return (rd_ofi_net_t *)peer->net;
}

static inline rd_ofi_peer_t *rd_ofi_peer_of(const rd_net_peer_t *peer)
{
    return (rd_ofi_peer_t *)(uintptr_t)peer;
}

static inline rd_ofi_peer_t *rd_ofi_peer(const rd_ofi_net_t *net, int rank)
{
    return (rd_ofi_peer_t *)net->base.peers + rank;
}

/* The peers that were used: the first of them, and the one after another; NULL: there is none. */
static inline rd_ofi_peer_t *rd_ofi_first(const rd_ofi_net_t *net)
{
    return (rd_ofi_peer_t *)net->base.used;
}

static inline rd_ofi_peer_t *rd_ofi_next(const rd_ofi_peer_t *peer)
{
    return (rd_ofi_peer_t *)peer->base.next_used;
}

/* ofi_provider.c */
/* Collective: sets net->info to what this rank goes by, of the best kind of provider that all ranks have or of the one
 * that RONDO_OFI_PROVIDER names. `address`: the address on which the bootstrap listens. `node`: its ranks share devices
 * (node/rails.h). `longest`: payload of the longest message. */
rondo_result_t rd_ofi_choose(rd_ofi_net_t *net, const rd_env_t *env, const char *address, const rd_node_t *node);
rondo_result_t rd_ofi_probe(const rd_env_t *env, const char *address, int local_rank, rd_transport_report_t *report);
const char *rd_ofi_version(void); /* "libfabric 1.17" */

/* ofi_provider.c: its devices are the host's interfaces, and what finds no buffer waits in the sender's socket. */
bool rd_ofi_is_tcp(const struct fi_info *info);
/* A socket of the kernel's listens for TCP at the address. Verbs has an IP address, too, but TCP is refused there. */
bool rd_ofi_listens(const struct fi_info *info);

/* ofi_context.c */
const char *rd_ofi_unusable(void);
/* Checks that libfabric works in this process, and begins a quiet time, which the caller ends if that succeeds. */
rondo_result_t rd_ofi_enter(rd_log_ctx_t *ctx, rd_net_quiet_t *quiet);
rondo_result_t rd_ofi_open(rd_ofi_net_t *net);
void rd_ofi_cut(rd_ofi_net_t *net);          /* after a failure: gives up all that is being sent */
void rd_ofi_mirrors_back(rd_ofi_net_t *net); /* the communicator's memory, in which nothing is being sent any more */
/* Finds the provider's descriptor for a slot of the communicator's memory that is about to be sent from. */
rondo_result_t rd_ofi_mirror(rd_ofi_net_t *net, const char *slot, void **desc);
void rd_ofi_close(rd_ofi_net_t *net);

/* ofi_forgotten.c: before the endpoint is closed, and when everything is. */
void rd_ofi_sockets_note(rd_ofi_net_t *net);
void rd_ofi_sockets_close(rd_ofi_net_t *net);
rd_ofi_request_t *rd_ofi_request(rd_ofi_net_t *net, bool copying); /* NULL: there is none */

/* ofi_exchange.c */
/* Collective, also for a rank whose own rd_ofi_open failed with `opened`, so that all ranks learn of it. */
rondo_result_t rd_ofi_exchange(rd_ofi_net_t *net, rondo_result_t opened);

/* ofi_dial.c. The first is called while something waits for the peer. */
void rd_ofi_dial(rd_ofi_peer_t *peer, int64_t now_ms);
void rd_ofi_dial_end(rd_ofi_peer_t *peer);

/* ofi_send.c */
void rd_ofi_peer_lost(rd_ofi_peer_t *peer, const char *why);
/* Returns a request with its header filled; NULL: there is no memory, and the stop word says so. */
rd_ofi_request_t *rd_ofi_message(rd_ofi_peer_t *peer, rd_net_kind_t kind, int channel, bool copying);
/* Sends it, now or when the provider takes it; nothing is sent to a peer that is lost, and that is no error here: the
 * verdict is reported by the stop word. */
void rd_ofi_push(rd_ofi_request_t *request);
bool rd_ofi_say(rd_net_peer_t *peer, rd_net_conn_t *conn, const rd_net_header_t *header); /* rd_net_library_t's */
void rd_ofi_answer(rd_net_peer_t *peer);
void rd_ofi_push_waiting(rd_ofi_net_t *net);
void rd_ofi_complete(rd_ofi_request_t *request); /* it has left, or never will */
void rd_ofi_release(rd_ofi_request_t *request);  /* one that was not pushed */

/* ofi_net.c */
extern const rd_net_library_t rd_ofi_library;

/* ofi_receive.c */
bool rd_ofi_poll(rd_net_t *net);     /* rd_net_library_t's */
void rd_ofi_post(rd_ofi_net_t *net); /* posts the buffers */

/* ofi_disconnect.c */
void rd_ofi_cancel(rd_transport_t *transport);
void rd_ofi_leave(rd_transport_t *transport);
void rd_ofi_destroy(rd_transport_t *transport);

#endif
