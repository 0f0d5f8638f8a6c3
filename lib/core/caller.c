/* See caller.h. */
#include "core/caller.h"

#include <rondo.h>

rd_caller_t *rd_caller(void)
{
    static _Thread_local rd_caller_t caller = {.cta_policy = -1, .blocks = -1, .limit_ms = -1};

    return &caller;
}

rondo_result_t rondo_tag(uint64_t tag)
{
    rd_caller()->tag = tag;
    return RONDO_SUCCESS;
}
