/* What a program calls and rondo takes in between: the list that everything else is made from. X is called with a
 * name, the parameters and the arguments of each call; K and D are the types of counts and displacements, which the
 * calls whose names end in _c (MPI 4) have larger. */
#ifndef RD_MPI_ENTRIES_H
#define RD_MPI_ENTRIES_H

#include <mpi.h>

/* clang-format off */
#define RD_MPI_COUNTED(X, s, K, D)                                                                                     \
    X(Bcast##s, (void *buffer, K count, MPI_Datatype type, int root, MPI_Comm comm), (buffer, count, type, root, comm)) \
    X(Reduce##s, (const void *send, void *recv, K count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),       \
      (send, recv, count, type, op, root, comm))                                                                       \
    X(Allreduce##s, (const void *send, void *recv, K count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),              \
      (send, recv, count, type, op, comm))                                                                             \
    X(Reduce_scatter_block##s, (const void *send, void *recv, K count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),   \
      (send, recv, count, type, op, comm))                                                                             \
    X(Reduce_scatter##s, (const void *send, void *recv, const K *counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
      (send, recv, counts, type, op, comm))                                                                            \
    X(Scan##s, (const void *send, void *recv, K count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),                   \
      (send, recv, count, type, op, comm))                                                                             \
    X(Exscan##s, (const void *send, void *recv, K count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),                 \
      (send, recv, count, type, op, comm))                                                                             \
    X(Gather##s, (const void *send, K sendcount, MPI_Datatype sendtype, void *recv, K recvcount,                       \
                  MPI_Datatype recvtype, int root, MPI_Comm comm),                                                     \
      (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm))                                              \
    X(Gatherv##s, (const void *send, K sendcount, MPI_Datatype sendtype, void *recv, const K *recvcounts,              \
                   const D *displs, MPI_Datatype recvtype, int root, MPI_Comm comm),                                   \
      (send, sendcount, sendtype, recv, recvcounts, displs, recvtype, root, comm))                                     \
    X(Scatter##s, (const void *send, K sendcount, MPI_Datatype sendtype, void *recv, K recvcount,                      \
                   MPI_Datatype recvtype, int root, MPI_Comm comm),                                                    \
      (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm))                                              \
    X(Scatterv##s, (const void *send, const K *sendcounts, const D *displs, MPI_Datatype sendtype, void *recv,         \
                    K recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),                                      \
      (send, sendcounts, displs, sendtype, recv, recvcount, recvtype, root, comm))                                     \
    X(Allgather##s, (const void *send, K sendcount, MPI_Datatype sendtype, void *recv, K recvcount,                    \
                     MPI_Datatype recvtype, MPI_Comm comm),                                                            \
      (send, sendcount, sendtype, recv, recvcount, recvtype, comm))                                                    \
    X(Allgatherv##s, (const void *send, K sendcount, MPI_Datatype sendtype, void *recv, const K *recvcounts,           \
                      const D *displs, MPI_Datatype recvtype, MPI_Comm comm),                                          \
      (send, sendcount, sendtype, recv, recvcounts, displs, recvtype, comm))                                           \
    X(Alltoall##s, (const void *send, K sendcount, MPI_Datatype sendtype, void *recv, K recvcount,                     \
                    MPI_Datatype recvtype, MPI_Comm comm),                                                             \
      (send, sendcount, sendtype, recv, recvcount, recvtype, comm))                                                    \
    X(Alltoallv##s, (const void *send, const K *sendcounts, const D *sdispls, MPI_Datatype sendtype, void *recv,       \
                     const K *recvcounts, const D *rdispls, MPI_Datatype recvtype, MPI_Comm comm),                     \
      (send, sendcounts, sdispls, sendtype, recv, recvcounts, rdispls, recvtype, comm))

#define RD_MPI_BARRIER(X) X(Barrier, (MPI_Comm comm), (comm))
#if MPI_VERSION >= 4
#define RD_MPI_LARGE(X) RD_MPI_COUNTED(X, _c, MPI_Count, MPI_Aint)
#else
#define RD_MPI_LARGE(X)
#endif
#define RD_MPI_ENTRIES(X)                                                                                              \
    RD_MPI_BARRIER(X)                                                                                                  \
    RD_MPI_COUNTED(X, , int, int)                                                                                      \
    RD_MPI_LARGE(X)

/* Open MPI's Fortran calls PMPI_ in its own library, so its entries must be taken in between themselves. MPICH's calls
 * MPI_, but for one. Name in small and capital letters. */
