/* Messages: send and receive, and the collectives whose blocks go from rank to rank.
 *
 * One launch serves all messages of a group, each pair of ranks and direction in order. It holds so many of a pair as
 * there is room for in the kernel's arguments; the next ones of every pair go with the next launch. As both ends cut
 * after the same number, no launch waits for one that its peer has not come to, where the peers' groups are alike: see
 * doc/gpu.md.
 */
#include <string.h>

#include "inside.h"

#define COPY_BLOCKS 32u      /* that copy what a rank sends to itself, beside its messages */
#define COPY_BYTES (32u << 10) /* by one of them at least */

/* What is left to be launched: a list for each peer and direction, in order. */
typedef struct lists {
    rd_cuda_message_t *first[2 * RD_KRANKS], *last[2 * RD_KRANKS];
} lists_t;

static void append(lists_t *l, rd_cuda_message_t *m)
{
    int at = 2 * m->peer + m->send;

    m->next = NULL;
    if (l->last[at])
        l->last[at]->next = m;
    else
        l->first[at] = m;
    l->last[at] = m;
}

/* Moves up to `most` messages of a pair into the launch. Empty ones are not sent at all: both sides know. */
static void take(lists_t *l, rd_kmessages_t *k, uint32_t *used, int peer, int send, uint32_t most, uint32_t fifos)
{
    rd_kpair_t *pair = &k->pair[k->npairs];

    *pair = (rd_kpair_t){(uint16_t)peer, (uint16_t)send, *used, 0};
    for (uint32_t i = 0; i < most && l->first[2 * peer + send]; i++) {
        rd_cuda_message_t *m = l->first[2 * peer + send];
        l->first[2 * peer + send] = m->next;
        if (!m->bytes)
            continue;
        uint32_t warps = rd_kspread(m->bytes, fifos);
        k->here[*used + pair->count++] = (rd_kmessage_t){m->buffer, m->bytes};
        k->warps = warps > k->warps ? warps : k->warps;
    }
    *used += pair->count;
    k->npairs += pair->count != 0;
}

static int any(const lists_t *l)
{
    for (int i = 0; i < 2 * RD_KRANKS; i++) {
        if (l->first[i])
            return 1;
    }
    return 0;
}

static rondo_result_t launch_some(rd_cuda_t *cuda, lists_t *l, rd_kmessage_t from, rd_kmessage_t to,
                                  cudaStream_t stream)
{
    int n = cuda->k.nranks;
    uint32_t most = RD_KMESSAGES_HERE / (2 * ((uint32_t)n - 1)), used = 0;
    rd_klaunch_t launch = {RD_K_MESSAGES, RD_KC_LL128, RD_ALLTOALL, 0, 0, 0, 0};
    rd_kwork_t work;
    rd_kmessages_t *k = &work.messages;

    work.comm = cuda->k;
    k->table = NULL;
    k->npairs = k->warps = 0;
    k->from_self = from;
    k->to_self = to;
    for (int i = 1; i < n; i++) { /* from the nearest peer on, to which nobody else goes first */
        take(l, k, &used, (cuda->k.rank + i) % n, 1, most, cuda->k.spread);
        take(l, k, &used, (cuda->k.rank - i + n) % n, 0, most, cuda->k.spread);
    }
    if (k->npairs == 0)
        return rd_cuda_copy(cuda, to.buffer, from.buffer, from.bytes, stream);
    launch.threads = rd_kernel_threads(RD_K_MESSAGES, RD_KC_LL128);
    launch.blocks = rd_kernel_blocks(RD_K_MESSAGES, n, k->npairs * k->warps, launch.threads);
    if (to.bytes) {
        size_t more = (to.bytes + COPY_BYTES - 1) / COPY_BYTES;
        launch.blocks += more < COPY_BLOCKS ? (uint32_t)more : COPY_BLOCKS;
    }
    return rd_cuda_launch(cuda, &launch, &work, stream);
}

/* Messages of this rank to itself match in order: the first goes with the kernel, the others are copies of their own. */
static rondo_result_t run_self(rd_cuda_t *cuda, lists_t *l, rd_kmessage_t *from, rd_kmessage_t *to, cudaStream_t stream)
{
    rd_cuda_message_t **sends = &l->first[2 * cuda->k.rank + 1], **receives = &l->first[2 * cuda->k.rank];
    rondo_result_t result = RONDO_SUCCESS;

    while (*sends && *receives && result == RONDO_SUCCESS) {
        const rd_cuda_message_t *s = *sends, *r = *receives;
        *sends = s->next;
        *receives = r->next;
        if (s->bytes == 0 || s->buffer == r->buffer)
            continue;
        if (from->bytes == 0) {
            *from = (rd_kmessage_t){s->buffer, s->bytes};
            *to = (rd_kmessage_t){r->buffer, s->bytes};
        } else {
            result = rd_cuda_copy(cuda, r->buffer, s->buffer, s->bytes, stream);
        }
    }
    return result;
}

static rondo_result_t run_lists(rd_cuda_t *cuda, lists_t *l, cudaStream_t stream)
{
    rd_kmessage_t from = {NULL, 0}, to = {NULL, 0};
    rondo_result_t result = run_self(cuda, l, &from, &to, stream);

    if (result == RONDO_SUCCESS && cuda->k.nranks == 1)
        return rd_cuda_copy(cuda, to.buffer, from.buffer, from.bytes, stream);
    while (result == RONDO_SUCCESS && (any(l) || from.bytes)) {
        result = launch_some(cuda, l, from, to, stream);
        from = to = (rd_kmessage_t){NULL, 0};
    }
    return result;
}

