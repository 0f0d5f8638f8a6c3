/* A program written for NCCL in C, as its tests are: knows nccl.h and the CUDA runtime alone. All GPUs of the machine in
 * one process, by one thread (ncclCommInitAll, groups) or by a thread each (ncclCommInitRank); every operation is checked
 * element by element, then allreduce is timed from 8 bytes to 64 MB.
 *
 * Needs: a CUDA toolkit to build, NCCL's header (rondo's will do) and a libnccl.so.2 to link, 2 GPUs or more.
 * Build: cc -I/opt/rondo/include/rondo/nccl nccl_program.c -o nccl_program -lnccl -lcudart -lpthread
 * Run:   LD_LIBRARY_PATH=/opt/rondo/lib/rondo ./nccl_program [threads]
 * Exit:  0 all right, 1 not, 77 not to be tried here.
 */
#include <cuda_runtime.h>
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 16
#define COUNT 100003
#define TIMES 50
#define LONGEST ((size_t)64 << 20)

#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));                          \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define NCCL(call)                                                                                                     \
    do {                                                                                                               \
        ncclResult_t result_ = (call);                                                                                 \
        if (result_ != ncclSuccess) {                                                                                  \
            printf("%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, ncclGetErrorString(result_),                      \
                   ncclGetLastError(NULL));                                                                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef struct rank {
    int rank, n;
    ncclComm_t comm;
    cudaStream_t stream;
    float *in, *out, *host;
    pthread_t thread;
} rank_t;

static ncclUniqueId id;
static int wrong;

static float value(int rank, size_t i)
{
    return (float)((i * 7 + (size_t)rank * 13) % 11);
}

static float sum_of(int n, size_t i)
{
    float sum = 0;

    for (int r = 0; r < n; r++)
        sum += value(r, i);
    return sum;
}

static void prepare(rank_t *r)
{
    const size_t whole = (size_t)COUNT * (size_t)r->n;

    CUDA(cudaSetDevice(r->rank));
    CUDA(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void **)&r->in, 64 << 20));
    CUDA(cudaMalloc((void **)&r->out, 64 << 20));
    CUDA(cudaMallocHost((void **)&r->host, whole * sizeof(float)));
    for (size_t i = 0; i < whole; i++)
        r->host[i] = value(r->rank, i);
    CUDA(cudaMemcpy(r->in, r->host, whole * sizeof(float), cudaMemcpyDefault));
    CUDA(cudaDeviceSynchronize());
}

/* One operation of one rank, and what must come out. */
enum { ALLREDUCE, AVERAGE, BROADCAST, REDUCE, ALLGATHER, REDUCE_SCATTER, RING, ALLTOALL, GATHER, SCATTER, KINDS };
static const char *const names[KINDS] = {"allreduce", "average", "broadcast", "reduce", "allgather", "reduce_scatter",
                                         "send/recv", "alltoall", "gather", "scatter"};

static void post(rank_t *r, int kind)
{
    const int last = r->n - 1;

    switch (kind) {
    case ALLREDUCE:
        NCCL(ncclAllReduce(r->in, r->out, COUNT, ncclFloat, ncclSum, r->comm, r->stream));
        break;
    case AVERAGE:
        NCCL(ncclAllReduce(r->in, r->out, COUNT, ncclFloat, ncclAvg, r->comm, r->stream));
        break;
    case BROADCAST:
        NCCL(ncclBroadcast(r->in, r->out, COUNT, ncclFloat, last, r->comm, r->stream));
        break;
    case REDUCE:
        NCCL(ncclReduce(r->in, r->out, COUNT, ncclFloat, ncclSum, last, r->comm, r->stream));
        break;
    case ALLGATHER:
        NCCL(ncclAllGather(r->in, r->out, COUNT, ncclFloat, r->comm, r->stream));
        break;
    case REDUCE_SCATTER:
        NCCL(ncclReduceScatter(r->in, r->out, COUNT, ncclFloat, ncclSum, r->comm, r->stream));
        break;
    case RING:
        NCCL(ncclGroupStart());
        NCCL(ncclSend(r->in, COUNT, ncclFloat, (r->rank + 1) % r->n, r->comm, r->stream));
        NCCL(ncclRecv(r->out, COUNT, ncclFloat, (r->rank + last) % r->n, r->comm, r->stream));
        NCCL(ncclGroupEnd());
        break;
    case ALLTOALL:
        NCCL(ncclAlltoAll(r->in, r->out, COUNT, ncclFloat, r->comm, r->stream));
        break;
    case GATHER:
        NCCL(ncclGather(r->in, r->out, COUNT, ncclFloat, 0, r->comm, r->stream));
        break;
    default:
        NCCL(ncclScatter(r->in, r->out, COUNT, ncclFloat, 0, r->comm, r->stream));
        break;
    }
}

/* Element i of rank r's result, of as many as it has. */
static size_t length(const rank_t *r, int kind)
{
    if ((kind == REDUCE && r->rank != r->n - 1) || (kind == GATHER && r->rank != 0))
        return 0;
    return kind == ALLGATHER || kind == ALLTOALL || kind == GATHER ? (size_t)COUNT * (size_t)r->n : COUNT;
}

