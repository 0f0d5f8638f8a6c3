/* Replaces lib/exec/cuda where the library is built without CUDA: every communicator is a host one. */
#include "exec/cuda/cuda.h"

bool rd_cuda_built(void)
{
    return false;
}

rondo_result_t rd_cuda_device(int wanted, int *device)
{
    if (wanted >= 0)
        return rd_error(NULL, RONDO_ERR_UNSUPPORTED,
                        "config->device is %d, but this library is built without CUDA: use RONDO_DEVICE_HOST", wanted);
    *device = RONDO_DEVICE_HOST;
    return RONDO_SUCCESS;
}

uint32_t rd_cuda_pci(int device)
{
    (void)device;
    return 0;
}

static rondo_result_t none(void)
{
    return rd_error(NULL, RONDO_ERR_INTERNAL, "a CUDA communicator without CUDA");
}

void rd_cuda_health_poll(rd_cuda_t *cuda)
{
    (void)cuda;
}

rondo_result_t rd_cuda_create(rd_cuda_t **cuda, const rd_team_t *team, const rd_net_comm_ops_t *net_comms)
{
    (void)cuda, (void)team, (void)net_comms;
    return none();
}

void rd_cuda_foresee(const rd_env_t *env, const rondo_shape_t *shape, rd_foresee_fn net_comm, rondo_memory_t *memory)
{
    (void)env, (void)shape, (void)net_comm, (void)memory;
}

void rd_cuda_count(const rd_cuda_t *cuda, rondo_memory_t *memory)
{
    (void)cuda, (void)memory;
}

rondo_result_t rd_cuda_suspend(rd_cuda_t *cuda)
{
    (void)cuda;
    return none();
}

rondo_result_t rd_cuda_resume(rd_cuda_t *cuda)
{
    (void)cuda;
    return none();
}

void rd_cuda_limit(rd_cuda_t *cuda)
{
    (void)cuda;
}

bool rd_cuda_close(rd_cuda_t *cuda)
{
    (void)cuda;
    return true;
}

void rd_cuda_free(rd_cuda_t *cuda, rd_node_t *node)
{
    (void)cuda, (void)node;
}

rondo_result_t rd_cuda_drain(rd_cuda_t *cuda)
{
    (void)cuda;
    return none();
}

rondo_result_t rd_cuda_drained(rd_cuda_t *cuda)
{
    (void)cuda;
    return none();
}

rondo_result_t rd_cuda_stall(rd_cuda_t *cuda, rondo_stream_t stream)
{
    (void)cuda, (void)stream;
    return none();
}

void rd_cuda_release(rd_cuda_t *cuda)
{
    (void)cuda;
}

void rd_cuda_patient(rd_cuda_t *cuda)
{
    (void)cuda;
}

void rd_cuda_hasten(rd_cuda_t *cuda)
{
    (void)cuda;
}

bool rd_cuda_shown(rd_cuda_t *cuda)
{
    (void)cuda;
    return true;
}

bool rd_cuda_complete(rd_cuda_t *cuda)
{
    (void)cuda;
    return false;
}

rondo_result_t rd_cuda_check(rd_cuda_t *cuda)
{
    (void)cuda;
    return none();
}

rondo_result_t rd_cuda_collective(rd_cuda_t *cuda, const rd_call_t *call)
{
    (void)cuda, (void)call;
    return none();
}

rondo_result_t rd_cuda_message(rd_cuda_t *cuda, const rd_message_t *message)
{
    (void)cuda, (void)message;
    return none();
}

rondo_result_t rd_cuda_group_submit(rd_cuda_pending_t **pending)
{
    (void)pending;
    return RONDO_SUCCESS;
}

void rd_cuda_group_clear(void)
{
}

double rd_cuda_group_estimate(void)
{
    return 0;
}

rondo_result_t rd_cuda_pending_test(rd_cuda_pending_t **pending)
{
    (void)pending;
    return RONDO_SUCCESS;
}

rondo_result_t rd_cuda_register(rd_cuda_t *cuda, void *buffer, size_t bytes, int *number)
{
    (void)cuda, (void)buffer, (void)bytes, (void)number;
    return none();
}

rondo_result_t rd_cuda_deregister(rd_cuda_t *cuda, int number)
{
    (void)cuda, (void)number;
    return none();
}

