/* How the switch of a communicator comes about, and how it is taken down.
 *
 * Each rank looks for a plugin and listens, and all tell each other how they have fared, what their plugins add and
 * their handles. So all come to the same: that there is a switch and what it adds, or that there is none. Then the
 * heads of each rail connect. The plugin's `connect` waits for all of them, for as long as it likes; so a thread calls
 * it, and the rank waits for that thread as for anything else. A thread that is given up keeps what it needs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/page.h"
#include "base/thread.h"
#include "base/wait.h"
#include "netplugin/coll_int.h"
#include "netplugin/plug_load.h"
#include "node/rails.h"

#define NAME 64
#define WHY 220
#define NEWS_EVERY_MS 10 /* of the bootstrap, while heads connect */
#define LEAVES_MS 500    /* for a plugin to close a group in which a rank has failed */

/* What a rank tells the others. */
typedef struct part {
    char name[NAME]; /* of the plugin; "": it has none that serves, for the reason `why` */
    char why[WHY];
    int32_t version;
    uint64_t most;
    uint16_t adds[RONDO_NUM_TYPES];
    uint8_t gathers, scatters;
    unsigned char handle[RD_PLUG_HANDLE];
} part_t;

typedef struct making {
    const rd_transport_args_t *args;
    rd_coll_held_t *held;
    void *listen;
    part_t *parts;
    int rails; /* heads of a node */
    bool is_head;
    size_t slot_bytes;
} making_t;

/* ---- taking it down */

/* `failed`: requests may be on their way, so memory that is registered stays so until the group is closed, and for good
 * if the plugin does not close it. */
static void take_down(rd_coll_held_t *held, bool failed)
{
    int error = 0;

    if (held->registration && !failed)
        (void)rd_coll_dereg(held->plug, held->comm, held->registration);
    if (held->comm)
        error = rd_coll_close(held->plug, held->comm);
    if (held->began)
        (void)rd_coll_end(held->plug, held->context);
    if (error == 0 || !failed)
        free(held->slots);
}

void rd_coll_held_end(rd_coll_held_t *held)
{
    take_down(held, false);
    free(held);
}

static void *leave(void *arg)
{
    rd_coll_held_t *held = arg;

    take_down(held, true);
    if (atomic_exchange(&held->state, 1) == 2)
        free(held);
    return NULL;
}

void rd_coll_held_leave(rd_coll_held_t *held)
{
    const int64_t until = rd_clock_ms() + LEAVES_MS;
    pthread_t thread;
    int yields = 0;

    if (rd_thread_start(&thread, leave, held) != 0)
        return; /* it stays as it is: the plugin may still write to the slots */
    pthread_detach(thread);
    while (atomic_load(&held->state) == 0 && rd_clock_ms() < until)
        rd_wait_thread(&yields);
    if (atomic_exchange(&held->state, 2) == 1)
        free(held);
}

/* ---- this rank's part */

static void lacks(part_t *part, const char *plugin, const char *what)
{
    snprintf(part->why, WHY, "the CollNet plugin %.60s %.120s", plugin, what);
}

static bool listens(making_t *m, part_t *part)
{
    const rd_coll_plug_t *plug = m->held->plug;
    const int device = rd_node_rail(m->args->node, "", "/sys") % plug->ndevices;
    char text[80];
    int memory, error = rd_coll_device(plug, device, &memory, &part->most);

    if (error != 0)
        lacks(part, plug->name, rd_plug_failure("getProperties", error, text, sizeof text));
    else if (!(memory & RD_PLUG_HOST))
        lacks(part, plug->name, "does not take the host's memory");
    else if (part->most < RD_LINE)
        lacks(part, plug->name, "adds less than 64 bytes at a time");
    if (*part->why)
        return false;
    error = m->is_head ? rd_coll_listen(plug, m->held->context, device, part->handle, &m->listen) : 0;
    if (error != 0 || (m->is_head && !m->listen))
        lacks(part, plug->name, rd_plug_failure("listen", error, text, sizeof text));
    return !*part->why;
}

/* Fills in what this rank tells the others. */
static void own_part(making_t *m, part_t *part, uint64_t id)
{
    char why[RD_ERROR_BYTES], text[80];
    const rd_coll_plug_t *plug = rd_coll_load(m->args->env, why, sizeof why);

    if (!plug) {
        snprintf(part->why, WHY, "%.*s", WHY - 1, why);
        return;
    }
    m->held->plug = plug;
    int error = rd_coll_begin(plug, &m->held->context, id);
    if (error != 0) {
        lacks(part, plug->name, rd_plug_failure("init", error, text, sizeof text));
        return;
    }
    m->held->began = true;
    if (!listens(m, part))
        return;
    part->version = plug->version;
    memcpy(part->adds, plug->adds, sizeof part->adds);
    part->gathers = plug->gathers;
    part->scatters = plug->scatters;
    snprintf(part->name, NAME, "%s", plug->name);
}

