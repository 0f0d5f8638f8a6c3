/* The interpreter: it runs a program of lib/sched, the same one that the host's executor would run, for tree, pat and
 * all other algorithms that have no kernel written by hand. Each track of the program has a warp for every tile. The
 * warp executes the track's steps on its tile of each chunk, which is BATCH pieces of a fifo, and then does the same in
 * the next pass.
 *
 *   bytes that a rank sends   as in the schedule (doc/algorithms.md)
 *   tile u of channel c       goes through fifo c * tiles + u of the two ranks
 *   scratch                   is shared memory of the block: a warp has BATCH pieces for each index of scratch, and
 *                             every lane reads only what it has written itself
 *
 * A step receives its messages one after the other, and sends as soon as there is room. So it never holds back a
 * message that the host's executor, which waits for all of them first, would have sent. And since a fifo always has
 * room for more than two batches, programs may be fused. The grid may have fewer warps than a pass has tiles: a warp
 * then serves several tiles of one track. No rank waits for ever, because the lowest tile that is not complete on all
 * ranks has a running warp for each of its tracks on every rank.
 *
 * Like chains, programs need no epochs: ranks that have run the same operations before have counted the same number of
 * pieces in each of their fifos. Each lane of a warp keeps the counts of one connection. */
#ifndef RD_KERNELS_PROGRAM_CUH
#define RD_KERNELS_PROGRAM_CUH

#include "sched/program.h"
#include "kernels/fifo.cuh"
#include "kernels/arith.cuh"
#include "kernels/table.h"

template <class PROTO, class ARITH>
struct rd_runner_t {
    static constexpr uint32_t ITEMS = PROTO::ITEMS, BATCH = PROTO::BATCH;
    static_assert(2 * RD_KCONNS == 32, "a lane for each connection");
    static_assert(BATCH == RD_KT_PIECES, "a tile, as the host knows it");

    const rd_kcomm_t &comm;
    const rd_kreduce_t &r;
    const rd_kprogram_t &p;
    const ARITH &number;
    uint64_t bytes, chunk; /* bytes of the whole or of a block; bytes from one chunk to the next */
    uint32_t scratch;      /* where this warp's scratch begins in shared memory, in items of 16 bytes */
    uint32_t lane, track, tile;
    uint32_t moved, cleaned; /* counts of this lane's connection, as in rd_fifo_t: lanes that send come first */

    RD_MEMBER rd_runner_t(const rd_kwork_t &work, const ARITH &n)
        : comm(work.comm), r(work.programmed.reduce), p(work.programmed.program), number(n)
    {
        lane = rd_lane();
        bytes = r.count * rd_arith_size(r.type);
        chunk = whole() ? rd_kchunk(bytes, p.chunks) : bytes;
    }

    /* Returns true if chunks are parts of one vector, and false if they are blocks of ranks. */
    RD_MEMBER bool whole() const
    {
        return r.coll == RD_ALLREDUCE || r.coll == RD_REDUCE || r.coll == RD_BROADCAST;
    }

    RD_MEMBER bool reduces() const
    {
        return r.coll == RD_ALLREDUCE || r.coll == RD_REDUCE || r.coll == RD_REDUCE_SCATTER;
    }

    /* Returns the chunk of the user's input or output that an end names. Where a buffer has a single block, it is this
     * rank's. */
    RD_MEMBER typename ARITH::part_t part(uint32_t end) const
    {
        const bool in = RD_KEND_WHERE(end) == RD_KEND_IN;
        const bool one =
            in ? r.coll == RD_ALLGATHER || r.coll == RD_GATHER : r.coll == RD_REDUCE_SCATTER || r.coll == RD_SCATTER;
        const uint64_t from = one ? 0 : RD_KEND_INDEX(end) * (chunk + r.gap), to = from + chunk;

        return ARITH::part(r, in ? r.in : r.out, from, whole() && to > bytes ? bytes : to);
    }

