#include "ring.cuh"
#include "rows.cuh"

#define K(codec, number) (const void *)rd_ring<codec, number, RD_KT_RING>

RD_ROWS_SENTINEL(2);

const void *const rd_kernels_ring[RD_KC_CODECS][RD_KN_NUMBERS] = {
    RD_ROW_ANY(rd_codec_ll, K),
    RD_ROW_LL128(K),
    RD_ROW_SENTINEL(K),
};
