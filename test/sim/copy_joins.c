/* A copy that fails in an operation by copy engines: what was enqueued beside it is over all the same when the caller's
 * stream is, out of registered buffers and out of staging memory. Copies are made a tenth of a second late at least, so
 * what nobody waits for is not there yet.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/device.h"

#define BLOCK 40000 /* bytes: some turns of staging memory */

cudaError_t __real_cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s);
cudaError_t __wrap_cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s);

/* The first copy beside the caller's stream, after which no other is taken. */
static struct {
    cudaStream_t stream; /* the caller's; NULL: all are taken */
    const void *from;
    void *to;
    size_t bytes;
} beside;

cudaError_t __wrap_cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s)
{
    if (beside.stream && beside.to)
        return cudaErrorInvalidValue;
    if (beside.stream && s != beside.stream) {
        beside.from = from;
        beside.to = to;
        beside.bytes = bytes;
    }
    return __real_cudaMemcpyAsync(to, from, bytes, kind, s);
}

static void fail(test_rank_t *t, rondo_comm_t comm, const char *in, char *out, cudaStream_t stream)
{
    beside.stream = stream;
    rondo_result_t result = rondo_allgather(in, out, BLOCK, RONDO_INT8, comm, stream);
    beside.stream = NULL;
    TEST_TRUE(t, result != RONDO_SUCCESS);
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    if (!beside.to)
        test_stop(t, "nothing was copied beside the stream");
    TEST_TRUE(t, memcmp(beside.to, beside.from, beside.bytes) == 0);
}

static void joined(test_rank_t *t, void *arg)
{
    const bool registered = *(const bool *)arg;
    const size_t n = (size_t)t->nranks;
    rondo_registration_t reg;
    cudaStream_t stream;
    char *in, *out;

    if (!registered) {
        setenv("RONDO_CTA_POLICY", "zero", 1);
        setenv("RONDO_CUDA_STAGING", "16384", 1);
    }
    rondo_comm_t comm = device_comm(t);
    TEST_CUDA(t, cudaMalloc((void **)&in, BLOCK));
    TEST_CUDA(t, cudaMalloc((void **)&out, n * BLOCK));
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    memset(in, 1 + t->rank, BLOCK); /* a simulated GPU's memory is the host's */
    memset(out, 77, n * BLOCK);
    if (registered)
        TEST_OK(t, comm, rondo_comm_register(comm, in, BLOCK, &reg));
    test_note(t, "a copy of rank 0 fails, %s", registered ? "registered" : "staged");
    if (t->rank) /* before rank 0 fails, which they are told of */
        TEST_OK(t, comm, rondo_allgather(in, out, BLOCK, RONDO_INT8, comm, stream));
    test_barrier(t);
    if (t->rank == 0)
        fail(t, comm, in, out, stream);
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    test_barrier(t);
    if (registered)
        TEST_OK(t, comm, rondo_comm_deregister(comm, reg));
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    TEST_CUDA(t, cudaStreamDestroy(stream));
    TEST_CUDA(t, cudaFree(in));
    TEST_CUDA(t, cudaFree(out));
}

int main(void)
{
    int bad = 0;

    test_begin("copy_joins", 120);
    setenv("RONDO_ALGO", "allgather=copy", 1);
    setenv("SIM_LATE_COPIES", "100000", 1);
    if (device_none())
        return TEST_SKIPPED;
    for (int registered = 0; registered < 2; registered++)
        bad |= test_run(TEST_PROCESSES, 2, 60, joined, &(bool){registered}) != 0;
    return bad;
}
