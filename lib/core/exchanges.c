/* See exchanges.h. */
#include "core/exchanges.h"

#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "core/comm.h"
#include "core/lifetime.h"
#include "core/living.h"
#include "monitor/held.h"
#include "monitor/verdict.h"

#define LEAD_MS 700 /* from one look to the next, or half of the wait if that is less */

static void forget(rd_exchanges_t *e)
{
    if (e->view)
        rd_view_free(e->view);
    free(e->view);
    e->view = NULL;
}

static void look_first(rd_exchanges_t *e)
{
    e->view = calloc(1, sizeof *e->view);
    if (e->view && !(rd_held_view(e->view) && rd_view_look(e->view, 0)))
        forget(e);
}

static bool look_again(const rd_exchanges_t *e)
{
    return e->view && rd_held_again(e->view) && rd_view_look(e->view, 0);
}

static const rd_view_comm_t *seen(rondo_comm_t comm, const rd_view_t *view)
{
    return comm->seat.record ? rd_view_comm_of(view->comms, view->ncomms, comm->seat.board->id) : NULL;
}

/* ---- different orders ---- */

/* Has one thread made all calls of each process, as far as its record goes? */
static bool one_thread_each(const rd_view_t *view)
{
    for (int p = 0; p < view->nprocesses; p++) {
        const rd_reader_t *reader = &view->processes[p].reader;
        const uint64_t n = rd_reader_events(reader);
        uint64_t thread = 0;
        rd_monitor_event_t event;
        for (uint64_t i = n < reader->head.nevents ? 0 : n - reader->head.nevents; i < n; i++) {
            if (!rd_reader_event(reader, i, &event))
                continue;
            if (thread && event.thread != thread)
                return false;
            thread = event.thread;
        }
    }
    return true;
}

/* The rank that this one waits for, or else one that waits for it. */
static int other_end(const rd_view_comm_t *c, int rank)
{
    const rd_view_rank_t *own = rd_view_rank_of(c, rank);
    const int waits_for = own ? rd_view_waits_for(&own->comm) : -1;

    for (int i = 0; i < c->nranks && waits_for < 0; i++)
        if (rd_view_waits_for(&c->ranks[i].comm) == rank)
            return c->ranks[i].comm.rank;
    return waits_for;
}

/* Fails the communicator if its ranks wait in a circle that leads over others: also one that is not waited in here,
 * whose ranks would hear later, by other words, that this rank has gone. */
static void fail_in_circle(rondo_comm_t comm, void *arg)
{
    const rd_view_t *view = arg;
    rd_monitor_verdict_t v = {.status = RD_VERDICT_NONE};
    char text[RD_ERROR_BYTES];

    if (!rd_comm_query_enter(comm))
        return;
    const rd_view_comm_t *c = seen(comm, view);
    if (c)
        rd_verdict_judge(view, c, &v);
    if (v.order) {
        rd_verdict_copy(text, sizeof text, v.text);
        rd_health_fail(&comm->health, RONDO_ERR_MISMATCH, other_end(c, comm->team.rank), "%s", text);
    }
    rd_comm_query_leave(comm);
}

/* ---- what the bootstrap tells ---- */

static void judge(rondo_comm_t comm)
{
    rd_exchanges_t *e = &comm->exchanges;

    if (!look_again(e)) {
        forget(e);
        return;
    }
    if (one_thread_each(e->view))
        rd_living_each(fail_in_circle, e->view);
}

static void watch(rondo_comm_t comm, const rd_boot_wait_t *wait, int64_t now)
{
    rd_exchanges_t *e = &comm->exchanges;
    const int64_t stall = comm->env.stall_ms;

    if (e->since_ms != wait->since_ms) {
        forget(e);
        e->since_ms = wait->since_ms;
        e->due_ms = stall > 0 ? wait->since_ms + stall : INT64_MAX;
    }
    const int64_t next = wait->until_ms && wait->until_ms < e->due_ms ? wait->until_ms : e->due_ms;
    const int64_t half = (next - wait->since_ms) / 2;
    if (!e->view && now >= next - (half < LEAD_MS ? half : LEAD_MS) && now < next)
        look_first(e);
    if (now < e->due_ms)
        return;
    judge(comm);
    e->due_ms = wait->since_ms + 2 * (e->due_ms - wait->since_ms);
}

static void waits(void *arg, const rd_boot_wait_t *wait)
{
    rondo_comm_t comm = arg;
    const int64_t now = rd_clock_ms();
    fenv_t program;

    rd_monitor_wait(&comm->seat, wait->peer, wait->since_ms, now, -1, -1);
    rd_fpenv_begin(&program);
    if (wait->peer >= 0)
        watch(comm, wait, now);
    else
        forget(&comm->exchanges);
    rd_fpenv_end(&program);
}

static void explain(void *arg, char text[RD_ERROR_BYTES])
{
    rondo_comm_t comm = arg;
    rd_monitor_verdict_t v = {.status = RD_VERDICT_NONE};
    const size_t used = strlen(text);
    fenv_t program;

    rd_fpenv_begin(&program);
    const rd_view_comm_t *c = look_again(&comm->exchanges) ? seen(comm, comm->exchanges.view) : NULL;
    if (c)
        rd_verdict_judge(comm->exchanges.view, c, &v);
    if (v.status == RD_VERDICT_LATE || v.status == RD_VERDICT_BLAMED) {
        rd_verdict_copy(text + used, RD_ERROR_BYTES - used, "; ");
        rd_verdict_copy(text + used + 2, RD_ERROR_BYTES - used - 2, v.text);
    }
    rd_fpenv_end(&program);
}

void rd_exchanges_watch(rondo_comm_t comm)
{
    if (comm->recorded && comm->team.device < 0)
        rd_boot_watch(comm->boot, &(rd_boot_watcher_t){waits, explain, comm});
}
