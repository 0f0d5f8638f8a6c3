/* Kernels of the program's own that reach the memory of other ranks: by loads and stores, signals and barriers, with no
 * host between. rondo.h has the host's part (rondo_window_create, rondo_device_create, rondo_device_window);
 * doc/device.md is the guide. Everything is inline: a program that includes this file needs nothing else of rondo in
 * its kernels. For compute capability 7.0 and newer.
 *
 *   __global__ void step(const __grid_constant__ rondo_device_t device,
 *                        const __grid_constant__ rondo_device_window_t window, const float *edge, size_t bytes)
 *   {
 *       const int n = rondo_dev_nranks(device), right = (rondo_dev_rank(device) + 1) % n;
 *       const int left = (rondo_dev_rank(device) + n - 1) % n;
 *
 *       rondo_dev_put_signal(rondo_dev_block(), device, window, right, 0, edge, bytes, 0);
 *       if (!rondo_dev_signal_wait(rondo_dev_block(), device, left, 0))
 *           return;                                // the communicator has failed: the host hears why
 *       use(rondo_dev_pointer<float>(window, rondo_dev_rank(device)));  // what `left` has put
 *   }
 *
 * GROUPS. A function that works or waits is called by a group of threads, all of which call it alike:
 * rondo_dev_thread() is one thread, rondo_dev_warp() the 32 lanes of a warp, rondo_dev_block() all threads of a block.
 * All of a group get the same result.
 *
 * MEMORY MODEL. "Before" is causality order of the PTX memory model, over the threads of all ranks; it is transitive.
 *   1. Signal. What the threads of a group have done before they call rondo_dev_signal_add, _set or
 *      rondo_dev_put_signal, the put included, is before the signal's change (release, system scope). That is before
 * the return, in every thread of its group, of a rondo_dev_signal_wait or _until that it has satisfied (acquire, system
 *      scope); of several additions that a wait needed, each is.
 *   2. Barrier. What any thread of a group has done before it calls rondo_dev_barrier is before what any thread of the
 *      groups of all ranks does after their call of the same barrier's same turn has returned true.
 *   3. Other threads of the rank: only what they have handed to the group by __syncthreads, __syncwarp, atomics with
 *      fences, or the end of a kernel before in the stream, takes part in 1 and 2.
 *   4. A put alone orders nothing, and rondo_dev_signal_read acquires nothing. Two accesses to the same bytes, at least
 *      one of which writes, and of which neither is before the other, are a race.
 * Windows change while a kernel runs: read them by plain or volatile loads, never by __ldg or through a pointer that is
 * const __restrict__, for which the compiler takes a cache that nothing here empties.
 *
 * FAILURE. Every wait ends: when the communicator has failed or was aborted, when another rank has died, and after the
 * communicator's timeout, if it has one. It then returns false, and the kernel has to end without using what it waited
 * for; so does every later wait of this communicator that is not satisfied already, some milliseconds after it began,
 * and rondo_comm_get_error says what has happened. A barrier, signal or rank that does not exist, and a put beyond a
 * window's end, are false, too, and fail the communicator with RONDO_ERR_INVALID_ARGUMENT.
 *
 * ALL AT ONCE. Blocks that wait for other ranks' blocks must all be able to run together: no larger grid than fits on
 * the GPU beside what else runs there (cudaLaunchCooperativeKernel refuses one that cannot). */
#ifndef RONDO_DEVICE_CUH
#define RONDO_DEVICE_CUH

#include <rondo.h>

/* ---- the machine below: everything that is not C++ ----
 *
 * RONDO_DEVICE_MACHINE names a header that defines the same for another machine: rondo's tests run what is below on
 * CPU threads. */
#ifdef RONDO_DEVICE_MACHINE
#include RONDO_DEVICE_MACHINE
#else

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#error "rondo_device.cuh needs compute capability 7.0 or newer: nvcc -arch=native, or -arch=sm_90"
#endif

#define RONDO_DEV static __device__ __forceinline__
#define RONDO_DEV_MEMBER __device__ __forceinline__
#define RONDO_DEV_FAR static __device__ __noinline__ /* rarely run: out of the loops */
#define RONDO_DEV_POLLS 4096u                        /* polls between two looks at the host's words */

