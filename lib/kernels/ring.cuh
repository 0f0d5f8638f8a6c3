/* The ring, for allreduce, reduce_scatter and allgather: each rank sends to the next one. Only neighbours exchange
 * data, which saturates the link. Every warp takes a tile of its own through all the steps, and thousands of warps that
 * are at different steps hide the latency of the hops.
 *
 *   step s                    this rank adds its contribution to chunk rank - 1 - s and sends the sum on; after n - 1
 *                             steps it holds the sum of its own chunk, which then goes around the ring once more
 *   bytes that a rank sends   2 (n - 1) / n * bytes for an allreduce, n - 1 blocks for the other operations
 *   slot                      [step][tile]
 *
 * Slots need no credits: a rank that has finished pass p + 1 has received data to which the next rank contributed at
 * the beginning of its pass p + 1, and the next rank had cleaned the slots of pass p before that.
 *
 * Where a bank is too small for the number of tiles that saturates the link, an allreduce uses both banks as one
 * (BANKS) in every pass, so that pass p + 1 uses the same slots as pass p. That these are clean in time follows from
 * the data that this rank has received last in a round of n - 1 steps, because it passed through the next rank n - 1
 * steps earlier. At the end of a pass, this shows that the next rank had begun the second round, which distributes the
 * sums. The next rank executes a fence before that round, so by then it has cleaned the first n - 1 slots, with which
 * the next pass begins. When this rank reaches the other slots, the same argument shows that the next rank has begun
 * that pass, and has passed the fence at its beginning. */
#ifndef RD_KERNELS_RING_CUH
#define RD_KERNELS_RING_CUH

#include "sched/program.h"
#include "kernels/proto.cuh"
#include "kernels/epoch.cuh"
#include "kernels/arith.cuh"

template <class PROTO, class ARITH>
struct rd_ring_t {
    const rd_kreduce_t &r;
    uint32_t n, rank, lane, tile, next;
    uint64_t bytes, chunk; /* bytes of the whole or of a block; bytes from one chunk to the next */
    char *theirs, *mine;   /* the next rank's and this rank's slots of step 0 */

    RD_MEMBER rd_ring_t(const rd_kwork_reduce_t &work) : r(work.reduce)
    {
        n = (uint32_t)work.comm.nranks;
        rank = (uint32_t)work.comm.rank;
        lane = rd_lane();
        tile = (gpu_block() * gpu_threads() + gpu_thread()) / 32;
        next = rank + 1 == n ? 0 : rank + 1;
        bytes = r.count * rd_arith_size(r.type);
        chunk = r.coll == RD_ALLREDUCE ? rd_kchunk(bytes, n) : bytes;
    }

    RD_MEMBER uint64_t slot(uint32_t step) const
    {
        return ((uint64_t)step * r.tiles + tile) * PROTO::WIRE;
    }

    /* Returns the chunk that this rank sends in a step. */
    RD_MEMBER uint32_t chunk_of(uint32_t step) const
    {
        uint32_t c = rank + 2 * n - 1 - step;

        c = c >= 2 * n ? c - 2 * n : c;
        return c >= n ? c - n : c;
    }

    RD_MEMBER typename ARITH::part_t part(const void *base, uint32_t c) const
    {
        uint64_t begin = c * (chunk + r.gap), end = begin + chunk;

        if (r.coll == RD_ALLREDUCE && end > bytes)
            end = bytes;
        return ARITH::part(r, base, begin, end);
    }

    RD_MEMBER bool take(uint4 (&v)[PROTO::ITEMS], uint32_t step, rd_wait_t &wait) const
    {
        bool there = PROTO::receive(v, mine + slot(step), lane, wait);

        PROTO::clean(mine + slot(step), lane);
        return there;
    }

    /* Leaves the sum of this rank's chunk in v. */
    RD_MEMBER bool reduce(uint4 (&v)[PROTO::ITEMS], uint64_t at, const ARITH &number, rd_wait_t &wait) const
    {
        uint4 x[PROTO::ITEMS];

        PROTO::send(theirs + slot(0), v, lane);
#pragma unroll 1
        for (uint32_t s = 1; s < n; s++) {
            rd_tile_load<PROTO>(x, part(r.in, chunk_of(s)), at, lane);
            if (!take(v, s - 1, wait))
                return false;
#pragma unroll
            for (uint32_t j = 0; j < PROTO::ITEMS; j++)
                v[j] = number.two(v[j], number.scaled(x[j]));
            if (s + 1 < n)
                PROTO::send(theirs + slot(s), v, lane);
        }
#pragma unroll
        for (uint32_t j = 0; j < PROTO::ITEMS; j++)
            v[j] = number.finished(v[j]);
        return true;
    }

    /* Sends this rank's chunk `v` around the ring, and stores the chunks of the other ranks. */
    RD_MEMBER bool gather(uint4 (&v)[PROTO::ITEMS], uint64_t at, uint32_t first, rd_wait_t &wait) const
    {
        PROTO::send(theirs + slot(first), v, lane);
#pragma unroll 1
        for (uint32_t s = 0; s + 1 < n; s++) {
            if (!take(v, first + s, wait))
                return false;
            if (s + 2 < n)
                PROTO::send(theirs + slot(first + s + 1), v, lane);
            rd_tile_store<PROTO>(part(r.out, chunk_of(s)), at, v, lane);
        }
        return true;
    }
};

template <class PROTO, class ARITH, bool BANKS, uint32_t THREADS>
RD_KERNEL(THREADS)
rd_ring(RD_WORK(rd_kwork_reduce_t))
{
    rd_ring_t<PROTO, ARITH> g(work);
    const rd_kreduce_t &r = work.reduce;
    const bool reduces = r.coll != RD_ALLGATHER, gathers = r.coll != RD_REDUCE_SCATTER;
    rd_epoch_t e(work.comm, g.next);

    gpu_begin();
    e.begin();
    const ARITH number(r, g.n);
    const uint32_t warps = gpu_blocks() * gpu_threads() / 32; /* with more tiles than warps, a warp serves several */
    for (bool good = true; good && g.tile < r.tiles; g.tile += warps) {
        for (uint32_t pass = 0; pass < r.passes && good; pass++) {
            const uint64_t at = ((uint64_t)pass * r.tiles + g.tile) * PROTO::DATA;
            uint4 v[PROTO::ITEMS];
            rd_tile_load<PROTO>(v, g.part(r.in, reduces ? g.chunk_of(0) : 0), at, g.lane);
            if (pass == 0)
                e.announce(gpu_block() == 0 ? gpu_thread() : g.n);
            if (!(good = BANKS ? e.gate_banks(pass) : e.gate(pass)))
                break;
            e.wait.peer = g.rank == 0 ? g.n - 1 : g.rank - 1;
            g.theirs = BANKS ? e.banks(g.next) : e.bank(g.next, pass);
            g.mine = BANKS ? e.banks(g.rank) : e.bank(g.rank, pass);
            if (reduces) {
#pragma unroll
                for (uint32_t j = 0; j < PROTO::ITEMS; j++)
                    v[j] = number.scaled(v[j]);
                if (!(good = g.reduce(v, at, number, e.wait)))
                    break;
            }
            if (BANKS && pass + 1 < r.passes)
                fence_sys();
            rd_tile_store<PROTO>(g.part(r.out, gathers ? g.rank : 0), at, v, g.lane);
            good = !gathers || g.gather(v, at, reduces ? g.n - 1 : 0, e.wait);
        }
    }
    e.end(BANKS && r.passes == 1 ? 2 : r.passes); /* one pass has used both banks, as two passes would */
}

#endif
