/* rondo: collective communication for codes that mpirun launches.
 *
 * This header is the manual. It compiles alone, as C11 and as C++17, with neither CUDA nor MPI installed. Fifteen
 * lines that use it stand in README.md; rondo_mpi.h makes a communicator from an MPI_Comm.
 *
 * WORDS
 *   A communicator joins `nranks` ranks, numbered 0 to nranks-1. A rank is a process, or a thread with a communicator
 *   of its own. A root is the rank that has, or gets, what the others do not. A block is one rank's part of a buffer.
 *
 *   Counts and displacements are in elements of the given type, never in bytes, and are size_t: beyond 2^31 is fine,
 *   and zero is legal everywhere. A NULL buffer is legal where no element of it is read or written.
 *
 *   A communicator is a host communicator (buffers in ordinary memory) or a CUDA communicator (buffers in device
 *   memory). That is decided when it is made, alike on all ranks. Device pointers on a host communicator, and
 *   pageable host pointers on a CUDA one, are RONDO_ERR_INVALID_ARGUMENT.
 *
 * WHAT A CALL PROMISES
 *   Completion. On a host communicator an operation is complete when its call returns; inside a group, when the
 *   outermost rondo_group_end returns, or when the request of rondo_group_submit is done. On a CUDA communicator it
 *   is enqueued on the stream. "Complete" means here: the result stands in this rank's buffers, and all of them are
 *   the caller's again. It says nothing of other ranks, rondo_barrier aside.
 *
 *   Buffers belong to rondo from the call until the operation is complete: do not write what it reads, do not touch
 *   what it writes. Count and displacement arrays, configs, scalars and names are copied before the call returns.
 *   Buffers need no alignment, not even the type's own; 64 bytes is fastest.
 *
 *   Order. All ranks of a communicator call its collective operations in the same order with fitting arguments, and
 *   each pair of ranks its sends and receives. Operations take effect in the order of the calls. Every operation may
 *   wait for the other ranks; none promises to.
 *
 *   Overlap. recv == send, exactly, is in place where the call says so; any other overlap of what is read with what
 *   is written is an error when it is seen, and gives wrong data when it is not.
 *
 *   Equal results. Every rank gets the bitwise same result of an allreduce, and the same again for equal arguments on
 *   an equal communicator. Sums of rounded numbers depend on the order of summing, which may differ between
 *   operations, sizes, and numbers of ranks.
 *
 *   Errors. Every call returns rondo_result_t. Outputs are set on success alone. What is wrong with an argument is
 *   found before anything happens: the communicator is unharmed and may be used on, on this rank; the others wait for
 *   this rank until it makes the right call. So it is with RONDO_ERR_INVALID_USAGE and RONDO_ERR_UNSUPPORTED. All
 *   other failures of an operation fail the communicator: the pending and every later call on it return what went
 *   wrong first, on every rank. But a rank hears of it only when it waits, or within a second: until then a call that
 *   finds here all that it needs of the others succeeds. After a failure these make sense: rondo_comm_shrink, _revoke,
 *   _abort, _destroy, _get_error, _status and _memory_now, rondo_explain, rondo_last_error, rondo_dump, what gives
 *   memory back, and the calls that ask for rank, size and device. The contents of output buffers of a failed operation
 *   are undefined. RONDO_DEBUG=warn (the default) also prints each error once, where it was found.
 *
 *   Threads. Calls on different communicators from different threads are independent. Calls on one communicator are
 *   the caller's to order: one at a time, each to its end. rondo_comm_abort, _revoke, _get_error, _status,
 *   rondo_explain, rondo_timeout_extend and rondo_work_query may be called from any thread at any time. A group
 *   belongs to the thread that started it. A thread must not be cancelled (pthread_cancel) in a call: rondo_comm_abort
 *   would wait for it for ever. On host communicators a stack of 64 KB is enough for every call; on GPUs CUDA may need
 *   more.
 *
 *   Processes. A forked child may make communicators of its own; between nodes only if its parent had none of that kind
 *   at the fork, else that is RONDO_ERR_UNSUPPORTED. On its parent's, and on the parent's requests, every call is
 *   RONDO_ERR_INVALID_USAGE there and does nothing, also from an exit handler that it inherited; the parent and the
 *   other ranks go on. A process may end by exit without rondo_comm_destroy, or with another thread in a call: it hangs
 *   nowhere, and ranks that are still in an operation with it get RONDO_ERR_REMOTE. An exit handler may destroy. No
 *   signal handler may call anything here, but rondo_dump_fd with RONDO_DUMP_RECORD. rondo installs no signal handler,
 *   but the one of RONDO_DUMP_SIGNAL, and leaves nothing behind when it is killed, but the files that variables ask
 *   for: its shared memory has no name. Where the program has closed descriptor 0, 1 or 2, a file that takes nothing is
 *   in its place during creation and as long as a communicator of several nodes exists.
 *
 *   Devices. cudaDeviceReset, of any device, is allowed only while the process has no CUDA communicator, and none was
 *   aborted, or destroyed after a failure, whose kernels may still run: in the streams that it used nothing is left.
 *
 * The environment tunes it: `rondo-info --env` lists all variables. They are read when a communicator is made; a
 * value that is not allowed is RONDO_ERR_INVALID_ARGUMENT there.
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

/* ---- types ---- */

typedef struct rondo_comm *rondo_comm_t;
typedef struct CUstream_st *rondo_stream_t;    /* a cudaStream_t or CUstream; on a host communicator it must be NULL */
typedef struct CUevent_st *rondo_cuda_event_t; /* a cudaEvent_t or CUevent */
typedef struct rondo_registration *rondo_registration_t;
typedef struct rondo_request *rondo_request_t;
typedef struct rondo_window *rondo_window_t;

/* The place where the ranks of one communicator meet, and the secret by which they know each other. Who holds these
 * bytes may join: carry them by a channel that you trust, never write them to a log. */
typedef struct {
    unsigned char bytes[128];
} rondo_unique_id_t;

typedef enum {
    RONDO_SUCCESS = 0,
    RONDO_IN_PROGRESS,          /* not over yet: ask again (config.blocking = 0) */
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
    RONDO_ERR_MISMATCH, /* ranks called different operations, or a message has two lengths */
    RONDO_ERR_NAN       /* RONDO_NAN_CHECK=fail: the input of a call has a value that is not a number */
} rondo_result_t;

/* Elements as C lays them out. FLOAT8_E4M3 is OCP's "fn" format: no infinity, the largest number is 448. */
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

/* One of the operators below, or one made by rondo_op_create_premulsum. Which makes sense for which type (any other
 * pair is RONDO_ERR_INVALID_ARGUMENT at the call):
 *
 *   SUM PROD         all but pairs. Integers wrap. float16, bfloat16 and float8 are accumulated in float32 where a rank
 *                    adds several at once; what goes on to another rank is rounded to the type, and may overflow on
 *                    the way. A finite float8 result that is too large becomes the largest finite number. On BOOL: "or"
 *                    and "and".
 *   MIN MAX          integers and floating types. A NaN wins: any NaN in, NaN out (a quiet one raises no exception).
 *   AVG              integers: the sum, divided by nranks, truncating toward zero (the sum may wrap). Floating and
 *                    complex types: each contribution is scaled by 1/nranks as it is loaded, then summed. float16,
 *                    bfloat16 and float8 are scaled and summed in float32, between ranks, too, and rounded to the type
 *                    once, at the end; so is PREMULSUM. Its messages have twice or four times the bytes of a SUM's.
 *   BAND BOR BXOR    integers and BOOL, bit by bit.
 *   LAND LOR LXOR    integers and BOOL: not zero is true; the result is 0 or 1.
 *   MINLOC MAXLOC    pairs {value, index}: the least (greatest) value with its index; on a tie the lowest index. A NaN
 *                    value wins, as in MIN and MAX.
 */
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

#define RONDO_DEVICE_AUTO (-2) /* the current CUDA device if the program uses it (cudaSetDevice), else host memory */
#define RONDO_DEVICE_HOST (-1)

/* What a call does whose communicator has failed. */
enum {
    RONDO_ON_ERROR_RETURN, /* it returns the error: the program decides */
    /* It says in the log what has happened and ends the process with status 134, from which mpirun takes down the rest.
     * For programs that do not look at results, and would go on with wrong data. Ranks in no call go on until then. An
     * error that leaves the communicator as it is, such as a wrong argument, is returned. */
    RONDO_ON_ERROR_EXIT,
    /* It revokes all other communicators of this process, too, as rondo_comm_revoke does but without waiting for calls
     * that other threads make on them, and returns the error. Those fail with RONDO_ERR_ABORTED and a sentence that
     * says because of what, on other ranks with RONDO_ERR_REMOTE that names this rank; so no rank waits on in one of
     * them for a rank that has given up. Communicators that are being made, and those made later, are not concerned. */
    RONDO_ON_ERROR_REVOKE_ALL,
    /* The time limit fails nothing: when it is over, the log says who holds the call up, RONDO_HOOK_STALLED is called,
     * and the call waits on, without a limit. Any other failure is returned. On CUDA communicators as
     * RONDO_ON_ERROR_RETURN. */
    RONDO_ON_ERROR_REPORT,
    /* RONDO_ON_ERROR_REVOKE_ALL, and then RONDO_ON_ERROR_EXIT: so ranks that wait for this one in other communicators
     * hear at once, and that it has given up rather than that it died. */
    RONDO_ON_ERROR_REVOKE_EXIT
};

