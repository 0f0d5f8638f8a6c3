/* The switch by a CollNet plugin: what is posted becomes a request from a slot of the one connection to the slot of the
 * same number of the other, and is published there when the plugin says that it is over. The plugin is asked for the
 * oldest one alone, as by NCCL.
 *
 *     allreduce, reduce   iallreduce
 *     broadcast           iallreduce, in which all but the root's node add zeros: to a sum of integers these do nothing
 *     allgather           iallgather; a plugin that has none: iallreduce, in which each node has its own block and
 * zeros reduce_scatter      ireducescatter; or iallreduce, of whose result a rank takes its own block
 *
 * A rank posts only when the slot that its sum will come to has been read, so the credits of the way there are the
 * consumed messages of the way back, and the plugin never has more than RD_COLLNET_SLOTS requests.
 *
 * If the plugin fails, a rank that it needed may have died: the news of that says more, so it is waited for. After that
 * it is this rank's failure. Either way the plugin is not called again, but to be closed. */
#include <stdlib.h>
#include <string.h>

#include "base/page.h"
#include "base/types.h"
#include "base/wait.h"
#include "netplugin/coll_int.h"
#include "netplugin/plug_load.h"
#include "transport/conn.h"

#define NEWS_MS 1000   /* for the news of a rank that the plugin has missed first */
#define LEAVES_MS 2000 /* what was posted before a rank has left comes back within this time, or will not */

static rd_coll_net_t *of(rd_transport_t *transport)
{
    return (rd_coll_net_t *)(void *)transport;
}

static void fails(rd_coll_net_t *c, const char *call, int error)
{
    c->call = call;
    c->error = error;
    c->failed_ms = rd_clock_ms();
}

static rd_coll_flight_t *flight(rd_coll_net_t *c, uint64_t number)
{
    return &c->flights[number % RD_COLLNET_SLOTS];
}

static int request(rd_coll_net_t *c, rd_coll_flight_t *f)
{
    const rd_coll_held_t *h = c->held;
    const char *from = rd_ring_slot(rd_send_ring(&c->base.send, f->bytes), c->taken);
    char *to = rd_recv_slot(&c->base.recv, f->bytes, c->taken);

    switch (f->by) {
    case RD_ALLGATHER:
        return rd_coll_allgather(h->plug, h->comm, from, to, f->each, c->nodes, h->registration, &f->request);
    case RD_REDUCE_SCATTER:
        return rd_coll_reduce_scatter(h->plug, h->comm, from, to, f->each, c->nodes, f->type, f->op, h->registration,
                                      &f->request);
    default:
        return rd_coll_allreduce(h->plug, h->comm, from, to, f->bytes / rondo_type_size(f->type), f->type, f->op,
                                 h->registration, h->registration, &f->request);
    }
}

static const char *name(rd_coll_t by)
{
    return by == RD_ALLGATHER ? "iallgather" : by == RD_REDUCE_SCATTER ? "ireducescatter" : "iallreduce";
}

/* Gives the plugin what it takes. Returns true if it has taken anything. */
static bool submit(rd_coll_net_t *c)
{
    bool moved = false;

    while (c->error == 0 && c->taken < c->posted) {
        rd_coll_flight_t *f = flight(c, c->taken);
        int error = request(c, f);

        if (error != 0)
            fails(c, name(f->by), error);
        if (error != 0 || !f->request)
            break;
        c->taken++;
        moved = true;
    }
    return moved;
}

/* Of a reduce_scatter a plugin may say the bytes that it took, or those that it gave. */
static bool is_length(const rd_coll_flight_t *f, int bytes)
{
    return bytes < 0 || (size_t)bytes == f->bytes || (f->by == RD_REDUCE_SCATTER && (size_t)bytes == f->each);
}

/* Publishes what has come back. */
static bool collect(rd_coll_net_t *c)
{
    bool moved = false;

    while (c->error == 0 && c->done < c->taken) {
        rd_coll_flight_t *f = flight(c, c->done);
        int over, bytes, error = rd_coll_test(c->held->plug, f->request, &over, &bytes);

        if (error != 0)
            fails(c, "test", error);
        else if (over && !is_length(f, bytes))
            fails(c, "test (it has handled another number of bytes)", 3);
        if (c->error != 0 || !over)
            break;
        if (f->own) {
            char *to = rd_recv_slot(&c->base.recv, f->bytes, c->done);
            memmove(to, to + f->own, f->each);
        }
        c->done++;
        atomic_store_explicit(&c->arrived.value, c->done, memory_order_release);
        moved = true;
    }
    return moved;
}

