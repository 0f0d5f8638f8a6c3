/* The MPI's own operation on the same buffers, as a user of MPI would call it: the peer of --peer mpi. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "mpi_types.h"
#include "perf.h"

static MPI_Datatype mtype;
static MPI_Op mop;
static int *counts; /* four arrays of nranks: the job's, as ints */
static int *sendcounts, *sdispls, *recvcounts, *rdispls;

static int failed(int error)
{
    return error == MPI_SUCCESS ? 0 : RONDO_ERR_SYSTEM;
}

/* The send argument, where in place is said by a constant. */
static const void *in_place(const job_t *j, bool here)
{
    return j->in_place && here ? MPI_IN_PLACE : j->send;
}

static int mpi_allreduce(const job_t *j)
{
    return failed(MPI_Allreduce(in_place(j, true), j->recv, (int)j->count, mtype, mop, MPI_COMM_WORLD));
}

static int mpi_reduce(const job_t *j)
{
    return failed(
        MPI_Reduce(in_place(j, j->rank == j->root), j->recv, (int)j->count, mtype, mop, j->root, MPI_COMM_WORLD));
}

/* MPI knows the broadcast in place alone; out of place its user copies. */
static int mpi_broadcast(const job_t *j)
{
    if (j->rank == j->root && j->send != j->recv)
        memcpy(j->recv, j->send, j->count * rondo_type_size(j->type)); /* j->bytes is the whole, this may be a piece */
    return failed(MPI_Bcast(j->recv, (int)j->count, mtype, j->root, MPI_COMM_WORLD));
}

static int mpi_allgather(const job_t *j)
{
    return failed(
        MPI_Allgather(in_place(j, true), (int)j->count, mtype, j->recv, (int)j->count, mtype, MPI_COMM_WORLD));
}

static int mpi_allgatherv(const job_t *j)
{
    return failed(MPI_Allgatherv(in_place(j, true), recvcounts[j->rank], mtype, j->recv, recvcounts, rdispls, mtype,
                                 MPI_COMM_WORLD));
}

static int mpi_reduce_scatter(const job_t *j)
{
    return failed(MPI_Reduce_scatter_block(in_place(j, true), j->recv, (int)j->count, mtype, mop, MPI_COMM_WORLD));
}

static int mpi_reduce_scatterv(const job_t *j)
{
    return failed(MPI_Reduce_scatter(in_place(j, true), j->recv, sendcounts, mtype, mop, MPI_COMM_WORLD));
}

static int mpi_alltoall(const job_t *j)
{
    return failed(MPI_Alltoall(j->send, (int)j->count, mtype, j->recv, (int)j->count, mtype, MPI_COMM_WORLD));
}

static int mpi_alltoallv(const job_t *j)
{
    return failed(
        MPI_Alltoallv(j->send, sendcounts, sdispls, mtype, j->recv, recvcounts, rdispls, mtype, MPI_COMM_WORLD));
}

static int mpi_gather(const job_t *j)
{
    return failed(MPI_Gather(in_place(j, j->rank == j->root), (int)j->count, mtype, j->recv, (int)j->count, mtype,
                             j->root, MPI_COMM_WORLD));
}

static int mpi_gatherv(const job_t *j)
{
    return failed(MPI_Gatherv(in_place(j, j->rank == j->root), recvcounts[j->rank], mtype, j->recv, recvcounts, rdispls,
                              mtype, j->root, MPI_COMM_WORLD));
}

static void *scattered(const job_t *j)
{
    return j->in_place && j->rank == j->root ? MPI_IN_PLACE : j->recv;
}

static int mpi_scatter(const job_t *j)
{
    return failed(
        MPI_Scatter(j->send, (int)j->count, mtype, scattered(j), (int)j->count, mtype, j->root, MPI_COMM_WORLD));
}

static int mpi_scatterv(const job_t *j)
{
    return failed(MPI_Scatterv(j->send, sendcounts, sdispls, mtype, scattered(j), sendcounts[j->rank], mtype, j->root,
                               MPI_COMM_WORLD));
}

