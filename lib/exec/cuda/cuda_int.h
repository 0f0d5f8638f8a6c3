/* Internal declarations that the files of the CUDA side share. */
#ifndef RD_EXEC_CUDA_CUDA_INT_H
#define RD_EXEC_CUDA_CUDA_INT_H

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>

#include "exec/cuda/cuda.h"
#include "kernels/launch.h"
#include "exec/cuda/kernel_choose.h"
#include "progress/lengths.h"
#include "progress/signature.h"

/* The call order of one communicator, across streams and captures. */
#define RD_CAPTURES 4 /* that may go on at the same time */

/* A capture as a communicator's operations see it. */
typedef struct rd_captured {
    unsigned long long id;  /* unique as long as the process lives; 0: none */
    cudaGraphNode_t node;   /* the last operation; NULL: none yet */
    cudaGraphNode_t record; /* the node that records the event, always behind `node` */
} rd_captured_t;

typedef struct rd_order {
    cudaEvent_t event;                     /* recorded behind the last operation, also by replays of graphs */
    cudaEvent_t side;                      /* joins the streams of one group */
    unsigned long long stream;             /* id of the last operation's stream; 0: always wait for the event */
    unsigned long long next;               /* id of the stream of the operation being enqueued */
    rd_captured_t capture;                 /* that the last captured operation belongs to */
    rd_captured_t beside[RD_CAPTURES - 1]; /* of those before, the last one first */
    bool captured;                         /* the operation being enqueued is captured */
    uint64_t number;                       /* of the collective being enqueued; 0: none is */
    cudaEvent_t launched; /* is to be recorded when its first kernel has been launched; NULL: none, or it has been */
} rd_order_t;

/* Of a kernel that waits for long. The lock is for the verdict, which a call may ask for. */
typedef struct rd_device_late {
    int64_t due_ms;       /* so long the wait lasts when the next line of the log is due; 0: not known yet */
    struct rd_view *view; /* of the first look; NULL: not yet */
    pthread_mutex_t lock;
    bool named;                /* `text` names a rank, or ranks */
    char text[RD_ERROR_BYTES]; /* the verdict; "": there is none */
} rd_device_late_t;

/* Where a rank is, as it tells the others. */
typedef struct rd_cuda_peer {
    uint64_t process; /* a number that identifies the process */
    uint64_t machine; /* and one that identifies the machine */
    int32_t device;   /* device number in that process */
    int32_t sms;
    char bus[20]; /* PCI address, by which all ranks recognize the same GPU */
} rd_cuda_peer_t;

#define RD_KCHOICES 64 /* cached choices, a power of two */

/* Where each rank stands in rings, chains and trees: ring_order.c. */
typedef struct rd_ring_visits {
    bool is;                               /* false: every rank's place is its number */
    int rank[RD_KRANKS], visit[RD_KRANKS]; /* the rank at each place, the place of each rank */
} rd_ring_visits_t;

/* What the first rank tells the others of it. */
typedef struct rd_ring_offer {
    bool is, given;
    uint8_t rank[RD_KRANKS];
    double gbps, number_gbps;
} rd_ring_offer_t;

/* Which memory of another process a mapping shows. */
typedef struct rd_import_name {
    uint64_t process; /* as in rd_cuda_peer_t */
    uint64_t buffer;  /* RD_DRIVER_BUFFER_ID there; 0: it has none */
} rd_import_name_t;

