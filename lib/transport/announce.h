/* The length of a message travels with it where its two ends may give different ones: in sends and receives, and in
 * the blocks that two ranks alone know of (alltoallv, gatherv, scatterv). The receiver compares before it copies a
 * byte, so what belongs to another message reaches nobody's buffer.
 *
 *   lines            a message of one slice has its bytes plus one in the tag of each line (shm/ll.h): nothing more is
 *                    sent, and the comparison is that of the line's number
 *   all other ways   an announcement goes ahead: on a node one line with the tag RD_LL_ANNOUNCED, between nodes a short
 *                    message, which the transport may send in one piece with what follows
 *
 * So on a node every such message begins with a line, and a receiver finds what has come instead of its own, by
 * whatever protocol; between nodes every one begins with an announcement. */
#ifndef RD_TRANSPORT_ANNOUNCE_H
#define RD_TRANSPORT_ANNOUNCE_H

#include <string.h>

#include "transport/shm/ll.h"
#include "transport/shm/slots.h"

/* Returns the bytes of the message that has come on lines in place of one with `tag`: through *sent. False: nothing has
 * come, or what was expected. A message of another operation has UINT64_MAX bytes. */
static inline bool rd_announce_other(const rd_recv_t *r, uint64_t tag, uint64_t *sent)
{
    uint64_t there, data;

    if (!rd_ll_next(r, &there, &data) || rd_ll_tag(there) == tag)
        return false;
    *sent = there == RD_LL_ANNOUNCED ? data : there - 1;
    return true;
}

/* Sends the announcement of a message. Returns false if there is no space for it yet. */
static inline bool rd_announce(rd_send_t *s, uint64_t bytes, rondo_result_t *result)
{
    if (!s->mirrored) {
        if (!rd_ll_may_send(s, 1))
            return false;
        rd_ll_send(s, (const char *)&bytes, sizeof bytes, rd_ll_tag(RD_LL_ANNOUNCED));
        return true;
    }
    if (!rd_slot_may_send(s, sizeof bytes))
        return false;
    memcpy(rd_slot_to_fill(s, sizeof bytes), &bytes, sizeof bytes);
    *result = rd_slot_publish(s, sizeof bytes, bytes != 0);
    return true;
}

/* Takes the announcement of the next message. Returns false if none has come. */
static inline bool rd_announce_take(rd_recv_t *r, uint64_t *sent, rondo_result_t *result)
{
    if (!r->mirrored) {
        uint64_t tag;
        if (!rd_ll_next(r, &tag, sent))
            return false;
        if (tag == RD_LL_ANNOUNCED)
            rd_ll_consume(r, sizeof *sent);
        else
            *sent = tag - 1;
        return true;
    }
    if (!rd_slot_arrived(r))
        return false;
    memcpy(sent, rd_slot_to_read(r, sizeof *sent), sizeof *sent);
    *result = rd_slot_return(r, sizeof *sent);
    return true;
}

#endif
