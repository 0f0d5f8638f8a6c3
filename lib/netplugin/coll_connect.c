/* How the switch of a communicator comes about, and how it is taken down.
 *
 * Each rank looks for a plugin and listens, and all tell each other how they have fared, what their plugins add and
 * their handles. So all come to the same: that there is a switch and what it adds, or that there is none. Then the
 * heads of each rail connect. The plugin's `connect` waits for all of them, for as long as it likes; so a thread calls
 * it, and now and then all ranks tell each other how far theirs has come. Where one has failed or takes too long, all
 * go without a switch, or fail if RONDO_COLLNET insists. A thread that is given up keeps what it needs. */
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
#define ROUND_MS 20   /* between two rounds in which ranks tell each other how far they are, while heads connect */
#define LEAVES_MS 500 /* for a plugin to close a group in which a rank has failed */

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

/* How far a rank has come. */
enum { WAITS, CONNECTED, LATE, FAILED };

/* Waits for the thread, but for no longer than a round. Returns RONDO_ERR_TIMEOUT when the time for all is over. */
static rondo_result_t await(const making_t *m, const connecting_t *c, rd_wait_t *wait)
{
    const int64_t until = rd_clock_ms() + ROUND_MS;
    rondo_result_t result = rd_stop_get(m->args->stop);

    while (result == RONDO_SUCCESS && atomic_load(&c->state) == 0 && rd_clock_ms() < until) {
        result = rd_wait_backoff(wait);
        if (result == RONDO_IN_PROGRESS) {
            rd_log(m->args->ctx, RD_LOG_WARN, "still waiting for the CollNet plugin %s to connect the nodes",
                   c->plug->name);
            result = RONDO_SUCCESS;
        }
    }
    return result;
}

static int failed(const making_t *m, char *why, const char *call, int error)
{
    char text[80];

    snprintf(why, WHY, "the CollNet plugin %.40s of %.80s fails: %.60s", m->held->plug->name, m->held->plug->file,
             rd_plug_failure(call, error, text, sizeof text));
    return FAILED;
}

/* The thread is over: takes what it has got, and registers the slots. Returns how far this rank has come. */
static int collect(making_t *m, const connecting_t *c, char *why)
{
    rd_coll_held_t *held = m->held;

    if (c->error != 0 || !c->comm)
        return failed(m, why, "connect", c->error);
    held->comm = c->comm;
    int error = rd_coll_reg(held->plug, held->comm, held->slots, rd_collnet_bytes(m->slot_bytes), &held->registration);
    return error == 0 ? CONNECTED : failed(m, why, "regMr (is `ulimit -l` unlimited?)", error);
}

/* Returns the lowest rank that stands in the way, else the lowest that still waits; -1: all have connected. */
static int slowest(const unsigned char *states, int nranks)
{
    int waits = -1;

    for (int r = nranks - 1; r >= 0; r--)
        waits = states[r] == WAITS ? r : waits;
    for (int r = 0; r < nranks; r++)
        if (states[r] > CONNECTED)
            return r;
    return waits;
}

/* Collective. `c` is NULL on a rank that is no head. Returns how far the slowest rank has come, and which one that is.
 */
static rondo_result_t rounds(making_t *m, connecting_t *c, unsigned char *states, int *rank, char *why)
{
    const rd_transport_args_t *a = m->args;
    int state = c ? WAITS : CONNECTED;
    rondo_result_t result;
    rd_wait_t wait;

    rd_wait_begin(&wait, a->stop, 0, a->env->create_timeout_ms);
    do {
        result = c && state == WAITS ? await(m, c, &wait) : RONDO_SUCCESS;
        if (c && state == WAITS && atomic_load(&c->state) == 1)
            state = collect(m, c, why);
        else if (result == RONDO_ERR_TIMEOUT)
            state = LATE;
        else if (result != RONDO_SUCCESS)
            return result;
        if (state == LATE)
            snprintf(why, WHY, "the CollNet plugin %.60s did not connect the nodes within %lld ms", c->plug->name,
                     (long long)a->env->create_timeout_ms);
        states[a->rank] = (unsigned char)state;
        result = rd_boot_allgather(a->boot, states, 1);
        *rank = slowest(states, a->nranks);
    } while (result == RONDO_SUCCESS && *rank >= 0 && states[*rank] == WAITS);
    return result;
}

