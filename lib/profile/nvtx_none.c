/* Stands in for nvtx.c where NVTX's headers were not found. */
#include <string.h>

#include "base/error.h"
#include "profile/nvtx.h"

bool rd_nvtx_wanted(const char *setting)
{
    static _Atomic int said;

    if (strcmp(setting, "1") == 0 && !atomic_exchange(&said, 1))
        rd_log(NULL, RD_LOG_WARN, "RONDO_NVTX=1 has no effect: rondo was built without NVTX's headers");
    return false;
}

void rd_nvtx_begin(const char *name, const rd_nvtx_call_t *call)
{
    (void)name;
    (void)call;
}

void rd_nvtx_end(void)
{
}
