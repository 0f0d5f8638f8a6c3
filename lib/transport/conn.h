/* Connections of the host executor: each is one direction between two ranks on one channel.
 *
 * An inbox lies in the receiver's memory; credits go back into the sender's memory. There are two regions, one for each
 * protocol:
 *
 *   LL      a ring of 64-byte lines, each with up to 56 bytes of data and a sequence number (transport/shm/ll.h). A
 *           message takes ceil(bytes / 56) lines; the sequence is the line's number since creation, plus one, and the
 *           signature of the call, so a line validates itself.
 *   Simple  a ring of slots that hold plain data; then the count of messages is stored with release. Beside it lie the
 *           signatures of the calls that the last messages belong to.
 *
 * Each side counts in its own memory (rd_send_t, rd_recv_t). The counts continue over all operations, so a plan holds
 * none. On a mirrored connection the sender's inbox is a mirror in its own memory, and a transport (transport.h)
 * carries each message, by the Simple protocol only. There a message uses the ring whose slots fit its length, and each
 * message takes the next slot since the inbox was last empty. Rings of shorter slots have more of them, and a sender
 * may be ahead by as many messages as the ring of the next message has slots. */
#ifndef RD_TRANSPORT_CONN_H
#define RD_TRANSPORT_CONN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/proto.h"

#define RD_LINE 64
#define RD_LL_LINE_DATA 56
#define RD_SHORT 2048 /* mirrored: messages up to this are copied into their slot, never sent zero-copy */
#define RD_RINGS 4    /* between nodes: rings of shorter slots, besides the ring of long ones */

#define RD_WHOLES 8     /* messages whose length is said in a line beside that of the count of messages */
#define RD_SIGNS_NEAR 8 /* messages whose signatures lie in the line of that count */

/* Where the receiver wants the message that begins with the line of sequence `number`: cma/room.h. The kernel reads the
 * first two fields as a struct iovec. */
typedef struct rd_room {
    _Atomic uintptr_t address;
    _Atomic size_t bytes; /* 0: there is no room, or no more */
    _Atomic uint64_t number;
    _Atomic int32_t writer; /* the sender's thread that may be writing there; stored by the sender */
} rd_room_t;

/* Beside the count of consumed lines lies `asked`. It is the sequence of a line: the receiver asks for what
 * that line posts, from byte `asked_at` on, by slots, because the kernel refuses it to read the sender's memory. There
 * lies the `room` for a message, too. Beside the count of published messages lie the signatures of the last of them,
 * where they have room: the receiver finds both in the one line that it polls. */
typedef struct rd_counter {
    _Alignas(RD_LINE) _Atomic uint64_t value;
    union {
        struct {
            _Atomic uint64_t asked;
            uint64_t asked_at; /* stored before `asked` is released */
            rd_room_t room;
        };
        _Atomic uint32_t signs[RD_SIGNS_NEAR]; /* stored before the count is released */
    };
} rd_counter_t;
_Static_assert(sizeof(rd_counter_t) == RD_LINE, "a counter is one line");

struct rd_transport_ops;

typedef struct rd_ring {
    char *slots;
    uint32_t mask;
    uint32_t bytes; /* bytes of a slot; 0: there is no such ring */
} rd_ring_t;

typedef struct rd_send {
    char *slots;           /* the receiver's ring of slots, or this rank's mirror of it */
    rd_counter_t *tail;    /* messages published; polled by the receiver */
    rd_counter_t *head;    /* messages consumed; in this rank's memory, written by the receiver */
    char *lines;           /* the receiver's LL ring */
    rd_counter_t *ll_head; /* lines consumed */
    uint64_t sent, credit; /* messages published; the last value of head that was seen */
    /* The number of the next message's slot. It is that of the message, except in a mirror: there the transport has as
     * a rule copied what lies in the slot when it takes a message, and the same slot, still in the cache, is used
     * again. */
    uint64_t slot;
    uint64_t ll_sent, ll_credit;
    uint64_t ll_posted;      /* ll_sent after the last post: the peer has read all posts when ll_credit reaches it */
    uint64_t answered;       /* the last value of `asked` that was answered completely */
    uint64_t answering;      /* the one that is being answered */
    uint64_t answer_at;      /* the next byte of that */
    _Atomic uint32_t *signs; /* signatures of the messages in slots: of message m at m & signs_mask */
    uint32_t signs_mask;
    uint32_t slots_mask, lines_mask;
    uint32_t slot_bytes;
    rd_ring_t shorter[RD_RINGS]; /* the shortest first */
    int32_t peer;
    int32_t nt_left, nt_hold; /* exec/host/nt_store.h: messages to be written past the caches; < 0: messages to be
                                 written plainly; 0: measure */
    bool mirrored;
    const struct rd_transport_ops *ops; /* of the transport of a mirrored connection */
    void *link;                         /* that transport's own record */
    /* Set if the receiver may give room: puts the next message, of `bytes`, there. Returns 0, -1 if the receiver's
     * process is gone, or 1 if it has to read the message. */
    int (*put)(struct rd_send *to, const void *from, size_t bytes);
    bool put_refused;        /* by the kernel: it is not tried again */
    int32_t pid;             /* the receiver's process */
    _Atomic uint64_t *whole; /* what announce.h says of message m of a node, at m % RD_WHOLES */
} rd_send_t;

