/* Long groups: more messages than a kernel's arguments hold, which the peers group otherwise; by one stream and by many;
 * from graphs, whose launches outlive all that the host had in its hands when it made them; and one message too many.
 *
 *   long_groups
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device.h"

#define MESSAGES 300 /* to the next rank */
#define MOST 1100    /* ints of a message */
#define STREAMS 40

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
    cudaStream_t stream[STREAMS];
    int next, previous;
    int *out, *in;   /* device memory, message after message */
    int *out_host, *in_host;
    size_t ints;     /* of all messages */
} world_t;

/* Nothing now and then; the lengths are the same on all ranks. */
static size_t length(int i)
{
    return i % 17 == 5 ? 0 : i % 10 == 7 ? MOST - (size_t)i % 50 : 1 + (size_t)i % 60;
}

static size_t place(int i)
{
    size_t at = 0;

    for (int k = 0; k < i; k++)
        at += length(k);
    return at;
}

static int value(int from, int round, size_t at)
{
    return from * 100000000 + round * 1000000 + (int)at;
}

static void post_send(world_t *w, int i, cudaStream_t stream)
{
    TEST_OK(w->t, w->comm, rondo_send(w->out + place(i), length(i), RONDO_INT32, w->next, w->comm, stream));
}

static void post_recv(world_t *w, int i, cudaStream_t stream)
{
    TEST_OK(w->t, w->comm, rondo_recv(w->in + place(i), length(i), RONDO_INT32, w->previous, w->comm, stream));
}

static void fill(world_t *w, int round, cudaStream_t stream)
{
    TEST_CUDA(w->t, cudaStreamSynchronize(stream)); /* what was copied last is there */
    for (size_t i = 0; i < w->ints; i++)
        w->out_host[i] = value(w->t->rank, round, i);
    TEST_CUDA(w->t, cudaMemcpyAsync(w->out, w->out_host, w->ints * sizeof(int), cudaMemcpyDefault, stream));
    TEST_CUDA(w->t, cudaMemsetAsync(w->in, 0xff, w->ints * sizeof(int), stream));
}

static void verify(world_t *w, int round, cudaStream_t stream)
{
    TEST_CUDA(w->t, cudaMemcpyAsync(w->in_host, w->in, w->ints * sizeof(int), cudaMemcpyDefault, stream));
    TEST_CUDA(w->t, cudaStreamSynchronize(stream));
    for (size_t i = 0; i < w->ints; i++) {
        if (w->in_host[i] != value(w->previous, round, i))
            test_stop(w->t, "round %d: int %zu is %d, should be %d", round, i, w->in_host[i],
                      value(w->previous, round, i));
    }
}

/* Rank 0 has all in one group; rank 1 receives all that it is to receive, then sends, in two groups; the others have as
 * many groups as there are sevens. */
static void post_all(world_t *w, cudaStream_t stream)
{
    int rank = w->t->rank, each = rank == 0 ? MESSAGES : 7;

    if (rank == 1) {
        TEST_OK(w->t, NULL, rondo_group_start());
        for (int i = 0; i < MESSAGES; i++)
            post_recv(w, i, stream);
        TEST_OK(w->t, NULL, rondo_group_end());
        TEST_OK(w->t, NULL, rondo_group_start());
        for (int i = 0; i < MESSAGES; i++)
            post_send(w, i, stream);
        TEST_OK(w->t, NULL, rondo_group_end());
        return;
    }
    for (int first = 0; first < MESSAGES; first += each) {
        TEST_OK(w->t, NULL, rondo_group_start());
        for (int i = first; i < first + each && i < MESSAGES; i++) {
            post_recv(w, i, stream);
            post_send(w, i, stream);
        }
        TEST_OK(w->t, NULL, rondo_group_end());
    }
}

static void plain(world_t *w)
{
    for (int round = 0; round < 3; round++) {
        test_note(w->t, "round %d", round);
        fill(w, round, w->stream[0]);
        post_all(w, w->stream[0]);
        verify(w, round, w->stream[0]);
    }
}