    RD_MEMBER uint4 *scratch_at(uint32_t end, uint32_t piece, uint32_t item) const
    {
        return gpu_shared() + scratch + ((RD_KEND_INDEX(end) * BATCH + piece) * ITEMS + item) * 32 + lane;
    }

    /* ---- counters ---- */

    RD_MEMBER const rd_kconn_t &link() const
    {
        return lane < RD_KCONNS ? p.to[lane] : p.from[lane - RD_KCONNS];
    }

    RD_MEMBER bool mine() const
    {
        return (lane < RD_KCONNS ? lane < p.sends : lane - RD_KCONNS < p.receives) && link().track == track;
    }

    RD_MEMBER uint32_t fifo(const rd_kconn_t &l) const
    {
        return l.channel * r.tiles + tile;
    }

    RD_MEMBER uint32_t *count() const
    {
        rd_kcontrol_t *own = (rd_kcontrol_t *)comm.own;

        return (lane < RD_KCONNS ? own->sent : own->received) + link().peer * RD_KFIFOS + fifo(link());
    }

    RD_MEMBER void begin()
    {
        moved = mine() ? word_load(count()) : 0;
        cleaned = moved - RD_KSLOTS; /* not known yet, so the first send polls */
    }

    RD_MEMBER void keep(bool good) const
    {
        if (good && mine())
            word_store(count(), moved);
        if (!good && lane == 0)
            rd_control_fail((rd_kcontrol_t *)comm.own);
    }

    /* ---- ends ---- */

    RD_MEMBER bool take(uint4 (&v)[BATCH][ITEMS], uint32_t i)
    {
        const uint32_t keeper = RD_KCONNS + i;
        rd_fifo_t<PROTO> f(comm, p.from[i].peer, false, fifo(p.from[i]), warp_from(moved, keeper), 0);
        const bool there = f.template take<BATCH>(v);

        moved = lane == keeper ? f.moved : moved;
        return there;
    }

    RD_MEMBER bool put(const uint4 (&v)[BATCH][ITEMS], uint32_t i)
    {
        const uint32_t m = warp_from(moved, i), c = warp_from(cleaned, i);
        rd_fifo_t<PROTO> f(comm, p.to[i].peer, true, fifo(p.to[i]), m, c);
        const bool gone = f.template put<BATCH>(v);

        moved = lane == i ? f.moved : moved;
        cleaned = lane == i ? f.cleaned : cleaned;
        return gone;
    }

    /* Loads a tile from the user's buffer, scaled if it is the input of a reduction. */
    RD_MEMBER void load(uint4 (&v)[BATCH][ITEMS], uint32_t end, uint64_t at) const
    {
        const typename ARITH::part_t from = part(end);

#pragma unroll
        for (uint32_t i = 0; i < BATCH; i++)
            rd_tile_load<PROTO>(v[i], from, at + i * PROTO::DATA, lane);
        if (RD_KEND_WHERE(end) != RD_KEND_IN || !reduces())
            return;
#pragma unroll
        for (uint32_t i = 0; i < BATCH; i++)
#pragma unroll
            for (uint32_t j = 0; j < ITEMS; j++)
                v[i][j] = number.scaled(v[i][j]);
    }

    /* Sets `v` to the tile of a source. `local` is the one from the user's buffer, which has been loaded already. */
    RD_MEMBER bool fetch(uint4 (&v)[BATCH][ITEMS], const uint4 (&local)[BATCH][ITEMS], uint32_t end)
    {
        if (RD_KEND_WHERE(end) == RD_KEND_CONN)
            return take(v, RD_KEND_INDEX(end));
#pragma unroll
        for (uint32_t i = 0; i < BATCH; i++)
#pragma unroll
            for (uint32_t j = 0; j < ITEMS; j++)
                v[i][j] = RD_KEND_WHERE(end) == RD_KEND_SCRATCH ? *scratch_at(end, i, j) : local[i][j];
        return true;
    }

