/* The proxy path of a CUDA communicator that spans nodes, or has more ranks than can map each other's windows. Its data
 * goes through pinned memory, and between the ranks by host communicators of its own, the *net communicators*. The
 * proxies, which are threads of the process, make their progress. See kernels/work.h for lanes and proxy channels.
 *
 *   a call    writes down what it wants (a task), launches a kernel, wakes the proxies         [proxy.c]
 *   kernel    input into a slot, trigger ...                                                   [kernels/proxy.cuh]
 *   proxy     trigger -> the task's round, or a message, on the net communicator -> done       [proxy_progress.c]
 *   kernel    ... done, slot into the output
 *
 * Where the network can move a GPU's memory (GDR), messages bypass the slots: gdr.c. */
#ifndef RD_EXEC_CUDA_PROXY_PROXY_H
#define RD_EXEC_CUDA_PROXY_PROXY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "transport/transport.h"
#include "progress/proxy_threads.h"
#include "exec/cuda/cuda_int.h"

/* What a collective's triggers mean. The call creates it. The proxy channel that takes its last round frees it; if it
 * belongs to a graph, proxy channel 0 frees it when the graph has ended and everything that its triggers asked for is
 * done. */
typedef struct rd_proxy_path_task {
    rd_coll_desc_t desc; /* count: of the whole, or of a block */
    size_t each;         /* elements of a part that a round carries */
    uint32_t rounds;
    _Atomic uint32_t left; /* rounds that no proxy channel has taken yet */
    uint32_t number;       /* its place in the table */
    int net_comm;
    bool captured;
    bool compares; /* RONDO_CHECK: moves no data, but compares the call with those of the other ranks */
    rd_signature_t signature;
    bool inlined; /* input and output go by flagged lines: bytes of each */
    size_t inline_in, inline_out;
    const size_t *in_counts, *out_counts; /* for each rank of the net communicator, in `counts`; NULL: no table */
    size_t counts[];
} rd_proxy_path_task_t;

/* The tasks of a communicator. Graphs may outlive it. */
typedef struct rd_proxy_path_tasks {
    pthread_mutex_t lock;
    int references; /* by the communicator, and by each launch that a graph holds */
    uint32_t room, next;
    rd_proxy_path_task_t **all;
    _Atomic int captured;            /* launches that graphs hold: their triggers are not announced */
    _Atomic int gone;                /* length of `left` */
    struct rd_proxy_path_held *left; /* launches whose graphs have ended, but whose triggers may not be served yet */
    bool closed;                     /* the communicator and its proxies have ended */
} rd_proxy_path_tasks_t;

/* Pinned and device memory for a communicator. It is kept for the next one, because freeing it waits for whatever runs.
 */
typedef struct rd_proxy_path_area {
    struct rd_proxy_path_area *next;
    int device;
    size_t bytes;         /* of the slots */
    char *pinned;         /* lanes, flagged lines, then the slots */
    char *tried;          /* device memory for rd_gdr_find; NULL: none yet */
    char *scratch;        /* device memory for rd_gdr_collective; NULL: none yet */
    size_t scratch_bytes; /* how much it is to be */
    size_t rows;          /* of `table` */
    rd_klane_state_t *state;
    rd_kpart_t *table; /* device memory: the parts of a collective that do not fit into a launch */
} rd_proxy_path_area_t;

typedef struct rd_proxy_path_lane {
    rd_klane_t *pinned; /* as the host sees it */
    uint32_t taken, done;
    bool receives; /* the lane carries received messages; set anew when everything before it is done */
    rd_completion_t flying[RD_KLANE_SLOTS];
    size_t inlined[RD_KLANE_SLOTS]; /* bytes that go back by flagged lines */
} rd_proxy_path_lane_t;

/* The kinds of net communicators: of all ranks; and of a rail, that is, of the ranks with the same local rank. */
enum { RD_NET_COMM_ALL, RD_NET_COMM_RAIL, RD_NET_COMMS };

typedef struct rd_net_comm {
    int rank, nranks; /* nranks 0: there is none */
} rd_net_comm_t;

_Static_assert(RD_KPROXY_CHANNELS <= RD_PROXIES, "each proxy channel has a proxy of its own");

/* Messages that go by GDR, which proxy channel 0 has dealt out to another proxy channel, or to itself: a queue without
 * locks for one producer and one consumer. Its length is the most messages that can be under way. */
#define RD_DEALT_MOST ((uint32_t)RD_KPAIRS * RD_KLANE_SLOTS * RD_KGDR_RUN)
typedef struct rd_dealt {
    _Atomic uint32_t put;
    uint32_t filled; /* written by proxy channel 0; the consumer sees only what `put` covers */
    uint32_t taken;
    rd_gdr_message_t all[RD_DEALT_MOST];
} rd_dealt_t;