/* What is done about values that are no numbers in the memory on the host that calls read (doc/monitor.md). */
enum {
    RONDO_NAN_IGNORE, /* nobody looks */
    RONDO_NAN_WARN,   /* the log says it, once for each kind of call of a communicator */
    RONDO_NAN_FAIL    /* the communicator fails with RONDO_ERR_NAN, on all ranks */
};

/* How many of a GPU's multiprocessors operations may take from the program's own kernels (doc/gpu.md, "By copy
 * engines"). The last two promise what RONDO_CUDA_COPY does (rondo_comm_register), but of registered buffers alone;
 * what is not registered is served, too. */
enum {
    RONDO_CTA_POLICY_DEFAULT, /* as many as the quickest way takes */
    /* Fewer, where that costs a tenth of the time at most: by protocol simple, or by copy engines. */
    RONDO_CTA_POLICY_EFFICIENCY,
    /* None but for a moment, wherever copy engines can do it: allgather, alltoall, broadcast, gather and scatter
     * between GPUs of one node that reach each other. All other operations take what they take by default. */
    RONDO_CTA_POLICY_ZERO
};

/* How a communicator shall be. Initialise it with RONDO_CONFIG_INIT, then set what matters; NULL in its place means all
 * defaults. It may grow: `size` tells an older caller's from a newer one's, and what the older one lacks has its
 * default. The caller keeps it and may free it when the call returns. `device`, `blocking` and `timeout_ms` should be
 * alike on all ranks; host or CUDA must be, else creation fails on all of them and says which ranks differ.
 * RONDO_DEVICE_AUTO is, in a split or shrink, the device of the communicator that the new one is made from; of a thread
 * that has gone to no device, in a program that has, RONDO_ERR_INVALID_USAGE. */
typedef struct {
    size_t size; /* sizeof(rondo_config_t) of the caller: a smaller one is an older caller */
    int device;  /* RONDO_DEVICE_AUTO, RONDO_DEVICE_HOST or a CUDA device number */
    /* 1: calls return when they are done. 0: creation, split, shrink and finalize return RONDO_IN_PROGRESS and go on
     * behind the caller, who asks rondo_comm_get_error of the new communicator until it gives RONDO_SUCCESS or an
     * error; of the old one, too, which a split, a shrink or a finalize uses meanwhile. Until then every other call on
     * the two is RONDO_ERR_INVALID_USAGE, but rondo_comm_abort ends what is under way from any thread, and
     * rondo_comm_destroy waits for it. What could not be made is still to be destroyed or aborted; its sentence is
     * rondo_last_error's. The config of a split or shrink decides for it; with NULL it is as blocking as the old
     * communicator. Operations on host memory do their work before they return in any case, and what shall overlap goes
     * through rondo_group_submit; operations on CUDA communicators are enqueued. */
    int blocking;
    const char *name; /* printed in every message of this communicator; copied, at most 63 characters; NULL: a number */
    /* An operation that waits longer than this many milliseconds for a live rank fails with RONDO_ERR_TIMEOUT. 0:
     * never, but who holds it up is said in the log (RONDO_STALL_MS). -1: RONDO_TIMEOUT_MS. A dead rank ends every wait
     * at once in any case. Of a submitted group only time in calls is a wait, and up to 10 ms between two tests. */
    int64_t timeout_ms;
    int on_error; /* RONDO_ON_ERROR_*; -1: RONDO_ON_ERROR, and in a split or shrink what the old communicator has */
    /* The same as timeout_ms until the communicator's first call (or group) on this rank is over: other ranks may be
     * compiling then, or reading files. 0: never, -1: RONDO_TIMEOUT_FIRST_MS. Not on CUDA communicators. */
    int64_t first_timeout_ms;
    int64_t stall_ms; /* after so long a wait it is said in the log who holds it up; 0: never, -1: RONDO_STALL_MS */
    /* For one-sided operations: the number of signals that each rank has for each other one in each context, 1 to 4096,
     * and the number of contexts, 1 to 64. -1: 16 signals, 1 context. Alike on all ranks, which the first
     * rondo_window_create compares; until then they take no memory, and then nranks * contexts * signals * 8 bytes of
     * each rank. Not on CUDA communicators. A split or shrink does not hand them on. */
    int signals, contexts;
    /* The multiprocessors that one launch of the communicator may take, 1 to 1024; 0: all, -1: RONDO_CUDA_BLOCKS. Alike
     * on all ranks, which the creation compares. A split or shrink does not hand it on, nor the next one. */
    int blocks;
    /* UCX's transports between nodes, as RONDO_UCX_TLS names them, at most 63 characters; copied; NULL: RONDO_UCX_TLS.
     * A communicator of one node uses none. */
    const char *network;
    /* RONDO_CTA_POLICY_*; -1: the variable RONDO_CTA_POLICY. Alike on all ranks, which the creation compares. Not on
     * host communicators. A split or shrink does not hand it on. */
    int cta_policy;
    /* The class of this communicator's traffic between nodes, 0 to 255: the byte that switches sort packets by (type of
     * service, RoCE's and InfiniBand's traffic class). -1: RONDO_TRAFFIC_CLASS. Alike on all ranks, which the creation
     * compares. Where the transport has no such thing, as tcp, a line of the log says so at INFO. A split or shrink
     * does not hand it on. */
    int traffic_class;
    /* The multiprocessors that one launch of the communicator takes at least, 1 to 1024, as far as its length has work
     * for them; 0: it takes what it needs, -1: RONDO_CUDA_BLOCKS_LEAST. `blocks` stands above it, and is
     * RONDO_ERR_INVALID_ARGUMENT where both are said here and it is less. What is moved by slices stays below half of
     * the multiprocessors in any case, so that another communicator's launch fits beside it. Alike on all ranks, which
     * the creation compares. Not on host communicators. A split or shrink does not hand it on. */
    int blocks_least;
    /* The proxy channels of a rank, 1 to 8: threads, each with connections of its own to every rank of other nodes,
     * which share what GPUs send between nodes. Each takes pinned memory (rondo_comm_memory). 0: by cores, -1:
     * RONDO_PROXY_THREADS. Alike on all ranks, which the creation compares. Not on host communicators. A split or
     * shrink does not hand it on. */
    int net_channels;
    /* RONDO_NAN_*; -1: RONDO_NAN_CHECK. Ranks may differ: each looks at what it reads itself. Not on CUDA
     * communicators. A split or shrink does not hand it on. */
    int nan_check;
} rondo_config_t;

#define RONDO_CONFIG_INIT                                                                                              \
    {                                                                                                                  \
        sizeof(rondo_config_t), RONDO_DEVICE_AUTO, 1, NULL, -1, -1, -1, -1, -1, -1, -1, NULL, -1, -1, -1, -1, -1       \
    }

/* ---- questions ---- */

/* The library's version, as RONDO_VERSION is the header's: 10000 major + 100 minor + patch. Any thread, any time. */
int rondo_version(void);

/* Bytes of an element, padding of pairs included; 0 if there is no such type. */
size_t rondo_type_size(rondo_type_t type);

/* A few words for a result; never NULL. Static. */
const char *rondo_result_string(rondo_result_t result);

/* The last error's sentence: what was wrong, what it was, what can be done. Never NULL; "" if there was none. With a
 * communicator: its own last error, whichever thread met it; the text is the communicator's and changes with its next
 * error. With NULL: this thread's last error, also those without a communicator; it changes with this thread's next
 * error. */
const char *rondo_last_error(rondo_comm_t comm);

/* Gives a variable of `rondo-info --env` a value for this process, as if it stood in the environment, which stands
 * above it. NULL or "" takes it back. Communicators made from then on see it; RONDO_DEBUG_FILE counts until the first
 * message. A name that does not exist and a value that is not allowed are RONDO_ERR_INVALID_ARGUMENT. Any thread. */
rondo_result_t rondo_setting_set(const char *name, const char *value);

/* Writes into `text`, of `bytes` bytes with the 0 at its end, what a communicator made now would read for the variable:
 * from the environment, or what rondo_setting_set has given it, or its default ("" where that is "none"). A name that
 * does not exist, a value that is not allowed and a `text` that is too short (512 suffice) are
 * RONDO_ERR_INVALID_ARGUMENT. Any thread. */
rondo_result_t rondo_setting_get(const char *name, char *text, size_t bytes);

/* The name of the variable number `index`, from 0 on, in the order of `rondo-info --env`; NULL behind the last. Static.
 * Any thread, any time. */
const char *rondo_setting_name(int index);

/* ---- communicators ---- */

