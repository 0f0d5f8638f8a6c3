/* Declarations that the files of libnccl.so.2 share. The library is a client of librondo: it includes only rondo.h and
 * core/binding.h. So one process may call rondo both as NCCL and by its own name, and both are the same librondo.
 *
 *     entry points      operations.c  onesided.c  communicators.c  derive.c  memory.c  redop.c  refused.c
 *           |  nc_op_t, nc_job_t: one call as data
 *           v
 *     groups            group.c       at once; at the end of the group; or in the background (blocking = 0)
 *           |
 *           v
 *     rondo.h
 *
 * Internal names begin with nc_.
 */
#ifndef RD_NCCL_SHIM_H
#define RD_NCCL_SHIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <rondo.h>

#include "nccl/nccl.h"

/* Follows each definition of pncclX and makes ncclX, the weak name that programs call. */
#define NC_TWIN(name)                                                                                                  \
    extern __typeof__(pnccl##name) nccl##name __attribute__((weak, visibility("default"), alias("pnccl" #name)))

/* The version of NCCL that ncclGetVersion names: that of nccl.h's macros without RONDO_NCCL_NO_DEVICE. */
#define NC_VERSION_MAJOR 2
#define NC_VERSION_MINOR 28
#define NC_VERSION_PATCH 9

/* ---- log lines and errors ---- (log.c) */

typedef enum {
    NC_LOG_UNKNOWN = -1,
    NC_LOG_NONE,
    NC_LOG_VERSION,
    NC_LOG_WARN,
    NC_LOG_INFO,
    NC_LOG_TRACE
} nc_log_level_t;
typedef enum { NC_SUBSYS_INIT = 1, NC_SUBSYS_COLL = 2, NC_SUBSYS_ENV = 4, NC_SUBSYS_REG = 8 } nc_subsys_t;

void nc_log(nc_subsys_t subsys, const char *format, ...) __attribute__((format(printf, 2, 3))); /* at INFO */
bool nc_log_shows(nc_subsys_t subsys);         /* false: nc_log would print nothing; costs a load */
void nc_log_version(void);                     /* once a process */
nc_log_level_t nc_log_level(const char *text); /* a word of NCCL_DEBUG */
#define NC_FILE_BYTES 512
/* Expands the pattern of NCCL_DEBUG_FILE: base/file_name.h; the host is without its domain, as in NCCL. */
void nc_log_file(const char *pattern, char name[NC_FILE_BYTES]);
/* Logs the message, records it for ncclGetLastError, and returns `code`. `comm` may be NULL. */
ncclResult_t nc_error(ncclComm_t comm, ncclResult_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Translates rondo's result and records its message, which rondo has logged itself. */
ncclResult_t nc_result(ncclComm_t comm, rondo_comm_t of, rondo_result_t result);

/* ---- settings ---- (settings.c) */

void nc_settings(void); /* hands NCCL_* on to rondo, once a process; before anything else is asked of rondo */
const char *nc_settings_wrong(void);    /* why no communicator can be made; NULL: it can */
bool nc_settings_host(void);            /* RONDO_NCCL_HOST=1 */
bool nc_settings_checks_pointers(void); /* NCCL_CHECK_POINTERS, NCCL_CHECK_MODE */
bool nc_settings_blocking(int *);       /* returns true if NCCL_COMM_BLOCKING is set */
bool nc_settings_cta_policy(int *);     /* returns true if NCCL_CTA_POLICY is set; rondo's number */
/* Returns what NCCL_`name` says, or NULL: nothing, or `rondo`, RONDO_'s own variable for the same ("": there is none),
 * is set. */
const char *nc_settings_text(const char *name, const char *rondo);

/* number.c: reads a variable's text as NCCL does. Returns false if the number is too large: then NCCL has its default.
 */
bool nc_number(const char *text, long long *number);
bool nc_number_is(const char *text, long long wanted);

/* interfaces.c: writes the first address of the interfaces that NCCL's list `names` means (NULL: any but loopback) as
 * text, of `family` (0: any, and IPv4 before IPv6). Returns 0 if there is none. */
int nc_address_find(const char *names, int family, char *text, size_t bytes);
/* ib_ports.c: writes the ports of InfiniBand devices that NCCL's list `names` means, as "mlx5_0:1,mlx5_1:1". Returns
 * NULL, or why they are none to be named. */
const char *nc_ib_ports(const char *names, char *text, size_t bytes);

/* ---- configs ---- (config.c) */

#define NC_NAME_BYTES 64
typedef struct nc_config {
    int blocking;
    int signals, contexts;    /* of one-sided operations; -1: rondo's default */
    int blocks;               /* of a launch; -1: RONDO_CUDA_BLOCKS */
    int blocks_least;         /* -1: RONDO_CUDA_BLOCKS_LEAST */
    int net_channels;         /* -1: RONDO_PROXY_THREADS */
    int cta_policy;           /* rondo's number; -1: RONDO_CTA_POLICY */
    int traffic_class;        /* -1: RONDO_TRAFFIC_CLASS */
    const char *network;      /* rondo's name of NCCL's; NULL: RONDO_UCX_TLS */
    char name[NC_NAME_BYTES]; /* "": it has none */
} nc_config_t;

/* If `given` is NULL, `inherited` is used; if that is NULL, too, the defaults are. What `given` leaves open has its
 * default, as in NCCL, also where there is something to inherit. */
ncclResult_t nc_config_read(nc_config_t *config, const ncclConfig_t *given, const nc_config_t *inherited,
                            const char *call);

/* ---- CUDA, looked up at run time ---- (device.c) */

ncclResult_t nc_device_current(int *device, const char *call); /* RONDO_DEVICE_HOST, or the caller's CUDA device */
ncclResult_t nc_device_count(int *count, const char *call);
void nc_device_enter(int device); /* sets the current device of a thread of this library */
/* Waits for what is in the stream, 100 ms at most, and sets *lost to CUDA's error if a kernel of it has failed, else to
 * 0. Returns false if the stream cannot be asked, because it is captured. */
bool nc_device_settle(rondo_stream_t stream, int *lost);
ncclResult_t nc_device_lost(ncclComm_t comm, int code); /* reports such an error */
/* Returns true if a kernel has failed there, so that every call of the context fails. The caller's device stays. */
bool nc_device_is_lost(int device);
ncclResult_t nc_device_alloc(void **buffer, size_t bytes);
ncclResult_t nc_device_free(void *buffer);

/* ---- communicators ---- (communicators.c) */

#define NC_ALIVE 0x6e63636c436f6d6du
#define NC_SHRUNK 2 /* `revoked`: by a shrink with NCCL_SHRINK_ABORT */

/* A call on a communicator may be in three states, which abort and destroy distinguish:
 *   inside   a thread runs an operation and waits for it;
 *   busy     a job, or an operation in the background (blocking = 0), is under way;
 *   neither  the call is only recorded in an open group, which belongs to the thread that records it. */
struct ncclComm {
    _Atomic uint64_t alive;
    rondo_comm_t rondo; /* NULL until it is created, and if that has failed */
    int rank, nranks, device;
    nc_config_t config;
    _Atomic int inside, busy;
    _Atomic int shrinking;  /* those of `busy` that shrink it, which end when rondo's communicator does */
    _Atomic int ending;     /* set before an abort reads `inside` and `busy`; read after either was incremented */
    _Atomic int result;     /* ncclResult_t of the first failure in the background, which stays */
    _Atomic uint64_t calls; /* operations so far, for log lines */
    int begun;              /* the stream of its first operation has been asked, see op_settle */
    int pending;            /* its creation is not over (nc_lock) */
    int dropped;            /* it was aborted before that, so the job frees it (nc_lock) */
    rondo_comm_t making;    /* rondo's, while that is created; else NULL (nc_lock) */
    _Atomic int revoked, finalized, suspended;
    _Atomic int complete; /* it is finalized, and no operation was cut short: another rank's end is no error any more */
    struct nc_user_op *ops;
    struct nc_registration *registrations;
    struct nc_bounce *asides;
    rondo_unique_id_t grow_id; /* that ncclCommGetUniqueId has made, for this rank's next grow */
    int has_grow_id;
    char error[512]; /* for ncclGetLastError */
};

/* Under this lock either the job publishes its communicator, or an abort drops it. */
extern pthread_mutex_t nc_lock;

/* Check that the communicator exists, and that an operation may be called on it. Errors name `call`. */
ncclResult_t nc_comm_valid(ncclComm_t comm, const char *call);
ncclResult_t nc_comm_ready(ncclComm_t comm, const char *call);
/* Returns true if it has been revoked and may be split or shrunk. */
bool nc_comm_rests_revoked(ncclComm_t comm);
bool nc_comm_busy(ncclComm_t comm); /* returns true if something is under way in the background */
ncclComm_t nc_comm_new(int rank, int nranks, int device, const nc_config_t *config);
/* Called when rondo's communicator has been created, or NULL if that failed. If the object has been aborted in the
 * meantime, this ends the communicator. */
ncclResult_t nc_comm_made(ncclComm_t comm, rondo_comm_t rondo, const char *call, ncclResult_t result);
void nc_comm_free(ncclComm_t comm); /* frees the object, when rondo's communicator has ended */
void nc_comm_wait(ncclComm_t comm); /* waits until it is neither inside nor busy */
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
    NC_RECV,
    NC_PUT_SIGNAL,
    NC_SIGNAL,
    NC_WAIT_SIGNAL
} nc_what_t;

/* What a collective's own config says of it (per_call.c). */
typedef struct nc_said {
    uint64_t tag;                         /* the user's; 0: there is none */
    const struct nc_selection *selection; /* of algorithms (selection.h); NULL: none */
    rondo_cuda_event_t event;             /* NULL: none */
    bool has_budgets;
    int blocks, cta_policy; /* as rondo_resources_next has them */
} nc_said_t;

/* One operation, as data. */
typedef struct nc_op {
    nc_what_t what;
    rondo_type_t type;
    rondo_op_t op;
    struct nc_user_op *user_op; /* NULL: `op` is used */
    int root;                   /* or the peer */
    const void *send;
    void *recv;
    size_t count;
    ncclComm_t comm;
    rondo_stream_t stream;
    struct nc_bounce *bounce; /* of an alltoall in place; NULL: it needs none */
    nc_said_t said;
    /* One-sided operations. */
    rondo_window_t window;
    size_t offset;
    int signal, context;
    unsigned flags;
    rondo_wait_desc_t *waits; /* freed with the operation */
    int nwaits;
    bool stalled; /* its stream stalls in its place: the communicator has failed */
} nc_op_t;

/* A call that is not an operation and may wait for other ranks. Of several, those that use one communicator share a
 * thread, the others have one of their own. */
typedef struct nc_job {
    struct nc_job *next;
    ncclResult_t (*run)(struct nc_job *job);
    int creates; /* `comm` is new, and is freed if its creation fails and the caller waits */
    int shrinks; /* `parent`, or splits it when it has been revoked: a rank that does not come to it holds it up,
                    whatever is done to the parent but its end */
    const char *call;
    ncclComm_t comm;     /* that is created or used; NULL: a split without a color */
    ncclComm_t parent;   /* NULL: there is none */
    ncclComm_t *newcomm; /* of a creation: set to NULL if it fails */
    int blocking;
    rondo_unique_id_t id;
    int has_id;             /* of a grow */
    rondo_unique_id_t *ids; /* of a creation by several */
    int number[2], *list;   /* creation: ids; split: color, key; grow: ranks, rank; shrink: flags, entries of `list` */
    void *buffer;
    size_t bytes;
    ncclWindow_t *window;
    struct nc_registration *registration;
    ncclResult_t result;
    pthread_t thread;
    int started;
} nc_job_t;

bool nc_group_has(ncclComm_t comm);                       /* returns true if the open group has a call on it */
bool nc_group_holds(ncclComm_t parent, const char *call); /* that call, which makes a communicator from `parent` */
/* Returns `result`. If it is an error, the open group fails with it: for the calls whose errors NCCL's groups have,
 * which are those that a group defers. Others that fail, and that a program may try in vain, harm no group. */
ncclResult_t nc_group_check(ncclResult_t result);
ncclResult_t nc_group_op(nc_op_t *op);    /* takes ownership of what it refers to */
ncclResult_t nc_group_job(nc_job_t *job); /* copies the job and takes ownership of `list` and `ids` */
void nc_job_forget(nc_job_t *job); /* frees its ids, and wipes them: in them is the secret by which a rank may join */

/* communicators.c: what a creation returns that NCCL_ALGO or NCCL_PROTO forbid, at the end of its group as in NCCL. */
ncclResult_t nc_comm_refused(nc_job_t *job);
rondo_result_t nc_op_run(const nc_op_t *op); /* operations.c */
void nc_call_config(nc_said_t said);         /* what a config says of this thread's calls from now on */

/* ---- operations in place that rondo does not have in place ---- (bounce.c) */

/* Called before nc_op_run and outside a group of rondo. It may replace `send` by a copy, which is kept until
 * nc_bounce_release. */
rondo_result_t nc_bounce_copy(nc_op_t *op);
void nc_bounce_simulate(nc_op_t *op); /* for an estimate, which reads nothing: as if there were a bounce buffer */
void nc_bounce_release(const nc_op_t *op);
void nc_bounce_free_all(ncclComm_t comm); /* called before rondo's communicator ends */

/* ---- operators ---- (redop.c) */

/* Finds the op for a call and counts the call as a user, until nc_user_op_put. Returns NULL if there is none. */
struct nc_user_op *nc_user_op_get(ncclComm_t comm, ncclRedOp_t op);
void nc_user_op_put(ncclComm_t comm, struct nc_user_op *op);
/* Sets rondo's op for this run, which reads a device scalar now; nc_user_op_end releases it. */
rondo_result_t nc_user_op_begin(ncclComm_t comm, struct nc_user_op *op, rondo_op_t *number);
void nc_user_op_end(ncclComm_t comm, struct nc_user_op *op, rondo_op_t number);
void nc_user_op_free_all(ncclComm_t comm);

/* memory.c: rondo's window behind one of NCCL's; NULL: it is none of this communicator, is not symmetric, or, on a
 * device, the ranks have not mapped it. */
rondo_window_t nc_window_of(ncclComm_t comm, ncclWindow_t win);
rondo_result_t nc_onesided_run(const nc_op_t *op); /* onesided.c: passes a one-sided operation to rondo */

void nc_registration_end_all(ncclComm_t comm); /* memory.c: called before rondo's communicator ends */
void nc_registration_free_all(ncclComm_t comm);

int nc_type(ncclDataType_t type, rondo_type_t *to); /* operations.c: returns 0, or -1 if there is no such type */

#endif
