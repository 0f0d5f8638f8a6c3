/* Short operations of a group in one launch: any mix of operations, types, operators and roots. Each is an epoch of its
 * own, with a cell of its own (work.h), and its tiles are served as in oneshot.cuh, by the protocol that it would have
 * alone. So all ranks' data are under way at once, and what a rank launches together its peers may launch one by one.
 *
 * The tiles of all operations are numbered through, in the order of the calls, and groups of warps take them in turn:
 * so an operation has multiprocessors in proportion to its bytes, and whoever waits, waits for a tile that its peers
 * serve before any later one. */
#ifndef RD_KERNELS_FUSED_CUH
#define RD_KERNELS_FUSED_CUH

#include "kernels/oneshot.cuh"
#include "kernels/table.h"

/* The operation that a group of warps serves in its turn. */
struct rd_fused_t {
    rd_kreduce_t r;
    rd_turn_t t;
    uint32_t kind;

    /* `tile` counts from the first operation on. */
    RD_MEMBER rd_fused_t(const rd_kfused_t &f, uint32_t tile, bool begins)
    {
        const uint32_t i = find(f, tile);
        const rd_kshort_t &s = f.op[i];

        r.in = s.in;
        r.out = s.out;
        r.count = s.count;
        r.gap = 0;
        r.scale[0] = s.scale[0];
        r.scale[1] = s.scale[1];
        r.device_scale = s.pointed ? (const void *)s.scale[0] : nullptr;
        r.root = s.root;
        r.coll = s.coll;
        r.narrow = s.narrow;
        r.type = s.type;
        r.op = s.op;
        r.scaled = s.scaled;
        r.passes = 1;
        r.tiles = (i + 1 < f.count ? f.op[i + 1].tile : f.tiles) - s.tile;
        r.slice = f.cell;
        t = rd_turn_t{tile - s.tile, i, 0, begins, false};
        kind = s.kind;
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
    template <class PROTO, class ARITH>
    RD_MEMBER bool sum(rd_group_t &g, rd_epoch_t &e)
    {
        const rd_oneshot_sum_t<PROTO, ARITH> x(r, g);
        const ARITH number(r, g.n);
        uint4 *buffer = g.buffer<rd_lines_ll128>(0);

        static_assert(PROTO::ITEMS <= rd_lines_ll128::ITEMS, "it has room in the buffer");
        t.at = (uint64_t)t.tile * PROTO::DATA;
        g.turns += x.sums;
        return x.serve(g, e, number, t, buffer);
    }

    template <class PROTO>
    RD_MEMBER bool move(const rd_group_t &g, rd_epoch_t &e)
    {
        const rd_oneshot_move_t<PROTO> x(r, g);

        t.at = (uint64_t)t.tile * PROTO::DATA;
        return x.serve(g, e, t);
    }
};

#endif