/* ---- what all come to */

/* Returns the first rank that stands in the way, with the reason; -1: there is none. */
static int stands(const making_t *m, char *why, size_t size)
{
    for (int r = 0; r < m->args->nranks; r++) {
        const part_t *p = &m->parts[r], *first = &m->parts[0];

        if (!*p->name)
            snprintf(why, size, "%.*s", WHY, *p->why ? p->why : "it does not say why");
        else if (strncmp(p->name, first->name, NAME) != 0)
            snprintf(why, size, "it has the CollNet plugin %.60s, and rank 0 has %.60s", p->name, first->name);
        else
            continue;
        return r;
    }
    return -1;
}

/* What every rank's plugin does, and the longest message of all. */
static void common(const making_t *m, rd_collnet_t *to)
{
    static const rondo_type_t integers[] = {RONDO_INT32,  RONDO_UINT32, RONDO_INT64,
                                            RONDO_UINT64, RONDO_INT8,   RONDO_UINT8};
    size_t most = m->slot_bytes;

    memcpy(to->adds, m->parts[0].adds, sizeof to->adds);
    to->gathers = to->scatters = true;
    for (int r = 0; r < m->args->nranks; r++) {
        most = m->parts[r].most < most ? m->parts[r].most : most;
        to->gathers &= m->parts[r].gathers != 0;
        to->scatters &= m->parts[r].scatters != 0;
        for (int type = 0; type < RONDO_NUM_TYPES; type++)
            to->adds[type] &= m->parts[r].adds[type];
    }
    to->most = most / RD_LINE * RD_LINE;
    for (size_t i = 0; i < sizeof integers / sizeof integers[0] && !to->carries; i++) {
        to->integer = integers[i];
        to->carries = to->adds[integers[i]] >> RONDO_SUM & 1;
    }
}

/* ---- connecting */

typedef struct connecting {
    const rd_coll_plug_t *plug;
    void *listen, *comm;
    int nranks, rank, error;
    _Atomic int state; /* 1 when the call is over, 2 when nobody waits for it any more */
    void **handles;
    unsigned char memory[];
} connecting_t;

static void *connect_heads(void *arg)
{
    connecting_t *c = arg;

    c->error = rd_coll_connect(c->plug, c->handles, c->nranks, c->rank, c->listen, &c->comm);
    if (atomic_exchange(&c->state, 1) != 2)
        return NULL;
    if (c->error == 0 && c->comm)
        (void)rd_coll_close(c->plug, c->comm);
    (void)rd_coll_close_listen(c->plug, c->listen);
    free(c);
    return NULL;
}

/* Returns the heads of this rank's rail, by node, which the caller frees; NULL: there is no memory. */
static int *heads_find(const making_t *m)
{
    const rd_node_t *node = m->args->node;
    int *heads = calloc((size_t)node->nnodes, sizeof *heads), *seen = calloc((size_t)node->nnodes, sizeof *seen);

    for (int r = 0; heads && seen && r < m->args->nranks; r++)
        if (seen[node->node_of[r]]++ == node->self)
            heads[node->node_of[r]] = r;
    if (!seen) {
        free(heads);
        heads = NULL;
    }
    free(seen);
    return heads;
}

static connecting_t *connecting_new(const making_t *m, const int *heads)
{
    const int nodes = m->args->node->nnodes;
    const size_t handles = (size_t)nodes * RD_PLUG_HANDLE;
    connecting_t *c = calloc(1, sizeof *c + handles + (size_t)nodes * sizeof(void *));

    if (!c)
        return NULL;
    c->plug = m->held->plug;
    c->listen = m->listen;
    c->nranks = nodes;
    c->rank = m->args->node->node_of[m->args->rank];
    c->handles = (void **)(void *)(c->memory + handles);
    for (int v = 0; v < nodes; v++) {
        c->handles[v] = c->memory + (size_t)v * RD_PLUG_HANDLE;
        memcpy(c->handles[v], m->parts[heads[v]].handle, RD_PLUG_HANDLE);
    }
    return c;
}

