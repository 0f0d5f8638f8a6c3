/* GDR messages: from and to the caller's memory. This header is shared by ucx_gdr.c, rndv.c and rkey.c. */
#ifndef RD_UCX_UCX_GDR_H
#define RD_UCX_UCX_GDR_H

#include <stdbool.h>

#include "ucx/ucx.h"

/* A sender's next message may overtake what completes the one before, so the receiver has more slots. */
#define RD_UCX_GDR_SLOTS (2 * RD_GDR_MOST)
#define RD_UCX_OFFERS 8      /* the most messages that are offered together */
#define RD_UCX_KEY_MOST 4096 /* bytes of a key; messages in memory with a longer key are announced by UCX */

/* A key by which a peer fetches from this rank's memory, or this rank from a peer's. */
typedef struct rd_ucx_key {
    struct rd_ucx_key *next;
    int users;             /* messages that use it */
    rd_net_memory_t whole; /* for an own key: the memory, which UCX has mapped */
    ucp_mem_h memh;
    ucp_rkey_h rkey; /* for a peer's key: unpacked when first used */
    void *packed;
    size_t bytes;
} rd_ucx_rkey_t;

typedef struct rd_ucx_message {
    rd_ucx_peer_t *peer;
    rd_gdr_message_t ask; /* pending NULL: nobody has requested the message, or it was taken back */
    uint64_t number;      /* the number of the next message that uses this slot */
    void *
        announced; /* a receive: UCX's descriptor of the bytes; NULL: it has not come, or the bytes are being fetched */
    rd_ucx_rkey_t *key; /* set if the message is offered, or is about to be; NULL: it is not */
    uint64_t address;   /* a receive that is offered: its address in the peer's memory */
    int flying;         /* nonzero: UCX has the memory, or the peer has the key to it */
    rd_net_header_t header;
} rd_ucx_message_t;

_Static_assert(RD_UCX_GDR_SLOTS <= 64, "a bit for each slot");

struct rd_ucx_gdr {
    uint64_t sent, requested;
    uint64_t rts_sent; /* those of `sent` for which an RTS went out; the next ones are offered together */
    int pending;       /* messages that a caller waits for */
    int fetching;      /* offered messages that UCX is fetching */
    uint64_t owed;     /* bit i: the message in slot i was fetched, and its ACK is yet to be sent */
    int acking;        /* `ack` is being sent */
    rd_net_header_t ack;
    rd_ucx_rkey_t *keys; /* the peer's keys, the last used one first */
    rd_ucx_message_t sends[RD_UCX_GDR_SLOTS], recvs[RD_UCX_GDR_SLOTS];
};

/* ucx_gdr.c */
rd_ucx_gdr_t *rd_ucx_gdr_of(rd_ucx_peer_t *peer); /* returns NULL if there is no memory */
void rd_ucx_flies(rd_ucx_message_t *message, int flying);
void rd_ucx_over(rd_ucx_message_t *message);
/* Checks that the message that the sender announced is as long as the one that was requested. */
rondo_result_t rd_ucx_lengths(const rd_ucx_message_t *message);

/* rndv.c */
bool rd_ucx_may_rndv(const rd_ucx_net_t *net, const rd_gdr_message_t *ask);
rondo_result_t rd_ucx_rts(rd_ucx_peer_t *peer); /* sends all offers that have not been sent yet */
rondo_result_t rd_ucx_get(rd_ucx_message_t *message);

/* rkey.c. Each key that is returned counts as used once more; NULL: there is none. */
rd_ucx_rkey_t *rd_ucx_rkey_own(rd_ucx_net_t *net, const rd_net_memory_t *whole, int device);
rd_ucx_rkey_t *rd_ucx_rkey_of(rd_ucx_net_t *net, rd_ucx_gdr_t *gdr, const void *packed, size_t bytes);
ucs_status_t rd_ucx_rkey_unpack(rd_ucx_peer_t *peer, rd_ucx_rkey_t *key);
void rd_ucx_rkey_release(rd_ucx_net_t *net, rd_ucx_rkey_t **key);
void rd_ucx_keys_free(rd_ucx_net_t *net, rd_ucx_rkey_t **keys);

#endif
