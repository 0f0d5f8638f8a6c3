/* The table that librondo_mpi.so calls through. */
#include "mpi/interpose.h"
#include "mpi/mpi_fortran.h"

#define likely(condition) __builtin_expect(!!(condition), 1)

#define K int
#define D int
#define LARGE false
#define FORM(name) name
#define NEXT(name) name
#include "mpi/entry_forms.h"
#if MPI_VERSION >= 4
#undef K
#undef D
#undef LARGE
#undef FORM
#undef NEXT
#define K MPI_Count
#define D MPI_Aint
#define LARGE true
#define FORM(name) name##_c
#define NEXT(name) name##_c
#include "mpi/entry_forms.h"
#endif

static int barrier(MPI_Comm comm)
{
    rd_mpi_comm_t *c = rd_mpi_comm_get(comm);

    if (likely(c && c->status == RD_MPI_SERVING && rd_mpi_short_ways(c) && rd_mpi_allowed(c, RD_MPI_BARRIER_CALL, 0))) {
        rd_mpi_count_served(RD_MPI_BARRIER_CALL, 0);
        return rd_mpi_result(c, rondo_barrier(c->rondo, NULL));
    }
    return rd_mpi_run(&(rd_mpi_call_t){.what = RD_MPI_BARRIER_CALL, .comm = comm});
}

int rd_mpi_pass(const rd_mpi_call_t *call)
{
#if MPI_VERSION >= 4
    if (call->large)
        return pass_c(call);
#endif
    return pass(call);
}

#define FILL(Name, name)                                                                                               \
    entries.Name = name;                                                                                               \
    FILL_LARGE(Name, name)
#if MPI_VERSION >= 4
#define FILL_LARGE(Name, name) entries.Name##_c = name##_c;
#else
#define FILL_LARGE(Name, name)
#endif

__attribute__((visibility("default"))) const rd_mpi_entries_t *rd_mpi_table(const rd_mpi_entries_t *next);
const rd_mpi_entries_t *rd_mpi_table(const rd_mpi_entries_t *next)
{
    static rd_mpi_entries_t entries;
    int up = 0, down = 0;

    /* Outside of MPI_Init and MPI_Finalize there is nothing to serve, and no attribute to be made. */
    PMPI_Initialized(&up);
    PMPI_Finalized(&down);
    if (!up || down)
        return NULL;
    rd_mpi_next = *next;
    rd_mpi_settings_read();
    rd_mpi_handles_start();
    if (!rd_mpi_comms_start() || !rd_mpi_setup_start())
        return NULL;
    rd_mpi_report_start();
    entries.Barrier = barrier;
    FILL(Bcast, bcast)
    FILL(Reduce, reduce)
    FILL(Allreduce, allreduce)
    FILL(Reduce_scatter_block, reduce_scatter_block)
    FILL(Reduce_scatter, reduce_scatter)
    FILL(Scan, scan)
    FILL(Exscan, exscan)
    FILL(Gather, gather)
    FILL(Gatherv, gatherv)
    FILL(Scatter, scatter)
    FILL(Scatterv, scatterv)
    FILL(Allgather, allgather)
    FILL(Allgatherv, allgatherv)
    FILL(Alltoall, alltoall)
    FILL(Alltoallv, alltoallv)
    rd_mpi_fortran_fill(&entries);
    return &entries;
}
