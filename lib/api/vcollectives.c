/* The v-operations: counts and displacements for each rank. allgatherv and reduce_scatterv, whose counts every rank
 * knows, run by the same schedules as the uniform ones; gatherv, scatterv and alltoallv, whose counts only a pair
 * knows, are one all-to-all each, in which most messages may be empty.
 */
#include <stdlib.h>
#include <string.h>

#include "api/args.h"
#include "core/submit.h"

#define BAD RONDO_ERR_INVALID_ARGUMENT
#define FEW 32 /* ranks whose tables need no heap */

/* Checks one side: counts are given, each block fits in memory, and there is a buffer if anything is to be moved. Where
 * an empty block would lie does not matter. `at`: the name of the displacements. */
static rondo_result_t check_side(const char *call, rondo_comm_t comm, const char *side, const char *what,
                                 const void *buffer, const size_t *counts, const char *at, const size_t *displs,
                                 rondo_type_t type)
{
    size_t most = rd_args_most(type), sum = 0;

    if (!counts)
        return rd_error(&comm->ctx, BAD, "%s: %scounts is NULL: it holds one count for each of %d ranks", call, side,
                        comm->team.nranks);
    for (int r = 0; r < comm->team.nranks; r++) {
        if (counts[r] > most - sum)
            return rd_error(&comm->ctx, BAD, "%s: %scounts[%d] is %zu: more than memory can hold (a negative number?)",
                            call, side, r, counts[r]);
        if (displs && counts[r] && displs[r] > most - counts[r])
            return rd_error(&comm->ctx, BAD, "%s: %s[%d] is %zu: more than memory can hold (a negative number?)", call,
                            at, r, displs[r]);
        sum += counts[r];
    }
    if (sum && !buffer)
        return rd_error(&comm->ctx, BAD, "%s: %s is NULL, but %zu elements are needed", call, what, sum);
    return RONDO_SUCCESS;
}

static size_t sum_of(const size_t *counts, int n)
{
    size_t sum = 0;

    for (int r = 0; r < n; r++)
        sum += counts[r];
    return sum;
}

rondo_result_t rondo_allgatherv(const void *send, size_t sendcount, void *recv, const size_t *recvcounts,
                                const size_t *displs, rondo_type_t type, rondo_comm_t comm, rondo_stream_t stream)
{
    const char *call = "rondo_allgatherv";
    const rd_tables_t tables = {NULL, NULL, recvcounts, displs};
    rd_call_t made = {
        .desc = {.coll = RD_ALLGATHER, .type = type},
        .tables = &tables,
        .in = send,
        .out = recv,
        .name = "allgatherv",
        .kind = RD_ALLGATHER,
        .stream = stream,
    };
    if (send && recv && recvcounts && rd_call_repeats_v(comm, &made) && sendcount == recvcounts[comm->team.rank])
        return rd_call_repeat(comm, send, recv);
    rondo_result_t result = rd_args_start((rd_at_t){call, comm}, type, stream);

    if (result == RONDO_SUCCESS)
        result = check_side(call, comm, "recv", "recv", recv, recvcounts, "displs", displs, type);
    if (result == RONDO_SUCCESS && sendcount != recvcounts[comm->team.rank])
        result = rd_error(&comm->ctx, BAD,
                          "%s: sendcount is %zu, recvcounts[%d], this rank's own, is %zu: they must be equal", call,
                          sendcount, comm->team.rank, recvcounts[comm->team.rank]);
    if (result == RONDO_SUCCESS && sendcount && !send)
        result = rd_error(&comm->ctx, BAD, "%s: send is NULL, but %zu elements are needed", call, sendcount);
    if (result != RONDO_SUCCESS)
        return rd_call_refused(result);
    made.desc.count = sum_of(recvcounts, comm->team.nranks);
    return rd_call_collective(rd_caller(), comm, &made);
}

