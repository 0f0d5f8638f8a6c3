/* The part of the proxy path that calls execute: see proxy.h.
 *
 * An operation is cut into rounds that fit into a slot: a round has the next elements of a vector, or the next elements
 * of each block. How many these are depends on what all ranks know (or, for blocks whose counts only a pair knows, on
 * that pair's count alone), so all cut alike. A round is a whole operation for the net communicator, on packed data. */
#include "exec/cuda/proxy/proxy.h"

#include <stdlib.h>
#include <string.h>

#include "plan/force.h"

#define MESSAGE_BLOCKS 64u
#define BLOCKS 16u /* of a launch: the host's link is slower than a few multiprocessors */

/* ---- launching */

/* Triggers that a launch will raise, on each of the proxy channels that may share it. */
typedef struct raises {
    uint32_t channels;
    uint64_t of[RD_KPROXY_CHANNELS];
} raises_t;

static uint32_t teams_of(const raises_t *raises)
{
    uint32_t teams = raises->channels;

    while (teams > 1 && raises->of[teams - 1] == 0)
        teams--;
    return teams;
}

/* Announces the triggers to the proxy channels, before the launch; sign -1: takes that back, because the launch failed.
 */
static void announce(rd_proxy_path_t *s, const raises_t *raises, int sign)
{
    for (uint32_t c = 0; c < raises->channels; c++) {
        if (raises->of[c])
            atomic_fetch_add(&s->channels[c].announced, sign < 0 ? 0 - raises->of[c] : raises->of[c]);
    }
}

/* Takes over the task, whatever the result is. */
static rondo_result_t launch(rd_proxy_path_t *s, const rd_klaunch_t *l, rd_kwork_t *work, rd_kproxy_t *k,
                             rd_proxy_path_task_t *task, const raises_t *raises, cudaStream_t stream)
{
    cudaGraph_t graph = NULL;
    cudaError_t error = rd_proxy_path_graph(stream, &graph);

    *k = s->k;
    k->channels = raises->channels;
    k->teams = teams_of(raises);
    k->captured = graph != NULL;
    if (error != cudaSuccess && task)
        rd_proxy_path_task_release(s->tasks, task);
    if (error == cudaSuccess && graph)
        error = rd_proxy_path_graph_hold(s->tasks, task, graph);
    if (error != cudaSuccess)
        return rd_cuda_error(s->cuda->team->ctx, error, "an operation in a graph");
    if (!graph)
        announce(s, raises, 1);
    rondo_result_t result = rd_cuda_launch(s->cuda, l, work, stream);
    if (result != RONDO_SUCCESS && !graph) {
        announce(s, raises, -1);
        if (task)
            rd_proxy_path_task_release(s->tasks, task);
    }
    for (uint32_t c = 0; c < k->teams; c++)
        rd_proxy_wake(&s->channels[c].client);
    return result;
}

/* Returns the threads of a block that copies `bytes` bytes: one for each line, up to the kernel's most. */
static uint32_t threads_for(const rd_klaunch_t *l, uint64_t bytes)
{
    uint32_t most = rd_kernel_threads(l->kernel, l->proto);
    uint64_t warps = (bytes + 511) / 512;

    return warps < 1 ? 32 : warps < most / 32 ? 32 * (uint32_t)warps : most;
}

/* ---- collectives */

/* The parts of a side: one, or one of each rank. */
static void side_one(rd_kside_t *side, size_t bytes)
{
    *side = (rd_kside_t){1, 0, {0, bytes}, 0};
}

static void side_blocks(rd_kside_t *side, int n, size_t bytes)
{
    *side = (rd_kside_t){(uint32_t)n, 0, {0, bytes}, bytes};
}

/* Writes the parts into the table's rows from `row` on, unless they are alike. A side has no parts if all are empty: a
 * rank that gets nothing back does not wait for it. */
