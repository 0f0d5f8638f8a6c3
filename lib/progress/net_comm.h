/* Net sub-communicators: ranks of a CUDA communicator, or some of them, with connections, a planner and a queue of
 * their own, by which proxies carry its data between nodes. The communicator makes them and ends them, for they have a
 * bootstrap, a watch and a health like itself; below it they are known by their queue alone.
 */
#ifndef RD_PROGRESS_NET_COMM_H
#define RD_PROGRESS_NET_COMM_H

#include "progress/queue.h"

typedef struct rd_net_comm_ops {
    /* Collective over those who hold the id. It has the settings and the timeout of the communicator whose team `of`
     * is; `purpose`, at most five letters, ends its name. */
    rondo_result_t (*make)(const rd_team_t *of, const char *purpose, const rondo_unique_id_t *id, int rank, int nranks,
                           rd_queue_t **made);
    /* Nothing makes its progress any more: waits for what is under way, and if all is well tells the others that this
     * rank leaves. */
    void (*leave)(rd_queue_t *queue);
    /* Waits for the others, unless it has failed, and frees it. */
    void (*end)(rd_queue_t *queue);
} rd_net_comm_ops_t;

#endif
