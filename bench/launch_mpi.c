/* Ranks that mpirun started. MPI carries the id, the barriers around a turn and the times at its end; no rondo call
 * depends on it. */
#include <stdlib.h>
#include <string.h>

#include <mpi.h>
#include <rondo_mpi.h>

#include "perf.h"
#include "tools/launched.h"

#define ALIGNED 128

static MPI_Win window = MPI_WIN_NULL;

static void mpi_barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void mpi_gather(const double *mine, int n, double *all)
{
    MPI_Allgather(mine, n, MPI_DOUBLE, all, n, MPI_DOUBLE, MPI_COMM_WORLD);
}

static rondo_result_t mpi_comm_create(rondo_comm_t *comm, const rondo_config_t *config)
{
    return rondo_comm_create_mpi(comm, MPI_COMM_WORLD, config);
}

static void *mpi_shared(size_t bytes)
{
    MPI_Comm node;
    MPI_Aint size = world.rank == 0 ? (MPI_Aint)bytes + ALIGNED : 0;
    int nlocal, unit;
    void *base = NULL;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &nlocal);
    if (nlocal == world.nranks) {
        MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, node, &base, &window);
        MPI_Win_shared_query(window, 0, &size, &unit, &base);
        /* MPI promises no alignment; what is behind a page's start is the same in every rank's mapping */
        base = (void *)(((uintptr_t)base + ALIGNED - 1) / ALIGNED * ALIGNED);
        if (world.rank == 0)
            memset(base, 0, bytes);
        MPI_Barrier(node);
    }
    MPI_Comm_free(&node);
    return base;
}

static void mpi_abort(int status)
{
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, status);
}

static void mpi_end(void)
{
    if (window != MPI_WIN_NULL)
        MPI_Win_free(&window);
    MPI_Finalize();
}

bool world_mpi_launched(void)
{
    return launched_by_mpi();
}

bool world_start_mpi(int *argc, char ***argv)
{
    if (MPI_Init(argc, argv) != MPI_SUCCESS)
        return false;
    world = (world_t){.launcher = "mpi",
                      .barrier = mpi_barrier,
                      .gather = mpi_gather,
                      .comm_create = mpi_comm_create,
                      .shared = mpi_shared,
                      .abort = mpi_abort,
                      .end = mpi_end};
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.nranks);
    return true;
}
