/* See limits.h. */
#include "core/limits.h"

#include "core/caller.h"
#include "core/lifetime.h"
#include "exec/cuda/cuda.h"

int64_t rd_limit_take(void)
{
    rd_caller_t *caller = rd_caller();
    int64_t ms = caller->limit_ms;

    caller->limit_ms = -1;
    rd_caller_note(caller);
    return ms;
}

rondo_result_t rd_limit_drop(rondo_result_t result)
{
    if (!rd_caller()->depth)
        (void)rd_limit_take();
    return result;
}

static rondo_result_t refuse(rondo_comm_t comm, const char *call, const char *allowed, int64_t ms)
{
    return rd_error(comm ? &comm->ctx : NULL, RONDO_ERR_INVALID_ARGUMENT, "%s: timeout_ms is %lld: %s", call,
                    (long long)ms, allowed);
}

rondo_result_t rondo_timeout_next(int64_t timeout_ms)
{
    if (timeout_ms < -1 || timeout_ms > RD_LIMIT_MOST_MS)
        return refuse(NULL, "rondo_timeout_next", "-1 (none of its own), 0 (never) or milliseconds", timeout_ms);
    rd_caller()->limit_ms = timeout_ms;
    rd_caller_note(rd_caller());
    return RONDO_SUCCESS;
}

rondo_result_t rondo_timeout_set(rondo_comm_t comm, int64_t timeout_ms)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_timeout_set");

    if (result != RONDO_SUCCESS)
        return result;
    if (timeout_ms < -1)
        return refuse(comm, "rondo_timeout_set", "0 (never) or milliseconds", timeout_ms);
    result = rd_comm_enter(comm);
    if (result == RONDO_SUCCESS) {
        comm->team.timeout_ms = timeout_ms < 0 ? comm->env.timeout_ms : rd_limit_bounded(timeout_ms);
        atomic_store_explicit(&comm->queue.timeout_ms, comm->team.timeout_ms, memory_order_relaxed);
        if (comm->cuda)
            rd_cuda_limit(comm->cuda);
    }
    return rd_comm_leave(comm, result);
}

rondo_result_t rondo_timeout_extend(rondo_comm_t comm, int64_t timeout_ms)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_timeout_extend");

    if (result != RONDO_SUCCESS)
        return result;
    if (timeout_ms < 0 || timeout_ms > RD_LIMIT_MOST_MS)
        return refuse(comm, "rondo_timeout_extend", "milliseconds that are added", timeout_ms);
    if (rd_comm_on_device(comm))
        return rd_error(&comm->ctx, RONDO_ERR_UNSUPPORTED,
                        "rondo_timeout_extend: comm is on a GPU, where rondo_timeout_set changes limits");
    if (!rd_comm_query_enter(comm))
        return rd_comm_valid(comm, "rondo_timeout_extend");
    rd_limit_extend(&comm->queue.limit, &comm->seat, timeout_ms);
    rd_comm_query_leave(comm);
    return RONDO_SUCCESS;
}
