/* The comms of one communicator: made, and closed.
 *
 * A listening comm serves one connection, as NCCL uses it, so each rank listens twice for every rank of another node,
 * and the handles go over the authenticated bootstrap: some ranks' at a time, because a pair has its own. Then all
 * connect and accept at once, without waiting for one another; a call that gives no comm yet is made again. The handle
 * is the plugin's to write in meanwhile. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "netplugin/netplugin.h"
#include "node/rails.h"
#include "transport/conns.h"

#define COLUMNS 32       /* ranks whose handles are exchanged at a time */
#define NEWS_EVERY_MS 10 /* of the bootstrap, while ranks connect */
#define NAME 64

static rondo_result_t failed(const rd_plug_net_t *net, const char *call, int error)
{
    char text[80];
    return rd_error(net->base.ctx, RONDO_ERR_SYSTEM, "the net plugin %.60s of %.200s fails: %s", net->plug->name,
                    net->plug->file, rd_plug_failure(call, error, text, sizeof text));
}

/* ---- this rank's part */

/* Lists the plugin's devices for rd_node_rail, by their folders where the plugin tells them. Returns NCCL's result. */
static int devices_list(const rd_plug_net_t *net, char *list, size_t bytes)
{
    rd_plug_device_t what;
    size_t used = 0;

    *list = '\0';
    for (int d = 0; d < net->plug->ndevices && used < bytes; d++) {
        int error = rd_plug_device(net->plug, d, &what);
        if (error != 0)
            return error;
        used += (size_t)snprintf(list + used, bytes - used, "%s%s", d > 0 ? "," : "",
                                 what.path && what.path[0] == '/' ? what.path : what.name);
    }
    return 0;
}

/* Without RONDO_NET: this rank's share of all devices. */
static rondo_result_t device_share(rd_plug_net_t *net, const rd_node_t *node)
{
    const size_t bytes = (size_t)net->plug->ndevices * PATH_MAX;
    char *list = malloc(bytes);

    if (!list)
        return rd_error(net->base.ctx, RONDO_ERR_NO_MEMORY, "no memory for a list of network devices");
    int error = devices_list(net, list, bytes);
    net->device = error == 0 ? rd_node_rail(node, list, rd_locality_sys()) % net->plug->ndevices : 0;
    free(list);
    return error == 0 ? RONDO_SUCCESS : failed(net, "getProperties", error);
}

rondo_result_t rd_plug_no_device(rd_log_ctx_t *ctx, const rd_plug_t *plug, const char *name)
{
    return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT,
                    "RONDO_NET names %s, and the net plugin %.60s has no device of that name (`rondo-info net` lists "
                    "those that it has)",
                    name, plug->name);
}

/* Sets the device that RONDO_NET names for this rank, or its share of all. */
static rondo_result_t device_choose(rd_plug_net_t *net, const rd_env_t *env, const rd_node_t *node)
{
    char name[NAME];

    if (!*env->net)
        return device_share(net, node);
    rd_node_rail_name(env->net, rd_node_rail(node, env->net, rd_locality_sys()), name, sizeof name);
    int error = rd_plug_device_named(net->plug, name, &net->device);
    if (error != 0)
        return failed(net, "getProperties", error);
    return net->device >= 0 ? RONDO_SUCCESS : rd_plug_no_device(net->base.ctx, net->plug, name);
}

static rondo_result_t device_check(const rd_plug_net_t *net, size_t longest)
{
    rd_plug_device_t what;
    int error = rd_plug_device(net->plug, net->device, &what);
    const char *lacks = NULL;

    if (error != 0)
        return failed(net, "getProperties", error);
    if (!(what.memory & RD_PLUG_HOST))
        lacks = "does not take the host's memory";
    else if (what.offload != 0)
        lacks = "needs kernels of NCCL's";
    else if (what.most_bytes < longest || what.most_bytes < RD_PLUG_BUFFER)
        lacks = "carries no messages as long as the slots between nodes (RONDO_SLICE_BYTES)";
    if (!lacks)
        return RONDO_SUCCESS;
    return rd_error(net->base.ctx, RONDO_ERR_UNSUPPORTED, "the device %.60s of the net plugin %.60s %s", what.name,
                    net->plug->name, lacks);
}

