#include "kernels/ring.cuh"
#include "kernels/rows.cuh"

#define K(proto, number) (const void *)rd_ring<proto, number, false, RD_KT_RING>
#define K_BANKS(proto, number) (const void *)rd_ring<proto, number, true, RD_KT_RING>

RD_ROWS_SENTINEL(2);

const void *const rd_kernels_ring[RD_GPU_PROTOS][RD_KN_NUMBERS] = {
    RD_ROW_ANY(rd_lines_ll, K),
    RD_ROW_LL128(K),
    RD_ROW_SENTINEL(K),
};

const void *const rd_kernels_ring_banks[RD_GPU_PROTOS][RD_KN_NUMBERS] = {
    RD_ROW_ANY(rd_lines_ll, K_BANKS),
    RD_ROW_LL128(K_BANKS),
    RD_ROW_SENTINEL(K_BANKS),
};
