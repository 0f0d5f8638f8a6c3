/* The functions for bindings: see binding.h. */
#include <string.h>
#include <strings.h>

#include "core/binding.h"
#include "core/lifetime.h"
#include "exec/cuda/cuda.h"
#include "sched/algo.h"

static bool goes_by(const rd_algo_t *algo, int gpus, const char *name)
{
    rd_proto_t proto;

    if (rd_proto_parse(name, &proto) != 0)
        return false;
    return gpus ? rd_cuda_goes_by(algo, proto) : (RD_PROTOS_HOST >> proto & 1) != 0;
}

/* The algorithms of a switch are for those who have asked for one. For others rondo has none of these, as a script
 * expects that names them among others. */
static bool is_asked_for(const rd_algo_t *algo)
{
    char text[8];

    return !algo->switched ||
           (rondo_setting_get("RONDO_COLLNET", text, sizeof text) == RONDO_SUCCESS && strcmp(text, "0") != 0);
}

const char *rondo_nccl_algo(const char *operation, const char *nccl, size_t letters, int gpus, const char *proto)
{
    rd_coll_t coll;

    if (rd_coll_parse(operation, &coll) != 0)
        return NULL;
    for (const rd_algo_t *const *algo = rd_algos; *algo; algo++) {
        const char *name = (*algo)->nccl;
        unsigned colls = gpus ? (*algo)->device.colls : (*algo)->colls;
        if (name && strlen(name) == letters && strncasecmp(name, nccl, letters) == 0 && colls & 1u << coll &&
            is_asked_for(*algo) && (!proto || goes_by(*algo, gpus, proto)))
            return (*algo)->name;
    }
    return NULL;
}

rondo_result_t rondo_comm_stall(rondo_comm_t comm, rondo_stream_t stream)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_comm_stall");

    if (result != RONDO_SUCCESS)
        return result;
    result = rd_comm_enter(comm);
    if (result == RONDO_ERR_REMOTE && !rd_comm_gone(comm) && comm->cuda)
        result = rd_cuda_stall(comm->cuda, stream);
    return rd_comm_leave(comm, result);
}

bool rondo_comm_complete(rondo_comm_t comm)
{
    bool complete;

    if (rd_comm_valid(comm, "rondo_comm_complete") != RONDO_SUCCESS || !rd_comm_query_enter(comm))
        return false;
    complete = !comm->cuda || rd_cuda_complete(comm->cuda);
    rd_comm_query_leave(comm);
    return complete;
}

void rondo_comm_patient(rondo_comm_t comm)
{
    if (rd_comm_valid(comm, "rondo_comm_patient") == RONDO_SUCCESS && comm->cuda)
        rd_cuda_patient(comm->cuda);
}

void rondo_comm_hasten(rondo_comm_t comm)
{
    if (rd_comm_valid(comm, "rondo_comm_hasten") == RONDO_SUCCESS && comm->cuda)
        rd_cuda_hasten(comm->cuda);
}

bool rondo_comm_shown(rondo_comm_t comm)
{
    bool shown;

    if (rd_comm_valid(comm, "rondo_comm_shown") != RONDO_SUCCESS || !rd_comm_query_enter(comm))
        return true;
    shown = !comm->cuda || rd_cuda_shown(comm->cuda);
    rd_comm_query_leave(comm);
    return shown;
}

void rondo_tuner_set(const rd_tuner_t *tuner)
{
    rd_tuner_set(tuner);
}

void rondo_log_line(rd_log_level_t level, const char *text)
{
    rd_log(NULL, level, "%s", text);
}

bool rondo_log_takes(rd_log_level_t level)
{
    return rd_log_enabled(level);
}
