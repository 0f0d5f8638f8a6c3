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

/* The first of two passes of an operation: the part of the second is sent, too, behind that of the first. */
template <class PROTO, class ARITH>
RD_DEVICE bool rd_twoshot_first(const rd_shot_t<PROTO, ARITH> &x, const rd_group_t &g, rd_epoch_t &e,
                                const ARITH &number, const rd_turn_t &t, const rd_turn_t &second, uint4 *buffer)
{
    uint4 v[PROTO::ITEMS];

    x.load(v, number, t, g, e);
    if (x.other) {
        x.send(v, t, g, e);
        x.load(v, number, second, g, e);
        x.send(v, second, g, e);
    }
    return x.finish(v, number, t, g, e, buffer);
}

template <class PROTO, class ARITH>
RD_DEVICE bool rd_twoshot_second(const rd_shot_t<PROTO, ARITH> &x, const rd_group_t &g, rd_epoch_t &e,
                                 const ARITH &number, const rd_turn_t &t, uint4 *buffer)
{
    uint4 v[PROTO::ITEMS];

    if (!x.other)
        x.load(v, number, t, g, e);
    return x.finish(v, number, t, g, e, buffer);
}

template <class PROTO, class ARITH, bool AHEAD, uint32_t THREADS>
RD_KERNEL(THREADS)
rd_twoshot(RD_WORK(rd_kwork_reduce_t))
{
    const rd_kreduce_t &r = work.reduce;
    rd_group_t g(work.comm);
    const rd_shot_t<PROTO, ARITH> x(r, g, true);
    rd_epoch_t e(work.comm, g.peer, RD_KCELL(r.slice));
    const rd_turns_t all(r);

    e.prefetch();
    rd_tile_prefetch<PROTO>(x.in, all.turn(r, g.tile, 0, PROTO::DATA).at, g.lane);
    gpu_begin();
    gpu_let_in(work.comm.lets_in);
    e.begin();
    const ARITH number(r, g.n);
    for (bool good = true; good && g.tile < all.tiles; g.next(all.passes)) {
        for (uint32_t pass = 0; pass < all.passes && good; pass++) {
            rd_turn_t t = all.turn(r, g.tile, pass, PROTO::DATA), second = all.turn(r, g.tile, 1, PROTO::DATA);
            uint4 *buffer = g.buffer<PROTO>(pass);
            second.after = false; /* it has a bank of its own */
            good = !AHEAD      ? x.serve(g, e, number, t, buffer)
                   : pass == 0 ? rd_twoshot_first(x, g, e, number, t, second, buffer)
                               : rd_twoshot_second(x, g, e, number, t, buffer);
        }
    }
    e.end(all.of(r));
}

#endif
