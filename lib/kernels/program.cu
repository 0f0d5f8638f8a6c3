#include "kernels/program.cuh"
#include "kernels/rows.cuh"

#define K(proto, number) (const void *)rd_program<proto, number, RD_KT_PROGRAM, RD_KT_FIT_PROGRAM / RD_KT_PROGRAM>

const void *const rd_kernels_program[RD_GPU_PROTOS][RD_KN_NUMBERS] = {
    RD_ROW_ANY(rd_lines_ll, K),
    RD_ROW_ALL(rd_lines_ll128, K),
};
