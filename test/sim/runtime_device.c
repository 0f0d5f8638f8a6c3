/* The runtime's devices, its errors, and the driver's functions: see runtime.h. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/runtime.h"

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t sim_moved = PTHREAD_COND_INITIALIZER;

static _Thread_local int current = -1; /* -1: this thread has no context */
static _Thread_local int own;          /* the context is one that the program has made */
static unsigned contexts;
static _Atomic unsigned resets[64]; /* of each device */
static _Thread_local cudaError_t last_error;
static int live[SIM_KINDS];

void sim_count(int kind, int by)
{
    __atomic_fetch_add(&live[kind], by, __ATOMIC_RELAXED);
}

int sim_live(char *text, size_t size)
{
    static const char *const name[] = {"allocations", "streams",      "events", "graphs",
                                       "execs",       "user objects", "imports"};
    int sum = 0;

    text[0] = 0;
    for (int k = 0; k < SIM_KINDS; k++) {
        size_t used = strlen(text);
        if (live[k])
            snprintf(text + used, size - used, "%d %s ", live[k], name[k]);
        sum += live[k];
    }
    return sum;
}

cudaError_t sim_error(cudaError_t code)
{
    if (code != cudaSuccess)
        last_error = code;
    return code;
}

int sim_current(void)
{
    return current < 0 ? 0 : current;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t code = last_error;
    last_error = cudaSuccess;
    return code;
}

const char *cudaGetErrorString(cudaError_t error)
{
    static _Thread_local char text[40];
    snprintf(text, sizeof text, "simulated CUDA error %d", (int)error);
    return text;
}

int sim_devices(void)
{
    const char *text = getenv("SIM_DEVICES");
    return text ? atoi(text) : 4;
}

static int multiprocessors(void)
{
    const char *text = getenv("SIM_SMS");
    return text ? atoi(text) : 4;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = sim_devices();
    return *count ? cudaSuccess : sim_error(cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *device)
{
    *device = sim_current();
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= sim_devices())
        return sim_error(cudaErrorInvalidDevice);
    current = device;
    own = 0;
    __atomic_fetch_or(&contexts, 1u << device, __ATOMIC_RELAXED);
    return cudaSuccess;
}

/* The library's question, of another kind of driver. */
bool rd_driver_loaded(void);
bool rd_driver_loaded(void)
{
    return true;
}

unsigned sim_contexts(void)
{
    return __atomic_load_n(&contexts, __ATOMIC_RELAXED);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    (void)device;
    switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
        *value = multiprocessors();
        break;
    case cudaDevAttrComputeCapabilityMajor:
        *value = 9;
        break;
    case cudaDevAttrClockRate:
        *value = 1000000;
        break;
    default:
        *value = 0;
    }
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    memset(prop, 0, sizeof *prop);
    snprintf(prop->name, sizeof prop->name, "simulated GPU");
    prop->major = 9;
    prop->multiProcessorCount = multiprocessors();
    prop->pciBusID = device + 1;
    prop->totalGlobalMem = (size_t)1 << 32;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device)
{
    snprintf(text, (size_t)size, "0000:%02x:00.0", device + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text)
{
    unsigned bus;

    if (sscanf(text, "0000:%x:00.0", &bus) != 1 || bus < 1 || (int)bus > sim_devices())
        return sim_error(cudaErrorInvalidValue);
    *device = (int)bus - 1;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

/* SIM_NO_PEERS=1: a machine whose GPUs do not reach each other; SIM_NO_PEERS=0-2: those two do not. */
int sim_reaches(int device, int peer)
{
    const char *text = getenv("SIM_NO_PEERS");
    int a, b;

    if (!text || device == peer)
        return 1;
    return sscanf(text, "%d-%d", &a, &b) == 2 && !((device == a && peer == b) || (device == b && peer == a));
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    *can = device != peer && sim_reaches(device, peer);
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    (void)flags;
    if (peer == sim_current())
        return sim_error(cudaErrorInvalidDevice);
    return sim_reaches(sim_current(), peer) ? cudaSuccess : sim_error(cudaErrorPeerAccessUnsupported);
}

/* ---- the driver's functions ---- */

/* A thread that has no context is lent one: a device's primary one is its number, plus one. One of the program's own
 * is OWN more. A reset gives the device another primary context, of another number, at the same address. */
#define OWN 0x1000

void sim_context_reset(int device)
{
    resets[device]++;
    __atomic_fetch_and(&contexts, ~(1u << device), __ATOMIC_RELAXED);
}

void *sim_context(void)
{
    return (void *)(intptr_t)(current + 1 + own * OWN);
}

void *sim_context_own(int device)
{
    current = device;
    own = 1;
    return sim_context();
}

static int context_get(void **context)
{
    *context = sim_context();
    return 0;
}

static int context_id(void *context, unsigned long long *id)
{
    const intptr_t of = (intptr_t)context;

    *id = (unsigned long long)of | (unsigned long long)resets[of % OWN - 1] << 32;
    return 0;
}

static int context_set(void *context)
{
    current = (int)((intptr_t)context % OWN) - 1;
    own = (intptr_t)context >= OWN;
    return 0;
}

static int context_retain(void **context, int device)
{
    *context = (void *)(intptr_t)(device + 1);
    __atomic_fetch_or(&contexts, 1u << device, __ATOMIC_RELAXED);
    return 0;
}

static int context_active(int device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = (__atomic_load_n(&contexts, __ATOMIC_RELAXED) >> device & 1) != 0;
    return 0;
}

/* These fail in a thread that has no context: the driver gives it none. */
#define INVALID_CONTEXT 201

static int stream_id(cudaStream_t stream, unsigned long long *id)
{
    return current < 0 ? INVALID_CONTEXT : (int)cudaStreamGetId(stream, id);
}

static int capture_info(cudaStream_t stream, int *status, unsigned long long *id, cudaGraph_t *graph,
                        const cudaGraphNode_t **deps, const cudaGraphEdgeData **edges, size_t *ndeps)
{
    enum cudaStreamCaptureStatus is;

    if (current < 0)
        return INVALID_CONTEXT;
    cudaError_t error = cudaStreamGetCaptureInfo(stream, &is, id, graph, deps, edges, ndeps);
    *status = (int)is;
    return (int)error;
}

static int event_record(cudaEvent_t event, cudaStream_t stream)
{
    return current < 0 ? INVALID_CONTEXT : (int)cudaEventRecord(event, stream);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } all[] = {
        {"cuMemGetAddressRange", (void (*)(void))sim_address_range},
        {"cuPointerGetAttribute", (void (*)(void))sim_attribute},
        {"cuCtxGetCurrent", (void (*)(void))context_get},
        {"cuCtxGetId", (void (*)(void))context_id},
        {"cuCtxSetCurrent", (void (*)(void))context_set},
        {"cuDevicePrimaryCtxRetain", (void (*)(void))context_retain},
        {"cuDevicePrimaryCtxGetState", (void (*)(void))context_active},
        {"cuStreamGetId", (void (*)(void))stream_id},
        {"cuStreamGetCaptureInfo", (void (*)(void))capture_info},
        {"cuEventRecord", (void (*)(void))event_record},
    };
    size_t i = 0, n = sizeof all / sizeof all[0];

    (void)version;
    (void)flags;
    while (i < n && strcmp(symbol, all[i].name) != 0)
        i++;
    *function = i < n ? (void *)(uintptr_t)all[i].function : NULL;
    if (status)
        *status = i < n ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