/* Waits for the thread. */
static rondo_result_t await(const making_t *m, connecting_t *c)
{
    const rd_transport_args_t *a = m->args;
    rondo_result_t result = rd_stop_get(a->stop);
    int64_t asked_ms = rd_clock_ms();
    rd_wait_t wait;

    rd_wait_begin(&wait, a->stop, 0, a->env->create_timeout_ms);
    while (result == RONDO_SUCCESS && atomic_load(&c->state) == 0) {
        result = rd_wait_backoff(&wait);
        if (result == RONDO_IN_PROGRESS) {
            rd_log(a->ctx, RD_LOG_WARN, "still waiting for the CollNet plugin %s to connect the nodes", c->plug->name);
            result = RONDO_SUCCESS;
        }
        if (result == RONDO_SUCCESS && rd_clock_ms() - asked_ms >= NEWS_EVERY_MS) {
            asked_ms = rd_clock_ms();
            result = rd_boot_check(a->boot);
        }
    }
    if (result != RONDO_ERR_TIMEOUT)
        return result;
    return rd_error(a->ctx, result, /* all heads wait for all */
                    "the CollNet plugin %.60s did not connect the nodes within %lld ms (RONDO_COLLNET=0 goes "
                    "without it, RONDO_CREATE_TIMEOUT_MS waits longer)",
                    c->plug->name, (long long)a->env->create_timeout_ms);
}

static rondo_result_t failed(const making_t *m, const char *call, int error)
{
    char text[80];

    return rd_error(m->args->ctx, RONDO_ERR_SYSTEM,
                    "the CollNet plugin %.60s of %.200s fails: %s (RONDO_COLLNET=0 goes without it)",
                    m->held->plug->name, m->held->plug->file, rd_plug_failure(call, error, text, sizeof text));
}

static rondo_result_t connects(making_t *m, const int *heads)
{
    connecting_t *c = connecting_new(m, heads);
    pthread_t thread;
    int error = c ? rd_thread_start(&thread, connect_heads, c) : 0;

    if (!c || error != 0) {
        free(c);
        return rd_error(m->args->ctx, RONDO_ERR_NO_MEMORY,
                        "no thread or memory to connect the nodes by a CollNet "
                        "plugin: %s",
                        rd_thread_strerror(error));
    }
    pthread_detach(thread);
    rondo_result_t result = await(m, c);
    if (atomic_load(&c->state) == 0 && atomic_exchange(&c->state, 2) == 0) {
        m->listen = NULL; /* it is the thread's now, and needs the context */
        m->held->began = false;
        return result;
    }
    m->held->comm = c->error == 0 ? c->comm : NULL;
    error = c->error;
    free(c);
    return result == RONDO_SUCCESS && !m->held->comm ? failed(m, "connect", error) : result;
}

/* ---- its connections */

static void lay(rd_coll_net_t *c, char *slots, size_t slot_bytes, int next)
{
    const size_t way = rd_collnet_bytes(slot_bytes) / 2;
    rd_collnet_t *b = &c->base;

    b->send = (rd_send_t){.slots = slots,
                          .tail = &c->posted_tail,
                          .head = &c->consumed,
                          .signs = (_Atomic uint32_t *)(void *)(slots + 2 * way),
                          .signs_mask = RD_COLLNET_SLOTS - 1,
                          .slots_mask = RD_COLLNET_SLOTS - 1,
                          .slot_bytes = (uint32_t)slot_bytes,
                          .peer = next,
                          .mirrored = true,
                          .ops = &rd_collnet_ops,
                          .link = c};
    b->recv = (rd_recv_t){.slots = slots + way,
                          .tail = &c->arrived,
                          .head = &c->consumed,
                          .slots_mask = RD_COLLNET_SLOTS - 1,
                          .slot_bytes = (uint32_t)slot_bytes,
                          .peer = next,
                          .mirrored = true,
                          .ops = &rd_collnet_ops,
                          .link = c};
}

static rondo_result_t head_makes(making_t *m, rd_coll_net_t *c)
{
    const size_t bytes = rd_collnet_bytes(m->slot_bytes);
    int *heads = heads_find(m);
    rondo_result_t result = RONDO_SUCCESS;

    m->held->slots = aligned_alloc(RD_PAGE, rd_round_up(bytes + RD_COLLNET_SLOTS * sizeof(uint32_t), RD_PAGE));
    if (!heads || !m->held->slots)
        result = rd_error(m->args->ctx, RONDO_ERR_NO_MEMORY, "no memory for %zu bytes of slots to the switch", bytes);
    if (result == RONDO_SUCCESS)
        result = connects(m, heads);
    if (result == RONDO_SUCCESS) {
        memset(m->held->slots, 0, bytes + RD_COLLNET_SLOTS * sizeof(uint32_t));
        int error = rd_coll_reg(m->held->plug, m->held->comm, m->held->slots, bytes, &m->held->registration);
        if (error != 0)
            result = failed(m, "regMr (is `ulimit -l` unlimited?)", error);
        lay(c, m->held->slots, m->slot_bytes,
            heads[(m->args->node->node_of[m->args->rank] + 1) % m->args->node->nnodes]);
    }
    free(heads);
    return result;
}

