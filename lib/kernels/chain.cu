#include "kernels/chain.cuh"
#include "kernels/rows.cuh"

#define K(codec, number) (const void *)rd_chain<codec, number, RD_KT_FIFOS>

const void *const rd_kernels_chain[RD_GPU_PROTOS][RD_KN_NUMBERS] = {
    RD_ROW_ANY(rd_codec_ll, K),
    RD_ROW_ALL(rd_codec_ll128, K),
};
