/* A fifo from one rank to another, in the receiver's window. It has RD_KSLOTS slots of one tile, or *piece*, each. The
 * protocol is LL128, or LL where lines may arrive in parts; all fifos of a communicator always use the same one. Every
 * warp that sends or receives serves one fifo. Both ends count the pieces that have ever gone through it, and that
 * number is the flag of a piece. So a slot needs no cleaning, and the receiver needs no fence: once it has read a
 * piece, the sender may write to the slot again.
 *
 * The receiver tells the sender whenever half of the slots are free again, so the sender can fill the other half
 * meanwhile.
 *
 * A long message need not go through slots. If the receiver's buffer is registered, the receiver *posts* the number of
 * the registered buffer and the offset in it; the sender stores the warp's share there, and then releases a word that
 * says so. A share counts as one piece, whose slot stays unused. So the receiver alone decides, and nothing is stored
 * before its kernel has begun. */
#ifndef RD_KERNELS_FIFO_CUH
#define RD_KERNELS_FIFO_CUH

#include "kernels/proto.cuh"

template <class PROTO>
struct rd_fifo_t {
    static constexpr uint32_t NOWHERE = 0xffff; /* in the place of a registered buffer's number */
    static_assert(PROTO::WIRE == RD_KSLOT, "a piece fills a slot");

    const rd_kcomm_t &comm;
    uint32_t lane;
    uint32_t moved;   /* pieces sent or received */
    uint32_t cleaned; /* sender: pieces taken by the peer, when last checked */
    uint32_t *count;  /* where `moved` is kept between kernels */
    uint32_t *taken;  /* the receiver writes here how many pieces it has taken; the sender reads it */
    uint32_t *landed; /* the sender writes here that it has stored a share in a registered buffer */
    uint32_t *post;   /* the receiver writes here where such a share may lie */
    char *base;
    uint4 page; /* the first line of the control page, on its way like the counters until `read` */
    bool is_read;
    rd_wait_t wait;

    RD_MEMBER rd_fifo_t(const rd_kcomm_t &c, uint32_t peer, bool send, uint32_t fifo) : comm(c), is_read(false)
    {
        attach(peer, send, fifo);
    }

    /* For a kernel to call before gpu_begin(). */
    RD_MEMBER void prefetch(bool send) const
    {
        gpu_prefetch(count);
        gpu_prefetch(send ? (const void *)taken : base);
    }

    /* To be called behind gpu_begin(), for either end. */
    RD_MEMBER void begin(bool send)
    {
        page = line_load(comm.own);
        moved = word_load(count);
        cleaned = send ? word_load(taken) : 0;
    }

    /* For a caller that keeps the counters itself meanwhile. */
    RD_MEMBER rd_fifo_t(const rd_kcomm_t &c, uint32_t peer, bool send, uint32_t fifo, uint32_t m, uint32_t k)
        : comm(c), moved(m), cleaned(k), is_read(true)
    {
        attach(peer, send, fifo);
    }

    RD_MEMBER void attach(uint32_t peer, bool send, uint32_t fifo)
    {
        const uint32_t rank = (uint32_t)comm.rank, from = send ? rank : peer, to = send ? peer : rank;
        rd_kcontrol_t *own = (rd_kcontrol_t *)comm.own, *mine = (rd_kcontrol_t *)comm.window[rank];
        rd_kcontrol_t *theirs = (rd_kcontrol_t *)comm.window[peer];

        count = (send ? own->sent : own->received) + peer * RD_KFIFOS + fifo;
        taken = send ? &mine->taken[peer * RD_KFIFOS + fifo] : &theirs->taken[rank * RD_KFIFOS + fifo];
        landed = send ? &theirs->landed[rank * RD_KFIFOS + fifo] : &mine->landed[peer * RD_KFIFOS + fifo];
        post = send ? mine->post[peer * RD_KFIFOS + fifo] : theirs->post[rank * RD_KFIFOS + fifo];
        base = comm.window[to] + (uint64_t)comm.fifo_offset * RD_KALIGN +
               ((uint64_t)from * comm.fifos + fifo) * RD_KSLOTS * RD_KSLOT;
        lane = rd_lane();
        wait.begin(comm, peer);
    }

    /* Waits for what `begin` loads. That is not used before, so the data of the first pieces, and the words of
     * a second fifo, are loaded meanwhile. Lanes may have seen different values of the peer's word, and no lane may
     * come to `keep` before all have loaded `count`. */
    RD_MEMBER void read()
    {
        if (is_read)
            return;
        line_await(page);
        wait.dead = warp_any(rd_control_failed(page));
        moved = warp_first(moved);
        cleaned = warp_first(cleaned);
        is_read = true;
    }

