/* libnccl.so.2 on devices: every operation with NCCL's types and operators, calls on several streams, groups over
 * streams and communicators, configs of single calls, one thread with all devices (shim_one_thread.c), blocking = 0,
 * operators, memory and windows (shim_memory.c), graphs, communicators that are aborted while kernels wait
 * (shim_aborted.c), and calls behind another rank's end, or a revocation (shim_gone.c).
 *
 *   shim [--seed S] [--part NAME]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/shim.h"
#include "nccl/later.h"

uint64_t shim_seed = 1;

int shim_device(test_rank_t *t)
{
    int count;

    TEST_CUDA(t, cudaGetDeviceCount(&count));
    return t->rank % count;
}

void shim_memory_first(test_rank_t *t)
{
    device_memory_back(device_memory(t, 1, 0));
    device_memory_back(device_memory(t, 1, 1));
}

ncclComm_t shim_comm_by(test_rank_t *t, int blocking, int policy)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = NULL;
    ncclResult_t result;
    int device = -1;

    TEST_CUDA(t, cudaSetDevice(shim_device(t)));
    shim_memory_first(t);
    config.blocking = blocking;
    config.CTAPolicy = policy;
    result = ncclCommInitRankConfig(&comm, t->nranks, nccl_id(t), t->rank, &config);
    if (!nccl_result(t, nccl_settled(comm, result), ncclSuccess, "ncclCommInitRankConfig"))
        test_stop(t, "no communicator");
    NCCL_OK(t, ncclCommCuDevice(comm, &device));
    TEST_TRUE(t, device == shim_device(t));
    return comm;
}

ncclComm_t shim_comm(test_rank_t *t, int blocking)
{
    return shim_comm_by(t, blocking, NCCL_CONFIG_UNDEF_INT);
}

cudaStream_t shim_stream(test_rank_t *t)
{
    cudaStream_t stream;

    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

ncclResult_t shim_post(device_call_t *d, ncclComm_t comm, cudaStream_t stream)
{
    do_call_t call = d->call;

    call.send = d->send_block + (d->call.send - d->call.send_block);
    call.recv = d->recv_block + (d->call.recv - d->call.recv_block);
    return nccl_post(&call, comm, stream);
}

void shim_draw(do_case_t *c, uint64_t *random, int nranks)
{
    c->data = do_reduces(c->what) ? REF_ROUNDING : REF_BYTES;
    c->root = (int)test_below(random, (unsigned)nranks);
    c->in_place = do_has_in_place(c->what) && test_below(random, 2);
    c->seed = test_random(random) >> 32;
}

int32_t *shim_number(test_rank_t *t, int32_t value)
{
    int32_t *n = device_memory(t, sizeof *n, 1);

    *n = value;
    return n;
}

void shim_sum_is(test_rank_t *t, ncclComm_t comm, cudaStream_t stream, int expected)
{
    int32_t *n = shim_number(t, 1);

    NCCL_OK(t, nccl_settled(comm, ncclAllReduce(n, n, 1, ncclInt, ncclSum, comm, stream)));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    if (*n != expected)
        test_fail(t, "the sum is %d, not %d", *n, expected);
    device_memory_back(n);
}

/* ---- every operation ---- */

static void one(test_rank_t *t, ncclComm_t comm, cudaStream_t stream, const do_case_t *c)
{
    char text[200];
    device_call_t d;

    do_text(c, text, sizeof text);
    test_note(t, "%d ranks: %s", t->nranks, text);
    device_prepare(t, &d, c, 0);
    device_fill(t, &d, stream);
    if (!NCCL_OK(t, shim_post(&d, comm, stream)))
        test_stop(t, "cannot go on");
    device_verify(t, &d, 1, stream);
    device_release(&d);
}

/* Two in a group by two streams, one alone, and one by each replay of a graph, which holds an address of the library's.
 */
