/* What a program calls and rondo takes in between: the list that everything else is made from. X is called with the
 * name of each call, the same in small letters, its suffix, its parameters and its arguments; the nonblocking and the
 * persistent call of the same name have those too, and more behind them. K and D are the types of counts and
 * displacements, which the calls whose names end in _c (MPI 4) have larger. */
#ifndef RD_MPI_ENTRIES_H
#define RD_MPI_ENTRIES_H

#include <mpi.h>
#if defined OPEN_MPI && OMPI_MAJOR_VERSION >= 5
#include <mpi-ext.h>
#endif
#include <stdbool.h>
#include <stdint.h>

#ifdef MPI_ABI
#error "librondo_mpi.so is for the MPI's own handles, not for MPI's standard ABI: take mpicc, not mpicc_abi"
#endif

/* clang-format off */
#define RD_MPI_COUNTED(X, s, K, D)                                                                                     \
    X(Bcast, bcast, s, (void *buffer, K count, MPI_Datatype type, int root, MPI_Comm comm), (buffer, count, type, root, comm))\
    X(Reduce, reduce, s, (const void *send, void *recv, K count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),\
      (send, recv, count, type, op, root, comm))                                                                       \
    X(Allreduce, allreduce, s, (const void *send, void *recv, K count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),   \
      (send, recv, count, type, op, comm))                                                                             \
    X(Reduce_scatter_block, reduce_scatter_block, s, (const void *send, void *recv, K count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),\
      (send, recv, count, type, op, comm))                                                                             \
    X(Reduce_scatter, reduce_scatter, s, (const void *send, void *recv, const K *counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm),\
      (send, recv, counts, type, op, comm))                                                                            \
    X(Scan, scan, s, (const void *send, void *recv, K count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),             \
      (send, recv, count, type, op, comm))                                                                             \
    X(Exscan, exscan, s, (const void *send, void *recv, K count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),         \
      (send, recv, count, type, op, comm))                                                                             \
    X(Gather, gather, s, (const void *send, K sendcount, MPI_Datatype sendtype, void *recv, K recvcount,               \
                  MPI_Datatype recvtype, int root, MPI_Comm comm),                                                     \
      (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm))                                              \
    X(Gatherv, gatherv, s, (const void *send, K sendcount, MPI_Datatype sendtype, void *recv, const K *recvcounts,     \
                   const D *displs, MPI_Datatype recvtype, int root, MPI_Comm comm),                                   \
      (send, sendcount, sendtype, recv, recvcounts, displs, recvtype, root, comm))                                     \
    X(Scatter, scatter, s, (const void *send, K sendcount, MPI_Datatype sendtype, void *recv, K recvcount,             \
                   MPI_Datatype recvtype, int root, MPI_Comm comm),                                                    \
      (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm))                                              \
    X(Scatterv, scatterv, s, (const void *send, const K *sendcounts, const D *displs, MPI_Datatype sendtype, void *recv,\
                    K recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),                                      \
      (send, sendcounts, displs, sendtype, recv, recvcount, recvtype, root, comm))                                     \
    X(Allgather, allgather, s, (const void *send, K sendcount, MPI_Datatype sendtype, void *recv, K recvcount,         \
                     MPI_Datatype recvtype, MPI_Comm comm),                                                            \
      (send, sendcount, sendtype, recv, recvcount, recvtype, comm))                                                    \
    X(Allgatherv, allgatherv, s, (const void *send, K sendcount, MPI_Datatype sendtype, void *recv, const K *recvcounts,\
                      const D *displs, MPI_Datatype recvtype, MPI_Comm comm),                                          \
      (send, sendcount, sendtype, recv, recvcounts, displs, recvtype, comm))                                           \
    X(Alltoall, alltoall, s, (const void *send, K sendcount, MPI_Datatype sendtype, void *recv, K recvcount,           \
                    MPI_Datatype recvtype, MPI_Comm comm),                                                             \
      (send, sendcount, sendtype, recv, recvcount, recvtype, comm))                                                    \
    X(Alltoallv, alltoallv, s, (const void *send, const K *sendcounts, const D *sdispls, MPI_Datatype sendtype, void *recv,\
                     const K *recvcounts, const D *rdispls, MPI_Datatype recvtype, MPI_Comm comm),                     \
      (send, sendcounts, sdispls, sendtype, recv, recvcounts, rdispls, recvtype, comm))

