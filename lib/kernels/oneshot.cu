#include "kernels/oneshot.cuh"
#include "kernels/rows.cuh"

#define K(proto, number) (const void *)rd_oneshot<proto, number, RD_KT_GROUPS>

RD_ROWS_SENTINEL(1);

const void *const rd_kernels_oneshot[RD_GPU_PROTOS][RD_KN_NUMBERS] = {
    RD_ROW_ALL(rd_lines_ll, K),
    RD_ROW_LL128(K),
    RD_ROW_SENTINEL(K),
};

const void *const rd_kernels_oneshot_move[RD_GPU_PROTOS] = {
    (const void *)rd_oneshot_move<rd_lines_ll, RD_KT_GROUPS>,
    (const void *)rd_oneshot_move<rd_lines_ll128, RD_KT_GROUPS>,
};
