#include "kernels/twoshot.cuh"
#include "kernels/rows.cuh"

#define K(proto, number) (const void *)rd_twoshot<proto, number, false, RD_KT_GROUPS>
#define K_AHEAD(proto, number) (const void *)rd_twoshot<proto, number, true, RD_KT_GROUPS>

RD_ROWS_SENTINEL(1);

const void *const rd_kernels_twoshot[RD_GPU_PROTOS][RD_KN_NUMBERS] = {
    {},
    RD_ROW_LL128(K),
    RD_ROW_SENTINEL(K),
};

const void *const rd_kernels_twoshot_ahead[RD_GPU_PROTOS][RD_KN_NUMBERS] = {
    {},
    RD_ROW_LL128(K_AHEAD),
    RD_ROW_SENTINEL(K_AHEAD),
};
