/* See device_kernels.h. A unit is a group of threads with a barrier, signals and messages of its own: a block, a warp,
 * or the first lane of a warp. A message of a round lies in the bank of the round's parity, so whoever is a round ahead
 * spoils nothing; who is two ahead has met all others in between. */
#include "gpu/device_kernels.h"

#include <gpu.cuh>
#include <rondo_device.cuh>

#include "kernels/work.h"

/* What the header has written down of the library's own. */
static_assert(offsetof(rd_khost_t, abort) == RONDO_DEV_HOST_ABORT * 4, "abort");
static_assert(offsetof(rd_khost_t, timeout_ms) == RONDO_DEV_HOST_TIMEOUT_MS * 4, "timeout_ms");
static_assert(offsetof(rd_khost_t, failed) == RONDO_DEV_HOST_FAILED * 4, "failed");
static_assert(offsetof(rd_khost_t, late) == RONDO_DEV_HOST_LATE * 4, "late");
static_assert(offsetof(rd_khost_t, wait) == RONDO_DEV_HOST_WAIT * 4, "wait");
static_assert(RD_KWAIT_CALL == 0 && RD_KWAIT_PEER_CALL == 1 && RD_KWAIT_PEER == 2 && RD_KWAIT_EPOCHS == 3, "waits");
static_assert(RD_KWAIT(5, 0) == 6 << 14 && RD_KWAIT_BEGUN(5, 0) == 5 << 24 && RD_KWAIT_BEHIND(5, 0) == 5 << 24,
              "peers");
static_assert(RD_KFAILED_ABORT == RONDO_DEV_FAILED_ABORT && RD_KFAILED_TIMEOUT == RONDO_DEV_FAILED_TIMEOUT &&
                  RD_KFAILED_ARGUMENT == RONDO_DEV_FAILED_ARGUMENT,
              "why a kernel has left");
static_assert(RD_KNO_BARRIER == RONDO_DEV_NO_BARRIER && RD_KNO_SIGNAL == RONDO_DEV_NO_SIGNAL &&
                  RD_KNO_RANK == RONDO_DEV_NO_RANK && RD_KNO_BYTES == RONDO_DEV_NO_BYTES,
              "what does not exist");
static_assert(RD_KSLOW_MS == RONDO_DEV_SLOW_MS && RD_KRANKS == RONDO_DEVICE_RANKS, "numbers");
static_assert(sizeof(rd_kwork_t) <= sizeof(litmus_work_t) && sizeof(rd_kcomm_t) <= 1024, "what the machine looks at");

#define PIECE(words) (((words) + 7) / 4 * 4) /* words from one message to the next: room for a shift of 12 bytes */
#define WARPS (LITMUS_THREADS / 32)
#define ALL_ADD (2 * LITMUS_UNITS_MOST)       /* the signal that all warps of a rank add to, */
#define ALL_READ (ALL_ADD + 1)                /* and one for each block that says that all of it was read */
#define VALUES (ALL_READ + LITMUS_UNITS_MOST) /* those that are set */

#ifdef __CUDACC__
#define HOST_TOO __host__ __device__
#else
#define HOST_TOO
#endif

static inline HOST_TOO uint32_t value_of(uint32_t from, uint32_t to, uint32_t round, uint32_t unit, uint32_t i)
{
    uint32_t x = (from * 17 + to) * 0x9e3779b9u ^ round * 0x85ebca6bu ^ (unit << 24 | i);

    x = (x ^ x >> 15) * 0x7feb352du;
    return x ^ x >> 16;
}

template <typename GROUP>
struct unit_t {
    const litmus_t &l;
    GROUP group;
    uint32_t unit, units, rank, n, round;

    RD_MEMBER unit_t(const litmus_t &work, uint32_t number, uint32_t of) : l(work), unit(number), units(of)
    {
        rank = (uint32_t)rondo_dev_rank(l.device);
        n = (uint32_t)rondo_dev_nranks(l.device);
        round = l.round[unit];
    }

