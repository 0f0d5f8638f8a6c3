/* RONDO_CHECK on CUDA: what each rank asks for, compared by the hosts before the launch.
 *
 * A call on a stream waits for nobody, so neither does this: each rank writes what it asks for into a ring in the
 * node's shared memory, then compares with those that have asked for the operation of the same number before. The last
 * one to come sees all others, so a difference is found before its kernel starts; and what others have asked for since
 * is compared at the next call, and by the watch, so that ranks whose kernels wait learn of it too. A rank that is a
 * whole ring behind finds what it would compare with overwritten, and skips it. What is captured is not compared: it
 * runs when the graph does, perhaps never.
 */
#include <stdlib.h>
#include <string.h>

#include "core/signature.h"
#include "core/comm.h"
#include "exec/cuda/cuda_int.h"

#define RING 1024 /* operations */

typedef struct place {
    _Alignas(RD_LINE) _Atomic uint64_t number; /* of the operation, from 1; 0: none yet, or being written */
    rd_asked_t asked;
} place_t;

struct rd_cuda_asked {
    pthread_mutex_t lock; /* the calling thread and the watch compare */
    uint64_t posted;      /* operations of this rank */
    uint64_t compared[RD_KRANKS];
    place_t *ring[RD_KRANKS]; /* in the node's shared memory; NULL: not on this node */
};

size_t rd_cuda_asked_bytes(void)
{
    return RING * sizeof(place_t);
}

rondo_result_t rd_cuda_asked_create(rd_cuda_t *cuda)
{
    rondo_comm_t comm = cuda->comm;
    const rd_node_t *node = &comm->node;
    struct rd_cuda_asked *a;

    if (!comm->env.check || !node->base)
        return RONDO_SUCCESS;
    if (!(a = calloc(1, sizeof *a)))
        return rd_error(&comm->who, RONDO_ERR_NO_MEMORY, "no memory for RONDO_CHECK");
    pthread_mutex_init(&a->lock, NULL);
    for (int m = 0; m < node->nlocal; m++)
        a->ring[node->local[m]] =
            (place_t *)(void *)(node->base + (size_t)(m + 1) * node->segment_bytes - rd_cuda_asked_bytes());
    cuda->asked = a;
    return RONDO_SUCCESS;
}

void rd_cuda_asked_free(rd_cuda_t *cuda)
{
    if (cuda->asked)
        pthread_mutex_destroy(&cuda->asked->lock);
    free(cuda->asked);
    cuda->asked = NULL;
}

static void post(place_t *ring, const rd_asked_t *asked, uint64_t number)
{
    place_t *place = &ring[number % RING];

    atomic_store_explicit(&place->number, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    place->asked = *asked;
    atomic_store_explicit(&place->number, number, memory_order_release);
}

/* 1: `asked` is what the ring's rank asks for by this number; 0: it has not come so far; -1: it has gone on since. */
static int look(const place_t *ring, uint64_t number, rd_asked_t *asked)
{
    const place_t *place = &ring[number % RING];
    uint64_t there = atomic_load_explicit(&place->number, memory_order_acquire);

    if (there != number)
        return there > number ? -1 : 0;
    *asked = place->asked;
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&place->number, memory_order_relaxed) == number ? 1 : -1;
}

static rondo_result_t compare(rd_cuda_t *cuda, struct rd_cuda_asked *a, int peer)
{
    int rank = cuda->k.rank;
    rd_asked_t own, theirs;

    while (a->compared[peer] < a->posted) {
        uint64_t number = a->compared[peer] + 1;
        int there = look(a->ring[peer], number, &theirs);

        if (there == 0)
            return RONDO_SUCCESS;
        a->compared[peer] = number;
        if (there < 0 || look(a->ring[rank], number, &own) != 1)
            continue;
        rondo_result_t result = rank < peer ? rd_asked_compare(cuda->comm, rank, &own, peer, &theirs)
                                            : rd_asked_compare(cuda->comm, peer, &theirs, rank, &own);
        if (result != RONDO_SUCCESS)
            return result;
    }
    return RONDO_SUCCESS;
}

static rondo_result_t compare_all(rd_cuda_t *cuda)
{
    struct rd_cuda_asked *a = cuda->asked;
    rondo_result_t result = RONDO_SUCCESS;

    for (int r = 0; r < cuda->k.nranks && result == RONDO_SUCCESS; r++)
        if (r != cuda->k.rank && a->ring[r])
            result = compare(cuda, a, r);
    return result;
}

int rd_cuda_captured(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;

    if (cudaStreamIsCapturing(stream, &status) != cudaSuccess)
        (void)cudaGetLastError();
    return status != cudaStreamCaptureStatusNone;
}

rondo_result_t rd_cuda_asked_call(rd_cuda_t *cuda, const rd_call_t *call)
{
    struct rd_cuda_asked *a = cuda->asked;
    rd_asked_t asked;

    if (rd_cuda_captured(call->stream))
        return RONDO_SUCCESS;
    rd_asked_fill(&asked, call, cuda->comm->sequence++);
    pthread_mutex_lock(&a->lock);
    post(a->ring[cuda->k.rank], &asked, ++a->posted);
    atomic_thread_fence(memory_order_seq_cst); /* of two that post at once, one at least sees the other */
    rondo_result_t result = compare_all(cuda);
    pthread_mutex_unlock(&a->lock);
    return result;
}

void rd_cuda_asked_look(rd_cuda_t *cuda)
{
    struct rd_cuda_asked *a = cuda->asked;

    if (!a || pthread_mutex_trylock(&a->lock) != 0)
        return;
    (void)compare_all(cuda);
    pthread_mutex_unlock(&a->lock);
}
