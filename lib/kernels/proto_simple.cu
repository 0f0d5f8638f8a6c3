#include "kernels/rows.cuh"
#include "kernels/proto_simple.cuh"

/* `items` is the number of 16-byte items that a thread has in flight: a power of two, as many as registers allow. */
#define K(items, number) (const void *)rd_simple<number, true, items, RD_KT_SIMPLE>

const void *const rd_kernels_simple[RD_KN_NUMBERS] = {
    K(4, rd_arith_f16), K(4, rd_arith_bf16), K(4, rd_arith_f32), K(4, rd_arith_f64),
    K(4, rd_arith_i32), K(4, rd_arith_i64),  K(2, rd_arith_any), K(4, rd_arith_wide),
};

const void *const rd_kernels_simple_move = (const void *)rd_simple<rd_arith_i32, false, 8, RD_KT_SIMPLE>;
