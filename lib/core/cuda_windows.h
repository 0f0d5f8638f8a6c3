/* Windows on CUDA communicators, and barriers and signals for kernels of the program's own (exec/cuda/user.h). The
 * arguments have been checked, but whether a window or a device is one of the communicator's is seen here. */
#ifndef RD_CORE_CUDA_WINDOWS_H
#define RD_CORE_CUDA_WINDOWS_H

#include "core/comm.h"

/* As rd_comm_window_create and _destroy (core/rma_calls.h), of device memory. Collective. */
rondo_result_t rd_comm_cuda_window_create(rondo_comm_t comm, void *buffer, size_t bytes, rondo_window_t *window);
rondo_result_t rd_comm_cuda_window_destroy(rondo_comm_t comm, rondo_window_t window);
rondo_result_t rd_comm_cuda_window_buffer(rondo_comm_t comm, rondo_window_t window, void **buffer);
rondo_result_t rd_comm_cuda_window_view(rondo_comm_t comm, rondo_window_t window, rondo_device_window_t *view);

/* The end of a window that is a registration's. Local. */
rondo_result_t rd_comm_cuda_window_close(rondo_comm_t comm, rondo_window_t window);
/* Refuses what is no window of the communicator. The caller is inside. */
rondo_result_t rd_comm_cuda_window_check(rondo_comm_t comm, rondo_window_t window, const char *call);

/* Collective. `config` is complete. */
rondo_result_t rd_comm_device_create(rondo_comm_t comm, const rondo_device_config_t *config, rondo_device_t *device);
rondo_result_t rd_comm_device_destroy(rondo_comm_t comm, rondo_device_t *device);

#endif
