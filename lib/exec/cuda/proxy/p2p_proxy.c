/* Messages through pinned memory, or by GDR: by launches that hold as many messages as the kernel's arguments do. The
 * first messages of each pair, as many as fit, go with the first launch, and the next ones with the next launch. A
 * launch waits for all of its messages, so the order of messages is the same on all ranks that group alike: by their
 * place in the pair, then by the distance between the two ranks. Then the first launch that is not over waits for no
 * other launch. Messages within the node, if that has windows, go with the first launch: they complete however far the
 * other nodes have come. */
#include "exec/cuda/p2p.h"
#include "exec/cuda/proxy/proxy.h"

/* The arguments of a launch, as they are filled in. */
typedef struct taking {
    rd_cuda_t *cuda;
    rd_lists_t *left;
    rd_kproxied_messages_t *k;
    uint32_t used; /* entries used in k->messages.here */
    uint32_t most; /* messages of a pair, at most */
    cudaStream_t stream;
} taking_t;

/* Takes as many of a pair's messages as fit, and removes them from the list. */
static rondo_result_t take(taking_t *t, int peer, int send)
{
    rd_cuda_message_t **first = &t->left->of[2 * peer + send].first;
    rd_kpair_t *pair = &t->k->pair[t->k->npairs];
    rd_kmessage_t *here = t->k->messages.here;
    rondo_result_t result = RONDO_SUCCESS;

    *pair = (rd_kpair_t){(uint16_t)peer, (uint16_t)send, t->used, 0, 0};
    for (rd_cuda_message_t *m; (m = *first) && pair->count < t->most && result == RONDO_SUCCESS; *first = m->next) {
        if (!m->bytes)
            continue;
        here[t->used] = rd_gdr_message(t->cuda->path, m);
        if (pair->send)
            result = rd_rcache_copy(t->cuda->path, &here[t->used], t->stream);
        t->used++;
        pair->count++;
    }
    t->k->npairs += pair->count != 0;
    return result;
}

/* Launches the messages that were taken, and those within the node. */
static rondo_result_t launch_mixed(const taking_t *t, const rd_lists_t *near, rd_kwork_t *work)
{
    rd_cuda_t *node_comm = t->cuda->node_comm;
    rd_kmessages_t *k = &work->proxied_messages.messages;
    uint32_t beside = rd_proxy_path_beside(t->cuda->path, work->proxied_messages.npairs);

    k->from_self = k->to_self = (rd_kmessage_t){NULL, 0};
    rondo_result_t result = rd_messages_take(node_comm, near, t->used, beside, k, t->stream);
    if (result != RONDO_SUCCESS)
        return result;
    const rd_klaunch_t launch = rd_streams_launch(&node_comm->limits, true, k);
    work->comm = node_comm->k;
    return rd_proxy_path_messages(t->cuda, work, &launch, t->stream);
}

/* Makes a launch for peers from `*at` ranks away on, as many as it has pairs for; *at becomes the distance of the next
 * peer. */
static rondo_result_t launch(rd_cuda_t *cuda, rd_lists_t *left, int *at, const rd_lists_t *near, cudaStream_t stream)
{
    int n = cuda->k.nranks, rank = cuda->k.rank;
    uint32_t pairs = cuda->path->pairs;
    rondo_result_t result = RONDO_SUCCESS;
    rd_kwork_t work;
    rd_kproxied_messages_t *k = &work.proxied_messages;
    taking_t t = {cuda, left, k, 0, RD_KMESSAGES_HERE / pairs, stream};

    work.comm = cuda->k;
    k->npairs = 0;
    cuda->path->bounce_used = 0;
    for (; *at <= left->farthest && k->npairs <= pairs - 2 && result == RONDO_SUCCESS; ++*at) {
        result = take(&t, (rank + *at) % n, 1);
        if (result == RONDO_SUCCESS)
            result = take(&t, (rank - *at + n) % n, 0);
    }
    left->count -= t.used;
    if (result != RONDO_SUCCESS || !k->npairs)
        return result;
    return near ? launch_mixed(&t, near, &work) : rd_proxy_path_messages(cuda, &work, NULL, stream);
}

rondo_result_t rd_messages_proxied(rd_cuda_t *cuda, rd_lists_t *left, const rd_lists_t *near, cudaStream_t stream)
{
    rondo_result_t result = RONDO_SUCCESS;

    while (left->count && result == RONDO_SUCCESS) {
        for (int at = left->nearest; at <= left->farthest && result == RONDO_SUCCESS; near = NULL)
            result = launch(cuda, left, &at, near, stream); /* the first has messages */
    }
    return result;
}
