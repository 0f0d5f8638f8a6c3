/* Waiting: every polling loop calls `more` after each miss. Once in many calls, `more` checks the host's words, which
 * are far away: the host may want the kernel to leave, or the wait may have lasted too long. A kernel that leaves
 * stores nothing more into any window, because the data that it would send is not right. */
#ifndef RD_KERNELS_WAIT_CUH
#define RD_KERNELS_WAIT_CUH

#include <gpu.cuh>

#include "kernels/work.h"

struct rd_wait_t {
    rd_khost_t *host;
    uint32_t peer; /* the rank that the kernel waits for */
    uint32_t polls;
    uint32_t since; /* ms; 0: this wait has not been long */
    bool dead;

    RD_MEMBER void begin(rd_khost_t *h, uint32_t p)
    {
        host = h;
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

RD_DEVICE_FAR bool rd_wait_too_long(rd_khost_t *host, uint32_t peer, uint32_t *since)
{
    uint32_t limit, ms;

    if (word_load(&host->abort)) {
        word_store(&host->failed, RD_KFAILED_ABORT);
        return true;
    }
    limit = word_load(&host->timeout_ms);
    ms = gpu_ms() | 1;
    if (*since == 0)
        *since = ms;
    if ((int32_t)(ms - *since - RD_KSLOW_MS) > 0 && word_load(&host->slow) == 0) /* until the host has read it */
        word_store(&host->slow, peer + 1);
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

    dead = dead || rd_wait_too_long(host, peer, &when);
    since = when;
}

/* A kernel that has had to leave has not done its part, and peers may still come and wait for that: no later kernel of
 * this rank may send them something else in its place, or in the place of what should have become of it. So bank 0 is
 * said to have been used by an epoch that is never reached, and who reads that leaves. */
RD_DEVICE void rd_control_fail(rd_kcontrol_t *control)
{
    word_store(&control->used[0], word_load(&control->epoch) + RD_KNEVER);
}

/* The control page's first line tells. */
RD_DEVICE bool rd_control_failed(const uint4 &first)
{
    return (int32_t)(first.z - first.x) > 0;
}

/* After the lanes of a warp have polled each for itself: does one of them have to leave? Then all do. */
RD_DEVICE bool rd_wait_over(rd_wait_t &w)
{
    w.dead = warp_any(w.dead);
    w.polls = w.since = 0;
    return !w.dead;
}

#endif