static rondo_result_t listen_all(rd_plug_net_t *net)
{
    for (int r = 0; r < net->base.nranks; r++) {
        rd_plug_peer_t *peer = rd_plug_peer(net, r);
        if (!peer->base.remote)
            continue;
        peer->handles = calloc(RD_PLUG_COMMS, sizeof *peer->handles);
        if (!peer->handles)
            return rd_error(net->base.ctx, RONDO_ERR_NO_MEMORY, "no memory for the handles of a net plugin");
        for (int k = 0; k < RD_PLUG_COMMS; k++) {
            int error = rd_plug_listen(net->plug, net->context, net->device, peer->handles[k], &peer->listens[k]);
            if (error != 0 || !peer->listens[k])
                return failed(net, "listen", error);
        }
    }
    return RONDO_SUCCESS;
}

static rondo_result_t own_part(rd_plug_net_t *net, const rd_env_t *env, const rd_node_t *node, size_t longest)
{
    char why[RD_ERROR_BYTES];
    uint64_t id;
    memcpy(&id, net->base.token, sizeof id);
    net->plug = rd_plug_load(env, why, sizeof why);
    if (!net->plug)
        return rd_error(net->base.ctx, RONDO_ERR_UNSUPPORTED, "%s", why);
    int error = rd_plug_begin(net->plug, &net->context, id >> 1); /* the token itself stays secret */
    if (error != 0)
        return failed(net, "init", error);
    net->began = true;
    rondo_result_t result = device_choose(net, env, node);
    if (result == RONDO_SUCCESS)
        result = device_check(net, longest);
    return result == RONDO_SUCCESS ? listen_all(net) : result;
}

/* ---- the exchange */

typedef struct part {
    char name[NAME]; /* of the plugin; "": the rank's own part failed */
    int32_t version;
} part_t;

static rondo_result_t parts_compare(const rd_plug_net_t *net, const part_t *parts, const char *why)
{
    for (int r = 0; r < net->base.nranks; r++)
        if (!*parts[r].name)
            return rd_net_has_failed(&net->base, r, "has no working net plugin", why);
    for (int r = 1; r < net->base.nranks; r++) {
        if (strncmp(parts[r].name, parts[0].name, NAME) == 0)
            continue;
        rd_boot_farewell_alike(net->base.boot);
        return rd_error(net->base.ctx, RONDO_ERR_INVALID_USAGE,
                        "rank 0 (%s) has the net plugin %.60s, rank %d (%s) has %.60s: let RONDO_NET_PLUGIN name the "
                        "same one on all",
                        rd_boot_whois(net->base.boot, 0), parts[0].name, r, rd_boot_whois(net->base.boot, r),
                        parts[r].name);
    }
    return RONDO_SUCCESS;
}

/* All ranks see the same records, so all go on or all give up. */
static rondo_result_t agree(rd_plug_net_t *net, rondo_result_t own)
{
    part_t *parts = calloc((size_t)net->base.nranks, sizeof *parts);
    char why[RD_ERROR_BYTES]; /* the error of this rank; the exchange may report more */
    if (!parts)
        return rd_error(net->base.ctx, RONDO_ERR_NO_MEMORY, "no memory for %d ranks", net->base.nranks);
    if (own == RONDO_SUCCESS) {
        snprintf(parts[net->base.rank].name, NAME, "%s", net->plug->name);
        parts[net->base.rank].version = net->plug->version;
    }
    snprintf(why, sizeof why, "%s", rd_thread_error());
    rondo_result_t result = rd_boot_allgather(net->base.boot, parts, sizeof *parts);
    for (int r = 0; r < net->base.nranks; r++)
        parts[r].name[NAME - 1] = 0;
    if (result == RONDO_SUCCESS)
        result = parts_compare(net, parts, why);
    if (own != RONDO_SUCCESS) {
        result = own;
        rd_thread_error_set(why);
    }
    free(parts);
    return result;
}

