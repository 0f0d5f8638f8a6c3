/* From a call to its end: rondo, or who comes behind. */
#include <stdlib.h>

#include "mpi/interpose.h"

rd_mpi_entries_t rd_mpi_next;

int rd_mpi_raise(rd_mpi_comm_t *c, int code)
{
    if (!rd_mpi_flights_keep_error(c->comm, code))
        PMPI_Comm_call_errhandler(c->comm, code);
    return code;
}

/* rondo has printed its sentence. */
int rd_mpi_failed(rd_mpi_comm_t *c, rondo_result_t result)
{
    if (result == RONDO_ERR_REMOTE || result == RONDO_ERR_ABORTED)
        return rd_mpi_raise(c, rd_mpi_class_of_failure(c));
    return rd_mpi_raise(c, result == RONDO_ERR_INVALID_ARGUMENT ? MPI_ERR_BUFFER : MPI_ERR_OTHER);
}

int rd_mpi_begin(rd_mpi_work_t *w)
{
    switch (w->call->what) {
    case RD_MPI_REDUCE:
    case RD_MPI_ALLREDUCE:
    case RD_MPI_REDUCE_SCATTER_BLOCK:
    case RD_MPI_REDUCE_SCATTER:
    case RD_MPI_SCAN:
    case RD_MPI_EXSCAN:
        return rd_mpi_begin_reduction(w);
    case RD_MPI_GATHERV:
    case RD_MPI_SCATTERV:
    case RD_MPI_ALLGATHERV:
    case RD_MPI_ALLTOALLV:
        return rd_mpi_begin_lists(w);
    default:
        return rd_mpi_begin_blocks(w);
    }
}

int rd_mpi_end(rd_mpi_work_t *w, int result)
{
    if (result == MPI_SUCCESS)
        result = rd_mpi_received(w->c, &w->out);
    if (result == MPI_SUCCESS && w->to.owned)
        result = rd_mpi_end_lists(w);
    if (result == MPI_SUCCESS && w->sorted.blocks)
        result = rd_mpi_end_sorted(w);
    rd_mpi_bytes_free(&w->in);
    rd_mpi_bytes_free(&w->out);
    free(w->from.owned);
    free(w->to.owned);
    free(w->sorted.blocks);
    return result;
}

void rd_mpi_has_begun(const rd_mpi_work_t *w)
{
    if (w->c->rules->compare)
        w->c->compared[rd_mpi_kind(w->call)]++;
    rd_mpi_table_count(w);
}

int rd_mpi_serve(rd_mpi_comm_t *c, const rd_mpi_call_t *call)
{
    rd_mpi_work_t w;
    int result;

    if (!c->lists && !(c->lists = malloc(4 * (size_t)c->nranks * sizeof *c->lists)))
        return rd_mpi_raise(c, MPI_ERR_NO_MEM);
    w = (rd_mpi_work_t){.c = c, .call = call, .rondo = c->rondo, .lists = c->lists, .but = -1};
    result = rd_mpi_begin(&w);
    if (result >= 0)
        rd_mpi_count_served(rd_mpi_kind(call), w.bytes);
    if (result == MPI_SUCCESS)
        rd_mpi_has_begun(&w);
    return rd_mpi_end(&w, result);
}

rd_mpi_reason_t rd_mpi_judge(rd_mpi_comm_t *c, const rd_mpi_call_t *call)
{
    if (c->status == RD_MPI_REFUSED)
        return c->refused;
    if (!rd_mpi_plausible(c, call))
        return RD_MPI_ARGUMENT;
    if (c->status != RD_MPI_SERVING)
        rd_mpi_setup(c);
    if (c->status != RD_MPI_SERVING)
        return c->status == RD_MPI_REFUSED ? c->refused : RD_MPI_EARLY;
    return RD_MPI_SERVED;
}

/* Does the MPI serve all calls of this kind? Then there is nothing to be found out about this one. */
static bool is_the_mpis(const rd_mpi_comm_t *c, int kind)
{
    return c->status == RD_MPI_SERVING && rd_mpi_unequal(kind) && c->rules->mpis[kind];
}

static int run(rd_mpi_comm_t *c, const rd_mpi_call_t *call)
{
    rd_mpi_tally_t *tally = &rd_mpi_tallies[rd_mpi_kind(call)];
    rd_mpi_reason_t reason = is_the_mpis(c, rd_mpi_kind(call)) ? RD_MPI_SLOWER : rd_mpi_judge(c, call);
    rd_mpi_watch_t watch;
    double began, took;
    int result;

    if (reason == RD_MPI_SERVED && rd_mpi_is_compared(c, call))
        reason = RD_MPI_COMPARED;
    began = rd_mpi_settings.report ? rd_mpi_clock() : 0;
    result = reason == RD_MPI_SERVED ? rd_mpi_serve(c, call) : RD_MPI_HAND_ON(reason);
    if (result >= 0) {
        tally->served_s += rd_mpi_settings.report ? rd_mpi_clock() - began : 0;
        return result;
    }
    reason = (rd_mpi_reason_t)-result;
    watch = rd_mpi_watch(call, reason);
    result = rd_mpi_order(c, call, reason);
    result = rd_mpi_passed(&watch, result < 0 ? rd_mpi_pass(call, NULL) : result);
    rd_mpi_handed_on(rd_mpi_kind(call), reason);
    took = rd_mpi_settings.report ? rd_mpi_clock() - began : 0;
    tally->handed_s += took;
    tally->compared_s += reason == RD_MPI_COMPARED ? took : 0;
    return result;
}

int rd_mpi_run(const rd_mpi_call_t *call)
{
    int error, result;
    rd_mpi_comm_t *c = rd_mpi_comm_of(call->comm, &error);

    if (!c)
        return error == MPI_SUCCESS ? rd_mpi_pass(call, NULL) : error;
    result = rd_mpi_device_used() ? rd_mpi_device_run(c, call, run) : run(c, call);
    if (c->core && c->core->due)
        rd_mpi_measure(c, c->core);
    return result;
}
