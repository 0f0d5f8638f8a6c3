/* Messages between pairs of ranks, any number of them in a launch, each of its own length; what is sent here is
 * received by the peer in a launch of its own, which may hold other messages beside. Two ranks know nothing of each
 * other but the order of their messages and their lengths, so nothing else decides where a piece goes:
 *
 *   piece i of a message   960 bytes, an LL128 unit, through fifo i mod rd_kernel_spread(bytes)
 *
 * A pair has some warps here and maybe another number there. Warp w serves the fifos w, w + warps, ...; each goes
 * through its pieces in order, so the lowest piece that anybody waits for can always move. A fifo's counters lie in the
 * control pages, and lane 0 keeps those of the fifo that is being served. */
#ifndef RD_MESSAGES_CUH
#define RD_MESSAGES_CUH

#include "codec.cuh"
#include "epoch.cuh"

/* The fifos from a rank to another: this warp's view. */
struct rd_fifos_t {
    typedef rd_codec_ll128 codec_t;

    const rd_kcomm_t &comm;
    rd_kcontrol_t *control, *theirs;
    uint32_t peer, lane;
    uint32_t fifo;    /* that is served; ~0: none */
    uint32_t moved;   /* slots sent or received */
    uint32_t cleaned; /* sender: by the peer, when last looked at */
    uint32_t *count;  /* where `moved` is kept */
    uint32_t *counts;
    char *base; /* of the fifos in the receiver's window */
    rd_wait_t wait;

    RD_MEMBER rd_fifos_t(const rd_kcomm_t &c, uint32_t p, bool send) : comm(c), peer(p)
    {
        uint32_t from = send ? (uint32_t)comm.rank : peer, to = send ? peer : (uint32_t)comm.rank;

        control = (rd_kcontrol_t *)comm.window[comm.rank];
        theirs = (rd_kcontrol_t *)comm.window[peer];
        counts = (send ? control->sent : control->received) + peer * RD_KFIFOS;
        base = comm.window[to] + (uint64_t)comm.fifo_offset * RD_KALIGN +
               (uint64_t)from * comm.fifos * RD_KSLOTS * RD_KSLOT;
        lane = rd_lane();
        fifo = ~0u;
        wait.begin(comm.host, peer);
    }

    RD_MEMBER void keep()
    {
        if (fifo != ~0u && lane == 0)
            word_store(&counts[fifo], moved);
    }

    RD_MEMBER void turn_to(uint32_t f)
    {
        if (f == fifo)
            return;
        keep();
        fifo = f;
        moved = warp_first(lane == 0 ? word_load(&counts[fifo]) : 0);
        cleaned = moved - RD_KSLOTS; /* not known: look */
    }

    RD_MEMBER char *slot() const
    {
        return base + ((uint64_t)fifo * RD_KSLOTS + moved % RD_KSLOTS) * RD_KSLOT;
    }

    RD_MEMBER bool send(const rd_part_t &part, uint64_t at)
    {
        uint4 v[codec_t::ITEMS];

        rd_unit_load<codec_t>(v, part, at, lane);
        if (moved - cleaned >= RD_KSLOTS) {
            do
                cleaned = word_load(&control->cleaned[peer * RD_KFIFOS + fifo]);
            while (moved - cleaned >= RD_KSLOTS && wait.more());
            if (!rd_wait_over(wait))
                return false;
            cleaned = warp_first(cleaned); /* lanes may have seen different values */
        }
        codec_t::send(slot(), v, lane);
        moved++;
        return true;
    }

    /* The sender hears of every second slot: two of its four are enough to go on with. */
    RD_MEMBER bool receive(const rd_part_t &part, uint64_t at)
    {
        uint4 v[codec_t::ITEMS];

        if (!codec_t::receive(v, slot(), lane, wait))
            return false;
        codec_t::clean(slot(), lane);
        moved++;
        if (moved % 2 == 0) {
            fence_sys();
            warp_sync();
            if (lane == 0)
                word_store(&theirs->cleaned[comm.rank * RD_KFIFOS + fifo], moved);
        }
        rd_unit_store<codec_t>(part, at, v, lane);
        return true;
    }
};

RD_DEVICE uint32_t rd_spread(uint64_t bytes, uint32_t fifos)
{
    uint64_t pieces = (bytes + rd_codec_ll128::DATA - 1) / rd_codec_ll128::DATA;

    return pieces < fifos ? (uint32_t)pieces : fifos;
}

/* Warp w of `warps`: its pieces of one message. */
RD_DEVICE bool rd_message_move(rd_fifos_t &f, const rd_kmessage_t &m, bool send, uint32_t w, uint32_t warps)
{
    const rd_part_t part = rd_part(m.buffer, 0, m.bytes);
    const uint32_t spread = rd_spread(m.bytes, f.comm.fifos);
    const uint64_t row = (uint64_t)spread * rd_codec_ll128::DATA;

    for (uint64_t first = 0; first < m.bytes; first += row)
        for (uint32_t fifo = w; fifo < spread; fifo += warps) {
            uint64_t at = first + fifo * rd_codec_ll128::DATA;
            if (at >= m.bytes)
                break;
            f.turn_to(fifo);
            if (send ? !f.send(part, at) : !f.receive(part, at))
                return false;
        }
    return true;
}

template <uint32_t THREADS>
RD_KERNEL(THREADS)
rd_messages(RD_WORK)
{
    const rd_kmessages_t &m = work.messages;
    const uint32_t index = (gpu_block() * gpu_threads() + gpu_thread()) / 32;
    const uint32_t warps = gpu_blocks() * gpu_threads() / 32, w = m.npairs ? index / m.npairs : m.warps;

    gpu_begin();
    bool dead = false;
    if (w < m.warps) {
        const rd_kpair_t &pair = m.pair[index % m.npairs];
        const bool send = pair.send != 0;
        rd_fifos_t f(work.comm, pair.peer, send);
        for (uint32_t i = 0; i < pair.count && !dead; i++) {
            const rd_kmessage_t *message = m.table ? &m.table[pair.first + i] : &m.here[pair.first + i];
            dead = !rd_message_move(f, *message, send, w, m.warps);
        }
        if (!dead)
            f.keep();
    }
    if (dead || m.to_self.bytes == 0)
        return;
    const rd_part_t from = rd_part(m.from_self.buffer, 0, m.to_self.bytes);
    const rd_part_t to = rd_part(m.to_self.buffer, 0, m.to_self.bytes);
    for (uint64_t at = ((uint64_t)index * 32 + rd_lane()) * 16; at < to.bytes; at += (uint64_t)warps * 512)
        rd_part_store(to, at, rd_part_load(from, at));
}

#endif