    RD_MEMBER size_t place(uint32_t from, uint32_t of) const
    {
        return (((round & 1) * n + from) * LITMUS_UNITS_MOST + of) * (size_t)PIECE(l.words) * 4 + l.shift;
    }

    RD_MEMBER uint32_t *source(uint32_t to) const
    {
        return l.source + (to * LITMUS_UNITS_MOST + unit) * PIECE(l.words) + l.shift / 4;
    }

    RD_MEMBER void fill(uint32_t *p, uint32_t to) const
    {
        for (uint32_t i = group.index(); i < l.words; i += group.count())
            p[i] = value_of(rank, to, round, unit, i);
    }

    RD_MEMBER void verify(const uint32_t *p, uint32_t from, uint32_t to, uint32_t of) const
    {
        uint32_t bad = 0;

        for (uint32_t i = group.index(); i < l.words; i += group.count())
            bad += p[i] != value_of(from, to, round, of, i);
        if (bad)
            rondo_machine::word_add(l.wrong, bad);
    }

    RD_MEMBER const uint32_t *mine(uint32_t from, uint32_t of) const
    {
        return rondo_dev_pointer<uint32_t>(l.window, (int)rank, place(from, of));
    }

    RD_MEMBER bool put(uint32_t to)
    {
        fill(source(to), to);
        (void)group.meet(false);
        return rondo_dev_put(group, l.device, l.window, (int)to, place(rank, unit), source(to), l.words * 4);
    }

    RD_MEMBER bool barrier()
    {
        for (uint32_t to = 0; to < n; to++)
            if (!put(to))
                return false;
        if (!rondo_dev_barrier(group, l.device, unit))
            return false;
        for (uint32_t from = 0; from < n; from++)
            verify(mine(from, unit), from, rank, unit);
        return true;
    }

    RD_MEMBER bool read()
    {
        fill(rondo_dev_pointer<uint32_t>(l.window, (int)rank, place(rank, unit)), 0);
        if (!rondo_dev_barrier(group, l.device, unit))
            return false;
        for (uint32_t from = 0; from < n; from++)
            verify(rondo_dev_pointer<uint32_t>(l.window, (int)from, place(from, unit)), from, 0, unit);
        return true;
    }

    /* One place, whatever the round: the answer alone keeps the next message away. */
    RD_MEMBER size_t one_place(uint32_t from) const
    {
        return place(from, unit) - (round & 1) * n * LITMUS_UNITS_MOST * (size_t)PIECE(l.words) * 4;
    }

    RD_MEMBER bool ring(bool set)
    {
        const uint32_t right = (rank + 1) % n, left = (rank + n - 1) % n;
        const uint32_t data = (set ? VALUES : 0) + 2 * unit, answer = data + 1;

        fill(source(right), right);
        (void)group.meet(false);
        if (!rondo_dev_put(group, l.device, l.window, (int)right, one_place(rank), source(right), l.words * 4))
            return false;
        if (!(set ? rondo_dev_signal_set(group, l.device, (int)right, data, round + 1)
                  : rondo_dev_signal_add(group, l.device, (int)right, data)))
            return false;
        if (!(set ? rondo_dev_signal_until(group, l.device, (int)left, data, round + 1)
                  : rondo_dev_signal_wait(group, l.device, (int)left, data)))
            return false;
        verify(rondo_dev_pointer<uint32_t>(l.window, (int)rank, one_place(left)), left, rank, unit);
        if (set)
            return rondo_dev_signal_set(group, l.device, (int)left, answer, round + 1) &&
                   rondo_dev_signal_until(group, l.device, (int)right, answer, round + 1);
        return rondo_dev_signal_add(group, l.device, (int)left, answer) &&
               rondo_dev_signal_wait(group, l.device, (int)right, answer);
    }

    RD_MEMBER bool one()
    {
        switch (l.kind) {
        case LITMUS_BARRIER:
            return barrier();
        case LITMUS_READ:
            return read();
        case LITMUS_SIGNAL:
        case LITMUS_SET:
            return ring(l.kind == LITMUS_SET);
        case LITMUS_NOWHERE:
            return rondo_dev_barrier(group, l.device, l.device.barriers);
        case LITMUS_BEYOND:
            return rondo_dev_put(group, l.device, l.window, (int)rank, rondo_dev_bytes(l.window, (int)rank) - 4,
                                 source(0), 8);
        default:
            return rank == 0 ? rondo_dev_barrier(group, l.device, unit) : true;
        }
    }