/* Makes an id, on one rank; all ranks then hand the same bytes to rondo_comm_create. How they get there is the caller's
 * affair (rondo_mpi.h: one MPI_Bcast). The process that makes an id must be rank of the communicator, or stay alive
 * until it is made: a thread of it serves as the meeting place, and ends when all ranks have come, or
 * RONDO_CREATE_TIMEOUT_MS after the first one; with an id that nobody uses it ends with the process. RONDO_IFACE
 * chooses the network interface, RONDO_PORTS the ports. An id serves one communicator. On failure the error is returned
 * and also written into the id: carry it all the same, and every rank's rondo_comm_create returns the error instead of
 * waiting. Not collective. Any thread. */
rondo_result_t rondo_unique_id_create(rondo_unique_id_t *id);

/* Joins: collective over nranks callers, each with a rank of its own from 0 to nranks-1, an equal nranks and an equal
 * id. Returns when all have come and are connected. A process may join with several ranks, from one thread each. Ranks
 * that do not come are waited for RONDO_CREATE_TIMEOUT_MS and then named (RONDO_ERR_TIMEOUT), for nobody can know that
 * one has died before it came; one that dies while it joins ends the creation at once. A rank that is claimed twice or
 * is out of range, different nranks, an id of another version or one that was used before: every rank that came gets an
 * error that names both sides, none hangs. Ranks that can pass each other a descriptor share memory; the others are
 * connected by the network (RONDO_ERR_UNSUPPORTED where none is built in). Too little shared memory is
 * RONDO_ERR_NO_MEMORY with the numbers. `*comm` is the caller's until rondo_comm_destroy or rondo_comm_abort. */
rondo_result_t rondo_comm_create(rondo_comm_t *comm, int nranks, const rondo_unique_id_t *id, int rank,
                                 const rondo_config_t *config);

/* The same with `nids` ids instead of one, for very many ranks: each of them, in a process of its own at best, is the
 * meeting place of nranks / nids consecutive ranks, which the process need not have, and of its connections to about
 * 2 log2(nids) others. About as many ids as the root of nranks are enough. From 1 to nranks; all ranks give the same
 * ids in the same order, else every rank gets RONDO_ERR_INVALID_ARGUMENT, as for different nranks. Ranks listen on the
 * interface of their id, also where all are on one host. */
rondo_result_t rondo_comm_create_scalable(rondo_comm_t *comm, int nranks, const rondo_unique_id_t *ids, int nids,
                                          int rank, const rondo_config_t *config);

/* All ranks in one process, one call: comms[i] becomes rank i of `ndevices`. devices[i] is its device as in the config;
 * NULL: config's for all. Each of them wants a thread of its own, or one thread that puts the calls of all ranks into
 * one group: a single call for one rank would wait for the others for ever. On failure none is made. */
rondo_result_t rondo_comm_create_all(rondo_comm_t *comms, int ndevices, const int *devices,
                                     const rondo_config_t *config);

/* What a communicator takes of one rank's memory, in bytes. Not counted are tables of some hundred bytes for each rank,
 * what CUDA and UCX take for themselves, and memory of the user's own (rondo_mem_alloc, registered buffers). */
typedef struct {
    size_t size;        /* sizeof(rondo_memory_t) of the caller, who sets it; all else is filled */
    uint64_t device;    /* memory of the GPU */
    uint64_t pinned;    /* host memory pinned for the GPU; of what ranks share, this rank's part */
    uint64_t shared;    /* this rank's part of the memory, not pinned, that the ranks of its node share */
    uint64_t network;   /* for messages to other nodes: address space, whose pages come when they are first used */
    uint64_t suspend;   /* of `device`: what rondo_comm_suspend would give back */
    uint64_t suspended; /* not in `device`: what it has given back, and rondo_comm_resume takes again */
} rondo_memory_t;

/* Where the ranks of a communicator that is yet to be made will be. Initialise it with RONDO_SHAPE_INIT, then set what
 * is so. It may grow: `size` is as in rondo_config_t. */
typedef struct {
    size_t size; /* sizeof(rondo_shape_t) of the caller */
    int nranks;
    int nnodes; /* over which the ranks are spread */
    int most;   /* ranks on the fullest node; 0: nranks / nnodes, rounded up */
    int local;  /* ranks on the node of the rank that is asked about; 0: as many as on the fullest */
    int cores;  /* that the ranks of one node may use together; 0: those that this process may. Asked for only on the
                   way to other nodes from GPUs, where RONDO_PROXY_THREADS is not set */
    int p2p;    /* 0: the GPUs of a node do not reach each other's memory; 1: they do; -1: as RONDO_P2P allows */
} rondo_shape_t;

#define RONDO_SHAPE_INIT                                                                                               \
    {                                                                                                                  \
        sizeof(rondo_shape_t), 1, 1, 0, 0, 0, -1                                                                       \
    }

/* What a communicator would take, without making it: with the config and the variables as they are now, exactly what
 * rondo_comm_memory_now says when it has been made, if the shape is right. Where nodes have different numbers of ranks,
 * a rank of a CUDA communicator may take less than this: one that has no rank of its place on every other node. And
 * between nodes it takes RONDO_GDR_SCRATCH bytes of device memory more if it finds that the network reads and writes
 * the GPUs' memory; only where RONDO_GDR is 1 they are counted in. Local, asks no other rank, and allocates nothing;
 * config.device decides as in a creation. Any thread. */
rondo_result_t rondo_comm_memory(const rondo_config_t *config, const rondo_shape_t *shape, rondo_memory_t *memory);

/* What `comm` holds now on this rank; after a failure, too. On a CUDA communicator like any call the caller's to order
 * among those on it: what has to be copied before it goes to the network may make it more. Memory that is kept for the
 * process's next communicator is not counted: an ended one has left it, or windows of GPUs that turned out not to reach
 * each other (RONDO_P2P=0 makes none). Local. */
rondo_result_t rondo_comm_memory_now(rondo_comm_t comm, rondo_memory_t *memory);

/* Divides: collective over all ranks of `comm`. Ranks of one color (0 or more) become a communicator, numbered by
 * ascending key, ties by their rank in `comm`. A negative color joins none: *newcomm is NULL. The caller's process
 * keeps `comm`, which is as it was. A config that is refused is refused before anything is exchanged: that rank may
 * call again, and the others wait for it. When a rank of `comm` dies meanwhile, whatever its color, `comm` has failed,
 * and each of the others has its new communicator or gets, within a second, RONDO_ERR_REMOTE that names it. */
rondo_result_t rondo_comm_split(rondo_comm_t comm, int color, int key, rondo_comm_t *newcomm,
                                const rondo_config_t *config);

/* Adds ranks: collective over all ranks of `comm`, and over new ones. Ranks 0 to m-1 of the new communicator, which has
 * `nranks` of them, are the m ranks of `comm`, which keep their numbers and call with rank -1; m to nranks-1 are the
 * new ones, each of which calls with NULL for `comm`, with a rank of its own of those, and with the id. The id is a new
 * one of rondo_unique_id_create, made by any of all these ranks; how it gets to the new ones is the caller's affair. Of
 * the ranks of `comm` one at least gives it, too, best the one that has made it; the others may give NULL, and learn it
 * from that one. (If it is not the maker, and dies before that, the new ranks wait for RONDO_CREATE_TIMEOUT_MS.)
 *
 * `comm` is as it was, serves on, and may be grown again; so may what has come of it. On devices, too: what is under
 * way goes on, graphs that were captured and windows stay those of `comm`, and the new communicator has none yet. A
 * config of NULL is, for its ranks, like `comm`; they stay on its devices, and all new ranks come with a device, or
 * with host memory as `comm` is. New ranks that do not come are waited for RONDO_CREATE_TIMEOUT_MS and then named
 * (RONDO_ERR_TIMEOUT); `comm` is unharmed then, and so it is when a new rank dies. When a rank of `comm` dies
 * meanwhile, `comm` has failed, and all others, the new ones too, get RONDO_ERR_REMOTE that names it. Different nranks,
 * a number that two claim or that is out of range, and different ids in `comm`, or none, are RONDO_ERR_INVALID_ARGUMENT
 * on all ranks, with a sentence that names both sides. A rank of `comm` with a rank other than -1, or an nranks that
 * adds none, is refused before anything is exchanged: it may call again, and the others wait for it. */
rondo_result_t rondo_comm_grow(rondo_comm_t comm, int nranks, const rondo_unique_id_t *id, int rank,
                               rondo_comm_t *newcomm, const rondo_config_t *config);

/* Leaves ranks out. What a failed communicator is for: it asks nothing of the ranks left out, dead or not, and `comm`
 * may have failed. The new ranks are numbered in the order of the old. `comm` stays the caller's, to be destroyed.
 *
 * With nexcluded RONDO_SURVIVORS (excluded is not looked at) the callers find out among themselves who is left: called
 * by every rank that lives. Ranks whose process has ended, that have aborted or destroyed `comm`, or whose host has not
 * answered for five seconds are left out, also those that die while this goes on; ranks that live are waited for
 * RONDO_CREATE_TIMEOUT_MS and then named (RONDO_ERR_TIMEOUT). All of them get the same group or the same error. If the
 * network falls apart, each part makes a communicator of its own. Afterwards `comm` cannot be shrunk again.
 *
 * With a list: called by every rank that is not in `excluded` (ranks of `comm`, in any order, alike everywhere), and by
 * none that is. Ranks that call with other lists do not join each other: RONDO_ERR_TIMEOUT after
 * RONDO_CREATE_TIMEOUT_MS, or an error at once that says so. When one of the ranks that stay dies too, the shrink fails
 * on the others, or what it has made does: leave both out of `comm` then, all of you, by another shrink of it. Nobody
 * waits for one that died before it came, if a rank of its node, or one that it exchanged records with at creation, is
 * left to see that; else for RONDO_CREATE_TIMEOUT_MS. After an error it may be called again, with the same list or a
 * longer one, however often each rank has tried before: what counts is that all call with the same list in the end. */
