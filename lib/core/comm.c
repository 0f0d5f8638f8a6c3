/* What users do with a communicator: create, query, finish, revoke, abort, destroy. */
#include "core/comm.h"

#include "boot/id.h"
#include "core/submit.h"
#include "exec/cuda/cuda.h"

rondo_result_t rd_comm_valid(rondo_comm_t comm, const char *call)
{
    uint64_t alive = comm ? atomic_load_explicit(&comm->alive, memory_order_relaxed) : 0;

    if (__builtin_expect(alive == rd_comm_mark, 1))
        return RONDO_SUCCESS;
    if (comm && rd_comm_inherited(comm))
        return rd_error(NULL, RONDO_ERR_INVALID_USAGE,
                        "%s: comm is the parent process's: a forked child makes communicators of its own", call);
    if (alive == RD_COMM_ABORTED)
        return rd_error(NULL, RONDO_ERR_ABORTED, "%s: comm has been aborted", call);
    return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "%s: comm is %s", call,
                    comm ? "not a communicator, or one that has been destroyed" : "NULL");
}
/* Ends a communicator. The other ranks learn that this one leaves; leaving after a failure is not leaving in order. */
static void end(rondo_comm_t comm, uint64_t mark)
{
    atomic_store(&comm->alive, mark);
    if (comm->cuda)
        rd_cuda_close(comm->cuda);
    if (rd_health_check(&comm->health) != RONDO_SUCCESS)
        rd_comm_cancel(comm);
    atomic_store_explicit(&comm->conns.self->left, 1, memory_order_release);
    rd_boot_farewell(comm->boot, RONDO_SUCCESS, -1);
    rd_comm_take_down(comm);
    rd_comm_closed(comm);
}
rondo_result_t rondo_comm_create(rondo_comm_t *comm, int nranks, const rondo_unique_id_t *id, int rank,
                                 const rondo_config_t *config)
{
    const char *call = "rondo_comm_create";
    rondo_result_t grouped = rd_group_refuse(NULL, call);

    if (grouped != RONDO_SUCCESS)
        return grouped;
    if (!comm || !id)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "%s: %s is NULL", call, comm ? "id" : "comm");
    if (nranks < 1)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "%s: nranks is %d, at least 1 is needed", call, nranks);
    return rd_comm_make(comm, nranks, id, rank, config, NULL, NULL);
}

/* Waits for everything that is submitted or enqueued. */
static rondo_result_t drain(rondo_comm_t comm)
{
    return comm->cuda ? rd_cuda_drain(comm->cuda) : rd_queue_drain(&comm->queue);
}

rondo_result_t rondo_comm_finalize(rondo_comm_t comm)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_comm_finalize");

    if (result != RONDO_SUCCESS)
        return result;
    result = rd_comm_enter(comm);
    return rd_comm_leave(comm, result == RONDO_SUCCESS ? drain(comm) : result);
}

rondo_result_t rondo_comm_test(rondo_comm_t comm, int *done)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_comm_test");

    if (result != RONDO_SUCCESS)
        return result;
    if (!done)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "rondo_comm_test: done is NULL");
    result = rd_comm_enter(comm);
    if (result == RONDO_SUCCESS)
        result = comm->cuda ? rd_cuda_drained(comm->cuda) : rd_queue_drained(&comm->queue);
    *done = result != RONDO_IN_PROGRESS;
    return rd_comm_leave(comm, *done ? result : RONDO_SUCCESS);
}

rondo_result_t rondo_comm_destroy(rondo_comm_t comm)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_comm_destroy");

    if (result == RONDO_SUCCESS)
        result = rd_group_refuse(comm, "rondo_comm_destroy");
    if (result != RONDO_SUCCESS)
        return result;
    result = rd_comm_enter(comm) == RONDO_SUCCESS ? drain(comm) : RONDO_SUCCESS;
    rd_comm_leave(comm, result);
    if (rd_comm_close(comm))
        end(comm, RD_COMM_DESTROYED);
    return result;
}

rondo_result_t rondo_comm_revoke(rondo_comm_t comm)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_comm_revoke");

    if (result != RONDO_SUCCESS || !rd_comm_query_enter(comm))
        return result;
    rd_health_fail(&comm->health, RONDO_ERR_ABORTED, comm->team.rank, "rank %d called rondo_comm_revoke",
                   comm->team.rank);
    rd_comm_empty(comm);
    rd_comm_cancel(comm);
    rd_comm_query_leave(comm);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_comm_abort(rondo_comm_t comm)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_comm_abort");

    if (result != RONDO_SUCCESS)
        return result;
    if (rd_comm_query_enter(comm)) {
        rd_health_fail(&comm->health, RONDO_ERR_ABORTED, comm->team.rank, "rank %d called rondo_comm_abort",
                       comm->team.rank);
        rd_comm_query_leave(comm);
    }
    if (rd_comm_close(comm))
        end(comm, RD_COMM_ABORTED);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_comm_get_error(rondo_comm_t comm, rondo_result_t *error)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_comm_get_error");

    if (result != RONDO_SUCCESS)
        return result;
    if (!error)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "rondo_comm_get_error: error is NULL");
    if (rd_comm_query_enter(comm)) {
        *error = rd_health_poll(&comm->health);
        if (comm->cuda && *error == RONDO_SUCCESS)
            *error = rd_cuda_check(comm->cuda);
        rd_comm_query_leave(comm);
    } else {
        *error = rd_health_check(&comm->health);
    }
    return RONDO_SUCCESS;
}

static rondo_result_t give(rondo_comm_t comm, const char *call, int value, int *to)
{
    rondo_result_t result = rd_comm_valid(comm, call);

    if (result != RONDO_SUCCESS)
        return result;
    if (!to)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "%s: the result's pointer is NULL", call);
    *to = value;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_comm_rank(rondo_comm_t comm, int *rank)
{
    return give(comm, "rondo_comm_rank", comm ? comm->team.rank : 0, rank);
}

rondo_result_t rondo_comm_size(rondo_comm_t comm, int *size)
{
    return give(comm, "rondo_comm_size", comm ? comm->team.nranks : 0, size);
}

rondo_result_t rondo_comm_device(rondo_comm_t comm, int *device)
{
    return give(comm, "rondo_comm_device", comm ? comm->team.device : 0, device);
}

rondo_result_t rondo_comm_on_wait(rondo_comm_t comm, void (*call)(void *data), void *data)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_comm_on_wait");

    if (result == RONDO_SUCCESS)
        result = rd_comm_enter(comm);
    else
        return result;
    if (result == RONDO_SUCCESS) {
        comm->queue.on_wait = call;
        comm->queue.on_wait_data = data;
    }
    return rd_comm_leave(comm, result);
}

const char *rondo_last_error(rondo_comm_t comm)
{
    uint64_t alive = comm ? atomic_load_explicit(&comm->alive, memory_order_relaxed) : 0;

    return alive == rd_comm_mark ? rd_log_ctx_error(&comm->ctx) : rd_thread_error();
}

rondo_result_t rondo_unique_id_create(rondo_unique_id_t *id)
{
    rd_env_t env;
    rondo_result_t result;

    if (!id)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_unique_id_create: id is NULL");
    result = rd_env_read(&env);
    if (result == RONDO_SUCCESS)
        return rd_boot_id_create(id, &env);
    rd_id_pack_error(id, result, rd_thread_error());
    return result;
}
