/* What the files of libnccl.so.2 share. The library is a client of librondo: it sees rondo.h and
 * core/binding.h and nothing behind them, so that one process may call rondo as NCCL and by its own name, and both are
 * the same librondo.
 *
 *     entry points      operations.c  communicators.c  derive.c  memory.c  redop.c  refused.c
 *           |  nc_op_t, nc_job_t: one call as data
 *           v
 *     groups            group.c       at once; at the end of the group; or behind the caller's back (blocking = 0)
 *           |
 *           v
 *     rondo.h
 *
 * Names within begin with nc_.
 */
#ifndef RD_NCCL_SHIM_H
#define RD_NCCL_SHIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <rondo.h>

#include "nccl/nccl.h"

/* After each definition of pncclX: the weak name that programs call. */
#define NC_TWIN(name)                                                                                                  \
    extern __typeof__(pnccl##name) nccl##name __attribute__((weak, visibility("default"), alias("pnccl" #name)))

/* ---- what is said ---- (log.c) */

typedef enum { NC_LOG_NONE, NC_LOG_VERSION, NC_LOG_WARN, NC_LOG_INFO, NC_LOG_TRACE } nc_log_level_t;
typedef enum { NC_SUBSYS_INIT = 1, NC_SUBSYS_COLL = 2, NC_SUBSYS_ENV = 4, NC_SUBSYS_REG = 8 } nc_subsys_t;

void nc_log(nc_subsys_t subsys, const char *format, ...) __attribute__((format(printf, 2, 3))); /* at INFO */
void nc_log_version(void);                                                                      /* once a process */
/* Records the sentence for ncclGetLastError, says it, and returns `code`; within a group the group fails. `comm` may be
 * NULL. */
ncclResult_t nc_error(ncclComm_t comm, ncclResult_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What rondo answered, which has said its sentence itself: recorded, and translated. */
ncclResult_t nc_result(ncclComm_t comm, rondo_comm_t of, rondo_result_t result);

/* ---- settings ---- (settings.c) */

void nc_settings(void);           /* hands NCCL_* on to rondo, once a process; before anything else is asked of rondo */
bool nc_settings_host(void);      /* RONDO_NCCL_HOST=1 */
bool nc_settings_blocking(int *); /* NCCL_COMM_BLOCKING: is it set? */

/* ---- configs ---- (config.c) */

#define NC_NAME_BYTES 64
typedef struct nc_config {
    int blocking;
    char name[NC_NAME_BYTES]; /* "": none */
} nc_config_t;

/* `given` NULL: `inherited`; both NULL: defaults. */
ncclResult_t nc_config_read(nc_config_t *config, const ncclConfig_t *given, const nc_config_t *inherited,
                            const char *call);

/* ---- CUDA, looked up at run time ---- (device.c) */

ncclResult_t nc_device_current(int *device, const char *call); /* RONDO_DEVICE_HOST, or the caller's CUDA device */
ncclResult_t nc_device_count(int *count, const char *call);
void nc_device_enter(int device); /* a thread of this library's own: its current device from now on */
ncclResult_t nc_device_alloc(void **buffer, size_t bytes);
ncclResult_t nc_device_free(void *buffer);

/* ---- communicators ---- (communicators.c) */

#define NC_ALIVE 0x6e63636c436f6d6du

/* A call on a communicator may be under way in three places, which abort and destroy must tell apart:
 *   inside   a thread is in an operation that it waits for;
 *   busy     a job, or an operation behind the caller's back (blocking = 0);
 *   neither  it is only recorded in an open group, which is the recording thread's affair. */
struct ncclComm {
    _Atomic uint64_t alive;
    rondo_comm_t rondo; /* NULL until it is made, and after it could not be */
    int rank, nranks, device;
    nc_config_t config;
    _Atomic int inside, busy;
    _Atomic int ending; /* set before an abort looks at those two; looked at after either was raised */
    _Atomic int result; /* ncclResult_t of what failed behind the caller's back; stays */
    int dropped;        /* aborted while it was being made: the job frees it (nc_lock) */
    _Atomic int revoked, finalized;
    struct nc_user_op *ops;
    struct nc_registration *registrations;
    struct nc_bounce *asides;
    char error[512]; /* ncclGetLastError */
};

/* Whether a job's communicator is made or dropped is decided by one side only. */
extern pthread_mutex_t nc_lock;

/* A communicator; and one that an operation may be called on. The sentence names the call. */
ncclResult_t nc_comm_valid(ncclComm_t comm, const char *call);
ncclResult_t nc_comm_ready(ncclComm_t comm, const char *call);
bool nc_comm_busy(ncclComm_t comm); /* something is under way behind the caller's back */
ncclComm_t nc_comm_new(int rank, int nranks, int device, const nc_config_t *config);
/* rondo's has been made, or NULL: it could not be. Whoever aborted it in between is obeyed. */
ncclResult_t nc_comm_made(ncclComm_t comm, rondo_comm_t rondo, const char *call, ncclResult_t result);
void nc_comm_free(ncclComm_t comm); /* the object; rondo's is gone */
void nc_comm_wait(ncclComm_t comm); /* until it is neither inside nor busy */
rondo_config_t nc_comm_config(ncclComm_t comm);
ncclResult_t nc_comm_revoke(ncclComm_t comm);

/* ---- work ---- (group.c) */

typedef enum {
    NC_ALLREDUCE,
    NC_REDUCE,
    NC_BROADCAST,
    NC_REDUCE_SCATTER,
    NC_ALLGATHER,
    NC_ALLTOALL,
    NC_GATHER,
    NC_SCATTER,
    NC_SEND,
    NC_RECV
} nc_what_t;

/* One operation, as data. */
typedef struct nc_op {
    nc_what_t what;
    rondo_type_t type;
    rondo_op_t op;
    struct nc_user_op *user_op; /* NULL: `op` */
    int root;                   /* or peer */
    const void *send;
    void *recv;
    size_t count;
    ncclComm_t comm;
    rondo_stream_t stream;
    struct nc_bounce *bounce; /* of an alltoall in place; NULL: none */
} nc_op_t;

/* What is not an operation and may wait for other ranks: each runs on a thread of its own where there are several. */
typedef struct nc_job {
    struct nc_job *next;
    ncclResult_t (*run)(struct nc_job *job);
    int creates; /* `comm` is new: freed where it cannot be made for a caller who waits */
    const char *call;
    ncclComm_t comm;     /* that is made, or acted on; NULL: a split into no color */
    ncclComm_t parent;   /* or NULL */
    ncclComm_t *newcomm; /* of a creation: set to NULL where that fails */
    int blocking;
    rondo_unique_id_t id;
    int number[2], *list; /* split: color, key; shrink: flags, entries of `list` */
    void *buffer;
    size_t bytes;
    ncclWindow_t *window;
    struct nc_registration *registration;
    ncclResult_t result;
    pthread_t thread;
    int started;
} nc_job_t;

bool nc_group_has(ncclComm_t comm); /* the open group holds something of it */
void nc_group_fail(ncclResult_t result);
ncclResult_t nc_group_op(nc_op_t *op);          /* the caller has no more use for it */
ncclResult_t nc_group_job(const nc_job_t *job); /* copied; `list` becomes the group's */

rondo_result_t nc_op_run(const nc_op_t *op); /* operations.c */

/* ---- in place, where rondo is not ---- (bounce.c) */

/* Before nc_op_run and outside a group of rondo's: `send` may become a copy, kept until nc_bounce_release. */
rondo_result_t nc_bounce_copy(nc_op_t *op);
void nc_bounce_release(const nc_op_t *op);
void nc_bounce_free_all(ncclComm_t comm); /* before rondo's communicator ends */

/* ---- operators ---- (redop.c) */

/* Finds the op for a call; it then has one user more, until nc_user_op_put. NULL: there is none. */
struct nc_user_op *nc_user_op_get(ncclComm_t comm, ncclRedOp_t op);
void nc_user_op_put(ncclComm_t comm, struct nc_user_op *op);
/* rondo's op for this run, which reads a device scalar now; given back by nc_user_op_end. */
rondo_result_t nc_user_op_begin(ncclComm_t comm, struct nc_user_op *op, rondo_op_t *number);
void nc_user_op_end(ncclComm_t comm, struct nc_user_op *op, rondo_op_t number);
void nc_user_op_free_all(ncclComm_t comm);

void nc_registration_end_all(ncclComm_t comm); /* memory.c: those of rondo's, before its communicator ends */
void nc_registration_free_all(ncclComm_t comm);

int nc_type(ncclDataType_t type, rondo_type_t *to); /* operations.c: 0 or -1 */
int nc_builtin_op(ncclRedOp_t op, rondo_op_t *to);

#endif
