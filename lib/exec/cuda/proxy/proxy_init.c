/* Creation and end of the proxy path: see proxy.h. */
#include "exec/cuda/graveyard.h"

#include <stdlib.h>
#include <string.h>

#define SLOT ((size_t)512 << 10)
#define SLOT_MOST ((size_t)2 << 20)
#define SLOT_EACH ((size_t)4 << 10) /* bytes of a rank's part of a slot, as far as SLOT_MOST allows */
#define SLOTS 4u
#define LEAST ((size_t)32 << 10) /* bytes of a round or piece, at least */
#define CHANNELS RD_PROXIES

/* Returns the number of proxy channels: at most half of a rank's cores, since the other half is the user's. The same on
 * all ranks. */
static int channels_of(const rd_env_t *env, int cores_each)
{
    int half = cores_each / 2;

    if (env->proxy_threads)
        return env->proxy_threads;
    return half < 1 ? 1 : half < CHANNELS ? half : CHANNELS;
}

bool rd_proxy_path_needed(int nranks, int nnodes)
{
    return nnodes > 1 || nranks > RD_KRANKS;
}

/* Returns the bytes of a slot. Every rank has a part of it. Slots are longer if there are many ranks, because a part is
 * a message. */
static size_t slot_for(size_t n, const rd_env_t *env)
{
    size_t least = (RD_PROXY_PATH_PART * n + 4095) / 4096 * 4096;
    size_t most = n * SLOT_EACH < SLOT_MOST ? n * SLOT_EACH : SLOT_MOST;
    size_t slot = env->proxy_bytes ? env->proxy_bytes / 4096 * 4096 : most > SLOT ? most : SLOT;

    return slot < least ? least : slot;
}

static size_t channel_bytes(size_t n, const rd_env_t *env)
{
    return (size_t)SLOTS * 2 * slot_for(n, env);
}

/* Returns the parts of a collective that may not fit into a launch. */
static size_t rows_of(size_t n)
{
    return n > RD_KRANKS ? 2 * n : 0;
}

/* Returns the bytes of device memory for collectives that go by GDR, if that is found; RONDO_GDR=1 says that it is. */
static size_t scratch_of(const rd_env_t *env)
{
    return env->gdr_coll_min ? env->gdr_scratch : 0;
}

static void layout(rd_proxy_path_t *s, const rd_env_t *env)
{
    size_t n = (size_t)s->cuda->k.nranks;
    size_t least = env->proxy_round ? env->proxy_round : LEAST;

    s->k.slots = SLOTS;
    s->k.slot = (uint32_t)slot_for(n, env);
    s->k.message_slot = (uint32_t)((size_t)2 * s->k.slot / (s->pairs + 2) / 64 * 64);
    s->k.least = (uint32_t)(least < s->k.message_slot ? least : s->k.message_slot);
    s->k.channels = (uint32_t)s->nchannels;
}

/* Returns the most pairs of a launch. Every pair has a block at least, and all of them wait on the device at once. Up
 * to 16 ranks, a launch has all pairs that there are, so ranks may group as they like. */
static uint32_t pairs_of(const rd_cuda_t *cuda)
{
    uint32_t n = (uint32_t)cuda->k.nranks, fit = cuda->limits.blocks / 2 * 2;

    if (n <= RD_KRANKS)
        return 2 * (n - 1);
    return fit < 2 ? 2 : fit < RD_KPAIRS ? fit : RD_KPAIRS;
}

static int channel_begin(rd_proxy_path_t *s, int number, size_t bytes, int numa)
{
    rd_proxy_channel_t *channel = &s->channels[number];

    channel->number = number;
    channel->counts = calloc(2 * (size_t)s->cuda->k.nranks, sizeof *channel->counts);
    channel->slots = s->area->pinned + RD_PROXY_PATH_LANES_BYTES + (size_t)number * bytes;
    for (int l = 0; l < s->nlanes; l++)
        channel->lanes[l].pinned = (rd_klane_t *)(void *)s->area->pinned + number * RD_KPROXY_LANES + l;
    channel->client.turn = rd_proxy_progress;
    channel->client.arg = channel;
    channel->client.numa = numa;
    channel->client.proxy = number;
    channel->client.awake_us = s->cuda->team->env->proxy_poll_us;
    return channel->counts ? 0 : -1;
}