#define P MPI_Fint *
#ifdef OPEN_MPI
#define RD_MPI_FORTRAN(X)                                                                                              \
    X(barrier, BARRIER, (P comm, P ierror), (comm, ierror))                                                            \
    X(bcast, BCAST, (void *buffer, P count, P type, P root, P comm, P ierror),                                         \
      (buffer, count, type, root, comm, ierror))                                                                       \
    X(reduce, REDUCE, (void *send, void *recv, P count, P type, P op, P root, P comm, P ierror),                       \
      (send, recv, count, type, op, root, comm, ierror))                                                               \
    X(allreduce, ALLREDUCE, (void *send, void *recv, P count, P type, P op, P comm, P ierror),                         \
      (send, recv, count, type, op, comm, ierror))                                                                     \
    X(reduce_scatter_block, REDUCE_SCATTER_BLOCK, (void *send, void *recv, P count, P type, P op, P comm, P ierror),   \
      (send, recv, count, type, op, comm, ierror))                                                                     \
    X(reduce_scatter, REDUCE_SCATTER, (void *send, void *recv, P counts, P type, P op, P comm, P ierror),              \
      (send, recv, counts, type, op, comm, ierror))                                                                    \
    X(scan, SCAN, (void *send, void *recv, P count, P type, P op, P comm, P ierror),                                   \
      (send, recv, count, type, op, comm, ierror))                                                                     \
    X(exscan, EXSCAN, (void *send, void *recv, P count, P type, P op, P comm, P ierror),                               \
      (send, recv, count, type, op, comm, ierror))                                                                     \
    X(gather, GATHER, (void *send, P sendcount, P sendtype, void *recv, P recvcount, P recvtype, P root, P comm,       \
                       P ierror),                                                                                      \
      (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, ierror))                                      \
    X(gatherv, GATHERV, (void *send, P sendcount, P sendtype, void *recv, P recvcounts, P displs, P recvtype, P root,  \
                         P comm, P ierror),                                                                            \
      (send, sendcount, sendtype, recv, recvcounts, displs, recvtype, root, comm, ierror))                             \
    X(scatter, SCATTER, (void *send, P sendcount, P sendtype, void *recv, P recvcount, P recvtype, P root, P comm,     \
                         P ierror),                                                                                    \
      (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, ierror))                                      \
    X(scatterv, SCATTERV, (void *send, P sendcounts, P displs, P sendtype, void *recv, P recvcount, P recvtype,        \
                           P root, P comm, P ierror),                                                                  \
      (send, sendcounts, displs, sendtype, recv, recvcount, recvtype, root, comm, ierror))                             \
    X(allgather, ALLGATHER, (void *send, P sendcount, P sendtype, void *recv, P recvcount, P recvtype, P comm,         \
                             P ierror),                                                                                \
      (send, sendcount, sendtype, recv, recvcount, recvtype, comm, ierror))                                            \
    X(allgatherv, ALLGATHERV, (void *send, P sendcount, P sendtype, void *recv, P recvcounts, P displs, P recvtype,    \
                               P comm, P ierror),                                                                      \
      (send, sendcount, sendtype, recv, recvcounts, displs, recvtype, comm, ierror))                                   \
    X(alltoall, ALLTOALL, (void *send, P sendcount, P sendtype, void *recv, P recvcount, P recvtype, P comm,           \
                           P ierror),                                                                                  \
      (send, sendcount, sendtype, recv, recvcount, recvtype, comm, ierror))                                            \
    X(alltoallv, ALLTOALLV, (void *send, P sendcounts, P sdispls, P sendtype, void *recv, P recvcounts, P rdispls,     \
                             P recvtype, P comm, P ierror),                                                            \
      (send, sendcounts, sdispls, sendtype, recv, recvcounts, rdispls, recvtype, comm, ierror))
#else
#define RD_MPI_FORTRAN(X) X(barrier, BARRIER, (P comm, P ierror), (comm, ierror))
#endif
/* clang-format on */

#define RD_MPI_FIELD(name, parameters, arguments) int(*name) parameters;
#define RD_MPI_FORTRAN_FIELD(name, NAME, parameters, arguments) void(*f_##name) parameters;
typedef struct rd_mpi_entries {
    RD_MPI_ENTRIES(RD_MPI_FIELD)
    RD_MPI_FORTRAN(RD_MPI_FORTRAN_FIELD)
} rd_mpi_entries_t;

/* What preload.c looks up in librondo_mpi_calls.so. `next` is who comes behind in the process, another tool or the MPI,
 * where what is not served is handed on. Returns NULL if it cannot serve here. */
#define RD_MPI_TABLE "rd_mpi_table"
typedef const rd_mpi_entries_t *(*rd_mpi_table_fn)(const rd_mpi_entries_t *next);

#endif