namespace rondo_machine
{

struct alignas(16) line_t {
    uint32_t word[4];
};

RONDO_DEV uint32_t thread()
{
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

RONDO_DEV uint32_t threads()
{
    return blockDim.x * blockDim.y * blockDim.z;
}

RONDO_DEV uint32_t ms()
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return (uint32_t)(ns / 1000000);
}

/* Relaxed, at system scope, as all accesses to words are that do not say otherwise. */
RONDO_DEV uint32_t word_load(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

RONDO_DEV uint32_t word_acquire(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

RONDO_DEV void word_store(uint32_t *p, uint32_t v)
{
    asm volatile("st.relaxed.sys.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

RONDO_DEV void word_add(uint32_t *p, uint32_t v)
{
    asm volatile("red.relaxed.sys.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

/* Acquire and release, at system scope. */
RONDO_DEV void fence()
{
    asm volatile("fence.acq_rel.sys;" ::: "memory");
}

/* Weak stores of data: the fence behind them orders them. */
template <typename T>
RONDO_DEV void data_store(T *p, T v)
{
    *p = v;
}

RONDO_DEV bool warp_any(bool x)
{
    return __any_sync(~0u, x);
}

RONDO_DEV bool block_any(bool x)
{
    return __syncthreads_or(x);
}

/* The same, and release: all that the threads of the warp, or block, have done is before what those threads store from
 * here on that `lead`. */
RONDO_DEV bool warp_release(bool x, bool leads)
{
    __syncwarp();
    const bool any = warp_any(x);
    if (leads)
        fence();
    return any;
}

RONDO_DEV bool block_release(bool x, bool leads)
{
    const bool any = block_any(x);
    if (leads)
        fence();
    return any;
}

} // namespace rondo_machine

#endif

/* ---- groups of threads ----
 *
 * index, count   of the calling thread in its group, and of all
 * meet           all threads of the group come together: what each has done before is before what all do next. True if
 *                x is true in any of them
 * release        the same, and what all have done is before what those threads store for other ranks that lead */

struct rondo_dev_thread {
    RONDO_DEV_MEMBER uint32_t index() const
    {
        return 0;
    }

    RONDO_DEV_MEMBER uint32_t count() const
    {
        return 1;
    }

    RONDO_DEV_MEMBER bool meet(bool x) const
    {
        return x;
    }

    RONDO_DEV_MEMBER void release(bool leads) const
    {
        if (leads)
            rondo_machine::fence();
    }
};

struct rondo_dev_warp {
    RONDO_DEV_MEMBER uint32_t index() const
    {
        return rondo_machine::thread() % 32;
    }

    RONDO_DEV_MEMBER uint32_t count() const
    {
        return 32;
    }

    RONDO_DEV_MEMBER bool meet(bool x) const
    {
        return rondo_machine::warp_release(x, false);
    }

    RONDO_DEV_MEMBER void release(bool leads) const
    {
        (void)rondo_machine::warp_release(false, leads);
    }
};

struct rondo_dev_block {
    RONDO_DEV_MEMBER uint32_t index() const
    {
        return rondo_machine::thread();
    }

    RONDO_DEV_MEMBER uint32_t count() const
    {
        return rondo_machine::threads();
    }

    RONDO_DEV_MEMBER bool meet(bool x) const
    {
        return rondo_machine::block_any(x);
    }

    RONDO_DEV_MEMBER void release(bool leads) const
    {
        (void)rondo_machine::block_release(false, leads);
    }
};

/* ---- who and where ---- */

RONDO_DEV int rondo_dev_rank(const rondo_device_t &device)
{
    return device.rank;
}

RONDO_DEV int rondo_dev_nranks(const rondo_device_t &device)
{
    return device.nranks;
}

/* Where byte `offset` of a rank's part of a window lies for this rank's kernels; it is not checked. */
template <typename T>
RONDO_DEV T *rondo_dev_pointer(const rondo_device_window_t &window, int rank, size_t offset = 0)
{
    return (T *)((char *)window.base[rank] + offset);
}

/* Bytes of a rank's part. */
RONDO_DEV size_t rondo_dev_bytes(const rondo_device_window_t &window, int rank)
{
    return window.bytes[rank];
}

/* ---- what the host sees, and the kernel sees of the host ----
 *
 * Words in pinned memory, which this rank's kernels and rondo's threads share: rd_khost_t of kernels/host_words.h. */
enum {
    RONDO_DEV_HOST_ABORT = 0,      /* not zero: leave */
    RONDO_DEV_HOST_TIMEOUT_MS = 1, /* 0: none */
    RONDO_DEV_HOST_FAILED = 2,     /* not zero: a kernel has left, and this is why */
    RONDO_DEV_HOST_LATE = 3,       /* the rank that it waited for, or what did not exist */
    RONDO_DEV_HOST_WAIT = 5,       /* who waits for whom: call, the peer's call, the peer, epochs */
    RONDO_DEV_FAILED_ABORT = 1,
    RONDO_DEV_FAILED_TIMEOUT = 2,
    RONDO_DEV_FAILED_ARGUMENT = 6,
    RONDO_DEV_SLOW_MS = 100 /* so long a wait is shown to the host */
};
enum { RONDO_DEV_NO_BARRIER, RONDO_DEV_NO_SIGNAL, RONDO_DEV_NO_RANK, RONDO_DEV_NO_BYTES };

/* Tells the host that a kernel has left; the first one is believed. */
RONDO_DEV_FAR void rondo_dev_fail(uint32_t *host, uint32_t why, uint32_t late)
{
    if (rondo_machine::word_load(host + RONDO_DEV_HOST_FAILED))
        return;
    rondo_machine::word_store(host + RONDO_DEV_HOST_LATE, late);
    rondo_machine::fence();
    rondo_machine::word_store(host + RONDO_DEV_HOST_FAILED, why);
}

RONDO_DEV void rondo_dev_show_wait(uint32_t *host, uint32_t peer)
{
    uint32_t *wait = host + RONDO_DEV_HOST_WAIT;

    if (rondo_machine::word_load(wait + 2)) /* the host has not read the last one */
        return;
    rondo_machine::word_store(wait, 0);
    rondo_machine::word_store(wait + 1, peer << 24);
    rondo_machine::word_store(wait + 3, peer << 24);
    rondo_machine::fence();
    rondo_machine::word_store(wait + 2, (peer + 1) << 14);
}

/* Looks at the host's words. Returns true if the wait has to end; `since` is when this wait first looked, 0: not yet.
 */
RONDO_DEV_FAR bool rondo_dev_wait_over(uint32_t *host, uint32_t peer, uint32_t *since)
{
    const uint32_t now = rondo_machine::ms() | 1;
    const uint32_t limit = rondo_machine::word_load(host + RONDO_DEV_HOST_TIMEOUT_MS);

    if (rondo_machine::word_load(host + RONDO_DEV_HOST_FAILED))
        return true;
    if (rondo_machine::word_load(host + RONDO_DEV_HOST_ABORT)) {
        rondo_dev_fail(host, RONDO_DEV_FAILED_ABORT, peer);
        return true;
    }
    if (*since == 0)
        *since = now;
    if ((int32_t)(now - *since - RONDO_DEV_SLOW_MS) > 0)
        rondo_dev_show_wait(host, peer);
    if (limit == 0 || (int32_t)(now - *since - limit) <= 0)
        return false;
    rondo_dev_fail(host, RONDO_DEV_FAILED_TIMEOUT, peer);
    return true;
}

/* One thread waits until *p has come to `value`, counted modulo 2^32, and acquires. Returns false if it has to leave.
 */
RONDO_DEV bool rondo_dev_word_wait(const rondo_device_t &device, const uint32_t *p, uint32_t value, uint32_t peer)
{
    uint32_t polls = 0, since = 0;

    while ((int32_t)(rondo_machine::word_acquire(p) - value) < 0) {
        if (++polls % RONDO_DEV_POLLS == 0 && rondo_dev_wait_over(device.host, peer, &since))
            return false;
    }
    return true;
}

/* Has the communicator failed? The host's words are slow to load: a microsecond or two. */
RONDO_DEV bool rondo_dev_failed(const rondo_device_t &device)
{
    return rondo_machine::word_load(device.host + RONDO_DEV_HOST_FAILED) ||
           rondo_machine::word_load(device.host + RONDO_DEV_HOST_ABORT);
}

/* What is not there fails the communicator. */
RONDO_DEV bool rondo_dev_exists(const rondo_device_t &device, bool exists, uint32_t what)
{
    if (!exists)
        rondo_dev_fail(device.host, RONDO_DEV_FAILED_ARGUMENT, what);
    return exists;
}

RONDO_DEV bool rondo_dev_rank_exists(const rondo_device_t &device, int rank)
{
    return rondo_dev_exists(device, rank >= 0 && rank < device.nranks, RONDO_DEV_NO_RANK);
}

/* ---- the area of a rank, which all ranks have mapped, and what is its own ----
 *
 *   area   barriers   [barrier][rank]   written by that rank: the last turn that it has come to
 *          signals    [origin][signal]  added to and set by that rank
 *   own    turns      [barrier]         the last turn of this rank
 *          taken      [origin][signal]  signals that waits have taken
 *
 * All of it is counted by kernels alone, modulo 2^32, so a launch may be replayed by a graph. */

RONDO_DEV uint32_t *rondo_dev_barrier_word(const rondo_device_t &device, int at, uint32_t barrier, int rank)
{
    return device.area[at] + barrier * RONDO_DEVICE_RANKS + (uint32_t)rank;
}

RONDO_DEV uint32_t *rondo_dev_signal_word(const rondo_device_t &device, int at, int origin, uint32_t signal)
{
    return device.area[at] + device.barriers * RONDO_DEVICE_RANKS + (uint32_t)origin * device.signals + signal;
}

RONDO_DEV uint32_t *rondo_dev_taken_word(const rondo_device_t &device, int origin, uint32_t signal)
{
    return device.own + device.barriers + (uint32_t)origin * device.signals + signal;
}

RONDO_DEV bool rondo_dev_signal_exists(const rondo_device_t &device, int rank, uint32_t signal)
{
    return rondo_dev_rank_exists(device, rank) &&
           rondo_dev_exists(device, signal < device.signals, RONDO_DEV_NO_SIGNAL);
}

/* ---- barriers ----
 *
 * One group of each rank comes to barrier number `barrier`, from 0 on: block b of every rank to barrier b, say.
 * Barriers with different numbers know nothing of each other. On a rank one group at a time uses a barrier. Returns
 * false if the communicator has failed. */
template <typename GROUP>
RONDO_DEV bool rondo_dev_barrier(const GROUP &group, const rondo_device_t &device, uint32_t barrier)
{
    bool bad = false;

    if (!rondo_dev_exists(device, barrier < device.barriers, RONDO_DEV_NO_BARRIER))
        return false;
    const uint32_t n = (uint32_t)device.nranks, turn = device.own[barrier] + 1;
    group.release(group.index() < n); /* besides, all have read the turn */
    for (uint32_t peer = group.index(); peer < n; peer += group.count())
        rondo_machine::word_store(rondo_dev_barrier_word(device, (int)peer, barrier, device.rank), turn);
    for (uint32_t peer = group.index(); peer < n; peer += group.count())
        bad =
            !rondo_dev_word_wait(device, rondo_dev_barrier_word(device, device.rank, barrier, (int)peer), turn, peer) ||
            bad;
    if (group.index() == 0)
        device.own[barrier] = turn;
    return !group.meet(bad);
}

/* ---- signals ----
 *
 * Rank r has `signals` words for each rank that may signal to it, so two origins never share one. */

/* Adds n to this rank's signal at `peer`; releases. Any number of groups of this rank may add to one signal. */
template <typename GROUP>
RONDO_DEV bool rondo_dev_signal_add(const GROUP &group, const rondo_device_t &device, int peer, uint32_t signal,
                                    uint32_t n = 1)
{
    const bool leads = group.index() == 0;

    if (!rondo_dev_signal_exists(device, peer, signal))
        return false;
    group.release(leads);
    if (leads)
        rondo_machine::word_add(rondo_dev_signal_word(device, peer, device.rank, signal), n);
    return true;
}

/* Sets it to a value; releases. A signal is either added to or set, and set by one group at a time. */
template <typename GROUP>
RONDO_DEV bool rondo_dev_signal_set(const GROUP &group, const rondo_device_t &device, int peer, uint32_t signal,
                                    uint32_t value)
{
    const bool leads = group.index() == 0;

    if (!rondo_dev_signal_exists(device, peer, signal))
        return false;
    group.release(leads);
    if (leads)
        rondo_machine::word_store(rondo_dev_signal_word(device, peer, device.rank, signal), value);
    return true;
}

/* Waits until rank `origin` has added n more to its signal here than waits have taken before, and takes them; acquires.
 * One group at a time waits for one signal. What was taken is kept in memory of the device, from kernel to kernel. */
template <typename GROUP>
RONDO_DEV bool rondo_dev_signal_wait(const GROUP &group, const rondo_device_t &device, int origin, uint32_t signal,
                                     uint32_t n = 1)
{
    bool bad = false;

    if (!rondo_dev_signal_exists(device, origin, signal))
        return false;
    if (group.index() == 0) {
        uint32_t *taken = rondo_dev_taken_word(device, origin, signal);
        const uint32_t value = *taken + n;
        bad = !rondo_dev_word_wait(device, rondo_dev_signal_word(device, device.rank, origin, signal), value,
                                   (uint32_t)origin);
        if (!bad)
            *taken = value;
    }
    return !group.meet(bad);
}

/* Waits until the signal has come to `value`, modulo 2^32: it is at most 2^31 behind. Takes nothing; acquires. */
template <typename GROUP>
RONDO_DEV bool rondo_dev_signal_until(const GROUP &group, const rondo_device_t &device, int origin, uint32_t signal,
                                      uint32_t value)
{
    bool bad = false;

    if (!rondo_dev_signal_exists(device, origin, signal))
        return false;
    if (group.index() == 0)
        bad = !rondo_dev_word_wait(device, rondo_dev_signal_word(device, device.rank, origin, signal), value,
                                   (uint32_t)origin);
    return !group.meet(bad);
}

/* What the signal of `origin` is now; relaxed. 0 if there is none. */
RONDO_DEV uint32_t rondo_dev_signal_read(const rondo_device_t &device, int origin, uint32_t signal)
{
    if (!rondo_dev_signal_exists(device, origin, signal))
        return 0;
    return rondo_machine::word_load(rondo_dev_signal_word(device, device.rank, origin, signal));
}

/* ---- puts ---- */

template <typename T, typename GROUP>
RONDO_DEV void rondo_dev_copy_as(const GROUP &group, char *to, const char *from, size_t bytes)
{
    const size_t n = bytes / sizeof(T), step = group.count();
    size_t i = group.index();

    for (; i + 3 * step < n; i += 4 * step) { /* loads first: they take their time */
        const T a = ((const T *)from)[i], b = ((const T *)from)[i + step];
        const T c = ((const T *)from)[i + 2 * step], d = ((const T *)from)[i + 3 * step];
        rondo_machine::data_store((T *)to + i, a);
        rondo_machine::data_store((T *)to + i + step, b);
        rondo_machine::data_store((T *)to + i + 2 * step, c);
        rondo_machine::data_store((T *)to + i + 3 * step, d);
    }
    for (; i < n; i += step)
        rondo_machine::data_store((T *)to + i, ((const T *)from)[i]);
}

/* In the largest pieces that both addresses and the length allow, after the bytes before the first whole line. */
template <typename GROUP>
RONDO_DEV void rondo_dev_copy(const GROUP &group, char *to, const char *from, size_t bytes)
{
    const size_t apart = (uintptr_t)to ^ (uintptr_t)from, before = (size_t)(-(uintptr_t)to & 15);

    if (apart % 16 == 0 && bytes >= before + 16) {
        const size_t lines = (bytes - before) / 16 * 16, behind = before + lines;
        rondo_dev_copy_as<rondo_machine::line_t>(group, to + before, from + before, lines);
        rondo_dev_copy_as<uint8_t>(group, to, from, before);
        rondo_dev_copy_as<uint8_t>(group, to + behind, from + behind, bytes - behind);
    } else if (((uintptr_t)to | (uintptr_t)from | bytes) % 8 == 0) {
        rondo_dev_copy_as<uint64_t>(group, to, from, bytes);
    } else if (((uintptr_t)to | (uintptr_t)from | bytes) % 4 == 0) {
        rondo_dev_copy_as<uint32_t>(group, to, from, bytes);
    } else {
        rondo_dev_copy_as<uint8_t>(group, to, from, bytes);
    }
}

/* Writes `bytes` bytes at `from`, memory that this thread reads, to byte `offset` of the part of `peer`. Each thread of
 * the group copies a share and goes on: a signal or barrier of the group releases what all have put. */
template <typename GROUP>
RONDO_DEV bool rondo_dev_put(const GROUP &group, const rondo_device_t &device, const rondo_device_window_t &window,
                             int peer, size_t offset, const void *from, size_t bytes)
{
    if (!rondo_dev_rank_exists(device, peer))
        return false;
    const size_t has = window.bytes[peer];
    if (!rondo_dev_exists(device, offset <= has && bytes <= has - offset, RONDO_DEV_NO_BYTES))
        return false;
    rondo_dev_copy(group, rondo_dev_pointer<char>(window, peer, offset), (const char *)from, bytes);
    return true;
}

/* The same, then rondo_dev_signal_add of 1. */
template <typename GROUP>
RONDO_DEV bool rondo_dev_put_signal(const GROUP &group, const rondo_device_t &device,
                                    const rondo_device_window_t &window, int peer, size_t offset, const void *from,
                                    size_t bytes, uint32_t signal)
{
    return rondo_dev_put(group, device, window, peer, offset, from, bytes) &&
           rondo_dev_signal_add(group, device, peer, signal);
}

#endif
