/* Messages straight from and to the caller's memory, as ucx_gdr.c, rndv.c and rkey.c share them. */
#ifndef RD_UCX_UCX_GDR_H
#define RD_UCX_UCX_GDR_H

#include "ucx/ucx.h"

/* A sender's next one may overtake what ends the one before, so the receiver has more places. */
#define RD_UCX_PLACES (2 * RD_NET_DIRECT)
#define RD_UCX_OFFERS 8      /* messages that are offered together, at most */
#define RD_UCX_KEY_MOST 4096 /* bytes of a key; memory with a longer one is announced */

/* By what a peer fetches from this rank's memory, or this rank from a peer's. */
typedef struct rd_ucx_key {
    struct rd_ucx_key *next;
    int users;             /* messages */
    rd_net_memory_t whole; /* own: the memory, which UCX has mapped */
    ucp_mem_h memh;
    ucp_rkey_h rkey; /* a peer's, when first used */
    void *packed;
    size_t bytes;
} rd_ucx_rkey_t;

typedef struct rd_ucx_message {
    rd_ucx_peer_t *peer;
    rd_net_direct_t ask; /* pending NULL: nobody has requested, or it was taken back */
    uint64_t number;     /* the next one that has this place */
    void *announced;     /* a receive: UCX's word for the bytes; NULL: it has not come, or they are being fetched */
    rd_ucx_rkey_t *key;  /* it is offered, or is about to be; NULL: it is not */
    uint64_t address;    /* a receive that is offered: where it lies there */
    int flying;          /* UCX has the memory, or the peer the key to it */
    rd_ucx_header_t header;
} rd_ucx_message_t;

_Static_assert(RD_UCX_PLACES <= 64, "a bit for each place");

struct rd_ucx_gdr {
    uint64_t sent, requested;
    uint64_t said; /* of those sent, the peer has been told of so many; the next ones are offered together */
    int pending;   /* messages that somebody waits for */
    int fetching;  /* offered ones, by UCX */
    uint64_t owed; /* bit i: what place i held was fetched, and the peer has not heard of it */
    int telling;   /* `told` is on its way */
    rd_ucx_header_t told;
    rd_ucx_rkey_t *keys; /* the peer's, the last used one first */
    rd_ucx_message_t sends[RD_UCX_PLACES], recvs[RD_UCX_PLACES];
};

/* ucx_gdr.c */
rd_ucx_gdr_t *rd_ucx_gdr_of(rd_ucx_peer_t *peer); /* NULL: no memory */
void rd_ucx_flies(rd_ucx_message_t *message, int flying);
void rd_ucx_over(rd_ucx_message_t *message);
/* What is said to have been sent must be as long as what was asked for. */
rondo_result_t rd_ucx_lengths(const rd_ucx_message_t *message);

/* rndv.c */
int rd_ucx_may_rndv(const rd_ucx_net_t *net, const rd_net_direct_t *ask);
rondo_result_t rd_ucx_rts(rd_ucx_peer_t *peer); /* all that is not said yet */
rondo_result_t rd_ucx_get(rd_ucx_message_t *message);

/* rkey.c; each is a use of the key, and NULL: there is none */
rd_ucx_rkey_t *rd_ucx_rkey_own(rd_ucx_net_t *net, const rd_net_memory_t *whole, int device);
rd_ucx_rkey_t *rd_ucx_rkey_of(rd_ucx_net_t *net, rd_ucx_gdr_t *direct, const void *packed, size_t bytes);
ucs_status_t rd_ucx_rkey_unpack(rd_ucx_peer_t *peer, rd_ucx_rkey_t *key);
void rd_ucx_rkey_release(rd_ucx_net_t *net, rd_ucx_rkey_t **key);
void rd_ucx_keys_free(rd_ucx_net_t *net, rd_ucx_rkey_t **keys);

#endif