    RD_MEMBER void run()
    {
        bool over = false;

        for (uint32_t i = 0; i < l.rounds && !over; i++, round++)
            over = !one();
        (void)group.meet(false); /* all have read the round */
        if (group.index() != 0)
            return;
        l.round[unit] = round;
        if (over)
            rondo_machine::word_add(l.left, 1);
    }
};

/* Every warp is a unit that puts; block 0 waits for all of them. */
RD_DEVICE bool add_round(unit_t<rondo_dev_warp> &u, uint32_t blocks)
{
    const litmus_t &l = u.l;
    const int right = (int)((u.rank + 1) % u.n), left = (int)((u.rank + u.n - 1) % u.n);
    const rondo_dev_block block = rondo_dev_block();

    const bool well = u.put((uint32_t)right) && rondo_dev_signal_add(u.group, l.device, right, ALL_ADD);
    if (block.meet(!well)) /* a warp does not leave alone: the others would wait for it at the block's barrier */
        return false;
    if (gpu_block() == 0) {
        if (!rondo_dev_signal_wait(block, l.device, left, ALL_ADD, blocks * WARPS))
            return false;
        for (uint32_t of = gpu_thread() / 32; of < blocks * WARPS; of += WARPS)
            u.verify(u.mine((uint32_t)left, of), (uint32_t)left, u.rank, of);
        for (uint32_t b = 0; b < blocks; b++)
            if (!rondo_dev_signal_add(block, l.device, left, ALL_READ + b))
                return false;
    }
    return rondo_dev_signal_wait(block, l.device, right, ALL_READ + gpu_block());
}

RD_DEVICE void add(const litmus_t &l)
{
    unit_t<rondo_dev_warp> u(l, gpu_block() * WARPS + gpu_thread() / 32, gpu_blocks() * WARPS);
    bool over = false;

    for (uint32_t i = 0; i < l.rounds && !over; i++, u.round++)
        over = !add_round(u, gpu_blocks());
    (void)u.group.meet(false);
    if (u.group.index() != 0)
        return;
    l.round[u.unit] = u.round;
    if (over)
        rondo_machine::word_add(l.left, 1);
}

RD_KERNEL(LITMUS_THREADS)
litmus(RD_WORK(litmus_work_t))
{
    const litmus_t &l = work.is.litmus;
    const uint32_t warp = gpu_block() * WARPS + gpu_thread() / 32, warps = gpu_blocks() * WARPS;

    gpu_begin();
    if (l.kind == LITMUS_ADD)
        add(l);
    else if (l.group == LITMUS_BY_BLOCK)
        unit_t<rondo_dev_block>(l, gpu_block(), gpu_blocks()).run();
    else if (l.group == LITMUS_BY_WARP)
        unit_t<rondo_dev_warp>(l, warp, warps).run();
    else if (gpu_thread() % 32 == 0)
        unit_t<rondo_dev_thread>(l, warp, warps).run();
}

extern "C" const void *litmus_kernel(void)
{
    return (const void *)litmus;
}

extern "C" uint32_t litmus_units(uint32_t group, uint32_t blocks)
{
    return group == LITMUS_BY_BLOCK ? blocks : blocks * WARPS;
}

extern "C" size_t litmus_window_bytes(uint32_t nranks, uint32_t words)
{
    return (size_t)2 * nranks * LITMUS_UNITS_MOST * PIECE(words) * 4;
}

extern "C" size_t litmus_source_bytes(uint32_t words)
{
    return (size_t)RONDO_DEVICE_RANKS * LITMUS_UNITS_MOST * PIECE(words) * 4;
}

extern "C" uint32_t litmus_signals(void)
{
    return VALUES + 2 * LITMUS_UNITS_MOST;
}
