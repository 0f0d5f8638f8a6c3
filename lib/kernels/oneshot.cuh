/* One-shot: all ranks send to all ranks at once, in one hop. A group of n warps serves a tile. Each of its warps serves
 * one peer; the first warp serves the next rank, so that the ranks do not all send to the same receiver first. The
 * received parts are summed in the order of the ranks, by way of shared memory.
 *
 *   bytes that a rank sends   (n - 1) * bytes for an allreduce, n - 1 blocks for the other operations
 *   slot in a bank            [sender][tile]
 *
 * Slots need no credits: the peer's warp sends its part of pass p + 1 after it has cleaned the slot in which it
 * received pass p, so a warp that has received the part of pass p + 1 knows that the slot of pass p is clean. */
#ifndef RD_KERNELS_ONESHOT_CUH
#define RD_KERNELS_ONESHOT_CUH

#include "sched/program.h"
#include "kernels/proto.cuh"
#include "kernels/epoch.cuh"
#include "kernels/arith.cuh"

/* The position of a warp in a kernel that has a group of n warps for each tile. */
struct rd_group_t {
    uint32_t n, rank, lane, index, tile, peer;
    uint32_t turns; /* passes over the tiles that this group has served before this one */

    RD_MEMBER rd_group_t(const rd_kcomm_t &comm)
    {
        uint32_t warp = gpu_thread() / 32;

        n = (uint32_t)comm.nranks;
        rank = (uint32_t)comm.rank;
        lane = gpu_thread() % 32;
        index = warp / n; /* the group's number in its block */
        tile = gpu_block() * (gpu_threads() / 32 / n) + index;
        turns = 0;
        peer = rank + 1 + warp % n;
        peer = peer >= n ? peer - n : peer;
    }

    /* The rank to which a thread announces an epoch (epoch.cuh): those of the first warp that sends to no one do it. */
    RD_MEMBER uint32_t announces() const
    {
        return gpu_block() == 0 && index == 0 && peer == rank ? lane : n;
    }

    /* Goes on to the next tile of this group, where there are more tiles than groups. */
    RD_MEMBER void next(uint32_t passes)
    {
        tile += gpu_blocks() * (gpu_threads() / 32 / n);
        turns += passes;
    }

    /* Shared memory has two buffers for each group, which are used alternately. A warp that writes into one of them has
     * passed the barrier of the other one since, so all warps of the group have read what was in it. */
    template <class PROTO>
    RD_MEMBER uint4 *buffer(uint32_t pass) const
    {
        return gpu_shared() + (index * 2 + ((turns + pass) & 1)) * n * PROTO::ITEMS * 32 + lane;
    }

    /* Writes this warp's items beside those of the group's other warps. Returns true when all are there, or false if
     * one of the warps has to leave: then all of them leave. */
    template <class PROTO>
    RD_MEMBER bool gather(uint4 *buffer, const uint4 (&v)[PROTO::ITEMS], bool dead) const
    {
#pragma unroll
        for (uint32_t j = 0; j < PROTO::ITEMS; j++)
            buffer[(peer * PROTO::ITEMS + j) * 32] = v[j];
        return !group_any(index + 1, n * 32, dead);
    }

    template <class PROTO, class ARITH>
    RD_MEMBER void sum(uint4 (&v)[PROTO::ITEMS], const uint4 *buffer, const ARITH &number) const
    {
#pragma unroll
        for (uint32_t j = 0; j < PROTO::ITEMS; j++)
            v[j] = number.finished(number.all(buffer + j * 32, PROTO::ITEMS * 32, n));
    }
};

template <class PROTO, class ARITH>
RD_DEVICE void rd_tile_scale(uint4 (&v)[PROTO::ITEMS], const ARITH &number)
{
#pragma unroll
    for (uint32_t j = 0; j < PROTO::ITEMS; j++)
        v[j] = number.scaled(v[j]);
}

/* One turn of a group of warps: what it serves next. */
struct rd_turn_t {
    uint32_t tile; /* among those that the operation has in a pass */
    uint32_t pass;
    uint64_t at; /* where the tile's data begin, in bytes of a chunk */
    bool begins; /* the turn may be the first one of the launch */
    bool after;  /* turns before this one have cleaned slots that this pass may use */
};

/* The turns of an operation that has a launch of its own. A group takes its tile through all passes; the passes of a
 * short operation have each their cell, so they are shared among the groups, like tiles. */
struct rd_turns_t {
    uint32_t tiles, passes; /* tiles that groups share; passes of each */

    RD_MEMBER rd_turns_t(const rd_kreduce_t &r)
    {
        tiles = RD_KCELL(r.slice) ? r.passes : r.tiles;
        passes = RD_KCELL(r.slice) ? 1 : r.passes;
    }