#define RONDO_SURVIVORS (-1)
rondo_result_t rondo_comm_shrink(rondo_comm_t comm, const int *excluded, int nexcluded, rondo_comm_t *newcomm,
                                 const rondo_config_t *config);

/* Waits until everything that was enqueued or submitted on `comm` is complete, and returns how it went. The
 * communicator stays, and must still be destroyed. */
rondo_result_t rondo_comm_finalize(rondo_comm_t comm);

/* The same question without the wait. *done = 0: something is not complete. *done = 1: everything is, or the
 * communicator has failed with the result that is returned. What a rank that has all its results still sends between
 * nodes counts, too. Makes what progress it can. */
rondo_result_t rondo_comm_test(rondo_comm_t comm, int *done);

/* Frees the communicator, its connections, its operators, and the memory that it shares: not collective in the sense
 * that it waits for nobody, but every rank must call it (or abort) once. What is idle is freed at once; what is
 * enqueued or submitted is waited for first; after an error it never waits. What was sent before arrives at those who
 * still receive it, however late. Between nodes a thread sees to long messages that a rank has yet to read. A process
 * that ends meanwhile waits for that rank in exit, for up to two seconds; who comes later still, or finds a process
 * that was ended by _exit or a signal, may have lost them. Of more than 16 communicators whose messages are unread the
 * oldest have no longer than that, either. Who waits for more of this rank, on its node or another, gets
 * RONDO_ERR_REMOTE. A process that ends without it is reported as dead to ranks that still wait for it. Registrations
 * and memory of this communicator must be given back before. `comm` is no longer valid, whatever is returned. */
rondo_result_t rondo_comm_destroy(rondo_comm_t comm);

/* Ends it now, from any thread, also while another thread is in a call on `comm`: that call returns RONDO_ERR_ABORTED,
 * and rondo_comm_abort waits for it to leave (well under a second), then frees everything as rondo_comm_destroy does.
 * So does a call that another thread is just about to make, a group that holds operations of it, and a request that
 * still waits for it; what a group or a request has on other communicators goes on, and abort does not wait for that.
 * The other ranks' pending and later calls return RONDO_ERR_REMOTE and name this rank. After it `comm` is not valid in
 * any thread: what is called later on is the caller's mistake. What a stream has not come to, because something of the
 * program's is in front of it there, is not waited for either, nor are copies that go on for longer than 0.3 s; a
 * destroy after an error does likewise. What is left will begin and leave, so its buffers must stay until the stream
 * has passed it; device memory of rondo_mem_alloc's among them is then given back by cudaFree. */
rondo_result_t rondo_comm_abort(rondo_comm_t comm);

/* Ends what is under way, as rondo_comm_abort does and from any thread, but keeps the communicator: failed, with
 * RONDO_ERR_ABORTED, for rondo_comm_shrink, rondo_comm_destroy or rondo_comm_abort. The call that was under way has
 * left when this returns. The other ranks' pending and later calls return RONDO_ERR_REMOTE and name this rank. */
rondo_result_t rondo_comm_revoke(rondo_comm_t comm);

/* Gives back what the communicator has of device memory while it is not used, and takes it again: for programs that
 * need the memory for something else meanwhile. Both are collective and wait for the other ranks, for
 * RONDO_CREATE_TIMEOUT_MS and also with blocking = 0; not inside a group; a thread that has several ranks cannot call
 * for them one after the other.
 *
 * rondo_comm_suspend first waits until everything enqueued or submitted is complete. Then all of rondo_memory_t's
 * `suspend` is free for the device's other users, and waits, as cudaFree does, for what else runs on the device: let
 * no operation of another communicator be under way that waits for ranks which are yet to call this. Until
 * rondo_comm_resume every call on `comm` is RONDO_ERR_INVALID_USAGE, but rondo_comm_rank, _size, _device, _status,
 * _memory_now, _get_error, rondo_mem_free, revoke, abort and destroy, which need no resume before. What stays: memory
 * of the program's (rondo_mem_alloc, windows, registrations, which all are valid afterwards), on several nodes what the
 * network knows, and pinned and shared host memory; so a host communicator gives back nothing, but its calls are
 * refused all the same.
 *
 * The memory lies elsewhere afterwards, so graphs that were captured before could not be launched: where operations of
 * `comm` have ever been captured, on any rank, rondo_comm_suspend is RONDO_ERR_INVALID_USAGE on every rank and changes
 * nothing. If a rank's device has too little memory, rondo_comm_resume is RONDO_ERR_NO_MEMORY on every rank,
 * which may call it again. All other failures, a rank that dies or is late among them, fail the communicator. */
rondo_result_t rondo_comm_suspend(rondo_comm_t comm);
rondo_result_t rondo_comm_resume(rondo_comm_t comm);

/* What went wrong, without waiting and without a message: RONDO_SUCCESS while all is well, RONDO_IN_PROGRESS while
 * something asked for with blocking = 0 is under way, else the result that every call returns. A dead rank shows here
 * without any call. Any thread, any time before destroy or abort. */
rondo_result_t rondo_comm_get_error(rondo_comm_t comm, rondo_result_t *error);

/* Who holds the communicator up, in a sentence: "rank 3 (n1:4711) is late, by 1 call: ...", "rank 3 (n1:4711) is
 * stopped ...", "nobody is waited for", or "unknown: ..."; after a failure, its sentence. It is what an operation says
 * that has waited for its time limit or for RONDO_STALL_MS, and what `rondo-ras who` says. `text` has room for `bytes`;
 * 1536 are enough, and one that is cut ends with "...". Takes 0.7 seconds, and up to 0.3 more for each other node
 * that is asked.
 * Any thread, any time before destroy or abort, also while a call waits. */
rondo_result_t rondo_explain(rondo_comm_t comm, char *text, size_t bytes);

/* How far this rank is with a communicator. Calls are counted from when they begin and again when they end, which on a
 * CUDA communicator is when they have been enqueued, or captured. */
typedef struct {
    size_t size; /* sizeof(rondo_status_t) of the caller, who sets it; all else is filled */
    uint64_t collectives, collectives_ended;
    uint64_t sends, sends_ended;
    uint64_t recvs, recvs_ended;
    uint64_t bytes; /* of all of them (one-sided calls that waited, on GPUs all, count as sends and receives), each by
                       its longer buffer; with RONDO_MONITOR=0 there may be some missing */
    /* The rank that the call which goes on waits for, and for how many milliseconds; -1 and 0: for none, or not long
     * enough to be seen, or RONDO_MONITOR=0. */
    int waits_for;
    int64_t waits_ms;
    /* "allreduce, collective number 17 (1024 float32, sum)": the call that goes on, or else the last collective; "": no
     * call was made. With RONDO_MONITOR=0 its number alone. */
    char call[160];
} rondo_status_t;

/* Without waiting and without a message; any thread, any time before destroy or abort, also while a call waits. Of a
 * communicator that has failed it is what was reached. For logs of how a job gets on; rondo_explain says who is to
 * blame. */
rondo_result_t rondo_comm_status(rondo_comm_t comm, rondo_status_t *status);

/* Writes down the last calls of this process, as its record has them (doc/monitor.md), for rondo-ras analyse and
 * convert: into the new file `path`, or with RONDO_DUMP_NODE those of all processes of this node with which it shares
 * communicators, into files of the folder `path`, which may be there. NULL: a name of its own in RONDO_DUMP_DIR
 * (RONDO_ERR_INVALID_USAGE where that is not set). Files that rondo names are in the formats of RONDO_DUMP_FORMAT.
 * Nothing is written over. Looks twice, and so takes 0.7 seconds, and what the files take. RONDO_ERR_UNSUPPORTED: there
 * is no record. Any thread, any time. */
#define RONDO_DUMP_NODE 1
rondo_result_t rondo_dump(const char *path, int flags);

/* Writes this process's to an open descriptor: as RONDO_DUMP_JSON the same text, or as RONDO_DUMP_RECORD the record
 * itself, which `rondo-ras --dir` reads in a file whose name ends in .rondo-record. The latter may be called in a
 * signal handler, also one of a crash: it takes no lock and makes no message. */
#define RONDO_DUMP_RECORD 0
#define RONDO_DUMP_JSON 1
rondo_result_t rondo_dump_fd(int fd, int format);

