/* What the files of the CUDA side know of each other. */
#ifndef RD_EXEC_CUDA_CUDA_INT_H
#define RD_EXEC_CUDA_CUDA_INT_H

#include <cuda_runtime_api.h>
#include <pthread.h>

#include "exec/cuda/cuda.h"
#include "kernels/launch.h"
#include "exec/cuda/kernel_choose.h"
#include "progress/signature.h"

/* Call order of one communicator, across streams and captures. */
typedef struct rd_order {
    cudaEvent_t event;          /* recorded behind the last operation; by replays of graphs too */
    cudaEvent_t side;           /* joins the streams of one group */
    unsigned long long stream;  /* id of the stream that the last operation went to; 0: wait for the event always */
    unsigned long long next;    /* and of the one that this operation goes to */
    unsigned long long capture; /* the last operation was captured: id; 0: it was not */
    int captured;               /* this one is */
    cudaGraphNode_t node;       /* of that capture: the last operation */
    cudaGraphNode_t record;     /* and what records the event, always behind the last operation */
} rd_order_t;

/* Who is where, as each rank tells it. */
typedef struct rd_cuda_peer {
    uint64_t process; /* a number of the process */
    uint64_t machine; /* and of the machine */
    int32_t device;   /* as that process counts */
    int32_t sms;
    char bus[20]; /* PCI address: the same GPU has the same everywhere */
} rd_cuda_peer_t;

#define RD_CHOSEN 64 /* choices kept, a power of two */

struct rd_cuda {
    const rd_team_t *team;
    int device;
    int whole;    /* made: peers may know the window */
    int living;   /* counted among the communicators of the process: see window.c */
    int sharing;  /* ranks on the fullest GPU */
    int windows;  /* what is not registered goes by kernels, whatever RONDO_CUDA_COPY says */
    int beside;   /* ranks of this process on this one's GPU, itself among them */
    uint64_t key; /* the same on all ranks, different for every communicator: groups launch in its order */
    rd_kcomm_t k; /* what every launch is told */
    rd_limits_t limits;
    char *window; /* device memory: the whole, or where GPUs do not reach each other what is this rank's own */
    size_t window_bytes;
    size_t shared_bytes; /* of what peers see */
    rd_node_t shared;    /* the host memory in which windows lie then */
    int pinned;
    rd_khost_t *host;                      /* NULL: not yet made */
    void *imported[RD_KRANKS];             /* bases to be closed */
    void *scratch;                         /* device memory for the barrier's element */
    struct rd_cuda_registered *registered; /* register.c: RD_KREGISTERED of them; NULL: none yet */
    struct rd_proxy_path
        *path; /* exec/cuda/proxy/proxy.h: ranks are on several nodes, or too many for windows; NULL: neither */
    struct rd_cuda
        *node_comm; /* exec/cuda/hier/node_comm.c: the same communicator's ranks of this node alone; NULL: not needed */
    struct rd_cuda *parent; /* of an inner one: whose it is. It has no order, and words of the outer's */
    rd_order_t order;
    rd_cuda_peer_t *peers;              /* of all ranks */
    struct rd_cuda_program *programs;   /* program_cache.c: those that have been used */
    rd_signature_ring_t *signatures;    /* RONDO_CHECK on one node; NULL: off, or one rank */
    const rd_net_comm_ops_t *net_comms; /* how net sub-communicators are made */
    int left_peer;                      /* health_check.c: a rank that has left and was waited for, plus one; 0: none */
    int64_t slow_ms, named_ms; /* clock when a kernel's wait was first seen to be long, and last named; 0: none is */
    int64_t late_ms;           /* a late peer is named as often as this */
    int hosted;                /* the host reaches this device's memory, too, by its addresses */
    uintptr_t known[64];       /* buffer.c: pages (of 2 MB) that are this device's memory */
    struct {
        rd_wanted_t wanted;
        rd_chosen_t chosen; /* launch.algo NULL: none yet */
    } cache[RD_CHOSEN];
};

/* A failed CUDA call as an error of the communicator (`who` may be NULL), which it does not fail. */
rondo_result_t rd_cuda_error(rd_log_ctx_t *ctx, cudaError_t error, const char *what);

/* Makes the communicator's device the current one, and allows what capture elsewhere in the process would forbid. */
typedef struct rd_device_guard {
    int device, before; /* as rd_device_switch has returned it */
    enum cudaStreamCaptureMode mode;
} rd_device_guard_t;
rd_device_guard_t rd_device_enter(int device);
void rd_device_leave(rd_device_guard_t guard);
/* Lets kernels on `device` reach the plain memory of `other`. */
cudaError_t rd_device_reach(int device, int other);

/* Functions of CUDA's driver, found by the first call of rd_driver_find; NULL: it has none of that name. Nonzero: an
 * error. */