rondo_result_t rondo_reduce_scatterv(const void *send, void *recv, const size_t *recvcounts, rondo_type_t type,
                                     rondo_op_t op, rondo_comm_t comm, rondo_stream_t stream)
{
    const char *call = "rondo_reduce_scatterv";
    const rd_tables_t tables = {recvcounts, NULL, NULL, NULL};
    rd_call_t made = {
        .desc = {.coll = RD_REDUCE_SCATTER, .type = type, .op = op},
        .tables = &tables,
        .in = send,
        .out = recv,
        .name = "reduce_scatterv",
        .kind = RD_REDUCE_SCATTER,
        .stream = stream,
    };
    if (send && recv && send != recv && recvcounts && rd_call_repeats_v(comm, &made))
        return rd_call_repeat(comm, send, recv);
    rondo_result_t result = rd_args_start((rd_at_t){call, comm}, type, stream);

    if (result == RONDO_SUCCESS)
        result = rd_args_op((rd_at_t){call, comm}, op, type);
    if (result == RONDO_SUCCESS)
        result = check_side(call, comm, "recv", "send", send, recvcounts, NULL, NULL, type);
    if (result == RONDO_SUCCESS && recvcounts[comm->team.rank] && !recv)
        result = rd_error(&comm->ctx, BAD, "%s: recv is NULL, but %zu elements are needed", call,
                          recvcounts[comm->team.rank]);
    if (result != RONDO_SUCCESS)
        return rd_call_refused(result);
    made.desc.count = sum_of(recvcounts, comm->team.nranks);
    if (send == recv && comm->team.rank)
        made.bounce = recvcounts[comm->team.rank] * rondo_type_size(type);
    return rd_call_collective(rd_caller(), comm, &made);
}

rondo_result_t rondo_alltoallv(const void *send, const size_t *sendcounts, const size_t *sdispls, void *recv,
                               const size_t *recvcounts, const size_t *rdispls, rondo_type_t type, rondo_comm_t comm,
                               rondo_stream_t stream)
{
    const char *call = "rondo_alltoallv";
    const rd_tables_t tables = {sendcounts, sdispls, recvcounts, rdispls};
    rd_call_t made = {
        .desc = {.coll = RD_ALLTOALL, .type = type},
        .tables = &tables,
        .in = send,
        .out = recv,
        .name = "alltoallv",
        .kind = RD_ALLTOALL,
        .stream = stream,
    };
    if (send && recv && send != recv && sendcounts && recvcounts && rd_call_repeats_v(comm, &made))
        return rd_call_repeat(comm, send, recv);
    rondo_result_t result = rd_args_start((rd_at_t){call, comm}, type, stream);

    if (result == RONDO_SUCCESS)
        result = check_side(call, comm, "send", "send", send, sendcounts, "sdispls", sdispls, type);
    if (result == RONDO_SUCCESS)
        result = check_side(call, comm, "recv", "recv", recv, recvcounts, "rdispls", rdispls, type);
    if (result == RONDO_SUCCESS && send == recv && send && sum_of(sendcounts, comm->team.nranks) &&
        sum_of(recvcounts, comm->team.nranks))
        result = rd_error(&comm->ctx, BAD, "%s: send == recv: this operation cannot run in place", call);
    if (result == RONDO_SUCCESS && sendcounts[comm->team.rank] != recvcounts[comm->team.rank])
        result = rd_error(&comm->ctx, BAD,
                          "%s: sendcounts[%d] is %zu and recvcounts[%d] is %zu, but both are this rank's own", call,
                          comm->team.rank, sendcounts[comm->team.rank], comm->team.rank, recvcounts[comm->team.rank]);
    if (result != RONDO_SUCCESS)
        return rd_call_refused(result);
    return rd_call_collective(rd_caller(), comm, &made);
}

/* The arguments of a gatherv or scatterv. `counts` and `displs` are the root's; `own` is this rank's count. */
typedef struct {
    rd_at_t at;
    int gathers, root;
    const void *send;
    void *recv;
    const size_t *counts, *displs;
    size_t own;
    rondo_type_t type;
    rondo_stream_t stream;
} rooted_t;

