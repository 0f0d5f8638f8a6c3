/* What the tool of NVTX's has seen. */
#ifndef TEST_PROFILE_INJECTION_H
#define TEST_PROFILE_INJECTION_H

#include "profile/nvtx.h"

#define INJECTION_MOST 256
#define INJECTION_SYMBOL "injection_seen"

typedef struct {
    char name[32];
    rd_nvtx_call_t payload;
} injection_range_t;

typedef struct {
    int domains, pushed, popped, depth;
    injection_range_t ranges[INJECTION_MOST];
} injection_t;

#endif
