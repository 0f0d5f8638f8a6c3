/* The calls without counts, as Fortran makes them. See rondo.f90, and rondo.h for the description of each. */
#include <string.h>

#include "fortran/glue.h"

#pragma GCC visibility push(default)

/* The same as type(config_c) of rondo_inside.f90; the name ends with a zero byte. */
typedef struct {
    int device, blocking, on_error;
    int64_t timeout_ms, first_timeout_ms, stall_ms;
    int signals, contexts, blocks, cta_policy, traffic_class, blocks_least, net_channels, nan_check;
    char name[64], network[64];
} config_t;

static rondo_config_t config_of(const config_t *from)
{
    rondo_config_t config = RONDO_CONFIG_INIT;

    config.device = from->device;
    config.blocking = from->blocking;
    config.name = from->name[0] ? from->name : NULL;
    config.timeout_ms = from->timeout_ms;
    config.on_error = from->on_error;
    config.first_timeout_ms = from->first_timeout_ms;
    config.stall_ms = from->stall_ms;
    config.signals = from->signals;
    config.contexts = from->contexts;
    config.blocks = from->blocks;
    config.cta_policy = from->cta_policy;
    config.network = from->network[0] ? from->network : NULL;
    config.traffic_class = from->traffic_class;
    config.blocks_least = from->blocks_least;
    config.net_channels = from->net_channels;
    config.nan_check = from->nan_check;
    return config;
}

/* The body of every function here: one call of C, and its result. */
static void give(const char *name, rondo_comm_t comm, rondo_result_t result, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, name, comm, ierror);
    c.result = result;
    rd_f_end(&c);
}

void rondo_f_unique_id_create(rondo_unique_id_t *id, int *ierror)
{
    give("rondo_unique_id_create", NULL, rondo_unique_id_create(id), ierror);
}

void rondo_f_setting_set(const char *variable, const char *value, int *ierror)
{
    give("rondo_setting_set", NULL, rondo_setting_set(variable, value), ierror);
}

void rondo_f_force_next(const char *algo, const char *proto, int *ierror)
{
    give("rondo_force_next", NULL, rondo_force_next(algo, proto), ierror);
}

void rondo_f_prefer_next(const char *algo, const char *proto, int *ierror)
{
    give("rondo_prefer_next", NULL, rondo_prefer_next(algo, proto), ierror);
}

void rondo_f_resources_next(int blocks, int cta_policy, int *ierror)
{
    give("rondo_resources_next", NULL, rondo_resources_next(blocks, cta_policy), ierror);
}

void rondo_f_launch_event_next(rondo_cuda_event_t event, int *ierror)
{
    give("rondo_launch_event_next", NULL, rondo_launch_event_next(event), ierror);
}

void rondo_f_setting_get(const char *variable, char *text, const size_t *bytes, int *ierror)
{
    give("rondo_setting_get", NULL, rondo_setting_get(variable, text, *bytes), ierror);
}

void rondo_f_comm_create(rondo_comm_t *comm, const int *nranks, const rondo_unique_id_t *id, const int *rank,
                         const config_t *config, int *ierror)
{
    rondo_config_t c = config_of(config);

    give("rondo_comm_create", NULL, rondo_comm_create(comm, *nranks, id, *rank, &c), ierror);
}

void rondo_f_comm_create_scalable(rondo_comm_t *comm, const int *nranks, const rondo_unique_id_t *ids, const int *nids,
                                  const int *rank, const config_t *config, int *ierror)
{
    rondo_config_t c = config_of(config);

    give("rondo_comm_create_scalable", NULL, rondo_comm_create_scalable(comm, *nranks, ids, *nids, *rank, &c), ierror);
}

void rondo_f_comm_create_all(rondo_comm_t *comms, const int *ndevices, const int *devices, const config_t *config,
                             int *ierror)
{
    rondo_config_t c = config_of(config);

    give("rondo_comm_create_all", NULL, rondo_comm_create_all(comms, *ndevices, devices, &c), ierror);
}

void rondo_f_comm_split(const rondo_comm_t *comm, const int *color, const int *key, rondo_comm_t *newcomm,
                        const config_t *config, int *ierror)
{
    rondo_config_t c = config_of(config);

    give("rondo_comm_split", *comm, rondo_comm_split(*comm, *color, *key, newcomm, &c), ierror);
}