static rondo_result_t memory(rd_proxy_path_t *s)
{
    const rd_team_t *team = s->cuda->team;
    size_t n = (size_t)team->nranks, bytes = channel_bytes(n, team->env);
    char *pinned = NULL;
    cudaError_t error;
    int short_of = 0;

    s->nchannels = channels_of(team->env, team->cores_each);
    s->pairs = pairs_of(s->cuda);
    s->nlanes = 1 + (int)s->pairs;
    layout(s, team->env);
    s->channels = calloc((size_t)s->nchannels, sizeof *s->channels);
    s->tasks = rd_proxy_path_tasks_create();
    for (int c = 0; s->channels && c < s->nchannels; c++)
        s->channels[c].path = s; /* an error from here on closes the channels */
    if (!s->channels || !s->tasks)
        return rd_error(team->ctx, RONDO_ERR_NO_MEMORY, "no memory for a CUDA communicator");
    error = rd_proxy_path_area_take(s->cuda->device, (size_t)s->nchannels * bytes, rows_of(n), scratch_of(team->env),
                                    &s->area);
    if (error == cudaSuccess)
        error = cudaHostGetDevicePointer((void **)&pinned, s->area->pinned, 0);
    if (error != cudaSuccess)
        return rd_cuda_error(team->ctx, error, "allocating the pinned memory of the proxies");
    s->k.lanes = (rd_klane_t *)(void *)pinned;
    s->k.area = pinned + RD_PROXY_PATH_LANES_BYTES;
    s->k.inlined = pinned + RD_PROXY_PATH_INLINE_AT;
    s->inlined = s->area->pinned + RD_PROXY_PATH_INLINE_AT;
    s->k.state = s->area->state;
    s->cuda->k.own = (char *)s->area->table;
    int numa = rd_proxy_path_numa(s->cuda->device);
    for (int c = 0; c < s->nchannels; c++)
        short_of |= channel_begin(s, c, bytes, numa);
    return short_of ? rd_error(team->ctx, RONDO_ERR_NO_MEMORY, "no memory for %zu ranks", n) : RONDO_SUCCESS;
}

/* Creates net communicators of the ranks that pass the same `first`, which is one of them: one for each of `channels`
 * proxy channels. nranks 0: this rank is in none. */
static rondo_result_t net_comms_make(rd_proxy_path_t *s, int net_comm, int channels, int first, int rank, int nranks)
{
    static const char *const names[RD_NET_COMMS] = {"net", "rail"};
    size_t each = (size_t)channels;
    const rd_team_t *team = s->cuda->team;
    rd_concealed_id_t *all = calloc((size_t)team->nranks * each, sizeof *all), *its;
    rondo_unique_id_t ids[RD_PROXIES];
    size_t made = 0;

    if (!all)
        return rd_error(team->ctx, RONDO_ERR_NO_MEMORY, "no memory for the ids of %d ranks", team->nranks);
    its = all + (size_t)first * each;
    for (size_t c = 0; team->rank == first && c < each; c++) { /* on failure an id that carries the error */
        (void)rd_boot_id_create(&ids[c], team->env);
        rd_boot_conceal(team->boot, &ids[c], &its[c]);
    }
    rondo_result_t result = rd_boot_allgather(team->boot, all, each * sizeof *all);
    s->net_comms[net_comm] = (rd_net_comm_t){rank, nranks};
    while (nranks && made < each && result == RONDO_SUCCESS) {
        result = rd_boot_reveal(team->boot, &its[made], &ids[made]);
        if (result == RONDO_SUCCESS)
            result = rd_boot_id_check(team->boot, &ids[made], first);
        if (result == RONDO_SUCCESS)
            result = s->cuda->net_comms->make(team, names[net_comm], &ids[made], rank, nranks,
                                              &s->channels[made].net_comms[net_comm]);
        made++;
    }
    for (size_t c = made; team->rank == first && c < each; c++)
        rd_boot_cancel(&ids[c], 1, rank, RONDO_ERR_ABORTED);
    explicit_bzero(ids, sizeof ids);
    free(all);
    return result;
}

/* Returns the ranks with this rank's local rank, by node, or NULL if there is no memory. */
static int *rail_of(const rd_team_t *team)
{
    const rd_node_t *node = team->node;
    int *rail = malloc((size_t)node->nnodes * sizeof *rail), *before = calloc((size_t)node->nnodes, sizeof *before);

    for (int r = 0; rail && before && r < team->nranks; r++) {
        if (before[node->node_of[r]]++ == node->self)
            rail[node->node_of[r]] = r;
    }
    if (!before) {
        free(rail);
        rail = NULL;
    }
    free(before);
    return rail;
}

