#include "twoshot.cuh"
#include "number_any.cuh"
#include "table.h"

#define K(codec, number) (const void *)rd_twoshot<codec, number, RD_KT_GROUPS>

typedef rd_codec_sentinel<4, 1> narrow_t;
typedef rd_codec_sentinel<8, 1> wide_t;

const void *const rd_kernels_twoshot[RD_KC_CODECS][RD_KN_NUMBERS] = {
    {},
    {
        nullptr,
        nullptr,
        nullptr,
        nullptr,
        K(rd_codec_ll128, rd_number_i32),
        K(rd_codec_ll128, rd_number_i64),
        K(rd_codec_ll128, rd_number_any),
    },
    {
        K(narrow_t, rd_number_f16),
        K(narrow_t, rd_number_bf16),
        K(narrow_t, rd_number_f32),
        K(wide_t, rd_number_f64),
    },
};