struct rd_cuda {
    const rd_team_t *team;
    int device;
    bool whole;            /* creation is complete: peers may know the window */
    bool living;           /* counted among the living communicators of the process: see graveyard.c */
    int sharing;           /* ranks on the fullest GPU */
    bool windows;          /* buffers that are not registered go by kernels, whatever RONDO_CUDA_COPY says */
    uint32_t said_kernels; /* collectives of which rd_cuda_say_kernels has spoken, by bits */
    bool lets_in;          /* the last launch lets the next kernel of its stream in; of the outer communicator */
    int beside;            /* ranks of this process on this rank's GPU, including this one */
    uint64_t key;          /* the same on all ranks, different for every communicator: groups launch in its order */
    rd_kcomm_t k;          /* passed to every launch */
    rd_ring_visits_t visits;
    rd_limits_t limits;
    char *window; /* device memory: the whole window, or this rank's own part if GPUs do not reach each other */
    size_t window_bytes;
    size_t shared_bytes; /* bytes of the part that peers see */
    rd_node_t shared;    /* the host memory that holds the windows in that case */
    bool pinned;
    rd_khost_t *host;                      /* NULL: not yet created */
    void *imported[RD_KRANKS];             /* bases to be closed */
    rd_import_name_t imports[RD_KRANKS];   /* and what they are */
    void *scratch;                         /* device memory for the barrier's element */
    struct rd_cuda_window *user_windows;   /* user.h: those of the program's kernels */
    char *over;                            /* copy_over.c: device memory; NULL: not yet */
    bool hastens;                          /* its end waits for nobody: rd_cuda_may_wait */
    rd_kcontrol_t *kept;                   /* suspend_device.c: the window's control words; NULL: not suspended */
    bool was_captured;                     /* operations have been: graphs may have the window's address */
    bool unposted_captured;                /* a graph has a long message that waits for no post: see register.c */
    struct rd_left *left;                  /* graveyard.c: what kernels of the program's may touch behind its end */
    struct rd_left *enqueued;              /* memory that what is enqueued touches, for the end */
    struct rd_remains *remains;            /* its end does not wait for what is enqueued; NULL: it does */
    struct rd_cuda_registered *registered; /* register.c: RD_KREGISTERED entries; NULL: none yet */
    cudaStream_t put_stream;               /* of copy_staging.c; NULL: it does one thing after the other */
    struct rd_proxy_path *path;            /* exec/cuda/proxy/proxy.h; NULL: not needed */
    struct rd_cuda *node_comm; /* exec/cuda/hier/node_comm.c: this node's ranks as a communicator; NULL: not needed */
    struct rd_cuda *parent;    /* of a node communicator: the outer one, whose order and pinned words it uses */
    rd_order_t order;
    rd_cuda_peer_t *peers;              /* of all ranks */
    struct rd_cuda_program *programs;   /* program_cache.c: the programs used so far */
    rd_lengths_ring_t *lengths;         /* of messages, on one node; NULL: not compared here */
    rd_signature_ring_t *signatures;    /* RONDO_CHECK on one node; NULL: off, or a single rank */
    const rd_net_comm_ops_t *net_comms; /* functions that create and end net communicators */
    _Atomic bool patient;               /* stall.c: another rank's end becomes known later */
    int64_t failed_ms;                  /* stall.c: when the liveness thread has seen the failure; 0: not yet */
    _Atomic int64_t stalled_ms;         /* stall.c: when the first stream was stalled; 0: none is */
    int left_peer;                      /* health_check.c: a rank that has left but was waited for, plus one; 0: none */
    int64_t slow_ms;                    /* health_check.c: when a kernel's long wait was first seen; 0: none waits */
    uint32_t slow_call;                 /* in that call: rd_kcomm_t's */
    int64_t read_ms;                    /* when the kernel's words were last read */
    rd_device_late_t late;              /* device_late.c: what is known of it */
    bool hosted;                        /* the host, too, reaches this device's memory by its addresses */
    uintptr_t known[64];                /* buffer.c: 2 MB pages known to be this device's memory */
    struct {
        rd_wanted_t wanted;
        rd_kchoice_t choice; /* launch.algo NULL: none yet */
    } cache[RD_KCHOICES];
};

/* Returns the rank of number `i` of a communicator, or of a node communicator, which counts the node's ranks alone. */
static inline int rd_cuda_rank_of(const rd_cuda_t *cuda, int i)
{
    return cuda->parent ? cuda->team->node->local[i] : i;
}

/* Reports a failed CUDA call, named by `what`, as an error; `ctx` may be NULL. It does not fail the communicator.
 * Returns the error's code. */
