/* Two-shot allreduce, in two hops: every rank receives its chunk from all ranks, sums it, and sends the sum to all
 * ranks. A group of n warps, as in oneshot.cuh, serves the same tile of every chunk.
 *
 *   bytes that a rank sends   2 (n - 1) / n * bytes
 *   slot in a bank            [hop][sender][tile]
 *
 * As in oneshot.cuh, a rank that has received a peer's part of pass p + 1 knows that the peer's slots of pass p are
 * clean: those of both hops are cleaned by the warp that sends to this rank. An operation of two passes uses each bank
 * once and does not depend on that, so its kernel (AHEAD) sends the parts of the second pass right after those of the
 * first one. It is a kernel of its own, because a kernel that could do both would be slower at a single pass. */
#ifndef RD_KERNELS_TWOSHOT_CUH
#define RD_KERNELS_TWOSHOT_CUH

#include "kernels/oneshot.cuh"

template <class PROTO, class ARITH, bool AHEAD, uint32_t THREADS>
RD_KERNEL(THREADS)
rd_twoshot(RD_WORK(rd_kwork_reduce_t))
{
    const rd_kreduce_t &r = work.reduce;
    rd_group_t g(work.comm);
    const bool other = g.peer != g.rank;
    const uint64_t bytes = r.count * rd_arith_size(r.type), chunk = rd_kchunk(bytes, g.n);
    const uint64_t begin = g.peer * chunk, end = begin + chunk < bytes ? begin + chunk : bytes;
    const typename ARITH::part_t in = ARITH::part(r, r.in, begin, end), out = ARITH::part(r, r.out, begin, end);
    const uint64_t hop = (uint64_t)g.n * r.tiles * PROTO::WIRE;

    gpu_begin();
    rd_epoch_t e(work.comm, g.peer);
    const ARITH number(r, g.n);
    for (bool good = true; good && g.tile < r.tiles; g.next(r.passes)) {
        const uint64_t to = ((uint64_t)g.rank * r.tiles + g.tile) * PROTO::WIRE;
        const uint64_t from = ((uint64_t)g.peer * r.tiles + g.tile) * PROTO::WIRE;
        for (uint32_t pass = 0; pass < r.passes && good; pass++) {
            const uint64_t at = ((uint64_t)pass * r.tiles + g.tile) * PROTO::DATA;
            char *theirs = e.bank(g.peer, pass) + to, *mine = e.bank(g.rank, pass) + from;
            uint4 v[PROTO::ITEMS], *buffer = g.buffer<PROTO>(pass);
            if (!AHEAD || !other || pass == 0) {
                rd_tile_load<PROTO>(v, in, at, g.lane);
                if (pass == 0)
                    e.announce();
                rd_tile_scale<PROTO>(v, number);
            }
            if (other) {
                if ((!AHEAD || pass == 0) && e.gate(pass))
                    PROTO::send(theirs, v, g.lane);
                if (AHEAD && pass == 0) {
                    rd_tile_load<PROTO>(v, in, at + (uint64_t)r.tiles * PROTO::DATA, g.lane);
                    rd_tile_scale<PROTO>(v, number);
                    if (e.gate(1, false))
                        PROTO::send(e.bank(g.peer, 1) + to, v, g.lane);
                }
                PROTO::receive(v, mine, g.lane, e.wait);
                PROTO::clean(mine, g.lane);
            }
            if (!(good = g.gather<PROTO>(buffer, v, e.wait.dead)))
                break;
            g.sum<PROTO>(v, buffer, number);
            if (other) {
                PROTO::send(theirs + hop, v, g.lane);
                PROTO::receive(v, mine + hop, g.lane, e.wait);
                PROTO::clean(mine + hop, g.lane);
            }
            if (!e.wait.dead)
                rd_tile_store<PROTO>(out, at, v, g.lane);
        }
    }
    e.end(r.passes);
}

#endif
