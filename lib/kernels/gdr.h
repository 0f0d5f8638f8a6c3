/* The messages of a collective by GDR, as the kernel raises them and the host counts them: see gdr.cuh, and
 * exec/cuda/proxy/gdr_collective.c for the hops.
 *
 * Each direction has its messages in steps, which are the same at both ends of a pair, as the order of messages must
 * be. The second hop of a piece comes behind the first hops of RD_KGDR_AHEAD more pieces:
 *
 *   first 0, first 1, first 2, second 0, first 3, second 1, first 4, ...
 *
 * No step waits for a later one of its own or of the other direction, so the first step that is not over can always go
 * on: the first hop of a piece waits for space in scratch, that is, for the sum of RD_KGDR_PIECES pieces before, and
 * the second hop for the piece's own sum. */
#ifndef RD_KERNELS_GDR_H
#define RD_KERNELS_GDR_H

#include "sched/program.h"
#include "kernels/work.h"

#define RD_KGDR_ALL UINT32_MAX
#define RD_KGDR_FROM 0u
#define RD_KGDR_OWN 1u
#define RD_KGDR_OUT 2u
#define RD_KGDR_SCRATCH 3u
#define RD_KGDR_PIECES 4u /* pieces that have space in scratch */
#define RD_KGDR_AHEAD 2u  /* first hops between the first and the second hop of a piece */

typedef struct rd_kgdr_range {
    uint64_t at, n; /* elements of the whole */
} rd_kgdr_range_t;

/* Returns what rank p sums in a piece, or has of it after the first hop. */
RD_KBOTH rd_kgdr_range_t rd_kgdr_chunk(const rd_kgdr_t *d, uint32_t piece, uint32_t p)
{
    const bool blocks = d->coll == RD_REDUCE_SCATTER || d->coll == RD_ALLGATHER;
    const uint64_t begin = piece * d->each, count = d->tabled ? d->block[p].bytes : d->count;
    const uint64_t left = count > begin ? count - begin : 0, n = left < d->each ? left : d->each;
    rd_kgdr_range_t r = {(d->tabled ? d->block[p].offset : blocks ? p * d->count : 0) + begin, n};

    if (blocks)
        return r;
    if (d->only != RD_KGDR_ALL) {
        r.n = p == d->only ? n : 0;
        return r;
    }
    const uint64_t share = ((n + d->n - 1) / d->n + d->grain - 1) / d->grain * d->grain;
    const uint64_t from = p * share < n ? p * share : n;
    r.at += from;
    r.n = n - from < share ? n - from : share;
    return r;
}

/* Returns where what rank p sends for this rank's sum of a piece lies. */
RD_KBOTH char *rd_kgdr_slot(const rd_kgdr_t *d, uint32_t piece, uint32_t p)
{
    const uint32_t index = p - (p > d->rank);

    return d->scratch + ((uint64_t)(piece % RD_KGDR_PIECES) * (d->n - 1) + index) * d->slot;
}

/* Returns true if this rank's sums lie in scratch, over the first contribution to them, until they are sent. */
RD_KBOTH bool rd_kgdr_keeps(const rd_kgdr_t *d)
{
    return d->coll == RD_REDUCE && d->rank != d->root;
}

/* Returns where this rank's own chunk lies when it is whole. */
RD_KBOTH char *rd_kgdr_own(const rd_kgdr_t *d, uint32_t piece)
{
    return rd_kgdr_keeps(d) ? rd_kgdr_slot(d, piece, d->rank == 0)
                            : (char *)(d->own + rd_kgdr_chunk(d, piece, d->rank).at * d->element);
}

/* Returns true if sums are stored over what this rank sends: in a reduce-scatter whose output begins where its input
 * does, and not where the rank's own block lies. A piece's sum lies over the same piece of the first block then. */
RD_KBOTH bool rd_kgdr_overwrites(const rd_kgdr_t *d)
{
    return d->coll == RD_REDUCE_SCATTER && d->own != d->in &&
           d->own + rd_kgdr_chunk(d, 0, d->rank).at * d->element == d->in;
}

RD_KBOTH uint32_t rd_kgdr_steps(const rd_kgdr_t *d)
{
    return 2 * (d->pieces + RD_KGDR_AHEAD);
}

/* Returns the hop of a step, 0 or 1, and its piece, which may not exist. */
RD_KBOTH uint32_t rd_kgdr_hop(uint32_t step)
{
    return step % 2;
}

RD_KBOTH uint32_t rd_kgdr_piece(uint32_t step)
{
    return step / 2 - step % 2 * RD_KGDR_AHEAD;
}

