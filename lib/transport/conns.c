/* The tables of connections: see conns.h for the layout. */
#include "transport/conns.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/page.h"
#include "base/wait.h"

#define COUNTERS ((size_t)(2 * RD_LINE)) /* of one inbox or one pair of credits: neighbours are fetched in pairs */
#define LINES 256                        /* 8 KiB of short messages in flight */
#define SLOTS 8
#define SLOT_BYTES_MOST ((size_t)128 << 10)
#define NET_SLOTS 16                           /* between nodes more messages are under way, */
#define NET_SLOT_BYTES_MOST ((size_t)60 << 10) /* short enough that both directions stay in the caches; */
#define LONG_SLOTS 8                           /* what goes one way goes the sooner the longer its messages are, */
#define LONG_SLOT_BYTES ((size_t)508 << 10)    /* up to what UCX's tcp carries whole: see ucx/ucx_config.c */
#define SHORTER_MOST 4096
#define WRITE_MS 200    /* for a rank of the node that writes what has failed, and may have no core */
#define REMOTES_MANY 16 /* ranks on other nodes: with more of them each has fewer of the shorter slots */
/* More signatures than the line of the count of messages has room for lie behind the LL ring, on its last page. */
#define SLOTS_MOST 64 /* RONDO_SLOTS */
_Static_assert(RD_PAGE - (COUNTERS + LINES * RD_LINE) % RD_PAGE >= SLOTS_MOST * sizeof(uint32_t),
               "room for signatures");

#define SLOT_BYTES_LEAST ((size_t)4 << 10)
#define SEGMENT_BUDGET ((size_t)12 << 20) /* of slots, a rank */

/* Rings of shorter slots between nodes, with the number of their slots for each long slot. In a stream of short
 * messages a sender can go on for as long as it has slots, and need not take turns on a core with the reader. The slots
 * are for 256 bytes, 2 KB and 8 KB, and what the network adds behind them. */
static const struct {
    uint32_t bytes, slots;
} shorter[RD_RINGS - 1] = {{336, 256}, {RD_SHORT + 80, 128}, {8192 + 128, 32}};

/* If the user has set the slots, the long ones are the same. */
static void layout_long(rd_layout_t *l, int set, size_t remotes)
{
    l->long_slots = set ? l->slots : LONG_SLOTS;
    l->long_bytes = set ? l->slot_bytes : LONG_SLOT_BYTES;
    for (size_t many = REMOTES_MANY; !set && many < remotes && l->long_slots > 2; many *= 2)
        l->long_slots /= 2;
}

/* The last ring has slots as long as those in shared memory. Returns the bytes of all shorter rings. */
static size_t layout_shorter(rd_layout_t *l, size_t remotes)
{
    size_t bytes;

    l->shorter[RD_RINGS - 1] = l->slot_bytes < l->long_bytes ? l->slots : 0;
    bytes = l->shorter[RD_RINGS - 1] * l->slot_bytes;
    for (int i = 0; i < RD_RINGS - 1; i++) {
        uint32_t slots = l->slots * shorter[i].slots;
        for (size_t many = REMOTES_MANY; (many < remotes || slots > SHORTER_MOST) && slots > l->slots; many *= 2)
            slots /= 2;
        l->shorter[i] =
            l->slots > 1 && shorter[i].bytes < l->slot_bytes ? slots : 0; /* if the user wants one slot, there is one */
        bytes += (size_t)l->shorter[i] * shorter[i].bytes;
    }
    return bytes;
}

void rd_layout_init(rd_layout_t *l, int nlocal, int nnodes, const rd_env_t *env)
{
    size_t peers = nlocal > 1 ? (size_t)nlocal - 1 : 1, remotes = (size_t)nlocal * (size_t)(nnodes - 1), lines;

    l->slots = env->slots ? (uint32_t)env->slots : nnodes > 1 ? NET_SLOTS : SLOTS;
    l->lines = LINES;
    l->slot_bytes = nnodes > 1 ? NET_SLOT_BYTES_MOST : SLOT_BYTES_MOST;
    while (l->slot_bytes > SLOT_BYTES_LEAST && peers * RD_CHANNELS * l->slots * l->slot_bytes > SEGMENT_BUDGET) {
        if (l->slots > SLOTS && !env->slots)
            l->slots /= 2;
        else
            l->slot_bytes = l->slot_bytes / 2 / RD_PAGE * RD_PAGE;
    }
    if (env->slot_bytes)
        l->slot_bytes = rd_round_up(env->slot_bytes, RD_PAGE);
    l->ring_bytes = (size_t)l->lines * RD_LINE;
    lines = rd_round_up(COUNTERS + l->ring_bytes, RD_PAGE);
    l->inbox_bytes = lines + l->slots * l->slot_bytes;
    layout_long(l, env->slots || env->slot_bytes || nnodes == 1, remotes);
    l->mirror_bytes = RD_PAGE + lines + l->long_slots * l->long_bytes + layout_shorter(l, remotes);
    l->inboxes = rd_round_up(sizeof(rd_control_t) + (size_t)nlocal * RD_CHANNELS * COUNTERS, RD_PAGE);
    l->segment_bytes = l->inboxes + peers * RD_CHANNELS * l->inbox_bytes;
    l->board = nnodes == 1 ? l->segment_bytes : 0;
    l->segment_bytes += nnodes == 1 ? RD_BOARD_SIZE : 0;
}