/* What a proxy does for the communicator, with one net communicator of each kind. */
typedef struct rd_proxy_channel {
    struct rd_proxy_path *path;
    int number;
    rd_queue_t *net_comms[RD_NET_COMMS]; /* NULL: there is none */
    rd_proxy_client_t client;
    bool served;                /* the proxy has it as a client */
    bool over;                  /* failed: the proxy does nothing more */
    int64_t failed_ms;          /* when the rail was found to have failed; 0: it has not */
    char *slots;                /* as the host sees them */
    _Atomic uint64_t announced; /* triggers that launches outside of graphs will raise */
    uint64_t answered;          /* those of them that have come */
    _Atomic uint64_t settled;   /* `answered` when nothing was under way any more */
    rd_proxy_path_lane_t lanes[RD_KPROXY_LANES];
    uint64_t compared; /* RONDO_CHECK: operations so far; proxy channel 0 */
    size_t come;       /* bytes of the next trigger's input that have come by flagged lines; proxy channel 0 */
    size_t *counts;    /* space for the counts of a round: two for each rank */
    rd_dealt_t *dealt; /* NULL: nothing goes by GDR */
} rd_proxy_channel_t;

typedef struct rd_proxy_path {
    rd_cuda_t *cuda;
    rd_net_comm_t net_comms[RD_NET_COMMS];
    rd_proxy_path_area_t *area;
    rd_proxy_path_tasks_t *tasks;
    rd_kproxy_t k;            /* passed to kernels */
    char *inlined;            /* flagged lines, as the host sees them */
    size_t gdr_min;           /* messages to other nodes of this many bytes or more go by GDR; 0: none do */
    size_t gdr_coll_min;      /* the same for the messages that a collective is made of */
    size_t gdr_scratch;       /* bytes in which these are received to be summed, on all ranks; 0: there are none */
    bool offers;              /* several of them are announced together, with keys to their memory */
    uint32_t *gdr;            /* [2 * peer + send]: messages by GDR so far; the other end counts the same */
    struct rd_bounce *bounce; /* rcache.c: memory for copies; NULL: none yet */
    size_t bounce_used;       /* bytes used by the launch that is being put together */
    bool flushes;             /* kernels see what a network device has written only after rd_gdr_flush */
    char gdr_reason[320];     /* why messages go by GDR, or why not */
    uint32_t pairs;           /* most pairs of peer and direction in a launch of messages; the same on all ranks */
    int rails; /* local ranks that every node has, each with net communicators of its own; 0: no kernels inside nodes */
    int *rail; /* of each node: the rank on this rank's rail; NULL: it is on none */
    bool ordered; /* ranks are numbered node by node */
    int nlanes;   /* of a proxy channel */
    int nchannels;
    _Atomic int over; /* proxy channels that have failed and no longer touch any buffer */
    rd_proxy_channel_t *channels;
} rd_proxy_path_t;

#define RD_PROXY_PATH_RANKS 32767 /* of a communicator, at most */
#define RD_PROXY_PATH_PART 64     /* bytes of a rank's part of a round, at least */
/* proxy_init.c. Returns true if the communicator needs the proxy path. */
bool rd_proxy_path_needed(int nranks, int nnodes);
/* Add what the proxy path would take, or takes, with its net communicators and the node's windows. */
void rd_proxy_path_foresee(const rd_env_t *env, const rondo_shape_t *shape, bool host_windows, rd_foresee_fn net_comm,
                           rondo_memory_t *memory);
void rd_proxy_path_count(const rd_proxy_path_t *path, rondo_memory_t *memory);
/* Collective. */
rondo_result_t rd_proxy_path_create(rd_cuda_t *cuda);
/* Called when no kernel runs any more. Returns true if the proxies may still be busy with what the last kernels,
 * also those of graphs, have left to them. */
bool rd_proxy_path_busy(const rd_cuda_t *cuda);
/* Called when no kernel runs any more. The net communicators end as the communicator does. */
void rd_proxy_path_close(rd_cuda_t *cuda);

