/* Messages: send and receive, and the collectives whose blocks go from rank to rank.
 *
 * One launch serves all messages of a group, and those of each pair of ranks and direction in order. So it never waits
 * for a launch that a peer has enqueued behind one that waits for this launch, however the peers group their messages.
 * Messages that do not fit into the kernel's arguments are written into the window before it, by launches that do
 * nothing else. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exec/cuda/p2p.h"
#include "sched/algo/algos.h"
#include "sched/phases.h"

#define POSTED (256u << 10) /* a shorter message is through before a post could come */

static rondo_result_t lists_begin(rd_cuda_t *cuda, rd_lists_t *l)
{
    size_t n = (size_t)cuda->k.nranks;

    memset(l, 0, sizeof *l);
    l->nearest = cuda->k.nranks;
    l->of = n <= RD_KRANKS ? l->here : calloc(2 * n, sizeof *l->of);
    return l->of ? RONDO_SUCCESS
                 : rd_error(cuda->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for messages of %zu ranks", n);
}

static void lists_end(rd_lists_t *l)
{
    if (l->of != l->here)
        free(l->of);
}

/* Returns how many ranks the message's receiver is behind its sender. */
static int distance(const rd_cuda_t *cuda, const rd_cuda_message_t *m)
{
    int d = m->send ? m->peer - cuda->k.rank : cuda->k.rank - m->peer;

    return d < 0 ? d + cuda->k.nranks : d;
}

static void append(const rd_cuda_t *cuda, rd_lists_t *l, rd_cuda_message_t *m)
{
    rd_list_t *list = &l->of[2 * m->peer + m->send];
    int far = distance(cuda, m);

    l->nearest = far && far < l->nearest ? far : l->nearest;
    l->farthest = far > l->farthest ? far : l->farthest;
    m->next = NULL;
    if (list->last)
        list->last->next = m;
    else
        list->first = m;
    list->last = m;
    l->count += m->bytes != 0;
}

/* The arguments of a launch, as they are filled in. */
typedef struct taking {
    const rd_cuda_t *cuda;
    const rd_lists_t *lists;
    rd_kmessages_t *k;
    rd_kmessage_t *all;
    uint32_t used;   /* entries used in `all` */
    uint32_t most;   /* slices of the longest stream */
    uint32_t beside; /* multiprocessors that messages to other nodes take */
    bool differ;     /* a message is long enough to go another way where buffers have been registered */
} taking_t;

/* Returns true if the message goes by slices; the peer decides the same. Where buffers have been registered, long
 * messages wait for posts instead. */
static bool is_long(const taking_t *t, const rd_cuda_message_t *m)
{
    const rd_limits_t *l = &t->cuda->limits;

    return m->bytes >= (m->coll ? l->sliced_coll : l->sliced) && !t->k->registered;
}

/* Puts the messages of a pair that go by lines, or by slices, behind those in `all`. Returns true if there are some.
 */
static int take(taking_t *t, rd_kpair_t *pair, int peer, int send, bool slices)
{
    const rd_kcomm_t *c = &t->cuda->k;
    uint32_t piece = rd_kernel_tile(&rd_algo_messages, rd_fifo_proto(&t->cuda->limits));

    *pair = (rd_kpair_t){(uint16_t)peer, (uint16_t)send, t->used, 0, 0};
    for (const rd_cuda_message_t *m = t->lists->of[2 * peer + send].first; m; m = m->next) {
        if (!m->bytes || is_long(t, m) != slices)
            continue;
        uint32_t warps = rd_kspread(m->bytes, piece, c->spread);
        t->all[t->used + pair->count++] = (rd_kmessage_t){m->buffer, m->bytes};
        t->differ |= slices || m->bytes >= POSTED;
        if (slices)
            pair->slices += rd_kslices(m->bytes, rd_kslice(m->bytes, c->slice_least));
        else
            t->k->warps = warps > t->k->warps ? warps : t->k->warps;
    }
    t->used += pair->count;
    t->most = pair->slices > t->most ? pair->slices : t->most;
    return pair->count != 0;
}

static void take_all(taking_t *t)
{
    rd_limits_t limits = t->cuda->limits;
    int n = t->cuda->k.nranks, rank = t->cuda->k.rank;
    rd_kmessages_t *k = t->k;

    k->npairs = k->warps = k->sends = k->receives = k->senders = k->receivers = 0;
    for (int i = 1; i < n; i++) { /* from the nearest peer on, so that ranks begin with different peers */
        k->npairs += (uint32_t)take(t, &k->pair[k->npairs], (rank + i) % n, 1, false);
        k->npairs += (uint32_t)take(t, &k->pair[k->npairs], (rank - i + n) % n, 0, false);
    }
    for (int i = 1; i < n; i++)
        k->sends += (uint32_t)take(t, &k->stream[k->sends], (rank + i) % n, 1, true);
    for (int i = 1; i < n; i++)
        k->receives += (uint32_t)take(t, &k->stream[k->sends + k->receives], (rank - i + n) % n, 0, true);
    limits.blocks -= t->beside;
    rd_streams_divide(&limits, rd_occupancy_parts(t->cuda), t->most, k);
}

/* Writes the messages into the window's list, because they are more than a kernel's arguments hold. */
static rondo_result_t take_listed(rd_cuda_t *cuda, const rd_lists_t *l, taking_t *t, cudaStream_t stream)
{
    if (l->count > RD_KLIST_MOST)
        return rd_error(cuda->team->ctx, RONDO_ERR_UNSUPPORTED,
                        "a group of %zu messages on one communicator: on CUDA there may be %u, end the group earlier",
                        l->count, RD_KLIST_MOST);
    if (!(t->all = malloc(l->count * sizeof *t->all)))
        return rd_error(cuda->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for a group of %zu messages", l->count);
    t->used = 0;
    take_all(t);
    rondo_result_t result = rd_cuda_write(cuda, RD_KLIST_OFFSET, t->all, l->count * sizeof *t->all, stream);
    free(t->all);
    return result;
}

rondo_result_t rd_messages_take(rd_cuda_t *cuda, const rd_lists_t *l, uint32_t used, uint32_t beside, rd_kmessages_t *k,
                                cudaStream_t stream)
{
    taking_t t = {.cuda = cuda, .lists = l, .k = k, .all = k->here, .used = used, .beside = beside};

    k->listed = used + l->count > RD_KMESSAGES_HERE;
    k->registered = rd_registered_posts(cuda);
    k->posted = POSTED;
    rondo_result_t result = RONDO_SUCCESS;
    if (k->listed)
        result = take_listed(cuda, l, &t, stream);
    else
        take_all(&t);
    if (!k->registered && t.differ && !cuda->unposted_captured)
        cuda->unposted_captured = rd_cuda_captured(stream);
    return result;
}

/* Compares the lengths with those of the peers, as far as these have come. */
static rondo_result_t compare_lengths(const rd_cuda_t *cuda, const rd_lists_t *l, cudaStream_t stream)
{
    if (!cuda->lengths)
        return RONDO_SUCCESS;
    bool captured = rd_cuda_captured(stream);
    rd_lengths_ring_begin(cuda->lengths);
    for (int i = 0; i < 2 * cuda->k.nranks; i++) {
        for (const rd_cuda_message_t *m = l->of[i].first; m; m = m->next) {
            if (captured && m->bytes)
                rd_lengths_ring_captured(cuda->lengths, i / 2, i % 2);
            else if (m->bytes)
                rd_lengths_ring_message(cuda->lengths, i / 2, i % 2, m->bytes);
        }
    }
    return rd_lengths_ring_end(cuda->lengths);
}

/* `from` and `to`: a message of this rank to itself. */
static rondo_result_t launch_all(rd_cuda_t *cuda, const rd_lists_t *l, rd_kmessage_t from, rd_kmessage_t to,
                                 cudaStream_t stream)
{
    rd_kwork_t work;

    work.comm = cuda->k;
    work.messages.from_self = from;
    work.messages.to_self = to;
    rondo_result_t result = rd_messages_take(cuda, l, 0, 0, &work.messages, stream);
    if (result == RONDO_SUCCESS)
        result = compare_lengths(cuda, l, stream);
    if (result != RONDO_SUCCESS)
        return result;
    const rd_klaunch_t launch = rd_streams_launch(&cuda->limits, false, &work.messages);
    return rd_cuda_launch(cuda, &launch, &work, stream);
}

/* ---- between nodes ---- */

/* Moves the messages within this node to `near`, whose ranks are those of the node. */
static void keep_near(const rd_cuda_t *cuda, rd_lists_t *l, rd_lists_t *near)
{
    const rd_node_t *node = cuda->team->node;

    for (int i = 0; i < 2 * node->nlocal; i++) {
        rd_list_t *list = &l->of[2 * node->local[i / 2] + i % 2];
        near->of[i] = *list;
        for (const rd_cuda_message_t *m = list->first; m; m = m->next)
            near->count += m->bytes != 0;
        *list = (rd_list_t){NULL, NULL};
    }
    l->count -= near->count;
}

/* If the node's ranks have windows, messages within the node go by its own kernels, alone or beside the others. */
static rondo_result_t launch_separately(rd_cuda_t *cuda, rd_lists_t *l, cudaStream_t stream)
{
    const rd_kmessage_t none = {NULL, 0};
    rd_lists_t near;

    if (!cuda->node_comm)
        return rd_messages_proxied(cuda, l, NULL, stream);
    (void)lists_begin(cuda->node_comm, &near); /* cannot fail: so few ranks need no memory */
    keep_near(cuda, l, &near);
    if (l->count == 0)
        return launch_all(cuda->node_comm, &near, none, none, stream);
    return rd_messages_proxied(cuda, l, near.count ? &near : NULL, stream);
}

/* Messages of this rank to itself match in order: the first goes with the kernel, each of the others is a copy of its
 * own. */
static rondo_result_t run_self(rd_cuda_t *cuda, rd_lists_t *l, rd_kmessage_t *from, rd_kmessage_t *to,
                               cudaStream_t stream)
{
    rd_cuda_message_t **sends = &l->of[2 * cuda->k.rank + 1].first, **receives = &l->of[2 * cuda->k.rank].first;
    rondo_result_t result = RONDO_SUCCESS;

    while (*sends && *receives && result == RONDO_SUCCESS) {
        const rd_cuda_message_t *s = *sends, *r = *receives;
        l->count -= s->bytes != 0;
        l->count -= r->bytes != 0;
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

static rondo_result_t run_lists(rd_cuda_t *cuda, rd_lists_t *l, cudaStream_t stream)
{
    rd_kmessage_t from = {NULL, 0}, to = {NULL, 0};
    rondo_result_t result = run_self(cuda, l, &from, &to, stream);

    if (result == RONDO_SUCCESS && (l->count == 0 || cuda->path))
        result = rd_cuda_copy(cuda, to.buffer, from.buffer, from.bytes, stream);
    if (l->count == 0 || result != RONDO_SUCCESS)
        return result;
    return cuda->path ? launch_separately(cuda, l, stream) : launch_all(cuda, l, from, to, stream);
}

/* The streams of a group, each once. */
typedef struct streams {
    cudaStream_t *at, here[16];
    size_t count, room;
} streams_t;

/* Returns 0, or -1 if there is no memory. */
static int note_stream(streams_t *s, cudaStream_t stream)
{
    for (size_t i = s->count; i-- > 0;) { /* the latest is the likeliest */
        if (s->at[i] == stream)
            return 0;
    }
    if (s->count == s->room) {
        cudaStream_t *more = malloc(2 * s->room * sizeof *more);
        if (!more)
            return -1;
        memcpy(more, s->at, s->count * sizeof *more);
        if (s->at != s->here)
            free(s->at);
        s->at = more;
        s->room *= 2;
    }
    s->at[s->count++] = stream;
    return 0;
}

rondo_result_t rd_messages_run(rd_cuda_t *cuda, rd_cuda_message_t *first)
{
    streams_t s = {.at = s.here, .room = sizeof s.here / sizeof s.here[0]};
    rd_lists_t l;
    rondo_result_t result = lists_begin(cuda, &l);

    rd_cuda_say_kernels(cuda, NULL);
    for (rd_cuda_message_t *m = first, *next; m && result == RONDO_SUCCESS; m = next) {
        next = m->next;
        if (note_stream(&s, m->stream) != 0)
            result = rd_error(cuda->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for a group of %zu streams", s.count);
        append(cuda, &l, m);
    }
    for (size_t i = 1; i < s.count && result == RONDO_SUCCESS; i++)
        result = rd_order_join(cuda, s.at[i], s.at[0]);
    if (result == RONDO_SUCCESS)
        result = run_lists(cuda, &l, s.at[0]);
    for (size_t i = 1; i < s.count && result == RONDO_SUCCESS; i++)
        result = rd_order_join(cuda, s.at[0], s.at[i]);
    if (s.at != s.here)
        free(s.at);
    lists_end(&l);
    return result;
}

/* ---- collectives ---- */

/* A collective that moves blocks is a phase of all ranks, of which each block that is not empty becomes a message. */
rondo_result_t rd_messages_collective(rd_cuda_t *cuda, const rd_call_t *call)
{
    const size_t element = rondo_type_size(call->desc.type);
    const int rank = cuda->k.rank;
    rd_phase_t phase = {.scope = RD_SCOPE_ALL,
                        .coll = call->desc.coll,
                        .root = call->desc.root,
                        .node = -1,
                        .count = call->desc.count,
                        .from = rd_spot(RD_IN, 0),
                        .to = rd_spot(RD_OUT, 0),
                        .tabled = call->tables != NULL};
    rd_cuda_message_t messages[2 * RD_KRANKS];
    rd_lists_t l;
    rondo_result_t result = lists_begin(cuda, &l);
    int used = 0;

    if (result != RONDO_SUCCESS)
        return result;
    if (call->tables)
        phase.tables = *call->tables;
    for (int peer = 0; peer < cuda->k.nranks; peer++) {
        for (int send = 0; send < 2; send++) {
            rd_spot_t spot;
            size_t count = send ? rd_phase_given(&phase, rank, peer, &spot) : rd_phase_taken(&phase, rank, peer, &spot);
            if (!count)
                continue;
            char *buffer = (send ? (char *)(uintptr_t)call->in : (char *)call->out) + spot.at * element;
            messages[used] =
                (rd_cuda_message_t){NULL, buffer, count * element, call->stream, (int16_t)send, (int16_t)peer, true};
            append(cuda, &l, &messages[used++]);
        }
    }
    result = run_lists(cuda, &l, call->stream);
    lists_end(&l);
    return result;
}

/* ---- the entry ---- */

rondo_result_t rd_cuda_message(rd_cuda_t *cuda, const rd_message_t *m)
{
    rd_cuda_message_t message = {NULL, m->buffer, m->bytes, m->stream, (int16_t)m->send, (int16_t)m->peer, false};
    const char *call = m->send ? "rondo_send" : "rondo_recv";
    rondo_result_t result = rd_cuda_check(cuda);

    if (result == RONDO_SUCCESS)
        result = rd_buffer_check(cuda, call, "buffer", m->buffer, m->bytes);
    if (result != RONDO_SUCCESS)
        return result;
    if (m->group)
        return rd_cuda_record_message(cuda, &message);
    if (m->peer == cuda->k.rank)
        return rd_error(cuda->team->ctx, RONDO_ERR_INVALID_USAGE,
                        "%s to this rank itself would wait for ever: put it into a group with its partner", call);
    return rd_messages_run(cuda, &message);
}