/* Each message in a stream of its own, as far as there are streams, with its data behind a copy in that stream. */
static void streams(world_t *w)
{
    fill(w, 3, w->stream[0]);
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream[0]));
    TEST_CUDA(w->t, cudaMemsetAsync(w->out, 0xee, w->ints * sizeof(int), w->stream[0]));
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream[0]));
    for (int i = 0; i < MESSAGES; i++)
        TEST_CUDA(w->t, cudaMemcpyAsync(w->out + place(i), w->out_host + place(i), length(i) * sizeof(int),
                                        cudaMemcpyDefault, w->stream[i % STREAMS]));
    TEST_OK(w->t, NULL, rondo_group_start());
    for (int i = 0; i < MESSAGES; i++) {
        post_send(w, i, w->stream[i % STREAMS]);
        post_recv(w, i, w->stream[(i + 13) % STREAMS]);
    }
    TEST_OK(w->t, NULL, rondo_group_end());
    for (int i = 0; i < MESSAGES; i++) /* behind the group in the stream that the message was received in */
        TEST_CUDA(w->t, cudaMemcpyAsync(w->in_host + place(i), w->in + place(i), length(i) * sizeof(int),
                                        cudaMemcpyDefault, w->stream[(i + 13) % STREAMS]));
    for (int i = 0; i < STREAMS; i++)
        TEST_CUDA(w->t, cudaStreamSynchronize(w->stream[i]));
    for (size_t i = 0; i < w->ints; i++) {
        if (w->in_host[i] != value(w->previous, 3, i))
            test_stop(w->t, "streams: int %zu is %d", i, w->in_host[i]);
    }
}

/* Two graphs of the same messages in turns, with a plain group between. */
static void graphs(world_t *w)
{
    cudaStream_t stream = w->stream[1];
    cudaGraphExec_t exec[2];
    cudaGraph_t graph;

    for (int i = 0; i < 2; i++) {
        TEST_CUDA(w->t, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        post_all(w, stream);
        TEST_CUDA(w->t, cudaStreamEndCapture(stream, &graph));
        TEST_CUDA(w->t, cudaGraphInstantiate(&exec[i], graph, 0));
        TEST_CUDA(w->t, cudaGraphDestroy(graph));
    }
    for (int round = 4; round < 10; round++) {
        test_note(w->t, "replay %d", round);
        fill(w, round, stream);
        if (round % 3 == 2)
            post_all(w, stream);
        else
            TEST_CUDA(w->t, cudaGraphLaunch(exec[round % 2], stream));
        verify(w, round, stream);
    }
    device_graphs_destroy(w->t, exec, 2);
}

/* More than there may be: refused whole, and nothing has happened. */
static void too_many(world_t *w)
{
    TEST_OK(w->t, NULL, rondo_group_start());
    for (int i = 0; i < 130000; i++)
        TEST_OK(w->t, w->comm, rondo_send(w->out, 1, RONDO_INT32, w->next, w->comm, w->stream[0]));
    TEST_GIVES(w->t, w->comm, RONDO_ERR_UNSUPPORTED, rondo_group_end());
    fill(w, 11, w->stream[0]);
    post_all(w, w->stream[0]);
    verify(w, 11, w->stream[0]);
}

static void body(test_rank_t *t, void *arg)
{
    world_t w = {.t = t, .next = (t->rank + 1) % t->nranks, .previous = (t->rank + t->nranks - 1) % t->nranks};

    (void)arg;
    w.comm = device_comm(t);
    w.ints = place(MESSAGES);
    w.out = device_memory(t, w.ints * sizeof(int), 0);
    w.in = device_memory(t, w.ints * sizeof(int), 0);
    w.out_host = device_memory(t, w.ints * sizeof(int), 1);
    w.in_host = device_memory(t, w.ints * sizeof(int), 1);
    for (int i = 0; i < STREAMS; i++)
        TEST_CUDA(t, cudaStreamCreateWithFlags(&w.stream[i], cudaStreamNonBlocking));
    test_barrier(t); /* kernels wait for each other from here on, and what CUDA makes may wait for kernels */
    plain(&w);
    if (t->kind == TEST_PROCESSES) /* threads that share a GPU may not have so many streams */
        streams(&w);
    graphs(&w);
    too_many(&w);
    device_end(t, w.comm, w.stream, STREAMS);
}

int main(void)
{
    int bad = 0;

    test_begin("long_groups", 300);
    if (device_none())
        return TEST_SKIPPED;
    for (int nranks = 2; nranks <= 3 && bad == 0; nranks++)
        for (int kind = TEST_PROCESSES; kind <= TEST_THREADS && bad == 0; kind++) {
            bad += test_run((test_kind_t)kind, nranks, 140, body, NULL);
            printf("long_groups: %d %s: %s\n", nranks, test_kind_name((test_kind_t)kind), bad ? "WRONG" : "right");
        }
    return bad != 0;
}