static void side_tabled(rd_kside_t *side, const size_t *counts, const size_t *displs, int n, size_t element,
                        rd_kpart_t *table, int row)
{
    rd_kpart_t *part = table + row;
    uint64_t sum = 0, stride;
    int alike = 1;

    for (int r = 0; r < n; r++) {
        part[r] = (rd_kpart_t){displs ? displs[r] * element : sum, counts[r] * element};
        sum += part[r].bytes;
    }
    stride = n > 1 ? part[1].offset - part[0].offset : 0; /* modulo 2^64, as the kernel adds it */
    for (int r = 1; r < n; r++)
        alike &= part[r].bytes == part[0].bytes && part[r].offset == part[0].offset + (uint64_t)r * stride;
    *side = (rd_kside_t){sum ? (uint32_t)n : 0, alike || !sum ? 0 : (uint32_t)row + 1, part[0], stride};
}

static void sides(const rd_net_comm_t *by, const rd_call_t *c, rd_kside_t *in, rd_kside_t *out, rd_kpart_t *table)
{
    size_t element = rondo_type_size(c->desc.type), bytes = c->desc.count * element;
    int n = by->nranks, rooting = by->rank == c->desc.root;
    const rd_tables_t *t = c->tables;
    rd_coll_t coll = c->desc.coll;

    side_one(in, bytes);
    side_one(out, bytes);
    if (t && coll == RD_ALLGATHER)
        side_one(in, t->out_counts[by->rank] * element);
    if (t && coll == RD_REDUCE_SCATTER)
        side_one(out, t->in_counts[by->rank] * element);
    if (t && t->in_counts)
        side_tabled(in, t->in_counts, t->in_displs, n, element, table, 0);
    if (t && t->out_counts)
        side_tabled(out, t->out_counts, t->out_displs, n, element, table, n);
    if (t)
        return;
    if (coll == RD_REDUCE_SCATTER || coll == RD_ALLTOALL || coll == RD_SCATTER)
        side_blocks(in, n, bytes);
    if (coll == RD_ALLGATHER || coll == RD_ALLTOALL || coll == RD_GATHER)
        side_blocks(out, n, bytes);
    if (coll == RD_BARRIER || ((coll == RD_BROADCAST || coll == RD_SCATTER) && !rooting))
        in->n = 0;
    if (((coll == RD_REDUCE || coll == RD_GATHER) && !rooting) ||
        (coll == RD_BROADCAST && rooting)) /* a root has the data already */
        out->n = 0;
    if (coll == RD_BARRIER) /* waited for, though no bytes come */
        side_one(out, 0);
}

/* In a single round, adjacent parts are joined into one. */
static void side_join(rd_kside_t *side)
{
    if (!side->tabled && side->n > 1 && side->stride == side->part.bytes)
        *side = (rd_kside_t){1, 0, {side->part.offset, side->n * side->part.bytes}, 0};
}

/* Returns the elements of the longest part that any rank has, or, for blocks of pairs, this rank. */
static size_t longest(const rd_net_comm_t *by, const rd_call_t *c)
{
    const size_t *tables[2] = {c->tables ? c->tables->in_counts : NULL, c->tables ? c->tables->out_counts : NULL};
    size_t most = c->tables ? 0 : c->desc.count;

    for (int side = 0; side < 2; side++)
        for (int r = 0; tables[side] && r < by->nranks; r++)
            most = tables[side][r] > most ? tables[side][r] : most;
    return most;
}

/* Returns how many proxy channels may share the operation, the same on all ranks. Teams do not wait for each other, so
 * the output of one round must not overlap another round's input. In-place operations meet that, except a
 * reduce-scatter by tables, whose output begins where its input does; on a rail it meets that, too, because there the
 * output lies over the rank's own part (sched/algo/hier_ranges.c). */
static uint32_t channels_for(const rd_proxy_path_t *s, int net_comm, const rd_call_t *c)
{
    uint32_t most = s->cuda->limits.blocks < s->k.channels ? s->cuda->limits.blocks : s->k.channels; /* a block each */

    return c->tables && c->desc.coll == RD_REDUCE_SCATTER && net_comm == RD_NET_COMM_ALL ? 1 : most;
}