/* Each peer's handles come to lie in place of those that this rank has for it. */
static rondo_result_t exchange_some(rd_plug_net_t *net, char *all, int first, int columns)
{
    const size_t pair = sizeof(unsigned char[RD_PLUG_COMMS][RD_PLUG_HANDLE]), each = (size_t)columns * pair;
    const int rank = net->base.rank;
    for (int c = 0; c < columns; c++)
        if (rd_net_peer(&net->base, first + c)->remote)
            memcpy(all + (size_t)rank * each + (size_t)c * pair, rd_plug_peer(net, first + c)->handles, pair);
    return rd_boot_allgather(net->base.boot, all, each);
}

static rondo_result_t exchange(rd_plug_net_t *net)
{
    const int n = net->base.nranks, rank = net->base.rank;
    const size_t pair = sizeof(unsigned char[RD_PLUG_COMMS][RD_PLUG_HANDLE]);
    int columns = n < COLUMNS ? n : COLUMNS;
    char *all = calloc((size_t)n * (size_t)columns, pair), *mine = calloc((size_t)n, pair);
    rondo_result_t result = RONDO_SUCCESS;
    if (!all || !mine)
        result = rd_error(net->base.ctx, RONDO_ERR_NO_MEMORY, "no memory for the handles of %d ranks", n);
    for (int first = 0; result == RONDO_SUCCESS && first < n; first += columns) {
        int these = n - first < columns ? n - first : columns;
        result = exchange_some(net, all, first, these);
        for (int r = 0; rank >= first && rank < first + these && r < n; r++)
            memcpy(mine + (size_t)r * pair, all + ((size_t)r * (size_t)these + (size_t)(rank - first)) * pair, pair);
    }
    for (int r = 0; result == RONDO_SUCCESS && r < n; r++)
        if (rd_net_peer(&net->base, r)->remote)
            memcpy(rd_plug_peer(net, r)->handles, mine + (size_t)r * pair, pair);
    free(all);
    free(mine);
    return result;
}

/* ---- connecting */

/* Tries each comm that is missing once. Returns 0, or NCCL's error with the call that failed. */
static int advance(rd_plug_net_t *net, rd_plug_peer_t *peer, const char **call)
{
    int error = 0;
    for (int k = 0; error == 0 && k < RD_PLUG_COMMS; k++) {
        *call = "connect";
        peer->begun |= 1u << k;
        if (!peer->sends[k])
            error = rd_plug_connect(net->plug, net->context, net->device, peer->handles[k], &peer->sends[k]);
        if (error != 0) {
            peer->begun &= ~(1u << k);
            break;
        }
        *call = "accept";
        if (!peer->recvs[k])
            error = rd_plug_accept(net->plug, peer->listens[k], &peer->recvs[k]);
    }
    return error;
}

static bool is_connected(const rd_plug_peer_t *peer)
{
    for (int k = 0; k < RD_PLUG_COMMS; k++)
        if (!peer->sends[k] || !peer->recvs[k])
            return false;
    return true;
}

/* Tries all that are missing. Returns the first rank that still is; -1: there is none. */
static int advance_all(rd_plug_net_t *net, rondo_result_t *result)
{
    int missing = -1;
    for (int r = 0; *result == RONDO_SUCCESS && r < net->base.nranks; r++) {
        rd_plug_peer_t *peer = rd_plug_peer(net, r);
        const char *call = "";
        char text[80];
        if (!peer->base.remote || is_connected(peer))
            continue;
        int error = advance(net, peer, &call);
        if (error != 0)
            *result = rd_net_why_unreached(&net->base);
        if (error != 0 && *result == RONDO_SUCCESS)
            *result = rd_stop_set(net->base.stop, net->base.ctx, RONDO_ERR_REMOTE, r,
                                  "rank %d (%s) is not reached by the net plugin %.60s, %s", r,
                                  rd_boot_whois(net->base.boot, r), net->plug->name,
                                  rd_plug_failure(call, error, text, sizeof text));
        if (missing < 0 && !is_connected(peer))
            missing = r;
    }
    return missing;
}

