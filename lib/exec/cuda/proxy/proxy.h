/* A CUDA communicator that spans nodes, or has more ranks than can map each other's windows: its data goes through
 * pinned memory, and between the ranks by host communicators of its own, the *net communicators*, whose progress the
 * process's proxies make. See kernels/work.h for lanes and proxy channels.
 *
 *   a call    writes down what it wants (a task), launches a kernel, wakes the proxies         [proxy.c]
 *   kernel    input into a slot, trigger ...                                                   [kernels/proxy.cuh]
 *   proxy     trigger -> the task's round, or a message, on the net communicator -> done       [proxy_progress.c]
 *   kernel    ... done, slot into the output
 *
 * Where the network moves a GPU's memory, messages go without slots: gdr.c.
 */
#ifndef RD_EXEC_CUDA_PROXY_PROXY_H
#define RD_EXEC_CUDA_PROXY_PROXY_H

#include <pthread.h>
#include <stdatomic.h>

#include "transport/transport.h"
#include "progress/proxy_threads.h"
#include "exec/cuda/cuda_int.h"

/* What a collective's triggers mean. Made by the call; the proxy channel that takes its last round frees it, or, when
 * it belongs to a graph, proxy channel 0 when the graph has ended and all that it has raised is done. */
typedef struct rd_proxy_path_task {
    rd_coll_desc_t desc; /* count: of the whole, or of a block */
    size_t each;         /* elements of a part that a round carries */
    uint32_t rounds;
    _Atomic uint32_t left; /* rounds that no proxy channel has taken */
    uint64_t checked;      /* RONDO_CHECK: so many calls are compared before it begins */
    uint32_t number;       /* its place in the table */
    int net_comm;
    int captured;
    int inlined; /* by flagged lines: so many bytes of input and output */
    size_t inline_in, inline_out;
    const size_t *in_counts, *out_counts; /* of the net communicator's ranks, in `counts`; NULL: not tabled */
    size_t counts[];
} rd_proxy_path_task_t;

/* The tasks of a communicator. Graphs may outlive it. */
typedef struct rd_proxy_path_tasks {
    pthread_mutex_t lock;
    int references; /* the communicator, and each launch that graphs hold */
    uint32_t room, next;
    rd_proxy_path_task_t **all;
    _Atomic int captured;            /* launches that graphs hold: their triggers come unannounced */
    _Atomic int gone;                /* of those, in `left` */
    struct rd_proxy_path_held *left; /* their graphs have ended; proxies may still have to do what these have raised */
    int closed;                      /* the communicator has ended, and its proxies have */
} rd_proxy_path_tasks_t;

/* Pinned and device memory for a communicator; kept for the next one, because to free it waits for whatever runs. */
typedef struct rd_proxy_path_area {
    struct rd_proxy_path_area *next;
    int device;
    size_t bytes; /* of the slots */
    char *pinned; /* lanes, flagged lines, then the slots */
    char *tried;  /* device memory for rd_gdr_find; NULL: none yet */
    size_t rows;  /* of `table` */
    rd_klane_state_t *state;
    rd_kpart_t *table; /* device memory: the parts of a collective that do not fit into a launch */
} rd_proxy_path_area_t;

typedef struct rd_proxy_path_lane {
    rd_klane_t *pinned; /* as the host sees it */
    uint32_t taken, done;
    int receives; /* messages; set anew when all before it is done */
    rd_completion_t flying[RD_KLANE_SLOTS];
    size_t inlined[RD_KLANE_SLOTS]; /* bytes that go back by flagged lines */
} rd_proxy_path_lane_t;

/* Host communicators beneath: of all ranks, or of a rail, the ranks that have one place on their nodes; and, proxy
 * channel 0's alone, of all ranks again for RONDO_CHECK. */
enum { RD_NET_COMM_ALL, RD_NET_COMM_RAIL, RD_NET_COMM_CHECK, RD_NET_COMMS };

typedef struct rd_net_comm {
    int rank, nranks; /* nranks 0: there is none */
} rd_net_comm_t;

_Static_assert(RD_KPROXY_CHANNELS <= RD_PROXIES, "each proxy channel has a proxy of its own");

/* Messages that go by GDR, dealt out by proxy channel 0's proxy to another one, or its own: one puts, one takes,
 * without locks. No more can be under way. */
#define RD_DEALT_MOST ((uint32_t)RD_KPAIRS * RD_KLANE_SLOTS * RD_KGDR_RUN)
typedef struct rd_dealt {
    _Atomic uint32_t put;
    uint32_t filled; /* by proxy channel 0, which the other one does not see yet */
    uint32_t taken;
    rd_net_direct_t all[RD_DEALT_MOST];
} rd_dealt_t;

