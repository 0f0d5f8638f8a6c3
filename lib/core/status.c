/* rondo_comm_status: how far this rank is. */
#include <stddef.h>
#include <string.h>

#include "core/comm.h"
#include "core/lifetime.h"
#include "monitor/own.h"

static void fill(rondo_status_t *status, const rd_own_t *own)
{
    const rd_monitor_comm_t *c = &own->rank.comm;
    int inside = rd_view_inside(c), waits_for = rd_view_waits_for(c);

    status->collectives = c->calls[RD_TRACK_COLLECTIVE].begun;
    status->collectives_ended = c->calls[RD_TRACK_COLLECTIVE].ended;
    status->sends = c->calls[RD_TRACK_SEND].begun;
    status->sends_ended = c->calls[RD_TRACK_SEND].ended;
    status->recvs = c->calls[RD_TRACK_RECV].begun;
    status->recvs_ended = c->calls[RD_TRACK_RECV].ended;
    status->bytes = rd_view_bytes(&own->view, &own->rank);
    status->waits_for = waits_for;
    status->waits_ms = waits_for < 0 ? 0 : (int64_t)(1000 * rd_view_waits_since(&own->view, &own->rank));
    if (rd_view_begun(c))
        rd_view_call_text(&own->view, &own->rank, inside < 0 ? RD_TRACK_COLLECTIVE : inside, status->call,
                          sizeof status->call);
}

rondo_result_t rondo_comm_status(rondo_comm_t comm, rondo_status_t *status)
{
    rondo_result_t result = rd_comm_valid_suspended(comm, "rondo_comm_status");
    rondo_status_t full = {0};
    rd_own_t own;

    if (result != RONDO_SUCCESS)
        return result;
    if (!status || status->size < offsetof(rondo_status_t, waits_for))
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT,
                        "rondo_comm_status: status is NULL, or its size is not sizeof(rondo_status_t)");
    full.size = status->size;
    full.waits_for = -1;
    if (rd_comm_query_enter(comm)) {
        if (rd_own_look(&own, &comm->seat))
            fill(&full, &own);
        rd_comm_query_leave(comm);
    }
    memcpy(status, &full, status->size < sizeof full ? status->size : sizeof full);
    return RONDO_SUCCESS;
}