#define RD_MPI_BARRIER(X) X(Barrier, barrier, , (MPI_Comm comm), (comm))
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
 * MPI_, but for one, which has no buffer. Name in small letters, as in C and in capital letters; the parameters
 * without those that come last, the request of a nonblocking call and ierror. */
#define P MPI_Fint *
#ifdef OPEN_MPI
#define RD_MPI_FORTRAN(X)                                                                                              \
    X(barrier, Barrier, BARRIER, (P comm), (comm))                                                                     \
    X(bcast, Bcast, BCAST, (void *buffer, P count, P type, P root, P comm), (buffer, count, type, root, comm))         \
    X(reduce, Reduce, REDUCE, (void *send, void *recv, P count, P type, P op, P root, P comm),                         \
      (send, recv, count, type, op, root, comm))                                                                       \
    X(allreduce, Allreduce, ALLREDUCE, (void *send, void *recv, P count, P type, P op, P comm),                        \
      (send, recv, count, type, op, comm))                                                                             \
    X(reduce_scatter_block, Reduce_scatter_block, REDUCE_SCATTER_BLOCK, (void *send, void *recv, P count, P type,      \
                                                                         P op, P comm),                                \
      (send, recv, count, type, op, comm))                                                                             \
    X(reduce_scatter, Reduce_scatter, REDUCE_SCATTER, (void *send, void *recv, P counts, P type, P op, P comm),        \
      (send, recv, counts, type, op, comm))                                                                            \
    X(scan, Scan, SCAN, (void *send, void *recv, P count, P type, P op, P comm), (send, recv, count, type, op, comm))  \
    X(exscan, Exscan, EXSCAN, (void *send, void *recv, P count, P type, P op, P comm),                                 \
      (send, recv, count, type, op, comm))                                                                             \
    X(gather, Gather, GATHER, (void *send, P sendcount, P sendtype, void *recv, P recvcount, P recvtype, P root,       \
                               P comm),                                                                                \
      (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm))                                              \
    X(gatherv, Gatherv, GATHERV, (void *send, P sendcount, P sendtype, void *recv, P recvcounts, P displs,             \
                                  P recvtype, P root, P comm),                                                         \
      (send, sendcount, sendtype, recv, recvcounts, displs, recvtype, root, comm))                                     \
    X(scatter, Scatter, SCATTER, (void *send, P sendcount, P sendtype, void *recv, P recvcount, P recvtype, P root,    \
                                  P comm),                                                                             \
      (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm))                                              \
    X(scatterv, Scatterv, SCATTERV, (void *send, P sendcounts, P displs, P sendtype, void *recv, P recvcount,          \
                                     P recvtype, P root, P comm),                                                      \
      (send, sendcounts, displs, sendtype, recv, recvcount, recvtype, root, comm))                                     \
    X(allgather, Allgather, ALLGATHER, (void *send, P sendcount, P sendtype, void *recv, P recvcount, P recvtype,      \
                                        P comm),                                                                       \
      (send, sendcount, sendtype, recv, recvcount, recvtype, comm))                                                    \
    X(allgatherv, Allgatherv, ALLGATHERV, (void *send, P sendcount, P sendtype, void *recv, P recvcounts, P displs,    \
                                           P recvtype, P comm),                                                        \
      (send, sendcount, sendtype, recv, recvcounts, displs, recvtype, comm))                                           \
    X(alltoall, Alltoall, ALLTOALL, (void *send, P sendcount, P sendtype, void *recv, P recvcount, P recvtype,         \
                                     P comm),                                                                          \
      (send, sendcount, sendtype, recv, recvcount, recvtype, comm))                                                    \
    X(alltoallv, Alltoallv, ALLTOALLV, (void *send, P sendcounts, P sdispls, P sendtype, void *recv, P recvcounts,     \
                                        P rdispls, P recvtype, P comm),                                                \
      (send, sendcounts, sdispls, sendtype, recv, recvcounts, rdispls, recvtype, comm))
