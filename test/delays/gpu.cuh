/* The GPU of lib/kernels/ptx (or of test/sim) as weak as it may be: whatever kernels do to lines and words that other
 * GPUs see comes after a delay that is drawn, and a store may be held back, behind all that its thread does next, until
 * something orders it. A fence or a release that is missing, which the true machine may hide for years, shows so.
 *
 *   held back   one store of a warp at a time, a word, a line or half of one, in shared memory; not lines that a warp
 *               stores at once, which arrive whole
 *   comes out   before a fence, a release, or the end of the kernel by a thread of its warp, before anything else that
 *               its warp does to the same place, and when its time is over: whoever of the block comes by then lets it
 *               out, so nobody waits for ever for a store of a thread that itself waits at a barrier
 *
 * A barrier orders nothing here, as between GPUs. All is drawn from the seed, the block, the warp, and a number that
 * the warp counts; all delays end by the clock. Kernels find this file first, and by it the true one. */
#ifndef RD_DELAYS_CUH
#define RD_DELAYS_CUH

#include_next <gpu.cuh>

#include "delays.h"

struct rd_held_t {
    uint4 value;
    uint64_t at;  /* where, and an rd_how_t beside it; 0: nothing is held; TAKEN: somebody is at it */
    uint32_t due; /* by gpu_clock */
    uint32_t draws;
};

enum rd_how_t { WORD = 1, HALF = 2, LINE = 3 }; /* 4, 8, 16 bytes */

static constexpr uint32_t RD_HELD_WARPS = 32;
static constexpr uint64_t RD_HOW = 3, RD_TAKEN = 4;

#ifdef __CUDACC__

static __device__ rd_delays_t rd_delays;

RD_DEVICE_FAR rd_held_t *rd_held()
{
    __shared__ rd_held_t held[RD_HELD_WARPS];
    return held;
}

RD_DEVICE uint32_t gpu_clock()
{
    uint32_t now;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(now));
    return now;
}

