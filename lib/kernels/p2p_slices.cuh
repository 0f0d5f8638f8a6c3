/* Long messages, by slices (slices.cuh). All slices that a pair sends form one stream, and their numbers count on from
 * message to message and from launch to launch: both ends know the order of the messages and their lengths, and need to
 * know nothing else of each other.
 *
 *   slice i of a kernel's   by block i mod `senders` of the pair here and i mod `receivers` there, each in order
 *   slot                    promised by the receiver's block, which has RD_KSLICE_SLOTS in this kernel and takes turns
 *
 * The lowest slice that any rank waits for can always move: the receiving block has taken all its slices before it, so
 * it has promised a slot for this one, and the sending block has sent all its slices before it. So each end may have
 * any number of blocks, which work independently; but all blocks of a kernel must run at once, together with the warps
 * of its short messages.
 *
 * Nothing is sent before the receiver's kernel has begun. */
#ifndef RD_KERNELS_P2P_SLICES_CUH
#define RD_KERNELS_P2P_SLICES_CUH

#include "kernels/slices.cuh"

/* The position of a block in its pair's messages. */
struct rd_cursor_t {
    const rd_kcomm_t &comm;
    const rd_kmessage_t *message;
    uint32_t first, slices; /* the message's first slice, and its number of slices */
    uint32_t slice;         /* bytes of a slice */

    RD_MEMBER rd_cursor_t(const rd_kcomm_t &c, const rd_kmessage_t *m) : comm(c), message(m), first(0)
    {
        measure();
    }

    RD_MEMBER void measure()
    {
        slice = rd_kslice(message->bytes, comm.slice_least);
        slices = rd_kslices(message->bytes, slice);
    }

    /* Returns the move of slice i, which may not lie before the slice of the last call. */
    RD_MEMBER rd_move_t find(uint32_t i, bool send)
    {
        rd_move_t m;

        while (i - first >= slices) {
            first += slices;
            message++;
            measure();
        }
        m.in = m.out = rd_part(message->buffer, 0, message->bytes);
        m.at = (uint64_t)(i - first) * slice;
        m.bytes = message->bytes - m.at < slice ? (uint32_t)(message->bytes - m.at) : slice;
        m.contributes = m.sends = send;
        m.receives = m.keeps = !send;
        m.finishes = false;
        return m;
    }
};

RD_DEVICE char *rd_slice_slot(const rd_kcomm_t &comm, uint32_t rank, uint32_t slot)
{
    return comm.window[rank] + (uint64_t)comm.stream_offset * RD_KALIGN + (uint64_t)slot * RD_KSLICE;
}

/* A block's share of a pair's stream in one direction. */
struct rd_slice_stream_t {
    const rd_kcomm_t &comm;
    const rd_kpair_t &pair;
    rd_movers_t movers;
    rd_kstream_t *own, *mine, *theirs;
    uint32_t first;      /* slices of earlier kernels */
    uint32_t first_slot; /* receiver: the number of the block's first slot */

    RD_MEMBER rd_slice_stream_t(const rd_kcomm_t &c, const rd_kpair_t &p, uint32_t its)
        : comm(c), pair(p), movers(c, p.peer)
    {
        own = &((rd_kcontrol_t *)comm.own)->stream[pair.peer];
        mine = &((rd_kcontrol_t *)comm.window[comm.rank])->stream[pair.peer];
        theirs = &((rd_kcontrol_t *)comm.window[pair.peer])->stream[comm.rank];
        first = word_load(pair.send ? &own->sent : &own->received);
        first_slot = its * RD_KSLICE_SLOTS;
    }

    /* Receiver: promises a slot for slice i, the block's k-th. */
    RD_MEMBER void promise(uint32_t i, uint32_t k) const
    {
        const uint32_t s = first + i;

        if (i < pair.slices)
            word_store(&theirs->promised[s % RD_KPROMISED], RD_KPROMISE(s, first_slot + k % RD_KSLICE_SLOTS));
    }