/* Returns the elements of a part that a round carries: the same on all ranks, which know all counts except those of
 * other pairs. For an all-to-all by tables, `count` is the count that all of its blocks share; 0: none. */
static size_t elements_each(const rd_proxy_path_t *s, int net_comm, const rd_call_t *c, size_t most)
{
    rd_coll_t coll = c->desc.coll;
    size_t element = rondo_type_size(c->desc.type), round = s->k.slot;
    size_t parts = coll == RD_ALLREDUCE || coll == RD_REDUCE || coll == RD_BROADCAST || coll == RD_BARRIER
                       ? 1
                       : (size_t)s->net_comms[net_comm].nranks;

    if (!(c->tables && coll == RD_ALLTOALL && !c->desc.count))
        round = rd_kpiece(most * parts * element, (uint32_t)parts, channels_for(s, net_comm, c), s->k.least, s->k.slot);
    round = round < RD_PROXY_PATH_PART * parts ? RD_PROXY_PATH_PART * parts : round; /* which is no more than a slot */
    size_t each = (round / parts + 15) / 16 * 16; /* rounded up: otherwise one more round would carry the rest */
    return (each * parts <= s->k.slot ? each : each - 16) / element;
}

static const size_t *keep(size_t *room, const size_t *counts, size_t n)
{
    return counts ? memcpy(room, counts, n * sizeof *counts) : NULL;
}

static rd_proxy_path_task_t *task_make(rd_proxy_path_t *s, int net_comm, const rd_call_t *c, rondo_op_t op, size_t each,
                                       uint32_t rounds)
{
    size_t n = c->tables ? (size_t)s->net_comms[net_comm].nranks : 0;
    rd_proxy_path_task_t *task = calloc(1, sizeof *task + 2 * n * sizeof(size_t));

    if (!task)
        return NULL;
    task->desc.coll = c->desc.coll;
    task->desc.type = c->desc.type;
    task->desc.op = op;
    task->desc.forced = c->desc.forced;
    task->desc.root = c->tables ? 0 : c->desc.root;
    task->desc.count = c->desc.count;
    task->each = each;
    task->net_comm = net_comm;
    task->rounds = rounds;
    atomic_store(&task->left, rounds);
    if (c->tables) {
        task->in_counts = keep(task->counts, c->tables->in_counts, n);
        task->out_counts = keep(task->counts + n, c->tables->out_counts, n);
    }
    if (rd_proxy_path_task_add(s->tasks, task) == 0)
        return task;
    free(task);
    return NULL;
}

/* Sets the grid of `teams` teams whose rounds have `bytes` bytes. */
static void grid(const rd_proxy_path_t *s, uint32_t teams, uint64_t bytes, rd_klaunch_t *l)
{
    uint64_t most = (s->cuda->limits.blocks < BLOCKS ? s->cuda->limits.blocks : BLOCKS) / teams;
    uint64_t some;

    l->threads = threads_for(l, bytes);
    some = (bytes + 16 * l->threads - 1) / (16 * l->threads);
    some = some < most ? some : most;
    l->blocks = teams * (some < 1 ? 1 : (uint32_t)some);
}

static uint64_t side_bytes(const rd_kside_t *side, const rd_kpart_t *table)
{
    uint64_t sum = 0;

    if (!side->tabled)
        return side->n * side->part.bytes;
    for (uint32_t i = 0; i < side->n; i++)
        sum += table[side->tabled - 1 + i].bytes;
    return sum;
}

/* Parts that are not alike and do not fit into the launch are written before it. */
static rondo_result_t write_table(const rd_proxy_path_t *s, rd_kproxied_t *k, const rd_kpart_t *table,
                                  cudaStream_t stream)
{
    uint32_t rows = k->out.tabled ? k->out.tabled - 1 + k->out.n : k->in.tabled ? k->in.n : 0;

    k->listed = table != k->here && rows;
    return k->listed ? rd_cuda_write(s->cuda, 0, table, rows * sizeof *table, stream) : RONDO_SUCCESS;
}