void rondo_f_comm_grow(const rondo_comm_t *comm, const int *nranks, const rondo_unique_id_t *id, const int *rank,
                       rondo_comm_t *newcomm, const config_t *config, int *ierror)
{
    rondo_config_t c = config_of(config);

    give("rondo_comm_grow", *comm, rondo_comm_grow(*comm, *nranks, id, *rank, newcomm, &c), ierror);
}

void rondo_f_comm_shrink(const rondo_comm_t *comm, const int *excluded, const int *nexcluded, rondo_comm_t *newcomm,
                         const config_t *config, int *ierror)
{
    rondo_config_t c = config_of(config);

    give("rondo_comm_shrink", NULL, rondo_comm_shrink(*comm, excluded, *nexcluded, newcomm, &c), ierror);
}

void rondo_f_comm_finalize(const rondo_comm_t *comm, int *ierror)
{
    give("rondo_comm_finalize", *comm, rondo_comm_finalize(*comm), ierror);
}

void rondo_f_comm_test(const rondo_comm_t *comm, int *done, int *ierror)
{
    give("rondo_comm_test", *comm, rondo_comm_test(*comm, done), ierror);
}

void rondo_f_comm_destroy(rondo_comm_t *comm, int *ierror)
{
    rondo_result_t result = rondo_comm_destroy(*comm);

    *comm = NULL;
    give("rondo_comm_destroy", NULL, result, ierror);
}

void rondo_f_comm_abort(rondo_comm_t *comm, int *ierror)
{
    rondo_result_t result = rondo_comm_abort(*comm);

    *comm = NULL;
    give("rondo_comm_abort", NULL, result, ierror);
}

void rondo_f_comm_suspend(const rondo_comm_t *comm, int *ierror)
{
    give("rondo_comm_suspend", *comm, rondo_comm_suspend(*comm), ierror);
}

void rondo_f_comm_resume(const rondo_comm_t *comm, int *ierror)
{
    give("rondo_comm_resume", *comm, rondo_comm_resume(*comm), ierror);
}

void rondo_f_comm_revoke(const rondo_comm_t *comm, int *ierror)
{
    give("rondo_comm_revoke", *comm, rondo_comm_revoke(*comm), ierror);
}

void rondo_f_comm_get_error(const rondo_comm_t *comm, int *error, int *ierror)
{
    rondo_result_t what = RONDO_SUCCESS, result = rondo_comm_get_error(*comm, &what);

    if (result == RONDO_SUCCESS)
        *error = what;
    give("rondo_comm_get_error", *comm, result, ierror);
}

void rondo_f_comm_status(const rondo_comm_t *comm, rondo_status_t *status, int *ierror)
{
    status->size = sizeof *status;
    give("rondo_comm_status", *comm, rondo_comm_status(*comm, status), ierror);
}

/* The same as type(rondo_shape) and type(rondo_memory). */
typedef struct {
    int nranks, nnodes, most, local, cores, p2p;
} shape_t;

typedef struct {
    uint64_t device, pinned, shared, network, suspend, suspended;
} memory_t;

static void give_memory(memory_t *to, const rondo_memory_t *from)
{
    *to = (memory_t){from->device, from->pinned, from->shared, from->network, from->suspend, from->suspended};
}

void rondo_f_comm_memory(const config_t *config, const shape_t *shape, memory_t *memory, int *ierror)
{
    const rondo_shape_t s = {sizeof s,     shape->nranks, shape->nnodes, shape->most,
                             shape->local, shape->cores,  shape->p2p};
    const rondo_config_t c = config_of(config);
    rondo_memory_t m = {.size = sizeof m};
    rondo_result_t result = rondo_comm_memory(&c, &s, &m);

    give_memory(memory, &m);
    give("rondo_comm_memory", NULL, result, ierror);
}

void rondo_f_comm_memory_now(const rondo_comm_t *comm, memory_t *memory, int *ierror)
{
    rondo_memory_t m = {.size = sizeof m};
    rondo_result_t result = rondo_comm_memory_now(*comm, &m);

    give_memory(memory, &m);
    give("rondo_comm_memory_now", *comm, result, ierror);
}

void rondo_f_timeout_set(const rondo_comm_t *comm, const int64_t *timeout_ms, int *ierror)
{
    give("rondo_timeout_set", *comm, rondo_timeout_set(*comm, *timeout_ms), ierror);
}