typedef int (*rd_driver_range_fn)(unsigned long long *base, size_t *bytes, unsigned long long pointer);
typedef int (*rd_driver_attribute_fn)(void *value, int attribute, unsigned long long pointer);
#define RD_DRIVER_BUFFER_ID 7 /* an attribute: 64 bits, another number for each allocation of a process */
#define RD_DRIVER_IPC 10      /* and this: nonzero if cudaIpcGetMemHandle takes it */
typedef struct rd_driver {
    int (*context)(void **context);
    int (*set_context)(void *context);
    int (*retain)(void **context, int device);
    int (*active)(int device, unsigned *flags, int *active); /* has it a context of its own? */
    rd_driver_range_fn range;                                /* of the allocation that holds the pointer */
    rd_driver_attribute_fn attribute;
} rd_driver_t;
extern rd_driver_t rd_driver;
int rd_driver_loaded(void); /* into this process, by anybody */
void rd_driver_find(void);

/* Only the device, for launches: cheap where it is the current one already. Returns what rd_device_back wants. */
int rd_device_go(int device, int before);
void rd_device_return(int before);
static inline int rd_device_switch(int device)
{
    int before = device;

    return cudaGetDevice(&before) == cudaSuccess && before != device ? rd_device_go(device, before) : device;
}

static inline void rd_device_back(int before, int device)
{
    if (before != device)
        rd_device_return(before);
}

/* window.c: offsets into k, then memory for the window and the words in pinned memory. */
void rd_window_layout(rd_cuda_t *cuda, const rd_env_t *env, int sms);
rondo_result_t rd_window_create(rd_cuda_t *cuda);
/* Scratch that the window has for the operation that is enqueued, in device memory: a rank sends itself nothing by
 * fifos, so its own among those that it receives by are free. Everywhere as much as on the fullest node, where it is
 * least. */
char *rd_window_scratch(const rd_cuda_t *cuda);
size_t rd_window_scratch_bytes(const rd_cuda_t *cuda);
/* Gives the device memory away, which no peer uses. */
void rd_window_release(rd_cuda_t *cuda);
/* Frees it, now or when all peers have left. */
void rd_window_free(rd_cuda_t *cuda, rd_node_t *node, rd_control_t *const *controls);

/* window_import.c: what ranks tell each other in creation begins with a verdict, and all of them return the first bad
 * one. */
typedef struct rd_verdict {
    int32_t result;
    char text[512];
} rd_verdict_t;
void rd_verdict_set(rd_verdict_t *verdict, rondo_result_t result);
rondo_result_t rd_verdicts_exchange(rd_cuda_t *cuda, void *all, size_t each);

/* Collective. */
rondo_result_t rd_import_facts(rd_cuda_t *cuda);
rondo_result_t rd_import_windows(rd_cuda_t *cuda);
/* Windows in device memory, mapped by all; *apart: they cannot be, and have been given up. */
rondo_result_t rd_import_direct(rd_cuda_t *cuda, int *host_windows);
/* Of `pointer` within its allocation. */
uint64_t rd_import_offset(const void *pointer);
void rd_import_close(rd_cuda_t *cuda);

/* register.c: so many numbers of registered buffers may be in use; 0: no message is posted. Alike on all ranks. */
uint32_t rd_registered_count(const rd_cuda_t *cuda);
/* A stream that hardly anything goes to; where a buffer is registered. */
cudaStream_t rd_registered_stream(const rd_cuda_t *cuda);
/* Has every rank a process of its own, and reach? Alike on all ranks. */
int rd_registered_possible(const rd_cuda_t *cuda);
/* Where all ranks have the first registered buffer that holds this one of this rank; NULL: none does. */
const rd_kregistered_t *rd_registered_find(const rd_cuda_t *cuda, const void *buffer, size_t bytes, int *number,
                                           uint64_t *offset);
void rd_registered_close(rd_cuda_t *cuda);

/* window_host.c: windows in host memory; collective. */
rondo_result_t rd_window_host_map(rd_cuda_t *cuda);
/* Nonzero: nobody of this process has pinned it any more, and it is to be unpinned some time. */
int rd_window_host_unpin(const char *base);

/* order.c: around every operation on a stream. */
rondo_result_t rd_order_create(rd_cuda_t *cuda);
void rd_order_free(rd_cuda_t *cuda);
rondo_result_t rd_order_before(rd_cuda_t *cuda, cudaStream_t stream);
rondo_result_t rd_order_after(rd_cuda_t *cuda, cudaStream_t stream);
/* Is it captured? What is wrong with the stream the launch will say. */
int rd_cuda_captured(cudaStream_t stream);
/* What is in `from` now comes before what comes into `to` next. */
rondo_result_t rd_order_join(rd_cuda_t *cuda, cudaStream_t from, cudaStream_t to);
/* Within an operation: after the fork what goes into fork->beside, after `forked` what goes into `stream` beside it,
 * until both are joined. A capture's branches lie in the one stream: another one would belong to it until it ends. */