/* Creates a rail for each local rank that all nodes have. A rank with a higher one is in no rail. */
static rondo_result_t rails(rd_proxy_path_t *s)
{
    const rd_team_t *team = s->cuda->team;
    const rd_node_t *node = team->node;
    int first = 0, local_rank = 0, of_one = node->self < node->fewest;

    for (; of_one && (node->node_of[first] != 0 || local_rank++ < node->self); first++)
        continue;
    s->rails = node->fewest;
    s->ordered = true;
    for (int r = 1; r < team->nranks; r++)
        s->ordered &= node->node_of[r] >= node->node_of[r - 1];
    if (of_one && !(s->rail = rail_of(team)))
        return rd_error(team->ctx, RONDO_ERR_NO_MEMORY, "no memory for the rails of %d nodes", node->nnodes);
    return net_comms_make(s, RD_NET_COMM_RAIL, s->nchannels, first, node->node_of[team->rank],
                          of_one ? node->nnodes : 0);
}

/* Some node has several ranks, and none has more than can map each other's windows. */
static bool has_inside(bool host_windows, int most)
{
    return !host_windows && most >= 2 && most <= RD_KRANKS;
}

/* Creates the node communicators, and rails. */
static rondo_result_t inside(rd_proxy_path_t *s)
{
    rd_cuda_t *cuda = s->cuda;
    const rd_node_t *node = cuda->team->node;
    bool host_windows = false;

    if (!has_inside(cuda->limits.host_windows, node->most))
        return RONDO_SUCCESS;
    rondo_result_t result = rd_node_comm_create(cuda, &host_windows);
    if (result == RONDO_SUCCESS && host_windows)
        rd_node_comm_free(cuda, NULL, NULL);
    return result == RONDO_SUCCESS && !host_windows ? rails(s) : result;
}

/* Creates the net communicators of all ranks, and of rails. */
static rondo_result_t net_comms(rd_proxy_path_t *s)
{
    const rd_team_t *team = s->cuda->team;
    rondo_result_t result = net_comms_make(s, RD_NET_COMM_ALL, s->nchannels, 0, team->rank, team->nranks);

    return result == RONDO_SUCCESS ? inside(s) : result;
}

static rondo_result_t serve(rd_proxy_path_t *s)
{
    for (int c = 0; c < s->nchannels; c++) {
        int error = rd_proxy_add(&s->channels[c].client);
        if (error)
            return rd_error(s->cuda->team->ctx, RONDO_ERR_SYSTEM, "no thread to serve the network: %s",
                            strerror(error));
        s->channels[c].served = true;
    }
    return RONDO_SUCCESS;
}

/* Reports how data goes. Warns if a rank has a single core: a rank that waits for its stream spins, and its proxies
 * then wait for the core. */
static void say_what_was_made(const rd_proxy_path_t *s)
{
    const rd_team_t *team = s->cuda->team;

    if (team->rank != 0)
        return;
    if (team->node->nnodes == 1)
        rd_log_slow(
            team->ctx,
            "%d ranks on one node, more than the %d whose GPUs' memory is mapped: data goes by proxies through %zu "
            "MB of pinned memory a rank, which %d threads serve, and not from GPU to GPU. Communicators of fewer "
            "ranks a node (rondo_comm_split) do that",
            team->nranks, RD_KRANKS, s->area->bytes >> 20, s->nchannels);
    else if (s->gdr_min)
        rd_log(
            team->ctx, RD_LOG_INFO,
            "CUDA between %d nodes: messages of %zu bytes and more, and collectives that send each rank %zu and more, "
            "go by GDR (%s), all other data goes by proxies through %zu MB of pinned memory a rank; %d threads serve "
            "both",
            team->node->nnodes, s->gdr_min, s->gdr_coll_min, s->gdr_reason, s->area->bytes >> 20, s->nchannels);
    else
        rd_log(team->ctx, RD_LOG_INFO,
               "CUDA between %d nodes: no message goes by GDR (%s), all data goes by proxies through %zu MB of pinned "
               "memory "
               "a rank, which %d threads serve",
               team->node->nnodes, s->gdr_reason, s->area->bytes >> 20, s->nchannels);
    if (team->cores_each < 2)
        rd_log(
            team->ctx, RD_LOG_WARN,
            "a rank has one core, which it shares with the proxy thread that moves its GPU's data: operations may take "
            "milliseconds. Give each rank more cores: mpirun --bind-to none or --map-by slot:PE=4, srun "
            "--cpus-per-task=4");
}

