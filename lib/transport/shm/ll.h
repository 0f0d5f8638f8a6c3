/* Lines of the LL protocol: a cache line carries up to 56 bytes of data and, in its last 8 bytes, its sequence number.
 *
 *   | bytes 8 to 55 of the part | bytes 0 to 7 | sequence |
 *
 * The last 16 bytes are stored as one, after the rest of the line, and loaded as one, before it: a reader that sees the
 * sequence has the whole line, and a message of up to 8 bytes is one store. On x86-64 an aligned 16-byte SSE access is
 * one access on every processor that has AVX (Intel SDM 3A 9.1.1, AMD APM 2 7.3.2), and neither stores nor loads pass
 * others of their kind. Elsewhere the sequence is stored with release and loaded with acquire, which has the same
 * effect. The same is done under the thread sanitizer, which knows nothing of what processors promise.
 *
 * The lower half of the sequence is that of the line's number plus one: what lies in a ring is never 2^32 lines old.
 * The upper half is the sign: the signature of the call (monitor/called.h), 0 for sends and receives, plus a tag, which
 * is for a message whose two ends may give different lengths its bytes plus one, or RD_LL_ANNOUNCED
 * (transport/announce.h), else 0. A reader that expects another sign never takes the line. Signs and tags are shifted,
 * where no other unit is named. */
#ifndef RD_TRANSPORT_SHM_LL_H
#define RD_TRANSPORT_SHM_LL_H

#include <stdbool.h>
#include <string.h>

#include "transport/conn.h"

#define RD_LL_GRANULE 16
#define RD_LL_CLAIM 4 /* lines */
#define RD_LL_TAG_AT 32
#define RD_LL_ANNOUNCED 4095u /* more than any message's bytes plus one */

/* Fetches the line into this core's cache, to be written soon. The builtin would fetch it for reading, unless the
 * compiler is told which x86-64 it compiles for. */
#if defined(__x86_64__)
#define rd_line_claim(line) __asm__ volatile("prefetchw %0" : : "m"(*(line)))
#else
#define rd_line_claim(line) __builtin_prefetch(line, 1)
#endif

#if defined(__x86_64__) && !defined(RD_THREAD_SANITIZER)
#include <emmintrin.h>

static inline void rd_granule_store(char *granule, uint64_t data, uint64_t sequence)
{
    __asm__ volatile("" ::: "memory");
    _mm_store_si128((__m128i *)granule, _mm_set_epi64x((long long)sequence, (long long)data));
    __asm__ volatile("" ::: "memory");
}

static inline bool rd_granule_load(const char *granule, uint64_t sequence, uint64_t *data)
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

static inline bool rd_granule_load(const char *granule, uint64_t sequence, uint64_t *data)
{
    _Atomic uint64_t *words = (_Atomic uint64_t *)granule;
    int there = atomic_load_explicit(&words[1], memory_order_acquire) == sequence;
    *data = atomic_load_explicit(&words[0], memory_order_relaxed);
    return there;
}
#endif

static inline uint64_t rd_ll_tag(uint64_t tag)
{
    return tag << RD_LL_TAG_AT;
}

/* Returns the sequence of line `number`. */
static inline uint64_t rd_ll_sequence(uint64_t sign, uint64_t number)
{
    return sign | (uint32_t)(number + 1);
}

static inline uint32_t rd_ll_lines(size_t bytes)
{
    return (uint32_t)((bytes + RD_LL_LINE_DATA - 1) / RD_LL_LINE_DATA);
}

/* Returns true if there are credits for a message of `lines`. */
static inline bool rd_ll_may_send(rd_send_t *s, uint32_t lines)
{
    if (s->ll_sent + lines - s->ll_credit <= s->lines_mask + 1u)
        return true;
    s->ll_credit = atomic_load_explicit(&s->ll_head->value, memory_order_acquire);
    return s->ll_sent + lines - s->ll_credit <= s->lines_mask + 1u;
}

/* Returns up to 7 bytes as a word whose other bytes are zero. The loads overlap: a loop over bytes takes longer than
 * the rest of a line. */
static inline uint64_t rd_ll_tail(const char *data, size_t bytes)
{
    uint32_t low, high;
    uint16_t first, last;

    if (bytes >= 4) {
        memcpy(&low, data, 4);
        memcpy(&high, data + bytes - 4, 4);
        return low | (uint64_t)high << 8 * (bytes - 4);
    }
    if (bytes >= 2) {
        memcpy(&first, data, 2);
        memcpy(&last, data + bytes - 2, 2);
        return first | (uint64_t)last << 8 * (bytes - 2);
    }
    return bytes ? (unsigned char)data[0] : 0;
}

static inline void rd_ll_tail_put(char *data, uint64_t word, size_t bytes)
{
    if (bytes >= 4) {
        const uint32_t low = (uint32_t)word, high = (uint32_t)(word >> 8 * (bytes - 4));
        memcpy(data, &low, 4);
        memcpy(data + bytes - 4, &high, 4);
    } else if (bytes >= 2) {
        const uint16_t first = (uint16_t)word, last = (uint16_t)(word >> 8 * (bytes - 2));
        memcpy(data, &first, 2);
        memcpy(data + bytes - 2, &last, 2);
    } else if (bytes) {
        data[0] = (char)word;
    }
}

/* Copies 8 to 47 bytes, in pieces that overlap. */
static inline void rd_ll_rest(char *to, const char *from, size_t bytes)
{
    char head[16], rear[16];

    if (bytes < 16) {
        memcpy(head, from, 8);
        memcpy(rear, from + bytes - 8, 8);
        memcpy(to, head, 8);
        memcpy(to + bytes - 8, rear, 8);
        return;
    }
    memcpy(head, from, 16);
    memcpy(rear, from + bytes - 16, 16);
    if (bytes > 32)
        memcpy(to + 16, from + 16, 16);
    memcpy(to, head, 16);
    memcpy(to + bytes - 16, rear, 16);
}

