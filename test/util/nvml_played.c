/* A played NVML: see nvml_played.h. It has the library's names behind dlopen and dlsym, and refuses what NVML refuses:
 * links and GPUs that are not there. */
#include "util/nvml_played.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "topo/nvml.h"

struct nvml_played nvml_played;

enum { INVALID_ARGUMENT = NVML_ERROR_INVALID_ARGUMENT, NOT_SUPPORTED = NVML_ERROR_NOT_SUPPORTED, BUSY = 10 };

static char library; /* its handle */

static int index_of(nvmlDevice_t device)
{
    return (int)(uintptr_t)device - 1;
}

static int bit(unsigned bits, nvmlDevice_t device)
{
    return bits >> index_of(device) & 1;
}

static int init(void)
{
    return NVML_SUCCESS;
}

static const char *error_string(int result)
{
    return result == NOT_SUPPORTED ? "Not Supported" : "Invalid Argument";
}

static int driver_version(char *version, unsigned length)
{
    snprintf(version, length, "580.00");
    return NVML_SUCCESS;
}

static int count(unsigned *count)
{
    *count = (unsigned)nvml_played.count;
    return NVML_SUCCESS;
}

static int by_index(unsigned index, nvmlDevice_t *device)
{
    if ((int)index >= nvml_played.count)
        return INVALID_ARGUMENT;
    *device = (nvmlDevice_t)(uintptr_t)(index + 1);
    return NVML_SUCCESS;
}

static int name(nvmlDevice_t device, char *text, unsigned length)
{
    (void)device;
    snprintf(text, length, "NVIDIA Played");
    return NVML_SUCCESS;
}

static void pci_set(nvmlPciInfo_t *pci, int g)
{
    memset(pci, 0, sizeof *pci);
    snprintf(pci->busId, sizeof pci->busId, "0000%s", nvml_played.bus[g]); /* as NVML writes it: eight digits */
}

static int pci_info(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    pci_set(pci, index_of(device));
    return NVML_SUCCESS;
}

static int memory(nvmlDevice_t device, nvmlMemory_t *memory)
{
    (void)device;
    *memory = (nvmlMemory_t){4096ull << 20, 4096ull << 20, 0};
    return NVML_SUCCESS;
}

static int bar1(nvmlDevice_t device, nvmlMemory_t *memory)
{
    unsigned long long mb = nvml_played.bar1_mb ? nvml_played.bar1_mb : 4096;

    (void)device;
    *memory = (nvmlMemory_t){mb << 20, mb << 20, 0};
    return NVML_SUCCESS;
}

static int capability(nvmlDevice_t device, int *major, int *minor)
{
    (void)device;
    *major = 9;
    *minor = 0;
    return NVML_SUCCESS;
}

static int generation(nvmlDevice_t device, unsigned *generation)
{
    (void)device;
    *generation = 5;
    return NVML_SUCCESS;
}

static int width(nvmlDevice_t device, unsigned *width)
{
    (void)device;
    *width = 16;
    return NVML_SUCCESS;
}

static int width_now(nvmlDevice_t device, unsigned *width)
{
    *width = bit(nvml_played.narrow, device) ? 8 : 16;
    return NVML_SUCCESS;
}

/* The GPU at the other end of a link: links to GPU 0 come first. -1: none, the link is to a switch or not there. */
static int link_peer(int g, unsigned link)
{
    for (int i = 0; i < nvml_played.count; i++) {
        if (link < (unsigned)nvml_played.links[g][i])
            return i;
        link -= (unsigned)nvml_played.links[g][i];
    }
    return -1;
}

static bool is_busy(void)
{
    return nvml_played.busy > 0 && nvml_played.busy-- > 0;
}

static int link_state(nvmlDevice_t device, unsigned link, unsigned *active)
{
    if (is_busy())
        return BUSY;
    if (link >= NVML_NVLINK_MAX_LINKS)
        return INVALID_ARGUMENT;
    *active = nvml_played.switched ? link < (unsigned)nvml_played.switched : link_peer(index_of(device), link) >= 0;
    return NVML_SUCCESS;
}

static int link_type(nvmlDevice_t device, unsigned link, unsigned *type)
{
    (void)device, (void)link;
    if (is_busy())
        return BUSY;
    if (nvml_played.untold)
        return NOT_SUPPORTED;
    *type = nvml_played.switched ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
    return NVML_SUCCESS;
}