static void in_place(test_rank_t *t, ncclComm_t comm, cudaStream_t stream)
{
    size_t bytes = (size_t)t->nranks * NCCL_PLACE * sizeof(int);
    int *x = device_memory(t, bytes, 1), *y = device_memory(t, bytes, 1);
    cudaStream_t other = shim_stream(t);
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    test_note(t, "all-to-all in place");
    nccl_place(t, x, 0);
    nccl_place(t, y, 1);
    NCCL_OK(t, ncclGroupStart());
    NCCL_OK(t, ncclAlltoAll(x, x, NCCL_PLACE, ncclInt, comm, stream));
    NCCL_OK(t, ncclAlltoAll(y, y, NCCL_PLACE, ncclInt, comm, other));
    NCCL_OK(t, ncclGroupEnd());
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    TEST_CUDA(t, cudaStreamSynchronize(other));
    nccl_placed(t, x, 0);
    nccl_placed(t, y, 1);
    TEST_CUDA(t, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    NCCL_OK(t, ncclAlltoAll(x, x, NCCL_PLACE, ncclInt, comm, stream));
    TEST_CUDA(t, cudaStreamEndCapture(stream, &graph));
    TEST_CUDA(t, cudaGraphInstantiate(&exec, graph, 0));
    for (int round = 2; round < 5; round++) {
        nccl_place(t, x, round);
        nccl_place(t, y, round + 3);
        TEST_CUDA(t, cudaGraphLaunch(exec, stream));
        NCCL_OK(t, ncclAlltoAll(y, y, NCCL_PLACE, ncclInt, comm, stream));
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        nccl_placed(t, x, round);
        nccl_placed(t, y, round + 3);
    }
    device_graphs_destroy(t, &exec, 1);
    TEST_CUDA(t, cudaGraphDestroy(graph));
    TEST_CUDA(t, cudaStreamDestroy(other));
    device_memory_back(y);
    device_memory_back(x);
    test_barrier(t);
}

static void operations(test_rank_t *t, void *arg)
{
    static const size_t counts[] = {1, 0, 515, 2051};
    ncclComm_t comm = shim_comm(t, 1);
    cudaStream_t own = shim_stream(t);
    uint64_t random = shim_seed;
    int cases = 0;

    (void)arg;
    for (int what = 0; what < DO_NUM; what++) {
        for (int type = 0; type < RONDO_NUM_TYPES; type++) {
            if (!nccl_posts((do_what_t)what) || nccl_type((rondo_type_t)type) < 0)
                continue;
            for (int op = 0; op < (do_reduces((do_what_t)what) ? RONDO_NUM_OPS : 1); op++) {
                do_case_t c = {.what = (do_what_t)what, .type = (rondo_type_t)type, .op = (rondo_op_t)op};
                cudaStream_t stream = own;

                if (nccl_op((rondo_op_t)op) < 0)
                    continue;
                c.count = counts[cases++ % 4];
                shim_draw(&c, &random, t->nranks);
                if (t->kind == TEST_PROCESSES && cases % 3) /* threads on one device would share the default stream */
                    stream = cases % 3 == 1 ? NULL : cudaStreamPerThread;
                one(t, comm, stream, &c);
            }
        }
    }
    in_place(t, comm, own);
    NCCL_OK(t, ncclCommFinalize(comm));
    NCCL_OK(t, ncclCommDestroy(comm));
    device_end(t, NULL, &own, 1);
}

/* What job scripts set for NCCL: every operation is served all the same. */
static void settings(test_rank_t *t, void *arg)
{
    uint64_t random = shim_seed + 1;

    (void)arg;
    setenv("NCCL_ALGO", test_below(&random, 2) ? "Ring" : "allreduce:tree,ring;broadcast:ring", 1);
    setenv("NCCL_PROTO", t->nranks == 2 ? "Simple" : "LL128", 1);
    setenv("NCCL_P2P_LEVEL", "NVL", 1);
    setenv("NCCL_BUFFSIZE", "8388608", 1);
    ncclComm_t comm = shim_comm(t, 1);
    cudaStream_t stream = shim_stream(t);
    for (int what = 0; what < DO_NUM; what++)
        for (int type = RONDO_UINT8; nccl_posts((do_what_t)what) && type <= RONDO_BFLOAT16; type++) {
            do_case_t c = {.what = (do_what_t)what, .type = (rondo_type_t)type, .count = 2500};

            shim_draw(&c, &random, t->nranks);
            if (nccl_type(c.type) >= 0)
                one(t, comm, stream, &c);
        }
    NCCL_OK(t, ncclCommDestroy(comm));
    device_end(t, NULL, &stream, 1);
}

/* ---- streams and groups ---- */

/* Calls on several streams take effect in the order in which they came. */
static void streams(test_rank_t *t, void *arg)
{
    enum { STREAMS = 3, ROUNDS = 4 };
    ncclComm_t comm = shim_comm(t, 1);
    cudaStream_t stream[STREAMS];
    int32_t *n = shim_number(t, 1), expected = 1;

    (void)arg;
    for (int i = 0; i < STREAMS; i++)
        stream[i] = shim_stream(t);
    test_note(t, "one number through %d streams", STREAMS);
    for (int i = 0; i < ROUNDS * STREAMS; i++) {
        NCCL_OK(t, ncclAllReduce(n, n, 1, ncclInt, ncclSum, comm, stream[i % STREAMS]));
        expected *= t->nranks;
    }
    TEST_CUDA(t, cudaStreamSynchronize(stream[STREAMS - 1]));
    TEST_TRUE(t, *n == expected);
    /* Not waited for: destroy does. */
    NCCL_OK(t, ncclAllReduce(n, n, 1, ncclInt, ncclMax, comm, stream[0]));
    NCCL_OK(t, ncclCommDestroy(comm));
    TEST_TRUE(t, *n == expected);
    device_end(t, NULL, stream, STREAMS);
}

/* A group of all that there is, over two communicators and three streams. */
static void groups(test_rank_t *t, void *arg)
{
    enum { STREAMS = 3, CALLS = 9 };
    ncclComm_t comm[2] = {shim_comm(t, 1), shim_comm(t, 0)};
    cudaStream_t stream[STREAMS];
    device_call_t d[CALLS];
    uint64_t random = shim_seed + 7;

    (void)arg;
    for (int i = 0; i < STREAMS; i++)
        stream[i] = shim_stream(t);
    for (int round = 0; round < 4; round++) {
        test_note(t, "group %d", round);
        for (int i = 0; i < CALLS; i++) {
            do_case_t c = {.type = RONDO_FLOAT32, .op = RONDO_SUM};

            do
                c.what = (do_what_t)test_below(&random, DO_NUM);
            while (!nccl_posts(c.what));
            c.count = test_below(&random, 3000);
            shim_draw(&c, &random, t->nranks);
            device_prepare(t, &d[i], &c, 0);
            device_fill(t, &d[i], stream[i % STREAMS]);
        }
        NCCL_OK(t, ncclGroupStart());
        for (int i = 0; i < CALLS; i++)
            NCCL_OK(t, shim_post(&d[i], comm[i / 2 % 2], stream[i % STREAMS]));
        if (!NCCL_OK(t, ncclGroupEnd()))
            test_stop(t, "cannot go on");
        for (int i = 0; i < CALLS; i++) {
            device_verify(t, &d[i], 1, stream[i % STREAMS]);
            device_release(&d[i]);
        }
    }
    NCCL_OK(t, ncclCommDestroy(comm[1]));
    NCCL_OK(t, ncclCommDestroy(comm[0]));
    device_end(t, NULL, stream, STREAMS);
}

/* What kernels cannot reach is refused, and a group that holds such a call is refused whole. */
static void wrong(test_rank_t *t, void *arg)
{
    static int32_t pageable;
    ncclComm_t comm = shim_comm(t, 1);
    cudaStream_t stream = shim_stream(t);
    int32_t *n = shim_number(t, 5);
    ncclResult_t error = ncclInternalError;

    (void)arg;
    test_note(t, "a pageable buffer");
    NCCL_GIVES(t, ncclInvalidArgument, ncclAllReduce(&pageable, n, 1, ncclInt, ncclSum, comm, stream));
    TEST_TRUE(t, strstr(ncclGetLastError(comm), "pageable") != NULL);
    NCCL_OK(t, ncclGroupStart());
    NCCL_OK(t, ncclAllReduce(n, n, 1, ncclInt, ncclSum, comm, stream));
    (void)ncclAllReduce(n, &pageable, 1, ncclInt, ncclSum, comm, stream);
    NCCL_GIVES(t, ncclInvalidArgument, ncclGroupEnd());
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    TEST_TRUE(t, *n == 5);
    NCCL_OK(t, ncclCommGetAsyncError(comm, &error));
    TEST_TRUE(t, error == ncclSuccess);
    shim_sum_is(t, comm, stream, t->nranks); /* unharmed */
    NCCL_OK(t, ncclCommDestroy(comm));
    device_end(t, NULL, &stream, 1);
}

/* ---- a config for one call ---- */

/* Rank 0 calls first, and its event is there while it waits for the others. Budgets change no result. */
static void per_call(test_rank_t *t, void *arg)
{
    ncclCollConfig_t config = {.size = sizeof config,
                               .magic = NCCL_API_MAGIC,
                               .version = 23203,
                               .minCTAs = 1,
                               .maxCTAs = 2,
                               .nvlsCTAs = NCCL_CONFIG_UNDEF_INT,
                               .cgaClusterSize = NCCL_CONFIG_UNDEF_INT,
                               .forceAlgSelection = 1,
                               .CTAPolicy = NCCL_CONFIG_UNDEF_INT};
    ncclComm_t comm = shim_comm(t, 1);
    cudaStream_t stream = shim_stream(t);
    int32_t *n = shim_number(t, 0);

    (void)arg;
    TEST_CUDA(t, cudaEventCreateWithFlags(&config.launchCompletionEvent, cudaEventDisableTiming));
    shim_sum_is(t, comm, stream, t->nranks); /* what the first call makes is there */
    for (int grouped = 0; grouped < 2; grouped++) {
        test_note(t, grouped ? "in a group" : "alone");
        *n = t->rank + 1;
        for (int turn = 0; turn < 2; turn++) {
            test_barrier(t);
            if ((t->rank != 0) != turn)
                continue;
            NCCL_OK(t, grouped ? ncclGroupStart() : ncclSuccess);
            NCCL_OK(t, pncclAllReduceConfig(n, n, 1, ncclInt, ncclSum, comm, stream, &config));
            NCCL_OK(t, grouped ? ncclGroupEnd() : ncclSuccess);
            TEST_CUDA(t, cudaEventSynchronize(config.launchCompletionEvent));
            if (turn == 0)
                TEST_TRUE(t, cudaStreamQuery(stream) == cudaErrorNotReady);
        }
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        TEST_TRUE(t, *n == t->nranks * (t->nranks + 1) / 2);
    }
    test_note(t, "copy engines");
    int32_t *all = device_memory(t, (size_t)t->nranks * sizeof *all, 1);
    config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
    *n = t->rank;
    NCCL_OK(t, pncclAllGatherConfig(n, all, 1, ncclInt, comm, stream, &config));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    TEST_CUDA(t, cudaEventQuery(config.launchCompletionEvent));
    for (int r = 0; r < t->nranks; r++)
        TEST_TRUE(t, all[r] == r);
    device_memory_back(all);
    device_memory_back(n);
    TEST_CUDA(t, cudaEventDestroy(config.launchCompletionEvent));
    NCCL_OK(t, ncclCommDestroy(comm));
    device_end(t, NULL, &stream, 1);
}

/* ---- communicators from communicators, blocking = 0 ---- */

static void derived(test_rank_t *t, void *arg)
{
    ncclComm_t comm = shim_comm(t, 0), part = NULL;
    int last = t->nranks - 1, device = -1;
    cudaStream_t stream = shim_stream(t);

    (void)arg;
    shim_sum_is(t, comm, stream, t->nranks);
    test_note(t, "split");
    NCCL_OK(t, nccl_settled(comm, ncclCommSplit(comm, t->rank == last ? NCCL_SPLIT_NOCOLOR : 1, 0, &part, NULL)));
    TEST_TRUE(t, (part == NULL) == (t->rank == last));
    if (part) {
        NCCL_OK(t, nccl_settled(part, ncclInProgress));
        shim_sum_is(t, part, stream, last);
        NCCL_OK(t, nccl_settled(part, ncclCommFinalize(part)));
        NCCL_OK(t, ncclCommDestroy(part));
    }
    for (int i = 0; i < 5; i++) {
        test_note(t, "split, and only the new communicator is waited for"); /* as XLA does */
        ncclResult_t result = ncclCommSplit(comm, 0, 0, &part, NULL);
        NCCL_OK(t, nccl_settled(part, result));
        shim_sum_is(t, comm, stream, t->nranks);
        shim_sum_is(t, part, stream, t->nranks);
        NCCL_OK(t, ncclCommDestroy(part));
    }
    test_note(t, "shrink");
    if (t->rank != last) {
        NCCL_OK(t, nccl_settled(comm, ncclCommShrink(comm, &last, 1, &part, NULL, NCCL_SHRINK_DEFAULT)));
        shim_sum_is(t, part, stream, last);
        NCCL_OK(t, ncclCommCuDevice(part, &device));
        TEST_TRUE(t, device == shim_device(t));
        NCCL_OK(t, ncclCommDestroy(part));
    }
    shim_sum_is(t, comm, stream, t->nranks);
    NCCL_OK(t, nccl_settled(comm, ncclCommFinalize(comm)));
    NCCL_OK(t, ncclCommDestroy(comm));
    device_end(t, NULL, &stream, 1);
    if (sim_contexts && t->kind == TEST_PROCESSES)
        TEST_TRUE(t, sim_contexts() == 1u << shim_device(t)); /* threads of the library went to no other device */
}

/* The last rank comes new to those before it, with the id of one of them; what they had is as it was. */
static void grown(test_rank_t *t, void *arg)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    int last = t->nranks - 1, rank = -1, device = -1;
    ncclComm_t comm = shim_comm(t, 1), members = NULL, made = NULL;
    cudaStream_t stream = shim_stream(t);

    (void)arg;
    NCCL_OK(t, ncclCommSplit(comm, t->rank == last ? NCCL_SPLIT_NOCOLOR : 0, 0, &members, NULL));
    for (config.blocking = 0; config.blocking <= 1; config.blocking++) {
        ncclUniqueId id;
        unsigned char *bytes = device_memory(t, sizeof id, 1); /* the others' are 0, and the sum is the id */
        test_note(t, "grow, blocking %d", config.blocking);
        memset(&id, 0, sizeof id);
        if (t->rank == config.blocking)
            NCCL_OK(t, pncclCommGetUniqueId(members, &id));
        memcpy(bytes, &id, sizeof id);
        NCCL_OK(t, ncclAllReduce(bytes, bytes, sizeof id, ncclUint8, ncclSum, comm, stream));
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        memcpy(&id, bytes, sizeof id);
        ncclResult_t result =
            pncclCommGrow(members, t->nranks, members ? NULL : &id, members ? -1 : last, &made, &config);
        NCCL_OK(t, nccl_settled(made, result));
        shim_sum_is(t, made, stream, t->nranks);
        NCCL_OK(t, ncclCommUserRank(made, &rank));
        NCCL_OK(t, ncclCommCuDevice(made, &device));
        TEST_TRUE(t, rank == t->rank && device == shim_device(t));
        if (members)
            shim_sum_is(t, members, stream, last);
        NCCL_OK(t, ncclCommDestroy(made));
        device_memory_back(bytes);
    }
    if (members)
        NCCL_OK(t, ncclCommDestroy(members));
    NCCL_OK(t, ncclCommDestroy(comm));
    device_end(t, NULL, &stream, 1);
}

