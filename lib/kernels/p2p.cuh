/* Messages between pairs of ranks. A launch has any number of them, each of its own length. The peer receives in a
 * launch of its own, which may hold other messages too. Two ranks know nothing of each other but the order of their
 * messages and the lengths, so nothing else decides which fifo a piece goes through:
 *
 *   piece i of a message   through fifo i mod rd_kspread(bytes, piece)
 *
 * A pair has as many warps here as its longest message has fifos, and maybe another number at the peer. Warp w serves
 * fifo w and goes through its pieces in order, BATCH at a time while there are enough, so that the memory accesses of
 * several pieces overlap. The lowest piece that any rank waits for can always move.
 *
 * Long messages go by slices instead (p2p_slices.cuh), by blocks of the same launch. Which ones do depends only on
 * their bytes and on values that all ranks share. */
#ifndef RD_KERNELS_P2P_CUH
#define RD_KERNELS_P2P_CUH

#include "kernels/fifo.cuh"
#include "kernels/p2p_slices.cuh"

/* Returns the list of messages that launches of WRITE have put into memory for this launch. */
RD_DEVICE rd_kmessage_t *rd_list_of(const rd_kcomm_t &comm)
{
    return (rd_kmessage_t *)(comm.own + RD_KLIST_OFFSET);
}

template <uint32_t PIECES, class PROTO>
RD_DEVICE bool rd_pieces_move(rd_fifo_t<PROTO> &f, const rd_part_t &part, uint64_t at, uint64_t row, bool send)
{
    uint4 v[PIECES][PROTO::ITEMS];

#pragma unroll
    for (uint32_t i = 0; i < PIECES && send; i++)
        rd_tile_load<PROTO>(v[i], part, at + i * row, f.lane);
    if (send ? !f.template put<PIECES>(v) : !f.template take<PIECES>(v))
        return false;
#pragma unroll
    for (uint32_t i = 0; i < PIECES && !send; i++)
        rd_tile_store<PROTO>(part, at + i * row, v[i], f.lane);
    return true;
}

/* Copies the share of warp `w` of `warps`, to the destination that the peer has posted or into a buffer of this rank.
 * Each lane has several items on their way at once. */
RD_DEVICE void rd_share_copy(const rd_part_t &from, const rd_part_t &to, uint32_t w, uint32_t warps)
{
    constexpr uint32_t ITEMS = 8;
    uint4 v[ITEMS];

    for (uint64_t at = (uint64_t)w * ITEMS * 512 + rd_lane() * 16; at < to.bytes; at += (uint64_t)warps * ITEMS * 512) {
#pragma unroll
        for (uint32_t j = 0; j < ITEMS; j++)
            v[j] = rd_part_load(from, at + j * 512);
#pragma unroll
        for (uint32_t j = 0; j < ITEMS; j++)
            rd_part_store_far(to, at + j * 512, v[j]);
    }
}

/* Returns the number of the registered buffer that a message lies in, and its offset there, or NOWHERE. */
RD_DEVICE uint32_t rd_registered_find(const rd_kcomm_t &comm, const rd_kmessage_t &m, uint32_t count, uint64_t *offset)
{
    const rd_kregistered_t *all = ((const rd_kcontrol_t *)comm.own)->registered;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t base = all[i].base[comm.rank], bytes = all[i].bytes[comm.rank];
        *offset = (uint64_t)(uintptr_t)m.buffer - base;
        if (base && *offset <= bytes && m.bytes <= bytes - *offset)
            return i;
    }
    *offset = 0;
    return rd_fifo_t<rd_lines_ll128>::NOWHERE;
}

/* Moves a message whose destination the receiver posts. Afterwards it is done or, if *slots, it has to go by pieces.
 * Returns false if the kernel has to leave. */
template <class PROTO>
RD_DEVICE bool rd_message_dest(rd_fifo_t<PROTO> &f, const rd_kmessage_t &m, bool send, uint32_t fifo, uint32_t spread,
                               uint32_t registered, bool *slots)
{
    uint64_t offset;
    char *dest;

    if (send) {
        if (!f.read_post(&dest, m.bytes))
            return false;
        if (!(*slots = !dest)) {
            rd_share_copy(rd_part(m.buffer, 0, m.bytes), rd_part(dest, 0, m.bytes), fifo, spread);
            f.say_landed();
        }
        return true;
    }
    const uint32_t number = rd_registered_find(f.comm, m, registered, &offset);
    f.post_dest(number, offset);
    *slots = number == f.NOWHERE;
    return *slots || f.wait_landed();
}