rondo_result_t rd_cuda_error(rd_log_ctx_t *ctx, cudaError_t error, const char *what);

/* rd_device_enter makes the device current, and relaxes the thread's capture mode, so that calls which a capture
 * elsewhere in the process would forbid are allowed. rd_device_leave restores both. */
typedef struct rd_device_before { /* what was current in a thread */
    int device;
    bool known;    /* `context` is */
    void *context; /* not NULL: it may be the program's own, and not the device's primary one; NULL: there was none */
} rd_device_before_t;
typedef struct rd_device_guard {
    int device;
    rd_device_before_t before;
    enum cudaStreamCaptureMode mode;
} rd_device_guard_t;
rd_device_guard_t rd_device_enter(int device);
void rd_device_leave(rd_device_guard_t guard);
/* Lets kernels on `device` reach the plain memory of `other`. */
cudaError_t rd_device_reach(int device, int other);

/* Functions of CUDA's driver, looked up by the first call of rd_driver_find. A pointer is NULL if the driver has no
 * function of that name. They return nonzero on an error. */
typedef int (*rd_driver_range_fn)(unsigned long long *base, size_t *bytes, unsigned long long pointer);
typedef int (*rd_driver_attribute_fn)(void *value, int attribute, unsigned long long pointer);
#define RD_DRIVER_BUFFER_ID 7 /* an attribute: a 64-bit number, different for each allocation of a process */
#define RD_DRIVER_IPC 10      /* an attribute: nonzero if cudaIpcGetMemHandle accepts the memory */
typedef struct rd_driver {
    int (*context)(void **context);
    int (*context_id)(void *context, unsigned long long *id); /* different for each that the process has ever had */
    int (*set_context)(void *context);
    int (*retain)(void **context, int device);
    int (*active)(int device, unsigned *flags, int *active); /* *active: the device has a context */
    rd_driver_range_fn range; /* base and size of the allocation that holds the pointer */
    rd_driver_attribute_fn attribute;
    /* As the runtime's of these names, which call them, in some 35 ns less (order.c). */
    int (*stream_id)(cudaStream_t stream, unsigned long long *id);
    int (*capture_info)(cudaStream_t stream, int *status, unsigned long long *id, cudaGraph_t *graph,
                        const cudaGraphNode_t **deps, const cudaGraphEdgeData **edges, size_t *ndeps);
    int (*event_record)(cudaEvent_t event, cudaStream_t stream);
} rd_driver_t;
extern rd_driver_t rd_driver;
/* Returns the id of the thread's context or, if it has none, of that which the runtime gives it on the device; 0: it is
 * not known. */
uint64_t rd_driver_context(int device);
/* Forgets the contexts of devices that the program has reset, which it may while there is no communicator. */
void rd_driver_contexts_check(void);
/* Returns the number of the allocation that holds the pointer, different for each that the process has ever had, or 0
 * if it is not known. */
uint64_t rd_driver_buffer(const void *pointer);
/* Returns true if the pointer's allocation is no longer the one with this number: a reset of its device ends it. */
bool rd_driver_buffer_gone(const void *pointer, uint64_t number);
bool rd_driver_loaded(void); /* returns true if anything has loaded the driver into this process */
void rd_driver_find(void);

/* Makes a device current and nothing else, for launches; cheap if it is current already. Returns what rd_device_back
 * expects as `before`. */
rd_device_before_t rd_device_go(int device, int before);
void rd_device_return(rd_device_before_t before);
static inline rd_device_before_t rd_device_switch(int device)
{
    int before = device;

    return cudaGetDevice(&before) == cudaSuccess && before != device ? rd_device_go(device, before)
                                                                     : (rd_device_before_t){.device = device};
}

static inline void rd_device_back(rd_device_before_t before, int device)
{
    if (before.device != device)
        rd_device_return(before);
}

/* device_late.c, for the liveness thread: a kernel has been seen to wait for that rank, or none waits any more. */
void rd_device_late_check(rd_cuda_t *cuda, int peer, int64_t now_ms);
void rd_device_late_forget(rd_cuda_t *cuda);
/* A kernel's time limit is over: the communicator fails, with what is known. Any thread. */
rondo_result_t rd_device_late_timeout(rd_cuda_t *cuda, int peer);