/* ---- graphs ---- */

/* What a step of training records: sums, one by an operator that is gone when the graph runs, and an exchange. */
static void graph_one(test_rank_t *t, ncclComm_t comm, cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    const int n = t->nranks, next = (t->rank + 1) % n, before = (t->rank + n - 1) % n;
    float *sum = device_memory(t, sizeof *sum, 1), *scaled = device_memory(t, sizeof *scaled, 1), two = 2;
    int32_t *out = shim_number(t, 0), *in = shim_number(t, 0);
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    ncclRedOp_t op;

    TEST_CUDA(t, cudaStreamBeginCapture(stream, mode));
    NCCL_OK(t, ncclAllReduce(sum, sum, 1, ncclFloat, ncclSum, comm, stream));
    NCCL_OK(t, ncclRedOpCreatePreMulSum(&op, &two, ncclFloat, ncclScalarHostImmediate, comm));
    NCCL_OK(t, ncclAllReduce(sum, scaled, 1, ncclFloat, op, comm, stream));
    NCCL_OK(t, ncclRedOpDestroy(op, comm));
    NCCL_OK(t, ncclGroupStart());
    NCCL_OK(t, ncclSend(out, 1, ncclInt, next, comm, stream));
    NCCL_OK(t, ncclRecv(in, 1, ncclInt, before, comm, stream));
    NCCL_OK(t, ncclGroupEnd());
    TEST_CUDA(t, cudaStreamEndCapture(stream, &graph));
    TEST_CUDA(t, cudaGraphInstantiate(&exec, graph, 0));
    TEST_CUDA(t, cudaGraphDestroy(graph));
    two = 7; /* read already */
    for (int k = 1; k <= 3; k++) {
        test_note(t, "capture mode %d, replay %d", (int)mode, k);
        *sum = (float)k;
        *out = 10 * k + t->rank;
        TEST_CUDA(t, cudaGraphLaunch(exec, stream));
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        TEST_TRUE(t, *sum == (float)(k * n) && *scaled == (float)(2 * k * n * n) && *in == 10 * k + before);
        shim_sum_is(t, comm, stream, n); /* a plain call in between */
    }
    device_graphs_destroy(t, &exec, 1);
    device_memory_back(sum);
    device_memory_back(scaled);
    device_memory_back(out);
    device_memory_back(in);
}