size_t rd_layout_mirrors(const rd_layout_t *l, int remotes)
{
    return (size_t)remotes * RD_CHANNELS * 2 * l->mirror_bytes;
}

/* Returns the signatures of an inbox that has them behind its lines; NULL: they lie beside the count. */
static _Atomic uint32_t *signs_far(const rd_layout_t *l, char *inbox)
{
    return l->slots > RD_SIGNS_NEAR ? (_Atomic uint32_t *)(void *)(inbox + COUNTERS + l->ring_bytes) : NULL;
}

static uint32_t signs_mask(const rd_layout_t *l)
{
    return (l->slots > RD_SIGNS_NEAR ? l->slots : RD_SIGNS_NEAR) - 1;
}

void rd_send_lay(rd_send_t *s, const rd_layout_t *l, char *inbox, rd_counter_t *credits, int peer)
{
    _Atomic uint32_t *far = signs_far(l, inbox);

    s->tail = (rd_counter_t *)inbox;
    s->whole = (_Atomic uint64_t *)(void *)(inbox + RD_LINE);
    s->lines = inbox + COUNTERS;
    s->signs = far ? far : s->tail->signs;
    s->signs_mask = signs_mask(l);
    s->slots = inbox + rd_round_up(COUNTERS + l->ring_bytes, RD_PAGE);
    s->head = &credits[0];
    s->ll_head = &credits[1];
    s->slots_mask = l->slots - 1;
    s->lines_mask = l->lines - 1;
    s->slot_bytes = (uint32_t)l->slot_bytes;
    s->peer = peer;
}

void rd_recv_lay(rd_recv_t *r, const rd_layout_t *l, char *inbox, rd_counter_t *credits, int peer)
{
    _Atomic uint32_t *far = signs_far(l, inbox);

    r->tail = (rd_counter_t *)inbox;
    r->whole = (_Atomic uint64_t *)(void *)(inbox + RD_LINE);
    r->lines = inbox + COUNTERS;
    r->keeps_signs = !far;
    r->signs = far ? far : r->kept_signs;
    r->signs_mask = signs_mask(l);
    r->slots = inbox + rd_round_up(COUNTERS + l->ring_bytes, RD_PAGE);
    r->head = &credits[0];
    r->ll_head = &credits[1];
    r->slots_mask = l->slots - 1;
    r->lines_mask = l->lines - 1;
    r->slot_bytes = (uint32_t)l->slot_bytes;
    r->peer = peer;
}

/* The shorter rings lie after the long slots. */
static void bind_shorter(rd_ring_t *rings, const rd_layout_t *l, char *slots)
{
    char *at = slots + l->long_slots * l->long_bytes;

    for (int i = 0; i < RD_RINGS; i++) {
        uint32_t bytes = i < RD_RINGS - 1 ? shorter[i].bytes : (uint32_t)l->slot_bytes;
        if (!l->shorter[i])
            continue;
        rings[i] = (rd_ring_t){at, l->shorter[i] - 1, bytes};
        at += (size_t)l->shorter[i] * bytes;
    }
}

/* Both ends of a mirrored connection are private memory: a mirror that the transport reads, and an inbox that it fills.
 * Their pages are allocated when they are touched. */