/* stall.c. Lets stalled streams go when their time is over. */
void rd_stall_poll(rd_cuda_t *cuda);

#define RD_WORD_BYTES 64 /* bytes of a communicator's words in pinned memory, on a page that many share */
/* window.c and, for what communicators leave, graveyard.c. rd_window_layout computes the offsets in k; rd_window_create
 * then allocates the window, and the words in pinned memory. */
void rd_window_layout(rd_cuda_t *cuda, const rd_env_t *env, int sms);
rondo_result_t rd_window_create(rd_cuda_t *cuda);
/* Add what the windows and words of a communicator on `nranks` ranks of one node, all of whose windows they map, would
 * take, or take. */
void rd_window_foresee(const rd_env_t *env, int nranks, bool host_windows, rondo_memory_t *memory);
void rd_window_count(const rd_cuda_t *cuda, rondo_memory_t *memory);
/* Scratch in the window's device memory for the operation that is being enqueued. A rank sends itself nothing by fifos,
 * so those in which it would receive from itself are free. Every rank has as much as the fullest node allows, where it
 * is least. */
char *rd_window_scratch(const rd_cuda_t *cuda);
size_t rd_window_scratch_bytes(const rd_cuda_t *cuda);
/* Frees the device memory, which no peer uses any more, and what has been left of the device's beside. */
rondo_result_t rd_window_give_back(rd_cuda_t *cuda);
/* Leaves the device memory, which no peer uses, to another communicator. */
void rd_window_release(rd_cuda_t *cuda);
/* Leaves memory behind, for whoever may still touch it: `bytes` bytes of this rank's, or, if that is 0, what was
 * imported. It is given back when the last communicator of the process has ended. As soon as nobody touches it,
 * rd_window_left_take may return it, for another one of that length, but not what the program's kernels have used;
 * NULL: there is none. */
typedef enum rd_left_use {
    RD_LEFT_UNUSED,   /* nobody */
    RD_LEFT_ENQUEUED, /* what the communicator has enqueued and will not enqueue more of: it ends */
    RD_LEFT_PROGRAM   /* kernels of the program's, here or of a peer */
} rd_left_use_t;
void rd_window_leave(rd_cuda_t *cuda, void *memory, size_t bytes, rd_left_use_t use);
void *rd_window_left_take(int device, size_t bytes);
size_t rd_window_left_room(void); /* returns how many bytes more may be left, of which nobody frees any before */
/* Frees what has been left of a device's memory and nobody uses. Waits for whatever runs on the device. */
void rd_window_left_free(int device);
/* Unmaps memory that cudaIpcOpenMemHandle has returned, or leaves it mapped, as memory is left: no kernel of the
 * communicator's uses it any more, but unmapping waits for those of all others on the GPU. Returns in rd_window_mapped
 * what has been left so, or NULL. */
void rd_window_unmap(rd_cuda_t *cuda, void *memory, rd_import_name_t name);
void *rd_window_mapped(int device, rd_import_name_t name);
/* Unmaps what has been left so of a process, and waits for whatever runs on the device. */
void rd_window_mapped_close(int device, uint64_t process);
/* cudaIpcOpenMemHandle of memory of that process: what it has allocated in place of memory that it has freed, and that
 * is still mapped here, cannot be mapped before that is unmapped. */
cudaError_t rd_import_open(void **memory, int device, const cudaIpcMemHandle_t *handle, uint64_t process);
/* May the end of the communicator wait for what runs on the GPU, whosever it is? Not behind a failure, nor in an abort
 * of one that is at rest. */
bool rd_cuda_may_wait(const rd_cuda_t *cuda);
/* user_window.c. Leaves the windows behind; the bytes of barriers and signals. */
void rd_user_end(rd_cuda_t *cuda);
uint64_t rd_user_count(const rd_cuda_t *cuda);
/* Returns where the memory in every window begins that slices have, and blocks for copy engines when no kernel of
 * slices runs; and its bytes. */
