/* The device intrinsics that kernels use: constructs of CUDA C++ and PTX under plain names. test/sim/gpu.cuh defines
 * the same names for a machine made of CPU threads. Kernels include whichever of the two the compiler finds first, and
 * use no intrinsic by another name.
 *
 * Lines (16 bytes) and words (4 bytes) in windows are shared between GPUs, and are accessed by the functions below
 * only. These accesses are relaxed, at system scope; fence_sys, word_acquire, warp_release and group_release alone
 * order them. The user's buffers are plain memory. */
#ifndef RD_KERNELS_PTX_GPU_CUH
#define RD_KERNELS_PTX_GPU_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "kernels/table.h"

#define RD_DEVICE static __device__ __forceinline__
#define RD_DEVICE_FAR static __device__ __noinline__ /* for code that is long or rarely run, out of the loops */
#define RD_MEMBER __device__ __forceinline__
#define RD_KERNEL(threads) __global__ void __launch_bounds__(threads, 1)
#define RD_KERNEL_OF(threads, blocks) __global__ void __launch_bounds__(threads, blocks) /* on a multiprocessor */
#define RD_WORK(type) const __grid_constant__ type work /* rd_kwork_t, or what it begins with */

#define RD_SPIN_PERIOD 4096 /* polls between two reads of the host's words */

/* ---- indices, shared memory and the clock */

RD_DEVICE uint32_t gpu_thread()
{
    return threadIdx.x;
}

RD_DEVICE uint32_t gpu_threads() /* of a block */
{
    return blockDim.x;
}

RD_DEVICE uint32_t gpu_block()
{
    return blockIdx.x;
}

RD_DEVICE uint32_t gpu_blocks()
{
    return gridDim.x;
}

RD_DEVICE uint4 *gpu_shared()
{
    extern __shared__ uint4 rd_shared[];
    return rd_shared;
}

RD_DEVICE uint32_t gpu_ms()
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return (uint32_t)(ns / 1000000);
}

/* ---- barriers and votes */

/* Waits until the preceding kernel of the stream has ended and everything that it wrote is visible. */
RD_DEVICE void gpu_begin()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* Behind gpu_begin(): the next kernel of the stream may begin now, too, as far as its own gpu_begin(), if this one
 * `lets` it. */
RD_DEVICE void gpu_let_in(bool lets)
{
    if (lets)
        asm volatile("griddepcontrol.launch_dependents;");
}

/* Fetches the line at p, of this GPU's memory, into its L2 cache, if the grid has no more than RD_KT_AHEAD threads.
 * Before gpu_begin(), while the preceding kernel runs, it takes no time to compute the address of what is read first,
 * and to look up its page. */
RD_DEVICE void gpu_prefetch(const void *p)
{
    if (gpu_blocks() * gpu_threads() <= RD_KT_AHEAD)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(p) : "memory");
}

RD_DEVICE void warp_sync()
{
    __syncwarp();
}

RD_DEVICE bool warp_all(bool x)
{
    return __all_sync(~0u, x);
}

RD_DEVICE bool warp_any(bool x)
{
    return __any_sync(~0u, x);
}

/* Returns the value of `x` in lane 0. */
RD_DEVICE uint32_t warp_first(uint32_t x)
{
    return __shfl_sync(~0u, x, 0);
}

/* Returns the value of `x` in `lane`. */
RD_DEVICE uint32_t warp_from(uint32_t x, uint32_t lane)
{
    return __shfl_sync(~0u, x, lane);
}

/* Waits at barrier `id` (1 to 15) for `threads` threads of the block, which are whole warps. Returns true if `x` is
 * true in any of them. The lanes of a warp must be together: where they may have gone different ways since they last
 * voted, warp_sync comes first. Without this rule (`.aligned`) the compiler makes a second copy of each barrier for
 * warps that are not together, where synccheck misses the rest of the block. */
RD_DEVICE bool group_any(uint32_t id, uint32_t threads, bool x)
{
    uint32_t any;
    asm volatile("{\n\t.reg .pred p, q;\n\t"
                 "setp.ne.u32 p, %3, 0;\n\t"
                 "barrier.cta.red.or.pred.aligned q, %1, %2, p;\n\t"
                 "selp.u32 %0, 1, 0, q;\n\t}"
                 : "=r"(any)
                 : "r"(id), "r"(threads), "r"((uint32_t)x)
                 : "memory");
    return any;
}

RD_DEVICE bool block_any(bool x)
{
    return __syncthreads_or(x);
}

/* ---- lines and words that several GPUs access */