rondo_result_t rd_proxy_path_create(rd_cuda_t *cuda)
{
    rd_proxy_path_t *s = cuda->path = calloc(1, sizeof *s);

    if (!s)
        return rd_error(cuda->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for a CUDA communicator");
    s->cuda = cuda;
    rondo_result_t result = memory(s);
    if (result == RONDO_SUCCESS)
        result = net_comms(s);
    if (result == RONDO_SUCCESS)
        result = rd_gdr_find(s);
    if (result == RONDO_SUCCESS)
        result = serve(s);
    if (result != RONDO_SUCCESS)
        return result;
    rd_cuda_limit(cuda);
    say_what_was_made(s);
    return RONDO_SUCCESS;
}

void rd_proxy_path_foresee(const rd_env_t *env, const rondo_shape_t *shape, bool host_windows, rd_foresee_fn net_comm,
                           rondo_memory_t *memory)
{
    const rondo_shape_t rail = {sizeof rail, shape->nnodes, shape->nnodes, 1, 1, shape->cores, shape->p2p};
    int channels = channels_of(env, shape->cores / shape->most);
    size_t n = (size_t)shape->nranks;

    rd_proxy_path_area_memory(
        (size_t)channels * channel_bytes(n, env), rows_of(n),
        rd_gdr_is_tried(env, shape->nnodes) ? RD_GDR_TRIED + (env->gdr == 1 ? scratch_of(env) : 0) : 0, memory);
    for (int c = 0; c < channels; c++)
        net_comm(env, shape, memory);
    if (!has_inside(host_windows, shape->most))
        return;
    rd_window_foresee(env, shape->local, false, memory);
    for (int c = 0; c < channels; c++)
        net_comm(env, &rail, memory);
}

void rd_proxy_path_count(const rd_proxy_path_t *s, rondo_memory_t *memory)
{
    if (s->area)
        rd_proxy_path_area_memory(s->area->bytes, s->area->rows,
                                  (s->area->tried ? RD_GDR_TRIED : 0) + (s->area->scratch ? s->area->scratch_bytes : 0),
                                  memory);
    memory->device += rd_rcache_bytes(s);
    for (int i = 0; s->channels && i < RD_NET_COMMS * s->nchannels; i++) {
        const rd_queue_t *net_comm = s->channels[i / RD_NET_COMMS].net_comms[i % RD_NET_COMMS];
        if (net_comm)
            s->cuda->net_comms->count(net_comm, memory);
    }
}

void rd_proxy_path_limit(rd_proxy_path_t *s, int64_t timeout_ms)
{
    for (int i = RD_NET_COMMS * s->nchannels - 1; i >= 0; i--) {
        rd_queue_t *net_comm = s->channels[i / RD_NET_COMMS].net_comms[i % RD_NET_COMMS];
        if (net_comm)
            atomic_store_explicit(&net_comm->timeout_ms, timeout_ms, memory_order_relaxed);
    }
}

/* All net communicators say farewell before any of them waits for the farewells of others. */
static void net_comms_end(rd_proxy_path_t *s)
{
    const rd_net_comm_ops_t *ops = s->cuda->net_comms;

    for (int i = RD_NET_COMMS * s->nchannels - 1; i >= 0; i--) {
        rd_proxy_channel_t *channel = &s->channels[i / RD_NET_COMMS];
        rd_queue_t *net_comm = channel->net_comms[i % RD_NET_COMMS];
        rd_proxy_progress_failure(channel, i % RD_NET_COMMS);
        if (net_comm)
            ops->leave(net_comm);
    }
    for (int i = RD_NET_COMMS * s->nchannels - 1; i >= 0; i--) {
        rd_queue_t *net_comm = s->channels[i / RD_NET_COMMS].net_comms[i % RD_NET_COMMS];
        if (net_comm)
            ops->end(net_comm);
    }
}

bool rd_proxy_path_busy(const rd_cuda_t *cuda)
{
    const rd_proxy_path_t *s = cuda->path;
    bool busy = false;

    for (int c = 0; s && c < s->nchannels; c++)
        busy |= atomic_load(&s->channels[c].settled) != atomic_load(&s->channels[c].announced) ||
                rd_proxy_path_undone(&s->channels[c]);
    return busy;
}

void rd_proxy_path_close(rd_cuda_t *cuda)
{
    rd_proxy_path_t *s = cuda->path;

    if (!s)
        return;
    for (int c = 0; s->channels && c < s->nchannels; c++)
        if (s->channels[c].served)
            rd_proxy_remove(&s->channels[c].client);
    if (s->channels)
        net_comms_end(s);
    if (s->tasks)
        rd_proxy_path_tasks_close(s->tasks);
    if (s->area)
        rd_grave_area_leave(cuda, s->area);
    rd_rcache_free(s);
    for (int c = 0; s->channels && c < s->nchannels; c++) {
        free(s->channels[c].dealt);
        free(s->channels[c].counts);
    }
    free(s->channels);
    free(s->gdr);
    free(s->rail);
    free(s);
    cuda->path = NULL;
}