rondo_result_t rd_cuda_window_create(rd_cuda_t *cuda, void *buffer, size_t bytes, rd_cuda_window_t **window)
{
    (void)cuda, (void)buffer, (void)bytes, (void)window;
    return none();
}

rondo_result_t rd_cuda_window_destroy(rd_cuda_t *cuda, rd_cuda_window_t *window)
{
    (void)cuda, (void)window;
    return none();
}

bool rd_cuda_has_window(const rd_cuda_t *cuda, const rd_cuda_window_t *window)
{
    (void)cuda, (void)window;
    return false;
}

void *rd_cuda_window_buffer(const rd_cuda_t *cuda, const rd_cuda_window_t *window)
{
    (void)cuda, (void)window;
    return NULL;
}

void rd_cuda_window_view(const rd_cuda_t *cuda, const rd_cuda_window_t *window, rondo_device_window_t *view)
{
    (void)cuda, (void)window, (void)view;
}

rondo_result_t rd_cuda_device_create(rd_cuda_t *cuda, const rondo_device_config_t *config, rondo_device_t *device)
{
    (void)cuda, (void)config, (void)device;
    return none();
}

rondo_result_t rd_cuda_device_destroy(rd_cuda_t *cuda, rondo_device_t *device)
{
    (void)cuda, (void)device;
    return none();
}

bool rd_cuda_has_device(const rd_cuda_t *cuda, const rondo_device_t *device)
{
    (void)cuda, (void)device;
    return false;
}

rondo_result_t rd_cuda_onesided(rd_cuda_t *cuda, const rd_cuda_onesided_t *op, const char *call)
{
    (void)cuda, (void)op, (void)call;
    return none();
}

rd_cuda_window_t *rd_cuda_window_of(rd_cuda_t *cuda, int number)
{
    (void)cuda, (void)number;
    return NULL;
}

void rd_cuda_window_close(rd_cuda_t *cuda, rd_cuda_window_t *window)
{
    (void)cuda, (void)window;
}

void rd_cuda_windows(rd_cuda_t *cuda)
{
    (void)cuda;
}

rondo_result_t rd_cuda_buffer_own(rd_cuda_t *cuda, const char *call, const char *what, const void *buffer)
{
    (void)cuda, (void)call, (void)what, (void)buffer;
    return RONDO_SUCCESS;
}

rondo_result_t rd_cuda_mem_alloc(rd_cuda_t *cuda, void **buffer, size_t bytes)
{
    (void)cuda, (void)buffer, (void)bytes;
    return none();
}

rondo_result_t rd_cuda_mem_free(rd_cuda_t *cuda, void *buffer)
{
    (void)cuda, (void)buffer;
    return none();
}

rondo_result_t rd_cuda_scratch_alloc(rd_cuda_t *cuda, void **buffer, size_t *bytes)
{
    (void)cuda, (void)buffer, (void)bytes;
    return none();
}

void rd_cuda_scratch_free(rd_cuda_t *cuda, void *buffer, size_t bytes)
{
    (void)cuda, (void)buffer, (void)bytes;
}

void rd_cuda_print(FILE *file)
{
    fputs("CUDA          built without it\n", file);
}

int rd_cuda_multiprocessors(const char *bus)
{
    (void)bus;
    return 0;
}

bool rd_cuda_goes_by(const rd_algo_t *algo, rd_proto_t proto)
{
    (void)algo, (void)proto;
    return false;
}

double rd_cuda_expected(const rd_cuda_shape_t *shape, const rd_prices_t *prices, const rd_env_t *env, rd_coll_t coll,
                        uint64_t bytes, const rd_algo_t *algo, rd_proto_t proto)
{
    (void)shape, (void)prices, (void)env, (void)coll, (void)bytes, (void)algo, (void)proto;
    return 0;
}

static rondo_result_t not_built(void)
{
    return rd_error(NULL, RONDO_ERR_UNSUPPORTED, "this library is built without CUDA");
}

rondo_result_t rd_cuda_plan_print(FILE *file, rd_coll_t coll, rondo_type_t type, size_t count,
                                  const rd_cuda_shape_t *shape, const rd_env_t *env)
{
    (void)file, (void)coll, (void)type, (void)count, (void)shape, (void)env;
    return not_built();
}

rondo_result_t rd_cuda_choices_print(FILE *file, const rd_cuda_shape_t *shape, const rd_env_t *env)
{
    (void)file, (void)shape, (void)env;
    return not_built();
}