RD_DEVICE void half_store(void *p, uint4 v)
{
    asm volatile("st.relaxed.sys.global.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(v.x), "r"(v.y) : "memory");
}

RD_DEVICE uint32_t rd_count(uint32_t *p)
{
    return atomicAdd(p, 1);
}

/* Behind a barrier of the warp: whether what its lanes do next they do at once. They do in the true kernels, of which
 * none was seen otherwise; here one lane may have been delayed at a store of its own, and none waits for it again. */
RD_DEVICE bool rd_together()
{
    uint32_t lanes;

    warp_sync();
    asm volatile("activemask.b32 %0;" : "=r"(lanes));
    return lanes == ~0u;
}

/* Stores to one place that a block's threads order among themselves stay in order by themselves. */
RD_DEVICE void gpu_settle(const void *, uint32_t)
{
}

/* What was done before the word was set is seen by who sees that. */
RD_DEVICE uint64_t rd_look(uint64_t *p)
{
    uint64_t is = *(volatile uint64_t *)p;

    __threadfence_block();
    return is;
}

RD_DEVICE uint64_t rd_swap_if(uint64_t *p, uint64_t was, uint64_t is)
{
    __threadfence_block();
    const uint64_t found = atomicCAS((unsigned long long *)p, was, is);

    __threadfence_block();
    return found;
}

#else

static rd_delays_t rd_delays;

/* On a machine whose fibers give way at accesses alone. */
RD_DEVICE rd_held_t *rd_held()
{
    return (rd_held_t *)gpu_fixed(RD_HELD_WARPS * sizeof(rd_held_t));
}

RD_DEVICE uint32_t rd_count(uint32_t *p)
{
    return (*p)++;
}

RD_DEVICE bool rd_together()
{
    return true;
}

RD_DEVICE uint64_t rd_look(uint64_t *p)
{
    return *p;
}

RD_DEVICE uint64_t rd_swap_if(uint64_t *p, uint64_t was, uint64_t is)
{
    const uint64_t found = *p;

    *p = found == was ? is : found;
    return found;
}

#endif

[[maybe_unused]] static const int rd_delays_known = rd_delays_register(&rd_delays);

/* ---- what is drawn */

RD_DEVICE rd_held_t *rd_held_own()
{
    return rd_held() + gpu_thread() / 32;
}

RD_DEVICE uint32_t rd_draw(rd_held_t *own)
{
    uint32_t x = rd_count(&own->draws) * 0x9e3779b9u ^ rd_delays.seed;

    x = (x ^ x >> 16 ^ (gpu_block() << 5 | gpu_thread() / 32)) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* Cycles, as often between 16 and 32 as between 16384 and 32768. */
RD_DEVICE uint32_t rd_long(uint32_t r)
{
    return 16u << r % 11 | (r >> 4) % (16u << r % 11);
}

RD_DEVICE void rd_delay(uint32_t cycles)
{
    const uint32_t began = gpu_clock();

    while (gpu_clock() - began < cycles) {
    }
}

/* ---- what is held back */

RD_DEVICE void rd_store_now(uint64_t at, uint4 v)
{
    void *p = (void *)(at & ~RD_HOW);

    if ((at & RD_HOW) == WORD)
        word_store((uint32_t *)p, v.x);
    else if ((at & RD_HOW) == HALF)
        half_store(p, v);
    else
        line_store(p, v);
}

/* The fence is for the thread whose store it is: it is to find its place empty only when the store is seen. */
RD_DEVICE bool rd_let_out(rd_held_t *h, uint64_t at)
{
    if (rd_swap_if(&h->at, at, RD_TAKEN) != at)
        return false;
    rd_store_now(at, h->value);
    fence_sys();
    (void)rd_swap_if(&h->at, RD_TAKEN, 0);
    return true;
}

/* Until nothing of the warp's is held back. */
RD_DEVICE_FAR void rd_all_out(rd_held_t *own)
{
    uint64_t at;

    while ((at = rd_look(&own->at)) != 0)
        if (at == RD_TAKEN || !rd_let_out(own, at))
            fence_sys(); /* another thread is at it */
}

/* Of some warp of the block, if it is time. */
RD_DEVICE void rd_look_after(uint32_t r)
{
    rd_held_t *h = rd_held() + r % ((gpu_threads() + 31) / 32);
    const uint64_t at = rd_look(&h->at);

    if (at > RD_TAKEN && (int32_t)(gpu_clock() - h->due) >= 0)
        (void)rd_let_out(h, at);
}

/* Before anything is done to so many bytes at p; what was drawn. */
RD_DEVICE_FAR uint32_t rd_before(const void *p, uint32_t bytes)
{
    rd_held_t *own = rd_held_own();
    const uint32_t r = rd_draw(own);

    rd_look_after(r >> 16);
    if (r % 128 == 0)
        rd_delay(rd_long(r >> 8));
    const uint64_t at = rd_look(&own->at), from = (uint64_t)p;
    if (at == RD_TAKEN || (at < from + bytes && from < at + 16))
        rd_all_out(own);
    return r;
}

RD_DEVICE_FAR void rd_store_late(void *p, uint4 v, rd_how_t how)
{
    rd_held_t *own = rd_held_own();
    const uint64_t at = (uint64_t)p | how;
    const uint32_t r = rd_before(p, 2u << how);

    if (r >> 30 != 0 || rd_swap_if(&own->at, 0, RD_TAKEN) != 0) {
        rd_store_now(at, v);
        return;
    }
    gpu_settle(p, 2u << how); /* another thread may let it out, and it comes behind what this one has stored there */
    own->value = v;
    own->due = gpu_clock() + 2 * rd_long(r >> 8);
    (void)rd_swap_if(&own->at, RD_TAKEN, at);
}

/* ---- the names that kernels use */

RD_DEVICE_FAR void rd_late_line_store(void *p, uint4 v)
{
    const uint32_t r = rd_draw(rd_held_own()), first = r >> 8 & 1;
    const uint4 halves[2] = {v, make_uint4(v.z, v.w, 0, 0)};

    if (r % 4 != 0) {
        rd_store_late(p, v, LINE);
        return;
    }
    rd_store_late((char *)p + 8 * first, halves[first], HALF);
    rd_store_late((char *)p + 8 * !first, halves[!first], HALF);
}

RD_DEVICE void rd_late_line_clean(void *p)
{
    rd_late_line_store(p, make_uint4(~0u, ~0u, ~0u, ~0u));
}

RD_DEVICE void rd_late_word_store(uint32_t *p, uint32_t v)
{
    rd_store_late(p, make_uint4(v, 0, 0, 0), WORD);
}

RD_DEVICE uint4 rd_late_line_load(const void *p)
{
    (void)rd_before(p, 16);
    return line_load(p);
}

RD_DEVICE void rd_late_line_load_if(uint4 &v, const void *p, bool missing)
{
    (void)rd_before(p, 16);
    line_load_if(v, p, missing);
}

RD_DEVICE uint32_t rd_late_word_load(const uint32_t *p)
{
    (void)rd_before(p, 4);
    return word_load(p);
}

RD_DEVICE uint32_t rd_late_word_acquire(const uint32_t *p)
{
    (void)rd_before(p, 4);
    return word_acquire(p);
}

/* Lanes that come one by one look at the flag first, then at the data. */
RD_DEVICE uint4 rd_late_warp_lines_load(const void *p)
{
    (void)rd_before(p, 16);
    if (rd_together())
        return warp_lines_load(p);
    const uint4 early = line_load(p);
    warp_sync();
    const uint4 late = line_load(p);

    return gpu_thread() % 8 == 7 ? early : late;
}

/* One part of a line before the other: the flag last, or the fault. */
RD_DEVICE void rd_lines_divided(void *p, uint4 v, bool first, uint32_t cycles)
{
    if (first)
        line_store(p, v);
    fence_sys();
    warp_sync();
    if (!first) {
        rd_delay(cycles);
        line_store(p, v);
    }
    warp_sync();
}

RD_DEVICE_FAR void rd_late_warp_lines_store(void *p, uint4 v)
{
    const uint32_t r = rd_before(p, 16);
    const bool flag = gpu_thread() % 8 == 7;

    if (rd_delays.plant == RD_PLANT_LINES)
        rd_lines_divided(p, v, flag, rd_long(r >> 8));
    else if (rd_together())
        warp_lines_store(p, v);
    else
        rd_lines_divided(p, v, !flag, 0);
}

RD_DEVICE_FAR void rd_late_fence_sys()
{
    if (rd_delays.plant == RD_PLANT_FENCE)
        return;
    rd_all_out(rd_held_own());
    fence_sys();
}

RD_DEVICE_FAR void rd_late_warp_release(uint32_t *p, uint32_t v)
{
    warp_sync();
    if (rd_delays.plant != RD_PLANT_RELEASE) {
        rd_all_out(rd_held_own());
        warp_release(p, v);
    } else if (gpu_thread() % 32 == 0) {
        word_store(p, v);
    }
    warp_sync();
}

RD_DEVICE bool rd_late_group_release(uint32_t id, uint32_t threads, bool x, bool leads)
{
    if (rd_delays.plant == RD_PLANT_RELEASE)
        return group_any(id, threads, x);
    rd_all_out(rd_held_own());
    return group_release(id, threads, x, leads);
}

/* From a kernel's first line to its end. */
struct rd_late_t {
    RD_MEMBER rd_late_t()
    {
        gpu_begin();
        if (gpu_thread() % 32 == 0) {
            rd_held_own()->at = 0;
            rd_held_own()->draws = rd_delays.turns[gpu_block() % RD_DELAYS_TURNS] << 16;
        }
        (void)block_any(false);
    }

    RD_MEMBER ~rd_late_t()
    {
        rd_all_out(rd_held_own());
        if (gpu_thread() == 0)
            rd_delays.turns[gpu_block() % RD_DELAYS_TURNS]++;
    }
};

#define gpu_begin() rd_late_t rd_late
#define line_load rd_late_line_load
#define line_load_if rd_late_line_load_if
#define line_store rd_late_line_store
#define line_clean rd_late_line_clean
#define far_store rd_late_line_store
#define word_load rd_late_word_load
#define word_acquire rd_late_word_acquire
#define word_store rd_late_word_store
#define warp_lines_load rd_late_warp_lines_load
#define warp_lines_store rd_late_warp_lines_store
#define fence_sys rd_late_fence_sys
#define warp_release rd_late_warp_release
#define group_release rd_late_group_release

#endif