/* Decides whether the data goes inline: at most 16 bytes for each thread of a block. It does not matter what other
 * ranks do. */
static void inlined(const rd_proxy_path_t *s, rd_kproxied_t *k, rd_proxy_path_task_t *task, uint64_t in, uint64_t out)
{
    rd_env_t own;
    const rd_env_t *env = rd_force_env(s->cuda->team->env, task->desc.forced, &own);
    uint64_t most = 16 * rd_kernel_threads(RD_KERNEL_PROXIED, RD_PROTO_LL);

    most = most < RD_KINLINE ? most : RD_KINLINE;
    k->inlined = k->rounds == 1 && in + out && in <= most && out <= most &&
                 rd_forced_message_protos(env) != 1u << RD_PROTO_SIMPLE;
    task->inlined = k->inlined != 0;
    task->inline_in = in;
    task->inline_out = out;
}

/* `table` has two rows for each rank of the net communicator. If the kernel widens the data, they are float32 from
 * there on. */
static rondo_result_t run(rd_proxy_path_t *s, int net_comm, const rd_call_t *user, rd_kwork_t *work, rd_kpart_t *table)
{
    const rd_net_comm_t *by = &s->net_comms[net_comm];
    rd_call_t wide = *user, *call = &wide;
    rd_cuda_t *cuda = s->cuda;
    rd_klaunch_t l = {.kernel = RD_KERNEL_PROXIED, .coll = (uint32_t)call->desc.coll};
    rd_kproxied_t *k = &work->proxied;
    rd_cuda_op(cuda, user, &k->reduce);
    call->desc.type = (rondo_type_t)k->reduce.type;
    size_t element = rondo_type_size(call->desc.type), most = longest(by, call);
    size_t each = elements_each(s, net_comm, call, most);
    raises_t raises;

    if (most == 0)
        return RONDO_SUCCESS;
    if ((most + each - 1) / each > UINT32_MAX / 2)
        return rd_error(cuda->team->ctx, RONDO_ERR_UNSUPPORTED, "%s of %zu elements: too long",
                        rd_coll_name(call->desc.coll), most);
    work->comm = cuda->k;
    k->reduce.in = call->in;
    k->reduce.out = call->out;
    sides(by, call, &k->in, &k->out, table);
    k->copied = call->desc.coll == RD_BROADCAST && by->rank == call->desc.root && call->in != call->out;
    k->each = each * element;
    k->rounds = (uint32_t)((most + each - 1) / each);
    if (k->rounds == 1) {
        k->each = s->k.slot; /* all of each part */
        side_join(&k->in);
        side_join(&k->out);
    }
    rondo_result_t result = write_table(s, k, table, call->stream);
    if (result != RONDO_SUCCESS)
        return result;
    rd_proxy_path_task_t *task = task_make(s, net_comm, call, (rondo_op_t)k->reduce.op, each, k->rounds);
    if (!task)
        return rd_error(cuda->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for an operation");
    k->task = task->number;
    raises.channels = channels_for(s, net_comm, call);
    for (uint32_t c = 0; c < raises.channels; c++)
        raises.of[c] = rd_kproxy_part(k->rounds, raises.channels, c);
    uint64_t in = side_bytes(&k->in, table), out = side_bytes(&k->out, table),
             bytes = (in > out ? in : out) / k->rounds;
    inlined(s, k, task, in, out);
    grid(s, teams_of(&raises), bytes, &l);
    return launch(s, &l, work, &k->proxy, task, &raises, call->stream);
}

rondo_result_t rd_proxy_path_run(rd_proxy_path_t *s, int net_comm, const rd_call_t *call)
{
    int n = s->net_comms[net_comm].nranks;
    rd_kpart_t *table;
    rd_kwork_t work;

    if (rd_gdr_serves(s, net_comm, call))
        return rd_gdr_collective(s, net_comm, call);
    if (!call->tables || n <= RD_KRANKS)
        return run(s, net_comm, call, &work, work.proxied.here);
    if (!(table = calloc(2 * (size_t)n, sizeof *table)))
        return rd_error(s->cuda->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for an operation of %d ranks", n);
    rondo_result_t result = run(s, net_comm, call, &work, table);
    free(table);
    return result;
}

/* RONDO_CHECK: launches a kernel that waits until the proxy of channel 0 has compared the call with the other ranks'.
 * It has no input and no bytes of output, for which it waits: what comes behind it in the stream begins when the call
 * has been compared. A call that is replayed by a graph is compared at each replay, so it does not matter which ranks
 * have captured it. */
static rondo_result_t check(rd_proxy_path_t *s, const rd_call_t *call)
{
    const rd_klaunch_t l = {.kernel = RD_KERNEL_PROXIED, .coll = RD_BARRIER, .blocks = 1, .threads = 32};
    const raises_t raises = {1, {1}};
    rd_proxy_path_task_t *task;
    rd_kwork_t work;

    if (!s->cuda->team->env->check)
        return RONDO_SUCCESS;
    if (!(task = calloc(1, sizeof *task)) || rd_proxy_path_task_add(s->tasks, task)) {
        free(task);
        return rd_error(s->cuda->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for RONDO_CHECK");
    }
    task->rounds = 1;
    atomic_store(&task->left, 1);
    task->compares = true;
    rd_signature_fill(&task->signature, call, s->cuda->team);
    memset(&work, 0, sizeof work);
    work.comm = s->cuda->k;
    side_one(&work.proxied.out, 0);
    work.proxied.rounds = 1;
    work.proxied.each = s->k.slot;
    work.proxied.task = task->number;
    cudaEvent_t event = rd_order_event(s->cuda); /* of the operation's own launch */
    rondo_result_t result = launch(s, &l, &work, &work.proxied.proxy, task, &raises, call->stream);
    s->cuda->order.launched = event;
    return result;
}

/* Refuses a call that RONDO_ALGO and RONDO_PROTO cannot apply to: no kernel inside the node has the forced algorithm
 * and protocol for it, nor has the host between nodes. */
static rondo_result_t check_forced(rd_cuda_t *cuda, const rd_call_t *call)
{
    rd_env_t own;
    const rd_env_t *env = rd_force_env(cuda->team->env, call->desc.forced, &own);
    rd_coll_t coll = call->desc.coll;
    /* On all ranks alike, though not every rank may choose a kernel. */
    rondo_result_t named = call->desc.forced ? rd_kchoose_names(env, cuda->team->ctx) : RONDO_SUCCESS;

    if (named != RONDO_SUCCESS)
        return named;
    if (coll == RD_BARRIER || rd_force_prefers(call->desc.forced) || rd_forced_serves_between(env, coll) ||
        rd_hier_follows(cuda, call))
        return RONDO_SUCCESS;
    return rd_error(cuda->team->ctx, RONDO_ERR_UNSUPPORTED,
                    "RONDO_ALGO '%s', RONDO_PROTO '%s': %s of %zu elements has no part inside %s that can go by "
                    "this, and between nodes the host has no such algorithm or protocol for it",
                    env->algo, env->proto, rd_coll_name(coll), call->desc.count,
                    cuda->team->node->fewest == 1 ? "every node (one has a single rank)" : "a node");
}

rondo_result_t rd_proxy_path_collective(rd_cuda_t *cuda, const rd_call_t *call)
{
    rondo_result_t result = check_forced(cuda, call);

    if (result == RONDO_SUCCESS)
        result = check(cuda->path, call);
    if (result != RONDO_SUCCESS)
        return result;
    if (rd_gdr_moves(cuda->path, call))
        return rd_messages_collective(cuda, call);
    return cuda->node_comm ? rd_hier_run(cuda, call) : rd_proxy_path_run(cuda->path, RD_NET_COMM_ALL, call);
}

/* ---- messages */

static void add_pieces(const rd_proxy_path_t *s, uint64_t bytes, raises_t *raises, uint64_t *most)
{
    uint32_t channels = raises->channels, piece = rd_kpiece(bytes, 1, channels, s->k.least, s->k.message_slot);
    uint64_t pieces = (bytes + piece - 1) / piece;

    *most = bytes > *most ? bytes : *most;
    for (uint32_t c = 0; c < channels; c++)
        raises->of[c] += pieces <= c ? 0 : (pieces - c + channels - 1) / channels;
}

/* Counts the triggers of a pair's messages; GDR messages share triggers of proxy channel 0. Returns true if there
 * are GDR messages. */
static bool add_messages(const rd_proxy_path_t *s, const rd_kmessage_t *m, uint32_t count, raises_t *raises,
                         uint64_t *most)
{
    bool gdr = false;

    for (uint32_t i = 0, run; i < count; i += run ? run : 1) {
        run = rd_kgdr_run(m + i, count - i);
        raises->of[0] += run != 0;
        gdr |= run != 0;
        if (!run)
            add_pieces(s, m[i].bytes, raises, most);
    }
    return gdr;
}

/* Returns how many proxy channels share a message: no more than its kernel has blocks for, with the most pairs that
 * there may be, and beside the kernels of other ranks on this GPU. The same on all ranks. */
static uint32_t channels_for_messages(const rd_proxy_path_t *s)
{
    uint32_t most = s->cuda->limits.blocks < MESSAGE_BLOCKS ? s->cuda->limits.blocks : MESSAGE_BLOCKS;
    uint32_t fit = most / s->pairs;

    return fit < 1 ? 1 : fit < s->k.channels ? fit : s->k.channels;
}

uint32_t rd_proxy_path_beside(const rd_proxy_path_t *s, uint32_t pairs)
{
    uint32_t fit = rd_kernel_at_once() * 32 / rd_kernel_threads(RD_KERNEL_MIXED, RD_PROTO_LL); /* blocks */

    return (pairs * channels_for_messages(s) + fit - 1) / fit;
}

uint32_t rd_proxy_path_beside_most(const rd_proxy_path_t *s)
{
    uint32_t host_windows = 2 * (uint32_t)(s->cuda->team->nranks - s->cuda->team->node->nlocal);

    return rd_proxy_path_beside(s, host_windows < s->pairs ? host_windows : s->pairs);
}

/* Proxy channel 0 deals GDR messages out to these, which should be awake. */
static void wake_dealt(rd_proxy_path_t *s)
{
    for (int c = 1; c < rd_gdr_channels(s); c++)
        rd_proxy_wake(&s->channels[c].client);
}

rondo_result_t rd_proxy_path_messages(rd_cuda_t *cuda, rd_kwork_t *work, const rd_klaunch_t *near, cudaStream_t stream)
{
    rd_proxy_path_t *s = cuda->path;
    rd_kproxied_messages_t *m = &work->proxied_messages;
    rd_klaunch_t l = {.kernel = RD_KERNEL_PROXIED_MESSAGES, .coll = RD_ALLTOALL};
    raises_t raises = {channels_for_messages(s), {0}};
    uint64_t most = 0;
    bool gdr = false;

    for (uint32_t p = 0; p < m->npairs; p++)
        gdr |= add_messages(s, m->messages.here + m->pair[p].first, m->pair[p].count, &raises, &most);
    l.threads = threads_for(&l, most);
    if (near)
        l = *near;
    l.blocks += m->npairs * teams_of(&raises);
    rondo_result_t result = launch(s, &l, work, &m->proxy, NULL, &raises, stream);
    if (gdr)
        wake_dealt(s);
    return result;
}

rondo_result_t rd_proxy_path_gdr(rd_proxy_path_t *s, const rd_klaunch_t *l, rd_kwork_t *work, uint64_t triggers,
                                 cudaStream_t stream)
{
    const raises_t raises = {1, {triggers}};
    rondo_result_t result = launch(s, l, work, &work->gdr.proxy, NULL, &raises, stream);

    wake_dealt(s);
    return result;
}
