/* NVML, NVIDIA's management library: loaded when it is first asked for, from the driver's installation, so that rondo
 * is built and runs without it. Only what rondo asks is declared here; names and numbers are NVML's own. */
#ifndef RD_TOPO_NVML_H
#define RD_TOPO_NVML_H

typedef struct nvmlDevice_st *nvmlDevice_t;

typedef struct nvmlPciInfo {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

typedef struct nvmlMemory {
    unsigned long long total, free, used;
} nvmlMemory_t;

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13
};
enum { NVML_NVLINK_DEVICE_TYPE_GPU = 0, NVML_NVLINK_DEVICE_TYPE_SWITCH = 2, NVML_NVLINK_DEVICE_TYPE_UNKNOWN = 255 };
enum { NVML_CLOCK_SM = 1 };
enum { NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1, NVML_VOLATILE_ECC = 0 };
enum { NVML_COMPUTEMODE_DEFAULT = 0, NVML_COMPUTEMODE_PROHIBITED = 2, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3 };
enum { NVML_P2P_CAPS_INDEX_READ = 0, NVML_P2P_CAPS_INDEX_WRITE = 1, NVML_P2P_STATUS_OK = 0 };
#define NVML_NVLINK_MAX_LINKS 18

/* Every function returns NVML_SUCCESS or an error that `ErrorString` names; a member is never NULL. */
typedef struct rd_nvml {
    int (*Init_v2)(void);
    const char *(*ErrorString)(int result);
    int (*SystemGetDriverVersion)(char *version, unsigned length);
    int (*DeviceGetCount_v2)(unsigned *count);
    int (*DeviceGetHandleByIndex_v2)(unsigned index, nvmlDevice_t *device);
    int (*DeviceGetName)(nvmlDevice_t device, char *name, unsigned length);
    int (*DeviceGetPciInfo_v3)(nvmlDevice_t device, nvmlPciInfo_t *pci);
    int (*DeviceGetMemoryInfo)(nvmlDevice_t device, nvmlMemory_t *memory);
    int (*DeviceGetBAR1MemoryInfo)(nvmlDevice_t device, nvmlMemory_t *bar1);
    int (*DeviceGetCudaComputeCapability)(nvmlDevice_t device, int *major, int *minor);
    int (*DeviceGetMaxPcieLinkGeneration)(nvmlDevice_t device, unsigned *generation);
    int (*DeviceGetMaxPcieLinkWidth)(nvmlDevice_t device, unsigned *width);
    int (*DeviceGetCurrPcieLinkWidth)(nvmlDevice_t device, unsigned *width);
    int (*DeviceGetNvLinkState)(nvmlDevice_t device, unsigned link, unsigned *active);
    int (*DeviceGetNvLinkRemotePciInfo_v2)(nvmlDevice_t device, unsigned link, nvmlPciInfo_t *pci);
    int (*DeviceGetNvLinkRemoteDeviceType)(nvmlDevice_t device, unsigned link, unsigned *type);
    int (*DeviceGetP2PStatus)(nvmlDevice_t device, nvmlDevice_t other, int capability, int *status);
    int (*DeviceGetMaxClockInfo)(nvmlDevice_t device, int clock, unsigned *mhz);
    int (*DeviceGetApplicationsClock)(nvmlDevice_t device, int clock, unsigned *mhz);
    int (*DeviceGetPersistenceMode)(nvmlDevice_t device, unsigned *mode);
    int (*DeviceGetComputeMode)(nvmlDevice_t device, unsigned *mode);
    int (*DeviceGetEccMode)(nvmlDevice_t device, unsigned *current, unsigned *pending);
    int (*DeviceGetTotalEccErrors)(nvmlDevice_t device, int type, int counter, unsigned long long *count);
    int (*DeviceGetMigMode)(nvmlDevice_t device, unsigned *current, unsigned *pending);
} rd_nvml_t;

/* The library, initialised, or NULL with the reason in `*why`. Any thread; it stays loaded. */
const rd_nvml_t *rd_nvml(const char **why);

#endif