size_t rd_window_staging(const rd_cuda_t *cuda);
size_t rd_window_staging_bytes(const rd_cuda_t *cuda, const rd_env_t *env);
/* Frees the window, now or when all peers have left. */
void rd_window_free(rd_cuda_t *cuda, rd_node_t *node, rd_control_t *const *controls);

/* window_import.c. What ranks exchange during creation begins with a verdict, and all of them return the first bad one.
 */
typedef struct rd_verdict {
    int32_t result;
    char text[512];
} rd_verdict_t;
void rd_verdict_set(rd_verdict_t *verdict, rondo_result_t result);
rondo_result_t rd_verdicts_exchange(rd_cuda_t *cuda, void *all, size_t each);

/* Collective. */
rondo_result_t rd_import_facts(rd_cuda_t *cuda);
rondo_result_t rd_import_windows(rd_cuda_t *cuda);
/* Creates windows in device memory that all ranks map; sets *host_windows if that is impossible and the windows have
 * been given up. `again`: the communicator has rested, and goes on resting if a rank has no memory. */
rondo_result_t rd_import_device_windows(rd_cuda_t *cuda, bool again, bool *host_windows);
/* Returns the offset of `pointer` within its allocation. */
uint64_t rd_import_offset(const void *pointer);
/* At the end of a communicator; and while it goes on, by a thread that may wait for all that runs on the GPU. */
void rd_import_leave(rd_cuda_t *cuda);
void rd_import_close(rd_cuda_t *cuda);

/* register.c. Returns how many numbers of registered buffers a posted message may name, at least 1; 0: no message is
 * posted. The same on all ranks; whether it is 0 never changes once all ranks have mapped a buffer. */
uint32_t rd_registered_posts(const rd_cuda_t *cuda);
/* Returns a stream that is rarely used; a buffer must have been registered. */
cudaStream_t rd_registered_stream(const rd_cuda_t *cuda);
/* Returns true if every rank is a process of its own and all GPUs reach each other. The same on all ranks. */
bool rd_registered_possible(const rd_cuda_t *cuda);
/* Returns where all ranks have the first registered buffer that contains this buffer of this rank, or NULL if none
 * does. */
const rd_kregistered_t *rd_registered_find(const rd_cuda_t *cuda, const void *buffer, size_t bytes, int *number,
                                           uint64_t *offset);
/* Returns where all ranks have the buffer of that number; NULL: they have not mapped it. */
const rd_kregistered_t *rd_registered_at(const rd_cuda_t *cuda, int number);
void rd_registered_close(rd_cuda_t *cuda);

/* window_host.c. Creates the windows in host memory; collective. */
rondo_result_t rd_window_host_map(rd_cuda_t *cuda);
/* Returns true if no rank of this process pins it any more, so that it has to be unpinned at some time. */
bool rd_window_host_unpin(const char *base);

/* A node communicator has no order of its own: what it does is part of the outer communicator's operations. */
static inline rd_cuda_t *rd_cuda_outer(rd_cuda_t *cuda)
{
    return cuda->parent ? cuda->parent : cuda;
}

/* order.c. Called before and after every operation on a stream. */
rondo_result_t rd_order_create(rd_cuda_t *cuda);
void rd_order_free(rd_cuda_t *cuda);
rondo_result_t rd_order_before(rd_cuda_t *cuda, cudaStream_t stream);
rondo_result_t rd_order_after(rd_cuda_t *cuda, cudaStream_t stream);
/* The event that the next kernel of the operation has to record; NULL: none. rd_order_launched records it in the
 * stream, for an operation that begins with something else. */
