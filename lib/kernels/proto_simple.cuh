/* The SIMPLE protocol, for long data: a few blocks move slices of plain data (slices.cuh) from each rank to the next
 * one, around the ring or along the chain.
 *
 *   channel c         is served by a block on either rank, and has RD_KSLICES slots in the receiver's window, which are
 *                     used in turn
 *   pass p            moves slice p * tiles + c of each chunk
 *   bytes on a link   as many as ring.cuh and chain.cuh send
 *
 * The slices of DEPTH passes go through the steps of a ring in an interleaved way: while one slice is under way between
 * two ranks, another one is moved. This needs more than DEPTH slots, or ranks would wait for each other's slots.
 * Neighbours that have run the same operations before have counted the same number of slices in each of their channels,
 * so there are no epochs. */
#ifndef RD_KERNELS_PROTO_SIMPLE_CUH
#define RD_KERNELS_PROTO_SIMPLE_CUH

#include "sched/program.h"
#include "kernels/arith.cuh"
#include "kernels/slices.cuh"

/* This rank's ends of two channels: the one to the next rank, and the one from the previous rank. */
struct rd_channel_t {
    const rd_kcomm_t &comm;
    rd_movers_t movers;
    uint32_t number, next, previous;
    uint32_t sent, received; /* slices since the window was created */
    uint32_t taken;          /* slices that the next rank had taken at the last poll; valid in the last mover alone */

    RD_MEMBER rd_channel_t(const rd_kcomm_t &c, uint32_t channel, uint32_t to, uint32_t from) : comm(c), movers(c, from)
    {
        number = channel;
        next = to;
        previous = from;
        sent = word_load(&own()->sent);
        received = word_load(&own()->received);
        taken = sent - RD_KSLICES; /* not known yet, so the first send polls */
    }

    RD_MEMBER rd_kchannel_t *own() const
    {
        return &((rd_kcontrol_t *)comm.own)->channel[number];
    }

    RD_MEMBER rd_kchannel_t *at(uint32_t rank) const
    {
        return &((rd_kcontrol_t *)comm.window[rank])->channel[number];
    }

    RD_MEMBER char *slice(uint32_t rank, uint32_t i) const
    {
        return comm.window[rank] + (uint64_t)comm.slice_offset * RD_KALIGN +
               ((uint64_t)number * RD_KSLICES + i % RD_KSLICES) * comm.slice_bytes;
    }

    /* Waits until the next slice from the previous rank has arrived and the next rank has room for one. All movers call
     * it. Returns false if the kernel has to leave. */
    RD_MEMBER bool ready(bool receives, bool sends)
    {
        if (gpu_thread() == 0 && receives) {
            movers.wait.peer = previous;
            while ((int32_t)(word_acquire(&at((uint32_t)comm.rank)->landed) - received) <= 0 && movers.wait.more()) {
            }
        }
        if (gpu_thread() == movers.count - 1 && sends && sent - taken >= RD_KSLICES) {
            movers.wait.peer = next;
            while (sent - (taken = word_acquire(&at((uint32_t)comm.rank)->taken)) >= RD_KSLICES && movers.wait.more()) {
            }
        }
        return movers.ready();
    }

    /* Called by all threads of the block when the movers have stored a slice and have read one, or have failed (`good`
     * is false): the clerk then publishes the counts to both ranks. */
    RD_MEMBER bool done(bool receives, bool sends, bool good)
    {
        const bool tells = movers.done(good);

        sent += sends;
        received += receives;
        if (tells && sends)
            word_store(&at(next)->landed, sent);
        if (tells && receives)
            word_store(&at(previous)->taken, received);
        return !movers.wait.dead;
    }

    /* Keeps the counts for the next kernel, when the channel's work in this one has ended. */
    RD_MEMBER void keep(bool good) const
    {
        if (gpu_thread() != 0)
            return;
        if (!good) {
            rd_control_fail((rd_kcontrol_t *)comm.own);
            return;
        }
        word_store(&own()->sent, sent);
        word_store(&own()->received, received);
    }
};

template <class ARITH>
RD_DEVICE uint4 rd_move_combine(const rd_move_of_t<typename ARITH::part_t> &m, uint4 came, uint4 own,
                                const ARITH &number)
{
    uint4 v = came;

    if (m.contributes)
        v = m.receives ? number.two(came, number.scaled(own)) : number.scaled(own);
    return m.finishes ? number.finished(v) : v;
}

/* Called by the movers. Each thread moves ITEMS items at once, which lie `row` bytes apart from byte `first` on. */
template <uint32_t ITEMS, class ARITH>
RD_DEVICE void rd_items_reduce(const rd_move_of_t<typename ARITH::part_t> &m, const char *from, char *to,
                               uint32_t first, uint32_t row, const ARITH &number)
{
    uint4 came[ITEMS], own[ITEMS];

#pragma unroll
    for (uint32_t j = 0; j < ITEMS; j++) {
        came[j] = own[j] = make_uint4(0, 0, 0, 0);
        if (m.receives)
            came[j] = line_load(from + first + j * row);
        if (m.contributes)
            own[j] = rd_part_load(m.in, m.at + first + j * row);
    }
#pragma unroll
    for (uint32_t j = 0; j < ITEMS; j++)
        rd_move_store(m, to, first + j * row, rd_move_combine(m, came[j], own[j], number));
}