RD_DEVICE uint4 line_load(const void *p)
{
    uint4 v;
    asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p)
                 : "memory");
    return v;
}

/* Marks the place where a loaded line is needed: nothing that is computed from it comes before, so that loads that
 * stand between are under way together with it. */
RD_DEVICE void line_await(uint4 &v)
{
    asm volatile("" : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w));
}

/* Loads the line if it is `missing`. The load is predicated, because a branch made the compiler spill registers. */
RD_DEVICE void line_load_if(uint4 &v, const void *p, bool missing)
{
    asm volatile("{\n\t.reg .pred p;\n\t"
                 "setp.ne.u32 p, %5, 0;\n\t"
                 "@p ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];\n\t}"
                 : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
                 : "l"(p), "r"((uint32_t)missing)
                 : "memory");
}

RD_DEVICE void line_store(void *p, uint4 v)
{
    asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

/* Called by a whole warp, of which each lane accesses 16 bytes of a row of 512 that is aligned to 128 bytes. Each line
 * of 128 bytes is seen as a whole or not at all. */
RD_DEVICE uint4 warp_lines_load(const void *p)
{
    __syncwarp();
    return line_load(p);
}

RD_DEVICE void warp_lines_store(void *p, uint4 v)
{
    __syncwarp();
    line_store(p, v);
}

/* Sets a line of this GPU's own window to all ones. The store may be weak, because no other GPU accesses the line until
 * a later release or fence allows it. */
RD_DEVICE void line_clean(void *p)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(p), "r"(0xffffffffu) : "memory");
}

RD_DEVICE uint32_t word_load(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

/* Acquire: whatever was written before a fence or release that precedes the store to *p is visible to this thread, and
 * to the threads that it meets at a barrier afterwards. */
RD_DEVICE uint32_t word_acquire(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

RD_DEVICE void word_store(uint32_t *p, uint32_t v)
{
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

/* Acquire and release at system scope: everything that this thread has written is visible to all GPUs and the host
 * before anything that it writes from here on, and it sees what others had fenced before they wrote what it has loaded.
 */
RD_DEVICE void fence_sys()
{
    asm volatile("fence.acq_rel.sys;" ::: "memory");
}

/* Marks a control dependency: whether this thread stores from here on depends on what it has loaded. No GPU makes a
 * store visible before it is certain to be executed, so the stores come after whatever others had fenced before they
 * wrote the loaded value. The function is for the checker of test/sim and compiles to nothing. It does not order loads:
 * those need fence_sys or word_acquire. */
RD_DEVICE void stores_follow()
{
}

/* Called by a whole warp: release. Sets *p to v; a thread that reads v and then fences sees everything that the warp
 * had written before. */
RD_DEVICE void warp_release(uint32_t *p, uint32_t v)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        fence_sys();
        word_store(p, v);
    }
    __syncwarp();
}

/* As group_any, and besides a release: everything that the group's threads have written and read comes before whatever
 * the thread that `leads` writes from here on. */
RD_DEVICE bool group_release(uint32_t id, uint32_t threads, bool x, bool leads)
{
    bool any = group_any(id, threads, x);

    if (leads)
        fence_sys();
    return any;
}

/* A weak store to the memory of another GPU. It is visible there once a later release or fence of this thread is. */
RD_DEVICE void far_store(void *p, uint4 v)
{
    *(uint4 *)p = v;
}

/* Counts arrivals of `of` threads. Returns true for the last one, which finds the word reset to 0 for the next round. A
 * single thread need not count. */
RD_DEVICE bool last_to_arrive(uint32_t *p, uint32_t of)
{
    return of == 1 || atomicInc(p, of - 1) == of - 1;
}

/* ---- conversions between numbers and their bits */

RD_DEVICE uint32_t float_bits(float f)
{
    return __float_as_uint(f);
}

RD_DEVICE float bits_float(uint32_t b)
{
    return __uint_as_float(b);
}

RD_DEVICE uint64_t double_bits(double d)
{
    return (uint64_t)__double_as_longlong(d);
}

RD_DEVICE double bits_double(uint64_t b)
{
    return __longlong_as_double((long long)b);
}

RD_DEVICE float f16_widen(uint16_t h)
{
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}

RD_DEVICE uint16_t f16_narrow(float f)
{
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}

RD_DEVICE float bf16_widen(uint16_t b)
{
    return __uint_as_float((uint32_t)b << 16);
}

RD_DEVICE uint16_t bf16_narrow(float f)
{
    uint16_t b;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(f));
    return b;
}

#define RD_NARROW_FN static __device__ __forceinline__
#include "base/narrow.h"

#endif
