/* Nonblocking calls. The user's request is one of the MPI's own, a generalised request, which is completed when rondo's
 * operation is over: so it may stand in one array with any other, and every function for requests knows it. in_flight.c
 * says who makes the progress.
 *
 * What is over at the end of its call has a request to nobody in its place, which is complete.
 *
 * Until the end the user may free the communicator, the type and the operator, so nothing of theirs is used then that
 * is not kept here. */
#include "mpi/interpose.h"
#include "mpi/stand_in.h"

/* ---- the generalised request ---- */

static int on_query(void *data, MPI_Status *status)
{
    const rd_mpi_operation_t *o = data;

    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return o->result;
}

/* MPICH calls this at once when the user frees the request, which MPI forbids, but which must not do harm. */
static int on_free(void *data)
{
    rd_mpi_operation_t *o = data;

    if (o->landed)
        rd_mpi_operation_free(o);
    else
        o->freed = true;
    return MPI_SUCCESS;
}

/* A collective operation cannot be cancelled. */
static int on_cancel(void *data, int complete)
{
    (void)data;
    (void)complete;
    return MPI_SUCCESS;
}

#ifdef OPEN_MPI
static int request_start(rd_mpi_operation_t *o)
{
    return PMPI_Grequest_start(on_query, on_free, on_cancel, o, &o->request);
}
#else
static int on_poll(void *data, MPI_Status *status)
{
    (void)data;
    (void)status;
    rd_mpi_flights_turn();
    if (!rd_mpi_next.requests_come_by || !rd_mpi_many_threads()) /* with threads the MPI may hold its lock here */
        rd_mpi_stand_ins_turn();
    return MPI_SUCCESS;
}

static int on_wait(int count, void **data, double timeout, MPI_Status *status)
{
    (void)timeout;
    (void)status;
    for (int i = 0; i < count; i++) {
        while (!((const rd_mpi_operation_t *)data[i])->landed) {
            rd_mpi_flights_turn();
            rd_mpi_stand_ins_turn();
            rd_mpi_progress(NULL);
        }
    }
    return MPI_SUCCESS;
}

static int request_start(rd_mpi_operation_t *o)
{
    return PMPIX_Grequest_start(on_query, on_free, on_cancel, on_poll, on_wait, o, &o->request);
}
#endif

/* ---- from the start to the end ---- */

static void done(rd_mpi_operation_t *o)
{
    rd_mpi_comm_landed(o->c);
    o->landed = true;
    if (o->freed)
        rd_mpi_operation_free(o);
    else
        PMPI_Grequest_complete(o->request);
}

int rd_mpi_nonblocking_request(rd_mpi_operation_t *o)
{
    o->done = done;
    return request_start(o);
}

/* Switched off for all lengths, so that nothing need be prepared to find that out. */
static bool is_off(const rd_mpi_comm_t *c, int kind)
{
    return c->rules->widest[kind][0] > c->rules->widest[kind][1];
}

/* RD_MPI_SERVED: it may be served. */
static rd_mpi_reason_t judge(rd_mpi_comm_t *c, const rd_mpi_call_t *call)
{
    if (c->status == RD_MPI_REFUSED)
        return c->refused;
    if (!rd_mpi_plausible(c, call))
        return RD_MPI_ARGUMENT;
    if (c->own_refused != RD_MPI_SERVED && !c->own)
        return c->own_refused;
    if (!c->own)
        return RD_MPI_EARLY;
    if (is_off(c, rd_mpi_kind(call)))
        return RD_MPI_SIZE;
    return RD_MPI_SERVED;
}

static int over_at_once(rd_mpi_operation_t *o, MPI_Request *request)
{
    int result = rd_mpi_operation_end(o);

    rd_mpi_operation_free(o);
    return result == MPI_SUCCESS ? PMPI_Isend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, request) : result;
}

static int start(rd_mpi_comm_t *c, const rd_mpi_call_t *call, MPI_Request *request)
{
    rd_mpi_operation_t *o = rd_mpi_operation_create(c, c->own, call, false);
    bool over = false;
    int result;

    if (!o)
        return rd_mpi_raise(c, MPI_ERR_NO_MEM);
    result = rd_mpi_operation_submit(o, &over);
    if (result != MPI_SUCCESS) {
        rd_mpi_operation_free(o);
        return result;
    }
    if (over)
        return over_at_once(o, request);
    c->uses++;
    result = rd_mpi_nonblocking_request(o);
    *request = o->request;
    return result;
}

int rd_mpi_start_own(rd_mpi_comm_t *c, const rd_mpi_call_t *call, MPI_Request *request)
{
    return start(c, call, request);
}

int rd_mpi_start(const rd_mpi_call_t *call, MPI_Request *request)
{
    int error, result;
    rd_mpi_comm_t *c = rd_mpi_comm_of(call->comm, &error);
    double began = rd_mpi_settings.report ? rd_mpi_clock() : 0;
    rd_mpi_reason_t reason;

    if (!c)
        return error == MPI_SUCCESS ? RD_MPI_HAND_ON(RD_MPI_ARGUMENT) : error;
    reason = c->own && rd_mpi_is_the_mpis(c, call) ? RD_MPI_SLOWER : judge(c, call);
    result = reason == RD_MPI_SERVED ? start(c, call, request) : RD_MPI_HAND_ON(reason);
    if (result < 0)
        rd_mpi_handed_on(rd_mpi_kind(call), (rd_mpi_reason_t)-result);
    else
        rd_mpi_tallies[rd_mpi_kind(call)].served_s += rd_mpi_settings.report ? rd_mpi_clock() - began : 0;
    return result;
}
