#include "kernels/twoshot_rooted.cuh"
#include "kernels/rows.cuh"

#define K(proto, number) (const void *)rd_rooted_reduce<proto, number, RD_KT_GROUPS>

RD_ROWS_SENTINEL(1);

const void *const rd_kernels_rooted_reduce[RD_GPU_PROTOS][RD_KN_NUMBERS] = {
    {},
    RD_ROW_LL128(K),
    RD_ROW_SENTINEL(K),
};

const void *const rd_kernels_rooted_broadcast[RD_GPU_PROTOS] = {
    nullptr,
    (const void *)rd_rooted_broadcast<rd_lines_ll128, RD_KT_GROUPS>,
};
