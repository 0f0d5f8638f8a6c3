/* rd_gdr: a collective between nodes whose data goes from GPU to GPU (exec/cuda/proxy/gdr_collective.c), all pieces of
 * it by one launch.
 *
 *   block 0      two threads, one for the messages of each direction: each names the next messages to the proxy as soon
 *                as they may go, waits for those that are under way, and counts pieces
 *   other blocks copy what this rank has already, and sum each piece when its contributions have come
 *
 * They meet at three counters of pieces in device memory, so that only one thread loads a word of the host's: `come`
 * (the first hop has arrived), `summed`, and `sent` (the last hop has gone). A thread that has seen a counter fences
 * before its block reads what the counter stands for, and a block releases before it counts, as with triggers
 * (proxy.cuh). The last block to leave sets the counters 0 for the next launch.
 *
 * Contributions are added in the order of the ranks, and the sum is rounded after each. */
#ifndef RD_KERNELS_GDR_CUH
#define RD_KERNELS_GDR_CUH

#include "kernels/access.cuh"
#include "kernels/arith_wide.cuh"
#include "kernels/gdr.h"
#include "kernels/wait.cuh"

/* ---- the messages of a direction */

RD_DEVICE bool rd_gdr_counted(const uint32_t *counter, uint32_t pieces)
{
    return (int32_t)(word_load(counter) - pieces) >= 0;
}

/* Returns true if the messages of the step may go. */
RD_DEVICE bool rd_gdr_open(const rd_kgdr_t &d, uint32_t send, uint32_t step)
{
    const rd_klane_state_t *state = d.proxy.state;
    const uint32_t piece = rd_kgdr_piece(step);

    if (rd_kgdr_hop(step) != send) /* the first hop can always be sent, and the second received */
        return true;
    if (!send)
        return !d.reduces || piece < RD_KGDR_PIECES ||
               rd_gdr_counted(rd_kgdr_keeps(&d) ? &state->sent : &state->summed, piece - RD_KGDR_PIECES + 1);
    if (d.reduces)
        return rd_gdr_counted(&state->summed, piece + 1);
    return d.coll != RD_BROADCAST || d.rank == d.root || rd_gdr_counted(&state->come, piece + 1);
}

/* A lane of one thread. Lanes of messages are empty between launches. */
struct rd_gdr_lane_t {
    const rd_kgdr_t &d;
    uint32_t send, first, raised, done; /* triggers: of earlier launches; of this one */
    rd_klane_t *lane;
    rd_klane_state_t *state;
    rd_kgdr_walk_t ahead, behind;
    rd_wait_t wait;

    RD_MEMBER rd_gdr_lane_t(const rd_kwork_gdr_t &work, uint32_t s) : d(work.gdr)
    {
        send = s;
        lane = d.proxy.lanes + 1 + s;
        state = d.proxy.state + 1 + s;
        first = word_load(&state->raised);
        raised = done = 0;
        ahead = behind = rd_kgdr_begin(&d, s);
        wait.begin(work.comm, RD_KPROXY);
    }

    RD_MEMBER void raise()
    {
        const uint32_t at = (first + raised) & (d.proxy.slots - 1), number = (first + raised + 1) | RD_KVALID;
        char *slot = d.proxy.area + ((uint64_t)send * d.proxy.slots + at) * d.proxy.message_slot;
        const uint32_t flags = RD_KMESSAGE_PAIR(0, send) | RD_KMESSAGE_GDR | RD_KMESSAGE_EACH |
                               (d.proxy.captured ? RD_KMESSAGE_CAPTURED : 0) | (d.railed ? RD_KMESSAGE_RAIL : 0);
        const uint32_t step = ahead.step;
        uint32_t n = 0;

        for (; n < RD_KGDR_RUN && ahead.step == step; n++) {
            const uint64_t buffer = (uint64_t)ahead.next.buffer, bytes = ahead.next.bytes;
            line_store(slot + n * sizeof ahead.next, make_uint4((uint32_t)buffer, (uint32_t)(buffer >> 32),
                                                                (uint32_t)bytes, (uint32_t)(bytes >> 32)));
            rd_kgdr_next(&d, &ahead);
        }
        fence_sys();
        line_store(&lane->trigger[at], make_uint4(n, number, flags, number));
        raised++;
    }