static rondo_result_t check_rooted(const rooted_t *c)
{
    rondo_comm_t comm = c->at.comm;
    const char *call = c->at.call, *one = c->gathers ? "send" : "recv", *all = c->gathers ? "recv" : "send";
    rondo_result_t result = RONDO_SUCCESS;
    int rooting = comm->team.rank == c->root;

    if (rooting)
        result =
            check_side(call, comm, all, all, c->gathers ? c->recv : c->send, c->counts, "displs", c->displs, c->type);
    if (result != RONDO_SUCCESS)
        return result;
    if (c->own > rd_args_most(c->type))
        return rd_error(&comm->ctx, BAD, "%s: %scount is %zu: more than memory can hold (a negative number?)", call,
                        one, c->own);
    if (c->own && !(c->gathers ? c->send : c->recv))
        return rd_error(&comm->ctx, BAD, "%s: %s is NULL, but %zu elements are needed", call, one, c->own);
    if (rooting && c->counts[c->root] != c->own)
        return rd_error(&comm->ctx, BAD, "%s: the root's own block is %zu elements in %scounts and %zu in %scount",
                        call, c->counts[c->root], all, c->own, one);
    return RONDO_SUCCESS;
}

/* An all-to-all in which this rank exchanges one block with the root and, as the root, one with every rank. `zeros` has
 * an entry for each rank; `one` has space for as many, and is written as it will be read, number by number: what is
 * written by wider stores, or masked ones, cannot be read before it has left the core, after the lines of the last
 * message. */
static rondo_result_t run_rooted(const rooted_t *c, const size_t *zeros, size_t *one)
{
    rondo_comm_t comm = c->at.comm;
    int rooting = comm->team.rank == c->root;
    const size_t *all = rooting ? c->counts : zeros, *at = rooting ? c->displs : zeros;

    for (int r = 0; r < comm->team.nranks; r++)
        one[r] = r == c->root ? c->own : 0; /* at the start of the block buffer: all displacements zero */
    const rd_tables_t tables = c->gathers ? (rd_tables_t){one, zeros, all, at} : (rd_tables_t){all, at, one, zeros};
    rd_call_t made = {
        .desc = {.coll = RD_ALLTOALL, .type = c->type, .to_one = c->gathers},
        .tables = &tables,
        .in = c->send,
        .out = c->recv,
        .name = c->gathers ? "gatherv" : "scatterv",
        .kind = c->gathers ? RD_GATHER : RD_SCATTER,
        .root = c->root,
        .stream = c->stream,
    };
    const void *own = c->gathers ? c->send : c->recv, *whole = c->gathers ? c->recv : c->send;
    if (own && (!rooting || (whole && all)) && rd_call_repeats_v(comm, &made))
        return rd_call_repeat(comm, c->send, c->recv);
    rondo_result_t result = check_rooted(c);
    return result == RONDO_SUCCESS ? rd_call_collective(rd_caller(), comm, &made) : rd_call_refused(result);
}

static rondo_result_t rooted(const rooted_t *c)
{
    static const size_t zeros[FEW];
    rondo_comm_t comm = c->at.comm;
    size_t one[FEW], *many;
    rondo_result_t result = rd_args_start(c->at, c->type, c->stream);

    if (result == RONDO_SUCCESS)
        result = rd_args_rank(c->at, "root", c->root);
    if (result != RONDO_SUCCESS)
        return rd_call_refused(result);
    if (comm->team.nranks <= FEW)
        return run_rooted(c, zeros, one);
    many = calloc(2 * (size_t)comm->team.nranks, sizeof *many);
    if (!many)
        return rd_group_failed(
            rd_call_spoiled(comm, rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory for the counts of %d ranks",
                                           comm->team.nranks)));
    result = run_rooted(c, many, many + comm->team.nranks);
    free(many);
    return result;
}

rondo_result_t rondo_gatherv(const void *send, size_t sendcount, void *recv, const size_t *recvcounts,
                             const size_t *displs, rondo_type_t type, int root, rondo_comm_t comm,
                             rondo_stream_t stream)
{
    const rooted_t call = {{"rondo_gatherv", comm}, 1, root, send, recv, recvcounts, displs, sendcount, type, stream};

    return rooted(&call);
}

rondo_result_t rondo_scatterv(const void *send, const size_t *sendcounts, const size_t *displs, void *recv,
                              size_t recvcount, rondo_type_t type, int root, rondo_comm_t comm, rondo_stream_t stream)
{
    const rooted_t call = {{"rondo_scatterv", comm}, 0, root, send, recv, sendcounts, displs, recvcount, type, stream};

    return rooted(&call);
}