    /* One of the movers waits. Receiver: until slice i has arrived. Sender: until slice i may be sent; returns the
     * number of its slot. */
    RD_MEMBER uint32_t await(uint32_t i)
    {
        const uint32_t s = first + i, due = pair.send ? RD_KPROMISE(s, 0) : s + 1;
        const uint32_t mask = pair.send ? ~(RD_KPROMISED - 1) : ~0u;
        const uint32_t *word = (pair.send ? mine->promised : mine->landed) + s % RD_KPROMISED;
        uint32_t is;

        while (((is = word_acquire(word)) & mask) != due && movers.wait.more()) {
        }
        return is & ~mask;
    }

    /* All threads move slice i, the block's k-th, of a pair that has `blocks` blocks. Returns false if the kernel has
     * to leave. */
    template <uint32_t ITEMS>
    RD_MEMBER bool move(const rd_move_t &m, uint32_t i, uint32_t k, uint32_t blocks)
    {
        const uint32_t row = movers.count * 16;
        uint32_t *shared = (uint32_t *)gpu_shared(); /* the promised slot */
        bool good = true;

        if (!movers.clerk) {
            if (gpu_thread() == 0)
                *shared = await(i);
            good = movers.ready();
            const char *from = rd_slice_slot(comm, (uint32_t)comm.rank, first_slot + k % RD_KSLICE_SLOTS);
            char *to = rd_slice_slot(comm, pair.peer, *shared);
            for (uint32_t at = gpu_thread() * 16; at < m.bytes && good; at += ITEMS * row)
                rd_items_move<ITEMS>(m, from, to, at, row);
        }
        if (movers.done(good)) {
            if (pair.send)
                word_store(&theirs->landed[(first + i) % RD_KPROMISED], first + i + 1);
            else
                promise(i + RD_KSLICE_SLOTS * blocks, k);
        }
        return !movers.wait.dead;
    }

    /* All threads call it at the end, when they have read `first`. */
    RD_MEMBER void keep(bool good, uint32_t blocks) const
    {
        good = !block_any(!good);
        if (gpu_thread() != 0)
            return;
        if (!good)
            rd_control_fail((rd_kcontrol_t *)comm.own);
        else if (last_to_arrive(pair.send ? &own->sending : &own->receiving, blocks))
            word_store(pair.send ? &own->sent : &own->received, first + pair.slices);
    }
};

/* The work of block `block` of those that serve streams. */
template <uint32_t ITEMS>
RD_DEVICE void rd_slice_stream_serve(const rd_kcomm_t &comm, const rd_kmessages_t &all, const rd_kmessage_t *messages,
                                     uint32_t block)
{
    const bool send = block < all.sends * all.senders;
    const uint32_t its = send ? block : block - all.sends * all.senders; /* its number in its direction */
    const uint32_t pairs = send ? all.sends : all.receives, blocks = send ? all.senders : all.receivers;
    const rd_kpair_t &pair = all.stream[send ? its % pairs : all.sends + its % pairs];
    rd_slice_stream_t stream(comm, pair, its);
    rd_cursor_t cursor(comm, messages + pair.first);
    const uint32_t b = its / pairs; /* its number in the pair */
    /* Asked of the whole block: each thread has read for itself whether the communicator has failed. */
    stream.movers.wait.dead = block_any(stream.movers.wait.dead);
    bool good = !stream.movers.wait.dead;

    for (uint32_t k = 0; k < RD_KSLICE_SLOTS && !send && good && gpu_thread() == 0; k++)
        stream.promise(b + k * blocks, k);
    for (uint32_t k = 0; b + k * blocks < pair.slices && good; k++)
        good = stream.move<ITEMS>(cursor.find(b + k * blocks, send), b + k * blocks, k, blocks);
    stream.keep(good, blocks);
}

#endif
