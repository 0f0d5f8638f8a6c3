/* A communicator that rests: rondo_comm_suspend gives its device memory back, rondo_comm_resume takes it again. In
 * between `alive` is not the mark that calls look for, so they find out without another test that they must not be
 * served; rd_comm_valid says why. */
#include <stdlib.h>

#include "core/derive.h"
#include "core/submit.h"
#include "exec/cuda/cuda.h"

/* Nothing of a host communicator is given back, but no rank goes on before all have come to rest. */
static rondo_result_t meet(rondo_comm_t comm)
{
    int32_t *all = calloc((size_t)comm->team.nranks, sizeof *all);

    if (!all) /* the others would wait for this rank */
        return rd_health_fail(&comm->health, RONDO_ERR_NO_MEMORY, comm->team.rank, "no memory for a list of %d ranks",
                              comm->team.nranks);
    rondo_result_t result = rd_boot_allgather(comm->boot, all, sizeof *all);
    free(all);
    if (result != RONDO_SUCCESS && rd_health_check(&comm->health) == RONDO_SUCCESS) /* likewise */
        return rd_health_fail(&comm->health, result, comm->team.rank, "%s", rd_thread_error());
    return result;
}

static rondo_result_t rest(rondo_comm_t comm)
{
    return comm->cuda ? rd_cuda_suspend(comm->cuda) : meet(comm);
}

static rondo_result_t wake(rondo_comm_t comm)
{
    return comm->cuda ? rd_cuda_resume(comm->cuda) : meet(comm);
}

/* One of the two, by all ranks. What is refused, on whichever rank, leaves the communicator as it was. An abort that
 * comes meanwhile sets another mark. */
static rondo_result_t run(rondo_comm_t comm, uint8_t kind, rondo_result_t (*phase)(rondo_comm_t comm), uint64_t from,
                          uint64_t to)
{
    rondo_result_t result = rd_comm_enter(comm);

    if (result == RONDO_SUCCESS && !comm->cuda)
        result = rd_queue_drain(&comm->queue);
    if (result != RONDO_SUCCESS)
        return rd_comm_leave(comm, result);
    uint64_t entry = rd_call_begin_other(comm, kind);
    rd_comm_pause(comm);
    result = phase(comm);
    rd_comm_resume(comm);
    if (result != RONDO_ERR_INVALID_USAGE) /* refused, which all ranks know */
        result = rd_derive_cause(comm, result);
    rd_call_end_other(comm, entry, result);
    if (result == RONDO_SUCCESS)
        atomic_compare_exchange_strong(&comm->alive, &from, to);
    return rd_comm_leave(comm, result);
}

rondo_result_t rondo_comm_suspend(rondo_comm_t comm)
{
    const char *call = "rondo_comm_suspend";
    rondo_result_t result = rd_comm_valid(comm, call);

    if (result == RONDO_SUCCESS)
        result = rd_group_refuse(comm, call);
    if (result != RONDO_SUCCESS)
        return result;
    return run(comm, RD_MONITOR_SUSPEND, rest, rd_comm_mark, rd_comm_mark | RD_COMM_SUSPENDED);
}

rondo_result_t rondo_comm_resume(rondo_comm_t comm)
{
    const char *call = "rondo_comm_resume";
    rondo_result_t result = rd_comm_valid_suspended(comm, call);

    if (result == RONDO_SUCCESS)
        result = rd_group_refuse(comm, call);
    if (result == RONDO_SUCCESS && atomic_load(&comm->alive) == rd_comm_mark &&
        rd_health_check(&comm->health) == RONDO_SUCCESS)
        result = rd_error(&comm->ctx, RONDO_ERR_INVALID_USAGE, "%s: comm is not suspended", call);
    if (result != RONDO_SUCCESS)
        return result;
    return run(comm, RD_MONITOR_RESUME, wake, rd_comm_mark | RD_COMM_SUSPENDED, rd_comm_mark);
}