/* Collective, and the same on all ranks: one has not connected, for the reason `why` there. */
static rondo_result_t go_without(const making_t *m, int rank, bool late, const char *why)
{
    const rd_transport_args_t *a = m->args;
    char text[RD_ERROR_BYTES];
    rondo_result_t result = rd_boot_cause(a->boot, rank, why, text);

    if (result != RONDO_SUCCESS)
        return result;
    if (a->env->collnet == 1) {
        rd_boot_farewell_alike(a->boot);
        if (late || rank == a->rank)
            return rd_error(a->ctx, late ? RONDO_ERR_TIMEOUT : RONDO_ERR_SYSTEM,
                            "%.300s (RONDO_COLLNET=0 goes without it%s)", text,
                            late ? ", RONDO_CREATE_TIMEOUT_MS waits longer" : "");
        return rd_error(a->ctx, RONDO_ERR_REMOTE, "rank %d (%s): %.300s", rank, rd_boot_whois(a->boot, rank), text);
    }
    if (a->rank == 0)
        rd_log(a->ctx, RD_LOG_WARN,
               "no switch adds between the nodes: rank %d (%s): %.300s (RONDO_COLLNET=0 does not "
               "ask for one)",
               rank, rd_boot_whois(a->boot, rank), text);
    return RONDO_SUCCESS;
}

/* Begins to connect this head, in a thread. */
static rondo_result_t begins(making_t *m, const int *heads, connecting_t **begun)
{
    connecting_t *c = connecting_new(m, heads);
    pthread_t thread;
    int error = c ? rd_thread_start(&thread, connect_heads, c) : 0;

    if (!c || error != 0) {
        free(c);
        return rd_error(m->args->ctx, RONDO_ERR_NO_MEMORY,
                        "no thread or memory to connect the nodes by a CollNet plugin: %s", rd_thread_strerror(error));
    }
    pthread_detach(thread);
    *begun = c;
    return RONDO_SUCCESS;
}

/* Collective: sets *serves if all heads have connected. */
static rondo_result_t connects(making_t *m, connecting_t *c, bool *serves)
{
    unsigned char *states = calloc((size_t)m->args->nranks, 1);
    char why[WHY] = "";
    int rank = -1;
    rondo_result_t result = states ? rounds(m, c, states, &rank, why)
                                   : rd_error(m->args->ctx, RONDO_ERR_NO_MEMORY, "no memory for a switch");

    *serves = result == RONDO_SUCCESS && rank < 0;
    if (result == RONDO_SUCCESS && rank >= 0)
        result = go_without(m, rank, states[rank] == LATE, why);
    free(states);
    if (c && atomic_load(&c->state) == 0 && atomic_exchange(&c->state, 2) == 0) {
        m->listen = NULL; /* it is the thread's now, and needs the context */
        m->held->began = false;
    } else if (c) {
        if (!m->held->comm && c->error == 0)
            m->held->comm = c->comm; /* of a thread that has come too late */
        free(c);
    }
    return result;
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

/* Makes the slots of a head and its connections, and begins to connect it. */
static rondo_result_t head_begins(making_t *m, rd_coll_net_t *c, connecting_t **begun)
{
    const size_t bytes = rd_collnet_bytes(m->slot_bytes), all = bytes + RD_COLLNET_SLOTS * sizeof(uint32_t);
    int *heads = heads_find(m);
    rondo_result_t result = RONDO_SUCCESS;

    m->held->slots = aligned_alloc(RD_PAGE, rd_round_up(all, RD_PAGE));
    if (!heads || !m->held->slots)
        result = rd_error(m->args->ctx, RONDO_ERR_NO_MEMORY, "no memory for %zu bytes of slots to the switch", bytes);
    if (result == RONDO_SUCCESS) {
        memset(m->held->slots, 0, all);
        lay(c, m->held->slots, m->slot_bytes,
            heads[(m->args->node->node_of[m->args->rank] + 1) % m->args->node->nnodes]);
        result = begins(m, heads, begun);
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
    connecting_t *begun = NULL;

    if (result == RONDO_SUCCESS && serves) {
        common(m, &c->base);
        if (m->is_head)
            result = head_begins(m, c, &begun);
        if (result == RONDO_SUCCESS)
            result = connects(m, begun, &serves);
        if (result == RONDO_SUCCESS && serves) {
            c->held = m->held;
            m->held = NULL;
        }
    }
    if (m->listen)
        (void)rd_coll_close_listen((m->held ? m->held : c->held)->plug, m->listen);
    m->listen = NULL;
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
    if (m.held && m.held->registration) { /* nothing was posted yet */
        (void)rd_coll_dereg(m.held->plug, m.held->comm, m.held->registration);
        m.held->registration = NULL;
    }
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
