#include "kernels/p2p.cuh"
#include "kernels/table.h"

/* Eight items of a thread on their way at once; and as many warps on a multiprocessor as lines may want. */
const void *const rd_kernels_streams[RD_GPU_PROTOS] = {
    (const void *)rd_messages<rd_lines_ll, 8, RD_KT_STREAMS, 1>,
    (const void *)rd_messages<rd_lines_ll128, 8, RD_KT_STREAMS, 1>,
};
