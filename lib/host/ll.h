/* Lines of the LL protocol: granules of 8 bytes of data and 8 of sequence, each stored and loaded as one.
 *
 * On x86-64 an aligned 16-byte SSE access is one access on every processor that has AVX (Intel SDM 3A 9.1.1, AMD APM 2
 * 7.3.2), so a reader that sees the sequence has the data. Elsewhere the sequence is stored with release after the data
 * and loaded with acquire before it, which says the same in two accesses.
 */
#ifndef RD_LL_H
#define RD_LL_H

#include <string.h>

#include "../conn.h"

#define RD_LL_GRANULE 16
#define RD_LL_GRANULE_DATA 8

#if defined(__x86_64__)
#include <emmintrin.h>

static inline void rd_granule_store(char *granule, uint64_t data, uint64_t sequence)
{
    _mm_store_si128((__m128i *)granule, _mm_set_epi64x((long long)sequence, (long long)data));
    __asm__ volatile("" ::: "memory");
}

static inline int rd_granule_load(const char *granule, uint64_t sequence, uint64_t *data)
{
    __m128i both;
    __asm__ volatile("movdqa %1, %0" : "=x"(both) : "m"(*(const __m128i *)granule) : "memory");
    *data = (uint64_t)_mm_cvtsi128_si64(both);
    return (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(both, both)) == sequence;
}
#else
static inline void rd_granule_store(char *granule, uint64_t data, uint64_t sequence)
{
    _Atomic uint64_t *words = (_Atomic uint64_t *)granule;
    atomic_store_explicit(&words[0], data, memory_order_relaxed);
    atomic_store_explicit(&words[1], sequence, memory_order_release);
}

static inline int rd_granule_load(const char *granule, uint64_t sequence, uint64_t *data)
{
    _Atomic uint64_t *words = (_Atomic uint64_t *)granule;
    int there = atomic_load_explicit(&words[1], memory_order_acquire) == sequence;
    *data = atomic_load_explicit(&words[0], memory_order_relaxed);
    return there;
}
#endif

static inline uint32_t rd_ll_lines(size_t bytes)
{
    return (uint32_t)((bytes + RD_LL_LINE_DATA - 1) / RD_LL_LINE_DATA);
}

/* Address of the granule that holds byte `at` (a multiple of 8) of a message that starts at line `line`. */
static inline char *rd_ll_granule(char *lines, uint32_t mask, uint64_t line, size_t at, uint64_t *sequence)
{
    uint64_t number = line + at / RD_LL_LINE_DATA;
    *sequence = number + 1;
    return lines + (number & mask) * RD_LINE + at % RD_LL_LINE_DATA * 2;
}

/* Credits for a message of so many lines? */
static inline int rd_ll_may_send(rd_send_t *s, uint32_t lines)
{
    if (s->ll_sent + lines - s->ll_credit <= s->lines_mask + 1u)
        return 1;
    s->ll_credit = atomic_load_explicit(&s->ll_head->value, memory_order_acquire);
    return s->ll_sent + lines - s->ll_credit <= s->lines_mask + 1u;
}

static inline void rd_ll_send(rd_send_t *s, const char *data, size_t bytes)
{
    uint64_t sequence, word;
    size_t at = 0;

    for (; at + RD_LL_GRANULE_DATA <= bytes; at += RD_LL_GRANULE_DATA) {
        memcpy(&word, data + at, sizeof word);
        char *granule = rd_ll_granule(s->lines, s->lines_mask, s->ll_sent, at, &sequence);
        rd_granule_store(granule, word, sequence);
    }
    if (at < bytes) {
        word = 0;
        memcpy(&word, data + at, bytes - at);
        char *granule = rd_ll_granule(s->lines, s->lines_mask, s->ll_sent, at, &sequence);
        rd_granule_store(granule, word, sequence);
    }
    s->ll_sent += rd_ll_lines(bytes);
}

/* Copies the next message to `data` if all of it is there; nothing is consumed. */
static inline int rd_ll_peek(const rd_recv_t *r, char *data, size_t bytes)
{
    uint64_t sequence, word;
    size_t at = 0;

    for (; at + RD_LL_GRANULE_DATA <= bytes; at += RD_LL_GRANULE_DATA) {
        char *granule = rd_ll_granule(r->lines, r->lines_mask, r->ll_received, at, &sequence);
        if (!rd_granule_load(granule, sequence, &word))
            return 0;
        memcpy(data + at, &word, sizeof word);
    }
    if (at < bytes) {
        char *granule = rd_ll_granule(r->lines, r->lines_mask, r->ll_received, at, &sequence);
        if (!rd_granule_load(granule, sequence, &word))
            return 0;
        memcpy(data + at, &word, bytes - at);
    }
    return 1;
}

/* Consumes it. Credits go back a quarter of the ring at a time: a message is at most half of the ring, so the sender
 * never starves on what is held back. */
static inline void rd_ll_consume(rd_recv_t *r, size_t bytes)
{
    r->ll_received += rd_ll_lines(bytes);
    if (r->ll_received - r->ll_returned > r->lines_mask / 4) {
        atomic_store_explicit(&r->ll_head->value, r->ll_received, memory_order_release);
        r->ll_returned = r->ll_received;
    }
}

/* Consumes it and says so at once: the sender waits for it. */
static inline void rd_ll_consume_now(rd_recv_t *r, size_t bytes)
{
    r->ll_received += rd_ll_lines(bytes);
    r->ll_returned = r->ll_received;
    atomic_store_explicit(&r->ll_head->value, r->ll_received, memory_order_release);
}

#endif
