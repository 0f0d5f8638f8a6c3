#include "kernels/p2p.cuh"
#include "kernels/table.h"

/* A thread has eight items in flight, and a multiprocessor runs as many warps as lines may need. */
const void *const rd_kernels_streams[RD_GPU_PROTOS] = {
    (const void *)rd_messages<rd_lines_ll, 8, RD_KT_STREAMS, 1>,
    (const void *)rd_messages<rd_lines_ll128, 8, RD_KT_STREAMS, 1>,
};