/* Moves the warp's pieces of one message. */
template <class PROTO>
RD_DEVICE bool rd_message_move(rd_fifo_t<PROTO> &f, const rd_kmessages_t &all, const rd_kmessage_t &m, bool send,
                               uint32_t fifo)
{
    const rd_part_t part = rd_part(m.buffer, 0, m.bytes);
    const uint32_t spread = rd_kspread(m.bytes, PROTO::DATA, f.comm.spread);
    const uint64_t row = (uint64_t)spread * PROTO::DATA;
    uint64_t at = fifo < spread ? (uint64_t)fifo * PROTO::DATA : m.bytes;
    bool good = true, slots = true;

    if (all.registered && m.bytes >= all.posted && fifo < spread)
        good = rd_message_dest(f, m, send, fifo, spread, all.registered, &slots);
    if (!slots)
        return good;
    for (; at + (PROTO::BATCH - 1) * row < m.bytes && good; at += PROTO::BATCH * row)
        good = rd_pieces_move<PROTO::BATCH>(f, part, at, row, send);
    for (; at < m.bytes && good; at += row)
        good = rd_pieces_move<1>(f, part, at, row, send);
    return good;
}

/* The work of warp `index` of those that serve fifos: the messages of its pair. */
template <class PROTO>
RD_DEVICE void rd_lines_serve(const rd_kwork_t &work, const rd_kmessage_t *messages, uint32_t index)
{
    const rd_kmessages_t &m = work.messages;
    const uint32_t w = index / m.npairs;
    const rd_kpair_t &pair = m.pair[index % m.npairs];
    const bool send = pair.send != 0;
    rd_fifo_t<PROTO> f(work.comm, pair.peer, send, w);
    bool good = true;

    f.begin(send);
    for (uint32_t i = 0; i < pair.count && good; i++)
        good = rd_message_move(f, m, messages[pair.first + i], send, w);
    f.keep(good);
}

/* The work of block `block` of `blocks`. Warps that serve fifos come first, then blocks that serve streams (unless
 * ITEMS, the number that a thread has on their way at once, is 0). The other warps copy the rank's message to itself.
 */
template <class PROTO, uint32_t ITEMS>
RD_DEVICE void rd_messages_serve(const rd_kwork_t &work, uint32_t block, uint32_t blocks)
{
    const rd_kmessages_t &m = work.messages;
    const rd_kmessage_t *messages = m.listed ? rd_list_of(work.comm) : m.here;
    const uint32_t in_block = gpu_threads() / 32, warps = blocks * in_block;
    const uint32_t busy = m.npairs * m.warps, lines = (busy + in_block - 1) / in_block; /* warps; blocks */
    const uint32_t streams = ITEMS ? m.sends * m.senders + m.receives * m.receivers : 0;
    const uint32_t index = block * in_block + gpu_thread() / 32;

    if (index < busy) {
        rd_lines_serve<PROTO>(work, messages, index);
    } else if (ITEMS && block >= lines && block < lines + streams) {
        if constexpr (ITEMS > 0)
            rd_slice_stream_serve<ITEMS>(work.comm, m, messages, block - lines);
    } else {
        const uint32_t others = busy + (block < lines ? 0 : streams * in_block);
        rd_share_copy(rd_part(m.from_self.buffer, 0, m.to_self.bytes), rd_part(m.to_self.buffer, 0, m.to_self.bytes),
                      index - others, warps - busy - streams * in_block);
    }
}

/* All warps must run at once, so BLOCKS blocks must fit on a multiprocessor. */
template <class PROTO, uint32_t ITEMS, uint32_t THREADS, uint32_t BLOCKS>
RD_KERNEL_OF(THREADS, BLOCKS)
rd_messages(RD_WORK(rd_kwork_t))
{
    gpu_begin();
    gpu_let_in(work.comm.lets_in);
    rd_begun(work.comm);
    rd_messages_serve<PROTO, ITEMS>(work, gpu_block(), gpu_blocks());
}

#endif