static int link_pci(nvmlDevice_t device, unsigned link, nvmlPciInfo_t *pci)
{
    int peer = link_peer(index_of(device), link);

    if (is_busy())
        return BUSY;
    if (peer < 0 && !nvml_played.switched)
        return INVALID_ARGUMENT;
    if (peer >= 0)
        pci_set(pci, peer);
    else
        strcpy(pci->busId, "00000000:C4:00.0");
    return NVML_SUCCESS;
}

static int clock_most(nvmlDevice_t device, int clock, unsigned *mhz)
{
    *mhz = nvml_played.clock[index_of(device)] ? nvml_played.clock[index_of(device)] : 1980;
    return clock == NVML_CLOCK_SM ? NVML_SUCCESS : INVALID_ARGUMENT;
}

static int clock_applied(nvmlDevice_t device, int clock, unsigned *mhz)
{
    if (!nvml_played.limit[index_of(device)])
        return clock_most(device, clock, mhz);
    *mhz = nvml_played.limit[index_of(device)];
    return NVML_SUCCESS;
}

static int persistence(nvmlDevice_t device, unsigned *mode)
{
    *mode = !bit(nvml_played.persistence_off, device);
    return NVML_SUCCESS;
}

static int compute_mode(nvmlDevice_t device, unsigned *mode)
{
    *mode = bit(nvml_played.exclusive, device) ? NVML_COMPUTEMODE_EXCLUSIVE_PROCESS : NVML_COMPUTEMODE_DEFAULT;
    return NVML_SUCCESS;
}

static int ecc(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
    *current = *pending = !bit(nvml_played.ecc_off, device);
    return NVML_SUCCESS;
}

static int ecc_errors(nvmlDevice_t device, int type, int counter, unsigned long long *count)
{
    (void)type, (void)counter;
    *count = nvml_played.uncorrected[index_of(device)];
    return NVML_SUCCESS;
}

static int mig(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
    *current = *pending = (unsigned)bit(nvml_played.mig, device);
    return NVML_SUCCESS;
}

#define FUNCTION(name, function)                                                                                       \
    {                                                                                                                  \
        "nvml" #name, (void *)(uintptr_t)function                                                                      \
    }

static void *find(const char *symbol)
{
    static const struct {
        const char *name;
        void *function;
    } functions[] = {
        FUNCTION(Init_v2, init),
        FUNCTION(ErrorString, error_string),
        FUNCTION(SystemGetDriverVersion, driver_version),
        FUNCTION(DeviceGetCount_v2, count),
        FUNCTION(DeviceGetHandleByIndex_v2, by_index),
        FUNCTION(DeviceGetName, name),
        FUNCTION(DeviceGetPciInfo_v3, pci_info),
        FUNCTION(DeviceGetMemoryInfo, memory),
        FUNCTION(DeviceGetBAR1MemoryInfo, bar1),
        FUNCTION(DeviceGetCudaComputeCapability, capability),
        FUNCTION(DeviceGetMaxPcieLinkGeneration, generation),
        FUNCTION(DeviceGetMaxPcieLinkWidth, width),
        FUNCTION(DeviceGetCurrPcieLinkWidth, width_now),
        FUNCTION(DeviceGetNvLinkState, link_state),
        FUNCTION(DeviceGetNvLinkRemotePciInfo_v2, link_pci),
        FUNCTION(DeviceGetNvLinkRemoteDeviceType, link_type),
        FUNCTION(DeviceGetMaxClockInfo, clock_most),
        FUNCTION(DeviceGetApplicationsClock, clock_applied),
        FUNCTION(DeviceGetPersistenceMode, persistence),
        FUNCTION(DeviceGetComputeMode, compute_mode),
        FUNCTION(DeviceGetEccMode, ecc),
        FUNCTION(DeviceGetTotalEccErrors, ecc_errors),
        FUNCTION(DeviceGetMigMode, mig),
    };

    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].name, symbol) == 0)
            return functions[i].function;
    return NULL;
}

void *__real_dlopen(const char *file, int flags);
void *__wrap_dlopen(const char *file, int flags);
void *__real_dlsym(void *handle, const char *symbol);
void *__wrap_dlsym(void *handle, const char *symbol);

void *__wrap_dlopen(const char *file, int flags)
{
    return file && strcmp(file, "libnvidia-ml.so.1") == 0 && nvml_played.count ? &library : __real_dlopen(file, flags);
}

void *__wrap_dlsym(void *handle, const char *symbol)
{
    return handle == &library ? find(symbol) : __real_dlsym(handle, symbol);
}
