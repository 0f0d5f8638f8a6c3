/* Finds out whether messages can go from GPU to GPU by GDR (gdr.c).
 *
 * They can if a trial is fast enough. UCX accepts device memory for slow transports, too (over tcp at a tenth of the
 * rate of host memory). So each pair tries, and device memory must reach at least half the rate of host memory. The
 * trial has another use: what UCX creates at the first message (streams, events) CUDA might not be able to create
 * beside a kernel that waits. If there are many ranks, each tries those that are 1, 2, 4, 8 ... ranks away.
 *
 * Moreover, copies that UCX makes must not get queued behind operations that wait for them: see gdr_queues.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "exec/cuda/proxy/proxy.h"

#define TRY (RD_GDR_TRIED / 2)
#define TIMES 4 /* the first of which is not counted */

static bool flushes(int device)
{
    int order = 0, options = 0;

    if (cudaDeviceGetAttribute(&order, cudaDevAttrGPUDirectRDMAWritesOrdering, device) != cudaSuccess ||
        cudaDeviceGetAttribute(&options, cudaDevAttrGPUDirectRDMAFlushWritesOptions, device) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    return order < cudaGPUDirectRDMAWritesOrderingOwner && options & cudaFlushGPUDirectRDMAWritesOptionHost;
}

typedef struct probe {
    int32_t able; /* UCX accepts the memory, and there was some to try with; 2: it also fetches by keys */
    uint32_t device, offered, host; /* MB/s with the slowest peer; host 0: it is the same memory */
    int32_t held;                   /* messages were held up while streams waited */
    int32_t scratch;                /* it has memory for what collectives sum */
} probe_t;

/* Returns true while either message is under way; with NULL, while this rank still has anything to send. */
static bool under_way(rd_queue_t *by, const _Atomic int *first, const _Atomic int *second)
{
    return first ? atomic_load(first) || atomic_load(second) : !rd_transport_idle(by->net);
}

static rondo_result_t await(rd_queue_t *by, const _Atomic int *first, const _Atomic int *second)
{
    rondo_result_t result = RONDO_SUCCESS;
    rd_wait_t wait;

    rd_wait_begin(&wait, &by->health->stop, by->spin, by->team->env->create_timeout_ms);
    while (under_way(by, first, second) && (result == RONDO_SUCCESS || result == RONDO_IN_PROGRESS)) {
        if (rd_transport_progress(by->net))
            rd_wait_progress(&wait);
        else
            result = rd_wait_backoff(&wait);
    }
    return result == RONDO_IN_PROGRESS ? RONDO_SUCCESS : result;
}

/* Fails the communicator as the net communicator has failed, and makes UCX let go of the memory of the trial. */
static rondo_result_t cancel(rd_proxy_path_t *s, rd_queue_t *by, rondo_result_t result)
{
    int peer = rd_transport_gdr_peer(by->net);

    if (result == RONDO_ERR_TIMEOUT)
        rd_health_fail(by->health, result, peer,
                       "the probe of GDR exchanged no message with rank %d (%s) within %lld ms", peer,
                       rd_health_whois(by->health, peer), (long long)by->team->env->create_timeout_ms);
    else
        rd_health_fail(by->health, result, -1, "the probe of GDR could not send a message: %s", rd_thread_error());
    rd_transport_cancel(by->net);
    return rd_health_follow(s->cuda->team->health, rd_health_check(by->health),
                            atomic_load(&by->health->stop.failed_rank), &by->health->stop,
                            " (during the probe of GDR, which RONDO_GDR=0 leaves out)");
}

/* Each rank sends to the one that is `k` ranks behind it, if that is on another node. */
static rondo_result_t exchange(rd_proxy_path_t *s, int channel, int k, char *memory, int device, int offered)
{
    const rd_team_t *team = s->cuda->team;
    rd_queue_t *by = s->channels[channel].net_comms[RD_NET_COMM_ALL];
    int to = (team->rank + k) % team->nranks, from = (team->rank - k + team->nranks) % team->nranks;
    const int *node_of = team->node->node_of;
    _Atomic int coming = node_of[from] != node_of[team->rank], going = node_of[to] != node_of[team->rank];
    const rd_kmessage_t tried = {memory, TRY | (device ? 0 : RD_KGDR_HOST)};
    rd_gdr_message_t out = {to, 1, device, memory, TRY, &going, {NULL, 0, 0}};
    const rd_gdr_message_t in = {from, 0, device, memory + TRY, TRY, &coming, {NULL, 0, 0}};
    rondo_result_t result = coming ? by->net->ops->gdr(by->net, &in) : RONDO_SUCCESS;

    if (offered)
        out.whole = rd_rcache_whole(s, &tried);
    if (result == RONDO_SUCCESS && going)
        result = by->net->ops->gdr(by->net, &out);
    if (result == RONDO_SUCCESS)
        result = await(by, &coming, &going);
    return result == RONDO_SUCCESS ? result : cancel(s, by, result);
}

/* Called before this rank waits for something else: sends what is left. */
static rondo_result_t settle(rd_proxy_path_t *s, int channel)
{
    rd_queue_t *by = s->channels[channel].net_comms[RD_NET_COMM_ALL];
    rondo_result_t result = await(by, NULL, NULL);

    return result == RONDO_SUCCESS ? result : cancel(s, by, result);
}

/* Returns the distance of the next rank to be tried. */
static int farther(const rd_proxy_path_t *s, int k)
{
    return s->cuda->k.nranks > RD_KRANKS ? 2 * k : k + 1;
}

static rondo_result_t try(rd_proxy_path_t *s, char *memory, int device, int offered, uint32_t *mb_s)
{
    rondo_result_t result = RONDO_SUCCESS;

    *mb_s = UINT32_MAX;
    for (int k = 1; k < s->cuda->k.nranks; k = farther(s, k)) {
        int64_t best = INT64_MAX;
        for (int i = 0; i < TIMES && result == RONDO_SUCCESS; i++) {
            int64_t began = rd_clock_ns();
            result = exchange(s, 0, k, memory, device, offered);
            int64_t us = (rd_clock_ns() - began) / 1000 + 1;
            best = i && us < best ? us : best;
        }
        if (result != RONDO_SUCCESS)
            return result;
        *mb_s = TRY / best < *mb_s ? (uint32_t)(TRY / best) : *mb_s;
    }
    return RONDO_SUCCESS;
}

/* Sets *of to the slowest rates of all ranks. Returns the rank that is slowest with messages that are announced without
 * keys. */
static int slowest(const probe_t *all, int n, probe_t *of)
{
    int rank = 0;

    *of = all[0];
    for (int r = 0; r < n; r++) {
        rank = all[r].device < all[rank].device ? r : rank;
        of->able = all[r].able < of->able ? all[r].able : of->able;
        of->offered = all[r].offered < of->offered ? all[r].offered : of->offered;
        of->host = all[r].host < of->host ? all[r].host : of->host;
    }
    of->device = all[rank].device;
    return rank;
}

/* Returns the first rank whose UCX does not accept the memory, or that had no memory to try with; n if there is none.
 */
static int unable(const probe_t *all, int n)
{
    int r = 0;

    while (r < n && all[r].able)
        r++;
    return r;
}

static rondo_result_t try_all(rd_proxy_path_t *s, probe_t *all)
{
    const rd_team_t *team = s->cuda->team;
    int hosted = s->cuda->hosted;
    probe_t *own = &all[team->rank], of;
    char *host = hosted ? NULL : malloc(2 * TRY);
    rondo_result_t result = try(s, s->area->tried, !hosted, 0, &own->device);

    own->host = own->offered = 0;
    (void)slowest(all, team->nranks, &of);
    if (result == RONDO_SUCCESS && of.able > 1)
        result = try(s, s->area->tried, !hosted, 1, &own->offered);
    if (result == RONDO_SUCCESS && host)
        result = try(s, memset(host, 1, 2 * TRY), 0, 0, &own->host);
    if (result == RONDO_SUCCESS)
        result = settle(s, 0);
    free(host);
    return result == RONDO_SUCCESS ? rd_boot_allgather(team->boot, all, sizeof *all) : result;
}

/* Allocates memory for the trial and finds out what the network can do with it. */
static void prepare(rd_proxy_path_t *s, probe_t *own)
{
    rd_cuda_t *cuda = s->cuda;

    bool fresh = true;

    if (!s->area->tried && rd_rcache_allocate(cuda, RD_GDR_TRIED, &s->area->tried, &fresh) != cudaSuccess) {
        (void)cudaGetLastError();
        s->area->tried = NULL;
    }
    if (s->area->tried && (!fresh || rd_rcache_announce(s->area->tried))) { /* a peer would have to close a mapping */
        rd_window_leave(cuda, s->area->tried, RD_GDR_TRIED, RD_LEFT_UNUSED);
        s->area->tried = NULL;
    }
    if (!s->area->tried)
        return;
    cuda->hosted = rd_buffer_hosts(cuda, s->area->tried);
    const rd_transport_t *net = s->channels[0].net_comms[RD_NET_COMM_ALL]->net;
    own->able = net->ops->gdr && (net->cuda || (cuda->hosted && cuda->team->env->gdr == 1));
    own->able += own->able && net->fetches;
}

static void decide(rd_proxy_path_t *s, const probe_t *all)
{
    const rd_team_t *team = s->cuda->team;
    int n = team->nranks, ctx = unable(all, n);
    probe_t of;

    if (ctx < n) {
        snprintf(s->gdr_reason, sizeof s->gdr_reason, "rank %d (%s): %s takes no GPU's memory by transports %s", ctx,
                 rd_boot_whois(team->boot, ctx),
                 rd_transport_version(s->channels[0].net_comms[RD_NET_COMM_ALL]->net->ops), team->env->ucx_tls);
        return;
    }
    ctx = slowest(all, n, &of);
    s->offers = of.able > 1 && (of.offered >= of.device / 2 || !of.host);
    if (of.host)
        snprintf(s->gdr_reason, sizeof s->gdr_reason,
                 "slowest with rank %d (%s), %u MB/s; by keys %u%s; the host's memory %u", ctx,
                 rd_boot_whois(team->boot, ctx), of.device, of.offered, s->offers ? "" : ", which are not used",
                 of.host);
    else
        snprintf(s->gdr_reason, sizeof s->gdr_reason, "it is the host's memory, too%s", s->offers ? ", by keys" : "");
    if (of.device >= of.host / 2)
        s->gdr_min = team->env->gdr_min ? team->env->gdr_min : 1;
    s->flushes = s->gdr_min && !s->cuda->hosted && flushes(s->cuda->device);
}

/* Tries again while streams wait in the GPU's queues. */
static rondo_result_t try_beside(rd_proxy_path_t *s, probe_t *all)
{
    const rd_team_t *team = s->cuda->team;
    rondo_result_t result = RONDO_SUCCESS;
    size_t bytes = s->area->bytes < TRY ? s->area->bytes : TRY;
    rd_queues_t *queues = rd_queues_fill(s->area->tried, s->area->pinned + RD_PROXY_PATH_LANES_BYTES, bytes);

    for (int k = 1; k < team->nranks && result == RONDO_SUCCESS; k = farther(s, k))
        result = exchange(s, 0, k, s->area->tried, 1, s->offers);
    all[team->rank].held = rd_queues_free(queues);
    if (result == RONDO_SUCCESS)
        result = settle(s, 0);
    return result == RONDO_SUCCESS ? rd_boot_allgather(team->boot, all, sizeof *all) : result;
}

/* A path on which messages may wait for ever is not used, unless RONDO_GDR=1 insists on it. */
static void decide_beside(rd_proxy_path_t *s, const probe_t *all)
{
    static const char *const why =
        "UCX copies by streams of its own, which may come to wait behind the program's in the "
        "GPU's hardware queues; the more of these there are (CUDA_DEVICE_MAX_CONNECTIONS=32) "
        "the rarer";
    const rd_team_t *team = s->cuda->team;
    int r = 0;

    while (r < team->nranks && !all[r].held)
        r++;
    if (r == team->nranks)
        return;
    if (team->env->gdr == 1 && team->rank == 0)
        rd_log(team->ctx, RD_LOG_WARN,
               "messages between GPUs go by GDR, because RONDO_GDR is 1, and may wait for ever: %s", why);
    if (team->env->gdr == 1)
        return;
    s->gdr_min = 0;
    s->flushes = s->offers = false;
    snprintf(s->gdr_reason, sizeof s->gdr_reason, "rank %d (%s): %s", r, rd_boot_whois(team->boot, r), why);
}

/* Memory for what collectives receive before it is summed, and send sums from: it must not lie where memory lay that
 * has been announced. */
static void scratch_take(rd_cuda_t *cuda, rd_proxy_path_area_t *area)
{
    bool fresh;

    if (rd_rcache_allocate(cuda, area->scratch_bytes, &area->scratch, &fresh) != cudaSuccess) {
        (void)cudaGetLastError();
        area->scratch = NULL;
    } else if (!fresh) {
        rd_window_leave(cuda, area->scratch, area->scratch_bytes, RD_LEFT_UNUSED);
        area->scratch = NULL;
    }
}

static void say_room(const rd_proxy_path_t *s)
{
    const rd_team_t *team = s->cuda->team;
    const size_t n = (size_t)team->node->nnodes;

    if (team->rank == 0 && !rd_gdr_has_room(s, n))
        rd_log(team->ctx, RD_LOG_INFO,
               "collectives between GPUs of %zu nodes that sum, or broadcast, do not go by GDR: RONDO_GDR_SCRATCH (%zu "
               "bytes) has %zu for each rank's part of a piece, and RONDO_GDR_COLL_MIN is %zu",
               n, s->gdr_scratch, rd_gdr_slot_bytes(s, n), s->gdr_coll_min);
}

/* Where a rank has no such memory, collectives that need it are staged on all; messages are not concerned. */
static rondo_result_t scratch(rd_proxy_path_t *s, probe_t *all)
{
    const rd_team_t *team = s->cuda->team;
    int r = 0;

    s->gdr_coll_min = team->env->gdr_coll_min;
    if (!s->gdr_coll_min)
        return RONDO_SUCCESS;
    if (!s->area->scratch)
        scratch_take(s->cuda, s->area);
    all[team->rank].scratch = s->area->scratch != NULL;
    rondo_result_t result = rd_boot_allgather(team->boot, all, sizeof *all);
    if (result != RONDO_SUCCESS)
        return result;
    while (r < team->nranks && all[r].scratch)
        r++;
    if (r == team->nranks) {
        s->gdr_scratch = s->area->scratch_bytes;
        (void)rd_rcache_announce(s->area->scratch);
        say_room(s);
    } else if (team->rank == 0) {
        rd_log(team->ctx, RD_LOG_INFO,
               "collectives between GPUs of different nodes that sum, or broadcast, do not go by GDR: rank %d (%s) has "
               "no RONDO_GDR_SCRATCH bytes (%zu) of device memory for them",
               r, rd_boot_whois(team->boot, r), s->area->scratch_bytes);
    }
    if (r < team->nranks && s->area->scratch) {
        rd_window_leave(s->cuda, s->area->scratch, s->area->scratch_bytes, RD_LEFT_UNUSED);
        s->area->scratch = NULL;
    }
    return RONDO_SUCCESS;
}

/* Each proxy channel that carries such messages exchanges some with all peers before kernels wait for it. */
static rondo_result_t share(rd_proxy_path_t *s, probe_t *all)
{
    rondo_result_t result = scratch(s, all);

    if (result != RONDO_SUCCESS)
        return result;
    if (!(s->gdr = calloc(2 * (size_t)s->cuda->k.nranks, sizeof *s->gdr)))
        return rd_error(s->cuda->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for messages between GPUs");
    for (int c = 0; c < rd_gdr_channels(s); c++) {
        if (!(s->channels[c].dealt = calloc(1, sizeof *s->channels[c].dealt)))
            return rd_error(s->cuda->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for messages between GPUs");
        for (int k = 1; c && k < s->cuda->k.nranks && result == RONDO_SUCCESS; k = farther(s, k))
            result = exchange(s, c, k, s->area->tried, !s->cuda->hosted, s->offers);
        if (result == RONDO_SUCCESS)
            result = settle(s, c);
    }
    return result;
}

/* Decides alike on all ranks, by what each has told in `all`. */
static rondo_result_t find(rd_proxy_path_t *s, probe_t *all)
{
    const rd_team_t *team = s->cuda->team;

    prepare(s, &all[team->rank]);
    rondo_result_t result = rd_boot_allgather(team->boot, all, sizeof *all);
    if (result == RONDO_SUCCESS && unable(all, team->nranks) == team->nranks)
        result = try_all(s, all);
    if (result == RONDO_SUCCESS)
        decide(s, all);
    if (result != RONDO_SUCCESS || !s->gdr_min || s->cuda->hosted)
        return result;
    result = try_beside(s, all);
    if (result == RONDO_SUCCESS)
        decide_beside(s, all);
    return result;
}

bool rd_gdr_is_tried(const rd_env_t *env, int nnodes)
{
    return env->gdr != 0 && nnodes > 1;
}

rondo_result_t rd_gdr_find(rd_proxy_path_t *s)
{
    const rd_team_t *team = s->cuda->team;

    if (!rd_gdr_is_tried(team->env, team->node->nnodes)) {
        snprintf(s->gdr_reason, sizeof s->gdr_reason,
                 team->node->nnodes == 1 ? "all are on one node" : "RONDO_GDR is 0");
        return RONDO_SUCCESS;
    }
    probe_t *all = calloc((size_t)team->nranks, sizeof *all);
    if (!all)
        return rd_error(team->ctx, RONDO_ERR_NO_MEMORY, "no memory for %d ranks", team->nranks);
    rondo_result_t result = find(s, all);
    const bool found = result == RONDO_SUCCESS && s->gdr_min;
    if (found)
        result = share(s, all);
    free(all);
    if (found)
        return result;
    if (result != RONDO_SUCCESS || team->env->gdr < 0)
        return result;
    rd_boot_farewell_alike(team->boot);
    return rd_error(team->ctx, RONDO_ERR_UNSUPPORTED,
                    "RONDO_GDR is 1, but GDR does not work between the GPUs of different nodes: %s", s->gdr_reason);
}
