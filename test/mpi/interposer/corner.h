/* What programs of corners share: checks, a sum, and a main that runs the corners named. Included by each once. */
#ifndef RD_TEST_CORNER_H
#define RD_TEST_CORNER_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef OPEN_MPI /* its own nonblocking and persistent collectives fail when the communicator is freed meanwhile */
#define OWN_FAILS 1
#else
#define OWN_FAILS 0
#endif
/* MPICH from 4.3 on returns success when a handler of the user's has seen the error; 5.0 ends by an assertion at a
 * reduction of MPI_DATATYPE_NULL. */
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION >= 40300000
#define HANDLED_IS_SUCCESS 1
#else
#define HANDLED_IS_SUCCESS 0
#endif
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION >= 50000000
#define NO_TYPE_CRASHES 1
#else
#define NO_TYPE_CRASHES 0
#endif
#if defined OPEN_MPI && OMPI_MAJOR_VERSION == 4
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#define PINIT(name) PMPIX_##name##_init
#elif MPI_VERSION >= 4 || defined OPEN_MPI
#define INIT(name) MPI_##name##_init
#define PINIT(name) PMPI_##name##_init
#endif

#define MOST_RANKS 64

static int rank, nranks, failures;
static const char *now = "";

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            failures++;                                                                                                \
            printf("rank %d: %s: line %d: ", rank, now, __LINE__);                                                     \
            printf(__VA_ARGS__);                                                                                       \
            printf("\n");                                                                                              \
        }                                                                                                              \
    } while (0)

/* MPI_Wtime need not be alike in all processes. */
static inline double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int sum_of(int mine, MPI_Comm comm)
{
    int sum = -1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    return sum;
}

#define MANY 12 /* calls, after which rondo serves any communicator */
static inline void warm(MPI_Comm comm)
{
    for (int i = 0; i < MANY; i++)
        sum_of(i, comm);
}

#define MANY_OF_BOTH 24 /* the same with nonblocking calls between */
static inline void warm_all(MPI_Comm comm)
{
    for (int i = 0; i < MANY_OF_BOTH; i++) {
        MPI_Request request;
        MPI_Ibarrier(comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        sum_of(i, comm);
    }
}

typedef struct {
    const char *name;
    void (*test)(void);
} corner_t;

static void corners_known(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (nranks > MOST_RANKS)
        MPI_Abort(MPI_COMM_WORLD, 2);
}

/* This process's rank before MPI_Init, when the environment is read: by what launchers say. */
static inline int rank_before(void)
{
    const char *text = getenv("OMPI_COMM_WORLD_RANK");

    if (!text)
        text = getenv("PMI_RANK");
    return text ? atoi(text) : -1;
}

static inline void corners_begin(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    corners_known();
}

/* Runs the corners that the arguments name and ends the MPI. Returns the exit status; rank 0 prints "good". */
static int corners_run(int argc, char **argv, const corner_t *corners, size_t count)
{
    int all = 0;

    for (int i = 1; i < argc; i++) {
        int known = 0;
        for (size_t t = 0; t < count; t++) {
            if (strcmp(argv[i], corners[t].name) != 0)
                continue;
            known = 1;
            now = corners[t].name;
            corners[t].test();
        }
        CHECK(known, "there is no corner %s", argv[i]);
    }
    PMPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    if (!rank && !all && !failures)
        printf("good\n");
    return all != 0 || failures != 0;
}

#endif
