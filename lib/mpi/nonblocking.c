/* Nonblocking calls. The user's request is one of the MPI's own, a generalised request, which is completed when rondo's
 * operation is over: so it may stand in one array with any other, and every function for requests knows it. in_flight.c
 * says who makes the progress.
 *
 * Until the end the user may free the communicator, the type and the operator, so nothing of theirs is used then that
 * is not kept here. */
#include <stdlib.h>
#include <string.h>

#include "mpi/interpose.h"

typedef struct {
    rd_mpi_flight_t flight; /* the first, so that it is found from there */
    rd_mpi_comm_t *c;
    rd_mpi_call_t call;
    rd_mpi_work_t work;
    rd_mpi_staged_t staged;
    MPI_Request handle; /* the user's */
    MPI_Datatype kept;  /* what is received into is described by this; MPI_DATATYPE_NULL: by the user's */
    int result;
    bool landed;
    size_t words[]; /* the work's lists, and copies of the call's */
} operation_t;

/* ---- the generalised request ---- */

static int on_query(void *data, MPI_Status *status)
{
    const operation_t *o = data;

    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return o->result;
}

static int on_free(void *data)
{
    free(data);
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
static int request_start(operation_t *o)
{
    return PMPI_Grequest_start(on_query, on_free, on_cancel, o, &o->handle);
}
#else
static int on_poll(void *data, MPI_Status *status)
{
    (void)data;
    (void)status;
    rd_mpi_flights_turn();
    return MPI_SUCCESS;
}

static int on_wait(int count, void **data, double timeout, MPI_Status *status)
{
    (void)timeout;
    (void)status;
    for (int i = 0; i < count; i++) {
        while (!((const operation_t *)data[i])->landed) {
            rd_mpi_flights_turn();
            rd_mpi_progress(NULL);
        }
    }
    return MPI_SUCCESS;
}

static int request_start(operation_t *o)
{
    return PMPIX_Grequest_start(on_query, on_free, on_cancel, on_poll, on_wait, o, &o->handle);
}
#endif

/* ---- from the start to the end ---- */

static void land(rd_mpi_flight_t *flight)
{
    operation_t *o = (operation_t *)flight;
    int result = rd_mpi_end(&o->work, rd_mpi_result(o->c, flight->result));

    o->result = rd_mpi_device_unstage(o->c, &o->staged, result);
    if (o->kept != MPI_DATATYPE_NULL)
        PMPI_Type_free(&o->kept);
    rd_mpi_comm_landed(o->c);
    o->landed = true;
    PMPI_Grequest_complete(o->handle);
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
    if (!c->own) {
        c->calls++;
        if (c->status == RD_MPI_SERVING && ++c->missed >= (c->world ? 1 : c->after))
            rd_mpi_want_own(c);
        return RD_MPI_EARLY;
    }
    if (c->rules->compare && ++c->compared[rd_mpi_kind(call)] % c->rules->compare == 0)
        return RD_MPI_COMPARED;
    return RD_MPI_SERVED;
}

static bool has_lists(rd_mpi_what_t what)
{
    return what == RD_MPI_GATHERV || what == RD_MPI_SCATTERV || what == RD_MPI_ALLGATHERV || what == RD_MPI_ALLTOALLV;
}

static const void *copy_list(operation_t *o, int place, const void *list)
{
    size_t n = (size_t)o->c->nranks;

    return list ? memcpy(o->words + (size_t)place * n, list, n * (o->call.large ? sizeof(int64_t) : sizeof(int)))
                : NULL;
}

/* What unpacks at the end must not be the user's. A row of one element keeps a type, and nobody's attributes are copied
 * for it. */
static int keep_type(operation_t *o)
{
    rd_mpi_call_t *call = &o->call;
    rd_mpi_layout_t layout;
    int result;

    if (rd_mpi_reduces(call->what)) {
        call->recvtype = rd_mpi_reduced_type(call->recvtype);
        return MPI_SUCCESS;
    }
    if (call->what == RD_MPI_BARRIER_CALL || !rd_mpi_receives(o->c, call) || !rd_mpi_layout(call->recvtype, &layout) ||
        layout.dense)
        return MPI_SUCCESS;
    if (has_lists(call->what)) {
        call->recvcounts = copy_list(o, 4, call->recvcounts);
        call->rdispls = copy_list(o, 5, call->rdispls);
    }
    result = PMPI_Type_contiguous(1, call->recvtype, &o->kept);
    if (result == MPI_SUCCESS)
        result = PMPI_Type_commit(&o->kept);
    call->recvtype = o->kept;
    return result;
}

static operation_t *create(rd_mpi_comm_t *c, const rd_mpi_call_t *call)
{
    bool lists =
        has_lists(call->what) || call->what == RD_MPI_REDUCE_SCATTER || call->what == RD_MPI_REDUCE_SCATTER_BLOCK;
    operation_t *o = calloc(1, sizeof *o + (lists ? 6 * (size_t)c->nranks * sizeof *o->words : 0));

    if (!o)
        return NULL;
    o->c = c;
    o->call = *call;
    o->kept = MPI_DATATYPE_NULL;
    o->flight.core = c->own;
    o->flight.land = land;
    o->work = (rd_mpi_work_t){.c = c, .call = &o->call, .rondo = c->own->rondo, .lists = o->words, .but = -1};
    return o;
}

/* Records and submits it. Nothing has begun if it does not return MPI_SUCCESS. */
static int submit(operation_t *o)
{
    int result;

    rd_mpi_flights_enter();
    rondo_group_start();
    result = rd_mpi_begin(&o->work);
    if (result == MPI_SUCCESS)
        result = rd_mpi_result(o->c, rondo_group_submit(&o->flight.request));
    else
        rondo_group_end(); /* of nothing */
    if (result == MPI_SUCCESS)
        rd_mpi_flights_add(&o->flight);
    rd_mpi_flights_leave();
    return result;
}

static int start(rd_mpi_comm_t *c, const rd_mpi_call_t *call, MPI_Request *request)
{
    operation_t *o = create(c, call);
    int result = o ? keep_type(o) : rd_mpi_raise(c, MPI_ERR_NO_MEM);

    if (!o)
        return result;
    if (result == MPI_SUCCESS && rd_mpi_device_used())
        result = rd_mpi_device_stage(c, &o->call, &o->staged);
    if (result == MPI_SUCCESS)
        result = submit(o);
    if (result == MPI_SUCCESS) {
        c->in_flight++;
        result = request_start(o);
        *request = o->handle;
        return result;
    }
    rd_mpi_end(&o->work, result);
    rd_mpi_device_unstage(c, &o->staged, result);
    if (o->kept != MPI_DATATYPE_NULL)
        PMPI_Type_free(&o->kept);
    free(o);
    return result;
}

int rd_mpi_start(const rd_mpi_call_t *call, MPI_Request *request)
{
    int error = MPI_SUCCESS, result;
    rd_mpi_comm_t *c = rd_mpi_comm_get(call->comm);
    double began = rd_mpi_settings.report ? rd_mpi_clock() : 0;
    rd_mpi_reason_t reason;

    if (!c)
        c = rd_mpi_comm_find(call->comm, &error);
    if (!c)
        return error == MPI_SUCCESS ? RD_MPI_HAND_ON(RD_MPI_ARGUMENT) : error;
    reason = judge(c, call);
    result = reason == RD_MPI_SERVED ? start(c, call, request) : RD_MPI_HAND_ON(reason);
    if (result < 0)
        rd_mpi_handed_on(rd_mpi_kind(call), (rd_mpi_reason_t)-result);
    else
        rd_mpi_tallies[rd_mpi_kind(call)].served_s += rd_mpi_settings.report ? rd_mpi_clock() - began : 0;
    return result;
}