typedef struct rd_fork {
    cudaStream_t stream, beside;
    cudaGraphNode_t at, last; /* captured: where it forks, and the last of what is beside; NULL: not captured */
} rd_fork_t;
rondo_result_t rd_order_fork(rd_cuda_t *cuda, cudaStream_t stream, cudaStream_t beside, rd_fork_t *fork);
rondo_result_t rd_order_forked(rd_cuda_t *cuda, rd_fork_t *fork);
rondo_result_t rd_order_joined(rd_cuda_t *cuda, rd_fork_t *fork);

/* occupancy.c: whoever is whole and has an order of its own, until it is freed; in how many parts the device is to be
 * divided now; and a launch as there is room for it. */
void rd_occupancy_join(rd_cuda_t *cuda);
void rd_occupancy_leave(rd_cuda_t *cuda);
uint32_t rd_occupancy_parts(const rd_cuda_t *cuda);
rd_klaunch_t rd_occupancy_part(const rd_cuda_t *cuda, const rd_klaunch_t *launch);

/* buffer.c: refuses what a kernel cannot reach. */
rondo_result_t rd_buffer_check(rd_cuda_t *cuda, const char *call, const char *what, const void *buffer, size_t bytes);
/* Nonzero: the host, too, reads and writes it by this address. */
int rd_buffer_hosts(const rd_cuda_t *cuda, const void *buffer);

/* collective.c: into the stream, in order. */
void rd_cuda_op(const rd_cuda_t *cuda, const rd_call_t *call,
                rd_kreduce_t *reduce); /* operator and scale, for kernels */
rondo_result_t rd_cuda_run(rd_cuda_t *cuda, const rd_call_t *call);
/* By a kernel of one node's ranks, with so many bytes between the input's blocks. */
rondo_result_t rd_cuda_reduce_scatter(rd_cuda_t *cuda, const rd_call_t *call, size_t gap);
/* Expected microseconds of a collective; 0 for what has no price: a single rank, counts that differ from rank to rank.
 */
double rd_cuda_price(rd_cuda_t *cuda, const rd_call_t *call);
rondo_result_t rd_cuda_launch(rd_cuda_t *cuda, const rd_klaunch_t *launch, const rd_kwork_t *work, cudaStream_t stream);
rondo_result_t rd_cuda_copy(rd_cuda_t *cuda, void *to, const void *from, size_t bytes, cudaStream_t stream);
/* Where the two ranges overlap, through memory of its own. */
rondo_result_t rd_cuda_copy_over(rd_cuda_t *cuda, char *to, const char *from, size_t bytes, cudaStream_t stream);
/* What the host has, to `offset` in this rank's own memory (k.own): by kernels whose arguments hold it, so that a graph
 * keeps it. Multiples of 8. */
rondo_result_t rd_cuda_write(rd_cuda_t *cuda, size_t offset, const void *data, size_t bytes, cudaStream_t stream);

/* program_cache.c: what this rank does in a launch of TREE to BINOMIAL. */
rondo_result_t rd_cuda_program(rd_cuda_t *cuda, const rd_klaunch_t *launch, int root, rd_kprogram_t *program);
void rd_cuda_programs_free(rd_cuda_t *cuda);

/* p2p.c: a message of a group; `peer` may be this rank itself. */
typedef struct rd_cuda_message {
    struct rd_cuda_message *next;
    void *buffer;
    size_t bytes;
    cudaStream_t stream;
    int16_t send, peer;
} rd_cuda_message_t;

/* All messages of one communicator of one group, by one launch. Joins them anew: `next` changes. */
rondo_result_t rd_messages_run(rd_cuda_t *cuda, rd_cuda_message_t *first);
/* A collective that moves blocks, by messages: `call` with or without tables. */
rondo_result_t rd_messages_collective(rd_cuda_t *cuda, const rd_call_t *call);

/* copy_engine.c: a collective that moves blocks, by copy engines. */
rondo_result_t rd_copies_collective(rd_cuda_t *cuda, const rd_call_t *call);
/* Is what would be read registered? */
int rd_copies_possible(rd_cuda_t *cuda, const rd_call_t *call);

/* cuda_group.c: copies of what they get, for the group's end. */
rondo_result_t rd_cuda_record(rd_cuda_t *cuda, const rd_call_t *call);
rondo_result_t rd_cuda_record_message(rd_cuda_t *cuda, const rd_cuda_message_t *message);

#endif
