#include "kernels/program.cuh"
#include "kernels/rows.cuh"

#define K(codec, number) (const void *)rd_program<codec, number, RD_KT_PROGRAM, RD_KT_FIT_PROGRAM / RD_KT_PROGRAM>

const void *const rd_kernels_program[RD_GPU_PROTOS][RD_KN_NUMBERS] = {
    RD_ROW_ANY(rd_codec_ll, K),
    RD_ROW_ALL(rd_codec_ll128, K),
};