void rondo_f_timeout_extend(const rondo_comm_t *comm, const int64_t *timeout_ms, int *ierror)
{
    give("rondo_timeout_extend", *comm, rondo_timeout_extend(*comm, *timeout_ms), ierror);
}

void rondo_f_timeout_next(const int64_t *timeout_ms, int *ierror)
{
    give("rondo_timeout_next", NULL, rondo_timeout_next(*timeout_ms), ierror);
}

void rondo_f_dump(const char *path, const int *flags, int *ierror)
{
    give("rondo_dump", NULL, rondo_dump(*path ? path : NULL, *flags), ierror);
}

void rondo_f_dump_fd(const int *fd, const int *format, int *ierror)
{
    give("rondo_dump_fd", NULL, rondo_dump_fd(*fd, *format), ierror);
}

void rondo_f_hook(const int *kind, const rondo_hook_fn *call, void *const *arg, uint64_t *handle, int *ierror)
{
    give("rondo_hook", NULL, rondo_hook(*kind, *call, *arg, handle), ierror);
}

void rondo_f_unhook(const uint64_t *handle, int *ierror)
{
    give("rondo_unhook", NULL, rondo_unhook(*handle), ierror);
}

void rondo_f_work_last(const rondo_comm_t *comm, rondo_work_t *work, int *ierror)
{
    give("rondo_work_last", *comm, rondo_work_last(*comm, work), ierror);
}

void rondo_f_request_work(const rondo_request_t *request, const int *i, rondo_work_t *work, int *ierror)
{
    give("rondo_request_work", NULL, rondo_request_work(*request, *i, work), ierror);
}

void rondo_f_work_query(const rondo_work_t *work, rondo_work_info_t *info, int *ierror)
{
    info->size = sizeof *info;
    give("rondo_work_query", NULL, rondo_work_query(*work, info), ierror);
}

void rondo_f_work_wait(const rondo_work_t *work, const int64_t *timeout_ms, int *ierror)
{
    give("rondo_work_wait", NULL, rondo_work_wait(*work, *timeout_ms), ierror);
}

void rondo_f_tag(const int64_t *tag, int *ierror)
{
    give("rondo_tag", NULL, rondo_tag((uint64_t)*tag), ierror);
}

void rondo_f_on_error(const rondo_comm_t *comm, const int *on_error, int *ierror)
{
    give("rondo_on_error", *comm, rondo_on_error(*comm, *on_error), ierror);
}

void rondo_f_comm_on_wait(const rondo_comm_t *comm, void (*const *call)(void *data), void *const *data, int *ierror)
{
    give("rondo_comm_on_wait", *comm, rondo_comm_on_wait(*comm, *call, *data), ierror);
}

void rondo_f_comm_rank(const rondo_comm_t *comm, int *rank, int *ierror)
{
    give("rondo_comm_rank", *comm, rondo_comm_rank(*comm, rank), ierror);
}

void rondo_f_comm_size(const rondo_comm_t *comm, int *size, int *ierror)
{
    give("rondo_comm_size", *comm, rondo_comm_size(*comm, size), ierror);
}

void rondo_f_comm_device(const rondo_comm_t *comm, int *device, int *ierror)
{
    give("rondo_comm_device", *comm, rondo_comm_device(*comm, device), ierror);
}

void rondo_f_comm_deregister(const rondo_comm_t *comm, rondo_registration_t *reg, int *ierror)
{
    rondo_result_t result = rondo_comm_deregister(*comm, *reg);

    if (result == RONDO_SUCCESS)
        *reg = NULL;
    give("rondo_comm_deregister", *comm, result, ierror);
}

void rondo_f_mem_free(void **buffer, const rondo_comm_t *comm, int *ierror)
{
    rondo_result_t result = rondo_mem_free(*buffer, *comm);

    if (result == RONDO_SUCCESS)
        *buffer = NULL;
    give("rondo_mem_free", *comm, result, ierror);
}

void rondo_f_window_destroy(const rondo_comm_t *comm, rondo_window_t *window, int *ierror)
{
    rondo_result_t result = rondo_window_destroy(*comm, *window);

    if (result == RONDO_SUCCESS)
        *window = NULL;
    give("rondo_window_destroy", *comm, result, ierror);
}

void rondo_f_window_buffer(const rondo_comm_t *comm, const rondo_window_t *window, void **buffer, int *ierror)
{
    give("rondo_window_buffer", *comm, rondo_window_buffer(*comm, *window, buffer), ierror);
}

