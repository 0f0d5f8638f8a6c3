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

#else
#define buffer_of(buffer) (buffer)
static void find_sentinels(void)
{
}
#endif

/* The arguments of C's entries. */
#define C_barrier COMM
#define C_bcast buffer_of(buffer), *count, TYPE(type), *root, COMM
#define C_reduce buffer_of(send), buffer_of(recv), *count, TYPE(type), OP, *root, COMM
#define C_allreduce buffer_of(send), buffer_of(recv), *count, TYPE(type), OP, COMM
#define C_reduce_scatter_block C_allreduce
#define C_reduce_scatter buffer_of(send), buffer_of(recv), counts, TYPE(type), OP, COMM
#define C_scan C_allreduce
#define C_exscan C_allreduce
#define SEND buffer_of(send), *sendcount, TYPE(sendtype)
#define RECV buffer_of(recv), *recvcount, TYPE(recvtype)
#define C_gather SEND, RECV, *root, COMM
#define C_gatherv SEND, buffer_of(recv), recvcounts, displs, TYPE(recvtype), *root, COMM
#define C_scatter SEND, RECV, *root, COMM
#define C_scatterv buffer_of(send), sendcounts, displs, TYPE(sendtype), RECV, *root, COMM
#define C_allgather SEND, RECV, COMM
#define C_allgatherv SEND, buffer_of(recv), recvcounts, displs, TYPE(recvtype), COMM
#define C_alltoall SEND, RECV, COMM
#define C_alltoallv                                                                                                    \
    buffer_of(send), sendcounts, sdispls, TYPE(sendtype), buffer_of(recv), recvcounts, rdispls, TYPE(recvtype), COMM

static inline void give_request(P to, P ierror, MPI_Request request, int result)
{
    if (result == MPI_SUCCESS)
        *to = PMPI_Request_c2f(request);
    give(ierror, result);
}

#define ENTRY(name, Name, NAME, parameters, arguments)                                                                 \
    static void f_##name(RD_MPI_OPEN parameters, P ierror)                                                             \
    {                                                                                                                  \
        give(ierror, own->Name(C_##name));                                                                             \
    }                                                                                                                  \
    static void f_i##name(RD_MPI_OPEN parameters, P request, P ierror)                                                 \
    {                                                                                                                  \
        MPI_Request made = MPI_REQUEST_NULL;                                                                           \
        int result = own->I##name(C_##name, &made);                                                                    \
        give_request(request, ierror, made, result);                                                                   \
    }
RD_MPI_FORTRAN(ENTRY)

#if RD_MPI_HAS_INIT
#define INIT_ENTRY(name, Name, NAME, parameters, arguments)                                                            \
    static void f_##name##_init(RD_MPI_OPEN parameters, P info, P request, P ierror)                                   \
    {                                                                                                                  \
        MPI_Request made = MPI_REQUEST_NULL;                                                                           \
        int result = own->Name##_init(C_##name, PMPI_Info_f2c(*info), &made);                                          \
        give_request(request, ierror, made, result);                                                                   \
    }
#define FILL_INIT(name) entries->f_##name##_init = f_##name##_init;
RD_MPI_FORTRAN(INIT_ENTRY)
#else
#define FILL_INIT(name)
#endif

#if RD_MPI_HAS_INIT
static void f_start(P request, P ierror)
{
    MPI_Request started = PMPI_Request_f2c(*request);
    int result = own->Start((W)&started);

    give_request(request, ierror, started, result);
}

/* One after the other, which is what MPI_Startall means: an array of Fortran's is none of C's. */
static void f_startall(P n, P requests, P ierror)
{
    int result = *n < 0 ? own->Startall((W)*n, (W)requests) : MPI_SUCCESS; /* which is an error */

    for (int i = 0; i < *n && result == MPI_SUCCESS; i++) {
        MPI_Request started = PMPI_Request_f2c(requests[i]);
        result = own->Start((W)&started);
    }
    give(ierror, result);
}

static void f_request_free(P request, P ierror)
{
    MPI_Request freed = PMPI_Request_f2c(*request);
    int result = own->Request_free((W)&freed);

    give_request(request, ierror, freed, result);
}
#endif

#define FREE_ENTRY(Name, name, NAME, n, parameters, arguments)                                                         \
    static void f_##name(P comm, P ierror)                                                                             \
    {                                                                                                                  \
        MPI_Comm freed = PMPI_Comm_f2c(*comm);                                                                         \
        int result = own->Name((W)&freed);                                                                             \
        if (result == MPI_SUCCESS)                                                                                     \
            *comm = PMPI_Comm_c2f(freed);                                                                              \
        give(ierror, result);                                                                                          \
    }
RD_MPI_FREES(FREE_ENTRY)

#define HANDLE_op_free MPI_Op
#define HANDLE_type_free MPI_Datatype
#define F2C_op_free PMPI_Op_f2c
#define C2F_op_free PMPI_Op_c2f
#define F2C_type_free PMPI_Type_f2c
#define C2F_type_free PMPI_Type_c2f
#define KEPT_FREE_ENTRY(Name, name, NAME, n, parameters, arguments)                                                    \
    static void f_##name(P handle, P ierror)                                                                           \
    {                                                                                                                  \
        HANDLE_##name freed = F2C_##name(*handle);                                                                     \
        int result = own->Name((W)&freed);                                                                             \
        if (result == MPI_SUCCESS)                                                                                     \
            *handle = C2F_##name(freed);                                                                               \
        give(ierror, result);                                                                                          \
    }
RD_MPI_KEPT_FREES(KEPT_FREE_ENTRY)

/* The MPI's own has C's function in its library, and so does not come by again. */
#define IDUP_ENTRY(Name, name, NAME, n, parameters, arguments)                                                         \
    static void f_##name(RD_MPI_OPEN parameters, P ierror)                                                             \
    {                                                                                                                  \
        int error = rd_mpi_comm_duplicates(COMM);                                                                      \
        if (error == MPI_SUCCESS)                                                                                      \
            rd_mpi_next.f_##name(RD_MPI_OPEN arguments, ierror);                                                       \
        else                                                                                                           \
            give(ierror, error);                                                                                       \
    }
RD_MPI_IDUPS(IDUP_ENTRY)

#define REVOKE_ENTRY(Name, name, NAME, n, parameters, arguments)                                                       \
    static void f_##name(P comm, P ierror)                                                                             \
    {                                                                                                                  \
        give(ierror, own->Name((W)COMM));                                                                              \
    }
RD_MPI_REVOKES(REVOKE_ENTRY)

#define FILL_START(Name, name, NAME, n, parameters, arguments) entries->f_##name = f_##name;
#define FILL(name, Name, NAME, parameters, arguments)                                                                  \
    entries->f_##name = f_##name;                                                                                      \
    entries->f_i##name = f_i##name;                                                                                    \
    FILL_INIT(name)
void rd_mpi_fortran_fill(rd_mpi_entries_t *entries)
{
    own = entries;
    find_sentinels();
    RD_MPI_FORTRAN(FILL)
    RD_MPI_STARTS(FILL_START)
    RD_MPI_FREES(FILL_START)
    RD_MPI_KEPT_FREES(FILL_START)
    RD_MPI_IDUPS(FILL_START)
    RD_MPI_REVOKES(FILL_START)
}