cudaEvent_t rd_order_event(rd_cuda_t *cuda);
rondo_result_t rd_order_launched(rd_cuda_t *cuda, cudaStream_t stream);
/* What a launch between the two says of the call that it belongs to: rd_kcomm_t's `call`. */
uint32_t rd_order_call(rd_cuda_t *cuda, bool epoch);
/* Returns true if the stream is captured. An error of the stream is left for the launch to report. */
bool rd_cuda_captured(cudaStream_t stream);
/* Orders the last operation before what is put into the stream from now on. */
rondo_result_t rd_order_behind(rd_cuda_t *cuda, cudaStream_t stream);
/* Orders what is in `from` now before what is put into `to` from now on. */
rondo_result_t rd_order_join(rd_cuda_t *cuda, cudaStream_t from, cudaStream_t to);
/* Two branches within an operation: after rd_order_fork the first one goes into fork->beside; after rd_order_forked the
 * second one goes into `stream`; rd_order_joined joins them. In a capture both branches lie in the one stream, because
 * another stream would belong to the capture until it ends. Outside of captures `at` and `last` are NULL. */
typedef struct rd_fork {
    cudaStream_t stream, beside;
    cudaGraphNode_t at, last; /* captured: the fork, and the first branch's end */
} rd_fork_t;
rondo_result_t rd_order_fork(rd_cuda_t *cuda, cudaStream_t stream, cudaStream_t beside, rd_fork_t *fork);
rondo_result_t rd_order_forked(rd_cuda_t *cuda, rd_fork_t *fork);
rondo_result_t rd_order_joined(rd_cuda_t *cuda, rd_fork_t *fork);

/* occupancy.c. A communicator that is complete and has an order of its own joins, and leaves when it is freed.
 * rd_occupancy_parts returns into how many parts the device is to be divided now, rd_occupancy_part a launch that fits
 * into one of them. */
void rd_occupancy_join(rd_cuda_t *cuda);
void rd_occupancy_leave(rd_cuda_t *cuda);
uint32_t rd_occupancy_parts(const rd_cuda_t *cuda);
/* Is it alone on its device, and may its small kernels let the next one in? */
bool rd_occupancy_alone(const rd_cuda_t *cuda);
rd_klaunch_t rd_occupancy_part(const rd_cuda_t *cuda, const rd_klaunch_t *launch);

/* buffer.c. Returns RONDO_SUCCESS if kernels can reach the buffer, otherwise an error that names `call` and `what`. */
rondo_result_t rd_buffer_check(rd_cuda_t *cuda, const char *call, const char *what, const void *buffer, size_t bytes);
/* Returns true if the host, too, reads and writes the buffer by this address. */
bool rd_buffer_hosts(const rd_cuda_t *cuda, const void *buffer);

/* ring_order.c. rd_ring_order_offer sets what this rank offers; an error is one of a file that the user has named.
 * rd_ring_order_take takes the first rank's, and returns how many times as much as the order by number it carries, at
 * least 1. A node communicator has an order of its own. */
rondo_result_t rd_ring_order_offer(rd_cuda_t *cuda, rd_ring_offer_t *offer);
double rd_ring_order_take(rd_cuda_t *cuda, const rd_ring_offer_t *offer);
/* Returns true if the launch is one by places; then rd_ring_order_apply makes its arguments so. */
bool rd_ring_order_follows(const rd_cuda_t *cuda, const rd_klaunch_t *launch);
void rd_ring_order_apply(const rd_cuda_t *cuda, rd_kwork_t *work);
/* Returns rd_kcomm_t's `call` with the bit that tells whether the launch is by places. */
#define RD_KCALL_VISITS (1u << (RD_KCALL_BITS - 1))
uint32_t rd_ring_order_call(const rd_cuda_t *cuda, uint32_t call, bool visits);
/* Returns how many bits of `call` are the call's number: kernels of this communicator, or of its node, may be by
 * places.
 */
int rd_ring_order_bits(const rd_cuda_t *cuda);
/* Returns whom a kernel with that `call` means by `peer`, a number of the node communicator if there is one. */
int rd_ring_order_peer(const rd_cuda_t *cuda, uint32_t call, int peer);
/* Returns true if what was chosen is to be done block by block, which rd_ring_order_blocks does. */
bool rd_ring_order_divides(const rd_cuda_t *cuda, const rd_klaunch_t *launch);
rondo_result_t rd_ring_order_blocks(rd_cuda_t *cuda, const rd_call_t *call, void *out, size_t gap);

