/* A communicator that rests: rondo_comm_suspend gives its device memory back, rondo_comm_resume takes it again. In
 * between `alive` is not the mark that calls look for, so they find out without another test that they must not be
 * served; rd_comm_valid says why. */
#include "core/derive.h"
#include "core/submit.h"
#include "exec/cuda/cuda.h"

/* Nothing of a host communicator is given back, but no rank goes on before all have come to rest. */
static rondo_result_t rest(rondo_comm_t comm)
{
    return comm->cuda ? rd_cuda_suspend(comm->cuda) : rd_boot_barrier(comm->boot);
}

static rondo_result_t wake(rondo_comm_t comm)
{
    return comm->cuda ? rd_cuda_resume(comm->cuda) : rd_boot_barrier(comm->boot);
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
    uint64_t entry = rd_call_begin_other(comm, kind, kind == RD_MONITOR_SUSPEND ? "comm_suspend" : "comm_resume");
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
