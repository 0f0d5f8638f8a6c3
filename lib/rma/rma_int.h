/* Shared by the files of this folder. */
#ifndef RD_RMA_RMA_INT_H
#define RD_RMA_RMA_INT_H

#include "rma/rma.h"
#include "transport/shm/slots.h"

/* Requests go by channel 0 and answers by channel 1. An answer waits for a credit that its receiver gives whatever it
 * waits for itself, because it has room for every answer; so the two cannot wait for each other.
 *
 *   request, answer:   | head | up to RD_RMA_INLINE bytes |     one message of RD_RMA_FIRST bytes, always
 *   more bytes:        | as many as a slot has |  ...           only if they are more than RD_RMA_INLINE
 *
 * So both ends know the length of each message before it comes. */
#define RD_RMA_REQUESTS 0
#define RD_RMA_ANSWERS 1
#define RD_RMA_INLINE 256

typedef enum {
    RD_RMA_HEAD_PUT = 1,
    RD_RMA_HEAD_SIGNAL,
    RD_RMA_HEAD_GET,
    RD_RMA_HEAD_FLUSH,
    RD_RMA_HEAD_DONE
} rd_rma_head_kind_t;

typedef struct rd_rma_head {
    uint32_t kind;
    uint32_t window;
    uint64_t offset, bytes;
    uint64_t id;     /* of what is answered */
    int32_t context; /* with `signal` >= 0: the counter that is incremented after the bytes */
    int32_t signal;
    uint64_t reserved[3];
} rd_rma_head_t;

typedef struct rd_rma_first {
    rd_rma_head_t head;
    char data[RD_RMA_INLINE];
} rd_rma_first_t;
#define RD_RMA_FIRST sizeof(rd_rma_first_t)

/* A stream of messages that comes from a rank: the head of what is under way, and how much of it has come. */
typedef struct rd_rma_stream {
    rd_rma_head_t head; /* its kind is 0: nothing is under way */
    size_t done;
} rd_rma_stream_t;

struct rd_rma_peer {
    rd_rma_stream_t requests, answers;
    int due;                  /* answers to flushes */
    const rd_rma_op_t *sends; /* the operation that has posted its head and not yet all of its bytes; NULL: none */
    /* What this rank owes: nothing more is taken from the peer before it is posted. */
    rd_rma_head_t owed; /* its kind is 0: nothing */
    bool owed_headed;
    size_t owed_done;
};

/* ---- rma_local.c: what is a matter of memory ---- */

/* Adds to a counter. Release: who sees it sees what was stored before. */
void rd_rma_count(const rd_rma_t *rma, int target, int context, int signal);
_Atomic uint64_t *rd_rma_counter(const rd_rma_t *rma, int target, int origin, int context, int signal);
/* Where `origin` says what the kernel copies for it in the memory of `target`. It lies beside the counters. */
rd_room_t *rd_rma_room(const rd_rma_t *rma, int target, int origin);
/* Copies to or from a part that is not reached by messages. */
rondo_result_t rd_rma_copy(rd_rma_t *rma, const rd_rma_op_t *op);
/* Copies into or out of this rank's own part. An aligned word is stored, or loaded, at once. */
void rd_rma_words(char *to, const char *from, size_t bytes);
/* Returns true when all signals were there, which are then consumed. */
bool rd_rma_consume(rd_rma_t *rma, rd_rma_op_t *op);

/* ---- rma_message.c: the origin's side of messages ---- */

/* Posts what there is space for. Returns true if something was posted. */
bool rd_rma_post(rd_rma_t *rma, rd_rma_op_t *op, rondo_result_t *result);
/* Posts a message if there is space. */
bool rd_rma_post_bytes(rd_send_t *to, const void *bytes, size_t n, rondo_result_t *result);
static inline rd_send_t *rd_rma_send(const rd_rma_t *rma, int channel, int peer)
{
    return &rma->net.conns->sends[(size_t)channel * (size_t)rma->team->nranks + (size_t)peer];
}

static inline rd_recv_t *rd_rma_recv(const rd_rma_t *rma, int channel, int peer)
{
    return &rma->net.conns->recvs[(size_t)channel * (size_t)rma->team->nranks + (size_t)peer];
}

/* ---- rma_serve.c, rma_reply.c: what comes ---- */

/* Serves the requests of a peer, as far as they have come. Returns true if something has. */
bool rd_rma_serve_requests(rd_rma_t *rma, int peer, rondo_result_t *result);
/* Takes the answers of a peer. */
bool rd_rma_take_answers(rd_rma_t *rma, int peer, rondo_result_t *result);
/* Returns the window of that number; NULL: there is none. */
rd_rma_window_t *rd_rma_numbered(const rd_rma_t *rma, uint32_t number);

#endif
