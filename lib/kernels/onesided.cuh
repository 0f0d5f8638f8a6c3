/* One-sided operations in the order of a stream: a short put, a signal to the rank that it goes to, and the wait for
 * signals. Long puts, and gets, are copies by the host (exec/cuda/stream_access.c), which come before the signal in the
 * stream.
 *
 * A signal is a number in the window of the rank that it goes to: how many this rank has sent to it. The sender counts
 * them, and so does the receiver those that it has waited for, each in its own memory. No argument holds a number, so
 * a graph may replay a launch.
 *
 * Memory order: the thread that stores the number executes a system-wide fence before, behind a barrier of the block.
 * So what the block has put, and what this rank's stream had done before, comes before the number. A lane that waits
 * loads it with acquire; and what follows in its stream begins when the kernel has ended.
 *
 * A wait that has to leave marks the control page, as all kernels do (rd_control_fail), and puts behind it put nothing.
 */
#ifndef RD_KERNELS_ONESIDED_CUH
#define RD_KERNELS_ONESIDED_CUH

#include "kernels/access.cuh"
#include "kernels/wait.cuh"

RD_KERNEL(512)
rd_put(RD_WORK(rd_kwork_put_t))
{
    const rd_kput_t &p = work.put;
    const rd_kcomm_t &comm = work.comm;
    const rd_part_t from = rd_part(p.from, 0, p.bytes), to = rd_part(p.to, 0, p.bytes);
    rd_kcontrol_t *own = (rd_kcontrol_t *)comm.own;
    const bool leads = gpu_thread() == 0;

    gpu_begin();
    if (rd_control_failed(line_load(own)))
        return;
    for (uint64_t at = (uint64_t)gpu_thread() * 16; at < p.bytes; at += (uint64_t)gpu_threads() * 16)
        rd_part_store_far(to, at, rd_part_load(from, at));
    warp_sync();
    (void)group_release(0, gpu_threads(), false, leads);
    if (!leads || !p.signals)
        return;
    rd_kcontrol_t *there = (rd_kcontrol_t *)comm.window[p.peer];
    uint32_t *sent = &own->signals.sent[p.peer][p.signal];
    const uint32_t number = word_load(sent) + 1;
    word_store(sent, number);
    word_store(&there->signals.come[comm.rank][p.signal], number);
}

RD_KERNEL(32)
rd_await(RD_WORK(rd_kwork_await_t))
{
    const rd_kcomm_t &comm = work.comm;
    const uint32_t lane = gpu_thread(), i = lane < work.await.n ? lane : 0;
    const uint32_t peer = work.await.of[i].peer, signal = work.await.of[i].signal;
    const rd_ksignals_t *here = &((const rd_kcontrol_t *)comm.window[comm.rank])->signals;
    rd_kcontrol_t *own = (rd_kcontrol_t *)comm.own;
    rd_wait_t wait;

    wait.begin(comm, peer);
    gpu_begin();
    wait.dead = rd_control_failed(line_load(own));
    if (lane < work.await.n && !wait.dead) {
        uint32_t *awaited = &own->signals.awaited[peer][signal];
        const uint32_t due = word_load(awaited) + work.await.of[i].count;
        while ((int32_t)(word_acquire(&here->come[peer][signal]) - due) < 0 && wait.more())
            ;
        if (!wait.dead)
            word_store(awaited, due);
    }
    if (!rd_wait_over(wait) && lane == 0)
        rd_control_fail(own);
}

#endif
