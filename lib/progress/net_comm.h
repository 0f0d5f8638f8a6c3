/* Net communicators: communicators of the ranks of a CUDA communicator, or of some of them, with connections, a planner
 * and a queue of their own. Proxies carry the CUDA communicator's data between nodes on them. The communicator layer
 * (lib/core) creates and ends them, because each has a bootstrap, a liveness thread and a health of its own; below that
 * layer they are known only by their queues. */
#ifndef RD_PROGRESS_NET_COMM_H
#define RD_PROGRESS_NET_COMM_H

#include "progress/queue.h"

typedef struct rd_net_comm_ops {
    /* Collective over the ranks that hold the id. The net communicator has the settings and the timeout of the
     * communicator with team `of`; `purpose`, at most five letters, ends its name. */
    rondo_result_t (*make)(const rd_team_t *of, const char *purpose, const rondo_unique_id_t *id, int rank, int nranks,
                           rd_queue_t **made);
    /* Called when nothing makes its progress any more: waits for what is under way and, if all is well, tells the other
     * ranks that this rank leaves. */
    void (*leave)(rd_queue_t *queue);
    /* Waits for the other ranks, unless the net communicator has failed, and frees it. */
    void (*end)(rd_queue_t *queue);
    /* Adds the memory that the net communicator holds. */
    void (*count)(const rd_queue_t *queue, rondo_memory_t *memory);
} rd_net_comm_ops_t;

/* Adds the memory that a net communicator of this shape, every field of which is set, would take of one of its ranks.
 */
typedef void (*rd_foresee_fn)(const rd_env_t *env, const rondo_shape_t *shape, rondo_memory_t *memory);

#endif
