/* The transport by a net plugin of NCCL's: its operations (transport/transport.h), in the table at the end. Those that
 * end something are in plug_leave.c; netplugin.h lists the files. There are no zero-copy sends: a plugin could not be
 * made to give the user's memory back after a failure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "netplugin/netplugin.h"
#include "netplugin/plug_search.h"
#include "node/rails.h"
#include "transport/conns.h"

#define LONGEST ((size_t)508 << 10) /* payload, where there are no connections that say it */

/* What a plugin starts in the meantime, threads of its own, no signal of the user's reaches. */
static rondo_result_t start(rd_plug_net_t *net, const rd_transport_args_t *args)
{
    sigset_t mask;
    rd_signals_block(&mask);
    rondo_result_t result =
        rd_plug_open(net, args->env, args->node, args->conns ? args->conns->layout.long_bytes : LONGEST);
    if (result == RONDO_SUCCESS)
        result = rd_net_wireup(&net->base, args->env);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return result;
}

static rondo_result_t create(rd_transport_t **transport, const rd_transport_args_t *args)
{
    rd_plug_net_t *net = calloc(1, sizeof *net);
    if (!net || !rd_net_init(&net->base, &rd_plug_library, args)) {
        free(net);
        return rd_error(args->ctx, RONDO_ERR_NO_MEMORY, "no memory for the network of %d ranks", args->nranks);
    }
    rondo_result_t result = start(net, args);
    if (result != RONDO_SUCCESS) {
        rd_plug_destroy(&net->base.transport);
        return result;
    }
    rd_log(net->base.ctx, RD_LOG_INFO, "network by the net plugin %s, version %d, of %s, device %d", net->plug->name,
           net->plug->version, net->plug->file, net->device);
    *transport = &net->base.transport;
    return RONDO_SUCCESS;
}

static size_t conn_bytes(void)
{
    return sizeof(rd_plug_conn_t) + sizeof(rd_net_conn_t *);
}

static const char *version(void)
{
    static _Thread_local char text[100];
    const rd_plug_t *plug = rd_plug_loaded();
    if (!plug)
        return "net plugins of NCCL's, versions 8 to 11";
    snprintf(text, sizeof text, "net plugin %.60s, version %d", plug->name, plug->version);
    return text;
}

static void device_add(const rd_plug_t *plug, int device, rd_transport_report_t *report)
{
    rd_plug_device_t what;
    const size_t used = strlen(report->devices), room = sizeof report->devices - used;

    if (rd_plug_device(plug, device, &what) == 0 && strlen(what.name) + 2 < room)
        snprintf(report->devices + used, room, "%s%s", used ? " " : "", what.name);
}

/* The devices, all of them or the one that RONDO_NET names for a rank, by turns: which is near is known where there are
 * ranks. */
static rondo_result_t devices_add(const rd_plug_t *plug, const rd_env_t *env, int local_rank,
                                  rd_transport_report_t *report)
{
    char name[64];
    int device;

    if (local_rank < 0) {
        for (int d = 0; d < plug->ndevices; d++)
            device_add(plug, d, report);
        return RONDO_SUCCESS;
    }
    report->reason = "RONDO_NET names it";
    rd_node_rail_name(env->net, local_rank, name, sizeof name);
    if (rd_plug_device_named(plug, name, &device) != 0 || device < 0)
        return rd_plug_no_device(NULL, plug, name);
    device_add(plug, device, report);
    return RONDO_SUCCESS;
}

/* A plugin may take devices for itself as it is loaded, so none is loaded only to be shown. One of version 11 may know
 * its devices only while it has a context (aws-ofi-nccl). */
static rondo_result_t probe(const rd_env_t *env, const char *address, int local_rank, rd_transport_report_t *report)
{
    char why[RD_ERROR_BYTES];
    void *context;
    *report = (rd_transport_report_t){
        .reason = "ranks of a node share its devices, near ones first",
        .advice = "RONDO_NET_PLUGIN names a file, or NAME of libnccl-net-NAME.so; `rondo-info net` without RONDO_NET "
                  "says which devices there are"};
    snprintf(report->settings, sizeof report->settings, "plugin %.60s (RONDO_NET_PLUGIN)",
             *env->net_plugin ? env->net_plugin : "by default");
    if (strcmp(env->transport, rd_transport_plugin.name) != 0)
        return RONDO_SUCCESS;
    const rd_plug_t *plug = rd_plug_load(env, why, sizeof why);
    if (!plug)
        return rd_error(NULL, RONDO_ERR_UNSUPPORTED, "%s", why);
    const int error = rd_plug_begin(plug, &context, 0);
    if (error != 0)
        return rd_error(NULL, RONDO_ERR_SYSTEM, "the net plugin %.60s fails: %s", plug->name,
                        rd_plug_failure("init", error, why, sizeof why));
    rondo_result_t result = devices_add(plug, env, address && *env->net ? local_rank : -1, report);
    (void)rd_plug_end(plug, context);
    return result;
}