    /* Returns the passes of the operation. */
    static RD_MEMBER uint32_t of(const rd_kreduce_t &r)
    {
        return RD_KCELL(r.slice) ? (r.passes + r.tiles - 1) >> RD_KCELL_SHIFT(r.slice) : r.passes;
    }

    static RD_MEMBER rd_turn_t turn(const rd_kreduce_t &r, uint32_t tile, uint32_t pass, uint32_t data)
    {
        const uint32_t cell = tile >> RD_KCELL_SHIFT(r.slice); /* 0 if the operation is not short */
        rd_turn_t t;

        t.tile = tile - cell * r.tiles;
        t.pass = cell + pass;
        t.at = ((uint64_t)pass * r.tiles + tile) * data;
        t.begins = pass == 0;
        t.after = pass > 0;
        return t;
    }
};

/* A warp's part of an operation that reduces, in one hop or in two (twoshot.cuh). */
template <class PROTO, class ARITH>
struct rd_shot_t {
    typename ARITH::part_t in, out; /* of two hops: the peer's chunk of each buffer */
    uint32_t tiles;
    bool two, other, sends, sums;

    RD_MEMBER rd_shot_t(const rd_kreduce_t &r, const rd_group_t &g, bool two_hops)
    {
        const uint64_t bytes = r.count * rd_arith_size(r.type), chunk = two_hops ? rd_kchunk(bytes, g.n) : bytes;
        const uint64_t block = r.coll == RD_REDUCE_SCATTER ? g.peer * (bytes + r.gap) : 0;
        const bool all = r.coll != RD_REDUCE;
        const uint64_t begin = two_hops ? g.peer * chunk : block;
        const uint64_t end = two_hops && begin + chunk > bytes ? bytes : begin + chunk;

        in = ARITH::part(r, r.in, begin, end);
        out = two_hops ? ARITH::part(r, r.out, begin, end) : ARITH::part(r, r.out, 0, bytes);
        tiles = r.tiles;
        two = two_hops;
        other = g.peer != g.rank;
        sends = other && (all || g.peer == (uint32_t)r.root);
        sums = all || g.rank == (uint32_t)r.root;
    }

    /* The slot, in one of the hops, for what `from` sends to `to`. */
    RD_MEMBER char *slot(const rd_epoch_t &e, const rd_turn_t &t, uint32_t to, uint32_t from, uint32_t hop) const
    {
        return e.bank(to, t.pass) + ((uint64_t)(hop * (uint32_t)e.comm.nranks + from) * tiles + t.tile) * PROTO::WIRE;
    }

    RD_MEMBER void load(uint4 (&v)[PROTO::ITEMS], const ARITH &number, const rd_turn_t &t, const rd_group_t &g,
                        rd_epoch_t &e) const
    {
        rd_tile_load<PROTO>(v, in, t.at, g.lane);
        if (t.begins)
            e.announce(g.announces());
        rd_tile_scale<PROTO>(v, number);
    }

    RD_MEMBER void send(const uint4 (&v)[PROTO::ITEMS], const rd_turn_t &t, const rd_group_t &g, rd_epoch_t &e) const
    {
        if (sends && e.gate(t.pass, t.after))
            PROTO::send(slot(e, t, g.peer, g.rank, 0), v, g.lane);
    }

    RD_MEMBER void receive(uint4 (&v)[PROTO::ITEMS], const rd_turn_t &t, const rd_group_t &g, rd_epoch_t &e,
                           uint32_t hop) const
    {
        char *mine = slot(e, t, g.rank, g.peer, hop);

        PROTO::receive(v, mine, g.lane, e.wait);
        PROTO::clean(mine, g.lane);
    }

    /* The rest, when this rank's part has been sent. Returns false if the group has to leave. */
    RD_MEMBER bool finish(uint4 (&v)[PROTO::ITEMS], const ARITH &number, const rd_turn_t &t, const rd_group_t &g,
                          rd_epoch_t &e, uint4 *buffer) const
    {
        if (sums && other)
            receive(v, t, g, e, 0);
        if (!(sums ? g.gather<PROTO>(buffer, v, e.wait.dead) : !e.wait.dead))
            return false;
        if (sums && (two || !other))
            g.sum<PROTO>(v, buffer, number);
        if (two && other) {
            PROTO::send(slot(e, t, g.peer, g.rank, 1), v, g.lane);
            receive(v, t, g, e, 1);
        }
        if (two ? !e.wait.dead : sums && !other)
            rd_tile_store<PROTO>(out, t.at, v, g.lane);
        return true;
    }

    RD_MEMBER bool serve(const rd_group_t &g, rd_epoch_t &e, const ARITH &number, const rd_turn_t &t,
                         uint4 *buffer) const
    {
        uint4 v[PROTO::ITEMS];

        load(v, number, t, g, e);
        send(v, t, g, e);
        return finish(v, number, t, g, e, buffer);
    }
};

