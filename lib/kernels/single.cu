#include "kernels/single.cuh"
#include "kernels/barrier.cuh"
#include "kernels/mixed.cuh"
#include "kernels/onesided.cuh"
#include "kernels/table.h"

const void *const rd_kernels_messages[RD_GPU_PROTOS] = {
    (const void *)rd_messages<rd_lines_ll, 0, RD_KT_FIFOS, RD_KT_AT_ONCE>,
    (const void *)rd_messages<rd_lines_ll128, 0, RD_KT_FIFOS, RD_KT_AT_ONCE>,
};

/* Blocks are small here, too, because a block that serves a pair of ranks on two nodes needs few threads. */
const void *const rd_kernels_mixed[RD_GPU_PROTOS] = {
    (const void *)rd_mixed<rd_lines_ll, 8, RD_KT_FIFOS, RD_KT_AT_ONCE>,
    (const void *)rd_mixed<rd_lines_ll128, 8, RD_KT_FIFOS, RD_KT_AT_ONCE>,
};

const void *const rd_kernels_single[RD_KT_SINGLES] = {
    (const void *)rd_barrier<RD_KT_BARRIER>,
    (const void *)rd_single,
    (const void *)rd_write,
    (const void *)rd_nothing,
    (const void *)rd_stall,
    (const void *)rd_proxied,
    (const void *)rd_proxied_messages,
    (const void *)rd_put,
    (const void *)rd_await,
};
