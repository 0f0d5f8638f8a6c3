/* The switch by a CollNet plugin: what is posted becomes an iallreduce from a slot of the one connection to the slot of
 * the same number of the other, and is published there when the plugin says that it is over. The plugin is asked for
 * the oldest one alone, as by NCCL.
 *
 * A rank posts only when the slot that its sum will come to has been read, so the credits of the way there are the
 * consumed messages of the way back, and the plugin never has more than RD_COLLNET_SLOTS requests.
 *
 * If the plugin fails, a rank that it needed may have died: the news of that says more, so it is waited for. After that
 * it is this rank's failure. Either way the plugin is not called again, but to be closed. */
#include <stdlib.h>
#include <string.h>

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

/* Gives the plugin what it takes. Returns true if it has taken anything. */
static bool submit(rd_coll_net_t *c)
{
    const rd_coll_held_t *held = c->held;
    bool moved = false;

    while (c->error == 0 && c->taken < c->posted) {
        rd_coll_flight_t *f = flight(c, c->taken);
        const char *from = rd_ring_slot(rd_send_ring(&c->base.send, f->bytes), c->taken);
        char *to = rd_recv_slot(&c->base.recv, f->bytes, c->taken);
        int error = rd_coll_allreduce(held->plug, held->comm, from, to, f->bytes / rondo_type_size(f->type), f->type,
                                      f->op, held->registration, held->registration, &f->request);
        if (error != 0)
            fails(c, "iallreduce", error);
        if (error != 0 || !f->request)
            break;
        c->taken++;
        moved = true;
    }
    return moved;
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
        else if (over && bytes >= 0 && (size_t)bytes != f->bytes)
            fails(c, "test (it has added another number of bytes)", 3);
        if (c->error != 0 || !over)
            break;
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

static rondo_result_t post(rd_send_t *send, size_t bytes, int more)
{
    rd_coll_net_t *c = send->link;

    (void)more; /* a message is given at once */
    *flight(c, c->posted++) = (rd_coll_flight_t){NULL, bytes, c->base.type, c->base.op};
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