/* ---- messages */

static rondo_result_t post(rd_send_t *send, size_t bytes, int more)
{
    const rd_net_conn_t *conn = send->link;
    rd_plug_peer_t *peer = rd_plug_peer_of(conn->peer);
    rd_plug_message_t *m = rd_plug_message(peer, RD_NET_DATA, conn->channel);
    (void)more; /* a message is given at once */
    if (!m)
        return rd_stop_get(conn->peer->net->stop);
    rondo_result_t result = rd_net_head(send, bytes, &m->header);
    if (result != RONDO_SUCCESS) {
        rd_plug_release(rd_plug_net_of(peer), m);
        return result;
    }
    m->conn = send->link;
    m->bytes = (uint32_t)bytes;
    m->ring = rd_send_ring(send, bytes);
    m->data = rd_ring_slot(m->ring, send->slot);
    if (!rd_plug_push(peer, m, false))
        send->slot++;
    return rd_stop_get(conn->peer->net->stop); /* what has failed by then is this rank's own, or known already */
}

/* ---- progress */

/* Every peer may be the first to send, also one that was not used yet. */
bool rd_plug_poll(rd_net_t *base)
{
    rd_plug_net_t *net = (rd_plug_net_t *)base;
    bool any = false;
    for (int r = 0; r < net->base.nranks; r++) {
        rd_plug_peer_t *peer = rd_plug_peer(net, r);
        if (!peer->memory || peer->base.lost_ms != 0)
            continue;
        any |= rd_plug_poll_receives(peer);
        rd_plug_fill(peer);
        if (peer->base.lost_ms == 0)
            any |= rd_plug_poll_sends(peer);
    }
    return any;
}

static bool idle(rd_transport_t *transport)
{
    rd_plug_net_t *net = rd_plug_of(transport);
    return net->outstanding == 0 || net->base.left_ms != 0;
}

/* ---- peers */

/* Whose memory a call waits for that has done everything else: a long payload is still in its slot. What a rank has
 * taken before it left may complete here a little later. */
static int awaited(const rd_transport_t *transport)
{
    const rd_plug_net_t *net = (const rd_plug_net_t *)transport;
    for (const rd_plug_peer_t *p = rd_plug_first(net); p; p = rd_plug_next(p))
        if ((p->nlongs != 0 || p->payloads.first) && (p->left_ms == 0 || rd_clock_ms() - p->left_ms > RD_NET_GRACE_MS))
            return p->base.rank;
    return -1;
}

/* Every comm is there when greetings begin, so that no greeting needs an answer. */
static void greet(rd_net_peer_t *peer)
{
    rd_net_say(peer, RD_NET_HELLO, 1);
}

const rd_transport_ops_t rd_transport_plugin = {.name = "plugin",
                                                .reach = RD_BETWEEN_NODES,
                                                .asked_for = true,
                                                .signs = true,
                                                .version = version,
                                                .unusable = rd_plug_unusable,
                                                .probe = probe,
                                                .conn_bytes = conn_bytes,
                                                .create = create,
                                                .bind_send = rd_net_bind_send,
                                                .bind_recv = rd_net_bind_recv,
                                                .leave = rd_plug_leave,
                                                .destroy = rd_plug_destroy,
                                                .post = post,
                                                .credit = rd_net_credit,
                                                .progress = rd_net_progress,
                                                .idle = idle,
                                                .zcopy_peer = awaited,
                                                .seek = rd_net_seek,
                                                .ask_called = rd_net_ask_called,
                                                .called = rd_net_called,
                                                .farewell = rd_net_farewell,
                                                .cancel = rd_plug_cancel};

const rd_net_library_t rd_plug_library = {
    .ops = &rd_transport_plugin,
    .peer_bytes = sizeof(rd_plug_peer_t),
    .conn_bytes = sizeof(rd_plug_conn_t),
    .unreached = "(RONDO_NET, the plugin's own variables, RONDO_CREATE_TIMEOUT_MS)",
    .greet = greet,
    .credit = rd_net_say_credit,
    .say_bye = rd_net_say_bye,
    .say = rd_plug_say,
    .answer = rd_plug_answer,
    .poll = rd_plug_poll,
};
