/* rondo: collective communication for codes that mpirun launches.
 *
 * This header is the manual. It compiles alone, as C11 and as C++17, with neither CUDA nor MPI installed.
 *
 * Words. A communicator joins `nranks` ranks, numbered 0 to nranks-1. A rank is a process or a thread. Counts are in
 * elements of the given type, never in bytes; zero is legal everywhere. A communicator is either a host communicator
 * (buffers in ordinary memory, an operation is complete when its call returns) or a CUDA communicator (buffers in
 * device memory, an operation is enqueued on the stream).
 */
#ifndef RONDO_H
#define RONDO_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

#define RONDO_VERSION_MAJOR 0
#define RONDO_VERSION_MINOR 1
#define RONDO_VERSION_PATCH 0
#define RONDO_VERSION (10000 * RONDO_VERSION_MAJOR + 100 * RONDO_VERSION_MINOR + RONDO_VERSION_PATCH)

typedef struct rondo_comm *rondo_comm_t;
typedef struct CUstream_st *rondo_stream_t; /* a cudaStream_t or CUstream; NULL on a host communicator */
typedef struct rondo_registration *rondo_registration_t;
typedef struct rondo_request *rondo_request_t;

/* Who holds these bytes may join the communicator: carry them by a channel that you trust, never write them to a log.
 */
typedef struct {
    unsigned char bytes[128];
} rondo_unique_id_t;

typedef enum {
    RONDO_SUCCESS = 0,
    RONDO_IN_PROGRESS,          /* not over yet: ask again */
    RONDO_ERR_INVALID_ARGUMENT, /* one argument is wrong; the communicator is unharmed */
    RONDO_ERR_INVALID_USAGE,    /* the call is not allowed now */
    RONDO_ERR_UNSUPPORTED,      /* right, but not built in or not possible here */
    RONDO_ERR_NO_MEMORY,
    RONDO_ERR_SYSTEM,   /* a system call failed */
    RONDO_ERR_CUDA,     /* a CUDA call failed */
    RONDO_ERR_INTERNAL, /* rondo's own mistake: please report */
    RONDO_ERR_REMOTE,   /* another rank died, left or failed: abort, then shrink or end */
    RONDO_ERR_TIMEOUT,  /* a live rank did not come in time */
    RONDO_ERR_ABORTED,  /* rondo_comm_abort was called here */
    RONDO_ERR_MISMATCH  /* ranks called different operations or arguments (seen with RONDO_CHECK=1) */
} rondo_result_t;

typedef enum {
    RONDO_INT8,
    RONDO_UINT8,
    RONDO_INT16,
    RONDO_UINT16,
    RONDO_INT32,
    RONDO_UINT32,
    RONDO_INT64,
    RONDO_UINT64,
    RONDO_FLOAT16,
    RONDO_BFLOAT16,
    RONDO_FLOAT32,
    RONDO_FLOAT64,
    RONDO_FLOAT8_E4M3,
    RONDO_FLOAT8_E5M2,
    RONDO_COMPLEX64,
    RONDO_COMPLEX128,    /* two floats, two doubles */
    RONDO_BOOL,          /* one byte, 0 or 1 */
    RONDO_FLOAT32_INT32, /* pairs {value, index} for MINLOC and MAXLOC, laid out as MPI's pair types */
    RONDO_FLOAT64_INT32,
    RONDO_INT32_INT32,
    RONDO_INT64_INT32,
    RONDO_FLOAT32_FLOAT32, /* Fortran's 2REAL */
    RONDO_FLOAT64_FLOAT64, /* Fortran's 2DOUBLE PRECISION */
    RONDO_NUM_TYPES
} rondo_type_t;

/* One of the operators below, or one made by rondo_op_create_premulsum. */
typedef int rondo_op_t;
enum {
    RONDO_SUM,
    RONDO_PROD,
    RONDO_MIN,
    RONDO_MAX,
    RONDO_AVG,
    RONDO_BAND,
    RONDO_BOR,
    RONDO_BXOR,
    RONDO_LAND,
    RONDO_LOR,
    RONDO_LXOR,
    RONDO_MINLOC,
    RONDO_MAXLOC,
    RONDO_NUM_OPS
};

#define RONDO_DEVICE_AUTO (-2) /* the current CUDA device if there is one, else host memory */
#define RONDO_DEVICE_HOST (-1)

typedef struct {
    size_t size; /* sizeof(rondo_config_t) of the caller: a smaller one is an older caller */
    int device;  /* RONDO_DEVICE_AUTO, RONDO_DEVICE_HOST or a CUDA device number */
    int blocking;
    const char *name;   /* printed in every message of this communicator; copied */
    int64_t timeout_ms; /* an operation that waits longer on a live peer fails; 0: never; -1: RONDO_TIMEOUT_MS */
} rondo_config_t;

#define RONDO_CONFIG_INIT                                                                                              \
    {                                                                                                                  \
        sizeof(rondo_config_t), RONDO_DEVICE_AUTO, 1, NULL, -1                                                         \
    }

int rondo_version(void);
size_t rondo_type_size(rondo_type_t type);
const char *rondo_result_string(rondo_result_t result);
const char *rondo_last_error(rondo_comm_t comm);