static void judge(rd_coll_net_t *c)
{
    char text[120];

    if (rd_clock_ms() - c->failed_ms < NEWS_MS || rd_health_check(c->health) != RONDO_SUCCESS)
        return;
    (void)rd_health_fail(c->health, RONDO_ERR_SYSTEM, -1, "the CollNet plugin %.60s of %.200s fails: %s",
                         c->held->plug->name, c->held->plug->file,
                         rd_plug_failure(c->call, c->error, text, sizeof text));
}

static bool progress(rd_transport_t *transport)
{
    rd_coll_net_t *c = of(transport);

    if (c->done == c->posted)
        return false;
    if (c->error != 0) {
        judge(c);
        return false;
    }
    bool moved = submit(c);
    moved |= collect(c);
    if (moved)
        c->moved_ms = rd_clock_ms();
    return moved;
}

/* Makes this node's part of a sum of integers, in which only one node has `bytes` at `at` of the vector: the rest is
 * zeros, on other nodes all of it. What is added is a little longer where `bytes` are no number of integers. */
static void carry(const rd_coll_net_t *c, rd_coll_flight_t *f, char *slot, size_t at, size_t bytes)
{
    f->by = RD_ALLREDUCE;
    f->type = c->base.integer;
    f->op = RONDO_SUM;
    f->bytes = rd_round_up(f->bytes, rondo_type_size(f->type));
    memmove(slot + at, slot, bytes);
    memset(slot, 0, at);
    memset(slot + at + bytes, 0, f->bytes - at - bytes);
}

/* Says what is to be made of a message of `bytes` in its slot. */
static void prepare(const rd_coll_net_t *c, rd_coll_flight_t *f, char *slot, size_t bytes)
{
    const rd_collnet_t *b = &c->base;
    const size_t n = (size_t)c->nodes, node = (size_t)c->node;

    *f = (rd_coll_flight_t){.by = RD_ALLREDUCE, .bytes = bytes, .each = bytes, .type = b->type, .op = b->op};
    switch (b->coll) {
    case RD_BROADCAST:
        carry(c, f, slot, 0, c->node == b->root ? bytes : 0);
        break;
    case RD_ALLGATHER:
        f->by = RD_ALLGATHER;
        f->bytes = n * bytes;
        if (!b->gathers)
            carry(c, f, slot, node * bytes, bytes);
        break;
    case RD_REDUCE_SCATTER:
        f->each = bytes / n;
        f->by = b->scatters ? RD_REDUCE_SCATTER : RD_ALLREDUCE;
        f->own = b->scatters ? 0 : node * f->each;
        break;
    default:
        break;
    }
}

static rondo_result_t post(rd_send_t *send, size_t bytes, int more)
{
    rd_coll_net_t *c = send->link;

    (void)more; /* a message is given at once */
    prepare(c, flight(c, c->posted), rd_ring_slot(rd_send_ring(send, bytes), c->posted), bytes);
    c->posted++;
    send->slot++;
    c->moved_ms = rd_clock_ms();
    submit(c);
    return RONDO_SUCCESS;
}

static rondo_result_t credit(rd_recv_t *recv, size_t bytes)
{
    rd_coll_net_t *c = recv->link;

    (void)bytes;
    atomic_store_explicit(&c->consumed.value, recv->received, memory_order_release);
    return RONDO_SUCCESS;
}

/* A head that has its sum may leave before another one has got it. */
static rondo_result_t farewell(const rd_transport_t *transport, int peer)
{
    const rd_coll_net_t *c = (const rd_coll_net_t *)(const void *)transport;

    (void)peer;
    return c->done < c->posted && rd_clock_ms() - c->moved_ms < LEAVES_MS ? RONDO_IN_PROGRESS : RONDO_SUCCESS;
}

static void destroy(rd_transport_t *transport)
{
    rd_coll_net_t *c = of(transport);

    if (c->net && c->net->beside == transport)
        c->net->beside = NULL;
    if (c->held && c->done == c->posted && rd_health_check(c->health) == RONDO_SUCCESS)
        rd_coll_held_end(c->held);
    else if (c->held)
        rd_coll_held_leave(c->held);
    free(c);
}

const rd_transport_ops_t rd_collnet_ops = {.name = "collnet",
                                           .reach = RD_BETWEEN_NODES,
                                           .destroy = destroy,
                                           .post = post,
                                           .credit = credit,
                                           .progress = progress,
                                           .farewell = farewell};
