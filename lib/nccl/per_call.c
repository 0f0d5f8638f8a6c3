/* The collectives with a config of their own (NCCL 2.31). The user's tag goes to rondo_tag, the selection of algorithms
 * to rondo_force_next (selection.h), maxCTAs and CTAPolicy to rondo_resources_next, the event to
 * rondo_launch_event_next. What would choose other resources of NCCL's kernels steers nothing, as in a communicator's
 * config. A config is read by its size: 2.31's ends before the event.
 */
#include "nccl/later.h"
#include "nccl/selection.h"

#define BLOCKS_MOST 1024 /* as rondo.h says */

static ncclResult_t check(const ncclCollConfig_t *c, const char *call)
{
    const struct {
        const char *name;
        int value, least, most;
        bool steers;
    } fields[] = {{"minCTAs", c->minCTAs, 1, INT_MAX, false},
                  {"maxCTAs", c->maxCTAs, 1, INT_MAX, true},
                  {"nvlsCTAs", c->nvlsCTAs, 1, INT_MAX, false},
                  {"cgaClusterSize", c->cgaClusterSize, 0, INT_MAX, false},
                  {"CTAPolicy", c->CTAPolicy, 0, 3, true}};

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i].value == NCCL_CONFIG_UNDEF_INT)
            continue;
        if (fields[i].value < fields[i].least || fields[i].value > fields[i].most)
            return nc_error(NULL, ncclInvalidArgument, "%s: config->%s is %d: %d to %d, or NCCL_CONFIG_UNDEF_INT", call,
                            fields[i].name, fields[i].value, fields[i].least, fields[i].most);
        nc_log(NC_SUBSYS_COLL, "%s: config->%s = %d%s", call, fields[i].name, fields[i].value,
               fields[i].steers && !nc_settings_host() ? "" : " steers nothing in rondo");
    }
    if (c->minCTAs != NCCL_CONFIG_UNDEF_INT && c->maxCTAs != NCCL_CONFIG_UNDEF_INT && c->minCTAs > c->maxCTAs)
        return nc_error(NULL, ncclInvalidArgument, "%s: config->minCTAs is %d, more than maxCTAs, %d", call, c->minCTAs,
                        c->maxCTAs);
    if (c->forceAlgSelection != 0 && c->forceAlgSelection != 1)
        return nc_error(NULL, ncclInvalidArgument, "%s: config->forceAlgSelection is %d: 0 or 1", call,
                        c->forceAlgSelection);
    return ncclSuccess;
}

/* Of the policies, which are bits, zero counts. NCCL_CTA_POLICY takes precedence over a config, as for a communicator.
 */
static nc_said_t said_by(const ncclCollConfig_t *c)
{
    nc_said_t said = {.tag = c->userProfilerTag, .blocks = -1, .cta_policy = -1};
    int variable;

    if (c->maxCTAs != NCCL_CONFIG_UNDEF_INT)
        said.blocks = c->maxCTAs < BLOCKS_MOST ? c->maxCTAs : BLOCKS_MOST;
    if (c->CTAPolicy != NCCL_CONFIG_UNDEF_INT && !nc_settings_cta_policy(&variable))
        said.cta_policy = c->CTAPolicy & NCCL_CTA_POLICY_ZERO ? NCCL_CTA_POLICY_ZERO : c->CTAPolicy;
    said.has_budgets = said.blocks >= 0 || said.cta_policy >= 0;
    if (c->size >= sizeof *c)
        said.event = c->launchCompletionEvent;
    return said;
}

static ncclResult_t begin(const ncclCollConfig_t *c, const char *call, const char *function)
{
    ncclResult_t result;

    if (!c)
        return ncclSuccess;
    if (c->magic != NCCL_API_MAGIC || c->size < offsetof(ncclCollConfig_t, launchCompletionEvent))
        return nc_error(NULL, ncclInvalidArgument, "%s: initialise the config with NCCL_COLLCONFIG_INITIALIZER", call);
    if ((result = check(c, call)))
        return result;
    nc_said_t said = said_by(c);
    if (said.event && nc_settings_host())
        return nc_error(NULL, ncclInvalidUsage,
                        "%s: config->launchCompletionEvent: on host memory no kernel is launched", call);
    if (c->algSelection && (result = nc_selection(c->algSelection, c->forceAlgSelection, function, &said.selection)))
        return result;
    nc_call_config(said);
    return ncclSuccess;
}

#define CONFIGURED(name, parameters, arguments)                                                                        \
    ncclResult_t pnccl##name##Config parameters                                                                        \
    {                                                                                                                  \
        ncclResult_t result = nc_group_check(begin(config, "nccl" #name "Config", #name));                             \
                                                                                                                       \
        if (result == ncclSuccess)                                                                                     \
            result = pnccl##name arguments;                                                                            \
        nc_call_config((nc_said_t){.tag = 0});                                                                         \
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
