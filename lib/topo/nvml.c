/* Loading NVML: see nvml.h. A driver older than a function has not got it: then a stand-in says "not found". */
#include "topo/nvml.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* The members of rd_nvml_t, in their order. */
static const char *const names[] = {"nvmlInit_v2",
                                    "nvmlErrorString",
                                    "nvmlSystemGetDriverVersion",
                                    "nvmlDeviceGetCount_v2",
                                    "nvmlDeviceGetHandleByIndex_v2",
                                    "nvmlDeviceGetName",
                                    "nvmlDeviceGetPciInfo_v3",
                                    "nvmlDeviceGetMemoryInfo",
                                    "nvmlDeviceGetBAR1MemoryInfo",
                                    "nvmlDeviceGetCudaComputeCapability",
                                    "nvmlDeviceGetMaxPcieLinkGeneration",
                                    "nvmlDeviceGetMaxPcieLinkWidth",
                                    "nvmlDeviceGetCurrPcieLinkWidth",
                                    "nvmlDeviceGetNvLinkState",
                                    "nvmlDeviceGetNvLinkRemotePciInfo_v2",
                                    "nvmlDeviceGetNvLinkRemoteDeviceType",
                                    "nvmlDeviceGetP2PStatus",
                                    "nvmlDeviceGetMaxClockInfo",
                                    "nvmlDeviceGetApplicationsClock",
                                    "nvmlDeviceGetPersistenceMode",
                                    "nvmlDeviceGetComputeMode",
                                    "nvmlDeviceGetEccMode",
                                    "nvmlDeviceGetTotalEccErrors",
                                    "nvmlDeviceGetMigMode"};
#define COUNT (sizeof names / sizeof names[0])
_Static_assert(sizeof(rd_nvml_t) == COUNT * sizeof(void *), "a name for each function, a function for each name");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static rd_nvml_t nvml;
static const char *missing; /* why there is none; NULL: there is */

static int not_found(void)
{
    return NVML_ERROR_FUNCTION_NOT_FOUND;
}

static void load(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), **member = (void **)(void *)&nvml;
    int result;

    missing = "there is no libnvidia-ml.so.1, which comes with NVIDIA's driver";
    if (!library)
        return;
    for (size_t i = 0; i < COUNT; i++) {
        member[i] = dlsym(library, names[i]);
        if (!member[i])
            member[i] = (void *)(uintptr_t)not_found;
    }
    missing = "libnvidia-ml.so.1 is too old";
    if ((void *)(uintptr_t)nvml.Init_v2 == (void *)(uintptr_t)not_found ||
        (void *)(uintptr_t)nvml.ErrorString == (void *)(uintptr_t)not_found)
        return;
    result = nvml.Init_v2();
    missing = result == NVML_SUCCESS ? NULL : nvml.ErrorString(result);
}

const rd_nvml_t *rd_nvml(const char **why)
{
    pthread_once(&once, load);
    *why = missing;
    return missing ? NULL : &nvml;
}
