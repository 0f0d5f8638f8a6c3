#include "kernels/chain.cuh"
#include "kernels/rows.cuh"

#define K(proto, number) (const void *)rd_chain<proto, number, RD_KT_FIFOS>

const void *const rd_kernels_chain[RD_GPU_PROTOS][RD_KN_NUMBERS] = {
    RD_ROW_ANY(rd_lines_ll, K),
    RD_ROW_ALL(rd_lines_ll128, K),
};
