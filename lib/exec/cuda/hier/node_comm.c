/* The ranks of one node as a communicator inside the communicator: a rd_cuda_t of their own, whose windows they map, so
 * that phases of operations (hier_run.c) and messages (exec/cuda/p2p.c) go by the node's own kernels. It has no order
 * of its own, because it is used only in a call's stream, between two parts that are ordered, and its pinned words are
 * those of the outer communicator. A rank that is alone on its node has a node communicator, too, but without a window.
 */
#include <stdlib.h>

#include "exec/cuda/proxy/proxy.h"

/* Returns the number of multiprocessors that messages by lines may fill beside those to other nodes, so that all run at
 * once. The exception is a GPU shared by many ranks: blocks for other nodes then come first, and each is over when its
 * partner's is. The same on all ranks of a node. */
static int room_for_lines(const rd_cuda_t *cuda)
{
    int room = (int)cuda->limits.blocks - (int)rd_proxy_path_beside_most(cuda->path);

    return room < 1 ? 1 : room;
}

rondo_result_t rd_node_comm_create(rd_cuda_t *cuda, bool *host_windows)
{
    rd_cuda_t *in = cuda->node_comm = calloc(1, sizeof *in);
    const rd_team_t *team = cuda->team;

    if (!in || !(in->peers = calloc((size_t)team->node->nlocal, sizeof *in->peers)))
        return rd_error(team->ctx, RONDO_ERR_NO_MEMORY, "no memory for a CUDA communicator");
    in->team = team;
    in->parent = cuda;
    in->device = cuda->device;
    in->key = cuda->key;
    in->k.rank = team->node->self;
    in->k.nranks = team->node->nlocal;
    in->limits = cuda->limits;
    in->limits.nranks = (uint32_t)team->node->nlocal;
    for (int i = 0; i < team->node->nlocal; i++)
        in->peers[i] = cuda->peers[team->node->local[i]];
    if (in->k.nranks > 1)
        rd_window_layout(in, team->env, room_for_lines(cuda));
    return rd_import_device_windows(in, false, host_windows);
}

void rd_node_comm_close(rd_cuda_t *cuda)
{
    if (cuda->node_comm)
        rd_import_leave(cuda->node_comm);
}

void rd_node_comm_free(rd_cuda_t *cuda, rd_node_t *node, rd_control_t *const *controls)
{
    rd_cuda_t *in = cuda->node_comm;

    if (!in)
        return;
    rd_import_leave(in);
    rd_window_free(in, node, controls);
    free(in->kept);
    cuda->node_comm = NULL;
    rd_cuda_programs_free(in);
    free(in->peers);
    free(in);
}
