/* The transport of socketpair_transport.c: what its two files share. */
#ifndef TEST_TRANSPORT_SOCKETPAIR_H
#define TEST_TRANSPORT_SOCKETPAIR_H

#include "transport/conns.h"
#include "transport/transport.h"

#define PACKET ((size_t)32 << 10) /* bytes of a message in one packet */

typedef enum { HELLO = 1, DATA, CREDIT, BYE } kind_t;

typedef struct header {
    unsigned char token[16]; /* of the communicator */
    uint32_t rank;           /* of the sender */
    uint16_t channel;
    uint8_t kind, zero;
    uint64_t number; /* of the message; credit: messages consumed; farewell: a rondo_result_t */
    uint64_t bytes;  /* of the whole message; farewell: the failed rank plus one, and in the upper half the reporter */
    uint64_t offset; /* of this packet in the message */
} header_t;

/* A message that the socket has yet to take. */
typedef struct out {
    struct out *next;
    header_t header;
    const char *data;
    bool zcopy; /* `data` is the user's */
    char own[]; /* what was the user's, after a cancellation */
} out_t;

typedef struct link {
    struct peer *peer;
    int channel;
    rd_send_t *send;
    rd_recv_t *recv;
    uint64_t next;     /* the message that comes, or is coming */
    size_t got;        /* bytes of it */
    char *to;          /* where they lie */
    uint64_t credited; /* consumed messages of which the sender has been told */
    bool credit_due;   /* it is to be told of more */
} link_t;

typedef struct peer {
    struct sp *sp;
    int rank, fd; /* -1: none, or it is closed */
    link_t links[RD_CHANNELS];
    out_t *first, *last;
    bool deaf; /* it takes nothing, or is not reached by a socket */
    bool parted, left;
    rondo_result_t farewell;
    int64_t next_ns; /* with a limit: the next packet of data may go then */
    int64_t lost_ms; /* when its socket ended without a farewell; 0: it has not */
} peer_t;

typedef struct sp {
    rd_transport_t base;
    rd_boot_t *boot;
    rd_log_ctx_t *ctx;
    rd_stop_t *stop;
    int rank, nranks;
    unsigned char token[16];
    bool moved;
    char packet[sizeof(header_t) + PACKET + 1]; /* one byte more than may come */
    peer_t peers[];                             /* of all ranks; `fd` is -1 for those of this node */
} sp_t;

/* How many bytes go from one rank to another in a second; 0: as many as the socket takes. NULL: all links are so. */
extern uint64_t (*sp_limit)(int from, int to);
/* Is that message lost on its way, though the sender takes it for sent? Then so must be those that follow it, or the
 * receiver sees at once that one is missing. NULL: none is. */
extern bool (*sp_lose)(int from, int to, uint64_t number);

header_t sp_header(const sp_t *sp, kind_t kind, int channel, uint64_t number, uint64_t bytes);
/* Sends one packet. Returns false if the socket takes none now, or no more. */
bool sp_packet_send(peer_t *peer, const header_t *header, const void *data, size_t bytes);
/* Connects the rank to all others of other nodes. If it fails, the caller closes the sockets that there are. */
rondo_result_t sp_wire_up(sp_t *sp, const rd_transport_args_t *args);

#endif