/* collective.c. */
/* RONDO_CHECK within a node: says to the others what this rank calls. Returns RONDO_ERR_MISMATCH if one of them calls
 * something else. A call is compared once, before any of its group is launched. */
rondo_result_t rd_cuda_compare(rd_cuda_t *cuda, const rd_call_t *call);
/* These put work into the stream, in order. */
/* Translates type and operator for the kernels. */
void rd_cuda_op(const rd_cuda_t *cuda, const rd_call_t *call, rd_kreduce_t *reduce);
/* Sets *choice to the kernel that serves the call, and *reduce to its arguments. */
rondo_result_t rd_cuda_choose(rd_cuda_t *cuda, const rd_call_t *call, rd_kreduce_t *reduce, rd_kchoice_t *choice);
/* Sets *in and *out to the elements of each buffer that a collective touches on this rank; by tables: 1. */
void rd_cuda_extents(const rd_cuda_t *cuda, const rd_call_t *call, size_t *in, size_t *out);
/* Returns true if the operation is computed in float32 to its end though the user's type is narrower. */
bool rd_cuda_is_wide(const rd_coll_desc_t *desc);
rondo_result_t rd_cuda_run(rd_cuda_t *cuda, const rd_call_t *call);
/* Runs the collective by this algorithm and protocol, which have a kernel of their own. */
rondo_result_t rd_cuda_run_by(rd_cuda_t *cuda, const rd_call_t *call, const rd_algo_t *algo, rd_proto_t proto);
/* Runs a reduce-scatter by a kernel of one node's ranks, with `gap` bytes between the input's blocks. */
rondo_result_t rd_cuda_reduce_scatter(rd_cuda_t *cuda, const rd_call_t *call, size_t gap);
/* Returns the expected microseconds of a collective; 0 for that of a single rank; a negative number for one that has no
 * price: between nodes, or with counts that differ from rank to rank. */
double rd_cuda_price(rd_cuda_t *cuda, const rd_call_t *call);
/* Returns the part of the price of a call, by the algorithm and protocol of `launch`, that it would have with one
 * element, too. */
double rd_cuda_price_least(rd_cuda_t *cuda, const rd_call_t *call, const rd_klaunch_t *launch);
/* Returns true if a kernel serves the call by what RONDO_ALGO and RONDO_PROTO force. */
bool rd_cuda_follows(rd_cuda_t *cuda, const rd_call_t *call);
/* RONDO_CTA_POLICY_*: the call's own (rondo_resources_next), or the communicator's, as for a message (NULL). */
int rd_cuda_policy(const rd_cuda_t *cuda, const rd_call_t *call);
/* Says once, for users of RONDO_CTA_POLICY=zero, that such a call (NULL: a message) takes multiprocessors. */
void rd_cuda_say_kernels(rd_cuda_t *cuda, const rd_call_t *call);
rondo_result_t rd_cuda_launch(rd_cuda_t *cuda, const rd_klaunch_t *launch, rd_kwork_t *work, cudaStream_t stream);
/* Sets the grid of a kernel that any number of warps may run: one that waits for no other rank. */
void rd_cuda_spread(const rd_cuda_t *cuda, rd_klaunch_t *launch, size_t bytes);
rondo_result_t rd_cuda_copy(rd_cuda_t *cuda, void *to, const void *from, size_t bytes, cudaStream_t stream);
#define RD_COPY_OVER_BYTES ((size_t)4 << 20)
/* The same, but the ranges may overlap: the data then goes through other memory (copy_over.c). */
rondo_result_t rd_cuda_copy_over(rd_cuda_t *cuda, char *to, const char *from, size_t bytes, cudaStream_t stream);
/* Writes the host's data to `offset` in this rank's own memory (k.own), by kernels whose arguments hold the data, so
 * that a graph keeps it. `offset` and `bytes` are multiples of 8. */
