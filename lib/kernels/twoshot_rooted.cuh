/* Broadcast and reduce in two hops, for data that is too long for one hop, in which the root's link would carry a copy
 * for, or from, every rank. Every rank but the root is the *owner* of a chunk. In a broadcast, the root sends each
 * owner its chunk, and owners send their chunks to all ranks. In a reduce, all ranks send each owner their part of its
 * chunk, and owners send the sums to the root. A group of n warps, as in oneshot.cuh, serves the same tile of every
 * chunk.
 *
 *   bytes that a rank sends   as many as the operation has, whichever rank it is
 *   slot in a bank            [sender][tile], because no rank receives from the same rank in both hops
 *
 * As in oneshot.cuh, a rank that has received a peer's part of pass p + 1 knows that the peer's slot of pass p is
 * clean. That is why the root of a broadcast receives its chunks back, over a direction of the link that nothing else
 * uses. Sums are made in the order of the ranks. */
#ifndef RD_KERNELS_TWOSHOT_ROOTED_CUH
#define RD_KERNELS_TWOSHOT_ROOTED_CUH

#include "kernels/oneshot.cuh"

/* The position of a warp: the chunk of its peer, and the slots through which it sends and receives a tile. */
struct rd_rooted_t {
    rd_group_t g;
    bool owner, other, rooted; /* this rank has a chunk; the warp serves another rank; the warp serves the root */
    uint64_t begin, end;       /* bytes of the peer's chunk; the root's is empty */

    RD_MEMBER rd_rooted_t(const rd_kcomm_t &comm, const rd_kreduce_t &r) : g(comm)
    {
        const uint32_t root = (uint32_t)r.root;
        const uint64_t bytes = r.count * rd_arith_size(r.type), chunk = rd_kchunk(bytes, g.n - 1);

        owner = g.rank != root;
        other = g.peer != g.rank;
        rooted = g.peer == root;
        begin = (g.peer - (g.peer > root)) * chunk;
        end = rooted ? begin : begin + chunk < bytes ? begin + chunk : bytes;
    }

    template <class PROTO>
    RD_MEMBER char *slot(const rd_epoch_t &e, uint32_t of, uint32_t from, uint32_t tiles, uint32_t pass) const
    {
        return e.bank(of, pass) + ((uint64_t)from * tiles + g.tile) * PROTO::WIRE;
    }

    /* Called by an owner's group: sets `v`, in all its warps, to that of the warp that serves the root. Returns false
     * if one of them has to leave: then all of them leave. */
    template <class PROTO>
    RD_MEMBER bool share(uint4 *buffer, uint4 (&v)[PROTO::ITEMS], bool dead) const
    {
#pragma unroll
        for (uint32_t j = 0; j < PROTO::ITEMS && rooted; j++)
            buffer[j * 32] = v[j];
        if (group_any(g.index + 1, g.n * 32, dead))
            return false;
#pragma unroll
        for (uint32_t j = 0; j < PROTO::ITEMS; j++)
            v[j] = buffer[j * 32];
        return true;
    }
};

template <class PROTO, class ARITH, uint32_t THREADS>
RD_KERNEL(THREADS)
rd_rooted_reduce(RD_WORK(rd_kwork_reduce_t))
{
    const rd_kreduce_t &r = work.reduce;
    rd_rooted_t x(work.comm, r);
    rd_group_t &g = x.g;
    const typename ARITH::part_t in = ARITH::part(r, r.in, x.begin, x.end), out = ARITH::part(r, r.out, x.begin, x.end);
    rd_epoch_t e(work.comm, g.peer);

    gpu_begin();
    gpu_let_in(work.comm.lets_in);
    e.begin();
    const ARITH number(r, g.n);
    for (bool good = true; good && g.tile < r.tiles; g.next(r.passes)) {
        for (uint32_t pass = 0; pass < r.passes && good; pass++) {
            const uint64_t at = ((uint64_t)pass * r.tiles + g.tile) * PROTO::DATA;
            uint4 v[PROTO::ITEMS], *buffer = g.buffer<PROTO>(pass);
            rd_tile_load<PROTO>(v, in, at, g.lane);
            if (pass == 0)
                e.announce(g.announces());
            char *theirs = x.slot<PROTO>(e, g.peer, g.rank, r.tiles, pass);
            char *mine = x.slot<PROTO>(e, g.rank, g.peer, r.tiles, pass);
            rd_tile_scale<PROTO>(v, number);
            if (x.other) {
                if (e.gate(pass) && !x.rooted)
                    PROTO::send(theirs, v, g.lane);
                PROTO::receive(v, mine, g.lane, e.wait); /* an owner receives a part of its chunk, the root a sum */
                PROTO::clean(mine, g.lane);
            }
            good = x.owner ? g.gather<PROTO>(buffer, v, e.wait.dead) : !e.wait.dead;
            if (good && x.owner && x.rooted) {
                g.sum<PROTO>(v, buffer, number);
                PROTO::send(theirs, v, g.lane);
            } else if (good && !x.owner) {
                rd_tile_store<PROTO>(out, at, v, g.lane);
            }
        }
    }
    e.end(r.passes);
}

template <class PROTO, uint32_t THREADS>
RD_KERNEL(THREADS)
rd_rooted_broadcast(RD_WORK(rd_kwork_reduce_t))
{
    const rd_kreduce_t &r = work.reduce;
    rd_rooted_t x(work.comm, r);
    rd_group_t &g = x.g;
    const rd_part_t in = rd_part(r.in, x.begin, x.end), out = rd_part(r.out, x.begin, x.end);
    const bool last = x.owner && x.rooted; /* this warp receives before it sends */
    rd_epoch_t e(work.comm, g.peer);

    gpu_begin();
    gpu_let_in(work.comm.lets_in);
    e.begin();
    for (bool good = true; good && g.tile < r.tiles; g.next(r.passes)) {
        for (uint32_t pass = 0; pass < r.passes && good; pass++) {
            const uint64_t at = ((uint64_t)pass * r.tiles + g.tile) * PROTO::DATA;
            uint4 v[PROTO::ITEMS];
            if (!x.owner)
                rd_tile_load<PROTO>(v, in, at, g.lane);
            if (pass == 0)
                e.announce(g.announces());
            char *theirs = x.slot<PROTO>(e, g.peer, g.rank, r.tiles, pass);
            char *mine = x.slot<PROTO>(e, g.rank, g.peer, r.tiles, pass);
            if (x.other)
                (void)e.gate(pass);
            if (last) {
                PROTO::receive(v, mine, g.lane, e.wait);
                PROTO::clean(mine, g.lane);
            }
            good = x.owner ? x.share<PROTO>(g.buffer<PROTO>(pass), v, e.wait.dead) : !e.wait.dead;
            if (good && x.other)
                PROTO::send(theirs, v, g.lane);
            if (good && x.other && !last) {
                PROTO::receive(v, mine, g.lane, e.wait);
                PROTO::clean(mine, g.lane);
            }
            if (good && !e.wait.dead && (x.owner || r.in != r.out))
                rd_tile_store<PROTO>(out, at, v, g.lane);
        }
    }
    e.end(r.passes);
}

#endif
