/* See cuda_windows.h. The user's handle of a window of a CUDA communicator is the pointer of exec/cuda/user.h: every
 * call that takes one has its communicator, too, which says what kind it is. */
#include "core/cuda_windows.h"

#include "core/rma_calls.h"
#include "core/submit.h"
#include "exec/cuda/cuda.h"

static rd_cuda_window_t *window_of(rondo_window_t window)
{
    return (rd_cuda_window_t *)(void *)window;
}

/* What is collective goes over the bootstrap, as it does when windows of the host are made. The caller is inside. */
static void begin(rondo_comm_t comm, const char *name, uint64_t *entry)
{
    *entry = rd_call_begin_other(comm, RD_MONITOR_WINDOW, name);
    rd_comm_pause(comm);
}

static rondo_result_t end(rondo_comm_t comm, uint64_t entry, rondo_result_t result)
{
    rd_comm_resume(comm);
    rd_call_end_other(comm, entry, result);
    if (result != RONDO_SUCCESS && rd_health_poll(&comm->health) != RONDO_SUCCESS)
        result = rd_health_check(&comm->health); /* why the exchange has ended */
    return rd_comm_leave(comm, result);
}

rondo_result_t rd_comm_cuda_window_create(rondo_comm_t comm, void *buffer, size_t bytes, rondo_window_t *window)
{
    rd_cuda_window_t *made = NULL;
    uint64_t entry = 0;
    rondo_result_t result = rd_comm_enter(comm);

    if (result != RONDO_SUCCESS)
        return rd_comm_leave(comm, result);
    begin(comm, "window_create", &entry);
    result = rd_cuda_window_create(comm->cuda, buffer, bytes, &made);
    if (result == RONDO_SUCCESS)
        *window = (rondo_window_t)(void *)made;
    return end(comm, entry, result);
}

rondo_result_t rd_comm_cuda_window_check(rondo_comm_t comm, rondo_window_t window, const char *call)
{
    if (window && rd_cuda_has_window(comm->cuda, window_of(window)))
        return RONDO_SUCCESS;
    return rd_window_refused(comm, window, call);
}

rondo_result_t rd_comm_cuda_window_destroy(rondo_comm_t comm, rondo_window_t window)
{
    uint64_t entry = 0;
    rondo_result_t result = rd_comm_enter(comm);

    if (result == RONDO_SUCCESS)
        result = rd_comm_cuda_window_check(comm, window, "rondo_window_destroy");
    if (result != RONDO_SUCCESS)
        return rd_comm_leave(comm, result);
    begin(comm, "window_destroy", &entry);
    return end(comm, entry, rd_cuda_window_destroy(comm->cuda, window_of(window)));
}

rondo_result_t rd_comm_cuda_window_close(rondo_comm_t comm, rondo_window_t window)
{
    const char *call = "rondo_window_close";
    rondo_result_t result = rd_comm_query(comm, call);

    if (result != RONDO_SUCCESS)
        return result;
    if ((result = rd_comm_cuda_window_check(comm, window, call)) == RONDO_SUCCESS)
        rd_cuda_window_close(comm->cuda, window_of(window));
    rd_comm_query_leave(comm);
    return result;
}

rondo_result_t rd_comm_cuda_window_buffer(rondo_comm_t comm, rondo_window_t window, void **buffer)
{
    const char *call = "rondo_window_buffer";
    rondo_result_t result = rd_comm_query(comm, call);

    if (result != RONDO_SUCCESS)
        return result;
    if ((result = rd_comm_cuda_window_check(comm, window, call)) == RONDO_SUCCESS)
        *buffer = rd_cuda_window_buffer(comm->cuda, window_of(window));
    rd_comm_query_leave(comm);
    return result;
}

rondo_result_t rd_comm_cuda_window_view(rondo_comm_t comm, rondo_window_t window, rondo_device_window_t *view)
{
    const char *call = "rondo_device_window";
    rondo_result_t result = rd_comm_query(comm, call);

    if (result != RONDO_SUCCESS)
        return result;
    if ((result = rd_comm_cuda_window_check(comm, window, call)) == RONDO_SUCCESS)
        rd_cuda_window_view(comm->cuda, window_of(window), view);
    rd_comm_query_leave(comm);
    return result;
}

rondo_result_t rd_comm_device_create(rondo_comm_t comm, const rondo_device_config_t *config, rondo_device_t *device)
{
    uint64_t entry = 0;
    rondo_result_t result = rd_comm_enter(comm);

    if (result != RONDO_SUCCESS)
        return rd_comm_leave(comm, result);
    begin(comm, "device_create", &entry);
    return end(comm, entry, rd_cuda_device_create(comm->cuda, config, device));
}

rondo_result_t rd_comm_device_destroy(rondo_comm_t comm, rondo_device_t *device)
{
    uint64_t entry = 0;
    rondo_result_t result = rd_comm_enter(comm);

    if (result == RONDO_SUCCESS && !rd_cuda_has_device(comm->cuda, device))
        result = rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT,
                          "rondo_device_destroy: device is not one of this communicator, or has been destroyed");
    if (result != RONDO_SUCCESS)
        return rd_comm_leave(comm, result);
    begin(comm, "device_destroy", &entry);
    return end(comm, entry, rd_cuda_device_destroy(comm->cuda, device));
}