/* What a hook can be called for. */
enum {
    RONDO_HOOK_FAILED,     /* a call has found that its communicator has failed; `text` says why */
    RONDO_HOOK_STALLED,    /* a call has waited for RONDO_STALL_MS, and again, or is in a circle; `text` says who holds
                              it up */
    RONDO_HOOK_DUMPED,     /* last calls have been written down; `text` says where */
    RONDO_HOOK_COMM_MADE,  /* a communicator has been made */
    RONDO_HOOK_COMM_ENDED, /* one was destroyed or aborted */
    /* An operation on host memory is over, of a group, too; `text` says which, `result` how. Of communicators that are
     * made while there is such a hook; their calls then take the longer way of one that is not repeated. */
    RONDO_HOOK_COMPLETED,
    RONDO_NUM_HOOKS
};

typedef struct {
    size_t size; /* sizeof(rondo_event_t) of the library */
    int kind;    /* RONDO_HOOK_* */
    rondo_result_t result;
    int rank, nranks; /* in the communicator; -1 and 0: it is about none */
    char comm[64];    /* its name */
    char text[512];
} rondo_event_t;

typedef void (*rondo_hook_fn)(const rondo_event_t *event, void *arg);

/* Has `call` called with `arg`, by a thread of the library's own, each time that this happens to a communicator of this
 * process: one after the other, in the order in which it has happened. No operation waits for it: at most 256 events
 * wait, and how many are dropped is said in the log, as is that a hook takes more than five seconds. It must not call
 * rondo: that is RONDO_ERR_INVALID_USAGE, but rondo_dump, rondo_dump_fd, rondo_work_query and questions without a
 * communicator. `event` is rondo's. A forked child has no hooks. A process has at most 64; then RONDO_ERR_NO_MEMORY.
 * Any thread. */
rondo_result_t rondo_hook(int kind, rondo_hook_fn call, void *arg, uint64_t *handle);

/* Takes it back: it is not called any more, also not for what has happened before. Waits until it is not running. Any
 * thread, not a hook. */
rondo_result_t rondo_unhook(uint64_t handle);

/* One call of an operation: a value that needs not be freed, and may be copied, handed to other threads, and kept. All
 * zero, as with RONDO_MONITOR=0, it is of no call. */
typedef struct {
    uint64_t words[2];
} rondo_work_t;

enum {
    RONDO_WORK_UNKNOWN,   /* the process has no record, or another communicator has taken the place of this one in it */
    RONDO_WORK_ENQUEUED,  /* it waits for calls before it; on a CUDA communicator more is not known */
    RONDO_WORK_STARTED,   /* it is under way. So is a message that may be over, until all of its direction are */
    RONDO_WORK_COMPLETED, /* its result stands. Whether the buffers are the caller's again, the request says */
    RONDO_WORK_FAILED     /* `result` says how */
};

/* What is known of a call. What is not known is 0, `waits_for` and the steps -1. */
typedef struct {
    size_t size;           /* sizeof(rondo_work_info_t) of the caller, who sets it; all else is filled */
    int state;             /* RONDO_WORK_* */
    rondo_result_t result; /* of one that has failed */
    uint64_t number;       /* among this rank's collectives, sends or recvs of the communicator, from 1 on */
    uint64_t count, bytes, tag;
    int64_t begun_ns, ended_ns; /* CLOCK_MONOTONIC; 0, too, for calls that repeated the one before them */
    int waits_for;              /* the rank that it waits for, */
    int64_t waits_ms;           /* for how many milliseconds, */
    int64_t step, steps;        /* and in which step of its schedule */
    char call[160];             /* as in rondo_status_t */
    /* Of a collective of host memory, by what it runs; of equal calls one behind the other, by what the first did. */
    char algo[32], proto[16];
    /* Of one that is not over, or on a GPU not known to be: for how many milliseconds it may wait for a live rank, as
     * it is at this moment; 0: for ever, or it is over. */
    int64_t limit_ms;
} rondo_work_info_t;

/* This rank's last call on the communicator that has begun: inside a group those before it. Of no call (all zero) if
 * there was none. For the thread that calls on `comm`. */
rondo_result_t rondo_work_last(rondo_comm_t comm, rondo_work_t *work);

/* The i-th operation, from 0 on, of those of a request that are on host communicators, in the order in which they were
 * called: its collectives and messages. One-sided operations are not counted, because what a group puts, gets and
 * signals has no entry in the record, nor are messages of a rank to itself. */
rondo_result_t rondo_request_work(rondo_request_t request, int i, rondo_work_t *work);

/* What is known of it. Never waits, any thread, any time, also when the communicator has been destroyed: it is read in
 * this process's record (doc/monitor.md), whose ring holds RONDO_MONITOR_EVENTS calls that differ from the one before.
 */
rondo_result_t rondo_work_query(rondo_work_t work, rondo_work_info_t *info);

/* Makes the progress of its communicator until this operation is complete, and returns how it went; its request must
 * still be tested or waited for. If that takes longer than `timeout_ms` it returns RONDO_ERR_TIMEOUT, and the operation
 * goes on: nothing has failed. -1: as long as the communicator's own limit allows. Like any call it is the caller's to
 * order among those on the communicator. On CUDA communicators RONDO_ERR_UNSUPPORTED: wait for the stream. */
rondo_result_t rondo_work_wait(rondo_work_t work, int64_t timeout_ms);

/* From the next call on, an operation that waits longer than `timeout_ms` milliseconds for a live rank fails, as the
 * config's timeout_ms says: 0: never, -1: RONDO_TIMEOUT_MS. For phases of a program that differ: a first call that
 * waits for ranks that compile or read files, and the ones behind it that should not wait at all. Local, so the ranks
 * should do it alike. On a CUDA communicator it holds for the waits that begin from now on, in whatever was enqueued.
 */
rondo_result_t rondo_timeout_set(rondo_comm_t comm, int64_t timeout_ms);

/* Adds `timeout_ms` milliseconds once to whatever limits the waits of this communicator have: of what is under way, and
 * of what is called until the first call that begins from now on is over (where several calls are under way, until as
 * many are over). For a rank that knows that the others will be late now, because it writes a checkpoint. Where there
 * is no limit, nothing changes. Called again before that, it adds up. Local; any thread, any time before destroy or
 * abort. Not on CUDA communicators (RONDO_ERR_UNSUPPORTED). */
rondo_result_t rondo_timeout_extend(rondo_comm_t comm, int64_t timeout_ms);

/* Gives this thread's next operation, on whatever communicator, a limit of its own instead of the communicator's; or
 * the next group as a whole, up to the end of its request if it has one. 0: never, -1: none of its own. On CUDA
 * communicators it changes nothing. */
rondo_result_t rondo_timeout_next(int64_t timeout_ms);

/* Forces algorithms and protocols for this thread's next collective, on whatever communicator: `algo` and `proto` are
 * what RONDO_ALGO and RONDO_PROTO would be for it, with all that these may say (doc/environment.md) and the same
 * errors: RONDO_ERR_UNSUPPORTED where what is forced cannot serve the call, which then has no effect, and
 * RONDO_ERR_INVALID_ARGUMENT of a word that is none, here for `proto` and at the call for `algo`. NULL: what the
 * variable says stays; "": nothing is forced. All ranks force the same for a call; those of host communicators that do
 * not get RONDO_ERR_MISMATCH, as with RONDO_CHECK=1 those of CUDA ones do. In a group it holds for the next collective
 * that is called in it, so each may have its own. Sends and receives are not forced, and leave it to what comes after
 * them; nor are the messages of an all-to-all between GPUs, whose protocol is the communicator's. Both NULL: nothing is
 * forced after all. A process may force 255 different pairs of texts. Calls that force nothing are as fast as ever, and
 * one that forces what an equal one has forced before finds its plan ready. */
rondo_result_t rondo_force_next(const char *algo, const char *proto);
/* The same, but where it cannot serve the call, the choice is rondo's. */
rondo_result_t rondo_prefer_next(const char *algo, const char *proto);

/* Budgets of this thread's next collective, on whatever communicator, in place of the communicator's: `blocks` is the
 * most multiprocessors that a launch of it may take, 1 to 1024, if that is fewer than the communicator may take;
 * `cta_policy` is RONDO_CTA_POLICY_*. -1: the communicator's. All ranks must give the same for a call; RONDO_CHECK=1
 * compares it. What goes by messages between GPUs (all-to-all without copy engines, counts by rank) takes what the
 * communicator may, and so do the parts of a call that go between nodes. Host communicators take no multiprocessors:
 * it changes nothing there. It holds for the same calls as rondo_force_next, and counts among its 255. */
rondo_result_t rondo_resources_next(int blocks, int cta_policy);

/* Has an event recorded when the kernel of this thread's next collective has been launched: when all of its blocks have
 * begun (CUDA's launch completion event, a best effort of CUDA's: it may come later, at the kernel's end at the
 * latest). Work in another stream that waits for it finds the multiprocessors taken that the collective needs, and runs
 * beside it. The event says that what came before in the stream is over. It says nothing of the collective's buffers,
 * and waits for no other rank.
 *
 * It is made with cudaEventDisableTiming, on the communicator's device, not for other processes, and stays the
 * caller's, who keeps it until what waits for it, and graphs with the call, are over. A collective of several kernels
 * records it at the first one. One whose data no kernel moves (copy engines, a single rank, no elements) records it in
 * the stream before it begins. In a capture the event is one of the capture, as if cudaEventRecord had recorded it
 * there. In a group the collective has a launch of its own, at the group's end. It holds for the same calls as
 * rondo_force_next, but need not be alike on all ranks. NULL: no event after all. On a host communicator the collective
 * is refused with RONDO_ERR_UNSUPPORTED. */