/* proxy_area.c */
#define RD_PROXY_PATH_INLINE_AT ((sizeof(rd_klane_t) * RD_KLANES + 4095) / 4096 * 4096)
#define RD_PROXY_PATH_LANES_BYTES (RD_PROXY_PATH_INLINE_AT + (size_t)4 * RD_KINLINE * RD_KLANE_SLOTS)
/* The lanes of the area are all zeros. */
int rd_proxy_path_numa(int device); /* the NUMA node of a GPU; -1: not known, or there is only one */
cudaError_t rd_proxy_path_area_take(int device, size_t bytes, size_t rows, size_t scratch, rd_proxy_path_area_t **area);
void rd_proxy_path_area_give(rd_proxy_path_area_t *area);
/* Adds the memory of an area; `gdr`: bytes of `tried` and `scratch`. */
void rd_proxy_path_area_memory(size_t bytes, size_t rows, size_t gdr, rondo_memory_t *memory);
/* Frees the areas that ended communicators have left. Called with the lock of exec/cuda/graveyard.c held. */
void rd_proxy_path_areas_free(void);

/* proxy_task.c */
rd_proxy_path_tasks_t *rd_proxy_path_tasks_create(void);
void rd_proxy_path_tasks_close(rd_proxy_path_tasks_t *tasks); /* no proxy uses them any more */
/* Called by the proxy of channel 0: frees what ended graphs have left, as far as all proxy channels have done it. */
void rd_proxy_path_tasks_sweep(rd_proxy_path_t *path);
/* Returns how many triggers of collectives on a proxy channel have been raised and are not done. It counts all triggers
 * of the kernels that are over. */
uint32_t rd_proxy_path_undone(const rd_proxy_channel_t *channel);
int rd_proxy_path_task_add(rd_proxy_path_tasks_t *tasks, rd_proxy_path_task_t *task); /* returns -1 without memory */
rd_proxy_path_task_t *rd_proxy_path_task(rd_proxy_path_tasks_t *tasks, uint32_t number);
void rd_proxy_path_task_release(rd_proxy_path_tasks_t *tasks, rd_proxy_path_task_t *task);
/* Sets *graph to the graph that the stream is captured into, or to NULL. */
cudaError_t rd_proxy_path_graph(cudaStream_t stream, cudaGraph_t *graph);
/* Ties the task, which may be NULL, to the graph: it is freed when the graph is gone and the proxies have done what it
 * left to them. On failure the task is freed at once. */
cudaError_t rd_proxy_path_graph_hold(rd_proxy_path_tasks_t *tasks, rd_proxy_path_task_t *task, cudaGraph_t graph);

/* proxy.c */

rondo_result_t rd_proxy_path_collective(rd_cuda_t *cuda, const rd_call_t *call);
/* What waits in net communicators from now on has this timeout. */
void rd_proxy_path_limit(rd_proxy_path_t *path, int64_t timeout_ms);
/* Runs a collective by one kind of net communicator, to whose ranks roots and counts refer. */
rondo_result_t rd_proxy_path_run(rd_proxy_path_t *path, int net_comm, const rd_call_t *call);
/* Launches the messages in `work`, which has none of this rank to itself. `near`: the launch of those within the node;
 * NULL if there are none, and then work->comm is not that of the node either. */
rondo_result_t rd_proxy_path_messages(rd_cuda_t *cuda, rd_kwork_t *work, const rd_klaunch_t *near, cudaStream_t stream);
/* Launches a collective by GDR, whose triggers proxy channel 0 takes. */
rondo_result_t rd_proxy_path_gdr(rd_proxy_path_t *path, const rd_klaunch_t *launch, rd_kwork_t *work, uint64_t triggers,
                                 cudaStream_t stream);
/* Return how many multiprocessors `pairs` pairs, or all pairs that a launch may have, take at most beside messages
 * within the node. */
uint32_t rd_proxy_path_beside(const rd_proxy_path_t *path, uint32_t pairs);
uint32_t rd_proxy_path_beside_most(const rd_proxy_path_t *path);

/* exec/cuda/hier/node_comm.c. Creates the communicator of the node's ranks, and sets *host_windows if a node's GPUs do
 * not reach each other. Collective over all ranks. */
rondo_result_t rd_node_comm_create(rd_cuda_t *cuda, bool *host_windows);
void rd_node_comm_free(rd_cuda_t *cuda, rd_node_t *node, rd_control_t *const *controls);
void rd_node_comm_close(rd_cuda_t *cuda);

/* exec/cuda/hier/hier_run.c. If there is a cuda->node_comm, runs a collective in phases: inside the nodes by their own
 * kernels, and between nodes only with what each rank has then; or by all ranks at once, as rd_proxy_path_run does. */
rondo_result_t rd_hier_run(rd_cuda_t *cuda, const rd_call_t *call);
/* Returns true if a part of the operation inside the nodes, each of several ranks, goes by what RONDO_ALGO and
 * RONDO_PROTO force. */
bool rd_hier_follows(rd_cuda_t *cuda, const rd_call_t *call);