/* Called by the movers. A slice of a reduction holds whole rows: after the end of the data it has zeros. */
template <bool REDUCES, uint32_t ITEMS, class ARITH>
RD_DEVICE void rd_slice_copy(const rd_channel_t &c, const rd_move_of_t<typename ARITH::part_t> &m, const ARITH &number)
{
    const uint32_t row = c.movers.count * 16;
    const char *from = c.slice((uint32_t)c.comm.rank, c.received);
    char *to = c.slice(c.next, c.sent);

    for (uint32_t i = gpu_thread() * 16; i < m.bytes; i += ITEMS * row) {
        if (REDUCES)
            rd_items_reduce<ITEMS>(m, from, to, i, row, number);
        else
            rd_items_move<ITEMS>(m, from, to, i, row);
    }
}

/* Called by all threads of the block. Returns false if the kernel has to leave. */
template <bool REDUCES, uint32_t ITEMS, class ARITH>
RD_DEVICE bool rd_slice_move(rd_channel_t &c, const rd_move_of_t<typename ARITH::part_t> &m, const ARITH &number)
{
    const bool good = c.movers.clerk || c.ready(m.receives, m.sends);

    if (good && !c.movers.clerk)
        rd_slice_copy<REDUCES, ITEMS>(c, m, number);
    return c.done(m.receives, m.sends, good);
}

/* The steps of the operation on this rank. In step s < n of a ring, this rank adds its contribution to chunk
 * rank - 1 - s and sends the sum on. In step n - 1 this makes the complete sum of its own chunk, which then goes around
 * the ring once more. */
template <class ARITH>
struct rd_course_t {
    typedef typename ARITH::part_t part_t;
    typedef rd_move_of_t<part_t> move_t;

    const rd_kreduce_t &r;
    uint32_t n, rank, next, previous;
    uint32_t first, last; /* of a ring */
    uint64_t bytes, chunk;
    bool ring, reduces;

    RD_MEMBER rd_course_t(const rd_kwork_reduce_t &work) : r(work.reduce)
    {
        n = (uint32_t)work.comm.nranks;
        rank = (uint32_t)work.comm.rank;
        next = rank + 1 == n ? 0 : rank + 1;
        previous = rank == 0 ? n - 1 : rank - 1;
        bytes = r.count * rd_arith_size(r.type);
        ring = r.coll != RD_REDUCE && r.coll != RD_BROADCAST;
        reduces = r.coll != RD_ALLGATHER && r.coll != RD_BROADCAST;
        chunk = r.coll == RD_ALLREDUCE ? rd_kchunk(bytes, n) : bytes;
        first = r.coll == RD_ALLGATHER ? n - 1 : 0;
        last = !ring ? 0 : r.coll == RD_REDUCE_SCATTER ? n - 1 : 2 * n - 2;
    }

    RD_MEMBER part_t part(const void *base, uint32_t c) const
    {
        const uint64_t begin = c * (chunk + r.gap), end = begin + chunk;

        return ARITH::part(r, base, begin, r.coll == RD_ALLREDUCE && end > bytes ? bytes : end);
    }

    RD_MEMBER move_t of_ring(uint32_t s) const
    {
        const uint32_t c = (rank + 2 * n - 1 - s) % n;
        move_t m;

        m.contributes = s < n;
        m.receives = s > first;
        m.sends = s < last;
        m.keeps = s + 1 >= n;
        m.finishes = reduces && s + 1 == n;
        m.in = part(r.in, r.coll == RD_ALLGATHER ? 0 : c);
        m.out = part(r.out, r.coll == RD_REDUCE_SCATTER ? 0 : c);
        return m;
    }

    RD_MEMBER move_t of_chain() const
    {
        const uint32_t root = (uint32_t)r.root;
        move_t m;

        m.contributes = reduces || rank == root;
        m.receives = rank != (reduces ? (root + 1 == n ? 0 : root + 1) : root);
        m.sends = reduces ? rank != root : next != root;
        m.keeps = reduces ? rank == root : m.receives || r.in != r.out;
        m.finishes = reduces && rank == root;
        m.in = ARITH::part(r, r.in, 0, bytes);
        m.out = ARITH::part(r, r.out, 0, bytes);
        return m;
    }

    RD_MEMBER move_t of(uint32_t s, uint64_t at) const
    {
        move_t m = ring ? of_ring(s) : of_chain();
        const uint64_t all = m.in.bytes, left = at < all ? all - at : 0; /* the peers compute the same */

        m.at = at;
        m.bytes = left < r.slice ? (uint32_t)left : r.slice;
        return m;
    }
};

template <class ARITH, bool REDUCES, uint32_t ITEMS, uint32_t THREADS>
RD_KERNEL(THREADS)
rd_simple(RD_WORK(rd_kwork_reduce_t))
{
    constexpr uint32_t DEPTH = 2;
    static_assert(DEPTH < RD_KSLICES, "or ranks wait for each other");
    const rd_course_t<ARITH> course(work);
    const rd_kreduce_t &r = work.reduce;
    bool good = true;

    gpu_begin();
    rd_begun(work.comm);
    const ARITH number(r, course.n);
    for (uint32_t c = gpu_block(); c < r.tiles && good; c += gpu_blocks()) {
        rd_channel_t channel(work.comm, c, course.next, course.previous);
        for (uint32_t first = 0; first < r.passes && good; first += DEPTH) {
            const uint32_t end = first + DEPTH < r.passes ? first + DEPTH : r.passes;
            for (uint32_t s = course.first; s <= course.last; s++)
                for (uint32_t pass = first; pass < end && good; pass++)
                    good = rd_slice_move<REDUCES, ITEMS>(
                        channel, course.of(s, ((uint64_t)pass * r.tiles + c) * r.slice), number);
        }
        channel.keep(good);
    }
}

#endif
