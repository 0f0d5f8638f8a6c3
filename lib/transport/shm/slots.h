/* Slots of the Simple protocol: they hold plain data; then the count of messages is stored with release. See
 * transport/conn.h. Each message has the signature of its call (monitor/called.h), 0 for sends and receives, beside the
 * count, and is not taken for another call. */
#ifndef RD_TRANSPORT_SHM_SLOTS_H
#define RD_TRANSPORT_SHM_SLOTS_H

#include <stdbool.h>

#include "transport/transport.h"

static inline bool rd_slot_may_send(rd_send_t *s, size_t bytes)
{
    uint32_t mask = rd_send_ring(s, bytes).mask;

    if (s->sent - s->credit <= mask)
        return true;
    s->credit = atomic_load_explicit(&s->head->value, memory_order_acquire);
    return s->sent - s->credit <= mask;
}

static inline char *rd_slot_to_fill(const rd_send_t *s, size_t bytes)
{
    return rd_ring_slot(rd_send_ring(s, bytes), s->slot);
}

static inline void rd_slot_sign(const rd_send_t *s, uint64_t sign)
{
    atomic_store_explicit(&s->signs[s->sent & s->signs_mask], (uint32_t)(sign >> 32), memory_order_relaxed);
}

/* Release: a reader that sees the count sees the slot's bytes, and its signature. `more`: as in `post` of transport.h,
 * here and below. */
static inline rondo_result_t rd_slot_publish(rd_send_t *s, uint64_t sign, size_t bytes, int more)
{
    rd_slot_sign(s, sign);
    s->sent++;
    atomic_store_explicit(&s->tail->value, s->sent, memory_order_release);
    if (s->mirrored)
        return s->ops->post(s, bytes, more);
    s->slot = s->sent;
    return RONDO_SUCCESS;
}

static inline bool rd_slot_may_zcopy(const rd_send_t *s)
{
    return s->mirrored && s->ops->post_zcopy;
}

/* The same for bytes that lie, and do not change, in the user's memory. To be called only if rd_slot_may_zcopy. */
static inline rondo_result_t rd_slot_zcopy(rd_send_t *s, uint64_t sign, const void *data, size_t bytes, int more)
{
    rd_slot_sign(s, sign);
    s->sent++;
    atomic_store_explicit(&s->tail->value, s->sent, memory_order_relaxed);
    return s->ops->post_zcopy(s, data, bytes, more);
}

static inline void rd_slot_keep_sign(rd_recv_t *r, uint64_t number)
{
    uint64_t at = number & r->signs_mask;
    uint32_t sign = atomic_load_explicit(&r->tail->signs[at], memory_order_relaxed);

    atomic_store_explicit(&r->kept_signs[at], sign, memory_order_relaxed);
}

/* Returns true if a message has come, of whatever call. */
static inline bool rd_slot_there(rd_recv_t *r)
{
    if (r->seen != r->received)
        return true;
    r->seen = atomic_load_explicit(&r->tail->value, memory_order_acquire);
    for (uint64_t number = r->received; r->keeps_signs && number != r->seen; number++)
        rd_slot_keep_sign(r, number);
    return r->seen != r->received;
}

/* Returns true if the message that has come is of the call with this signature. */
static inline bool rd_slot_signed(const rd_recv_t *r, uint64_t sign)
{
    return !r->signs ||
           atomic_load_explicit(&r->signs[r->received & r->signs_mask], memory_order_relaxed) == (uint32_t)(sign >> 32);
}

static inline bool rd_slot_arrived(rd_recv_t *r, uint64_t sign)
{
    return rd_slot_there(r) && rd_slot_signed(r, sign);
}

static inline const char *rd_slot_to_read(const rd_recv_t *r, size_t bytes)
{
    return r->delivered ? r->dest : rd_recv_slot(r, bytes, r->received);
}

/* Release: the sender may overwrite the slot only after its last read. */
static inline rondo_result_t rd_slot_return(rd_recv_t *r, size_t bytes)
{
    r->received++;
    if (r->mirrored) {
        r->dest = NULL;
        r->delivered = 0;
        return r->ops->credit(r, bytes);
    }
    atomic_store_explicit(&r->head->value, r->received, memory_order_release);
    return RONDO_SUCCESS;
}

#endif
