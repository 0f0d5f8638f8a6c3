/* RONDO_CHECK=1 on devices: the last rank to ask for something else than the others is told so before its kernel
 * starts, with the ranks and the field; the others' kernels, which wait for it, leave, and their next call says the
 * same. Between nodes nobody is told at once, and all are soon, also where one replays something else than the others
 * call. Ranks that ask alike notice nothing, in groups and graphs too, nor when one replays what the others call, nor
 * when one's host is ahead of its stream by more than the time limit.
 *
 *   asked [--nodes]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/device.h"

typedef enum { NOTHING, OPERATION, COUNT, TYPE, OP, ROOT, V_OPERATION, NUM_FIELDS } field_t;

static const char *const field_names[NUM_FIELDS] = {"nothing", "operation", "count", "type", "op", "root", "operation"};

typedef struct plan {
    field_t field;
    int odd, group; /* which rank differs; in a group of several operations? */
    int nodes;      /* are there several? */
    int replays;    /* does the rank that differs do so by a graph? */
} plan_t;

static rondo_result_t call(const plan_t *p, int differs, rondo_comm_t comm, float *buffer, cudaStream_t stream)
{
    size_t count = differs && p->field == COUNT ? 101 : 100;
    rondo_type_t type = differs && p->field == TYPE ? RONDO_INT32 : RONDO_FLOAT32;
    rondo_op_t op = differs && p->field == OP ? RONDO_MAX : RONDO_SUM;
    int root = differs && p->field == ROOT ? 0 : 1;

    if (p->field == V_OPERATION && !differs)
        return rondo_alltoall(buffer, buffer + 1000, 20, RONDO_FLOAT32, comm, stream);
    if (p->field == ROOT || (p->field == OPERATION && differs))
        return rondo_reduce(buffer, buffer + 1000, count, type, op, root, comm, stream);
    return rondo_allreduce(buffer, buffer + 1000, count, type, op, comm, stream);
}

static void end_capture(test_rank_t *t, cudaStream_t stream, cudaGraphExec_t *exec)
{
    cudaGraph_t graph;

    TEST_CUDA(t, cudaStreamEndCapture(stream, &graph));
    TEST_CUDA(t, cudaGraphInstantiate(exec, graph, 0));
    TEST_CUDA(t, cudaGraphDestroy(graph));
}

static rondo_result_t run(const plan_t *p, int differs, rondo_comm_t comm, float *buffer, cudaStream_t stream)
{
    rondo_result_t result, end;

    if (!p->group)
        return call(p, differs, comm, buffer, stream);
    result = rondo_group_start();
    if (result == RONDO_SUCCESS)
        result = rondo_allreduce(buffer, buffer, 64, RONDO_FLOAT32, RONDO_SUM, comm, stream);
    if (result == RONDO_SUCCESS)
        result = call(p, differs, comm, buffer, stream);
    end = rondo_group_end();
    return result != RONDO_SUCCESS ? result : end;
}

static void alike(test_rank_t *t, rondo_comm_t comm, float *buffer, cudaStream_t stream)
{
    cudaGraphExec_t exec;

    for (size_t i = 0; i < 5; i++) {
        TEST_OK(t, comm, rondo_allreduce(buffer, buffer, i * 10, RONDO_FLOAT32, RONDO_SUM, comm, stream));
        TEST_OK(t, comm, rondo_barrier(comm, stream));
    }
    TEST_CUDA(t, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 3; i++)
        TEST_OK(t, comm, rondo_allreduce(buffer, buffer, 10, RONDO_FLOAT32, RONDO_SUM, comm, stream));
    end_capture(t, stream, &exec);
    TEST_CUDA(t, cudaGraphLaunch(exec, stream));
    TEST_OK(t, comm, rondo_barrier(comm, stream));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    device_graphs_destroy(t, &exec, 1);
}

/* Rank 0 replays what the others call, and has captured what it never launches. The calls behind that have other
 * numbers on rank 0, and still are right. */
