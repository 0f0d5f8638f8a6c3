/* See status_lines.h. */
#include "core/status_lines.h"

#include "core/lifetime.h"
#include "core/living.h"
#include "core/monitor_thread.h"
#include "monitor/own.h"

void rd_status_lines_join(rondo_comm_t comm)
{
    if (comm->internal || comm->env.status_ms <= 0 || !rd_monitor_thread_join())
        return;
    comm->status_due_ms = rd_clock_ms() + comm->env.status_ms;
    comm->status_lines = true;
    rd_monitor_thread_wake();
}

void rd_status_lines_leave(rondo_comm_t comm)
{
    if (!comm->status_lines)
        return;
    comm->status_lines = false;
    rd_monitor_thread_leave();
}

static void say(rondo_comm_t comm, const rd_own_t *own)
{
    const rd_monitor_calls_t *calls = own->rank.comm.calls;
    char where[512];

    rd_view_where_text(&own->view, &own->rank, true, where, sizeof where);
    rd_log(&comm->ctx, RD_LOG_WARN, "%llu collectives, %llu sends, %llu recvs, %llu bytes; %s (RONDO_STATUS_MS)",
           (unsigned long long)calls[RD_TRACK_COLLECTIVE].ended, (unsigned long long)calls[RD_TRACK_SEND].ended,
           (unsigned long long)calls[RD_TRACK_RECV].ended, (unsigned long long)rd_view_bytes(&own->view, &own->rank),
           where);
}

static void look(rondo_comm_t comm, void *arg)
{
    int64_t *next_ms = arg, now = rd_clock_ms();
    rd_own_t own;

    if (comm->env.status_ms <= 0 || !rd_comm_query_enter(comm))
        return;
    if (comm->status_lines && now >= comm->status_due_ms) {
        comm->status_due_ms = now + comm->env.status_ms;
        if (comm->seat.record && rd_own_look(&own, &comm->seat))
            say(comm, &own);
    }
    if (comm->status_lines && (*next_ms < 0 || comm->status_due_ms - now < *next_ms))
        *next_ms = comm->status_due_ms - now;
    rd_comm_query_leave(comm);
}

int rd_status_lines_turn(void)
{
    int64_t next_ms = -1;

    rd_living_each(look, &next_ms);
    return next_ms > INT32_MAX ? INT32_MAX : (int)next_ms;
}