/* All ranks see the same records, so all go on or none does. */
static rondo_result_t agree(making_t *m, bool *serves)
{
    const rd_transport_args_t *a = m->args;
    char why[WHY + NAME];

    rondo_result_t result = rd_boot_allgather(a->boot, m->parts, sizeof *m->parts);
    if (result != RONDO_SUCCESS)
        return result;
    for (int r = 0; r < a->nranks; r++)
        m->parts[r].name[NAME - 1] = m->parts[r].why[WHY - 1] = 0;
    int rank = stands(m, why, sizeof why);
    *serves = rank < 0;
    if (*serves)
        return RONDO_SUCCESS;
    if (a->env->collnet == 1) {
        rd_boot_farewell_alike(a->boot);
        return rd_error(a->ctx, RONDO_ERR_UNSUPPORTED,
                        "RONDO_COLLNET=1 asks for a switch, and rank %d (%s) has none: %s", rank,
                        rd_boot_whois(a->boot, rank), why);
    }
    if (a->rank == 0)
        rd_log(a->ctx, RD_LOG_INFO, "no switch adds between the nodes: rank %d (%s): %s", rank,
               rd_boot_whois(a->boot, rank), why);
    return RONDO_SUCCESS;
}

static rondo_result_t make(making_t *m, rd_coll_net_t *c)
{
    bool serves = false;
    rondo_result_t result = agree(m, &serves);

    if (result == RONDO_SUCCESS && serves) {
        common(m, &c->base);
        if (m->is_head)
            result = head_makes(m, c);
        if (m->listen)
            (void)rd_coll_close_listen(m->held->plug, m->listen);
        m->listen = NULL;
        if (result == RONDO_SUCCESS || result == RONDO_ERR_TIMEOUT)
            result = rd_boot_meet_waiters(m->args->boot, result, m->args->env->create_timeout_ms);
        if (result == RONDO_SUCCESS) {
            c->held = m->held;
            m->held = NULL;
            return RONDO_SUCCESS;
        }
    }
    if (m->listen)
        (void)rd_coll_close_listen(m->held->plug, m->listen);
    return result;
}

rondo_result_t rd_collnet_create(rd_collnet_t **collnet, const rd_transport_args_t *args, rd_transport_t *net,
                                 rd_health_t *health, size_t slot_bytes)
{
    *collnet = NULL;
    if (args->env->collnet == 0)
        return RONDO_SUCCESS;
    making_t m = {.args = args, .rails = args->node->fewest, .slot_bytes = slot_bytes};
    rd_coll_net_t *c = aligned_alloc(RD_LINE, rd_round_up(sizeof *c, RD_LINE));
    rondo_result_t result = RONDO_SUCCESS;
    unsigned char key[32];
    uint64_t id;

    m.is_head = args->node->self < m.rails;
    m.parts = calloc((size_t)args->nranks, sizeof *m.parts);
    m.held = calloc(1, sizeof *m.held);
    if (!c || !m.parts || !m.held) {
        result = rd_error(args->ctx, RONDO_ERR_NO_MEMORY, "no memory for a switch of %d ranks", args->nranks);
    } else {
        memset(c, 0, sizeof *c);
        c->base.transport.ops = &rd_collnet_ops;
        c->net = net;
        c->health = health;
        c->node = args->node->node_of[args->rank];
        c->nodes = args->node->nnodes;
        rd_boot_key(args->boot, rd_collnet_ops.name, key);
        memcpy(&id, key, sizeof id);
        own_part(&m, &m.parts[args->rank], id);
        result = make(&m, c);
    }
    free(m.parts);
    if (m.held && m.held->comm)
        rd_coll_held_leave(m.held);
    else if (m.held)
        rd_coll_held_end(m.held);
    if (!c || !c->held) {
        free(c);
        return result;
    }
    if (args->rank == 0)
        rd_log(args->ctx, RD_LOG_INFO,
               "switches add between the nodes, by the CollNet plugin %s, version %d, of %s: %d rail%s",
               c->held->plug->name, c->held->plug->version, c->held->plug->file, m.rails, m.rails == 1 ? "" : "s");
    net->beside = &c->base.transport;
    *collnet = &c->base;
    return RONDO_SUCCESS;
}

void rd_collnet_report(const rd_env_t *env, char *text, size_t size)
{
    char why[RD_ERROR_BYTES];
    const rd_coll_plug_t *plug = env->collnet ? rd_coll_load(env, why, sizeof why) : NULL;

    if (!env->collnet)
        snprintf(text, size, "not asked for (RONDO_COLLNET)");
    else if (!plug)
        snprintf(text, size, "none: %s", why);
    else
        snprintf(text, size, "%s, version %d, of %s, %d device%s", plug->name, plug->version, plug->file,
                 plug->ndevices, plug->ndevices == 1 ? "" : "s");
}