static rondo_result_t connect_all(rd_plug_net_t *net, const rd_env_t *env)
{
    rondo_result_t result = rd_stop_get(net->base.stop);
    int64_t asked_ms = rd_clock_ms();
    rd_wait_t wait;
    int rank;
    rd_wait_begin(&wait, net->base.stop, 0, env->create_timeout_ms);
    while ((rank = advance_all(net, &result)) >= 0 && result == RONDO_SUCCESS) {
        result = rd_wait_backoff(&wait);
        if (result == RONDO_IN_PROGRESS) {
            rd_log(net->base.ctx, RD_LOG_WARN, "still waiting for rank %d (%s) to be connected by the net plugin %s",
                   rank, rd_boot_whois(net->base.boot, rank), net->plug->name);
            result = RONDO_SUCCESS;
        }
        if (result == RONDO_SUCCESS && rd_clock_ms() - asked_ms >= NEWS_EVERY_MS) {
            asked_ms = rd_clock_ms();
            result = rd_boot_check(net->base.boot);
        }
    }
    if (result == RONDO_ERR_TIMEOUT && rd_stop_get(net->base.stop) == RONDO_SUCCESS)
        rd_error(net->base.ctx, result,
                 "rank %d (%s) was not connected by the net plugin %.60s within %lld ms: does a firewall close the "
                 "ports between the hosts %s?",
                 rank, rd_boot_whois(net->base.boot, rank), net->plug->name, (long long)env->create_timeout_ms,
                 rd_plug_library.unreached);
    return result == RONDO_SUCCESS || result == RONDO_ERR_TIMEOUT
               ? rd_boot_meet_waiters(net->base.boot, result, env->create_timeout_ms)
               : result;
}

/* ---- memory */

int rd_plug_register(rd_plug_peer_t *peer, bool send, rd_plug_ring_t *rings, rd_ring_t ring, void **registration)
{
    void *comm = (send ? peer->sends : peer->recvs)[RD_PLUG_COMM_LONG];
    int i = 0, error = 0;
    while (i < RD_RINGS && rings[i].slots && rings[i].slots != ring.slots)
        i++;
    if (!rings[i].slots) {
        size_t bytes = ((size_t)ring.mask + 1) * ring.bytes;
        error = rd_plug_reg(rd_plug_net_of(peer)->plug, comm, ring.slots, bytes, &rings[i].registration);
        rings[i].slots = error == 0 ? ring.slots : NULL;
    }
    *registration = rings[i].registration;
    return error;
}

static rondo_result_t memory_make(rd_plug_net_t *net, rd_plug_peer_t *peer)
{
    const size_t out = (size_t)RD_PLUG_AHEAD * RD_PLUG_BUFFER, in = (size_t)RD_PLUG_POSTED * RD_PLUG_BUFFER;
    peer->memory = aligned_alloc(4096, (out + in + 4095) / 4096 * 4096);
    if (!peer->memory)
        return rd_error(net->base.ctx, RONDO_ERR_NO_MEMORY, "no memory for %zu bytes of network buffers", out + in);
    int error = rd_plug_reg(net->plug, peer->sends[RD_PLUG_COMM_SHORT], peer->memory, out, &peer->sent_mr);
    if (error == 0)
        error = rd_plug_reg(net->plug, peer->recvs[RD_PLUG_COMM_SHORT], peer->memory + out, in, &peer->received_mr);
    return error != 0 ? failed(net, "regMr (is `ulimit -l` unlimited?)", error) : RONDO_SUCCESS;
}

static void comm_close(const rd_plug_net_t *net, rd_plug_end_t end, void **comm)
{
    if (*comm)
        (void)rd_plug_close_comm(net->plug, end, *comm);
    *comm = NULL;
}

/* The interface has no end for a connect that is under way. Another call may complete it, so that it can be closed, or
 * fail, and then it is the plugin's to end. */
static void connects_end(const rd_plug_net_t *net, rd_plug_peer_t *peer)
{
    for (int k = 0; k < RD_PLUG_COMMS && peer->handles; k++)
        if (peer->begun >> k & 1 && !peer->sends[k])
            (void)rd_plug_connect(net->plug, net->context, net->device, peer->handles[k], &peer->sends[k]);
}