rondo_result_t rd_cuda_write(rd_cuda_t *cuda, size_t offset, const void *data, size_t bytes, cudaStream_t stream);

/* fused.c. The calls of a group on one communicator, in their order. rd_fusion_add puts a call into the stream, or
 * keeps it, to be launched together with the next ones; rd_fusion_end launches what is left. A call must live as long
 * as the fusion. If `priced`, nothing is launched: `us` is what it would take, or negative if something has no price.
 */
typedef struct rd_buffer_span {
    uintptr_t begin, end; /* addresses */
} rd_buffer_span_t;
typedef struct rd_fusion {
    rd_cuda_t *cuda;
    const rd_call_t *first;                         /* of those in `work` */
    uint32_t count;                                 /* of these: by cells and by chain */
    rd_buffer_span_t in[RD_KFUSED], out[RD_KFUSED]; /* their buffers */
    rd_buffer_span_t ins, outs;                     /* what holds all of each */
    uint64_t pieces;                                /* of those by chain, in all fifos */
    uint32_t depth;                                 /* pieces in the first fifo */
    bool priced;
    double us;          /* of all launches before this one */
    double least, flow; /* of this one: what its slowest operation takes with no bytes, and the bytes of all */
    rd_kwork_t work;
} rd_fusion_t;
void rd_fusion_begin(rd_fusion_t *fusion, rd_cuda_t *cuda, bool priced);
rondo_result_t rd_fusion_add(rd_fusion_t *fusion, const rd_call_t *call);
rondo_result_t rd_fusion_end(rd_fusion_t *fusion);

/* program_cache.c. Sets *program to what this rank does in a launch of an algorithm from TREE to BINOMIAL. */
rondo_result_t rd_cuda_program(rd_cuda_t *cuda, const rd_klaunch_t *launch, int root, rd_kprogram_t *program);
void rd_cuda_programs_free(rd_cuda_t *cuda);

/* p2p.c: a message of a group; `peer` may be this rank itself. */
typedef struct rd_cuda_message {
    struct rd_cuda_message *next;
    void *buffer;
    size_t bytes;
    cudaStream_t stream;
    int16_t send, peer;
    bool coll; /* of a collective: the peer knows that, too */
} rd_cuda_message_t;

/* Sends and receives all messages of one communicator in one group, by one launch. The list is relinked: `next`
 * changes. */
rondo_result_t rd_messages_run(rd_cuda_t *cuda, rd_cuda_message_t *first);
/* Runs a collective that moves blocks by messages, with or without tables. */
rondo_result_t rd_messages_collective(rd_cuda_t *cuda, const rd_call_t *call);

/* copy_engine.c. Runs a collective that moves blocks by copy engines. */
rondo_result_t rd_copies_collective(rd_cuda_t *cuda, const rd_call_t *call);
rd_copies_way_t rd_copies_way(rd_cuda_t *cuda, const rd_call_t *call);

/* stream_access.c: what is to be enqueued of a one-sided operation. */
typedef struct rd_cuda_access {
    struct rd_cuda_access *next;
    rd_cuda_access_t access;
    const void *from; /* of a put or a get */
    void *to;
    size_t bytes;
    int peer; /* of the signal behind a put, or the signal alone */
    bool signals;
    uint32_t signal;
    cudaStream_t stream;
    int nwaits;
    struct rd_cuda_awaited {
        int peer, count;
        uint32_t signal;
    } waits[];
} rd_cuda_access_op_t;
rondo_result_t rd_access_run(rd_cuda_t *cuda, const rd_cuda_access_op_t *op);

/* cuda_group.c. Record copies of their arguments, for the end of the group. */
rondo_result_t rd_cuda_record(rd_cuda_t *cuda, const rd_call_t *call);
rondo_result_t rd_cuda_record_message(rd_cuda_t *cuda, const rd_cuda_message_t *message);
/* Takes over what malloc has returned. */
rondo_result_t rd_cuda_record_access(rd_cuda_t *cuda, rd_cuda_access_op_t *op);

#endif
