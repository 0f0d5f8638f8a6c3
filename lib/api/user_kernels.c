/* The public entries for kernels of the program's own: each refuses what is wrong, and passes the rest to
 * core/cuda_windows.c. The contracts are in rondo.h, the kernels' part in rondo_device.cuh. */
#include "api/args.h"
#include "core/submit.h"
#include "core/cuda_windows.h"

#define BAD RONDO_ERR_INVALID_ARGUMENT

static rondo_result_t start(rd_at_t at)
{
    rondo_result_t result = rd_args_start(at, RONDO_INT8, NULL);

    if (result == RONDO_SUCCESS && !rd_comm_on_device(at.comm))
        result = rd_error(&at.comm->ctx, RONDO_ERR_UNSUPPORTED,
                          "%s: kernels work on CUDA communicators, and this one is on host memory (config.device); its "
                          "ranks have rondo_put, rondo_signal and rondo_wait_signal",
                          at.call);
    return result;
}

/* Kernels have been compiled with a header that says how long these are. */
static rondo_result_t check_size(rd_at_t at, const char *what, const size_t *size, size_t ours)
{
    if (!size)
        return rd_error(&at.comm->ctx, BAD, "%s: %s is NULL", at.call, what);
    if (*size == ours)
        return RONDO_SUCCESS;
    return rd_error(
        &at.comm->ctx, BAD,
        "%s: %s->size is %zu, and this library's is %zu: set it to the sizeof, and compile the program with "
        "the headers of this library",
        at.call, what, *size, ours);
}

/* An older caller's config is shorter: what it lacks has its default. */
static rondo_result_t complete(rd_at_t at, const rondo_device_config_t *given, rondo_device_config_t *full)
{
    const rondo_device_config_t defaults = RONDO_DEVICE_CONFIG_INIT;

    *full = defaults;
    if (!given)
        return RONDO_SUCCESS;
    if (given->size < sizeof *full)
        return rd_error(&at.comm->ctx, BAD,
                        "%s: config->size is %zu, too little for a config: initialise it with RONDO_DEVICE_CONFIG_INIT",
                        at.call, given->size);
    full->barriers = given->barriers;
    full->signals = given->signals;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_device_create(rondo_comm_t comm, const rondo_device_config_t *config, rondo_device_t *device)
{
    const rd_at_t at = {"rondo_device_create", comm};
    rondo_device_config_t full;
    rondo_result_t result = start(at);

    if (result == RONDO_SUCCESS)
        result = rd_group_refuse(comm, at.call);
    if (result == RONDO_SUCCESS)
        result = check_size(at, "device", device ? &device->size : NULL, sizeof *device);
    if (result == RONDO_SUCCESS)
        result = complete(at, config, &full);
    return result == RONDO_SUCCESS ? rd_comm_device_create(comm, &full, device) : result;
}

rondo_result_t rondo_device_destroy(rondo_comm_t comm, rondo_device_t *device)
{
    const rd_at_t at = {"rondo_device_destroy", comm};
    rondo_result_t result = start(at);

    if (result == RONDO_SUCCESS)
        result = rd_group_refuse(comm, at.call);
    if (result == RONDO_SUCCESS)
        result = check_size(at, "device", device ? &device->size : NULL, sizeof *device);
    return result == RONDO_SUCCESS ? rd_comm_device_destroy(comm, device) : result;
}

rondo_result_t rondo_device_window(rondo_comm_t comm, rondo_window_t window, rondo_device_window_t *view)
{
    const rd_at_t at = {"rondo_device_window", comm};
    rondo_result_t result = start(at);

    if (result == RONDO_SUCCESS)
        result = check_size(at, "view", view ? &view->size : NULL, sizeof *view);
    return result == RONDO_SUCCESS ? rd_comm_cuda_window_view(comm, window, view) : result;
}