static void captured_alone(test_rank_t *t, rondo_comm_t comm, float *buffer, cudaStream_t stream)
{
    cudaGraphExec_t exec[2] = {NULL, NULL};

    test_note(t, "rank 0 alone captures");
    for (int i = 0; i < 2 && t->rank == 0; i++) {
        TEST_CUDA(t, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        TEST_OK(t, comm, rondo_allreduce(buffer, buffer, 10, RONDO_FLOAT32, RONDO_SUM, comm, stream));
        end_capture(t, stream, &exec[i]);
    }
    for (int i = 0; i < 3; i++) {
        if (t->rank == 0)
            TEST_CUDA(t, cudaGraphLaunch(exec[0], stream));
        else
            TEST_OK(t, comm, rondo_allreduce(buffer, buffer, 10, RONDO_FLOAT32, RONDO_SUM, comm, stream));
        TEST_OK(t, comm, rondo_reduce(buffer, buffer, 20, RONDO_FLOAT32, RONDO_SUM, 0, comm, stream));
        TEST_OK(t, comm, rondo_barrier(comm, stream));
    }
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    device_graphs_destroy(t, exec, t->rank == 0 ? 2 : 0);
    TEST_OK(t, comm, rondo_barrier(comm, stream));
}

/* The call in which it differs, by a graph. */
static void replay(test_rank_t *t, const plan_t *p, rondo_comm_t comm, float *buffer, cudaStream_t stream)
{
    cudaGraphExec_t exec;

    TEST_CUDA(t, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    TEST_OK(t, comm, run(p, 1, comm, buffer, stream));
    end_capture(t, stream, &exec);
    TEST_CUDA(t, cudaGraphLaunch(exec, stream));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    device_graphs_destroy(t, &exec, 1);
}

static void sentence(test_rank_t *t, const plan_t *p, const char *said)
{
    char odd[32];

    snprintf(odd, sizeof odd, "rank %d", p->odd);
    if (!strstr(said, field_names[p->field]) || !strstr(said, odd))
        test_fail(t, "the sentence must name %s and %s: \"%s\"", field_names[p->field], odd, said);
}

/* Between nodes a call says it when the proxies have found it: soon. */
static void told_soon(test_rank_t *t, const plan_t *p, rondo_comm_t comm)
{
    rondo_result_t error = RONDO_SUCCESS;

    while (p->nodes && error == RONDO_SUCCESS) /* or the test is out of time */
        TEST_OK(t, comm, rondo_comm_get_error(comm, &error));
}

/* The rank that is told launches nothing of its group, not even what comes before the call in which it differs. */
static void launched_nothing(test_rank_t *t, const float *buffer)
{
    float first;

    TEST_CUDA(t, cudaMemcpy(&first, buffer, sizeof first, cudaMemcpyDefault));
    if (first != 1)
        test_fail(t, "the sum of a group that is refused became %g", (double)first);
}

static void body(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    rondo_comm_t comm = device_comm(t);
    float *buffer = device_memory(t, 64 << 10, 0);
    cudaStream_t stream;
    const float one = 1;
    int differs = t->rank == p->odd && p->field != NOTHING;
    rondo_result_t error;

    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    alike(t, comm, buffer, stream);
    TEST_CUDA(t, cudaMemcpyAsync(buffer, &one, sizeof one, cudaMemcpyDefault, stream));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    test_note(t, "rank %d differs in %s%s", p->odd, field_names[p->field], p->group ? ", in a group" : "");
    if (differs)
        test_barrier(t);
    if (differs && p->replays)
        replay(t, p, comm, buffer, stream);
    else
        test_result(t, comm, run(p, differs, comm, buffer, stream),
                    differs && !p->nodes ? RONDO_ERR_MISMATCH : RONDO_SUCCESS, test_noted(t));
    if (!differs)
        test_barrier(t);
    TEST_CUDA(t, cudaStreamSynchronize(stream)); /* kernels that wait leave */
    if (differs && p->group && !p->nodes)
        launched_nothing(t, buffer);
    if (p->field != NOTHING) {
        told_soon(t, p, comm);
        TEST_GIVES(t, comm, RONDO_ERR_MISMATCH, rondo_barrier(comm, stream));
        sentence(t, p, rondo_last_error(comm));
        TEST_OK(t, comm, rondo_comm_get_error(comm, &error));
        TEST_TRUE(t, error == RONDO_ERR_MISMATCH);
    } else {
        TEST_OK(t, comm, rondo_barrier(comm, stream));
        captured_alone(t, comm, buffer, stream);
    }
    rondo_comm_destroy(comm);
    device_end(t, NULL, &stream, 1);
}

static void rest(void *seconds)
{
    sleep(*(unsigned *)seconds);
}

/* The first rank asks at once, behind what keeps its stream for longer than the time limit; the other one as late. */
static void ahead(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = device_comm(t);
    float *buffer = device_memory(t, 4096, 0);
    unsigned seconds = 3;
    cudaStream_t stream;

    (void)arg;
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    test_barrier(t);
    test_note(t, "a host that is ahead");
    if (t->rank == 0)
        TEST_CUDA(t, cudaLaunchHostFunc(stream, rest, &seconds));
    else
        rest(&seconds);
    for (int i = 0; i < 40; i++) /* more than are compared at a time */
        TEST_OK(t, comm, rondo_allreduce(buffer, buffer, 10, RONDO_FLOAT32, RONDO_SUM, comm, stream));
    TEST_OK(t, comm, rondo_barrier(comm, stream));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    device_end(t, comm, &stream, 1);
}

static int ahead_run(void)
{
    int nranks = device_nodes("1+1");

    setenv("RONDO_TIMEOUT_MS", "1500", 1);
    int bad = test_run(TEST_PROCESSES, nranks, 60, ahead, NULL);
    unsetenv("RONDO_TIMEOUT_MS");
    return bad;
}

/* On nodes of one rank, and on two of two ranks, which do what they can inside. */
static int between_nodes(plan_t p)
{
    int bad = ahead_run(), n = 0;

    p.nodes = 1;
    for (p.field = NOTHING; p.field < NUM_FIELDS && bad == 0; p.field++)
        for (p.group = 0; p.group < 2 && bad == 0; p.group++, n++) {
            int nranks = device_nodes(n % 2 ? "1+1" : "2+2");
            p.odd = n / 2 % nranks;
            p.replays = n / 2 % 2;
            bad += test_run(TEST_PROCESSES, nranks, 60, body, &p);
        }
    return bad;
}

int main(int argc, char **argv)
{
    plan_t p = {.nodes = 0};
    int bad = 0, n = 0;

    test_begin("asked", 400);
    setenv("RONDO_CHECK", "1", 1);
    if (device_none())
        return TEST_SKIPPED;
    if (argc > 1)
        return strcmp(argv[1], "--nodes") == 0 ? between_nodes(p) != 0 : 2;
    for (p.field = NOTHING; p.field < NUM_FIELDS && bad == 0; p.field++)
        for (p.group = 0; p.group < 2 && bad == 0; p.group++, n++) {
            int nranks = 2 + n % 2;
            p.odd = n % nranks;
            bad += test_run(n / 2 % 2 ? TEST_THREADS : TEST_PROCESSES, nranks, 60, body, &p);
        }
    return bad != 0;
}
