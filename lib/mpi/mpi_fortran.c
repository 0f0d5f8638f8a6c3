/* Fortran's entries, where the MPI's own do not come by: Open MPI's call PMPI_ inside its library. `use mpi_f08` hands
 * in the same arguments, a handle being a structure of one integer; there ierror may be absent. MPICH's call MPI_,
 * which is C's entry, but for barrier in f08. */
#include <dlfcn.h>

#include "mpi/interpose.h"
#include "mpi/mpi_fortran.h"

_Static_assert(sizeof(MPI_Fint) == sizeof(int), "an MPI whose Fortran integers have 8 bytes is not supported");

static const rd_mpi_entries_t *own; /* C's entries */

static inline void give(MPI_Fint *ierror, int result)
{
    if (ierror)
        *ierror = result;
}

#define COMM PMPI_Comm_f2c(*comm)
#define OP PMPI_Op_f2c(*op)
#define TYPE(type) PMPI_Type_f2c(*(type))

static void f_barrier(MPI_Fint *comm, MPI_Fint *ierror)
{
    give(ierror, own->Barrier(COMM));
}

#ifdef OPEN_MPI
/* The addresses that stand for MPI_IN_PLACE and MPI_BOTTOM in Fortran: one for each way a compiler may spell it. */
static const void *in_place[4], *bottom[4];

static void find_sentinels(void)
{
    static const char *const names[2][4] = {
        {"MPI_FORTRAN_IN_PLACE", "mpi_fortran_in_place", "mpi_fortran_in_place_", "mpi_fortran_in_place__"},
        {"MPI_FORTRAN_BOTTOM", "mpi_fortran_bottom", "mpi_fortran_bottom_", "mpi_fortran_bottom__"}};

    for (int i = 0; i < 4; i++) {
        in_place[i] = dlsym(RTLD_DEFAULT, names[0][i]);
        bottom[i] = dlsym(RTLD_DEFAULT, names[1][i]);
    }
}

static inline void *buffer_of(void *buffer)
{
    for (int i = 0; buffer && i < 4; i++) {
        if (buffer == in_place[i])
            return MPI_IN_PLACE;
        if (buffer == bottom[i])
            return MPI_BOTTOM;
    }
    return buffer;
}

#define F MPI_Fint *
#define BUFFER(buffer) buffer_of(buffer)

static void f_bcast(void *buffer, F count, F type, F root, F comm, F ierror)
{
    give(ierror, own->Bcast(BUFFER(buffer), *count, TYPE(type), *root, COMM));
}

static void f_reduce(void *send, void *recv, F count, F type, F op, F root, F comm, F ierror)
{
    give(ierror, own->Reduce(BUFFER(send), BUFFER(recv), *count, TYPE(type), OP, *root, COMM));
}

#define REDUCTION(name, Name)                                                                                          \
    static void f_##name(void *send, void *recv, F count, F type, F op, F comm, F ierror)                              \
    {                                                                                                                  \
        give(ierror, own->Name(BUFFER(send), BUFFER(recv), *count, TYPE(type), OP, COMM));                             \
    }
REDUCTION(allreduce, Allreduce)
REDUCTION(reduce_scatter_block, Reduce_scatter_block)
REDUCTION(scan, Scan)
REDUCTION(exscan, Exscan)

static void f_reduce_scatter(void *send, void *recv, F counts, F type, F op, F comm, F ierror)
{
    give(ierror, own->Reduce_scatter(BUFFER(send), BUFFER(recv), counts, TYPE(type), OP, COMM));
}

#define ROOTED(name, Name)                                                                                             \
    static void f_##name(void *send, F sendcount, F sendtype, void *recv, F recvcount, F recvtype, F root, F comm,     \
                         F ierror)                                                                                     \
    {                                                                                                                  \
        give(ierror, own->Name(BUFFER(send), *sendcount, TYPE(sendtype), BUFFER(recv), *recvcount, TYPE(recvtype),     \
                               *root, COMM));                                                                          \
    }
ROOTED(gather, Gather)
ROOTED(scatter, Scatter)

#define ALL(name, Name)                                                                                                \
    static void f_##name(void *send, F sendcount, F sendtype, void *recv, F recvcount, F recvtype, F comm, F ierror)   \
    {                                                                                                                  \
        give(ierror,                                                                                                   \
             own->Name(BUFFER(send), *sendcount, TYPE(sendtype), BUFFER(recv), *recvcount, TYPE(recvtype), COMM));     \
    }
ALL(allgather, Allgather)
ALL(alltoall, Alltoall)

static void f_gatherv(void *send, F sendcount, F sendtype, void *recv, F recvcounts, F displs, F recvtype, F root,
                      F comm, F ierror)
{
    give(ierror, own->Gatherv(BUFFER(send), *sendcount, TYPE(sendtype), BUFFER(recv), recvcounts, displs,
                              TYPE(recvtype), *root, COMM));
}

static void f_scatterv(void *send, F sendcounts, F displs, F sendtype, void *recv, F recvcount, F recvtype, F root,
                       F comm, F ierror)
{
    give(ierror, own->Scatterv(BUFFER(send), sendcounts, displs, TYPE(sendtype), BUFFER(recv), *recvcount,
                               TYPE(recvtype), *root, COMM));
}

static void f_allgatherv(void *send, F sendcount, F sendtype, void *recv, F recvcounts, F displs, F recvtype, F comm,
                         F ierror)
{
    give(ierror, own->Allgatherv(BUFFER(send), *sendcount, TYPE(sendtype), BUFFER(recv), recvcounts, displs,
                                 TYPE(recvtype), COMM));
}

static void f_alltoallv(void *send, F sendcounts, F sdispls, F sendtype, void *recv, F recvcounts, F rdispls,
                        F recvtype, F comm, F ierror)
{
    give(ierror, own->Alltoallv(BUFFER(send), sendcounts, sdispls, TYPE(sendtype), BUFFER(recv), recvcounts, rdispls,
                                TYPE(recvtype), COMM));
}
#else
static void find_sentinels(void)
{
}
#endif

#define FILL(name, NAME, parameters, arguments) entries->f_##name = f_##name;
void rd_mpi_fortran_fill(rd_mpi_entries_t *entries)
{
    own = entries;
    find_sentinels();
    RD_MPI_FORTRAN(FILL)
}