/* allreduce, reduce, reduce_scatter */
template <class PROTO, class ARITH, uint32_t THREADS>
RD_KERNEL(THREADS)
rd_oneshot(RD_WORK(rd_kwork_reduce_t))
{
    const rd_kreduce_t &r = work.reduce;
    rd_group_t g(work.comm);
    const rd_shot_t<PROTO, ARITH> x(r, g, false);
    rd_epoch_t e(work.comm, g.peer, RD_KCELL(r.slice));
    const rd_turns_t all(r);

    e.prefetch();
    rd_tile_prefetch<PROTO>(x.in, all.turn(r, g.tile, 0, PROTO::DATA).at, g.lane);
    gpu_begin();
    gpu_let_in(work.comm.lets_in);
    e.begin();
    const ARITH number(r, g.n);
    for (bool good = true; good && g.tile < all.tiles; g.next(all.passes)) {
        for (uint32_t pass = 0; pass < all.passes && good; pass++)
            good = x.serve(g, e, number, all.turn(r, g.tile, pass, PROTO::DATA), g.buffer<PROTO>(pass));
    }
    e.end(all.of(r));
}

/* allgather, broadcast, alltoall, gather, scatter: a warp's part of an operation */
template <class PROTO>
struct rd_oneshot_move_t {
    rd_part_t in, out;
    uint32_t tiles;
    bool sends, receives;

    RD_MEMBER rd_oneshot_move_t(const rd_kreduce_t &r, const rd_group_t &g)
    {
        const uint32_t rank = g.rank, peer = g.peer;
        const uint64_t bytes = r.count * rd_arith_size(r.type);
        const uint32_t root = (uint32_t)r.root;
        const bool from_blocks = r.coll == RD_ALLTOALL || r.coll == RD_SCATTER;
        const bool to_blocks = r.coll == RD_ALLTOALL || r.coll == RD_ALLGATHER || r.coll == RD_GATHER;
        const uint64_t from = from_blocks ? peer * bytes : 0, to = to_blocks ? peer * bytes : 0;

        tiles = r.tiles;
        in = rd_part(r.in, from, from + bytes);
        out = rd_part(r.out, to, to + bytes);
        sends = receives = true;
        if (r.coll == RD_BROADCAST || r.coll == RD_SCATTER) {
            sends = rank == root;
            receives = peer == root;
        } else if (r.coll == RD_GATHER) {
            sends = peer == root;
            receives = rank == root;
        }
        if (peer == rank && in.base == out.base) /* the block is in place already, and other warps read it */
            receives = false;
    }

    /* Returns false if the warp has to leave. */
    RD_MEMBER bool serve(const rd_group_t &g, rd_epoch_t &e, const rd_turn_t &t) const
    {
        const bool other = g.peer != g.rank;
        uint4 v[PROTO::ITEMS];

        if (sends)
            rd_tile_load<PROTO>(v, in, t.at, g.lane);
        if (t.begins)
            e.announce(g.announces());
        if (sends && other && e.gate(t.pass, t.after))
            PROTO::send(e.bank(g.peer, t.pass) + ((uint64_t)g.rank * tiles + t.tile) * PROTO::WIRE, v, g.lane);
        if (receives && other) {
            char *slot = e.bank(g.rank, t.pass) + ((uint64_t)g.peer * tiles + t.tile) * PROTO::WIRE;
            PROTO::receive(v, slot, g.lane, e.wait);
            PROTO::clean(slot, g.lane);
        }
        if (!e.wait.dead && receives)
            rd_tile_store<PROTO>(out, t.at, v, g.lane);
        return !e.wait.dead;
    }
};

template <class PROTO, uint32_t THREADS>
RD_KERNEL(THREADS)
rd_oneshot_move(RD_WORK(rd_kwork_reduce_t))
{
    const rd_kreduce_t &r = work.reduce;
    rd_group_t g(work.comm);
    const rd_oneshot_move_t<PROTO> x(r, g);
    rd_epoch_t e(work.comm, g.peer, RD_KCELL(r.slice));
    const rd_turns_t all(r);

    e.prefetch();
    if (x.sends)
        rd_tile_prefetch<PROTO>(x.in, all.turn(r, g.tile, 0, PROTO::DATA).at, g.lane);
    gpu_begin();
    gpu_let_in(work.comm.lets_in);
    e.begin();
    for (bool good = true; good && g.tile < all.tiles; g.next(all.passes)) {
        for (uint32_t pass = 0; pass < all.passes && good; pass++)
            good = x.serve(g, e, all.turn(r, g.tile, pass, PROTO::DATA));
    }
    e.end(all.of(r));
}

#endif
