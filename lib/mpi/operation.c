/* An operation that goes on behind its call: rondo's part is a group that is submitted, and in_flight.c says who makes
 * its progress. Until the end the user may free the communicator, the types and the operator, and write the arrays of a
 * call that is not served but looked at only at its start; so nothing of theirs is used then that is not kept here. */
#include <stdlib.h>
#include <string.h>

#include "mpi/interpose.h"
#include "mpi/kept.h"

enum { LISTS = 4, COPIES = 4 }; /* arrays of one word for each rank */
enum { USERS = -2 };            /* of rd_mpi_op */
#define SPARE 16                /* operations whose memory is kept */

static bool has_lists(rd_mpi_what_t what)
{
    return what == RD_MPI_GATHERV || what == RD_MPI_SCATTERV || what == RD_MPI_ALLGATHERV || what == RD_MPI_ALLTOALLV ||
           what == RD_MPI_REDUCE_SCATTER || what == RD_MPI_REDUCE_SCATTER_BLOCK;
}

static const void *copy_list(rd_mpi_operation_t *o, int which, const void *list)
{
    size_t n = (size_t)o->c->nranks;

    return list ? memcpy(o->words + (size_t)(LISTS + which) * n, list,
                         n * (o->asked.large ? sizeof(int64_t) : sizeof(int)))
                : NULL;
}

static void keep_lists(rd_mpi_operation_t *o)
{
    rd_mpi_call_t *asked = &o->asked;

    if (rd_mpi_receives(o->c, asked)) {
        asked->recvcounts = copy_list(o, 0, asked->recvcounts);
        asked->rdispls = copy_list(o, 1, asked->rdispls);
    }
    if (rd_mpi_sends(o->c, asked)) {
        asked->sendcounts = copy_list(o, 2, asked->sendcounts);
        asked->sdispls = copy_list(o, 3, asked->sdispls);
    }
}

/* A row of one element keeps a type, and nobody's attributes are copied for it. */
static int keep_type(MPI_Datatype *type, MPI_Datatype *kept)
{
    rd_mpi_layout_t layout;
    int result;

    if (rd_mpi_named(*type) || !rd_mpi_layout(*type, &layout))
        return MPI_SUCCESS;
    result = PMPI_Type_contiguous(1, *type, kept);
    if (result == MPI_SUCCESS)
        result = PMPI_Type_commit(kept);
    *type = *kept;
    return result;
}

