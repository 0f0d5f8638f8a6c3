/* What rondo_device.cuh needs of a machine, on that of test/sim: see RONDO_DEVICE_MACHINE there. */
#ifndef TEST_SIM_DEVICE_MACHINE_CUH
#define TEST_SIM_DEVICE_MACHINE_CUH

#include <gpu.cuh>

#define RONDO_DEV [[maybe_unused]] static inline
#define RONDO_DEV_MEMBER inline
#define RONDO_DEV_FAR [[maybe_unused]] static
#define RONDO_DEV_POLLS 16u

namespace rondo_machine
{

typedef uint4 line_t;
using ::word_acquire;
using ::word_add;
using ::word_load;
using ::word_store;

RONDO_DEV uint32_t thread()
{
    return gpu_thread();
}

RONDO_DEV uint32_t threads()
{
    return gpu_threads();
}

RONDO_DEV uint32_t ms()
{
    return gpu_ms();
}

RONDO_DEV void fence()
{
    fence_sys();
}

/* Lines come late and in parts; shorter pieces at once. */
RONDO_DEV void data_store(line_t *p, const line_t &v)
{
    far_store(p, v);
}

template <typename T>
RONDO_DEV void data_store(T *p, T v)
{
    *p = v;
}

RONDO_DEV bool block_any(bool x)
{
    return ::block_any(x);
}

RONDO_DEV bool warp_release(bool x, bool leads)
{
    return lanes_release(x, leads);
}

RONDO_DEV bool block_release(bool x, bool leads)
{
    return group_release(0, gpu_threads(), x, leads);
}

} // namespace rondo_machine

#endif
