/* Messages through pinned memory, or straight over the network: by launches that hold as many as the kernel's arguments
 * do. As many of each pair as fit go first, and the next ones with the next launch. A launch waits for all that it has,
 * so which come first is the same on all ranks that group alike: by their place in the pair, then by the distance
 * between the two ranks. The first that is not over waits for nothing then.
 */
#include "messages.h"
#include "stage.h"

/* What a launch is told, as it is filled in. */
typedef struct taking {
    rd_cuda_t *cuda;
    rd_lists_t *left;
    rd_kmessages_t *k;
    uint32_t used; /* of k->here */
    uint32_t most; /* messages of a pair */
    cudaStream_t stream;
} taking_t;

/* As many of a pair's messages as fit; they are taken off. */
static rondo_result_t take(taking_t *t, int peer, int send)
{
    rd_cuda_message_t **first = &t->left->of[2 * peer + send].first;
    rd_kpair_t *pair = &t->k->pair[t->k->npairs];
    rondo_result_t result = RONDO_SUCCESS;

    *pair = (rd_kpair_t){(uint16_t)peer, (uint16_t)send, t->used, 0, 0};
    for (rd_cuda_message_t *m; (m = *first) && pair->count < t->most && result == RONDO_SUCCESS; *first = m->next) {
        if (!m->bytes)
            continue;
        t->k->here[t->used] = rd_direct_message(t->cuda->stage, m);
        if (pair->send)
            result = rd_renewed_copy(t->cuda->stage, &t->k->here[t->used], t->stream);
        t->used++;
        pair->count++;
    }
    t->k->npairs += pair->count != 0;
    return result;
}

/* A launch for peers from `*near` ranks away on, as many as it has pairs for; *near: the next one's. */
static rondo_result_t launch_near(rd_cuda_t *cuda, rd_lists_t *left, int *near, cudaStream_t stream)
{
    int n = cuda->k.nranks, rank = cuda->k.rank;
    uint32_t pairs = cuda->stage->pairs;
    rondo_result_t result = RONDO_SUCCESS;
    rd_kwork_t work;
    rd_kmessages_t *k = &work.staged_messages.messages;
    taking_t t = {cuda, left, k, 0, RD_KMESSAGES_HERE / pairs, stream};

    work.comm = cuda->k;
    k->npairs = 0;
    cuda->stage->aside_used = 0;
    for (; *near <= left->farthest && k->npairs <= pairs - 2 && result == RONDO_SUCCESS; ++*near) {
        result = take(&t, (rank + *near) % n, 1);
        if (result == RONDO_SUCCESS)
            result = take(&t, (rank - *near + n) % n, 0);
    }
    left->count -= t.used;
    return result == RONDO_SUCCESS && k->npairs ? rd_stage_messages(cuda, &work, stream) : result;
}

rondo_result_t rd_messages_staged(rd_cuda_t *cuda, rd_lists_t *left, cudaStream_t stream)
{
    rondo_result_t result = RONDO_SUCCESS;

    while (left->count && result == RONDO_SUCCESS) {
        for (int near = left->nearest; near <= left->farthest && result == RONDO_SUCCESS;)
            result = launch_near(cuda, left, &near, stream);
    }
    return result;
}
