/* shim.c's part in which one thread has all devices. */
#include "gpu/shim.h"

#define MOST 4 /* ranks of one thread */

typedef struct all {
    int n, device[MOST];
    ncclComm_t comm[MOST];
    cudaStream_t stream[MOST];
} all_t;

static void all_sum(test_rank_t *t, all_t *a, const ncclComm_t *comm, int grouped, int expected)
{
    int32_t *n[MOST];

    if (grouped)
        NCCL_OK(t, ncclGroupStart());
    for (int r = 0; r < a->n; r++) {
        n[r] = shim_number(t, 1);
        if (comm[r])
            NCCL_OK(t, ncclAllReduce(n[r], n[r], 1, ncclInt, ncclSum, comm[r], a->stream[r]));
    }
    if (grouped)
        NCCL_OK(t, ncclGroupEnd());
    for (int r = 0; r < a->n; r++) {
        TEST_CUDA(t, cudaStreamSynchronize(a->stream[r]));
        TEST_TRUE(t, *n[r] == (comm[r] ? expected : 1));
        device_memory_back(n[r]);
    }
}

static void all_operations(test_rank_t *t, all_t *a)
{
    device_call_t d[MOST];
    uint64_t random = shim_seed + 3;

    for (int what = 0; what < DO_NUM; what++) {
        do_case_t c = {.what = (do_what_t)what, .type = RONDO_FLOAT32, .op = RONDO_SUM, .count = 2000};
        char text[200];

        if (!nccl_posts(c.what))
            continue;
        shim_draw(&c, &random, a->n);
        do_text(&c, text, sizeof text);
        test_note(t, "%d devices, one thread: %s", a->n, text);
        for (int r = 0; r < a->n; r++) {
            TEST_CUDA(t, cudaSetDevice(a->device[r]));
            device_prepare_as(t, &d[r], &c, 0, r, a->n);
            device_fill(t, &d[r], a->stream[r]);
        }
        TEST_CUDA(t, cudaSetDevice(a->device[a->n - 1]));
        NCCL_OK(t, ncclGroupStart());
        for (int r = 0; r < a->n; r++)
            NCCL_OK(t, shim_post(&d[r], a->comm[r], a->stream[r]));
        if (!NCCL_OK(t, ncclGroupEnd()))
            test_stop(t, "cannot go on");
        for (int r = 0; r < a->n; r++) {
            TEST_CUDA(t, cudaSetDevice(a->device[r]));
            device_verify(t, &d[r], 1, a->stream[r]);
            device_release(&d[r]);
        }
    }
}

/* Rank r gives (r + 1) times its scalar. Ops are destroyed before the group ends, and scalars are the device's. */
static void all_operators(test_rank_t *t, all_t *a)
{
    float *value[MOST], *scalar[MOST], sum;
    ncclRedOp_t op;

    for (int residence = 0; residence < 2; residence++) {
        test_note(t, "operators with %s scalars", residence ? "host" : "device");
        sum = 0;
        for (int r = 0; r < a->n; r++) {
            value[r] = device_memory(t, sizeof(float), 1);
            scalar[r] = device_memory(t, sizeof(float), 1);
            *value[r] = (float)(r + 1);
            *scalar[r] = (float)(10 * r + 2);
            sum += *value[r] * *scalar[r];
        }
        NCCL_OK(t, ncclGroupStart());
        for (int r = 0; r < a->n; r++) {
            NCCL_OK(t,
                    ncclRedOpCreatePreMulSum(&op, scalar[r], ncclFloat, (ncclScalarResidence_t)residence, a->comm[r]));
            NCCL_OK(t, ncclAllReduce(value[r], value[r], 1, ncclFloat, op, a->comm[r], a->stream[r]));
            NCCL_OK(t, ncclRedOpDestroy(op, a->comm[r]));
            if (residence == ncclScalarHostImmediate)
                *scalar[r] = -1000; /* read already */
        }
        NCCL_OK(t, ncclGroupEnd());
        for (int r = 0; r < a->n; r++) {
            TEST_CUDA(t, cudaStreamSynchronize(a->stream[r]));
            TEST_TRUE(t, *value[r] == sum);
            device_memory_back(value[r]);
            device_memory_back(scalar[r]);
        }
    }
}

/* Longer messages take longer, and nothing moves. */
static void simulated(test_rank_t *t, all_t *a)
{
    int32_t *n = shim_number(t, 1), *buffer = device_memory(t, 4 << 20, 0);
    float before = a->n > 1 ? 0 : -1;

    for (size_t count = 1; count <= 1 << 20; count <<= 10) {
        ncclSimInfo_t sim = NCCL_SIM_INFO_INITIALIZER;

        test_note(t, "a group of %zu elements that is only simulated", count);
        NCCL_OK(t, ncclGroupStart());
        for (int r = 0; r < a->n; r++) {
            NCCL_OK(t, ncclAllReduce(n, n, 1, ncclInt, ncclSum, a->comm[r], a->stream[r]));
            NCCL_OK(t, ncclAllReduce(buffer, buffer, count, ncclInt, ncclMax, a->comm[r], a->stream[r]));
        }
        NCCL_OK(t, ncclGroupSimulateEnd(&sim));
        TEST_TRUE(t, sim.estimatedTime > before || a->n == 1);
        before = sim.estimatedTime;
    }
    test_note(t, "messages have no price");
    NCCL_OK(t, ncclGroupStart());
    for (int r = 0; r < a->n; r++) {
        NCCL_OK(t, ncclSend(buffer, 1, ncclInt, (r + 1) % a->n, a->comm[r], a->stream[r]));
        NCCL_OK(t, ncclRecv(buffer + 1, 1, ncclInt, (r + a->n - 1) % a->n, a->comm[r], a->stream[r]));
    }
    NCCL_GIVES(t, ncclInvalidUsage, ncclGroupSimulateEnd(NULL));
    for (int r = 0; r < a->n; r++)
        TEST_CUDA(t, cudaStreamSynchronize(a->stream[r]));
    TEST_TRUE(t, *n == 1);
    device_memory_back(n);
    device_memory_back(buffer);
}

