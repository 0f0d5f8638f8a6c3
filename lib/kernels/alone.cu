#include "alone.cuh"
#include "messages.cuh"
#include "table.h"

const void *const rd_kernels_alone[RD_K_KINDS] = {
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    (const void *)rd_messages<RD_KT_FIFOS>,
    (const void *)rd_alone,
    (const void *)rd_list,
    (const void *)rd_nothing,
};
