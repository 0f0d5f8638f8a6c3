/* See nvtx.h. NVTX is headers alone, which look for a tool at their first call: it is named in the environment, or is
 * part of the program. Without one each call is a test of a pointer. */
#include "profile/nvtx.h"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/types.h"

#define TOOL "NVTX_INJECTION64_PATH"
/* Static numbers, which a tool may see before it has seen the schema. */
#define SCHEMA (NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 1)
#define OPERATORS (NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 2)

static nvtxDomainHandle_t domain;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void describe_operators(void)
{
    static nvtxPayloadEnum_t names[RONDO_NUM_OPS + 1] = {{.name = "none", .value = (uint64_t)-1, .isFlag = 0}};

    for (int op = 0; op < RONDO_NUM_OPS; op++)
        names[op + 1] = (nvtxPayloadEnum_t){.name = rd_op_name(op), .value = (uint64_t)op, .isFlag = 0};
    const nvtxPayloadEnumAttr_t attributes = {
        .fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME | NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE |
                     NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID,
        .name = "rondo_op_t",
        .entries = names,
        .numEntries = RONDO_NUM_OPS + 1,
        .sizeOfEnum = sizeof(int32_t),
        .schemaId = OPERATORS};

    nvtxPayloadEnumRegister(domain, &attributes);
}

static void describe(void)
{
    static const nvtxPayloadSchemaEntry_t entries[] = {
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "communicator", .offset = offsetof(rd_nvtx_call_t, comm)},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "number", .offset = offsetof(rd_nvtx_call_t, number)},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "bytes", .offset = offsetof(rd_nvtx_call_t, bytes)},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_INT32, .name = "root or peer", .offset = offsetof(rd_nvtx_call_t, root)},
        {.type = OPERATORS, .name = "operator", .offset = offsetof(rd_nvtx_call_t, op)},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_INT32,
         .name = "ranks: start",
         .offset = offsetof(rd_nvtx_call_t, ranks_start)},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_INT32,
         .name = "ranks: stride",
         .offset = offsetof(rd_nvtx_call_t, ranks_stride)},
        {.type = NVTX_PAYLOAD_ENTRY_TYPE_INT32, .name = "ranks: size", .offset = offsetof(rd_nvtx_call_t, ranks_size)}};
    const nvtxPayloadSchemaAttr_t attributes = {
        .fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID,
        .name = "call of rondo",
        .type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
        .entries = entries,
        .numEntries = sizeof entries / sizeof entries[0],
        .payloadStaticSize = sizeof(rd_nvtx_call_t),
        .schemaId = SCHEMA};

    domain = nvtxDomainCreateA("rondo");
    describe_operators();
    nvtxPayloadSchemaRegister(domain, &attributes);
}

bool rd_nvtx_wanted(const char *setting)
{
    const char *tool = getenv(TOOL);
    bool wanted = strcmp(setting, "auto") == 0 ? tool && *tool : strcmp(setting, "1") == 0;

    if (wanted)
        pthread_once(&once, describe);
    return wanted;
}

void rd_nvtx_begin(const char *name, const rd_nvtx_call_t *call)
{
    const nvtxPayloadData_t data = {.schemaId = SCHEMA, .size = sizeof *call, .payload = call};
    nvtxEventAttributes_t event = {.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                   .message.ascii = name,
                                   .payloadType = NVTX_PAYLOAD_TYPE_EXT,
                                   .reserved0 = 1, /* the number of payloads */
                                   .payload.ullValue = (uint64_t)(uintptr_t)&data};

    nvtxDomainRangePushEx(domain, &event);
}

void rd_nvtx_end(void)
{
    nvtxDomainRangePop(domain);
}