    /* Keeps the counter at the end of a kernel, or records the failure. */
    RD_MEMBER void keep(bool good)
    {
        read();
        if (lane == 0 && good)
            word_store(count, moved);
        else if (lane == 0)
            rd_control_fail((rd_kcontrol_t *)comm.own);
    }

    RD_MEMBER char *slot(uint32_t ahead) const
    {
        return base + (uint64_t)((moved + ahead) % RD_KSLOTS) * RD_KSLOT;
    }

    /* Receiver: posts `offset` in registered buffer `number`; NOWHERE: the message goes by slots. */
    RD_MEMBER void post_dest(uint32_t number, uint64_t offset)
    {
        read();
        if (lane == 0)
            line_store(post,
                       make_uint4((uint32_t)offset, moved + 1, (uint32_t)(offset >> 32) << 16 | number, moved + 1));
    }

    /* Sender: waits for the post. *dest is then where `bytes` may lie, as mapped here, or NULL: the message goes by
     * slots. Returns false if the kernel has to leave. */
    RD_MEMBER bool read_post(char **dest, uint64_t bytes)
    {
        const uint32_t peer = wait.peer;
        uint4 line;

        read();
        do
            line = line_load(post);
        while ((line.y != moved + 1 || line.w != moved + 1) && wait.more());
        stores_follow();
        if (!rd_wait_over(wait))
            return false;
        const uint32_t number = line.z & 0xffff;
        const uint64_t offset = (uint64_t)(line.z >> 16) << 32 | line.x;
        *dest = NULL;
        if (number == NOWHERE)
            return true;
        const rd_kregistered_t *r = &((const rd_kcontrol_t *)comm.own)->registered[number % RD_KREGISTERED];
        if (number >= RD_KREGISTERED || !r->base[peer] || offset > r->bytes[peer] || bytes > r->bytes[peer] - offset) {
            word_store(&comm.host->failed, RD_KFAILED_POST);
            wait.dead = true;
            return false;
        }
        *dest = (char *)(uintptr_t)(r->base[peer] + offset);
        return true;
    }

    /* Sender: tells the receiver that the warp has stored its share. */
    RD_MEMBER void say_landed()
    {
        moved++;
        warp_release(landed, moved);
    }

    RD_MEMBER bool wait_landed()
    {
        while (word_load(landed) != moved + 1 && wait.more()) {
        }
        fence_sys();
        if (!rd_wait_over(wait))
            return false;
        said(1);
        return true;
    }

    /* Receiver: counts `pieces` pieces more, and tells the sender once for each half of the slots. */
    RD_MEMBER void said(uint32_t pieces)
    {
        moved += pieces;
        if (moved % (RD_KSLOTS / 2) < pieces && lane == 0)
            word_store(taken, moved);
    }

    /* Send and receive the next pieces, at most half of the slots. Return false if the kernel has to leave. */
    template <uint32_t PIECES>
    RD_MEMBER bool put(const uint4 (&v)[PIECES][PROTO::ITEMS])
    {
        read();
        /* Behind a kernel that has had to leave the numbers are those of pieces that it has not sent. */
        if (wait.dead || (int32_t)(moved + PIECES - cleaned) > (int32_t)RD_KSLOTS) {
            do
                cleaned = word_load(taken);
            while ((int32_t)(moved + PIECES - cleaned) > (int32_t)RD_KSLOTS && wait.more());
            if (!rd_wait_over(wait))
                return false;
            cleaned = warp_first(cleaned); /* lanes may have seen different values */
        }
#pragma unroll
        for (uint32_t i = 0; i < PIECES; i++)
            PROTO::send(slot(i), v[i], lane, moved + i + 1);
        moved += PIECES;
        return true;
    }

    template <uint32_t PIECES>
    RD_MEMBER bool take(uint4 (&v)[PIECES][PROTO::ITEMS])
    {
        uint4 wire[PIECES][PROTO::LINES];

        if (!arrive<PIECES>(wire))
            return false;
        said(PIECES); /* the votes above come after every lane's loads */
#pragma unroll
        for (uint32_t i = 0; i < PIECES; i++)
            PROTO::join(v[i], wire[i], lane);
        return true;
    }

    /* Waits for the next pieces. Returns false if the kernel has to leave. */
    template <uint32_t PIECES>
    RD_MEMBER bool arrive(uint4 (&wire)[PIECES][PROTO::LINES])
    {
        bool there;

        read();
        do {
            there = true;
#pragma unroll
            for (uint32_t i = 0; i < PIECES; i++)
                there &= PROTO::poll(wire[i], slot(i), lane, moved + i + 1);
        } while (!PROTO::over(there, wait));
        return rd_wait_over(wait);
    }
};

#endif
