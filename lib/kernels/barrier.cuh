/* A barrier of all ranks, which runs in one block: a warp for each peer sends a mark and waits for the peer's mark.
 *
 * Memory order: a warp executes a system-wide fence (acquire and release) before it sends its mark, and another one
 * after it has received the peer's. So a rank that has received this rank's mark sees everything that this rank's
 * stream had written before the barrier, and work that follows in this stream sees everything that the peers' streams
 * had written before theirs.
 *
 * The mark describes the operation that a rank has called. If the marks of two ranks differ, both kernels fail, as they
 * do after a wait that has timed out.
 *
 * After copies out of a peer's buffer, the peer's mark is not enough. The peer sends its mark, then waits for the other
 * ranks, and may give up; its caller may then use the buffer again while this rank still copies. So a rank that gives
 * up notes that in its control page (rd_control_fail) before its kernel ends, and this rank checks that page after its
 * copies: if the peer has not given up by then, the buffer belonged to the operation the whole time. */
#ifndef RD_KERNELS_BARRIER_CUH
#define RD_KERNELS_BARRIER_CUH

#include "kernels/proto.cuh"
#include "kernels/epoch.cuh"

RD_DEVICE void rd_barrier_fail(rd_wait_t &wait, uint32_t failed)
{
    word_store(&wait.comm->host->late, wait.peer);
    fence_sys();
    word_store(&wait.comm->host->failed, failed);
    wait.dead = true;
}

/* Returns true if the rank of this control page has given up; `first` is the page's first line. Epochs advance by one,
 * so only a rank that has given up has a `used` that is so far ahead of `epoch`. This holds even if the words of the
 * line have been loaded at different times. */
RD_DEVICE bool rd_control_left(const uint4 &first)
{
    return (int32_t)(first.z - first.x) > (int32_t)(RD_KNEVER / 2);
}

template <uint32_t THREADS>
RD_KERNEL(THREADS)
rd_barrier(RD_WORK(rd_kwork_t))
{
    typedef rd_lines_ll PROTO;
    const rd_kbarrier_t &m = work.barrier;
    const uint32_t n = (uint32_t)work.comm.nranks, rank = (uint32_t)work.comm.rank, lane = rd_lane();
    const uint32_t next = rank + 1 + gpu_thread() / 32, peer = next < n ? next : next - n;
    const uint4 mine = lane == 0   ? make_uint4(m.mark[0], m.mark[1], m.mark[2], m.mark[3])
                       : lane == 1 ? make_uint4(m.mark[4], m.mark[5], m.mark[6], m.mark[7])
                                   : make_uint4(0, 0, 0, 0);
    uint4 v[PROTO::ITEMS] = {mine};
    rd_epoch_t e(work.comm, peer);

    gpu_begin();
    e.begin();
    e.announce(peer == rank ? lane : n);
    if (peer != rank) {
        char *slot = e.bank(rank, 0) + (uint64_t)peer * PROTO::WIRE;
        fence_sys();
        if (e.gate(0))
            PROTO::send(e.bank(peer, 0) + (uint64_t)rank * PROTO::WIRE, v, lane);
        const bool there = PROTO::receive(v, slot, lane, e.wait);
        fence_sys();
        PROTO::clean(slot, lane);
        const bool differs = v[0].x != mine.x || v[0].y != mine.y || v[0].z != mine.z || v[0].w != mine.w;
        if (there && warp_any(differs))
            rd_barrier_fail(e.wait, RD_KFAILED_DIFFERS);
        else if (there && m.behind && warp_any(rd_control_left(line_load(work.comm.window[peer]))))
            rd_barrier_fail(e.wait, RD_KFAILED_LEFT);
    }
    e.end(1);
}

#endif
