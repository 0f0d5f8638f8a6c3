/* Device pointers on some ranks and host pointers on others, in one call and in one rank, served and handed on; CUDA is
 * loaded after the first collectives. Arguments: the played libcuda.so.1; another one: with MPI_THREAD_MULTIPLE. */
#include <dlfcn.h>
#include <stdint.h>

#include "corner.h"

#define N 64
static int *mirror;
static int (*copy)(uintptr_t, uintptr_t, size_t, void *), *copies;
static void *stream;

static void check(int condition, const char *what)
{
    if (!condition) {
        failures++;
        printf("rank %d: %s\n", rank, what);
    }
}

/* The values of a buffer, wherever it is. */
static int *values(void *at)
{
    copy((uintptr_t)mirror, (uintptr_t)at, 4 * N * sizeof(int), stream);
    return mirror;
}

static void set(void *at, int first, int value, int n)
{
    for (int i = 0; i < n; i++)
        mirror[i] = value;
    copy((uintptr_t)at + (size_t)first * sizeof(int), (uintptr_t)mirror, (size_t)n * sizeof(int), stream);
}

/* Two calls receive into gaps of each other, and the program writes into gaps of both meanwhile: by a type with a
 * stride of three, and by displacements. */
static void into_gaps(int *send, int *recv, const int *ones)
{
    int first[8], second[8], *got, good = 1;
    MPI_Request requests[4];
    MPI_Datatype strided;

    for (int r = 0; r < nranks; r++) {
        first[r] = 3 * r;
        second[r] = 3 * r + 1;
    }
    MPI_Type_vector(4, 1, 3, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    set(recv, 0, rank, N);
    set(recv, N, -1, N);
    MPI_Ibcast(recv, 1, strided, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Ibcast(recv + 1, 1, strided, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Iallgatherv(send, 1, MPI_INT, recv + N, ones, first, MPI_INT, MPI_COMM_WORLD, &requests[2]);
    MPI_Iallgatherv(send, 1, MPI_INT, recv + N, ones, second, MPI_INT, MPI_COMM_WORLD, &requests[3]);
    MPI_Type_free(&strided);
    for (int i = 0; i < 3; i++)
        set(recv, 3 * i + 2, 100 + i, 1);
    for (int r = 0; r < nranks; r++)
        set(recv, N + 3 * r + 2, 200 + r, 1);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    got = values(recv);
    for (int i = 0; i < 4; i++)
        good &= got[3 * i] == 0 && got[3 * i + 1] == 1 && got[3 * i + 2] == (i < 3 ? 100 + i : rank);
    check(good, "ibcast into gaps of another, and of what the program writes");
    got += N;
    for (int r = 0; r < nranks; r++)
        good &= got[3 * r] == r && got[3 * r + 1] == r && got[3 * r + 2] == 200 + r;
    check(good, "iallgatherv into gaps of another, and of what the program writes");
}

/* Several at once: in place, with gaps, of a type that is freed meanwhile; behind them it is in the buffers. */
static void nonblocking(int *send, int *recv, const int *ones, const int *twos)
{
    int total = nranks * (nranks - 1) / 2, *got, good = 1;
    MPI_Request requests[4];
    MPI_Datatype strided;

    MPI_Type_vector(4, 1, 2, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    set(recv, 0, -1, 4 * N);
    set(recv, 2 * N, rank, N);
    MPI_Iallreduce(send, recv, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Iallgatherv(send, 1, MPI_INT, recv + N, ones, twos, MPI_INT, MPI_COMM_WORLD, &requests[1]);
    MPI_Ibcast(recv + 2 * N, 1, strided, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Iallreduce(MPI_IN_PLACE, recv + 2 * N + 8, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[3]);
    MPI_Type_free(&strided);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    got = values(recv);
    check(got[0] == total && got[N - 1] == total, "iallreduce");
    for (int r = 0; r < nranks; r++)
        good &= got[N + 2 * r + 1] == r && got[N + 2 * r] == -1;
    check(good, "iallgatherv with gaps");
    got += 2 * N;
    check(got[0] == 1 && got[6] == 1 && got[1] == rank, "ibcast of a strided type");
    check(got[8] == nranks - 1 && got[9] == rank, "iallreduce in place");
}

/* What is sent has another value at each start. */
static void persistent(int *send, int *recv)
{
#ifdef INIT
    int total = nranks * (nranks - 1) / 2, *got;
    MPI_Request requests[2];

    INIT(Allreduce)(send, recv, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    INIT(Alltoall)(send, 1, MPI_INT, recv + N, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    for (int i = 0; i < 3; i++) {
        set(send, 0, rank + i, N);
        set(recv, 0, -1, 4 * N);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        got = values(recv);
        check(got[0] == total + i * nranks && got[N - 1] == got[0], "allreduce_init");
        check(got[N] == i && got[N + nranks - 1] == nranks - 1 + i && got[N + nranks] == -1, "alltoall_init");
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    set(send, 0, rank, N);
#endif
}

static void calls(int *send, int *recv)
{
    int ones[8], twos[8], total = nranks * (nranks - 1) / 2, *got, good = 1;
    MPI_Datatype strided;

    for (int r = 0; r < nranks; r++) {
        ones[r] = 1;
        twos[r] = 2 * r + 1;
    }
    set(send, 0, rank, N);
    set(recv, 0, -1, 4 * N);
    MPI_Allreduce(send, recv, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    got = values(recv);
    check(got[0] == total && got[N - 1] == total && got[N] == -1, "allreduce");
    nonblocking(send, recv, ones, twos);
    into_gaps(send, recv, ones);
    persistent(send, recv);
    set(recv, 0, total, N);
    MPI_Allreduce(MPI_IN_PLACE, recv, N, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    check(values(recv)[N - 1] == total, "allreduce in place");
    set(recv, 0, -1, 4 * N);
    MPI_Allgatherv(send, 1, MPI_INT, recv, ones, twos, MPI_INT, MPI_COMM_WORLD);
    got = values(recv);
    for (int r = 0; r < nranks; r++)
        good &= got[2 * r + 1] == r && got[2 * r] == -1;
    check(good, "allgatherv with gaps");
    MPI_Reduce(send, recv, N, MPI_INT, MPI_SUM, nranks - 1, MPI_COMM_WORLD);
    check(values(recv)[N - 1] == (rank == nranks - 1 ? total : -1), "reduce");
    MPI_Type_vector(4, 1, 2, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    set(recv, 0, rank, 8);
    MPI_Bcast(recv, 1, strided, 1, MPI_COMM_WORLD);
    got = values(recv);
    check(got[0] == 1 && got[6] == 1 && got[1] == rank, "bcast of a strided type");
    MPI_Type_free(&strided);
    MPI_Alltoall(send, 1, MPI_INT, recv, 1, MPI_INT, MPI_COMM_WORLD);
    got = values(recv);
    check(got[0] == 0 && got[nranks - 1] == nranks - 1, "alltoall");
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Request request;
    void *library, *host = malloc(8 * N * sizeof(int)), *device;
    void *(*alloc)(size_t);
    int one = 1, sum = 0, before, level;

    MPI_Init_thread(&argc, &argv, argc > 2 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    corners_known();
    if (argc > 2 && level < MPI_THREAD_MULTIPLE) { /* this MPI has no such level */
        MPI_Finalize();
        return rank ? 0 : puts("good") == EOF;
    }
    for (int i = 0; i < 20; i++) {
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    alloc = library ? (void *(*)(size_t))dlsym(library, "played_alloc") : NULL;
    copy = library ? (int (*)(uintptr_t, uintptr_t, size_t, void *))dlsym(library, "cuMemcpyAsync") : NULL;
    copies = library ? (int *)dlsym(library, "played_copies") : NULL;
    if (!alloc || !copy || !copies)
        MPI_Abort(MPI_COMM_WORLD, 1);
    mirror = malloc(4 * N * sizeof(int));
    device = alloc(8 * N * sizeof(int));
    calls(host, (int *)host + 4 * N); /* no device pointer */
    before = *copies;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(*copies == before, "a host pointer is copied");
    calls(device, (int *)device + 4 * N); /* all of them */
    if (rank == 0)                        /* mixed among ranks */
        calls(device, (int *)device + 4 * N);
    else
        calls(host, (int *)host + 4 * N);
    if (rank % 2) /* and within a rank */
        calls(device, (int *)host + 4 * N);
    else
        calls(host, (int *)device + 4 * N);
    PMPI_Allreduce(&failures, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    if (!rank && !sum)
        printf("good\n");
    return sum != 0;
}
