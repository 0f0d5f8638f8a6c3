/* Waiting: every polling loop calls `more` after each poll that has found nothing. Once in RD_SPIN_PERIOD calls, `more`
 * reads the words in host memory, which are slow to load: the host may have aborted the communicator, or the wait may
 * have lasted too long. In either case the kernel leaves, and stores no more data into any window, because the data
 * that it would send is wrong. */
#ifndef RD_KERNELS_WAIT_CUH
#define RD_KERNELS_WAIT_CUH

#include <gpu.cuh>

#include "kernels/work.h"

struct rd_wait_t {
    const rd_kcomm_t *comm;
    uint32_t peer; /* the rank that the kernel waits for */
    uint32_t polls;
    uint32_t since; /* when poll_host was first called in this wait, in milliseconds; 0: not yet */
    bool dead;

    RD_MEMBER void begin(const rd_kcomm_t &c, uint32_t p)
    {
        comm = &c;
        peer = p;
        polls = since = 0;
        dead = false;
    }

    /* Returns true if the caller may poll again. */
    RD_MEMBER bool more()
    {
        if (++polls % RD_SPIN_PERIOD == 0)
            poll_host();
        return !dead;
    }

    RD_MEMBER void poll_host();
};

/* Behind gpu_begin() of every kernel that peers may wait for and that announces no epoch (epoch.cuh). gpu_begin()
 * stands in the kernel itself, because on the machine of test/delays it is an object, whose end must be the kernel's.
 */
RD_DEVICE void rd_begun(const rd_kcomm_t &comm)
{
    if (gpu_block() == 0 && gpu_thread() == 0)
        word_store(&((rd_kcontrol_t *)comm.window[comm.rank])->call, comm.call);
}

/* Kernels count epochs by themselves, so this is known of replays of a graph, too. The running epoch is the one after
 * the last that this rank has finished. */
RD_DEVICE uint32_t rd_epochs_behind(const rd_kcomm_t &comm, uint32_t peer)
{
    const uint32_t running = word_load(&((const rd_kcontrol_t *)comm.own)->epoch) + 1;
    const uint32_t begun = word_load(&((const rd_kcontrol_t *)comm.window[comm.rank])->begun[peer]);

    return peer != (uint32_t)comm.rank && (int32_t)(running - begun) > 0 ? running - begun : 0;
}

/* Until the host has read it, it stays. */
RD_DEVICE void rd_wait_show(const rd_kcomm_t &comm, uint32_t peer)
{
    rd_khost_t *host = comm.host;

    if (word_load(&host->wait[RD_KWAIT_PEER]))
        return;
    const bool reaches = peer < (uint32_t)comm.nranks;
    const uint32_t begun = reaches ? word_load(&((const rd_kcontrol_t *)comm.window[peer])->call) : 0;
    const uint32_t behind = reaches && RD_KCALL_EPOCH(comm.call) ? rd_epochs_behind(comm, peer) : 0;
    word_store(&host->wait[RD_KWAIT_CALL], comm.call);
    word_store(&host->wait[RD_KWAIT_PEER_CALL], RD_KWAIT_BEGUN(peer, begun));
    word_store(&host->wait[RD_KWAIT_EPOCHS], RD_KWAIT_BEHIND(peer, behind));
    fence_sys();
    word_store(&host->wait[RD_KWAIT_PEER], RD_KWAIT(peer, comm.call));
}

RD_DEVICE_FAR bool rd_wait_too_long(const rd_kcomm_t &comm, uint32_t peer, uint32_t *since)
{
    rd_khost_t *host = comm.host;
    uint32_t limit, ms;

    if (word_load(&host->abort)) {
        word_store(&host->failed, RD_KFAILED_ABORT);
        return true;
    }
    limit = word_load(&host->timeout_ms);
    ms = gpu_ms() | 1;
    if (*since == 0)
        *since = ms;
    if ((int32_t)(ms - *since - RD_KSLOW_MS) > 0)
        rd_wait_show(comm, peer);
    if (limit == 0 || (int32_t)(ms - *since - limit) <= 0)
        return false;
    word_store(&host->late, peer);
    fence_sys();
    word_store(&host->failed, RD_KFAILED_TIMEOUT);
    return true;
}

RD_MEMBER void rd_wait_t::poll_host()
{
    uint32_t when = since;

    dead = dead || rd_wait_too_long(*comm, peer, &when);
    since = when;
}

/* Marks the control page of a rank whose kernel has had to leave before its work was complete. Peers may still wait for
 * the data that it has not sent, and no later kernel of this rank may send them other data in its place. So the page
 * says that bank 0 has been used by an epoch that is never reached; every kernel that reads this leaves. */
RD_DEVICE void rd_control_fail(rd_kcontrol_t *control)
{
    word_store(&control->used[0], word_load(&control->epoch) + RD_KNEVER);
}

/* Returns true if a kernel of this rank has had to leave; `first` is the first line of the control page. */
RD_DEVICE bool rd_control_failed(const uint4 &first)
{
    return (int32_t)(first.z - first.x) > 0;
}

/* Called by all lanes of a warp after each has polled on its own. If one of them has to leave, all of them leave.
 * Returns false in that case. */
RD_DEVICE bool rd_wait_over(rd_wait_t &w)
{
    w.dead = warp_any(w.dead);
    w.polls = w.since = 0;
    return !w.dead;
}

#endif