    RD_MEMBER bool store(const uint4 (&v)[BATCH][ITEMS], uint32_t end, uint64_t at)
    {
        if (RD_KEND_WHERE(end) == RD_KEND_CONN)
            return put(v, RD_KEND_INDEX(end));
#pragma unroll
        for (uint32_t i = 0; i < BATCH; i++) {
            if (RD_KEND_WHERE(end) == RD_KEND_OUT)
                rd_tile_store<PROTO>(part(end), at + i * PROTO::DATA, v[i], lane);
#pragma unroll
            for (uint32_t j = 0; j < ITEMS && RD_KEND_WHERE(end) == RD_KEND_SCRATCH; j++)
                *scratch_at(end, i, j) = v[i][j];
        }
        return true;
    }

    /* ---- steps ---- */

    RD_MEMBER void add(uint4 (&v)[BATCH][ITEMS], const uint4 (&x)[BATCH][ITEMS], bool first) const
    {
#pragma unroll
        for (uint32_t i = 0; i < BATCH; i++)
#pragma unroll
            for (uint32_t j = 0; j < ITEMS; j++)
                v[i][j] = first ? x[i][j] : number.two(v[i][j], x[i][j]);
    }

    /* Executes a step. The load from the user's buffer is issued first, so that it overlaps the wait for messages. */
    RD_MEMBER bool step(const rd_kstep_t &s, uint64_t at)
    {
        uint4 v[BATCH][ITEMS], x[BATCH][ITEMS], local[BATCH][ITEMS];

        if (s.local != RD_KEND(RD_KEND_NONE, 0))
            load(local, s.local, at);
#pragma unroll 1
        for (uint32_t k = 0; k < s.sources; k++) {
            if (!fetch(x, local, s.from[k]))
                return false;
            add(v, x, k == 0);
        }
#pragma unroll
        for (uint32_t i = 0; i < BATCH && s.finishes && reduces(); i++)
#pragma unroll
            for (uint32_t j = 0; j < ITEMS; j++)
                v[i][j] = number.finished(v[i][j]);
#pragma unroll 1
        for (uint32_t k = 0; k < s.destinations; k++)
            if (!store(v, s.to[k], at))
                return false;
        return true;
    }

    /* Runs all passes of a tile. Returns false if the kernel has to leave. */
    RD_MEMBER bool run()
    {
        const uint32_t first = p.track[track].first, end = first + p.track[track].count;
        uint64_t at = (uint64_t)tile * BATCH * PROTO::DATA;
        bool good = true;

        begin();
#pragma unroll 1
        for (uint32_t n = 0; n < r.passes && good; n++, at += (uint64_t)r.tiles * BATCH * PROTO::DATA) {
#pragma unroll 1
            for (uint32_t i = first; i < end && good; i++)
                good = step(p.step[i], at);
        }
        keep(good);
        return good;
    }
};

/* The warps of a tile, one for each track, have consecutive numbers. */
template <class PROTO, class ARITH, uint32_t THREADS, uint32_t BLOCKS>
RD_KERNEL_OF(THREADS, BLOCKS)
rd_program(RD_WORK(rd_kwork_t))
{
    const rd_kprogram_t &p = work.programmed.program;
    const uint32_t in_block = gpu_threads() / 32, warp = gpu_thread() / 32;
    const uint32_t index = gpu_block() * in_block + warp, at_once = gpu_blocks() * in_block / p.tracks;

    gpu_begin();
    rd_begun(work.comm);
    const ARITH number(work.programmed.reduce, (uint32_t)work.comm.nranks);
    rd_runner_t<PROTO, ARITH> runner(work, number);
    bool good = index / p.tracks < at_once && !warp_any(rd_control_failed(line_load(work.comm.own)));

    runner.scratch = warp * p.scratch * PROTO::BATCH * PROTO::ITEMS * 32;
    runner.track = index % p.tracks;
    for (uint32_t u = index / p.tracks; u < work.programmed.reduce.tiles && good; u += at_once) {
        runner.tile = u;
        good = runner.run();
    }
}

#endif
