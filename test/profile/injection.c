/* A tool of NVTX's, which counts the ranges of the domain "rondo" and keeps what they say. NVTX_INJECTION64_PATH names
 * it. */
#include "profile/injection.h"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <string.h>

__attribute__((visibility("default"))) injection_t injection_seen;

static nvtxDomainHandle_t create(const char *name)
{
    if (strcmp(name, "rondo") != 0)
        return NULL;
    injection_seen.domains++;
    return (nvtxDomainHandle_t)&injection_seen;
}

static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    const nvtxPayloadData_t *data = (const void *)(uintptr_t)event->payload.ullValue;
    injection_range_t *r = &injection_seen.ranges[injection_seen.pushed % INJECTION_MOST];

    if (domain != (nvtxDomainHandle_t)&injection_seen)
        return -1;
    injection_seen.pushed++;
    strncpy(r->name, event->message.ascii, sizeof r->name - 1);
    if (event->payloadType == (int32_t)NVTX_PAYLOAD_TYPE_EXT && event->reserved0 == 1 &&
        data->size == sizeof r->payload)
        memcpy(&r->payload, data->payload, sizeof r->payload);
    injection_seen.depth++;
    return injection_seen.depth;
}

static int pop(nvtxDomainHandle_t domain)
{
    if (domain == (nvtxDomainHandle_t)&injection_seen) {
        injection_seen.popped++;
        injection_seen.depth--;
    }
    return 0;
}

/* The name is NVTX's. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
    const NvtxExportTableCallbacks *tables = get(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table;
    unsigned size;

    if (!tables || !tables->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) ||
        size <= NVTX_CBID_CORE2_DomainCreateA)
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    return 1;
}