/* Stores `part` bytes, 1 to 56, into the line with that sequence. */
static inline void rd_ll_line_store(char *line, uint64_t sequence, const char *data, size_t part)
{
    uint64_t first;

    if (part < 8) {
        rd_granule_store(line + RD_LINE - RD_LL_GRANULE, rd_ll_tail(data, part), sequence);
        return;
    }
    memcpy(&first, data, 8);
    if (part == RD_LL_LINE_DATA) {
        memcpy(line, data + 8, RD_LL_LINE_DATA - 8);
    } else if (part >= 16) {
        rd_ll_rest(line, data + 8, part - 8);
    } else if (part > 8) {
        uint64_t word = rd_ll_tail(data + 8, part - 8);
        memcpy(line, &word, 8);
    }
    rd_granule_store(line + RD_LINE - RD_LL_GRANULE, first, sequence);
}

/* Loads `part` bytes from the line. Returns false if the line is not there yet. */
static inline bool rd_ll_line_load(const char *line, uint64_t sequence, char *data, size_t part)
{
    uint64_t first, word;

    if (!rd_granule_load(line + RD_LINE - RD_LL_GRANULE, sequence, &first))
        return false;
    if (part < 8) {
        rd_ll_tail_put(data, first, part);
        return true;
    }
    memcpy(data, &first, 8);
    if (part == RD_LL_LINE_DATA) {
        memcpy(data + 8, line, RD_LL_LINE_DATA - 8);
    } else if (part >= 16) {
        rd_ll_rest(data + 8, line, part - 8);
    } else if (part > 8) {
        memcpy(&word, line, 8);
        rd_ll_tail_put(data + 8, word, part - 8);
    }
    return true;
}

static inline size_t rd_ll_part(size_t bytes)
{
    return bytes < RD_LL_LINE_DATA ? bytes : RD_LL_LINE_DATA;
}

/* Claims the lines of the next message, assumed to be as long as this one. They are in the receiver's cache, and stores
 * leave in order: without this, each message would wait for its own lines only after those of the last one have come.
 */
static inline void rd_ll_claim(const rd_send_t *s, uint32_t lines)
{
    for (uint32_t i = 0; i < lines && i < RD_LL_CLAIM; i++)
        rd_line_claim(s->lines + ((s->ll_sent + i) & s->lines_mask) * RD_LINE);
}

/* Stores line `i` of the message's lines. */
static inline void rd_ll_send_line(const rd_send_t *s, uint32_t i, const char *data, size_t part, uint64_t sign)
{
    const uint64_t number = s->ll_sent + i;

    rd_ll_line_store(s->lines + (number & s->lines_mask) * RD_LINE, rd_ll_sequence(sign, number),
                     data + i * (size_t)RD_LL_LINE_DATA, part);
}

static inline void rd_ll_send(rd_send_t *s, const char *data, size_t bytes, uint64_t sign)
{
    uint32_t lines = rd_ll_lines(bytes);

    for (uint32_t i = 0; i + 1 < lines; i++)
        rd_ll_send_line(s, i, data, RD_LL_LINE_DATA, sign);
    if (lines)
        rd_ll_send_line(s, lines - 1, data, bytes - (lines - 1) * (size_t)RD_LL_LINE_DATA, sign);
    s->ll_sent += lines;
    rd_ll_claim(s, lines);
}

/* Copies the next message to `data` if all of it has arrived and has this sign. Nothing is consumed. */
static inline bool rd_ll_peek(const rd_recv_t *r, char *data, size_t bytes, uint64_t sign)
{
    uint64_t number = r->ll_received;

    for (size_t part; bytes; bytes -= part, data += part, number++) {
        part = rd_ll_part(bytes);
        if (!rd_ll_line_load(r->lines + (number & r->lines_mask) * RD_LINE, rd_ll_sequence(sign, number), data, part))
            return false;
    }
    return true;
}

/* Returns true if the next line has come, whatever its sign is, with the first 8 bytes of its data and, not shifted,
 * what its sign has more than the signature `sign`: its tag, or any number if it is of another call. */
static inline bool rd_ll_next(const rd_recv_t *r, uint64_t sign, uint64_t *tag, uint64_t *data)
{
    const char *granule = r->lines + (r->ll_received & r->lines_mask) * RD_LINE + RD_LINE - RD_LL_GRANULE;
    uint64_t sequence =
        atomic_load_explicit((const _Atomic uint64_t *)(const void *)(granule + 8), memory_order_acquire);

    *tag = (sequence - sign) >> RD_LL_TAG_AT;
    return (uint32_t)sequence == (uint32_t)(r->ll_received + 1) && rd_granule_load(granule, sequence, data);
}

/* Consumes the message. Credits go back a quarter of the ring at a time: a message is at most half of the ring, so the
 * sender never starves because of credits that are held back. */
static inline void rd_ll_consume(rd_recv_t *r, size_t bytes)
{
    r->ll_received += rd_ll_lines(bytes);
    if (r->ll_received - r->ll_returned > r->lines_mask / 4) {
        atomic_store_explicit(&r->ll_head->value, r->ll_received, memory_order_release);
        r->ll_returned = r->ll_received;
    }
}

/* Consumes the message and returns the credit at once: the sender waits for it. */
static inline void rd_ll_consume_now(rd_recv_t *r, size_t bytes)
{
    r->ll_received += rd_ll_lines(bytes);
    r->ll_returned = r->ll_received;
    atomic_store_explicit(&r->ll_head->value, r->ll_received, memory_order_release);
}

#endif