rondo_result_t rd_messages_run(rd_cuda_t *cuda, rd_cuda_message_t *first)
{
    cudaStream_t stream = first->stream;
    rondo_result_t result = RONDO_SUCCESS;
    lists_t l = {0};

    for (const rd_cuda_message_t *m = first; m && result == RONDO_SUCCESS; m = m->next) {
        if (m->stream != stream)
            result = rd_order_join(cuda, m->stream, stream);
    }
    cudaStream_t streams[2 * RD_KRANKS]; /* that are to wait; more than fit wait once more */
    int nstreams = 0;
    for (rd_cuda_message_t *m = first, *next; m; m = next) {
        int known = m->stream == stream;
        next = m->next;
        for (int i = 0; i < nstreams; i++)
            known |= streams[i] == m->stream;
        if (!known && nstreams < 2 * RD_KRANKS)
            streams[nstreams++] = m->stream;
        append(&l, m);
    }
    if (result == RONDO_SUCCESS)
        result = run_lists(cuda, &l, stream);
    for (int i = 0; i < nstreams && result == RONDO_SUCCESS; i++)
        result = rd_order_join(cuda, stream, streams[i]);
    return result;
}

/* ---- collectives ---- */

/* The block that goes from `from` to `to`, and where it lies at both; 0 bytes: none. Uniform collectives. */
static size_t uniform(const rd_call_t *c, int from, int to, size_t *in, size_t *out)
{
    size_t bytes = c->ask.count * rondo_type_size(c->ask.type);
    int root = c->ask.root;

    *in = *out = 0;
    switch (c->ask.coll) {
    case RD_BROADCAST:
        return from == root ? bytes : 0;
    case RD_ALLGATHER:
        *out = (size_t)from * bytes;
        return bytes;
    case RD_GATHER:
        *out = (size_t)from * bytes;
        return to == root ? bytes : 0;
    case RD_SCATTER:
        *in = (size_t)to * bytes;
        return from == root ? bytes : 0;
    default: /* RD_ALLTOALL */
        *in = (size_t)to * bytes;
        *out = (size_t)from * bytes;
        return bytes;
    }
}

static size_t displacement(const size_t *counts, const size_t *displs, int rank)
{
    size_t sum = 0;

    if (displs)
        return displs[rank];
    for (int r = 0; r < rank; r++)
        sum += counts[r];
    return sum;
}

/* The same by tables: what this rank sends to `peer` (send) or receives from it. */
static size_t tabled(const rd_cuda_t *cuda, const rd_call_t *c, int peer, int send, size_t *offset)
{
    size_t element = rondo_type_size(c->ask.type);
    const rd_tables_t *t = c->tables;

    if (c->ask.coll == RD_ALLGATHER && send) {
        *offset = 0;
        return t->out_counts[cuda->k.rank] * element;
    }
    *offset = displacement(send ? t->in_counts : t->out_counts, send ? t->in_displs : t->out_displs, peer) * element;
    return (send ? t->in_counts : t->out_counts)[peer] * element;
}

rondo_result_t rd_messages_collective(rd_cuda_t *cuda, const rd_call_t *call)
{
    rd_cuda_message_t messages[2 * RD_KRANKS];
    lists_t l = {0};
    int used = 0;

    for (int peer = 0; peer < cuda->k.nranks; peer++) {
        for (int send = 0; send < 2; send++) {
            size_t in, out, bytes;
            if (call->tables) {
                bytes = tabled(cuda, call, peer, send, &in);
                out = in;
            } else {
                bytes = send ? uniform(call, cuda->k.rank, peer, &in, &out)
                             : uniform(call, peer, cuda->k.rank, &in, &out);
            }
            if (!bytes)
                continue;
            char *buffer = send ? (char *)(uintptr_t)call->in + in : (char *)call->out + out;
            messages[used] = (rd_cuda_message_t){NULL, buffer, bytes, call->stream, (int16_t)send, (int16_t)peer};
            append(&l, &messages[used++]);
        }
    }
    return run_lists(cuda, &l, call->stream);
}

/* ---- the entry ---- */

rondo_result_t rd_cuda_message(rondo_comm_t comm, int send, void *buffer, size_t bytes, int peer, rondo_stream_t stream)
{
    rd_cuda_message_t message = {NULL, buffer, bytes, stream, (int16_t)send, (int16_t)peer};
    const char *call = send ? "rondo_send" : "rondo_recv";
    rondo_result_t result = rd_cuda_check(comm);

    if (result == RONDO_SUCCESS)
        result = rd_buffer_check(comm->cuda, call, "buffer", buffer, bytes);
    if (result != RONDO_SUCCESS)
        return result;
    if (rd_group_depth)
        return rd_cuda_record_message(comm->cuda, &message);
    if (peer == comm->rank)
        return rd_error(&comm->who, RONDO_ERR_INVALID_USAGE,
                        "%s to this rank itself would wait for ever: put it into a group with its partner", call);
    return rd_messages_run(comm->cuda, &message);
}
