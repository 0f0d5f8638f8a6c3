/* Operations of a group in one launch: any mix of operations, types, operators and roots. A short one has cells of its
 * own (work.h), and its tiles are served as in oneshot.cuh and twoshot.cuh, by the protocol that it would have alone.
 * So all ranks' data are under way at once, and what a rank launches together its peers may launch one by one. What
 * goes by chain uses the fifos that it would have alone (fused_chain.cuh), and the launch's last blocks.
 *
 * The tiles of all operations are numbered through, in the order of the calls, and groups of warps take them in turn:
 * so an operation has multiprocessors in proportion to its bytes, and whoever waits, waits for a tile that its peers
 * serve before any later one. */
#ifndef RD_KERNELS_FUSED_CUH
#define RD_KERNELS_FUSED_CUH

#include "kernels/fused_chain.cuh"
#include "kernels/twoshot.cuh"
#include "kernels/table.h"

/* The operation that a group of warps serves in its turn. */
struct rd_fused_t {
    rd_kreduce_t r;
    rd_turn_t t;
    uint32_t kind;
    bool twoshot;

    /* `tile` counts from the first operation on. */
    RD_MEMBER rd_fused_t(const rd_kfused_t &f, uint32_t tile, bool begins)
    {
        const uint32_t i = find(f, tile);
        const rd_kshort_t &s = f.op[i];

        rd_fused_unpack(r, s);
        r.passes = 0; /* of no interest: the launch's turns are its own */
        r.tiles = 1u << s.shift;
        r.slice = RD_KCELLED(f.cell, s.shift);
        t = rd_turns_t::turn(r, tile - s.tile, 0, 1);
        t.pass += s.pass;
        t.begins = begins;
        kind = s.kind & (RD_KTWOSHOT - 1);
        twoshot = s.kind & RD_KTWOSHOT;
    }

    /* Returns the last operation whose first tile is not behind `tile`. */
    static RD_MEMBER uint32_t find(const rd_kfused_t &f, uint32_t tile)
    {
        uint32_t low = 0, high = f.count - 1;

        while (low < high) {
            const uint32_t middle = (low + high + 1) / 2;
            if (f.op[middle].tile <= tile)
                low = middle;
            else
                high = middle - 1;
        }
        return low;
    }

    /* Shared memory is divided for the protocol that needs most of it. Only turns that sum use it. */
    template <class PROTO>
    static RD_MEMBER uint4 *buffer(rd_group_t &g, bool sums)
    {
        static_assert(PROTO::ITEMS <= rd_lines_ll128::ITEMS, "there is room in the buffer");
        uint4 *at = g.buffer<rd_lines_ll128>(0);

        g.turns += sums;
        return at;
    }

    template <class PROTO, class ARITH>
    RD_MEMBER bool sum(rd_group_t &g, rd_epoch_t &e)
    {
        const rd_shot_t<PROTO, ARITH> x(r, g, twoshot);
        const ARITH number(r, g.n);

        t.at *= PROTO::DATA;
        return x.serve(g, e, number, t, buffer<PROTO>(g, x.sums));
    }

    template <class PROTO>
    RD_MEMBER bool move(const rd_group_t &g, rd_epoch_t &e)
    {
        const rd_oneshot_move_t<PROTO> x(r, g);

        t.at *= PROTO::DATA;
        return x.serve(g, e, t);
    }
};

#endif
