/* The collectives with a config of their own (NCCL 2.31). The user's tag goes to rondo_tag, the selection of algorithms
 * to rondo_force_next (selection.h). What would choose resources of NCCL's kernels steers nothing, as in a
 * communicator's config; what must be kept to and is not served is refused. A config is read by its size: 2.31's ends
 * before the event.
 */
#include "nccl/later.h"
#include "nccl/selection.h"

static ncclResult_t resources(const ncclCollConfig_t *c, const char *call)
{
    const struct {
        const char *name;
        int value;
    } fields[] = {{"minCTAs", c->minCTAs},
                  {"maxCTAs", c->maxCTAs},
                  {"nvlsCTAs", c->nvlsCTAs},
                  {"cgaClusterSize", c->cgaClusterSize},
                  {"CTAPolicy", c->CTAPolicy}};

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i].value == NCCL_CONFIG_UNDEF_INT)
            continue;
        if (fields[i].value < 0)
            return nc_error(NULL, ncclInvalidArgument, "%s: config->%s is %d", call, fields[i].name, fields[i].value);
        nc_log(NC_SUBSYS_COLL, "%s: config->%s = %d steers nothing in rondo", call, fields[i].name, fields[i].value);
    }
    return ncclSuccess;
}

static ncclResult_t begin(const ncclCollConfig_t *c, const char *call, const char *function)
{
    const nc_selection_t *selection = NULL;
    ncclResult_t result;

    if (!c)
        return ncclSuccess;
    if (c->magic != NCCL_API_MAGIC || c->size < offsetof(ncclCollConfig_t, launchCompletionEvent))
        return nc_error(NULL, ncclInvalidArgument, "%s: initialise the config with NCCL_COLLCONFIG_INITIALIZER", call);
    if ((result = resources(c, call)))
        return result;
    if (c->forceAlgSelection != 0 && c->forceAlgSelection != 1)
        return nc_error(NULL, ncclInvalidArgument, "%s: config->forceAlgSelection is %d: 0 or 1", call,
                        c->forceAlgSelection);
    if (c->size >= sizeof *c && c->launchCompletionEvent)
        return nc_error(NULL, ncclInvalidUsage,
                        "%s: config->launchCompletionEvent is not served by rondo: record an "
                        "event behind the call",
                        call);
    if (c->algSelection && (result = nc_selection(c->algSelection, c->forceAlgSelection, function, &selection)))
        return result;
    nc_call_config(c->userProfilerTag, selection);
    return ncclSuccess;
}

#define CONFIGURED(name, parameters, arguments)                                                                        \
    ncclResult_t pnccl##name##Config parameters                                                                        \
    {                                                                                                                  \
        ncclResult_t result = begin(config, "nccl" #name "Config", #name);                                             \
                                                                                                                       \
        if (result == ncclSuccess)                                                                                     \
            result = pnccl##name arguments;                                                                            \
        nc_call_config(0, NULL);                                                                                       \
        return result;                                                                                                 \
    }                                                                                                                  \
    NC_TWIN(name##Config)

CONFIGURED(AllReduce,
           (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
            cudaStream_t stream, const ncclCollConfig_t *config),
           (send, recv, count, type, op, comm, stream));
CONFIGURED(Broadcast,
           (const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
            cudaStream_t stream, const ncclCollConfig_t *config),
           (send, recv, count, type, root, comm, stream));
CONFIGURED(Reduce,
           (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
            cudaStream_t stream, const ncclCollConfig_t *config),
           (send, recv, count, type, op, root, comm, stream));
CONFIGURED(AllGather,
           (const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream,
            const ncclCollConfig_t *config),
           (send, recv, count, type, comm, stream));
CONFIGURED(ReduceScatter,
           (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
            cudaStream_t stream, const ncclCollConfig_t *config),
           (send, recv, count, type, op, comm, stream));
CONFIGURED(AlltoAll,
           (const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream,
            const ncclCollConfig_t *config),
           (send, recv, count, type, comm, stream));
CONFIGURED(Gather,
           (const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
            cudaStream_t stream, const ncclCollConfig_t *config),
           (send, recv, count, type, root, comm, stream));
CONFIGURED(Scatter,
           (const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
            cudaStream_t stream, const ncclCollConfig_t *config),
           (send, recv, count, type, root, comm, stream));
