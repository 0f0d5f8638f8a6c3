/* An operation of all ranks: which banks it uses, when a peer's bank may be written, and how it ends. See work.h for
 * the rules.
 *
 * Every warp reads the control page by itself, so no warp waits for another at the beginning. The last block of the
 * grid advances the page; the next kernel of the
 * stream passes gpu_begin() after that. */
#ifndef RD_KERNELS_EPOCH_CUH
#define RD_KERNELS_EPOCH_CUH

#include <gpu.cuh>

#include "kernels/proto.cuh"
#include "kernels/wait.cuh"
#include "kernels/work.h"

struct rd_epoch_t {
    const rd_kcomm_t &comm;
    rd_kcontrol_t *control;     /* this rank's page */
    const uint32_t *peer_begun; /* the peer writes here which epoch it has begun */
    uint32_t peer;              /* the rank that this warp sends to */
    uint32_t cell;              /* bytes; 0: the operation is not short. If it is, each pass is an epoch of its own */
    uint32_t begun;             /* the epoch that the peer had begun when last checked */
    uint4 page;                 /* the first line of the control page, on its way until it is read */
    rd_wait_t wait;

    /* Returns the number of this epoch. */
    RD_MEMBER uint32_t number() const
    {
        return page.x + 1;
    }

    /* Returns the number of its first pass, counted over all epochs. */
    RD_MEMBER uint32_t first() const
    {
        return page.y;
    }

    /* Returns the last epoch that has used a bank. */
    RD_MEMBER uint32_t used(uint32_t bank) const
    {
        return bank ? page.w : page.z;
    }

    RD_MEMBER rd_epoch_t(const rd_kcomm_t &c, uint32_t p, uint32_t bytes = 0) : comm(c), peer(p), cell(bytes)
    {
        control = (rd_kcontrol_t *)comm.own;
        peer_begun = &((const rd_kcontrol_t *)comm.window[comm.rank])->begun[peer];
    }

    /* For a kernel to call before gpu_begin(). */
    RD_MEMBER void prefetch() const
    {
        gpu_prefetch(control);
        gpu_prefetch(peer_begun);
    }

    /* To be called behind gpu_begin(). */
    RD_MEMBER void begin()
    {
        page = line_load(control);
        begun = word_load(peer_begun);
        wait.begin(comm, peer);
    }

    /* Waits for the control page. What it says is not used before, so the warp's first data are loaded meanwhile. */
    RD_MEMBER void read()
    {
        line_await(page);
        wait.dead = wait.dead || rd_control_failed(page);
    }

    /* Announces the epoch to all peers, and on this rank's own page the call, as rd_begun does for kernels without
     * epochs. To be called when all loads that can be under way are; what follows may use the epoch's numbers. `to` is
     * the rank to which this thread does so, if there is such a rank: one thread of the grid for each. */
    RD_MEMBER void announce(uint32_t to)
    {
        read();
        if (to < (uint32_t)comm.nranks) {
            rd_kcontrol_t *page = (rd_kcontrol_t *)comm.window[to];
            const bool own = to == (uint32_t)comm.rank;
            word_store(own ? &page->call : &page->begun[comm.rank], own ? comm.call : number());
        }
    }

    /* Both banks as one, for kernels that have proof of their own from pass to pass. */
    RD_MEMBER char *banks(uint32_t rank) const
    {
        return comm.window[rank] + (uint64_t)comm.bank_offset * RD_KALIGN;
    }

    /* A rank's bank of a pass of this epoch, or the cell of it. */
    RD_MEMBER char *bank(uint32_t rank, uint32_t pass) const
    {
        const uint32_t at = first() + pass;

        return banks(rank) + (uint64_t)(at & 1) * comm.bank_bytes + (at / 2 % RD_KCELLS) * cell;
    }

    static RD_MEMBER uint32_t later(uint32_t a, uint32_t b)
    {
        return (int32_t)(a - b) > 0 ? a : b;
    }

    /* The last epoch that may have used the bank, or the cell, of a pass before this launch. Every epoch has a pass at
     * least, so the bank of the first pass was last used by the epoch before the last one, unless that used both. */
    RD_MEMBER uint32_t last(uint32_t pass) const
    {
        const uint32_t bound = number() + pass - (cell ? 2 * RD_KCELLS : 2);

        return later(used((first() + pass) & 1), bound);
    }

    /* Waits until the peer has begun an epoch after `last`. */
    RD_MEMBER bool wait_begun(uint32_t last)
    {
        /* Lanes may have seen different values, but all must do the same next. */
        if (warp_all((int32_t)(begun - last) > 0))
            return !wait.dead;
        wait.peer = peer;
        do
            begun = word_load(peer_begun);
        while ((int32_t)(begun - last) <= 0 && wait.more());
        return rd_wait_over(wait);
    }

    /* To be called before the peer's bank is written in a pass: the bank must hold no data of earlier epochs any more.
     * From the third pass on, an epoch that is not short has used the bank two passes before, and the kernel has proof
     * that the peer has cleaned it. The fence orders this warp's cleaning (`cleaned`) before its next sends: that is
     * the peer's proof.
     */
    RD_MEMBER bool gate(uint32_t pass, bool cleaned)
    {
        if (cleaned)
            fence_sys();
        if (!cell && pass > 1)
            return !wait.dead;
        return wait_begun(last(pass));
    }

    /* The same before both banks are written. */
    RD_MEMBER bool gate_banks(uint32_t pass)
    {
        if (pass > 0) {
            fence_sys();
            return !wait.dead;
        }
        return wait_begun(later(used(0), number() - 1));
    }

    /* The same for a kernel that has cleaned every pass before this one. */
    RD_MEMBER bool gate(uint32_t pass)
    {
        return gate(pass, pass > 0);
    }

    /* All threads call it at the end of the kernel. */
    RD_MEMBER void end(uint32_t passes)
    {
        read(); /* for a warp that had nothing to do */
        bool dead = block_any(wait.dead);

        if (dead && gpu_thread() == 0)
            rd_control_fail(control);
        if (dead || gpu_thread() != 0 || !last_to_arrive(&control->leaving, gpu_blocks()))
            return;
        word_store(&control->passes, first() + passes);
        if (cell)
            end_short(number() + passes - 1);
        else
            end_whole(passes);
    }

    RD_MEMBER void end_whole(uint32_t passes)
    {
        word_store(&control->epoch, number());
        word_store(&control->used[first() & 1], number());
        if (passes > 1)
            word_store(&control->used[(first() + 1) & 1], number());
    }

    /* `used` keeps up, so that it stays comparable however many short operations follow one another. */
    RD_MEMBER void end_short(uint32_t epoch)
    {
        word_store(&control->epoch, epoch);
        word_store(&control->used[0], later(used(0), epoch - 2 * RD_KCELLS));
        word_store(&control->used[1], later(used(1), epoch - 2 * RD_KCELLS));
    }
};

#endif