    /* Counts pieces whose messages are over. Returns false if there are no new ones. */
    RD_MEMBER bool count()
    {
        const uint32_t now = word_load(&lane->done) - first;

        if (now == done)
            return false;
        fence_sys();
        for (; done != now; done++) {
            const uint32_t step = behind.step;
            for (uint32_t n = 0; n < RD_KGDR_RUN && behind.step == step; n++)
                rd_kgdr_next(&d, &behind);
            if (behind.step != step && rd_kgdr_hop(step) == (send && d.coll != RD_REDUCE_SCATTER))
                word_store(send ? &d.proxy.state->sent : &d.proxy.state->come, rd_kgdr_piece(step) + 1);
        }
        wait.polls = wait.since = 0;
        return true;
    }

    RD_MEMBER bool may_raise() const
    {
        return rd_kgdr_more(&d, &ahead) && raised - done < d.proxy.slots && rd_gdr_open(d, send, ahead.step);
    }
};

constexpr uint32_t RD_GDR_OVER_MS = 5000;

/* After a failure the buffers are the user's again when the kernel ends: see rd_proxy_await_over. */
RD_DEVICE_FAR void rd_gdr_await_over(const rd_klane_t *lane)
{
    const uint32_t began = gpu_ms();

    while (word_load(&lane->over) == 0 && (int32_t)(gpu_ms() - began - RD_GDR_OVER_MS) <= 0) {
    }
}

/* Carries the messages of a direction; called by one thread. Returns false if the kernel has to leave. */
RD_DEVICE bool rd_gdr_carry(const rd_kwork_gdr_t &work, uint32_t send)
{
    rd_gdr_lane_t l(work, send);

    while (rd_kgdr_more(&l.d, &l.behind) && !l.wait.dead) {
        if (l.count())
            continue;
        if (l.may_raise())
            l.raise();
        else
            (void)l.wait.more();
    }
    if (l.wait.dead) {
        if (l.raised)
            rd_gdr_await_over(l.d.proxy.lanes);
        return false;
    }
    word_store(&l.state->raised, l.first + l.raised);
    word_store(&l.state->seen, l.first + l.raised);
    return true;
}

/* Slots of messages and of collectives through slots share memory. Returns true in all threads if that is empty. */
RD_DEVICE bool rd_gdr_vacant(const rd_kwork_gdr_t &work)
{
    const rd_kproxy_t &proxy = work.gdr.proxy;
    const uint32_t raised = word_load(&proxy.state->raised);
    rd_wait_t wait;

    wait.begin(work.comm, RD_KPROXY);
    wait.dead = word_load(&proxy.state->failed) != 0;
    if (gpu_thread() == 0 && word_load(&proxy.state->seen) != raised) {
        while ((int32_t)(word_load(&proxy.lanes->done) - raised) < 0 && wait.more()) {
        }
        fence_sys();
    }
    return !block_any(wait.dead);
}

/* ---- what this rank does itself */

RD_DEVICE uint64_t rd_gdr_from()
{
    return ((uint64_t)(gpu_block() - 1) * gpu_threads() + gpu_thread()) * 16;
}

RD_DEVICE uint64_t rd_gdr_row()
{
    return (uint64_t)(gpu_blocks() - 1) * gpu_threads() * 16;
}

RD_DEVICE void rd_gdr_keep(const rd_kgdr_t &d)
{
    constexpr uint32_t ITEMS = 4;
    const rd_part_t in = rd_part(d.keep, 0, d.copied), out = rd_part(d.kept, 0, d.copied);
    const uint64_t row = rd_gdr_row();

    for (uint64_t at = rd_gdr_from(); at < d.copied; at += ITEMS * row) {
        uint4 v[ITEMS];
#pragma unroll
        for (uint32_t j = 0; j < ITEMS; j++)
            v[j] = rd_part_load(in, at + j * row);
#pragma unroll
        for (uint32_t j = 0; j < ITEMS; j++)
            rd_part_store(out, at + j * row, v[j]);
    }
}