/* The same as type(rondo_device_config). */
typedef struct {
    int barriers, signals;
} device_config_t;

void rondo_f_device_create(const rondo_comm_t *comm, const device_config_t *config, rondo_device_t *device, int *ierror)
{
    const rondo_device_config_t c = {sizeof c, config->barriers, config->signals};

    device->size = sizeof *device;
    give("rondo_device_create", *comm, rondo_device_create(*comm, &c, device), ierror);
}

void rondo_f_device_destroy(const rondo_comm_t *comm, rondo_device_t *device, int *ierror)
{
    give("rondo_device_destroy", *comm, rondo_device_destroy(*comm, device), ierror);
}

void rondo_f_device_window(const rondo_comm_t *comm, const rondo_window_t *window, rondo_device_window_t *view,
                           int *ierror)
{
    view->size = sizeof *view;
    give("rondo_device_window", *comm, rondo_device_window(*comm, *window, view), ierror);
}

void rondo_f_signal(const int *peer, const int *number, const int *context, const int *flags, const rondo_comm_t *comm,
                    const rondo_stream_t *stream, int *ierror)
{
    give("rondo_signal", *comm, rondo_signal(*peer, *number, *context, (unsigned)*flags, *comm, rd_f_stream(stream)),
         ierror);
}

void rondo_f_wait_signal(const int *nwaits, const rondo_wait_desc_t *waits, const rondo_comm_t *comm,
                         const rondo_stream_t *stream, int *ierror)
{
    give("rondo_wait_signal", *comm, rondo_wait_signal(*nwaits, waits, *comm, rd_f_stream(stream)), ierror);
}

void rondo_f_flush(const int *peer, const int *context, const rondo_comm_t *comm, const rondo_stream_t *stream,
                   int *ierror)
{
    give("rondo_flush", *comm, rondo_flush(*peer, *context, *comm, rd_f_stream(stream)), ierror);
}

void rondo_f_fence(const int *peer, const int *context, const rondo_comm_t *comm, const rondo_stream_t *stream,
                   int *ierror)
{
    give("rondo_fence", *comm, rondo_fence(*peer, *context, *comm, rd_f_stream(stream)), ierror);
}

void rondo_f_barrier(const rondo_comm_t *comm, const rondo_stream_t *stream, int *ierror)
{
    give("rondo_barrier", *comm, rondo_barrier(*comm, rd_f_stream(stream)), ierror);
}

void rondo_f_group_start(int *ierror)
{
    give("rondo_group_start", NULL, rondo_group_start(), ierror);
}

void rondo_f_group_end(int *ierror)
{
    give("rondo_group_end", NULL, rondo_group_end(), ierror);
}

void rondo_f_group_estimate(double *microseconds, int *ierror)
{
    give("rondo_group_estimate", NULL, rondo_group_estimate(microseconds), ierror);
}

void rondo_f_group_submit(rondo_request_t *request, int *ierror)
{
    give("rondo_group_submit", NULL, rondo_group_submit(request), ierror);
}

void rondo_f_request_test(rondo_request_t *request, int *done, int *ierror)
{
    give("rondo_request_test", NULL, rondo_request_test(request, done), ierror);
}

void rondo_f_request_wait(rondo_request_t *request, int *ierror)
{
    give("rondo_request_wait", NULL, rondo_request_wait(request), ierror);
}

void rondo_f_op_create_premulsum(rondo_op_t *op, const CFI_cdesc_t *scalar, const int *type,
                                 const int *scalar_on_device, const rondo_comm_t *comm, int *ierror)
{
    rd_f_call_t c;

    rd_f_begin(&c, "rondo_op_create_premulsum", *comm, ierror);
    rd_f_buffer(&c, "scalar", scalar);
    rd_f_type(&c, *type, RD_F_NONE, 0);
    if (c.result == RONDO_SUCCESS)
        c.result = rondo_op_create_premulsum(op, c.address[0], (rondo_type_t)*type, *scalar_on_device, *comm);
    rd_f_end(&c);
}

void rondo_f_op_destroy(const rondo_op_t *op, const rondo_comm_t *comm, int *ierror)
{
    give("rondo_op_destroy", *comm, rondo_op_destroy(*op, *comm), ierror);
}

#pragma GCC visibility pop
