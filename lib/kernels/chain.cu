#include "chain.cuh"
#include "rows.cuh"

#define K(codec, number) (const void *)rd_chain<codec, number, RD_KT_CHAIN>

RD_ROWS_SENTINEL(2);

const void *const rd_kernels_chain[RD_KC_CODECS][RD_KN_NUMBERS] = {
    {},
    RD_ROW_LL128(K),
    RD_ROW_SENTINEL(K),
};
