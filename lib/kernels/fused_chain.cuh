/* Broadcasts and reductions by chain in a launch of several operations (fused.cuh): through the fifos, and as the
 * pieces, that they would have alone (chain.cuh). So what is where does not depend on who launches what together.
 *
 * One operation after the other has a piece in each pass and fifo that it uses, and `share` warps take the pieces of a
 * fifo in turn. A piece's number, which is that of its slot and its flag, follows from those before it in the launch.
 * So no warp has to wait for another to send, as long as slots are free. Of what is received, one warp tells the sender
 * when a round of `share` pieces is over for all of them, at a barrier.
 *
 * No wait goes round in a circle: each warp takes its pieces in the order of the calls, and a piece waits for its own
 * operation and for earlier ones alone. That holds for free slots, too, because a round has no more pieces than half of
 * the slots: piece p waits until slots are free up to p - RD_KSLOTS, and when the receiver begins the round of p it has
 * said so, for it has taken all pieces up to p - RD_KSHARE and is behind with saying so by less than another half. */
#ifndef RD_KERNELS_FUSED_CHAIN_CUH
#define RD_KERNELS_FUSED_CHAIN_CUH

#include "kernels/arith_any.cuh"
#include "kernels/arith_wide.cuh"
#include "kernels/chain.cuh"
#include "kernels/epoch.cuh"

/* All but passes, tiles and slice. */
RD_DEVICE void rd_fused_unpack(rd_kreduce_t &r, const rd_kshort_t &s)
{
    r.in = s.in;
    r.out = s.out;
    r.count = s.count;
    r.gap = 0;
    r.scale[0] = s.scale[0];
    r.scale[1] = s.scale[1];
    r.device_scale = s.scaled & RD_KPOINTED ? (const void *)s.scale[0] : nullptr;
    r.root = s.root;
    r.coll = s.coll;
    r.narrow = s.narrow;
    r.type = s.type;
    r.op = s.op;
    r.scaled = s.scaled & ~RD_KPOINTED;
}

/* A fifo whose pieces several warps take: none of them says by itself what has been taken. */
template <class PROTO>
struct rd_fifo_shared_t : rd_fifo_t<PROTO> {
    using rd_fifo_t<PROTO>::rd_fifo_t;

    template <uint32_t PIECES>
    RD_MEMBER bool take(uint4 (&v)[PIECES][PROTO::ITEMS])
    {
        uint4 wire[PIECES][PROTO::LINES];

        if (!this->template arrive<PIECES>(wire))
            return false;
#pragma unroll
        for (uint32_t i = 0; i < PIECES; i++)
            PROTO::join(v[i], wire[i], this->lane);
        return true;
    }
};

/* A warp among those that share a fifo to the next rank and the same fifo from the one before. The fifos are made again
 * for each piece, which takes fewer registers than to keep them. */
template <class PROTO>
struct rd_chains_t {
    const rd_kcomm_t &comm;
    const rd_kfused_t &f;
    uint32_t barrier;    /* of the fifo's warps */
    uint32_t fifo, turn; /* turn: of the warp that takes the next piece */
    uint32_t sent, received, said, cleaned;
    bool left;

    RD_MEMBER rd_chains_t(const rd_kcomm_t &c, const rd_kfused_t &fused, uint32_t number, uint32_t warp)
        : comm(c), f(fused), barrier(warp / f.share + 1), fifo(number), turn(0)
    {
        rd_fifo_t<PROTO> from(comm, previous(), false, fifo);
        from.begin(false);
        rd_fifo_t<PROTO> to(comm, following(), true, fifo);
        to.begin(true);
        from.read();
        to.read();
        sent = to.moved;
        cleaned = to.cleaned;
        received = said = from.moved;
        left = from.wait.dead;
    }

    RD_MEMBER uint32_t previous() const
    {
        return (uint32_t)(comm.rank == 0 ? comm.nranks : comm.rank) - 1;
    }

    RD_MEMBER uint32_t following() const
    {
        return comm.rank + 1 == comm.nranks ? 0 : (uint32_t)comm.rank + 1;
    }