RD_KBOTH rd_kmessage_t rd_kgdr_named(const rd_kgdr_t *d, uint64_t at, uint64_t n, uint32_t where, uint32_t p)
{
    const rd_kmessage_t m = {(void *)at, n * d->element | RD_KGDR | (d->hosted >> where & 1 ? RD_KGDR_HOST : 0) |
                                             (uint64_t)p << RD_KGDR_PEER};
    const rd_kmessage_t none = {NULL, 0};

    return n ? m : none;
}

/* The message of the first hop to or from rank p; of 0 bytes if there is none. */
RD_KBOTH rd_kmessage_t rd_kgdr_first(const rd_kgdr_t *d, uint32_t piece, uint32_t send, uint32_t p)
{
    const rd_kgdr_range_t theirs = rd_kgdr_chunk(d, piece, p), own = rd_kgdr_chunk(d, piece, d->rank);
    const bool moves = d->coll == RD_BROADCAST;

    if (d->coll == RD_ALLGATHER || (moves && (send ? d->rank : p) != d->root))
        return rd_kgdr_named(d, 0, 0, 0, p);
    if (send)
        return rd_kgdr_named(d, d->from + theirs.at * d->element, theirs.n, RD_KGDR_FROM, p);
    return moves ? rd_kgdr_named(d, (uint64_t)rd_kgdr_own(d, piece), own.n, RD_KGDR_OWN, p)
                 : rd_kgdr_named(d, (uint64_t)rd_kgdr_slot(d, piece, p), own.n, RD_KGDR_SCRATCH, p);
}

/* The same of the second hop. */
RD_KBOTH rd_kmessage_t rd_kgdr_second(const rd_kgdr_t *d, uint32_t piece, uint32_t send, uint32_t p)
{
    const uint32_t to = send ? p : d->rank;
    const uint64_t n = rd_kgdr_chunk(d, piece, send ? d->rank : p).n;

    if (d->coll == RD_REDUCE_SCATTER || (d->coll == RD_REDUCE && to != d->root) ||
        (d->coll == RD_BROADCAST && to == d->root))
        return rd_kgdr_named(d, 0, 0, 0, p);
    if (send)
        return rd_kgdr_named(d, (uint64_t)rd_kgdr_own(d, piece), n, rd_kgdr_keeps(d) ? RD_KGDR_SCRATCH : RD_KGDR_OWN,
                             p);
    return rd_kgdr_named(d, d->out + rd_kgdr_chunk(d, piece, p).at * d->element, n, RD_KGDR_OUT, p);
}

/* A walk through the messages of a direction. */
typedef struct rd_kgdr_walk {
    uint32_t send, step, distance; /* of the peer, in ranks */
    rd_kmessage_t next;
} rd_kgdr_walk_t;

RD_KBOTH bool rd_kgdr_more(const rd_kgdr_t *d, const rd_kgdr_walk_t *w)
{
    return w->step < rd_kgdr_steps(d);
}

/* Goes on to the first message from here on. */
RD_KBOTH void rd_kgdr_find(const rd_kgdr_t *d, rd_kgdr_walk_t *w)
{
    for (; rd_kgdr_more(d, w); w->step++, w->distance = 1) {
        const uint32_t piece = rd_kgdr_piece(w->step);
        for (; piece < d->pieces && w->distance < d->n; w->distance++) {
            const uint32_t p = (d->rank + (w->send ? w->distance : d->n - w->distance)) % d->n;
            w->next = rd_kgdr_hop(w->step) ? rd_kgdr_second(d, piece, w->send, p) : rd_kgdr_first(d, piece, w->send, p);
            if (w->next.bytes)
                return;
        }
    }
}

RD_KBOTH rd_kgdr_walk_t rd_kgdr_begin(const rd_kgdr_t *d, uint32_t send)
{
    rd_kgdr_walk_t w = {send, 0, 1, {NULL, 0}};

    rd_kgdr_find(d, &w);
    return w;
}

RD_KBOTH void rd_kgdr_next(const rd_kgdr_t *d, rd_kgdr_walk_t *w)
{
    w->distance++;
    rd_kgdr_find(d, w);
}

/* Returns how many triggers a direction has: one for up to RD_KGDR_RUN messages of a step. */
RD_KBOTH uint64_t rd_kgdr_triggers(const rd_kgdr_t *d, uint32_t send)
{
    rd_kgdr_walk_t w = rd_kgdr_begin(d, send);
    uint64_t n = 0;

    for (; rd_kgdr_more(d, &w); n++) {
        const uint32_t step = w.step;
        for (uint32_t i = 0; i < RD_KGDR_RUN && w.step == step; i++)
            rd_kgdr_next(d, &w);
    }
    return n;
}

#endif
