#include "kernels/rows.cuh"
#include "kernels/gdr.cuh"

#define K(items, number) (const void *)rd_gdr<number, items, RD_KT_SINGLE>

const void *const rd_kernels_gdr[RD_KN_NUMBERS] = {
    K(4, rd_arith_f16), K(4, rd_arith_bf16), K(4, rd_arith_f32), K(4, rd_arith_f64),
    K(4, rd_arith_i32), K(4, rd_arith_i64),  K(2, rd_arith_any), K(4, rd_arith_wide),
};