/* What a proxy does for the communicator, by a net communicator of each kind. */
typedef struct rd_proxy_channel {
    struct rd_proxy_path *path;
    int number;
    rd_queue_t *net_comms[RD_NET_COMMS]; /* NULL: there is none */
    rd_proxy_client_t client;
    int served;                 /* by the proxy */
    int over;                   /* failed: the proxy does nothing more */
    int64_t failed_ms;          /* when the rail was found to have failed; 0: it has not */
    char *slots;                /* as the host sees them */
    _Atomic uint64_t announced; /* triggers that launches outside of graphs will raise */
    uint64_t answered;          /* and those that have come */
    _Atomic uint64_t settled;   /* and those after which nothing was under way any more */
    rd_proxy_path_lane_t lanes[RD_KPROXY_LANES];
    int held;          /* by RONDO_CHECK: an operation waits until calls have been compared; proxy channel 0 */
    size_t come;       /* bytes of the next trigger's input that have come by flagged lines; proxy channel 0 */
    size_t *counts;    /* room for those of a round: two for each rank */
    rd_dealt_t *dealt; /* NULL: nothing goes by GDR */
} rd_proxy_channel_t;

typedef struct rd_proxy_path {
    rd_cuda_t *cuda;
    rd_net_comm_t net_comms[RD_NET_COMMS];
    rd_proxy_path_area_t *area;
    rd_proxy_path_tasks_t *tasks;
    rd_kproxy_t k;            /* what kernels are told */
    char *inlined;            /* lines, as the host sees them */
    size_t direct;            /* messages of so many bytes and more, to other nodes, go past the slots; 0: none does */
    int offers;               /* and several of them are announced together, by keys to their memory */
    uint32_t *gdr;            /* [2 * peer + send]: messages that went so, ever. The pair's other end counts the same */
    struct rd_bounce *bounce; /* rcache.c: memory for copies; NULL: none yet */
    size_t bounce_used;       /* by the launch that is being put together */
    rd_signature_list_t *signatures; /* RONDO_CHECK; NULL: off */
    int flushes;    /* what a network's device has written is not seen by a kernel before rd_gdr_flush */
    char way[320];  /* why messages go by GDR, or not */
    uint32_t pairs; /* of peer and direction: of a launch of messages, at most. On all ranks */
    int rails;      /* places that every node has, each with net communicators of its own; 0: no kernels inside nodes */
    int ordered;    /* ranks are counted node by node */
    int nlanes;     /* of a proxy channel */
    int nchannels;
    _Atomic int over; /* proxy channels that have failed, and let go of all buffers */
    rd_proxy_channel_t *channels;
} rd_proxy_path_t;

#define RD_PROXY_PATH_RANKS 32767 /* of a communicator, at most */
#define RD_PROXY_PATH_PART 64     /* bytes of a rank's part of a round, at least */
/* proxy_init.c: must it be staged? */
int rd_proxy_path_needed(const rd_team_t *team);
/* Collective. */
rondo_result_t rd_proxy_path_create(rd_cuda_t *cuda);
/* No kernel runs any more: may what the last ones, of graphs too, have left to the proxies still be under way? */
int rd_proxy_path_busy(const rd_cuda_t *cuda);
/* No kernel runs any more. The net communicator ends as the communicator does. */
void rd_proxy_path_close(rd_cuda_t *cuda);

/* proxy_area.c */
#define RD_PROXY_PATH_INLINE_AT ((sizeof(rd_klane_t) * RD_KLANES + 4095) / 4096 * 4096)
#define RD_PROXY_PATH_LANES_BYTES (RD_PROXY_PATH_INLINE_AT + (size_t)4 * RD_KINLINE * RD_KLANE_SLOTS)
/* Lanes are all zeros. */
cudaError_t rd_proxy_path_area_take(int device, size_t bytes, size_t rows, rd_proxy_path_area_t **area);
void rd_proxy_path_area_give(rd_proxy_path_area_t *area);
/* What ended communicators have left; with the lock of exec/cuda/window.c. */
void rd_proxy_path_areas_free(void);

/* proxy_task.c */
rd_proxy_path_tasks_t *rd_proxy_path_tasks_create(void);
void rd_proxy_path_tasks_close(rd_proxy_path_tasks_t *tasks); /* there are no proxies any more */
/* For proxy channel 0's proxy: takes away what ended graphs have left, as far as all proxy channels have done it. */
void rd_proxy_path_tasks_sweep(rd_proxy_path_t *path);
/* Collectives' triggers of a proxy channel: raised, and not done. All that kernels have raised which are over. */
uint32_t rd_proxy_path_undone(const rd_proxy_channel_t *channel);
int rd_proxy_path_task_add(rd_proxy_path_tasks_t *tasks,
                           rd_proxy_path_task_t *task); /* into a free place; -1: no memory */
rd_proxy_path_task_t *rd_proxy_path_task(rd_proxy_path_tasks_t *tasks, uint32_t number);
void rd_proxy_path_task_release(rd_proxy_path_tasks_t *tasks, rd_proxy_path_task_t *task);
/* The graph that the stream is captured into; NULL: none. */
cudaError_t rd_proxy_path_graph(cudaStream_t stream, cudaGraph_t *graph);
/* The task, which may be NULL, goes with the graph, or when the proxies have done what it left to them; on failure it
 * is dropped. */
