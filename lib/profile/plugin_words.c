/* What NCCL calls things, in its plugins' events: words from version 2 on, numbers in version 1. */
#include <string.h>
#include <strings.h>

#include "base/types.h"
#include "profile/plugin.h"
#include "sched/algo.h"

#define NONE 255 /* NCCL has no number for it */

typedef struct {
    const char *word;
    uint8_t number;
} word_t;

static const word_t funcs[RD_NUM_FUNCS] = {
    [RD_ALLREDUCE] = {"AllReduce", 4},
    [RD_REDUCE] = {"Reduce", 1},
    [RD_BROADCAST] = {"Broadcast", 0},
    [RD_ALLGATHER] = {"AllGather", 2},
    [RD_REDUCE_SCATTER] = {"ReduceScatter", 3},
    [RD_ALLTOALL] = {"AlltoAll", 8},
    [RD_GATHER] = {"Gather", 10},
    [RD_SCATTER] = {"Scatter", 9},
    [RD_BARRIER] = {"Barrier", NONE},
    [RD_FUNC_ALLGATHERV] = {"AllGatherV", 11},
    [RD_FUNC_REDUCE_SCATTERV] = {"ReduceScatterV", NONE},
    [RD_FUNC_ALLTOALLV] = {"AlltoAllV", NONE},
    [RD_FUNC_GATHERV] = {"GatherV", NONE},
    [RD_FUNC_SCATTERV] = {"ScatterV", NONE},
    [RD_FUNC_SEND] = {"Send", 6},
    [RD_FUNC_RECV] = {"Recv", 7},
};

static const word_t types[RONDO_NUM_TYPES] = {
    [RONDO_INT8] = {"ncclInt8", 0},
    [RONDO_UINT8] = {"ncclUint8", 1},
    [RONDO_INT32] = {"ncclInt32", 2},
    [RONDO_UINT32] = {"ncclUint32", 3},
    [RONDO_INT64] = {"ncclInt64", 4},
    [RONDO_UINT64] = {"ncclUint64", 5},
    [RONDO_FLOAT16] = {"ncclFloat16", 6},
    [RONDO_FLOAT32] = {"ncclFloat32", 7},
    [RONDO_FLOAT64] = {"ncclFloat64", 8},
    [RONDO_BFLOAT16] = {"ncclBfloat16", 9},
    [RONDO_FLOAT8_E4M3] = {"ncclFloat8e4m3", 10},
    [RONDO_FLOAT8_E5M2] = {"ncclFloat8e5m2", 11},
};

static const word_t algos[] = {{"TREE", 0}, {"RING", 1}, {"PAT", 6}, {NULL, 0}};
static const word_t protos[] = {{"LL", 0}, {"LL128", 1}, {"SIMPLE", 2}, {NULL, 0}};

static const word_t *find(const word_t *words, const char *name)
{
    for (const word_t *w = words; w->word && name; w++)
        if (strcasecmp(w->word, name) == 0)
            return w;
    return NULL;
}

/* Returns NCCL's algorithm that is this one, or NULL. */
static const word_t *nccl_algo(const char *name)
{
    for (const rd_algo_t *const *algo = rd_algos; name && *algo; algo++)
        if (strcmp((*algo)->name, name) == 0)
            return find(algos, (*algo)->nccl);
    return NULL;
}

const char *rd_plugin_func(int func)
{
    return funcs[func].word;
}

uint8_t rd_plugin_func_number(int func)
{
    return funcs[func].number;
}

const char *rd_plugin_type(rondo_type_t type)
{
    return types[type].word ? types[type].word : rd_type_name(type);
}

uint8_t rd_plugin_type_number(rondo_type_t type)
{
    return types[type].word ? types[type].number : NONE;
}

const char *rd_plugin_algo(const char *algo)
{
    const word_t *w = nccl_algo(algo);

    return w ? w->word : algo ? algo : "Unknown";
}

uint8_t rd_plugin_algo_number(const char *algo)
{
    const word_t *w = nccl_algo(algo);

    return w ? w->number : NONE;
}

const char *rd_plugin_proto(const char *proto)
{
    const word_t *w = find(protos, proto);

    return w ? w->word : proto ? proto : "Unknown";
}

uint8_t rd_plugin_proto_number(const char *proto)
{
    const word_t *w = find(protos, proto);

    return w ? w->number : NONE;
}

uint32_t rd_plugin_op_number(rondo_op_t op)
{
    switch ((int)op) {
    case RONDO_SUM:
        return 0;
    case RONDO_PROD:
        return 1;
    case RONDO_MAX:
        return 2;
    case RONDO_MIN:
        return 3;
    case RONDO_AVG:
        return 4;
    default:
        return NONE;
    }
}