rondo_result_t rondo_launch_event_next(rondo_cuda_event_t event);

/* Marks this thread's next operations, until it is called again: an iteration, a phase, whatever tells a call from
 * those that are like it; 0, as at first: no mark. The tag is part of what all ranks must call alike, in collectives:
 * ranks that call with different tags get RONDO_ERR_MISMATCH, so one that has left out one of many equal calls is found
 * at its next one if tags count up. Collectives of host communicators alone are compared so (RONDO_CHECK=1: of all);
 * for messages and on CUDA communicators the tag is what records, `rondo-ras` and dumps say of the call. An operation
 * in a group has the tag of when it was called. Splits have none. With the same tag, equal calls are as fast as
 * without. */
rondo_result_t rondo_tag(uint64_t tag);

/* Changes what `on_error` of the config has said, from the next call on. With NULL it holds for communicators that are
 * made from now on in this process and whose config says -1, in place of RONDO_ON_ERROR. Local. */
rondo_result_t rondo_on_error(rondo_comm_t comm, int on_error);

/* This rank's number, the number of ranks, the device (RONDO_DEVICE_HOST, -1: host memory). */
rondo_result_t rondo_comm_rank(rondo_comm_t comm, int *rank);
rondo_result_t rondo_comm_size(rondo_comm_t comm, int *size);
rondo_result_t rondo_comm_device(rondo_comm_t comm, int *device);

/* For programs whose peers need something else of this rank while it waits here, such as the progress of another
 * communication library: an operation of this host communicator, a group or a request that waits calls `call` with
 * `data` now and then, in its own thread, every few times that it gives its core away, and never when nothing has to be
 * waited for. `call` must return soon, and must not call rondo. NULL takes it back. CUDA communicators do not call it.
 * Local; split and shrink do not hand it on. */
rondo_result_t rondo_comm_on_wait(rondo_comm_t comm, void (*call)(void *data), void *data);

/* Promises that `bytes` bytes at `buffer` stay where they are until rondo_comm_deregister, so that operations on any
 * part of them may be faster. Both are collective: all ranks call, each with its own buffer and length (NULL and 0
 * for none), and none inside a group. The buffer stays the caller's; it may be freed when all ranks have deregistered
 * and what they had enqueued is over; to free it earlier is an error that cannot be seen. On GPUs, where every rank is
 * a process of its own, rondo_comm_register waits for the other ranks and for what is enqueued; rondo_comm_deregister
 * waits for nobody. No result changes.
 *
 * RONDO_CUDA_COPY (doc/gpu.md) goes further: there what an allgather (send; in place recv), an alltoall (send) or
 * a broadcast (recv) is copied from must lie at the same offset of the same registration on all ranks. It is
 * RONDO_ERR_INVALID_ARGUMENT where it is not registered, and RONDO_ERR_MISMATCH, which fails the communicator, where
 * it lies elsewhere on another rank. RONDO_CTA_POLICY_EFFICIENCY and _ZERO ask for the same of buffers that are
 * registered, and where no rank's is, the data goes through memory of rondo's own. A graph that holds such an operation
 * must not be launched any more when the buffer has been deregistered. */
rondo_result_t rondo_comm_register(rondo_comm_t comm, void *buffer, size_t bytes, rondo_registration_t *reg);
rondo_result_t rondo_comm_deregister(rondo_comm_t comm, rondo_registration_t reg);

/* Memory that peers can map (host: page aligned, on huge pages where allowed; zeroed): an ordinary buffer for every
 * call. Free it with rondo_mem_free, on the communicator that made it, before that is destroyed. Not collective.
 * rondo_mem_free of NULL does nothing. */
rondo_result_t rondo_mem_alloc(void **buffer, size_t bytes, rondo_comm_t comm);
rondo_result_t rondo_mem_free(void *buffer, rondo_comm_t comm);

/* ---- operations ----
 *
 * Below, n is nranks, B[r] the block r of a buffer of n blocks of `count` elements, and "everywhere" means on every
 * rank. count, type, op and root must be alike everywhere unless the call says otherwise. On host communicators a
 * difference is RONDO_ERR_MISMATCH on all ranks (with RONDO_MONITOR=0 only if RONDO_CHECK=1). On CUDA communicators
 * RONDO_CHECK=1 finds it; without it a difference is undefined, at best a hang until the timeout. `stream` is NULL on a
 * host communicator. All of them return, beside what is said at each:
 *   RONDO_ERR_INVALID_ARGUMENT   comm not a communicator, type, op, root or peer out of range, op without sense for the
 *                                type, a NULL buffer, overlap, a count beyond memory (a negative number, most likely)
 *   RONDO_ERR_UNSUPPORTED        RONDO_ALGO or RONDO_PROTO force what cannot serve this call; nothing else is tried
 *   RONDO_ERR_NO_MEMORY          the operation could not begin; the communicator has failed, or the others would
 *                                wait for this rank for ever
 *   RONDO_ERR_REMOTE, _TIMEOUT, _ABORTED, _MISMATCH   the communicator has failed: see the top
 */

/* recv[i] = send[i] of rank 0 op ... op send[i] of rank n-1, everywhere, bitwise the same. Reads `count` elements at
 * send, writes `count` at recv. In place: send == recv. */
rondo_result_t rondo_allreduce(const void *send, void *recv, size_t count, rondo_type_t type, rondo_op_t op,
                               rondo_comm_t comm, rondo_stream_t stream);

/* The same at `root` alone. Elsewhere recv is not touched and may be NULL. In place at the root: send == recv. */
rondo_result_t rondo_reduce(const void *send, void *recv, size_t count, rondo_type_t type, rondo_op_t op, int root,
                            rondo_comm_t comm, rondo_stream_t stream);

/* recv = the root's send, everywhere, at the root too. Reads `count` elements at the root's send; elsewhere send is not
 * touched and may be NULL. In place: send == recv (at the root nothing moves). */
rondo_result_t rondo_broadcast(const void *send, void *recv, size_t count, rondo_type_t type, int root,
                               rondo_comm_t comm, rondo_stream_t stream);

/* recv's B[r] = rank r's send, everywhere: reads `sendcount` elements, writes n * sendcount. In place: send is this
 * rank's own block, recv + rank * sendcount. */
rondo_result_t rondo_allgather(const void *send, void *recv, size_t sendcount, rondo_type_t type, rondo_comm_t comm,
                               rondo_stream_t stream);

/* Blocks of different lengths: rank r's lies at recv + displs[r], recvcounts[r] elements long. Both arrays have n
 * entries and are alike everywhere; displs NULL: packed in rank order. sendcount == recvcounts[rank]. Blocks must not
 * overlap; elements between them are not touched. In place: send is this rank's own block. */
rondo_result_t rondo_allgatherv(const void *send, size_t sendcount, void *recv, const size_t *recvcounts,
                                const size_t *displs, rondo_type_t type, rondo_comm_t comm, rondo_stream_t stream);

/* recv = the reduction of all ranks' B[rank]: reads n * recvcount elements, writes recvcount. In place: recv is this
 * rank's own block, send + rank * recvcount, or send itself (then through memory of rondo's own). */
rondo_result_t rondo_reduce_scatter(const void *send, void *recv, size_t recvcount, rondo_type_t type, rondo_op_t op,
                                    rondo_comm_t comm, rondo_stream_t stream);

/* Blocks of different lengths, packed in rank order; recvcounts has n entries and is alike everywhere. Reads the sum of
 * recvcounts, writes recvcounts[rank]. In place: as for rondo_reduce_scatter. */
rondo_result_t rondo_reduce_scatterv(const void *send, void *recv, const size_t *recvcounts, rondo_type_t type,
                                     rondo_op_t op, rondo_comm_t comm, rondo_stream_t stream);

/* recv's B[r] = rank r's send B[rank]: reads and writes n * count elements. Not in place: send == recv is an error. */
rondo_result_t rondo_alltoall(const void *send, void *recv, size_t count, rondo_type_t type, rondo_comm_t comm,
                              rondo_stream_t stream);

/* Blocks of different lengths: to rank r go sendcounts[r] elements from send + sdispls[r]; from rank r come
 * recvcounts[r] to recv + rdispls[r]. The arrays have n entries and are each rank's own; what r sends to q must be as
 * long as what q expects from r. On a host communicator two lengths of one block are RONDO_ERR_MISMATCH, here and in
 * gatherv and scatterv; but if one of the two is 0, only RONDO_CHECK=1 finds it. displs NULL: packed in rank order. Not
 * in place. */
rondo_result_t rondo_alltoallv(const void *send, const size_t *sendcounts, const size_t *sdispls, void *recv,
                               const size_t *recvcounts, const size_t *rdispls, rondo_type_t type, rondo_comm_t comm,
                               rondo_stream_t stream);