#else
#define RD_MPI_FORTRAN(X) X(barrier, Barrier, BARRIER, (P comm), (comm))
#endif
/* clang-format on */

/* Persistent calls are MPI 4's. Open MPI 5 has them as well, and Open MPI 4 under names of its own, MPIX_. */
#ifndef RD_MPI_HAS_INIT
#if MPI_VERSION >= 4 || (defined OPEN_MPI && OMPI_MAJOR_VERSION >= 4)
#define RD_MPI_HAS_INIT 1
#else
#define RD_MPI_HAS_INIT 0
#endif
#endif

/* What is done with persistent requests: the name in three spellings, the number of C's parameters, and Fortran's
 * parameters and arguments without ierror. */
#if RD_MPI_HAS_INIT
#define RD_MPI_STARTS(X)                                                                                               \
    X(Start, start, START, 1, (P request), (request))                                                                  \
    X(Startall, startall, STARTALL, 2, (P n, P requests), (n, requests))                                               \
    X(Request_free, request_free, REQUEST_FREE, 1, (P request), (request))
#else
#define RD_MPI_STARTS(X)
#endif

/* What frees communicators: comms.c says why it comes by. */
#define RD_MPI_FREES(X)                                                                                                \
    X(Comm_free, comm_free, COMM_FREE, 1, (P comm), (comm))                                                            \
    X(Comm_disconnect, comm_disconnect, COMM_DISCONNECT, 1, (P comm), (comm))

/* What frees operators and types: kept.c says why it comes by. */
#define RD_MPI_KEPT_FREES(X)                                                                                           \
    X(Op_free, op_free, OP_FREE, 1, (P op), (op))                                                                      \
    X(Type_free, type_free, TYPE_FREE, 1, (P type), (type))

/* What duplicates them behind its call, in the MPI whose nonblocking ones cannot go on beside that: measure.c. */
#ifdef OPEN_MPI
#define RD_MPI_IDUPS(X)                                                                                                \
    X(Comm_idup, comm_idup, COMM_IDUP, 3, (P comm, P newcomm, P request), (comm, newcomm, request))                    \
    RD_MPI_IDUPS_WITH_INFO(X)
#else
#define RD_MPI_IDUPS(X)
#endif
#if MPI_VERSION >= 4 || (defined OPEN_MPI && OMPI_MAJOR_VERSION >= 5)
#define RD_MPI_IDUPS_WITH_INFO(X)                                                                                      \
    X(Comm_idup_with_info, comm_idup_with_info, COMM_IDUP_WITH_INFO, 4, (P comm, P info, P newcomm, P request),        \
      (comm, info, newcomm, request))
#else
#define RD_MPI_IDUPS_WITH_INFO(X)
#endif

/* What revokes them, in an MPI that has it (ULFM). */
#ifdef MPIX_ERR_REVOKED
#define RD_MPI_REVOKES(X) X(Comm_revoke, comm_revoke, COMM_REVOKE, 1, (P comm), (comm))
#else
#define RD_MPI_REVOKES(X)
#endif

/* What waits for requests, or asks for them: only where the MPI's own functions make no progress for rondo
 * (in_flight.c). Name, name in small letters, number of parameters; `use mpi_f08` has a function of its own, with
 * ierror behind. */
/* MPI 4.1 asks for several requests at once. A test has them where its MPI plays them. */
#ifndef RD_MPI_HAS_GET_STATUSES
#define RD_MPI_HAS_GET_STATUSES (MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1))
#endif
#if RD_MPI_HAS_GET_STATUSES
#define RD_MPI_GET_STATUSES(X)                                                                                         \
    X(Request_get_status_any, request_get_status_any, 5, 6)                                                            \
    X(Request_get_status_all, request_get_status_all, 4, 5)                                                            \
    X(Request_get_status_some, request_get_status_some, 5, 6)