rondo_result_t rd_conns_map(rd_conns_t *c, const rd_node_t *node, rd_log_ctx_t *ctx)
{
    c->mirror_bytes = rd_layout_mirrors(&c->layout, c->nranks - node->nlocal);
    c->mirrors =
        mmap(NULL, c->mirror_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (c->mirrors != MAP_FAILED)
        return RONDO_SUCCESS;
    c->mirrors = NULL;
    return rd_error(ctx, RONDO_ERR_NO_MEMORY,
                    "no address space for %zu MiB of network buffers: lower RONDO_SLOT_BYTES or RONDO_SLOTS, or raise "
                    "`ulimit -v` and `ulimit -d`",
                    c->mirror_bytes >> 20);
}

/* Lays out the two directions of a pair and channel, beginning at `at`. Returns the address behind them. */
static char *lay_mirrors(rd_conns_t *c, const rd_transport_ops_t *ops, int peer, rd_send_t *s, rd_recv_t *r, char *at)
{
    rd_send_lay(s, &c->layout, at + RD_PAGE, (rd_counter_t *)at, peer);
    at += c->layout.mirror_bytes;
    rd_recv_lay(r, &c->layout, at + RD_PAGE, (rd_counter_t *)at, peer);
    at += c->layout.mirror_bytes;
    s->slots_mask = r->slots_mask = c->layout.long_slots - 1;
    s->slot_bytes = r->slot_bytes = (uint32_t)c->layout.long_bytes;
    bind_shorter(s->shorter, &c->layout, s->slots);
    bind_shorter(r->shorter, &c->layout, r->slots);
    /* There are no lines here, so signatures lie in their place, as many as the most slots. */
    s->signs = (_Atomic uint32_t *)(void *)s->lines;
    r->signs = ops->signs ? (_Atomic uint32_t *)(void *)r->lines : NULL;
    s->signs_mask = r->signs_mask = SHORTER_MOST - 1;
    r->keeps_signs = false;
    s->mirrored = r->mirrored = true;
    s->ops = r->ops = ops;
    return at;
}

rondo_result_t rd_conns_bind(rd_conns_t *c, rd_transport_t *t, const rd_transport_args_t *args)
{
    const rd_transport_ops_t *ops = t->ops;
    const int *node_of = args->node->node_of;
    rondo_result_t result = RONDO_SUCCESS;
    char *at = c->mirrors;

    for (int peer = 0; peer < c->nranks && result == RONDO_SUCCESS; peer++) {
        if (peer == args->rank || (node_of[peer] == node_of[args->rank]) != (ops->reach == RD_WITHIN_NODE))
            continue;
        for (int ch = 0; ch < RD_CHANNELS && result == RONDO_SUCCESS; ch++) {
            rd_send_t *s = &c->sends[(size_t)ch * (size_t)c->nranks + (size_t)peer];
            rd_recv_t *r = &c->recvs[(size_t)ch * (size_t)c->nranks + (size_t)peer];
            if (ops->post)
                at = lay_mirrors(c, ops, peer, s, r, at);
            if (ops->bind_send)
                result = ops->bind_send(t, peer, ch, s);
            if (ops->bind_recv && result == RONDO_SUCCESS)
                result = ops->bind_recv(t, peer, ch, r);
        }
    }
    return result;
}

static void find_controls(rd_conns_t *c, const rd_node_t *node)
{
    for (int m = 0; m < node->nlocal; m++)
        c->controls[node->local[m]] =
            node->base ? (rd_control_t *)(node->base + (size_t)m * node->segment_bytes) : &c->own;
    c->self = c->controls[node->local[node->self]];
}

/* Returns 0, or -1 if there is no memory. */
static int find_boards(rd_conns_t *c, const rd_node_t *node)
{
    if (!c->layout.board || !node->base)
        return 0;
    c->board.of = calloc((size_t)c->nranks, sizeof(char *));
    if (!c->board.of)
        return -1;
    for (int m = 0; m < node->nlocal; m++)
        c->board.of[node->local[m]] = node->base + (size_t)m * node->segment_bytes + c->layout.board;
    c->board.missing = -1;
    c->board.nranks = c->nranks;
    c->board.self = node->local[node->self];
    return 0;
}

rondo_result_t rd_conns_create(rd_conns_t *c, const rd_layout_t *layout, const rd_node_t *node, int nranks,
                               rd_log_ctx_t *ctx)
{
    size_t entries = (size_t)nranks * RD_CHANNELS;

    memset(c, 0, sizeof *c);
    c->nranks = nranks;
    c->layout = *layout;
    c->self = &c->own;
    c->sends = aligned_alloc(RD_LINE, rd_round_up(entries * sizeof *c->sends, RD_LINE));
    c->recvs = aligned_alloc(RD_LINE, rd_round_up(entries * sizeof *c->recvs, RD_LINE));
    c->controls = calloc((size_t)nranks, sizeof(rd_control_t *));
    if (!c->sends || !c->recvs || !c->controls || find_boards(c, node) != 0) {
        rd_conns_free(c);
        return rd_error(ctx, RONDO_ERR_NO_MEMORY, "no memory for the tables of %zu connections", 2 * entries);
    }
    memset(c->sends, 0, entries * sizeof *c->sends);
    memset(c->recvs, 0, entries * sizeof *c->recvs);
    find_controls(c, node);
    return RONDO_SUCCESS;
}

void rd_conns_free(rd_conns_t *c)
{
    if (c->mirrors)
        munmap(c->mirrors, c->mirror_bytes);
    free(c->board.of);
    free(c->controls);
    free(c->recvs);
    free(c->sends);
    memset(c, 0, sizeof *c);
}

/* Each rank stores it into its own part, so no two ranks write to one place, and the first of its threads does. */
static void publish_cause(rd_control_t *self, const rd_failure_t *failure)
{
    int none = 0;

    if (!atomic_compare_exchange_strong(&self->caused, &none, 1))
        return;
    self->cause_of = failure->failed_rank;
    self->cause_died = failure->died;
    memcpy(self->cause, failure->text, sizeof self->cause);
    atomic_store_explicit(&self->caused, 2, memory_order_release);
}

int rd_conns_cause(const rd_conns_t *c, int rank, rd_failure_t *failure)
{
    for (int r = 0; r < c->nranks; r++) {
        const rd_control_t *its = c->controls[r];
        if (!its || its == c->self || atomic_load_explicit(&its->caused, memory_order_acquire) != 2 ||
            (rank >= 0 && rank != its->cause_of))
            continue;
        memcpy(failure->text, its->cause, sizeof failure->text);
        failure->died = its->cause_died;
        return r;
    }
    return -1;
}

static rd_control_t *first_of(const rd_conns_t *c)
{
    for (int r = 0; c->controls && r < c->nranks; r++)
        if (c->controls[r])
            return c->controls[r];
    return NULL;
}

/* A rank that dies or is stopped while it writes is not waited for. */
int rd_conns_first(const rd_conns_t *c, int self, const rd_failure_t *own, rd_failure_t *first)
{
    const struct timespec millisecond = {0, 1000000};
    rd_control_t *node = first_of(c);
    int none = 0;

    if (!node)
        return -1;
    if (atomic_compare_exchange_strong(&node->first, &none, 1)) {
        node->first_by = self;
        node->failure = *own;
        atomic_store_explicit(&node->first, 2, memory_order_release);
        return -1;
    }
    for (int i = 0; i < WRITE_MS && atomic_load_explicit(&node->first, memory_order_acquire) != 2; i++)
        nanosleep(&millisecond, NULL);
    if (atomic_load_explicit(&node->first, memory_order_acquire) != 2)
        return -1;
    *first = node->failure;
    return node->first_by;
}

void rd_conns_notify(rd_conns_t *c, int self, const rd_failure_t *failure)
{
    const rondo_result_t code = failure->said;
    const int failed_rank = failure->failed_rank;
    uint64_t notice = rd_notice(code, failed_rank + 1, rd_reporter(failure->reporter, self));
    const rd_control_t *its = c->controls && failed_rank >= 0 ? c->controls[failed_rank] : NULL;

    /* A failure of this rank's own is known to no other, and one on another node to none that has not heard of it. Who
     * is late, has left before its last call, or has died, is to be said alike. */
    const bool alike = its && (code == RONDO_ERR_REMOTE || atomic_load_explicit(&its->left, memory_order_relaxed));
    if (c->controls && (rd_error_is_common(code) || code == RONDO_ERR_TIMEOUT || alike ||
                        (failed_rank >= 0 && (!its || its == c->self))))
        publish_cause(c->self, failure);
    for (int r = 0; r < c->nranks && c->controls; r++) {
        uint64_t none = 0;
        if (c->controls[r] && c->controls[r] != c->self)
            atomic_compare_exchange_strong(&c->controls[r]->notice, &none, notice);
    }
}

bool rd_conns_shared(const rd_conns_t *c)
{
    int any = 0;

    for (int r = 0; r < c->nranks; r++)
        any |= c->recvs[r].reading != NULL;
    return any;
}

void rd_conns_wait_unread(const rd_conns_t *c)
{
    for (int r = 0; r < c->nranks; r++) {
        if (!c->recvs[r].reading)
            continue;
        _Atomic uint32_t *reading = &c->controls[r]->reading;
        uint32_t seen = atomic_load_explicit(reading, memory_order_acquire);
        int yields = 0;
        while (seen % 2 && atomic_load_explicit(reading, memory_order_acquire) == seen)
            rd_wait_thread(&yields);
    }
}