/* recv's B[r] = rank r's send, at the root alone: everybody reads `count` elements, the root writes n * count.
 * Elsewhere recv is not touched and may be NULL. In place at the root: send == recv + root * count. */
rondo_result_t rondo_gather(const void *send, void *recv, size_t count, rondo_type_t type, int root, rondo_comm_t comm,
                            rondo_stream_t stream);

/* recv = the root's send B[rank], everywhere: the root reads n * count elements, everybody writes `count`. Elsewhere
 * send is not touched and may be NULL. In place at the root: recv == send + root * count. */
rondo_result_t rondo_scatter(const void *send, void *recv, size_t count, rondo_type_t type, int root, rondo_comm_t comm,
                             rondo_stream_t stream);

/* Blocks of different lengths: rank r's comes to recv + displs[r] of the root, recvcounts[r] elements long. recv,
 * recvcounts and displs (NULL: packed) are looked at on the root alone. Each sendcount must equal the root's recvcounts
 * of that rank. In place at the root: send is its own block. */
rondo_result_t rondo_gatherv(const void *send, size_t sendcount, void *recv, const size_t *recvcounts,
                             const size_t *displs, rondo_type_t type, int root, rondo_comm_t comm,
                             rondo_stream_t stream);

/* The other way: rank r gets sendcounts[r] elements from send + displs[r] of the root. send, sendcounts and displs
 * (NULL: packed) are looked at on the root alone. Each recvcount must equal the root's sendcounts of that rank. In
 * place at the root: recv is its own block. */
rondo_result_t rondo_scatterv(const void *send, const size_t *sendcounts, const size_t *displs, void *recv,
                              size_t recvcount, rondo_type_t type, int root, rondo_comm_t comm, rondo_stream_t stream);

/* A message from one rank to another, `count` elements of `type` on both sides. Messages of a pair in one direction
 * match in the order in which they are sent and received; one of no elements is a message, too. On a host communicator
 * the lengths of both sides are compared before a byte is copied: if they differ, the communicator fails with
 * RONDO_ERR_MISMATCH on every rank, which names both lengths. A sender whose call is over by then gets it from one of
 * its next calls, within a second. A send may wait for its receive there, so two ranks that both send first may wait
 * for ever: put both calls into a group, where no order matters between different peers or directions. A message to
 * oneself (peer == this rank) must be in one group with its receive, else it is RONDO_ERR_INVALID_USAGE.
 * On CUDA communicators a message of no elements is none. Lengths are compared there too: within a node before the
 * launch of the rank that comes later, but not behind a captured message; between nodes when the bytes come. */
rondo_result_t rondo_send(const void *buffer, size_t count, rondo_type_t type, int peer, rondo_comm_t comm,
                          rondo_stream_t stream);

rondo_result_t rondo_recv(void *buffer, size_t count, rondo_type_t type, int peer, rondo_comm_t comm,
                          rondo_stream_t stream);

/* Returns on no rank before every rank has called it. */
rondo_result_t rondo_barrier(rondo_comm_t comm, rondo_stream_t stream);

/* ---- one-sided operations ----
 *
 * A rank writes into another rank's memory, reads it, and signals, without a matching call there. What CUDA
 * communicators have of it is said at the end. The names and arguments are those of NCCL's ncclPutSignal, ncclSignal
 * and ncclWaitSignal, so that they can be translated.
 *
 *   window    Memory of every rank that others may access: rondo_window_create. Each rank has a part, of a length of
 *             its own. Offsets are in bytes from the part's beginning.
 *   signal    A counter of the target, one for each origin, context and signal number: what rank 3 signals is not what
 *             rank 4 signals. Signals belong to the communicator, not to a window. rondo_wait_signal takes as many as
 *             it has waited for, and the rest counts for the next wait; nothing else takes any.
 *   context   Operations of one rank in one context take effect in the order of its calls, as far as is said below.
 *             Between contexts there is no order. Context 0 is always there.
 *
 * MEMORY MODEL. "Before" is the happens-before of C11, over all ranks; what a rank does in its own program is in
 * program order, and before is transitive.
 *   1. Signal. All puts and signals of rank a to rank b in a context come before a signal of a to b in this context
 *      that is called after them: rondo_signal, or that of rondo_put_signal, whose own data it also releases. It is
 *      before the return of the rondo_wait_signal of b that takes it. So what b reads then is what a has put, or newer;
 *      and what a has written to its own memory before, and b gets.
 *   2. Flush. When rondo_flush(b) returns on a, all that a has put to b, in windows of any kind, stands in b's memory,
 *      and all its signals are counted: it comes before everything that any rank does after it has learned, in any way,
 *      that the flush has returned. Flushes are sequentially consistent with each other: if a puts x, flushes and gets
 *      y, and c puts y, flushes and gets x, one of them gets what the other has put; and two ranks that each get twice,
 *      with a flush between, see the puts of two others to the same rank in one order.
 *   3. Fence. Puts of a to b before rondo_fence(b) come before puts of a to b after it. It waits for nothing where the
 *      puts keep their order anyway. A rank that sees the second put in its memory, by an atomic load with acquire,
 *      sees the first.
 *   4. Local completion. When a put returns (in a group: when the group is complete) its buffer is the caller's. The
 *      data need not have arrived. A get is complete when it returns, and comes before what follows it.
 *   5. Words. A put of one element of 1, 2, 4 or 8 bytes, whose buffer and target are aligned to that, is one store,
 *      and such a get is one load, into and from windows that rondo has allocated. Others may be seen in part.
 * Undefined, because nothing orders it: two puts to overlapping bytes, of different ranks or without a fence between; a
 * put and a get, or a put and an access of the target, to overlapping bytes of which neither comes before the other,
 * but for words. Nothing is promised of two puts without a signal, flush or fence.
 *
 * PROGRESS. Within a node puts, gets and signals need nothing of the target: they are stores into memory that is shared
 * (windows that rondo has allocated, ranks of one process), or copies by the kernel (RONDO_CMA; memory of the user's).
 * Between nodes, and within one where the kernel refuses, they are messages, and the target does its part when one of
 * its threads is in a call that waits, on any host communicator of its process, or in a one-sided call: a put then
 * returns when its bytes have left, but a flush, a get, and a put behind much that the target has not taken, wait for
 * that. Who computes for long calls something now and then: a rondo_flush to itself is enough.
 *
 * Errors: RONDO_ERR_INVALID_ARGUMENT where the peer, the signal or the context does not exist, the window is not of
 * this communicator, or offset and count leave the peer's part, before anything is sent; RONDO_ERR_INVALID_USAGE before
 * the communicator's first rondo_window_create, which sets up signals, too. A dead peer, an abort and the timeout end
 * every wait, as everywhere. `flags` is 0. A peer may be the rank itself.
 *
 * In a group all of these are allowed but rondo_window_create and _destroy. They begin when the group does, and run
 * beside its other operations: those of one context in the order of the calls, and each when the one before it is
 * complete, so a put behind a rondo_wait_signal waits for it.
 *
 * ON CUDA COMMUNICATORS the calls enqueue, as all operations do, and may be captured: what is said above of a return is
 * said there of what follows the call in its stream, and what a rank has done before is what comes before in the
 * stream. Buffers are what the GPU reaches, and stay the call's until the stream has come by. All operations of a
 * communicator run in the order of its calls, whatever streams and contexts they name, so what follows a wait in
 * another stream waits, too; a fence has nothing to do, and words may be seen in part. The ranks are on one node, 16 at
 * most, else RONDO_ERR_UNSUPPORTED. Puts and gets need a window, and so GPUs that reach each other; signals need
 * neither, but two ranks. Of all contexts together the first 512 signals can be used. In a group what comes before its
 * first wait for signals runs before the group's other operations on the communicator, the rest behind them. A wait
 * that fails ends, and the communicator with it; longer puts that are enqueued behind it (from 64 KB on) are made all
 * the same, so memory of a window is the program's again when all ranks have ended the communicator. */
#define RONDO_PEER_ALL (-1) /* of rondo_flush and rondo_fence: every rank */

/* Signals to wait for: `count` of them, from rank `peer`, with this number in this context. */
typedef struct {
    int count;
    int peer;
    int signal;
    int context;
} rondo_wait_desc_t;

/* Collective. Opens `bytes` bytes at `buffer` to all ranks; lengths may differ. Where buffer is NULL, rondo allocates
 * them, zeroed and in shared memory of the node: the quickest. The memory must stay, and be writable, until
 * rondo_window_destroy. `flags` is 0. The first window of a communicator also sets up signals; the first that needs
 * messages makes connections for them, about as many as the communicator has. Fails on all ranks alike. A late rank is
 * waited for as in a collective: timeout_ms, rondo_timeout_set and rondo_timeout_next count.
 *
 * On a CUDA communicator the memory is that of this rank's GPU: allocated and zeroed, or the program's, from cudaMalloc
 * (not from a pool). All ranks must be on one node, 16 at most, with GPUs that reach each other, else
 * RONDO_ERR_UNSUPPORTED; each calls in a thread of its own. */