static int mpi_sendrecv(const job_t *j)
{
    int right = (j->rank + 1) % j->nranks, left = (j->rank + j->nranks - 1) % j->nranks;

    return failed(MPI_Sendrecv(j->send, (int)j->count, mtype, right, 1, j->recv, (int)j->count, mtype, left, 1,
                               MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static int mpi_bandwidth(const job_t *j)
{
    int right = (j->rank + 1) % j->nranks, left = (j->rank + j->nranks - 1) % j->nranks, error = 0;
    MPI_Request all[2 * WINDOW_MOST];

    for (int i = 0; i < j->messages && !error; i++) {
        error = MPI_Irecv(j->recv, (int)j->count, mtype, left, 1, MPI_COMM_WORLD, &all[2 * i]);
        error = error ? error : MPI_Isend(j->send, (int)j->count, mtype, right, 1, MPI_COMM_WORLD, &all[2 * i + 1]);
    }
    return failed(error ? error : MPI_Waitall(2 * j->messages, all, MPI_STATUSES_IGNORE));
}

static int mpi_pingpong(const job_t *j)
{
    int other = 1 - j->rank, error;

    if (j->rank > 1)
        return 0;
    if (j->rank == 0) {
        error = MPI_Send(j->send, (int)j->count, mtype, other, 1, MPI_COMM_WORLD);
        return failed(error ? error
                            : MPI_Recv(j->recv, (int)j->count, mtype, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    error = MPI_Recv(j->recv, (int)j->count, mtype, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return failed(error ? error : MPI_Send(j->send, (int)j->count, mtype, other, 1, MPI_COMM_WORLD));
}

static int mpi_barrier(const job_t *j)
{
    (void)j;
    return failed(MPI_Barrier(MPI_COMM_WORLD));
}

static const struct {
    const char *name;
    call_t call;
} calls[] = {
    {"allreduce", mpi_allreduce},
    {"reduce", mpi_reduce},
    {"broadcast", mpi_broadcast},
    {"allgather", mpi_allgather},
    {"allgatherv", mpi_allgatherv},
    {"reduce_scatter", mpi_reduce_scatter},
    {"reduce_scatterv", mpi_reduce_scatterv},
    {"alltoall", mpi_alltoall},
    {"alltoallv", mpi_alltoallv},
    {"gather", mpi_gather},
    {"gatherv", mpi_gatherv},
    {"scatter", mpi_scatter},
    {"scatterv", mpi_scatterv},
    {"sendrecv", mpi_sendrecv},
    {"bandwidth", mpi_bandwidth},
    {"pingpong", mpi_pingpong},
    {"barrier", mpi_barrier},
};

bool peer_mpi_open(const options_t *options)
{
    size_t n = (size_t)world.nranks;

    mtype = mpi_type_of(options->type);
    mop = mpi_op_of(options->reduction, options->type);
    if (options->op->reduces && (mtype == MPI_DATATYPE_NULL || mop == MPI_OP_NULL)) {
        if (world.rank == 0)
            fprintf(stderr, "rondo-perf: --peer mpi: MPI has no %s of %s; leave --peer away\n",
                    reduction_name(options->reduction), type_name(options->type));
        return false;
    }
    if (mtype == MPI_DATATYPE_NULL) { /* moved, not computed with */
        MPI_Type_contiguous((int)rondo_type_size(options->type), MPI_BYTE, &mtype);
        MPI_Type_commit(&mtype);
    }
    counts = calloc(4 * n, sizeof *counts);
    if (!counts)
        die(NULL, "no memory for %zu counts", 4 * n);
    sendcounts = counts;
    sdispls = counts + n;
    recvcounts = counts + 2 * n;
    rdispls = counts + 3 * n;
    return true;
}

call_t peer_mpi_call(const job_t *job)
{
    size_t n = (size_t)job->nranks, largest = job->count;

    for (size_t r = 0; r < n; r++) {
        sendcounts[r] = (int)job->sendcounts[r];
        sdispls[r] = (int)job->sdispls[r];
        recvcounts[r] = (int)job->recvcounts[r];
        rdispls[r] = (int)job->rdispls[r];
    }
    if (job->op->layout >= LAYOUT_COLLECT && job->op->layout <= LAYOUT_SCATTER)
        largest = 2 * n * job->count; /* skewed counts are at most one and a half */
    if (largest > INT_MAX)
        return NULL;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, job->op->name) == 0)
            return calls[i].call;
    return NULL;
}

void peer_mpi_close(void)
{
    free(counts);
}

/* "Open MPI v4.1.4": up to the first comma, line end or two words' worth of MPICH's list. */
const char *peer_mpi_version(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;

    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = '\0';
    for (char *c = text; *c; c++)
        if (*c == '\t' || *c == '"' || *c == '\\')
            *c = ' ';
    return text;
}