static float expected(const rank_t *r, int kind, size_t i)
{
    const size_t mine = (size_t)r->rank * COUNT;

    switch (kind) {
    case ALLREDUCE:
    case REDUCE:
        return sum_of(r->n, i);
    case AVERAGE:
        return sum_of(r->n, i) / (float)r->n;
    case BROADCAST:
        return value(r->n - 1, i);
    case ALLGATHER:
    case GATHER:
        return value((int)(i / COUNT), i % COUNT);
    case REDUCE_SCATTER:
        return sum_of(r->n, mine + i);
    case RING:
        return value((r->rank + r->n - 1) % r->n, i);
    case ALLTOALL:
        return value((int)(i / COUNT), mine + i % COUNT);
    default:
        return value(0, mine + i);
    }
}

static void verify(rank_t *r, int kind)
{
    const size_t n = length(r, kind);

    CUDA(cudaSetDevice(r->rank));
    CUDA(cudaMemcpyAsync(r->host, r->out, n * sizeof(float), cudaMemcpyDefault, r->stream));
    CUDA(cudaStreamSynchronize(r->stream));
    for (size_t i = 0; i < n; i++) {
        float want = expected(r, kind, i), off = r->host[i] - want;
        if (off > 1e-5f || off < -1e-5f) {
            printf("WRONG: %s, rank %d, element %zu is %g, should be %g\n", names[kind], r->rank, i, r->host[i], want);
            wrong = 1;
            return;
        }
    }
}

/* The time of one allreduce; the thread has `n` of the ranks. */
static void timed(rank_t *ranks, int n)
{
    cudaEvent_t begin, end;

    CUDA(cudaSetDevice(ranks[0].rank));
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    for (size_t bytes = 8; bytes <= LONGEST; bytes *= 8) {
        float ms = 0;

        for (int k = -5; k < TIMES; k++) {
            if (k == 0)
                CUDA(cudaEventRecord(begin, ranks[0].stream));
            NCCL(ncclGroupStart());
            for (int r = 0; r < n; r++)
                NCCL(ncclAllReduce(ranks[r].in, ranks[r].out, bytes / 4, ncclFloat, ncclSum, ranks[r].comm,
                                   ranks[r].stream));
            NCCL(ncclGroupEnd());
        }
        CUDA(cudaEventRecord(end, ranks[0].stream));
        for (int r = 0; r < n; r++)
            CUDA(cudaStreamSynchronize(ranks[r].stream));
        CUDA(cudaEventElapsedTime(&ms, begin, end));
        if (ranks[0].rank == 0)
            printf("allreduce of %9zu bytes: %9.2f us\n", bytes, (double)ms * 1000 / TIMES);
    }
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
}

static void *one(void *arg)
{
    rank_t *r = arg;
    int device = -1, rank = -1, count = 0;

    prepare(r);
    NCCL(ncclCommInitRank(&r->comm, r->n, id, r->rank));
    NCCL(ncclCommCuDevice(r->comm, &device));
    NCCL(ncclCommUserRank(r->comm, &rank));
    NCCL(ncclCommCount(r->comm, &count));
    if (device != r->rank || rank != r->rank || count != r->n) {
        printf("WRONG: device %d, rank %d of %d\n", device, rank, count);
        wrong = 1;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        post(r, kind);
        verify(r, kind);
    }
    timed(r, 1);
    NCCL(ncclCommFinalize(r->comm));
    NCCL(ncclCommDestroy(r->comm));
    return NULL;
}

static void all(rank_t *ranks, int n)
{
    ncclComm_t comms[MOST];

    NCCL(ncclCommInitAll(comms, n, NULL));
    for (int r = 0; r < n; r++) {
        ranks[r].comm = comms[r];
        prepare(&ranks[r]);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        NCCL(ncclGroupStart());
        for (int r = 0; r < n; r++)
            post(&ranks[r], kind);
        NCCL(ncclGroupEnd());
        for (int r = 0; r < n; r++)
            verify(&ranks[r], kind);
    }
    timed(ranks, n);
    for (int r = 0; r < n; r++)
        NCCL(ncclCommDestroy(comms[r]));
}

int main(int argc, char **argv)
{
    rank_t ranks[MOST];
    int n = 0, version = 0, threads = argc > 1 && strcmp(argv[1], "threads") == 0;

    if (cudaGetDeviceCount(&n) != cudaSuccess || n < 2) {
        printf("%d GPUs\n", n);
        return 77;
    }
    n = n < MOST ? n : MOST;
    memset(ranks, 0, sizeof ranks);
    for (int r = 0; r < n; r++) {
        ranks[r].rank = r;
        ranks[r].n = n;
    }
    NCCL(ncclGetVersion(&version));
    printf("NCCL version %d, %d GPUs, %s\n", version, n, threads ? "a thread each" : "one thread");
    if (threads) {
        NCCL(ncclGetUniqueId(&id));
        for (int r = 0; r < n; r++)
            if (pthread_create(&ranks[r].thread, NULL, one, &ranks[r]) != 0)
                return 1;
        for (int r = 0; r < n; r++)
            pthread_join(ranks[r].thread, NULL);
    } else {
        all(ranks, n);
    }
    printf("%s\n", wrong ? "WRONG" : "all right");
    return wrong;
}