/* A communicator's first operation, which asks its stream, while another stream is captured: neither harms the other.
 */
static void graph_beside(test_rank_t *t, cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    cudaStream_t other = shim_stream(t);
    ncclComm_t comm = shim_comm(t, 1);
    int32_t *n = shim_number(t, 1);
    cudaGraph_t graph;

    test_note(t, "the first operation beside a capture of mode %d", (int)mode);
    TEST_CUDA(t, cudaStreamBeginCapture(other, mode));
    NCCL_OK(t, ncclAllReduce(n, n, 1, ncclInt, ncclSum, comm, stream));
    TEST_CUDA(t, cudaStreamEndCapture(other, &graph));
    TEST_CUDA(t, cudaGraphDestroy(graph));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    TEST_TRUE(t, *n == t->nranks);
    device_memory_back(n);
    NCCL_OK(t, ncclCommDestroy(comm));
    TEST_CUDA(t, cudaStreamDestroy(other));
}

static void graphs(test_rank_t *t, void *arg)
{
    ncclComm_t comm = shim_comm(t, t->kind == TEST_PROCESSES);
    cudaStream_t stream = shim_stream(t);

    (void)arg;
    graph_beside(t, stream, t->kind == TEST_PROCESSES ? cudaStreamCaptureModeGlobal : cudaStreamCaptureModeThreadLocal);
    shim_sum_is(t, comm, stream, t->nranks);
    graph_one(t, comm, stream, cudaStreamCaptureModeThreadLocal);
    graph_one(t, comm, stream, cudaStreamCaptureModeRelaxed);
    if (t->kind == TEST_PROCESSES) /* it would forbid other ranks' threads their memory */
        graph_one(t, comm, stream, cudaStreamCaptureModeGlobal);
    NCCL_OK(t, ncclCommDestroy(comm));
    device_end(t, NULL, &stream, 1);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        test_body_fn body;
        int ranks, kinds;
    } parts[] = {
        {"operations", operations, 2, 1},    {"operations", operations, 3, 2}, {"streams", streams, 3, 3},
        {"settings", settings, 2, 1},        {"settings", settings, 3, 1},     {"groups", groups, 2, 3},
        {"per_call", per_call, 3, 3},        {"wrong", wrong, 2, 1},           {"one_thread", shim_one_thread, 1, 1},
        {"derived", derived, 3, 3},          {"grown", grown, 3, 3},           {"memory", shim_memory, 2, 3},
        {"pointers", shim_pointers, 2, 1},   {"signals", shim_signals, 2, 3},  {"graphs", graphs, 2, 3},
        {"aborted", shim_aborted, 3, 3},     {"behind", shim_behind, 2, 3},    {"watched", shim_watched, 3, 3},
        {"gone", shim_gone, 3, 3},           {"traps", shim_traps, 2, 1},      {"lost", shim_lost, 2, 1},
        {"unmatched", shim_unmatched, 2, 3}, {"shrunk", shim_shrunk, 3, 3},    {"resplit", shim_resplit, 3, 3},
    };
    const char *only = NULL;
    int bad = 0;

    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
            shim_seed = strtoull(argv[i + 1], NULL, 0);
        else if (i + 1 < argc && strcmp(argv[i], "--part") == 0)
            only = argv[i + 1];
        else
            return 2;
    }
    test_begin("shim", 400);
    if (strcmp(getenv("RONDO_DEBUG"), "none") == 0)
        setenv("NCCL_DEBUG", "NONE", 0);
    if (device_none())
        return TEST_SKIPPED;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && bad == 0; i++)
        for (int kind = TEST_PROCESSES; kind <= TEST_THREADS && bad == 0; kind++) {
            int64_t began = test_clock_us();
            if (!(parts[i].kinds & 1 << kind) || (only && strcmp(only, parts[i].name) != 0))
                continue;
            bad += test_run((test_kind_t)kind, parts[i].ranks, 120, parts[i].body, NULL);
            printf("shim: %s, %d %s, seed %llu: %s, %.1f s\n", parts[i].name, parts[i].ranks,
                   test_kind_name((test_kind_t)kind), (unsigned long long)shim_seed, bad ? "WRONG" : "right",
                   (double)(test_clock_us() - began) * 1e-6);
        }
    if (bad == 0 && (!only || strcmp(only, "killed") == 0))
        bad += shim_gone_killed();
    return bad != 0;
}