/* A graph for each device, captured side by side by one thread, groups over all of them within. */
static void all_graphs(test_rank_t *t, all_t *a)
{
    cudaGraphExec_t exec[MOST];
    cudaGraph_t graph[MOST];
    int32_t *n[MOST];

    test_note(t, "a graph for each device");
    for (int r = 0; r < a->n; r++) {
        n[r] = shim_number(t, 0);
        TEST_CUDA(t, cudaSetDevice(a->device[r]));
        TEST_CUDA(t, cudaStreamBeginCapture(a->stream[r], cudaStreamCaptureModeThreadLocal));
    }
    for (int k = 0; k < 2; k++) {
        NCCL_OK(t, ncclGroupStart());
        for (int r = 0; r < a->n; r++)
            NCCL_OK(t, ncclAllReduce(n[r], n[r], 1, ncclInt, ncclSum, a->comm[r], a->stream[r]));
        NCCL_OK(t, ncclGroupEnd());
    }
    for (int r = 0; r < a->n; r++) {
        TEST_CUDA(t, cudaSetDevice(a->device[r]));
        TEST_CUDA(t, cudaStreamEndCapture(a->stream[r], &graph[r]));
    }
    for (int r = 0; r < a->n; r++) { /* not beside a capture */
        TEST_CUDA(t, cudaSetDevice(a->device[r]));
        TEST_CUDA(t, cudaGraphInstantiate(&exec[r], graph[r], 0));
        TEST_CUDA(t, cudaGraphDestroy(graph[r]));
    }
    for (int k = 1; k <= 3; k++) {
        for (int r = 0; r < a->n; r++)
            *n[r] = k;
        for (int r = 0; r < a->n; r++) {
            TEST_CUDA(t, cudaSetDevice(a->device[r]));
            TEST_CUDA(t, cudaGraphLaunch(exec[r], a->stream[r]));
        }
        for (int r = 0; r < a->n; r++) {
            TEST_CUDA(t, cudaStreamSynchronize(a->stream[r]));
            TEST_TRUE(t, *n[r] == k * a->n * a->n);
        }
    }
    for (int r = 0; r < a->n; r++) {
        TEST_CUDA(t, cudaGraphExecDestroy(exec[r]));
        device_memory_back(n[r]);
    }
}

void shim_one_thread(test_rank_t *t, void *arg)
{
    ncclComm_t part[MOST];
    all_t a = {0};
    int count, now = -1;

    (void)arg;
    TEST_CUDA(t, cudaGetDeviceCount(&count));
    a.n = count < 3 ? count : 3;
    for (int r = 0; r < a.n; r++)
        a.device[r] = a.n - 1 - r;
    TEST_CUDA(t, cudaSetDevice(a.n - 1));
    test_note(t, "%d devices", a.n);
    if (!NCCL_OK(t, ncclCommInitAll(a.comm, a.n, a.device)))
        return;
    TEST_CUDA(t, cudaGetDevice(&now));
    TEST_TRUE(t, now == a.n - 1);
    for (int r = 0; r < a.n; r++) {
        int device = -1, rank = -1;

        NCCL_OK(t, ncclCommCuDevice(a.comm[r], &device));
        NCCL_OK(t, ncclCommUserRank(a.comm[r], &rank));
        TEST_TRUE(t, device == a.device[r] && rank == r);
        TEST_CUDA(t, cudaSetDevice(device));
        shim_memory_first(t);
        a.stream[r] = shim_stream(t);
    }
    all_sum(t, &a, a.comm, 1, a.n);
    all_sum(t, &a, a.comm, 0, a.n); /* each call only enqueues */
    all_operations(t, &a);
    all_operators(t, &a);
    all_graphs(t, &a);
    simulated(t, &a);
    test_note(t, "split in a group");
    NCCL_OK(t, ncclGroupStart());
    for (int r = 0; r < a.n; r++)
        NCCL_OK(t, ncclCommSplit(a.comm[r], r == 1 ? NCCL_SPLIT_NOCOLOR : 4, r, &part[r], NULL));
    NCCL_OK(t, ncclGroupEnd());
    all_sum(t, &a, part, 1, a.n > 1 ? a.n - 1 : 1);
    test_note(t, "destroy in a group");
    NCCL_OK(t, ncclGroupStart());
    for (int r = 0; r < a.n; r++) {
        NCCL_OK(t, ncclCommDestroy(part[r]));
        NCCL_OK(t, ncclCommDestroy(a.comm[r]));
    }
    NCCL_OK(t, ncclGroupEnd());
    device_end(t, NULL, a.stream, a.n);
}
