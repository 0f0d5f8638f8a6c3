/* The names of lib/kernels/ptx/gpu.cuh for the machine of machine.h. */
#ifndef TEST_SIM_GPU_CUH
#define TEST_SIM_GPU_CUH

#include <stdint.h>
#include <string.h>

#define RD_DEVICE [[maybe_unused]] static inline
#define RD_DEVICE_FAR [[maybe_unused]] static
#define RD_MEMBER inline
#define RD_KERNEL(threads) void
#define RD_KERNEL_OF(threads, blocks) void
#define RD_WORK(type) const type &work

#define RD_SPIN_PERIOD 16

struct alignas(8) uint2 {
    uint32_t x, y;
};

struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};

RD_DEVICE uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    return uint4{x, y, z, w};
}

uint32_t gpu_thread();
uint32_t gpu_threads();
uint32_t gpu_block();
uint32_t gpu_blocks();
uint4 *gpu_shared();
uint32_t gpu_ms();
void gpu_settle(const void *p, uint32_t bytes); /* what this thread has stored there comes out */
void *gpu_fixed(size_t bytes); /* memory of the block, zeros when it begins; the same for all who ask */
uint32_t gpu_clock();          /* goes on as it is asked */

void gpu_begin();
void warp_sync();
bool warp_all(bool x);
bool warp_any(bool x);
uint32_t warp_first(uint32_t x);
uint32_t warp_from(uint32_t x, uint32_t lane);
bool group_any(uint32_t id, uint32_t threads, bool x);
bool block_any(bool x);

uint4 line_load(const void *p);
void line_store(void *p, uint4 v);
void half_store(void *p, uint4 v); /* its first eight bytes */
uint4 warp_lines_load(const void *p);
void warp_lines_store(void *p, uint4 v);
void line_clean(void *p);
uint32_t word_load(const uint32_t *p);
uint32_t word_acquire(const uint32_t *p);
void word_store(uint32_t *p, uint32_t v);
void fence_sys();
void stores_follow();
void warp_release(uint32_t *p, uint32_t v);
bool group_release(uint32_t id, uint32_t threads, bool x, bool leads);
bool lanes_release(bool x, bool leads);  /* the same of a warp: for rondo_device.cuh */
void word_add(uint32_t *p, uint32_t v); /* likewise: atomic and relaxed */
void far_store(void *p, uint4 v);
bool last_to_arrive(uint32_t *p, uint32_t of);

RD_DEVICE void line_await(uint4 &)
{
}

RD_DEVICE void gpu_let_in(bool)
{
}

RD_DEVICE void gpu_prefetch(const void *)
{
}

RD_DEVICE void line_load_if(uint4 &v, const void *p, bool missing)
{
    if (missing)
        v = line_load(p);
}

#include "base/narrow.h"

RD_DEVICE uint32_t float_bits(float f)
{
    return rd_float_bits(f);
}

RD_DEVICE float bits_float(uint32_t b)
{
    return rd_float_from_bits(b);
}

RD_DEVICE uint64_t double_bits(double d)
{
    uint64_t b;
    memcpy(&b, &d, sizeof b);
    return b;
}

RD_DEVICE double bits_double(uint64_t b)
{
    double d;
    memcpy(&d, &b, sizeof d);
    return d;
}

RD_DEVICE float f16_widen(uint16_t h)
{
    return rd_f16_widen(h);
}

RD_DEVICE uint16_t f16_narrow(float f)
{
    return rd_f16_narrow(f);
}

RD_DEVICE float bf16_widen(uint16_t b)
{
    return rd_bf16_widen(b);
}

RD_DEVICE uint16_t bf16_narrow(float f)
{
    return rd_bf16_narrow(f);
}

#endif