rondo_result_t rondo_unique_id_create(rondo_unique_id_t *id);
rondo_result_t rondo_comm_create(rondo_comm_t *comm, int nranks, const rondo_unique_id_t *id, int rank,
                                 const rondo_config_t *config);
rondo_result_t rondo_comm_create_all(rondo_comm_t *comms, int ndevices, const int *devices,
                                     const rondo_config_t *config);
rondo_result_t rondo_comm_split(rondo_comm_t comm, int color, int key, rondo_comm_t *newcomm,
                                const rondo_config_t *config);
rondo_result_t rondo_comm_shrink(rondo_comm_t comm, const int *excluded, int nexcluded, rondo_comm_t *newcomm,
                                 const rondo_config_t *config);
rondo_result_t rondo_comm_finalize(rondo_comm_t comm);
rondo_result_t rondo_comm_destroy(rondo_comm_t comm);
rondo_result_t rondo_comm_abort(rondo_comm_t comm);
rondo_result_t rondo_comm_get_error(rondo_comm_t comm, rondo_result_t *error);
rondo_result_t rondo_comm_rank(rondo_comm_t comm, int *rank);
rondo_result_t rondo_comm_size(rondo_comm_t comm, int *size);
rondo_result_t rondo_comm_device(rondo_comm_t comm, int *device);
rondo_result_t rondo_comm_register(rondo_comm_t comm, void *buffer, size_t bytes, rondo_registration_t *reg);
rondo_result_t rondo_comm_deregister(rondo_comm_t comm, rondo_registration_t reg);
rondo_result_t rondo_mem_alloc(void **buffer, size_t bytes, rondo_comm_t comm);
rondo_result_t rondo_mem_free(void *buffer, rondo_comm_t comm);

rondo_result_t rondo_allreduce(const void *send, void *recv, size_t count, rondo_type_t type, rondo_op_t op,
                               rondo_comm_t comm, rondo_stream_t stream);
rondo_result_t rondo_reduce(const void *send, void *recv, size_t count, rondo_type_t type, rondo_op_t op, int root,
                            rondo_comm_t comm, rondo_stream_t stream);
rondo_result_t rondo_broadcast(const void *send, void *recv, size_t count, rondo_type_t type, int root,
                               rondo_comm_t comm, rondo_stream_t stream);
rondo_result_t rondo_allgather(const void *send, void *recv, size_t sendcount, rondo_type_t type, rondo_comm_t comm,
                               rondo_stream_t stream);
rondo_result_t rondo_allgatherv(const void *send, size_t sendcount, void *recv, const size_t *recvcounts,
                                const size_t *displs, rondo_type_t type, rondo_comm_t comm, rondo_stream_t stream);
rondo_result_t rondo_reduce_scatter(const void *send, void *recv, size_t recvcount, rondo_type_t type, rondo_op_t op,
                                    rondo_comm_t comm, rondo_stream_t stream);
rondo_result_t rondo_reduce_scatterv(const void *send, void *recv, const size_t *recvcounts, rondo_type_t type,
                                     rondo_op_t op, rondo_comm_t comm, rondo_stream_t stream);
rondo_result_t rondo_alltoall(const void *send, void *recv, size_t count, rondo_type_t type, rondo_comm_t comm,
                              rondo_stream_t stream);
rondo_result_t rondo_alltoallv(const void *send, const size_t *sendcounts, const size_t *sdispls, void *recv,
                               const size_t *recvcounts, const size_t *rdispls, rondo_type_t type, rondo_comm_t comm,
                               rondo_stream_t stream);
rondo_result_t rondo_gather(const void *send, void *recv, size_t count, rondo_type_t type, int root, rondo_comm_t comm,
                            rondo_stream_t stream);
rondo_result_t rondo_scatter(const void *send, void *recv, size_t count, rondo_type_t type, int root, rondo_comm_t comm,
                             rondo_stream_t stream);
rondo_result_t rondo_gatherv(const void *send, size_t sendcount, void *recv, const size_t *recvcounts,
                             const size_t *displs, rondo_type_t type, int root, rondo_comm_t comm,
                             rondo_stream_t stream);
rondo_result_t rondo_scatterv(const void *send, const size_t *sendcounts, const size_t *displs, void *recv,
                              size_t recvcount, rondo_type_t type, int root, rondo_comm_t comm, rondo_stream_t stream);
rondo_result_t rondo_send(const void *buffer, size_t count, rondo_type_t type, int peer, rondo_comm_t comm,
                          rondo_stream_t stream);
rondo_result_t rondo_recv(void *buffer, size_t count, rondo_type_t type, int peer, rondo_comm_t comm,
                          rondo_stream_t stream);
rondo_result_t rondo_barrier(rondo_comm_t comm, rondo_stream_t stream);

rondo_result_t rondo_group_start(void);
rondo_result_t rondo_group_end(void);
rondo_result_t rondo_group_submit(rondo_request_t *request);
rondo_result_t rondo_request_test(rondo_request_t *request, int *done);
rondo_result_t rondo_request_wait(rondo_request_t *request);

rondo_result_t rondo_op_create_premulsum(rondo_op_t *op, const void *scalar, rondo_type_t type, int scalar_on_device,
                                         rondo_comm_t comm);
rondo_result_t rondo_op_destroy(rondo_op_t op, rondo_comm_t comm);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