/* The types that are looked at after the start: of what is received, and if it starts again, of what is sent. */
static int keep_types(rd_mpi_operation_t *o, bool again)
{
    rd_mpi_call_t *asked = &o->asked;
    int result = MPI_SUCCESS;

    if (asked->what == RD_MPI_BARRIER_CALL)
        return MPI_SUCCESS;
    if (rd_mpi_reduces(asked->what) && rd_mpi_op(asked->op) == USERS) {
        o->keeps = rd_mpi_keep(asked);
        return o->keeps ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    if (rd_mpi_reduces(asked->what)) {
        asked->recvtype = rd_mpi_reduced_type(asked->recvtype);
        return MPI_SUCCESS;
    }
    if (rd_mpi_receives(o->c, asked))
        result = keep_type(&asked->recvtype, &o->kept[0]);
    if (result == MPI_SUCCESS && again && asked->what != RD_MPI_BCAST && rd_mpi_sends(o->c, asked))
        result = keep_type(&asked->sendtype, &o->kept[1]);
    return result;
}

int rd_mpi_operation_end(rd_mpi_operation_t *o)
{
    int result = rd_mpi_end(&o->work, rd_mpi_result(o->c, o->flight.result));

    return rd_mpi_device_return(o->c, &o->on_host, result);
}

static void land(rd_mpi_flight_t *flight)
{
    rd_mpi_operation_t *o = (rd_mpi_operation_t *)flight;

    o->result = rd_mpi_operation_end(o);
    o->done(o);
}

/* Short operations that go on behind their calls come one after the other, so the memory of a few is kept: to take it
 * from the heap each time costs a tenth of what they take. Only nonblocking calls that rondo serves keep some, where no
 * two threads are in here at once. */
static struct {
    rd_mpi_operation_t *first;
    int n;
} spare;

static bool may_be_spared(const rd_mpi_core_t *core, const rd_mpi_call_t *call)
{
    return core && call->form == RD_MPI_NONBLOCKING && !has_lists(call->what);
}

static rd_mpi_operation_t *take(const rd_mpi_core_t *core, const rd_mpi_call_t *call, int nranks)
{
    size_t words = has_lists(call->what) ? (LISTS + COPIES) * (size_t)nranks : 0;
    rd_mpi_operation_t *o = may_be_spared(core, call) ? spare.first : NULL;

    if (!o)
        return calloc(1, sizeof *o + words * sizeof *o->words);
    spare.first = o->next;
    spare.n--;
    memset(o, 0, sizeof *o);
    return o;
}

static void put(rd_mpi_operation_t *o)
{
    if (!may_be_spared(o->flight.core, &o->asked) || spare.n == SPARE) {
        free(o);
        return;
    }
    o->next = spare.first;
    spare.first = o;
    spare.n++;
}

rd_mpi_operation_t *rd_mpi_operation_create(rd_mpi_comm_t *c, rd_mpi_core_t *core, const rd_mpi_call_t *call,
                                            bool again)
{
    rd_mpi_operation_t *o = take(core, call, c->nranks);

    if (!o)
        return NULL;
    o->c = c;
    o->asked = *call;
    o->kept[0] = o->kept[1] = MPI_DATATYPE_NULL;
    o->flight.core = core;
    o->flight.land = land;
    if (has_lists(call->what))
        keep_lists(o);
    if (keep_types(o, again) != MPI_SUCCESS) {
        rd_mpi_operation_free(o);
        return NULL;
    }
    return o;
}

static int submit(rd_mpi_operation_t *o, bool *over)
{
    bool is_over = false;
    int result;

    rd_mpi_flights_enter();
    rondo_group_start();
    result = rd_mpi_begin(&o->work);
    if (result == MPI_SUCCESS)
        result = rd_mpi_result(o->c, rondo_group_submit(&o->flight.request));
    else
        rondo_group_end(); /* of nothing */
    if (result == MPI_SUCCESS)
        is_over = !rd_mpi_flights_add(&o->flight, over != NULL);
    rd_mpi_flights_leave();
    if (over)
        *over = is_over;
    return result;
}

int rd_mpi_operation_submit(rd_mpi_operation_t *o, bool *over)
{
    int result = MPI_SUCCESS;

    o->call = o->asked;
    o->work =
        (rd_mpi_work_t){.c = o->c, .call = &o->call, .rondo = o->flight.core->rondo, .lists = o->words, .but = -1};
    o->flight.arrived = false;
    if (rd_mpi_device_used())
        result = rd_mpi_device_bring(o->c, &o->call, &o->on_host);
    if (result == MPI_SUCCESS)
        result = submit(o, over);
    if (result == MPI_SUCCESS) {
        rd_mpi_count_served(rd_mpi_kind(&o->call), o->work.bytes);
        if (o->call.form == RD_MPI_NONBLOCKING)
            rd_mpi_has_begun(&o->work);
        return MPI_SUCCESS;
    }
    rd_mpi_end(&o->work, result);
    rd_mpi_device_return(o->c, &o->on_host, result);
    return result;
}

void rd_mpi_operation_drop_types(rd_mpi_operation_t *o)
{
    if (o->keeps)
        rd_mpi_let_go(&o->asked);
    o->keeps = false;
    for (int i = 0; i < 2; i++) {
        if (o->kept[i] != MPI_DATATYPE_NULL)
            PMPI_Type_free(&o->kept[i]);
    }
}

void rd_mpi_operation_free(rd_mpi_operation_t *o)
{
    rd_mpi_operation_drop_types(o);
    free(o->work.parts);
    put(o);
}
