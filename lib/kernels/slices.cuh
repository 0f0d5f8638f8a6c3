/* Blocks that move slices of plain data, for long data. Only data is on the wire; one word for each slice, behind a
 * fence, announces that the slice has arrived, or that its slot is free again. So slices are large, and a whole block
 * moves one at a time. Its last warp, the *clerk*, moves no data: it fences and writes the word while the other warps,
 * the movers, work on the next slice. Kernels that spin on lines are faster below some megabytes; these leave most of
 * the GPU to its user. Rings and chains: proto_simple.cuh; messages: p2p_slices.cuh; the rules for writers: work.h. */
#ifndef RD_KERNELS_SLICES_CUH
#define RD_KERNELS_SLICES_CUH

#include "kernels/access.cuh"
#include "kernels/wait.cuh"

struct rd_movers_t {
    static constexpr uint32_t CLERK = 32, MOVERS_BARRIER = 1, ALL_BARRIER = 2; /* threads; barriers */

    uint32_t count; /* threads of the movers */
    bool clerk;     /* this thread is not a mover */
    rd_wait_t wait;

    RD_MEMBER rd_movers_t(const rd_kcomm_t &comm, uint32_t peer)
    {
        count = gpu_threads() - CLERK;
        clerk = gpu_thread() >= count;
        wait.begin(comm, peer);
        wait.dead = rd_control_failed(line_load(comm.own));
    }

    /* The movers call it after one or two of them have waited. Returns false if the kernel has to leave. */
    RD_MEMBER bool ready()
    {
        warp_sync();
        wait.polls = wait.since = 0;
        return !group_any(MOVERS_BARRIER, count, wait.dead);
    }

    /* All threads call it when the movers have stored a slice and have read one, or are not `good`. Returns true to the
     * one thread that announces it. */
    RD_MEMBER bool done(bool good)
    {
        const bool tells = gpu_thread() == count;

        warp_sync(); /* the lanes of the last row's end have left the loop earlier */
        wait.dead = group_release(ALL_BARRIER, count + CLERK, !good, tells);
        return tells && !wait.dead;
    }
};

/* What this rank does with a slice, `at` bytes into its parts. */
template <class PART>
struct rd_move_of_t {
    PART in, out;
    uint64_t at;
    uint32_t bytes;
    bool contributes, receives, sends, keeps, finishes;
};

typedef rd_move_of_t<rd_part_t> rd_move_t;

template <class PART>
RD_DEVICE void rd_move_store(const rd_move_of_t<PART> &m, char *to, uint32_t at, uint4 v)
{
    if (m.sends)
        far_store(to + at, v);
    if (m.keeps)
        rd_part_store(m.out, m.at + at, v);
}

/* The movers call it. Each thread moves ITEMS items at once, from `first` on and `row` bytes apart. */
template <uint32_t ITEMS, class PART>
RD_DEVICE void rd_items_move(const rd_move_of_t<PART> &m, const char *from, char *to, uint32_t first, uint32_t row)
{
    const uint32_t left = m.bytes - first;
    uint4 v[ITEMS];

#pragma unroll
    for (uint32_t j = 0; j < ITEMS; j++) {
        if (j * row < left)
            v[j] = m.receives ? line_load(from + first + j * row) : rd_part_load(m.in, m.at + first + j * row);
    }
#pragma unroll
    for (uint32_t j = 0; j < ITEMS; j++) {
        if (j * row < left)
            rd_move_store(m, to, first + j * row, v[j]);
    }
}

#endif
