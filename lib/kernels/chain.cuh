/* The chain: data moves from rank to rank in one direction. A broadcast begins at the root; a reduction begins at the
 * rank after the root and ends at the root. Every warp serves a fifo of its own, and moves BATCH tiles at a time.
 *
 *   bytes that a rank sends   the whole message
 *   tile u of a pass          goes through fifo u to the next rank
 *
 * Like messages, a chain needs no epochs: neighbours that have run the same operations before have counted the same
 * number of tiles in each of their fifos. */
#ifndef RD_KERNELS_CHAIN_CUH
#define RD_KERNELS_CHAIN_CUH

#include "sched/program.h"
#include "kernels/fifo.cuh"
#include "kernels/arith.cuh"

/* Does a rank take part by receiving, and by sending to the rank after it, which is `next`? */
RD_DEVICE bool rd_chain_receives(bool reduces, uint32_t rank, uint32_t root, uint32_t n)
{
    return rank != (reduces ? (root + 1 == n ? 0 : root + 1) : root);
}

RD_DEVICE bool rd_chain_sends(bool reduces, uint32_t rank, uint32_t next, uint32_t root)
{
    return reduces ? rank != root : next != root;
}

template <class PROTO, class ARITH>
struct rd_chain_t {
    const rd_kreduce_t &r;
    bool receives, sends, keeps; /* keeps: this rank stores the result */
    typename ARITH::part_t in, out;

    /* `next`: the rank after `rank`. */
    RD_MEMBER void roles(uint32_t rank, uint32_t next, uint32_t n)
    {
        const uint32_t root = (uint32_t)r.root;
        const uint64_t bytes = r.count * rd_arith_size(r.type);
        const bool reduces = r.coll == RD_REDUCE;

        receives = rd_chain_receives(reduces, rank, root, n);
        sends = rd_chain_sends(reduces, rank, next, root);
        keeps = reduces ? rank == root : receives || r.in != r.out;
        in = ARITH::part(r, r.in, 0, bytes);
        out = ARITH::part(r, r.out, 0, bytes);
    }

    /* Moves the tile at `at` and, if there are two, the one that lies one pass further on. Returns false if the kernel
     * has to leave. */
    template <uint32_t PIECES, class FIFO>
    RD_MEMBER bool step(FIFO &from, FIFO &to, uint64_t at, const ARITH &number) const
    {
        const bool reduces = r.coll == RD_REDUCE;
        const uint64_t row = (uint64_t)r.tiles * PROTO::DATA;
        uint4 v[PIECES][PROTO::ITEMS], x[PIECES][PROTO::ITEMS];

#pragma unroll
        for (uint32_t i = 0; i < PIECES && (reduces || !receives); i++)
            rd_tile_load<PROTO>(x[i], in, at + i * row, from.lane);
        if (receives && !from.template take<PIECES>(v))
            return false;
#pragma unroll
        for (uint32_t i = 0; i < PIECES; i++)
#pragma unroll
            for (uint32_t j = 0; j < PROTO::ITEMS; j++) {
                if (reduces)
                    x[i][j] = number.scaled(x[i][j]);
                v[i][j] = !receives ? x[i][j] : reduces ? number.two(v[i][j], x[i][j]) : v[i][j];
                if (reduces && !sends)
                    v[i][j] = number.finished(v[i][j]);
            }
        if (sends && !to.template put<PIECES>(v))
            return false;
#pragma unroll
        for (uint32_t i = 0; i < PIECES && keeps; i++)
            rd_tile_store<PROTO>(out, at + i * row, v[i], from.lane);
        return true;
    }
};

template <class PROTO, class ARITH, uint32_t THREADS>
RD_KERNEL(THREADS)
rd_chain(RD_WORK(rd_kwork_reduce_t))
{
    const rd_kreduce_t &r = work.reduce;
    const uint32_t n = (uint32_t)work.comm.nranks, rank = (uint32_t)work.comm.rank;
    const uint32_t next = rank + 1 == n ? 0 : rank + 1, previous = rank == 0 ? n - 1 : rank - 1;
    const uint32_t tile = (gpu_block() * gpu_threads() + gpu_thread()) / 32;
    rd_chain_t<PROTO, ARITH> c = {r};
    rd_fifo_t<PROTO> from(work.comm, previous, false, tile), to(work.comm, next, true, tile);

    from.prefetch(false);
    to.prefetch(true);
    c.roles(rank, next, n);
    if (!c.receives || r.coll == RD_REDUCE)
        rd_tile_prefetch<PROTO>(c.in, (uint64_t)tile * PROTO::DATA, from.lane);
    gpu_begin();
    gpu_let_in(work.comm.lets_in);
    if (tile >= r.tiles)
        return;
    from.begin(false);
    to.begin(true);
    rd_begun(work.comm);
    const ARITH number(r, n);
    const uint64_t row = (uint64_t)r.tiles * PROTO::DATA;
    uint64_t at = (uint64_t)tile * PROTO::DATA;
    uint32_t pass = 0;
    bool good = true;
    for (; pass + PROTO::BATCH <= r.passes && good; pass += PROTO::BATCH, at += PROTO::BATCH * row)
        good = c.template step<PROTO::BATCH>(from, to, at, number);
    for (; pass < r.passes && good; pass++, at += row)
        good = c.template step<1>(from, to, at, number);
    if (c.receives)
        from.keep(good);
    if (c.sends)
        to.keep(good);
}

#endif
