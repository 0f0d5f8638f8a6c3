/* The length of a message travels with it where its two ends may give different ones: in sends and receives, and in
 * the blocks that two ranks alone know of (alltoallv, gatherv, scatterv). The receiver compares before it copies a
 * byte, so what belongs to another message reaches nobody's buffer.
 *
 *   lines            a message of one slice has its bytes plus one in the tag of each line (shm/ll.h): nothing more is
 *                    sent, and the comparison is that of the line's number
 *   slots on a node  the length lies in the cache line beside that of the count of messages, and is published by that
 *                    count with the first slot
 *   all other ways   an announcement goes ahead: on a node one line with the tag RD_LL_ANNOUNCED, between nodes a short
 *                    message, which the transport may send in one piece with what follows
 *
 * On a node every such message begins with the next line of its connection, or takes its number: one that begins in a
 * slot says which number it has taken, and no line of that number comes. So a receiver finds what has come instead
 * of its own, by whatever protocol, and nothing overtakes anything. Between nodes every one begins with an
 * announcement. */
#ifndef RD_TRANSPORT_ANNOUNCE_H
#define RD_TRANSPORT_ANNOUNCE_H

#include <string.h>

#include "transport/shm/ll.h"
#include "transport/shm/slots.h"

#define RD_WHOLE_AT 48 /* a word of `whole`: the bytes, and above them the lower bits of the number of a line */
#define RD_MARKED_EVERY (UINT64_C(1) << 16) /* numbers of lines */

/* The next number is taken without its line being written, so that an older one stays there, which in the end would
 * have its number again, 2^32 later. So once in a while each line that is passed over gets a sequence that no line has
 * there. Returns false if the receiver may not have read the older one yet. */
static inline bool rd_announce_pass_line(rd_send_t *s)
{
    char *line = s->lines + (s->ll_sent & s->lines_mask) * RD_LINE;

    if ((s->ll_sent & (RD_MARKED_EVERY - 1)) > s->lines_mask)
        return true;
    if (!rd_ll_may_send(s, 1))
        return false;
    atomic_store_explicit((_Atomic uint64_t *)(void *)(line + RD_LINE - 8), rd_ll_sequence(0, s->ll_sent - 1),
                          memory_order_relaxed);
    return true;
}

/* Says the length of a message beside the count with which its first slot is about to be published. Returns false if
 * there is no space for it yet. */
static inline bool rd_announce_in_slot(rd_send_t *s, uint64_t bytes)
{
    if (s->sent - s->credit >= RD_WHOLES)
        s->credit = atomic_load_explicit(&s->head->value, memory_order_acquire);
    if (s->sent - s->credit >= RD_WHOLES || !rd_slot_may_send(s, 1) || !rd_announce_pass_line(s))
        return false;
    atomic_store_explicit(&s->whole[s->sent % RD_WHOLES], bytes | s->ll_sent << RD_WHOLE_AT, memory_order_relaxed);
    s->ll_sent++;
    return true;
}

/* Returns true if a message that begins in a slot is the next one: its bytes through *sent; of another call:
 * UINT64_MAX. A slot must have come. */
static inline bool rd_announce_slot_next(const rd_recv_t *r, uint64_t sign, uint64_t *sent)
{
    uint64_t word = atomic_load_explicit(&r->whole[r->received % RD_WHOLES], memory_order_relaxed);

    *sent = rd_slot_signed(r, sign) ? word & ((UINT64_C(1) << RD_WHOLE_AT) - 1) : UINT64_MAX;
    return word >> RD_WHOLE_AT == (r->ll_received & UINT64_MAX >> RD_WHOLE_AT);
}

/* Returns the bytes of a message whose lines have this tag. */
static inline uint64_t rd_announce_of_tag(uint64_t tag)
{
    return tag - 1 <= RD_LL_MOST ? tag - 1 : UINT64_MAX;
}

/* Returns true if a line is the next message: its bytes through *sent. A message of another operation has UINT64_MAX
 * bytes. */
static inline bool rd_announce_line_next(const rd_recv_t *r, uint64_t sign, uint64_t *sent)
{
    uint64_t tag;

    if (!rd_ll_next(r, sign, &tag, sent))
        return false;
    if (tag != RD_LL_ANNOUNCED)
        *sent = rd_announce_of_tag(tag);
    return true;
}

/* Returns the bytes of the message that has come in place of one on lines with the tag and the signature of this call:
 * through *sent. False: nothing has come, or what was expected. */
static inline bool rd_announce_other(rd_recv_t *r, uint64_t sign, uint64_t tag, uint64_t *sent)
{
    bool in_slot = rd_slot_there(r); /* first: the lines that were written before it are seen then */
    uint64_t there, data;

    if (!rd_ll_next(r, sign, &there, &data))
        return in_slot && rd_announce_slot_next(r, sign, sent);
    *sent = there == RD_LL_ANNOUNCED ? data : rd_announce_of_tag(there);
    return rd_ll_tag(there) != tag;
}

/* Sends the announcement of a message. Returns false if there is no space for it yet. */
static inline bool rd_announce(rd_send_t *s, uint64_t sign, uint64_t bytes, rondo_result_t *result)
{
    if (!s->mirrored) {
        if (!rd_ll_may_send(s, 1))
            return false;
        rd_ll_send(s, (const char *)&bytes, sizeof bytes, sign + rd_ll_tag(RD_LL_ANNOUNCED));
        return true;
    }
    if (!rd_slot_may_send(s, sizeof bytes))
        return false;
    memcpy(rd_slot_to_fill(s, sizeof bytes), &bytes, sizeof bytes);
    *result = rd_slot_publish(s, sign, sizeof bytes, bytes != 0);
    return true;
}

/* Takes what says the length of the next message, which is to begin in a slot, or in a line if that is what has come.
 * Returns false if nothing has. */
static inline bool rd_announce_slot_take(rd_recv_t *r, uint64_t sign, uint64_t *sent)
{
    if (!rd_slot_there(r))
        return rd_announce_line_next(r, sign, sent);
    if (rd_announce_slot_next(r, sign, sent)) {
        rd_ll_consume(r, 1);
        return true;
    }
    if (!rd_announce_line_next(r, sign, sent))
        *sent = UINT64_MAX;
    return true;
}

/* Takes the announcement of the next message. Returns false if none has come. */
static inline bool rd_announce_take(rd_recv_t *r, uint64_t sign, uint64_t *sent, rondo_result_t *result)
{
    if (!r->mirrored) {
        bool in_slot = rd_slot_there(r);
        uint64_t tag;
        if (!rd_ll_next(r, sign, &tag, sent))
            return in_slot && rd_announce_slot_next(r, sign, sent);
        if (tag == RD_LL_ANNOUNCED)
            rd_ll_consume(r, sizeof *sent);
        else
            *sent = rd_announce_of_tag(tag);
        return true;
    }
    if (!rd_slot_there(r))
        return false;
    if (!rd_slot_signed(r, sign)) {
        *sent = UINT64_MAX;
        return true;
    }
    memcpy(sent, rd_slot_to_read(r, sizeof *sent), sizeof *sent);
    *result = rd_slot_return(r, sizeof *sent);
    return true;
}

#endif