    /* Which of the fifo's warps this is. */
    RD_MEMBER uint32_t index() const
    {
        return gpu_thread() / 32 & (f.share - 1);
    }

    /* Is this the thread that speaks for all warps of the fifo? */
    RD_MEMBER bool speaks() const
    {
        return index() == 0 && rd_lane() == 0;
    }

    /* Waits for the other warps of the fifo. Returns false if one of them has to leave: then all of them leave. */
    RD_MEMBER bool meet(bool good)
    {
        warp_sync();
        left = f.share == 1 ? !good : group_any(barrier, f.share * 32, !good);
        return !left;
    }

    RD_MEMBER void say()
    {
        if (received / RD_KSHARE != said / RD_KSHARE && speaks())
            word_store(rd_fifo_t<PROTO>(comm, previous(), false, fifo, received, 0).taken, received);
        said = received;
    }

    /* The next piece has had its turn. */
    RD_MEMBER bool next(bool receives, bool sends)
    {
        received += receives;
        sent += sends;
        if (++turn < f.share)
            return true;
        turn = 0;
        if (received == said)
            return true;
        if (!meet(true))
            return false;
        say();
        return true;
    }

    template <class ARITH>
    RD_MEMBER bool piece(const rd_kshort_t &s, uint32_t pass)
    {
        const uint64_t at = ((uint64_t)pass * s.tile + fifo) * PROTO::DATA;
        rd_kreduce_t r;

        rd_fused_unpack(r, s);
        r.passes = s.pass;
        r.tiles = s.tile;
        rd_chain_t<PROTO, ARITH> x = {r};
        x.roles((uint32_t)comm.rank, following(), (uint32_t)comm.nranks);
        const ARITH number(r, (uint32_t)comm.nranks);
        rd_fifo_shared_t<PROTO> from(comm, previous(), false, fifo, received, 0),
            to(comm, following(), true, fifo, sent, cleaned);
        const bool good = x.template step<1>(from, to, at, number);

        cleaned = to.cleaned;
        return good;
    }

    /* Only the warp whose turn it is reads the operation as a whole: that takes a microsecond. */
    RD_MEMBER bool serve(const rd_kshort_t &s)
    {
        const uint32_t rank = (uint32_t)comm.rank;
        const bool receives = rd_chain_receives(s.coll == RD_REDUCE, rank, s.root, (uint32_t)comm.nranks);
        const bool sends = rd_chain_sends(s.coll == RD_REDUCE, rank, following(), s.root);

        for (uint32_t pass = 0; pass < s.pass; pass++) {
            if (turn == index() && !(s.narrow ? piece<rd_arith_wide>(s, pass) : piece<rd_arith_any>(s, pass)))
                return false;
            if (!next(receives, sends))
                return false;
        }
        return true;
    }

    /* The end, after all operations or when this warp has to leave. */
    RD_MEMBER bool end(bool good)
    {
        if (left || !meet(good))
            return false;
        say();
        if (speaks()) {
            word_store(rd_fifo_t<PROTO>(comm, previous(), false, fifo, received, 0).count, received);
            word_store(rd_fifo_t<PROTO>(comm, following(), true, fifo, sent, 0).count, sent);
        }
        return true;
    }
};

/* Called by the blocks that serve the chains of a launch; `block` counts them. Returns false if the warp has to leave.
 */
template <class PROTO>
RD_DEVICE bool rd_fused_chains(const rd_kcomm_t &comm, const rd_kfused_t &f, uint32_t block)
{
    const uint32_t warp = gpu_thread() / 32, in_block = gpu_threads() / 32 / f.share;
    const uint32_t fifo = block * in_block + warp / f.share;

    if (warp / f.share >= in_block || fifo >= f.fifos)
        return true;
    rd_chains_t<PROTO> x(comm, f, fifo, warp);
    bool good = !x.left;
    x.left = false; /* the other warps wait for this one to leave */
    for (uint32_t i = 0; i < f.chains && good; i++) {
        const rd_kshort_t &s = f.op[RD_KFUSED - 1 - i];
        if (fifo < s.tile)
            good = x.serve(s);
    }
    return x.end(good);
}

#endif