/* inline.c, for trigger `number` of proxy channel 0. rd_inline_come takes the input and returns true if all of its
 * lines are there; rd_inline_give stores the output. Both touch up to 15 bytes behind the buffer, too. */
bool rd_inline_come(rd_proxy_channel_t *channel, uint32_t number, char *to, size_t bytes);
void rd_inline_give(const rd_proxy_channel_t *channel, uint32_t number, const char *from, size_t bytes);

#define RD_GDR_TRIED ((size_t)2 << 20) /* bytes of an area's `tried` */
/* gdr_probe.c. rd_gdr_is_tried returns true if a communicator looks for GDR when it is made. rd_gdr_find decides which
 * messages go by GDR, and notes why, or why none do. Collective; the net communicators must exist. */
bool rd_gdr_is_tried(const rd_env_t *env, int nnodes);
rondo_result_t rd_gdr_find(rd_proxy_path_t *path);
/* gdr.c. Returns the message in the form that a launch holds. */
rd_kmessage_t rd_gdr_message(const rd_proxy_path_t *path, const rd_cuda_message_t *message);
/* For proxies. rd_gdr_turn prepares the thread before its turn. rd_gdr_channels returns to how many channels messages
 * are dealt out. rd_gdr_deal is called for a trigger of proxy channel 0, whose slot says where its messages lie.
 * rd_gdr_begin begins with what a channel has been dealt. rd_gdr_flush is called when messages have come. */
void rd_gdr_turn(const rd_proxy_path_t *path);
int rd_gdr_channels(const rd_proxy_path_t *path);
rondo_result_t rd_gdr_deal(rd_proxy_channel_t *channel, rd_proxy_path_lane_t *lane, const rd_ktrigger_t *trigger,
                           const char *slot);
rondo_result_t rd_gdr_begin(rd_proxy_channel_t *channel, int *moved);
void rd_gdr_flush(void);

/* gdr_collective.c. rd_gdr_serves returns true if a collective on the net communicator goes by GDR, the same on all of
 * its ranks; then rd_gdr_collective puts it into the call's stream. */
bool rd_gdr_serves(const rd_proxy_path_t *path, int net_comm, const rd_call_t *call);
rondo_result_t rd_gdr_collective(rd_proxy_path_t *path, int net_comm, const rd_call_t *call);
/* Of `n` ranks: how much scratch there is for what each other one sends of a piece, and whether that is enough. */
size_t rd_gdr_slot_bytes(const rd_proxy_path_t *path, size_t n);
bool rd_gdr_has_room(const rd_proxy_path_t *path, size_t n);
/* The same for operations of all ranks that move blocks: then rd_messages_collective serves the call. */
bool rd_gdr_moves(const rd_proxy_path_t *path, const rd_call_t *call);

/* gdr_queues.c. rd_queues_fill makes streams that wait for a while, with work behind them that overwrites `bytes` bytes
 * at `to` (device memory that nobody reads) from pinned memory. It returns NULL if they cannot be made. rd_queues_free
 * ends the wait. It returns true if they had given up waiting before, or if there were none. */
typedef struct rd_queues rd_queues_t;
rd_queues_t *rd_queues_fill(void *to, const void *from, size_t bytes);
bool rd_queues_free(rd_queues_t *queues);

/* rcache.c. If the message goes by GDR and lies where memory lay that has been announced and then freed, copies it, in
 * the stream, and sets `message` to the copy. A launch begins with bounce_used 0. */
rondo_result_t rd_rcache_copy(rd_proxy_path_t *path, rd_kmessage_t *message, cudaStream_t stream);
/* Notes memory that is announced in other ways. Returns true if it must not be announced. */
bool rd_rcache_announce(const void *memory);
/* Allocates device memory. *fresh: it may be announced. It is looked for in other places if it may not. */
cudaError_t rd_rcache_allocate(rd_cuda_t *cuda, size_t bytes, char **memory, bool *fresh);
/* Returns the announced memory that contains the message, which goes by GDR; of 0 bytes if only UCX knows it. */
rd_net_memory_t rd_rcache_whole(const rd_proxy_path_t *path, const rd_kmessage_t *message);
void rd_rcache_free(rd_proxy_path_t *path);          /* when no kernel runs any more */
size_t rd_rcache_bytes(const rd_proxy_path_t *path); /* of device memory for copies */

/* proxy_progress.c. rd_proxy_progress is a turn of the proxy. rd_proxy_progress_failure fails the net communicator as
 * the communicator has failed. */
rd_proxy_state_t rd_proxy_progress(void *channel);
void rd_proxy_progress_failure(rd_proxy_channel_t *channel, int net_comm);

#endif