cudaError_t rd_proxy_path_graph_hold(rd_proxy_path_tasks_t *tasks, rd_proxy_path_task_t *task, cudaGraph_t graph);

/* proxy.c */

/* RONDO_CHECK: proxy channel 0's proxy is to compare the call with the others'. */
rondo_result_t rd_proxy_path_check(rd_proxy_path_t *path, const rd_call_t *call);
rondo_result_t rd_proxy_path_collective(rd_cuda_t *cuda, const rd_call_t *call);
/* By one kind of net communicator: roots and counts are those of its ranks. */
rondo_result_t rd_proxy_path_run(rd_proxy_path_t *path, int net_comm, const rd_call_t *call);
/* `work` holds the messages, none of this rank to itself. `near`: the launch of those within the node; NULL: there are
 * none, nor is a communicator of the node in `work` then. */
rondo_result_t rd_proxy_path_messages(rd_cuda_t *cuda, rd_kwork_t *work, const rd_klaunch_t *near, cudaStream_t stream);
/* Multiprocessors that so many pairs take beside messages within the node, at most; of all pairs that a launch has. */
uint32_t rd_proxy_path_beside(const rd_proxy_path_t *path, uint32_t pairs);
uint32_t rd_proxy_path_beside_most(const rd_proxy_path_t *path);
/* Expected microseconds, as far as the net communicator knows. */
double rd_proxy_path_price(rd_cuda_t *cuda, const rd_call_t *call);

/* exec/cuda/hier/node_comm.c: the node's ranks; collective, of all ranks. */
rondo_result_t rd_node_comm_create(rd_cuda_t *cuda,
                                   int *host_windows); /* *host_windows: GPUs of a node do not reach each other */
void rd_node_comm_free(rd_cuda_t *cuda, rd_node_t *node, rd_control_t *const *controls);
void rd_node_comm_close(rd_cuda_t *cuda);

/* exec/cuda/hier/hier_run.c, where there is cuda->inner: inside nodes by their own kernels, and between nodes only with
 * what a rank then has; or, as rd_proxy_path_run, by all ranks at once. */
rondo_result_t rd_hier_run(rd_cuda_t *cuda, const rd_call_t *call);

/* inline.c, for trigger `number` of proxy channel 0: the input, if all of its lines are there; the output. Up to 15
 * bytes behind them are touched, too. */
int rd_inline_come(rd_proxy_channel_t *channel, uint32_t number, char *to, size_t bytes);
void rd_inline_give(const rd_proxy_channel_t *channel, uint32_t number, const char *from, size_t bytes);

/* gdr_probe.c. Collective, when the net communicators are there: which messages go by GDR, and why, or why none does.
 */
rondo_result_t rd_gdr_find(rd_proxy_path_t *path);
/* gdr.c: a message as a launch holds it. */
rd_kmessage_t rd_gdr_message(const rd_proxy_path_t *path, const rd_cuda_message_t *message);
/* For the proxy: before its turn; proxy channel 0's at a trigger, whose slot says where so many messages lie; for each
 * what it has been dealt; when some have come. */
void rd_gdr_turn(const rd_proxy_path_t *path);
int rd_gdr_channels(const rd_proxy_path_t *path); /* to which they are dealt out */
rondo_result_t rd_gdr_deal(rd_proxy_channel_t *channel, rd_proxy_path_lane_t *lane, int peer, int send,
                           const char *slot, uint32_t count);
rondo_result_t rd_gdr_begin(rd_proxy_channel_t *channel, int *moved);
void rd_gdr_flush(void);

/* gdr_queues.c: streams that wait for a while, with work behind them that overwrites so many bytes at `to`, device
 * memory that nobody reads, from pinned memory. NULL: they cannot be made. The other call ends that; nonzero: they
 * waited for it in vain, or there were none. */
typedef struct rd_queues rd_queues_t;
rd_queues_t *rd_queues_fill(void *to, const void *from, size_t bytes);
int rd_queues_free(rd_queues_t *queues);

/* rcache.c: if the message goes by GDR, and lies where memory lay that has been announced and given back, it is
 * copied, in the stream, and `message` says where to. A launch begins with bounce_used 0. */
rondo_result_t rd_rcache_copy(rd_proxy_path_t *path, rd_kmessage_t *message, cudaStream_t stream);
/* It is announced by other ways; nonzero: it must not be. */
int rd_rcache_tell(const void *memory);
/* What the memory is part of that a message goes by GDR from, which was announced; of 0 bytes: only UCX knows. */
rd_net_memory_t rd_rcache_whole(const rd_proxy_path_t *path, const rd_kmessage_t *message);
void rd_rcache_free(rd_proxy_path_t *path); /* no kernel runs any more */

/* proxy_progress.c: a turn of the proxy. */
rd_proxy_state_t rd_proxy_progress(void *channel);
void rd_proxy_progress_failure(rd_proxy_channel_t *channel,
                               int net_comm); /* what has failed the communicator fails the net communicator */

#endif