typedef struct rd_recv {
    char *slots;
    rd_counter_t *tail; /* in this rank's memory */
    rd_counter_t *head; /* in the sender's memory */
    char *lines;
    rd_counter_t *ll_head;
    uint64_t received, seen; /* messages consumed; the last value of tail that was seen */
    /* Mirrored: where the step that waits for message `received` wants its bytes, so that they need not pass through a
     * slot. NULL: it is not known yet. Only a message of the call with this signature may go there. */
    char *dest;
    uint32_t dest_sign;
    size_t dest_bytes;
    int delivered; /* they have been put there */
    /* Mirrored: the number of the message that lies in slot 0. A message that finds the inbox empty goes there, because
     * that slot is still in the cache. It is counted like `received`, whose low bits give the slot. */
    uint32_t base;
    uint64_t ll_received, ll_returned;
    _Atomic uint32_t *signs; /* NULL: they do not come along */
    uint32_t signs_mask;
    uint32_t slots_mask, lines_mask;
    uint32_t slot_bytes;
    rd_ring_t shorter[RD_RINGS];
    int32_t peer;
    bool mirrored;
    const struct rd_transport_ops *ops;
    void *link;
    /* Set if the sender may post addresses in place of bytes: copies `bytes` from `address` in its memory. Returns 0,
     * -1 if the sender's process is gone, or 1 if the kernel refuses it. NULL: its addresses are valid in this process.
     */
    int (*read)(const struct rd_recv *from, void *to, uint64_t address, size_t bytes);
    bool gives_room;           /* it has given room, which has to be taken back after a failure */
    bool refused;              /* the kernel has refused it: slots carry what is posted */
    uint64_t refused_at;       /* of the post that is being taken by slots: the next byte */
    int32_t pid;               /* the sender's process */
    const _Atomic int *failed; /* the sender's mark: if set, what it has posted may have changed meanwhile */
    _Atomic uint32_t *reading; /* this rank's own mark, for which a sender in this process waits; NULL: the sender is in
                                  another process */
    _Atomic uint64_t *whole;   /* what announce.h says of message m of a node, at m % RD_WHOLES */
    /* Where signatures lie beside the count: those of the messages that have been seen, for `signs`. They are kept when
     * the count is read, because the sender writes that line again with its next message. */
    bool keeps_signs;
    _Atomic uint32_t kept_signs[RD_SIGNS_NEAR];
} rd_recv_t;

/* Returns the ring for a message of `bytes`. It depends on the length alone, so both ends find the same ring. */
static inline rd_ring_t rd_ring_for(const rd_ring_t *shorter, char *slots, uint32_t mask, uint32_t slot_bytes,
                                    size_t bytes)
{
    for (int i = 0; i < RD_RINGS && shorter[0].bytes; i++) {
        if (bytes <= shorter[i].bytes)
            return shorter[i];
    }
    return (rd_ring_t){slots, mask, slot_bytes};
}

static inline rd_ring_t rd_send_ring(const rd_send_t *s, size_t bytes)
{
    return rd_ring_for(s->shorter, s->slots, s->slots_mask, s->slot_bytes, bytes);
}

static inline rd_ring_t rd_recv_ring(const rd_recv_t *r, size_t bytes)
{
    return rd_ring_for(r->shorter, r->slots, r->slots_mask, r->slot_bytes, bytes);
}

static inline char *rd_ring_slot(rd_ring_t ring, uint64_t number)
{
    return ring.slots + (number & ring.mask) * (size_t)ring.bytes;
}

/* Returns where message `number`, of `bytes`, lies or will lie. */
static inline char *rd_recv_slot(const rd_recv_t *r, size_t bytes, uint64_t number)
{
    return rd_ring_slot(rd_recv_ring(r, bytes), number - r->base);
}

#endif
