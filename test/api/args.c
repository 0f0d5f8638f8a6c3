/* Every bad argument is refused at the call with RONDO_ERR_INVALID_ARGUMENT and a sentence that names the call and the
 * argument; nothing moves, outputs are untouched, and the communicator works on.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"
#include "util/reference.h"

#define N 4

static void expect(test_rank_t *t, rondo_comm_t comm, rondo_result_t got, const char *call, const char *word,
                   const char *text)
{
    const char *said = rondo_last_error(comm), *thread_said = rondo_last_error(NULL);

    if (got != RONDO_ERR_INVALID_ARGUMENT) {
        test_fail(t, "%s gave \"%s\"", text, rondo_result_string(got));
        return;
    }
    if (!strstr(said, call) || !strstr(said, word))
        test_fail(t, "%s: the sentence must name %s and %s: \"%s\"", text, call, word, said);
    if (!strstr(thread_said, word))
        test_fail(t, "%s: the thread's last error is \"%s\"", text, thread_said);
}

/* The call is the name up to the bracket. */
#define BAD(word, function, ...)                                                                                       \
    do {                                                                                                               \
        test_note(t, "%s", #function "(" #__VA_ARGS__ ")");                                                            \
        expect(t, comm, function(__VA_ARGS__), #function, word, #function "(" #__VA_ARGS__ ")");                       \
    } while (0)

static void null_buffers(test_rank_t *t, rondo_comm_t comm, float *a, float *b)
{
    size_t counts[2] = {N, N};
    int root = t->rank; /* so that this rank's buffers matter; nothing is sent */

    BAD("send", rondo_allreduce, NULL, b, N, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    BAD("recv", rondo_allreduce, a, NULL, N, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    BAD("send", rondo_reduce, NULL, b, N, RONDO_FLOAT32, RONDO_SUM, root, comm, NULL);
    BAD("recv", rondo_reduce, a, NULL, N, RONDO_FLOAT32, RONDO_SUM, root, comm, NULL);
    BAD("send", rondo_broadcast, NULL, b, N, RONDO_FLOAT32, root, comm, NULL);
    BAD("recv", rondo_broadcast, a, NULL, N, RONDO_FLOAT32, root, comm, NULL);
    BAD("send", rondo_allgather, NULL, b, N, RONDO_FLOAT32, comm, NULL);
    BAD("recv", rondo_allgather, a, NULL, N, RONDO_FLOAT32, comm, NULL);
    BAD("send", rondo_allgatherv, NULL, N, b, counts, NULL, RONDO_FLOAT32, comm, NULL);
    BAD("recv", rondo_allgatherv, a, N, NULL, counts, NULL, RONDO_FLOAT32, comm, NULL);
    BAD("recvcounts", rondo_allgatherv, a, N, b, NULL, NULL, RONDO_FLOAT32, comm, NULL);
    BAD("sendcount", rondo_allgatherv, a, N - 1, b, counts, NULL, RONDO_FLOAT32, comm, NULL);
    BAD("send", rondo_reduce_scatter, NULL, b, N, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    BAD("recv", rondo_reduce_scatter, a, NULL, N, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    BAD("send", rondo_reduce_scatterv, NULL, b, counts, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    BAD("recv", rondo_reduce_scatterv, a, NULL, counts, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    BAD("recvcounts", rondo_reduce_scatterv, a, b, NULL, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    BAD("send", rondo_alltoall, NULL, b, N, RONDO_FLOAT32, comm, NULL);
    BAD("recv", rondo_alltoall, a, NULL, N, RONDO_FLOAT32, comm, NULL);
    BAD("send", rondo_alltoallv, NULL, counts, NULL, b, counts, NULL, RONDO_FLOAT32, comm, NULL);
    BAD("recv", rondo_alltoallv, a, counts, NULL, NULL, counts, NULL, RONDO_FLOAT32, comm, NULL);
    BAD("sendcounts", rondo_alltoallv, a, NULL, NULL, b, counts, NULL, RONDO_FLOAT32, comm, NULL);
    BAD("recvcounts", rondo_alltoallv, a, counts, NULL, b, NULL, NULL, RONDO_FLOAT32, comm, NULL);
    BAD("send", rondo_gather, NULL, b, N, RONDO_FLOAT32, root, comm, NULL);
    BAD("recv", rondo_gather, a, NULL, N, RONDO_FLOAT32, root, comm, NULL);
    BAD("send", rondo_gatherv, NULL, N, b, counts, NULL, RONDO_FLOAT32, root, comm, NULL);
    BAD("recv", rondo_gatherv, a, N, NULL, counts, NULL, RONDO_FLOAT32, root, comm, NULL);
    BAD("recvcounts", rondo_gatherv, a, N, b, NULL, NULL, RONDO_FLOAT32, root, comm, NULL);
    BAD("send", rondo_scatter, NULL, b, N, RONDO_FLOAT32, root, comm, NULL);
    BAD("recv", rondo_scatter, a, NULL, N, RONDO_FLOAT32, root, comm, NULL);
    BAD("send", rondo_scatterv, NULL, counts, NULL, b, N, RONDO_FLOAT32, root, comm, NULL);
    BAD("recv", rondo_scatterv, a, counts, NULL, NULL, N, RONDO_FLOAT32, root, comm, NULL);
    BAD("sendcounts", rondo_scatterv, a, NULL, NULL, b, N, RONDO_FLOAT32, root, comm, NULL);
    BAD("buffer", rondo_send, NULL, N, RONDO_FLOAT32, 0, comm, NULL);
    BAD("buffer", rondo_recv, NULL, N, RONDO_FLOAT32, 0, comm, NULL);
}

static void types_and_ranks(test_rank_t *t, rondo_comm_t comm, float *a, float *b)
{
    size_t counts[2] = {N, N};
    static const int wrong_types[] = {-1, RONDO_NUM_TYPES, 1000000}, wrong_ranks[] = {-1, 2, 1000000};
    int i;

    for (i = 0; i < 3; i++) {
        rondo_type_t type = (rondo_type_t)wrong_types[i];
        int rank = wrong_ranks[i];

        BAD("type", rondo_allreduce, a, b, N, type, RONDO_SUM, comm, NULL);
        BAD("type", rondo_reduce, a, b, N, type, RONDO_SUM, 0, comm, NULL);
        BAD("type", rondo_broadcast, a, b, N, type, 0, comm, NULL);
        BAD("type", rondo_allgather, a, b, N, type, comm, NULL);
        BAD("type", rondo_allgatherv, a, N, b, counts, NULL, type, comm, NULL);
        BAD("type", rondo_reduce_scatter, a, b, N, type, RONDO_SUM, comm, NULL);
        BAD("type", rondo_reduce_scatterv, a, b, counts, type, RONDO_SUM, comm, NULL);
        BAD("type", rondo_alltoall, a, b, N, type, comm, NULL);
        BAD("type", rondo_alltoallv, a, counts, NULL, b, counts, NULL, type, comm, NULL);
        BAD("type", rondo_gather, a, b, N, type, 0, comm, NULL);
        BAD("type", rondo_gatherv, a, N, b, counts, NULL, type, 0, comm, NULL);
        BAD("type", rondo_scatter, a, b, N, type, 0, comm, NULL);
        BAD("type", rondo_scatterv, a, counts, NULL, b, N, type, 0, comm, NULL);
        BAD("type", rondo_send, a, N, type, 0, comm, NULL);
        BAD("type", rondo_recv, a, N, type, 0, comm, NULL);
        BAD("root", rondo_reduce, a, b, N, RONDO_FLOAT32, RONDO_SUM, rank, comm, NULL);
        BAD("root", rondo_broadcast, a, b, N, RONDO_FLOAT32, rank, comm, NULL);
        BAD("root", rondo_gather, a, b, N, RONDO_FLOAT32, rank, comm, NULL);
        BAD("root", rondo_gatherv, a, N, b, counts, NULL, RONDO_FLOAT32, rank, comm, NULL);
        BAD("root", rondo_scatter, a, b, N, RONDO_FLOAT32, rank, comm, NULL);
        BAD("root", rondo_scatterv, a, counts, NULL, b, N, RONDO_FLOAT32, rank, comm, NULL);
        BAD("peer", rondo_send, a, N, RONDO_FLOAT32, rank, comm, NULL);
        BAD("peer", rondo_recv, a, N, RONDO_FLOAT32, rank, comm, NULL);
    }
}

/* Every operator that makes no sense for a type is refused, at every operation that reduces. */
static void operators(test_rank_t *t, rondo_comm_t comm, float *a, float *b)
{
    size_t counts[2] = {N, N};
    int type, op;

    for (type = 0; type < RONDO_NUM_TYPES; type++)
        for (op = -1; op < RONDO_NUM_OPS; op++) {
            if (op >= 0 && ref_valid((rondo_type_t)type, op))
                continue;
            BAD("op", rondo_allreduce, a, b, 1, (rondo_type_t)type, op, comm, NULL);
            BAD("op", rondo_reduce, a, b, 1, (rondo_type_t)type, op, 0, comm, NULL);
            BAD("op", rondo_reduce_scatter, a, b, 1, (rondo_type_t)type, op, comm, NULL);
            BAD("op", rondo_reduce_scatterv, a, b, counts, (rondo_type_t)type, op, comm, NULL);
            BAD("op", rondo_allreduce, NULL, NULL, 0, (rondo_type_t)type, op, comm, NULL);
        }
    BAD("op", rondo_allreduce, a, b, N, RONDO_FLOAT32, 1000000, comm, NULL);
    BAD("op", rondo_reduce, a, b, N, RONDO_FLOAT32, 1000000, 0, comm, NULL);
    BAD("op", rondo_reduce_scatter, a, b, N, RONDO_FLOAT32, 1000000, comm, NULL);
}

static void overlaps(test_rank_t *t, rondo_comm_t comm, float *a)
{
    size_t counts[2] = {N, N};
    int root = t->rank;

    BAD("overlap", rondo_allreduce, a, a + 1, N, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    BAD("overlap", rondo_reduce, a, a + 1, N, RONDO_FLOAT32, RONDO_SUM, root, comm, NULL);
    BAD("overlap", rondo_broadcast, a, a + 1, N, RONDO_FLOAT32, root, comm, NULL);
    BAD("overlap", rondo_allgather, a + 1, a, N, RONDO_FLOAT32, comm, NULL);
    BAD("overlap", rondo_reduce_scatter, a, a + 1, N, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    BAD("overlap", rondo_alltoall, a, a + 1, N, RONDO_FLOAT32, comm, NULL);
    BAD("overlap", rondo_gather, a + 1, a, N, RONDO_FLOAT32, root, comm, NULL);
    BAD("overlap", rondo_scatter, a, a + 1, N, RONDO_FLOAT32, root, comm, NULL);
    BAD("in place", rondo_alltoall, a, a, N, RONDO_FLOAT32, comm, NULL);
    BAD("in place", rondo_alltoallv, a, counts, NULL, a, counts, NULL, RONDO_FLOAT32, comm, NULL);
}

static void counts_and_streams(test_rank_t *t, rondo_comm_t comm, float *a, float *b)
{
    size_t huge = (size_t)-1, counts[2] = {(size_t)-8, (size_t)-8};
    size_t few[2] = {1, 1}, wild[2] = {0, (size_t)-1};
    rondo_stream_t stream = (rondo_stream_t)(void *)a;

    BAD("count", rondo_allreduce, a, b, huge, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    BAD("count", rondo_broadcast, a, b, huge / 4, RONDO_FLOAT64, 0, comm, NULL);
    BAD("count", rondo_allgather, a, b, huge / 8, RONDO_FLOAT32, comm, NULL);
    BAD("count", rondo_reduce_scatter, a, b, huge / 8, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    BAD("count", rondo_alltoall, a, b, huge / 8, RONDO_FLOAT32, comm, NULL);
    BAD("count", rondo_send, a, huge, RONDO_FLOAT32, 0, comm, NULL);
    BAD("recvcounts", rondo_reduce_scatterv, a, b, counts, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    BAD("sendcounts", rondo_alltoallv, a, counts, NULL, b, counts, NULL, RONDO_FLOAT32, comm, NULL);
    BAD("recvcounts[0]", rondo_reduce_scatterv, a, b, counts, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    BAD("sdispls[1]", rondo_alltoallv, a, few, wild, b, few, NULL, RONDO_FLOAT32, comm, NULL);
    BAD("rdispls[1]", rondo_alltoallv, a, few, NULL, b, few, wild, RONDO_FLOAT32, comm, NULL);
    BAD(" displs[1]", rondo_allgatherv, a, 1, b, few, wild, RONDO_FLOAT32, comm, NULL);
    BAD(" displs[1]", rondo_gatherv, a, 1, b, few, wild, RONDO_FLOAT32, t->rank, comm, NULL);
    BAD(" displs[1]", rondo_scatterv, a, few, wild, b, 1, RONDO_FLOAT32, t->rank, comm, NULL);
    BAD("stream", rondo_allreduce, a, b, N, RONDO_FLOAT32, RONDO_SUM, comm, stream);
    BAD("stream", rondo_barrier, comm, stream);
    BAD("stream", rondo_send, a, N, RONDO_FLOAT32, 0, comm, stream);
}

/* Where a block of nothing would lie does not matter. */
static void empty_blocks(test_rank_t *t, rondo_comm_t comm, float *a, float *b)
{
    size_t counts[2] = {2, 0}, displs[2] = {1, (size_t)-1}, own = t->rank ? 0 : 2;

    test_note(t, "empty blocks with any displacement");
    for (int i = 0; i < 2; i++) {
        a[0] = 5;
        a[1] = 6;
        b[1] = b[2] = 0;
        TEST_OK(t, comm, rondo_allgatherv(a, own, b, counts, displs, RONDO_FLOAT32, comm, NULL));
        TEST_TRUE(t, b[1] == 5 && b[2] == 6);
        TEST_OK(t, comm, rondo_gatherv(a, own, b, counts, displs, RONDO_FLOAT32, 1, comm, NULL));
        TEST_OK(t, comm, rondo_scatterv(a, counts, displs, b, own, RONDO_FLOAT32, 1, comm, NULL));
    }
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
}

/* Rank 0 sends two elements and receives none, rank 1 the other way round: nothing overlaps. */
static void one_way(test_rank_t *t, rondo_comm_t comm, float *a)
{
    size_t to[2] = {0, t->rank ? 0 : 2}, from[2] = {t->rank ? 2 : 0, 0};

    test_note(t, "an alltoallv with one buffer, which is sent or received");
    a[0] = a[1] = t->rank ? 0 : 7;
    TEST_OK(t, comm, rondo_alltoallv(a, to, NULL, a, from, NULL, RONDO_FLOAT32, comm, NULL));
    TEST_TRUE(t, a[0] == 7 && a[1] == 7);
}

/* What repeats the last call is not asked everything again, but for its buffers. */
static void repeated(test_rank_t *t, rondo_comm_t comm, float *a, float *b)
{
    int other = t->nranks;

    for (int i = 0; i < 3; i++) {
        TEST_OK(t, comm, rondo_allreduce(a, b, N, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
        BAD("send", rondo_allreduce, NULL, b, N, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
        BAD("recv", rondo_allreduce, a, NULL, N, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
        BAD("overlaps", rondo_allreduce, a, a + 1, N, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
        BAD("stream", rondo_allreduce, a, b, N, RONDO_FLOAT32, RONDO_SUM, comm, (rondo_stream_t)a);
        BAD("op", rondo_allreduce, a, b, N, RONDO_FLOAT32, RONDO_BAND, comm, NULL);
        BAD("type", rondo_allreduce, a, b, N, (rondo_type_t)RONDO_NUM_TYPES, RONDO_SUM, comm, NULL);
    }
    for (int i = 0; i < 3; i++) {
        TEST_OK(t, comm, rondo_reduce(a, b, N, RONDO_FLOAT32, RONDO_SUM, 1, comm, NULL));
        BAD("send", rondo_reduce, NULL, b, N, RONDO_FLOAT32, RONDO_SUM, 1, comm, NULL);
        BAD("root", rondo_reduce, a, b, N, RONDO_FLOAT32, RONDO_SUM, other, comm, NULL);
        TEST_OK(t, comm, rondo_group_start());
        TEST_OK(t, comm, rondo_reduce(a, b, N, RONDO_FLOAT32, RONDO_SUM, 1, comm, NULL));
        TEST_OK(t, comm, rondo_group_end());
    }
}

static void no_communicator(test_rank_t *t, float *a, float *b)
{
    rondo_comm_t comm = NULL;
    rondo_result_t error = RONDO_SUCCESS;
    rondo_unique_id_t id;
    int number = 17;
    rondo_status_t status = {0};
    rondo_work_t work;
    char text[8] = "";

    memset(&id, 0, sizeof id);
    BAD("comm", rondo_allreduce, a, b, N, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    BAD("comm", rondo_send, a, N, RONDO_FLOAT32, 0, comm, NULL);
    BAD("comm", rondo_barrier, comm, NULL);
    BAD("comm", rondo_comm_destroy, comm);
    BAD("comm", rondo_comm_finalize, comm);
    BAD("comm", rondo_comm_test, comm, &number);
    BAD("comm", rondo_comm_abort, comm);
    BAD("comm", rondo_comm_get_error, comm, &error);
    BAD("comm", rondo_explain, comm, text, sizeof text);
    BAD("comm", rondo_comm_rank, comm, &number);
    BAD("comm", rondo_comm_on_wait, comm, NULL, NULL);
    BAD("comm", rondo_timeout_set, comm, 0);
    BAD("comm", rondo_timeout_extend, comm, 0);
    BAD("comm", rondo_comm_status, comm, &status);
    BAD("comm", rondo_work_last, comm, &work);
    BAD("comm", rondo_comm_split, comm, 0, 0, &comm, NULL);
    BAD("comm", rondo_comm_shrink, comm, NULL, 0, &comm, NULL);
    BAD("id", rondo_comm_create_scalable, &comm, 2, NULL, 2, 0, NULL);
    BAD("nids", rondo_comm_create_scalable, &comm, 2, &id, 3, 0, NULL);
    BAD("id", rondo_comm_grow, NULL, 2, NULL, 1, &comm, NULL);
    BAD("newcomm", rondo_comm_grow, NULL, 2, &id, 1, NULL, NULL);
    BAD("comm", rondo_comm_create, NULL, 1, &id, 0, NULL);
    BAD("id", rondo_comm_create, &comm, 1, NULL, 0, NULL);
    BAD("nranks", rondo_comm_create, &comm, 0, &id, 0, NULL);
    BAD("id", rondo_unique_id_create, NULL);
    TEST_TRUE(t, number == 17 && comm == NULL && error == RONDO_SUCCESS);
}

static void outputs_and_requests(test_rank_t *t, rondo_comm_t comm)
{
    rondo_status_t status = {0};
    rondo_work_t work = {{0, 0}};
    rondo_comm_t other = NULL;
    rondo_op_t op = 99;
    float scalar = 2;
    int done = 0, outside = 5;

    BAD("NULL", rondo_comm_rank, comm, NULL);
    BAD("NULL", rondo_comm_size, comm, NULL);
    BAD("NULL", rondo_comm_device, comm, NULL);
    BAD("error", rondo_comm_get_error, comm, NULL);
    BAD("text", rondo_explain, comm, NULL, 100);
    BAD("timeout_ms", rondo_timeout_set, comm, -2);
    BAD("timeout_ms", rondo_timeout_extend, comm, -1);
    BAD("on_error", rondo_on_error, comm, RONDO_ON_ERROR_REVOKE_EXIT + 1);
    BAD("status", rondo_comm_status, comm, NULL);
    BAD("size", rondo_comm_status, comm, &status);
    BAD("work", rondo_work_last, comm, NULL);
    BAD("newcomm", rondo_comm_split, comm, 0, 0, NULL, NULL);
    BAD("newcomm", rondo_comm_shrink, comm, NULL, 0, NULL, NULL);
    BAD("newcomm", rondo_comm_grow, comm, t->nranks + 1, NULL, -1, NULL, NULL);
    BAD("rank", rondo_comm_grow, comm, t->nranks + 1, NULL, 0, &other, NULL);
    BAD("nranks", rondo_comm_grow, comm, t->nranks, NULL, -1, &other, NULL);
    BAD("excluded", rondo_comm_shrink, comm, &outside, 1, &other, NULL);
    BAD("op", rondo_op_create_premulsum, NULL, &scalar, RONDO_FLOAT32, 0, comm);
    BAD("scalar", rondo_op_create_premulsum, &op, NULL, RONDO_FLOAT32, 0, comm);
    BAD("type", rondo_op_create_premulsum, &op, &scalar, RONDO_FLOAT32_INT32, 0, comm);
    BAD("type", rondo_op_create_premulsum, &op, &scalar, RONDO_BOOL, 0, comm);
    BAD("op", rondo_op_destroy, RONDO_SUM, comm);
    BAD("op", rondo_op_destroy, 12345, comm);
    TEST_TRUE(t, op == 99 && other == NULL);
    comm = NULL; /* these speak for the thread */
    BAD("request", rondo_request_test, NULL, &done);
    BAD("request", rondo_request_wait, NULL);
    BAD("request", rondo_request_work, NULL, 0, &work);
    BAD("info", rondo_work_query, work, NULL);
    BAD("timeout_ms", rondo_timeout_next, -2);
    BAD("flags", rondo_dump, "/nowhere", 8);
    BAD("fd", rondo_dump_fd, -1, RONDO_DUMP_JSON);
}

/* A made operator belongs to its type and communicator; used with another it is refused. */
static void made_operator(test_rank_t *t, rondo_comm_t comm, float *a, float *b)
{
    rondo_op_t op = -1;
    float half = 0.5f;
    int i;

    TEST_OK(t, comm, rondo_op_create_premulsum(&op, &half, RONDO_FLOAT32, 0, comm));
    BAD("op", rondo_allreduce, a, b, N, RONDO_FLOAT64, op, comm, NULL);
    for (i = 0; i < N; i++)
        a[i] = (float)(2 * i * (t->rank + 1));
    test_note(t, "allreduce by an operator of its own");
    TEST_OK(t, comm, rondo_allreduce(a, b, N, RONDO_FLOAT32, op, comm, NULL));
    for (i = 0; i < N; i++)
        TEST_TRUE(t, b[i] == (float)(3 * i));
    TEST_OK(t, comm, rondo_op_destroy(op, comm));
    BAD("op", rondo_allreduce, a, b, N, RONDO_FLOAT32, op, comm, NULL);
}

static void body(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL);
    float a[64], b[64], untouched[64];
    int32_t one = 1, sum = 0;
    rondo_result_t error = RONDO_ERR_INTERNAL;

    (void)arg;
    memset(a, 0x11, sizeof a);
    memset(b, 0x22, sizeof b);
    memcpy(untouched, b, sizeof b);
    null_buffers(t, comm, a, b);
    types_and_ranks(t, comm, a, b);
    operators(t, comm, a, b);
    overlaps(t, comm, a);
    counts_and_streams(t, comm, a, b);
    no_communicator(t, a, b);
    outputs_and_requests(t, comm);
    TEST_TRUE(t, memcmp(b, untouched, sizeof b) == 0);
    made_operator(t, comm, a, b);
    empty_blocks(t, comm, a, b);
    one_way(t, comm, a);
    repeated(t, comm, a, b);
    test_note(t, "after all that");
    TEST_OK(t, comm, rondo_comm_get_error(comm, &error));
    TEST_TRUE(t, error == RONDO_SUCCESS);
    TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    TEST_TRUE(t, sum == 2);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

int main(void)
{
    int bad;

    test_begin("args", 60);
    bad = test_run(TEST_PROCESSES, 2, 30, body, NULL);
    bad += test_run(TEST_THREADS, 2, 30, body, NULL);
    return bad != 0;
}
