/* One event in the layouts of seven versions: see plugin_abi.h. */
#include "profile/plugin_describe.h"

/* A plugin keeps pointers to what it reads: the words here are constants. A buffer that is sent is not written. */
static void *buffer_of(const rd_profile_call_t *call)
{
    return call->func == RD_FUNC_SEND ? (void *)(uintptr_t)call->in : call->out;
}

static void version1(rd_plugin_v1_t *d, const rd_plugin_event_t *e)
{
    const rd_profile_call_t *call = e->call;

    *d = (rd_plugin_v1_t){.type = (uint8_t)e->type, .parent = e->group, .rank = e->rank};
    if (e->type == RD_EVENT_COLL) {
        d->coll.comm = e->comm;
        d->coll.comm_id = e->comm_id;
        d->coll.number = e->number;
        d->coll.func = rd_plugin_func_number(call->func);
        d->coll.in = call->in;
        d->coll.out = call->out;
        d->coll.count = call->count;
        d->coll.root = call->root;
        d->coll.type = rd_plugin_type_number(call->type);
        d->coll.op = rd_plugin_op_number(call->op);
        d->coll.bytes = call->count * rondo_type_size(call->type);
        d->coll.channels = (uint8_t)call->channels;
        d->coll.algo = rd_plugin_algo_number(call->algo);
        d->coll.proto = rd_plugin_proto_number(call->proto);
    } else if (e->type == RD_EVENT_P2P) {
        d->p2p.comm = e->comm;
        d->p2p.comm_id = e->comm_id;
        d->p2p.func = rd_plugin_func_number(call->func);
        d->p2p.buffer = buffer_of(call);
        d->p2p.type = rd_plugin_type_number(call->type);
        d->p2p.count = call->count;
        d->p2p.peer = call->root;
    }
}

static rd_plugin_p2p_v2_t p2p_v2(const rd_plugin_event_t *e)
{
    const rd_profile_call_t *call = e->call;

    return (rd_plugin_p2p_v2_t){
        e->comm,     e->comm_id, rd_plugin_func(call->func), buffer_of(call), rd_plugin_type(call->type),
        call->count, call->root};
}

/* What versions 2 to 7 say of a collective alike, in members of the same names at places of their own. */
#define set_coll(coll, e)                                                                                              \
    do {                                                                                                               \
        const rd_profile_call_t *said = (e)->call;                                                                     \
        (coll)->number = (e)->number;                                                                                  \
        (coll)->func = rd_plugin_func(said->func);                                                                     \
        (coll)->in = said->in;                                                                                         \
        (coll)->out = said->out;                                                                                       \
        (coll)->count = said->count;                                                                                   \
        (coll)->root = said->root;                                                                                     \
        (coll)->type = rd_plugin_type(said->type);                                                                     \
        (coll)->channels = (uint8_t)said->channels;                                                                    \
        (coll)->algo = rd_plugin_algo(said->algo);                                                                     \
        (coll)->proto = rd_plugin_proto(said->proto);                                                                  \
    } while (0)

static void version2(rd_plugin_v2_t *d, const rd_plugin_event_t *e)
{
    const rd_profile_call_t *call = e->call;

    *d = (rd_plugin_v2_t){.type = (uint8_t)e->type, .parent = e->group, .rank = e->rank};
    if (e->type == RD_EVENT_COLL) {
        d->coll.comm = e->comm;
        d->coll.comm_id = e->comm_id;
        set_coll(&d->coll, e);
        d->coll.bytes = call->count * rondo_type_size(call->type);
    } else if (e->type == RD_EVENT_P2P) {
        d->p2p = p2p_v2(e);
    }
}

static void version3(rd_plugin_v3_t *d, const rd_plugin_event_t *e)
{
    *d = (rd_plugin_v3_t){
        .type = (uint8_t)e->type, .parent = e->type == RD_EVENT_KERNEL_CHANNEL ? e->parent : e->group, .rank = e->rank};
    if (e->type == RD_EVENT_COLL) {
        d->coll.comm = e->comm;
        d->coll.comm_id = e->comm_id;
        set_coll(&d->coll, e);
    } else if (e->type == RD_EVENT_P2P) {
        d->p2p = p2p_v2(e);
    }
}

static void coll_v4(rd_plugin_v4_t *d, const rd_plugin_event_t *e)
{
    set_coll(&d->coll, e);
    d->coll.group = e->group;
    d->coll.variant = "";
}

static void p2p_v4(rd_plugin_v4_t *d, const rd_plugin_event_t *e)
{
    const rd_profile_call_t *call = e->call;

    d->p2p.func = rd_plugin_func(call->func);
    d->p2p.buffer = buffer_of(call);
    d->p2p.type = rd_plugin_type(call->type);
    d->p2p.count = call->count;
    d->p2p.peer = call->root;
    d->p2p.channels = (uint8_t)call->channels;
    d->p2p.group = e->group;
}

static void coll_api(rd_plugin_v4_t *d, const rd_profile_call_t *call)
{
    d->coll_api.func = rd_plugin_func(call->func);
    d->coll_api.count = call->count;
    d->coll_api.type = rd_plugin_type(call->type);
    d->coll_api.root = call->root;
    d->coll_api.stream = call->stream;
}

static void p2p_api(rd_plugin_v4_t *d, const rd_profile_call_t *call)
{
    d->p2p_api.func = rd_plugin_func(call->func);
    d->p2p_api.count = call->count;
    d->p2p_api.type = rd_plugin_type(call->type);
    d->p2p_api.stream = call->stream;
}

/* Up to version 4 a collective's parent is its group, from 5 on the call. */
static void version4(rd_plugin_v4_t *d, int version, const rd_plugin_event_t *e)
{
    if (version == 4)
        d->type.narrow = (uint8_t)e->type;
    else
        d->type.wide = (uint64_t)e->type;
    d->parent = version == 4 && e->type & (RD_EVENT_COLL | RD_EVENT_P2P) ? e->group : e->parent;
    d->rank = e->rank;
    switch (e->type) {
    case RD_EVENT_COLL:
        coll_v4(d, e);
        break;
    case RD_EVENT_P2P:
        p2p_v4(d, e);
        break;
    case RD_EVENT_KERNEL_CHANNEL:
        d->channel.timer = e->timer;
        break;
    case RD_EVENT_GROUP_API:
        d->group_api.depth = e->depth;
        break;
    case RD_EVENT_COLL_API:
        coll_api(d, e->call);
        break;
    case RD_EVENT_P2P_API:
        p2p_api(d, e->call);
        break;
    case RD_EVENT_KERNEL_LAUNCH:
        d->launch.stream = e->call->stream;
        break;
    }
}

void rd_plugin_describe(rd_plugin_descriptor_t *d, int version, const rd_plugin_event_t *event)
{
    switch (version) {
    case 1:
        version1(&d->v1, event);
        break;
    case 2:
        version2(&d->v2, event);
        break;
    case 3:
        version3(&d->v3, event);
        break;
    default:
        version4(&d->v4, version, event);
        break;
    }
}