rondo_result_t rondo_window_create(rondo_comm_t comm, void *buffer, size_t bytes, rondo_window_t *window,
                                   unsigned flags);

/* Collective. Flushes what this rank has put, waits until all ranks have called it, and frees what rondo has allocated.
 * Signals are not touched. It waits for late ranks as rondo_window_create does. rondo_comm_destroy ends windows that
 * are left, without waiting. On a CUDA communicator it waits until what this rank has enqueued is over, and the
 * program's own kernels that use the window must be; what rondo has allocated goes by cudaFree, which waits for
 * whatever runs on the GPU. */
rondo_result_t rondo_window_destroy(rondo_comm_t comm, rondo_window_t window);

/* Where this rank's part lies. Local. */
rondo_result_t rondo_window_buffer(rondo_comm_t comm, rondo_window_t window, void **buffer);

/* Writes `count` elements of `type` from buffer to byte `offset` of the part of `peer`. No order to other puts without
 * fence, flush or signal. */
rondo_result_t rondo_put(const void *buffer, size_t count, rondo_type_t type, int peer, rondo_window_t window,
                         size_t offset, int context, unsigned flags, rondo_comm_t comm, rondo_stream_t stream);

/* The same, then a signal, which releases it and all before it. */
rondo_result_t rondo_put_signal(const void *buffer, size_t count, rondo_type_t type, int peer, rondo_window_t window,
                                size_t offset, int signal, int context, unsigned flags, rondo_comm_t comm,
                                rondo_stream_t stream);

/* The signal alone. */
rondo_result_t rondo_signal(int peer, int signal, int context, unsigned flags, rondo_comm_t comm,
                            rondo_stream_t stream);

/* Waits for all of the `nwaits` kinds of signals, and takes them. Two entries for one signal add up. It may wait for
 * signals in several contexts; in a group it has its place in the order of the first one's. */
rondo_result_t rondo_wait_signal(int nwaits, const rondo_wait_desc_t *waits, rondo_comm_t comm, rondo_stream_t stream);

/* Reads `count` elements of `type` from byte `offset` of the part of `peer` into buffer, behind this rank's own puts to
 * that rank in this context. Returns when they are there. */
rondo_result_t rondo_get(void *buffer, size_t count, rondo_type_t type, int peer, rondo_window_t window, size_t offset,
                         int context, unsigned flags, rondo_comm_t comm, rondo_stream_t stream);

/* Waits until all that this rank has put to `peer`, or to all, stands there: see 2. */
rondo_result_t rondo_flush(int peer, int context, rondo_comm_t comm, rondo_stream_t stream);

/* Orders this rank's puts to `peer`, or to each rank: see 3. */
rondo_result_t rondo_fence(int peer, int context, rondo_comm_t comm, rondo_stream_t stream);

/* ---- kernels of the program's own ----
 *
 * Kernels that read and write windows of other ranks, signal, wait and meet at barriers, without the host:
 * rondo_device.cuh has their part, with the memory model; doc/device.md is the guide. CUDA communicators of one node,
 * of 16 ranks at most, whose GPUs reach each other. Elsewhere these are RONDO_ERR_UNSUPPORTED. */
#define RONDO_DEVICE_RANKS 16

/* Initialise it with RONDO_DEVICE_CONFIG_INIT; NULL in its place means all defaults. Alike on all ranks. It may grow:
 * `size` is as in rondo_config_t. */
typedef struct {
    size_t size;  /* sizeof(rondo_device_config_t) of the caller */
    int barriers; /* at which blocks of the ranks meet, each number independent: 1 to 65536; -1: 1024 */
    /* Of each rank at each other one: 0 to 4096; -1: 16, or 0 where GPUs reach each other by PCIe alone, over which
     * they cannot add to each other's memory: there more than 0 are RONDO_ERR_UNSUPPORTED. */
    int signals;
} rondo_device_config_t;

#define RONDO_DEVICE_CONFIG_INIT                                                                                       \
    {                                                                                                                  \
        sizeof(rondo_device_config_t), -1, -1                                                                          \
    }

/* What a kernel must know to signal and wait: pass it by value. Its fields are for rondo_device.cuh. */
typedef struct {
    size_t size; /* sizeof(rondo_device_t) of the caller, who sets it; all else is filled */
    int32_t rank, nranks;
    uint32_t barriers, signals;
    uint32_t *area[RONDO_DEVICE_RANKS]; /* barriers and signals of each rank */
    uint32_t *own;                      /* what this rank alone counts */
    uint32_t *host;                     /* the communicator's words in pinned memory */
    void *made;                         /* by which rondo_device_destroy knows it */
} rondo_device_t;

/* Where the parts of a window lie for this rank's kernels: pass it by value. Filled by rondo_device_window. */
typedef struct {
    size_t size; /* sizeof(rondo_device_window_t) of the caller, who sets it */
    char *base[RONDO_DEVICE_RANKS];
    size_t bytes[RONDO_DEVICE_RANKS];
} rondo_device_window_t;

/* Collective. Makes barriers and signals for kernels; a communicator may have several sets. Kernels of a rank that use
 * the same barrier, or wait for the same signal, must come one after the other, in one stream or by events: two at once
 * take turns that belong to the other. A `size` that is not this library's is RONDO_ERR_INVALID_ARGUMENT: kernels were
 * compiled with the header of another version. */
rondo_result_t rondo_device_create(rondo_comm_t comm, const rondo_device_config_t *config, rondo_device_t *device);

/* Collective. Waits until all ranks have called it; kernels of this rank that use it must be over. rondo_comm_destroy
 * ends those that are left, without waiting. */
rondo_result_t rondo_device_destroy(rondo_comm_t comm, rondo_device_t *device);

/* Local. Where kernels of this rank find the parts of a window of this communicator. */
rondo_result_t rondo_device_window(rondo_comm_t comm, rondo_window_t window, rondo_device_window_t *view);

/* ---- groups ----
 *
 * Operations between start and end are recorded and begin together at the outermost end: any mix, on any communicators,
 * host or CUDA. No one of them waits for another but where order is promised: collectives of one communicator, and
 * messages of a pair in one direction. So sends and receives may be posted in any order, and one thread may call for
 * several ranks. On a CUDA communicator short collectives that do not need each other's results are launched together;
 * ranks need not group alike. But there all messages of a group come behind its collectives of that communicator,
 * whatever the order of the calls, and the other ranks must have them in that order, too: in a group of their own, or
 * by calling these collectives first. Else data may come into the wrong buffers, or ranks wait for ever. A group
 * belongs to the calling thread. Groups nest: only the outermost end does anything. An empty group is legal. Creating,
 * splitting, destroying or shrinking a communicator inside a group, and registering, are RONDO_ERR_INVALID_USAGE, and
 * the group goes on.
 *
 * A recorded call returns RONDO_SUCCESS, or at once what is wrong with its arguments; in that case the outermost end
 * returns the first such error and nothing of the group has begun. Nor has it when the end itself finds no memory
 * (RONDO_ERR_NO_MEMORY), but that fails the communicators.
 */
rondo_result_t rondo_group_start(void);

/* Outermost: begins everything, returns when all of it is complete on this rank, and then the first error, if any. */
rondo_result_t rondo_group_end(void);

/* Ends the outermost group and does nothing of it, but says what the cost model predicts for it: the sum over each
 * communicator's collectives, the longest of all communicators, in microseconds. On GPUs, what would be launched
 * together is priced as one launch. Where something in the group has no price it returns RONDO_ERR_UNSUPPORTED:
 * messages have none, nor on CUDA communicators blocks of different lengths and what goes between nodes. */
rondo_result_t rondo_group_estimate(double *microseconds);

/* Ends the outermost group too, but returns at once; the group goes on behind `*request`. Buffers stay rondo's until it
 * is done. Host communicators only make progress inside calls: of rondo_request_test or _wait on any request of the
 * communicator, of any operation on it, or while a call on another communicator of the process waits. A call on the
 * communicator in between is ordered behind the group. On error there is no request. */
rondo_result_t rondo_group_submit(rondo_request_t *request);

/* Makes what progress it can and does not wait. *done = 0: not yet. *done = 1: complete, or failed with the result that
 * is returned; the request is then freed and *request is NULL. A NULL *request is done. The thread that calls need not
 * be the one that submitted, but calls on the request's communicators must not run at the same time. A communicator may
 * be destroyed or aborted before its request was asked for: the request then tells how its operations have ended. */
rondo_result_t rondo_request_test(rondo_request_t *request, int *done);

/* The same, to the end. */
rondo_result_t rondo_request_wait(rondo_request_t *request);

/* ---- operators ---- */

/* An operator that multiplies each contribution by a scalar of its own rank as it is loaded, and sums: for `type`,
 * which must have SUM and not be BOOL. `scalar` points to one element of `type`, in host memory (scalar_on_device = 0;
 * it is copied) or device memory (1; it is read when the operation runs and must live until then; CUDA communicators
 * only). Local: other ranks may have other scalars, but must use one too in the same call. It serves `comm` alone,
 * until rondo_op_destroy or the end of `comm`; destroying it does not disturb operations already called. */
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