#else
#define RD_MPI_GET_STATUSES(X)
#endif
#ifdef OPEN_MPI
#define RD_MPI_WAITS(X)
#else
#define RD_MPI_WAITS(X)                                                                                                \
    X(Wait, wait, 2, 3)                                                                                                \
    X(Waitany, waitany, 4, 5)                                                                                          \
    X(Waitall, waitall, 3, 4)                                                                                          \
    X(Waitsome, waitsome, 5, 6)                                                                                        \
    X(Test, test, 3, 4)                                                                                                \
    X(Testany, testany, 5, 6)                                                                                          \
    X(Testall, testall, 4, 5)                                                                                          \
    X(Testsome, testsome, 5, 6)                                                                                        \
    X(Request_get_status, request_get_status, 3, 4)                                                                    \
    RD_MPI_GET_STATUSES(X)
#endif
/* Their parameters are words: handles, addresses and numbers. */
typedef intptr_t rd_mpi_word_t;
#define W rd_mpi_word_t
#define RD_MPI_WORDS_1 (W a)
#define RD_MPI_WORDS_2 (W a, W b)
#define RD_MPI_WORDS_3 (W a, W b, W c)
#define RD_MPI_WORDS_4 (W a, W b, W c, W d)
#define RD_MPI_WORDS_5 (W a, W b, W c, W d, W e)
#define RD_MPI_WORDS_6 (W a, W b, W c, W d, W e, W f)
#define RD_MPI_GIVEN_1 (a)
#define RD_MPI_GIVEN_2 (a, b)
#define RD_MPI_GIVEN_3 (a, b, c)
#define RD_MPI_GIVEN_4 (a, b, c, d)
#define RD_MPI_GIVEN_5 (a, b, c, d, e)
#define RD_MPI_GIVEN_6 (a, b, c, d, e, f)
#define RD_MPI_WAIT_FIELD(Name, name, n, n_f08)                                                                        \
    int(*Name) RD_MPI_WORDS_##n;                                                                                       \
    void(*f08_##name) RD_MPI_WORDS_##n_f08;

#define RD_MPI_OPEN(...) __VA_ARGS__
#define RD_MPI_START_FIELD(Name, name, NAME, n, parameters, arguments)                                                 \
    int(*Name) RD_MPI_WORDS_##n;                                                                                       \
    void (*f_##name)(RD_MPI_OPEN parameters, P ierror);
#define RD_MPI_FIELD(Name, name, s, parameters, arguments)                                                             \
    int(*Name##s) parameters;                                                                                          \
    int (*I##name##s)(RD_MPI_OPEN parameters, MPI_Request * request);                                                  \
    int (*Name##_init##s)(RD_MPI_OPEN parameters, MPI_Info info, MPI_Request * request); /* MPI 4 */
#define RD_MPI_FORTRAN_FIELD(name, Name, NAME, parameters, arguments)                                                  \
    void (*f_##name)(RD_MPI_OPEN parameters, P ierror);                                                                \
    void (*f_i##name)(RD_MPI_OPEN parameters, P request, P ierror);                                                    \
    void (*f_##name##_init)(RD_MPI_OPEN parameters, P info, P request, P ierror);
typedef struct rd_mpi_entries {
    void (*begin)(void); /* at the end of MPI_Init, on all ranks; NULL: nothing is served */
    /* Does the program call this library's names for requests, and not those of a tool before it, which may hand on to
     * PMPI_, past it? */
    bool requests_come_by;
    bool frees_come_by; /* the same for those that free operators and types */
    RD_MPI_ENTRIES(RD_MPI_FIELD)
    RD_MPI_FORTRAN(RD_MPI_FORTRAN_FIELD)
    RD_MPI_STARTS(RD_MPI_START_FIELD)
    RD_MPI_FREES(RD_MPI_START_FIELD)
    RD_MPI_KEPT_FREES(RD_MPI_START_FIELD)
    RD_MPI_IDUPS(RD_MPI_START_FIELD)
    RD_MPI_REVOKES(RD_MPI_START_FIELD)
    RD_MPI_WAITS(RD_MPI_WAIT_FIELD)
} rd_mpi_entries_t;

/* What preload.c looks up in librondo_mpi_calls.so. `next` is who comes behind in the process, another tool or the MPI,
 * where what is not served is handed on. Returns NULL if it cannot serve here. */
#define RD_MPI_TABLE "rd_mpi_table"
typedef const rd_mpi_entries_t *(*rd_mpi_table_fn)(const rd_mpi_entries_t *next);

#endif