/* What has listened has served its connection. */
static void listens_close(const rd_plug_net_t *net, rd_plug_peer_t *peer)
{
    for (int k = 0; k < RD_PLUG_COMMS; k++) {
        comm_close(net, RD_PLUG_END_LISTEN, &peer->listens[k]);
    }
    free(peer->handles);
    peer->handles = NULL;
}

static rondo_result_t make(rd_plug_net_t *net, const rd_env_t *env)
{
    rondo_result_t result = exchange(net);
    if (result == RONDO_SUCCESS)
        result = connect_all(net, env);
    for (int r = 0; result == RONDO_SUCCESS && r < net->base.nranks; r++) {
        rd_plug_peer_t *peer = rd_plug_peer(net, r);
        if (!peer->base.remote)
            continue;
        listens_close(net, peer);
        peer->due = RD_PLUG_POSTED - 1;
        result = memory_make(net, peer);
        if (result == RONDO_SUCCESS)
            rd_plug_post(peer);
    }
    return result;
}

rondo_result_t rd_plug_open(rd_plug_net_t *net, const rd_env_t *env, const rd_node_t *node, size_t longest)
{
    rd_fd_noted_t noted;
    rd_fd_note(&noted);
    rd_fd_guard_begin();
    net->guarded = true;
    rondo_result_t result = agree(net, own_part(net, env, node, longest));
    if (result == RONDO_SUCCESS)
        result = make(net, env);
    rd_fd_close_on_exec(&noted, false);
    return result;
}

/* ---- the end */

static void rings_give_back(const rd_plug_net_t *net, void *comm, rd_plug_ring_t *rings)
{
    for (int i = 0; i <= RD_RINGS; i++) {
        if (rings[i].slots && comm)
            (void)rd_plug_dereg(net->plug, comm, rings[i].registration);
        rings[i].slots = NULL;
    }
}

static void longs_close(rd_plug_net_t *net, rd_plug_peer_t *peer)
{
    for (int c = 0; c < peer->base.nconns; c++) {
        rd_plug_conn_t *conn = (rd_plug_conn_t *)peer->base.conns[c];
        if (!conn)
            continue;
        rings_give_back(net, peer->sends[RD_PLUG_COMM_LONG], conn->sent);
        rings_give_back(net, peer->recvs[RD_PLUG_COMM_LONG], conn->received);
    }
    comm_close(net, RD_PLUG_END_SEND, &peer->sends[RD_PLUG_COMM_LONG]);
    comm_close(net, RD_PLUG_END_RECV, &peer->recvs[RD_PLUG_COMM_LONG]);
    while (peer->landings) {
        rd_plug_landing_t *l = peer->landings;
        peer->landings = l->next;
        free(l);
    }
}

void rd_plug_close_longs(rd_plug_net_t *net)
{
    for (int r = 0; r < net->base.nranks; r++)
        longs_close(net, rd_plug_peer(net, r));
}

static void peer_close(rd_plug_net_t *net, rd_plug_peer_t *peer)
{
    void **sent = &peer->sends[RD_PLUG_COMM_SHORT], **received = &peer->recvs[RD_PLUG_COMM_SHORT];
    rd_plug_forget(peer);
    connects_end(net, peer);
    longs_close(net, peer);
    listens_close(net, peer);
    if (*sent && peer->sent_mr)
        (void)rd_plug_dereg(net->plug, *sent, peer->sent_mr);
    if (*received && peer->received_mr)
        (void)rd_plug_dereg(net->plug, *received, peer->received_mr);
    comm_close(net, RD_PLUG_END_SEND, sent);
    comm_close(net, RD_PLUG_END_RECV, received);
    free(peer->memory);
    peer->memory = NULL;
}

void rd_plug_close(rd_plug_net_t *net)
{
    for (int r = 0; net->plug && r < net->base.nranks; r++)
        peer_close(net, rd_plug_peer(net, r));
    if (net->began)
        (void)rd_plug_end(net->plug, net->context);
    if (net->guarded)
        rd_fd_guard_end();
    while (net->free) {
        rd_plug_message_t *m = net->free;
        net->free = m->next;
        free(m);
    }
}