/* Each thread sums ITEMS lines at once. */
template <class ARITH, uint32_t ITEMS>
RD_DEVICE void rd_gdr_sum(const rd_kgdr_t &d, const ARITH &number, uint32_t piece, const rd_kgdr_range_t &own)
{
    const uint64_t bytes = own.n * rd_arith_size(d.reduce.type), row = rd_gdr_row();
    const typename ARITH::part_t out = ARITH::part(d.reduce, rd_kgdr_own(&d, piece), 0, bytes);

    for (uint64_t at = rd_gdr_from(); at < bytes; at += ITEMS * row) {
        uint4 sum[ITEMS], v[ITEMS];
        for (uint32_t k = 0; k < d.n; k++) {
            const char *from = k == d.rank ? (const char *)(d.in + own.at * d.element) : rd_kgdr_slot(&d, piece, k);
            const typename ARITH::part_t in = ARITH::part(d.reduce, from, 0, bytes);
#pragma unroll
            for (uint32_t j = 0; j < ITEMS; j++)
                v[j] = rd_part_load(in, at + j * row);
#pragma unroll
            for (uint32_t j = 0; j < ITEMS; j++)
                sum[j] = k ? number.two(sum[j], number.scaled(v[j])) : number.scaled(v[j]);
        }
#pragma unroll
        for (uint32_t j = 0; j < ITEMS; j++)
            rd_part_store(out, at + j * row, number.finished(sum[j]));
    }
}

/* All threads wait until the contributions to a piece have come, and until those have gone that its sum overwrites. */
RD_DEVICE bool rd_gdr_await(const rd_kgdr_t &d, uint32_t piece, rd_wait_t *wait)
{
    const rd_klane_state_t *state = d.proxy.state;

    if (gpu_thread() == 0) {
        while ((!rd_gdr_counted(&state->come, piece + 1) ||
                (rd_kgdr_overwrites(&d) && !rd_gdr_counted(&state->sent, piece + 1))) &&
               wait->more()) {
        }
        wait->polls = wait->since = 0;
        fence_sys();
    }
    wait->dead = block_any(wait->dead);
    return !wait->dead;
}

/* All threads tell that this block has summed its part of the piece. No block is RD_KGDR_PIECES pieces ahead of
 * another, because these have space only when the piece is summed. */
RD_DEVICE void rd_gdr_summed(const rd_kgdr_t &d, uint32_t piece)
{
    rd_klane_state_t *state = d.proxy.state;

    warp_sync();
    (void)group_release(0, gpu_threads(), false, gpu_thread() == 0);
    if (gpu_thread() == 0 && last_to_arrive(&state[1].arrived[piece % RD_KGDR_PIECES], gpu_blocks() - 1)) {
        fence_sys();
        word_store(&state->summed, piece + 1);
    }
}

template <class ARITH, uint32_t ITEMS>
RD_DEVICE bool rd_gdr_serve(const rd_kwork_gdr_t &work)
{
    const rd_kgdr_t &d = work.gdr;
    rd_wait_t wait;

    wait.begin(work.comm, RD_KPROXY);
    wait.dead = block_any(word_load(&d.proxy.state->failed) != 0);
    if (wait.dead)
        return false;
    rd_gdr_keep(d);
    if (!d.reduces)
        return true;
    const ARITH number(d.reduce, d.n);
    for (uint32_t piece = 0; piece < d.pieces; piece++) {
        const rd_kgdr_range_t own = rd_kgdr_chunk(&d, piece, d.rank);
        if (!own.n) /* nor have later pieces any */
            break;
        if (!rd_gdr_await(d, piece, &wait))
            return false;
        rd_gdr_sum<ARITH, ITEMS>(d, number, piece, own);
        rd_gdr_summed(d, piece);
    }
    return true;
}

/* All threads call it at the end. What any block has counted comes before the counters are set 0. */
RD_DEVICE void rd_gdr_leave(const rd_kgdr_t &d, bool whole)
{
    rd_klane_state_t *state = d.proxy.state;

    warp_sync();
    const bool dead = group_release(0, gpu_threads(), !whole, gpu_thread() == 0);

    if (gpu_thread() != 0)
        return;
    if (dead) {
        word_store(&state->failed, 1);
    } else if (last_to_arrive(&state[1].leaving, gpu_blocks())) {
        fence_sys();
        word_store(&state->come, 0);
        word_store(&state->summed, 0);
        word_store(&state->sent, 0);
    }
}

template <class ARITH, uint32_t ITEMS, uint32_t THREADS>
RD_KERNEL(THREADS)
rd_gdr(RD_WORK(rd_kwork_gdr_t))
{
    const uint32_t thread = gpu_thread();
    bool whole = true;

    gpu_begin();
    if (gpu_block()) {
        whole = rd_gdr_serve<ARITH, ITEMS>(work);
    } else {
        whole = rd_gdr_vacant(work);
        if (whole && (thread == 0 || thread == 32))
            whole = rd_gdr_carry(work, thread == 0);
        warp_sync();
    }
    rd_gdr_leave(work.gdr, whole);
}

#endif
