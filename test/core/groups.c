/* Groups: nesting, several communicators, sends to oneself, sends and receives in any order, many messages per pair or
 * two, requests that overlap with computation, groups that are empty, hold only zero counts, or hold a wrong call, and
 * groups of several threads at once.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/harness.h"
#include "util/messages.h"

#define MOST 400

static void run_messages(test_rank_t *t, rondo_comm_t comm, const msg_t *list, int count, uint64_t order)
{
    msg_set_t set;
    char text[256];

    if (msg_prepare(&set, list, count, t->rank, t->nranks) != 0)
        test_stop(t, "no memory");
    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, msg_post(&set, comm, order));
    if (!TEST_OK(t, comm, rondo_group_end()))
        test_stop(t, "cannot go on");
    if (msg_verify(&set, text, sizeof text) != 0)
        test_fail(t, "%s", text);
    msg_release(&set);
}

static void empty(test_rank_t *t, rondo_comm_t comm)
{
    rondo_request_t request = NULL;
    int done = 0, i;

    test_note(t, "empty groups");
    for (i = 0; i < 3; i++) {
        TEST_OK(t, comm, rondo_group_start());
        TEST_OK(t, comm, rondo_group_start());
        TEST_OK(t, comm, rondo_group_end());
        TEST_OK(t, comm, rondo_group_end());
    }
    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, rondo_group_submit(&request));
    TEST_OK(t, comm, rondo_request_test(&request, &done));
    TEST_TRUE(t, done);
    test_note(t, "an end without a start");
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_USAGE, rondo_group_end());
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_USAGE, rondo_group_submit(&request));
}

/* Something is enqueued until the last rank has come. */
static void tested(test_rank_t *t, rondo_comm_t comm)
{
    rondo_request_t request = NULL;
    int done = 1, value = 1, last = t->nranks - 1;

    test_note(t, "rondo_comm_test");
    TEST_OK(t, comm, rondo_comm_test(comm, &done));
    TEST_TRUE(t, done);
    test_barrier(t);
    if (t->rank != last) {
        TEST_OK(t, comm, rondo_group_start());
        TEST_OK(t, comm, rondo_barrier(comm, NULL));
        TEST_OK(t, comm, rondo_group_submit(&request));
        TEST_OK(t, comm, rondo_comm_test(comm, &done));
        TEST_TRUE(t, !done);
    }
    test_barrier(t);
    if (t->rank == last)
        TEST_OK(t, comm, rondo_barrier(comm, NULL));
    for (done = 0; !done;)
        TEST_OK(t, comm, rondo_comm_test(comm, &done));
    TEST_OK(t, comm, rondo_request_test(&request, &value));
    TEST_TRUE(t, value);
}

/* Every rank sends `each` messages to every rank, itself among them, posted in an order of its own. */
static void many_messages(test_rank_t *t, rondo_comm_t comm, int each, size_t count)
{
    msg_t list[MOST];
    int n = 0, from, to, k;

    test_note(t, "%d messages of %zu to everybody", each, count);
    for (k = 0; k < each; k++)
        for (from = 0; from < t->nranks; from++)
            for (to = 0; to < t->nranks && n < MOST; to++) {
                list[n] = (msg_t){from, to, RONDO_INT16, count + (size_t)k % 3, (uint64_t)n};
                n++;
            }
    run_messages(t, comm, list, n, test_mix((uint64_t)t->rank + count));
}

/* Groups of two short operations each: two messages to one peer come in their order, and in an exchange either call may
 * be the first. */
static void twos(test_rank_t *t, rondo_comm_t comm)
{
    const int right = (t->rank + 1) % t->nranks, left = (t->rank + t->nranks - 1) % t->nranks;
    const int sends = t->rank % 2 == 0, peer = sends ? t->rank + 1 : t->rank - 1;

    test_note(t, "groups of two");
    for (int64_t i = 0, bad = 0; i < 2000 && !bad; i++) {
        int64_t data[4] = {2 * i, 2 * i + 1, -1, -1};
        TEST_OK(t, comm, rondo_group_start());
        for (int k = 0; k < 2 && peer < t->nranks; k++)
            TEST_OK(t, comm,
                    sends ? rondo_send(&data[k], 1, RONDO_INT64, peer, comm, NULL)
                          : rondo_recv(&data[2 + k], 1, RONDO_INT64, peer, comm, NULL));
        TEST_OK(t, comm, rondo_group_end());
        bad = !sends && (data[2] != 2 * i || data[3] != 2 * i + 1);
        TEST_OK(t, comm, rondo_group_start());
        for (int k = 0; k < 2; k++)
            TEST_OK(t, comm,
                    (t->rank + i + k) % 2 ? rondo_send(&data[0], 1, RONDO_INT64, right, comm, NULL)
                                          : rondo_recv(&data[3], 1, RONDO_INT64, left, comm, NULL));
        TEST_OK(t, comm, rondo_group_end());
        bad |= data[3] != 2 * i;
        if (bad)
            test_fail(t, "round %lld: %lld and %lld", (long long)i, (long long)data[2], (long long)data[3]);
    }
}

/* All sends before all receives, each longer than every slot between the two: nobody may wait for the other's first. */
static void long_exchange(test_rank_t *t, rondo_comm_t comm)
{
    size_t count = 700001, i;
    int right = (t->rank + 1) % t->nranks, left = (t->rank + t->nranks - 1) % t->nranks, bad = 0;
    float *data = malloc(4 * count * sizeof *data);

    if (!data)
        test_stop(t, "no memory");
    test_note(t, "long sends before receives");
    for (i = 0; i < count; i++) {
        data[i] = (float)(t->rank + 1) * (float)(i % 1000);
        data[count + i] = -data[i];
    }
    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, rondo_send(data, count, RONDO_FLOAT32, right, comm, NULL));
    TEST_OK(t, comm, rondo_send(data + count, count, RONDO_FLOAT32, left, comm, NULL));
    TEST_OK(t, comm, rondo_recv(data + 3 * count, count, RONDO_FLOAT32, right, comm, NULL));
    TEST_OK(t, comm, rondo_recv(data + 2 * count, count, RONDO_FLOAT32, left, comm, NULL));
    TEST_OK(t, comm, rondo_group_end());
    /* With two ranks, right and left are the same peer: its first message is matched by the first receive posted. */
    for (i = 0; i < count; i++) {
        float plus = (float)(left + 1) * (float)(i % 1000), minus = -(float)(right + 1) * (float)(i % 1000);

        if (t->nranks > 2)
            bad += data[2 * count + i] != plus || data[3 * count + i] != minus;
        else
            bad += data[3 * count + i] != plus || data[2 * count + i] != minus;
    }
    if (bad)
        test_fail(t, "%d of %zu elements are wrong", bad, count);
    free(data);
}

/* Outside groups a host send may wait for its receive: one direction at a time. */
static void ungrouped(test_rank_t *t, rondo_comm_t comm)
{
    int32_t out[600], in[600], i, k;

    test_note(t, "a chain of plain sends and receives");
    for (k = 0; k < 20; k++) {
        int count = k * 29;

        for (i = 0; i < count; i++)
            out[i] = k * 1000 + i;
        if (t->rank > 0) {
            memset(in, 0, sizeof in);
            TEST_OK(t, comm, rondo_recv(in, (size_t)count, RONDO_INT32, t->rank - 1, comm, NULL));
            for (i = 0; i < count; i++)
                if (in[i] != out[i])
                    test_fail(t, "message %d, element %d is %d", k, i, in[i]);
        }
        if (t->rank < t->nranks - 1)
            TEST_OK(t, comm, rondo_send(out, (size_t)count, RONDO_INT32, t->rank + 1, comm, NULL));
    }
}

/* One direction only, to ranks that come late: the sender must stop when the connection is full, and lose nothing. */
static void one_way(test_rank_t *t, rondo_comm_t comm, int count)
{
    int32_t data[1024];
    int k, i, bad = 0;

    test_note(t, "broadcasts and sends of %d to late ranks", count);
    test_barrier(t);
    if (t->rank != 0)
        usleep(3000 * (unsigned)t->rank);
    for (k = 0; k < 400; k++) {
        for (i = 0; i < count; i++)
            data[i] = t->rank == 0 ? k * 7 + i : -1;
        if (!TEST_OK(t, comm, rondo_broadcast(data, data, (size_t)count, RONDO_INT32, 0, comm, NULL)))
            test_stop(t, "cannot go on");
        for (i = 0; i < count; i++)
            bad += data[i] != k * 7 + i;
    }
    if (t->rank == 1)
        usleep(3000);
    for (k = 0; k < 400 && t->rank < 2 && t->nranks > 1; k++) {
        for (i = 0; i < count; i++)
            data[i] = t->rank == 0 ? k * 5 - i : -1;
        if (t->rank == 0)
            TEST_OK(t, comm, rondo_send(data, (size_t)count, RONDO_INT32, 1, comm, NULL));
        else
            TEST_OK(t, comm, rondo_recv(data, (size_t)count, RONDO_INT32, 0, comm, NULL));
        for (i = 0; i < count; i++)
            bad += data[i] != k * 5 - i;
    }
    if (bad)
        test_fail(t, "%d elements are wrong", bad);
}

/* A rank's messages to itself match within their communicator, in order, whatever lies between them. */
static void to_oneself(test_rank_t *t, rondo_comm_t *comm)
{
    int32_t out[4] = {10, 20, 30, 40}, in[4] = {0};

    test_note(t, "messages to oneself on two communicators");
    TEST_OK(t, comm[0], rondo_group_start());
    TEST_OK(t, comm[0], rondo_send(&out[0], 1, RONDO_INT32, t->rank, comm[0], NULL));
    TEST_OK(t, comm[1], rondo_recv(&in[1], 1, RONDO_INT32, t->rank, comm[1], NULL));
    TEST_OK(t, comm[0], rondo_send(&out[2], 1, RONDO_INT32, t->rank, comm[0], NULL));
    TEST_OK(t, comm[1], rondo_send(&out[1], 1, RONDO_INT32, t->rank, comm[1], NULL));
    TEST_OK(t, comm[0], rondo_recv(&in[0], 1, RONDO_INT32, t->rank, comm[0], NULL));
    TEST_OK(t, comm[1], rondo_send(&out[3], 1, RONDO_INT32, t->rank, comm[1], NULL));
    TEST_OK(t, comm[1], rondo_recv(&in[3], 1, RONDO_INT32, t->rank, comm[1], NULL));
    TEST_OK(t, comm[0], rondo_recv(&in[2], 1, RONDO_INT32, t->rank, comm[0], NULL));
    TEST_OK(t, comm[0], rondo_group_end());
    TEST_TRUE(t, memcmp(in, out, sizeof in) == 0);
    test_note(t, "a message to oneself that nobody receives");
    TEST_OK(t, comm[0], rondo_group_start());
    TEST_OK(t, comm[0], rondo_send(&out[0], 1, RONDO_INT32, t->rank, comm[0], NULL));
    TEST_GIVES(t, comm[0], RONDO_ERR_INVALID_USAGE, rondo_group_end());
    TEST_GIVES(t, comm[0], RONDO_ERR_INVALID_USAGE, rondo_send(&out[0], 1, RONDO_INT32, t->rank, comm[0], NULL));
    test_barrier(t);
}

static void zero_counts(test_rank_t *t, rondo_comm_t comm)
{
    int peer, k;

    test_note(t, "zero counts");
    for (k = 0; k < 3; k++) {
        TEST_OK(t, comm, rondo_group_start());
        for (peer = 0; peer < t->nranks; peer++) {
            TEST_OK(t, comm, rondo_send(NULL, 0, RONDO_INT8, peer, comm, NULL));
            TEST_OK(t, comm, rondo_recv(NULL, 0, RONDO_INT8, peer, comm, NULL));
        }
        TEST_OK(t, comm, rondo_allreduce(NULL, NULL, 0, RONDO_FLOAT64, RONDO_MAX, comm, NULL));
        TEST_OK(t, comm, rondo_alltoall(NULL, NULL, 0, RONDO_INT8, comm, NULL));
        TEST_OK(t, comm, rondo_barrier(comm, NULL));
        TEST_OK(t, comm, rondo_group_end());
    }
}

/* Several requests at once, asked in an order that differs between ranks; computation in between. */
static void requests(test_rank_t *t, rondo_comm_t *comm, int ncomms)
{
    rondo_request_t request[4] = {NULL, NULL, NULL, NULL};
    int64_t in[4][300], out[4][300], i;
    int k, done, all;

    test_note(t, "requests on %d communicators", ncomms);
    for (k = 0; k < ncomms; k++) {
        for (i = 0; i < 300; i++)
            in[k][i] = (t->rank + 1) * i + k;
        TEST_OK(t, comm[k], rondo_group_start());
        TEST_OK(t, comm[k], rondo_allreduce(in[k], out[k], 300, RONDO_INT64, RONDO_SUM, comm[k], NULL));
        TEST_OK(t, comm[k], rondo_group_submit(&request[k]));
    }
    for (all = 0; all < ncomms;) {
        for (k = 0, all = 0; k < ncomms; k++) {
            int turn = (k + t->rank) % ncomms;

            done = 1;
            if (request[turn])
                TEST_OK(t, comm[turn], rondo_request_test(&request[turn], &done));
            all += done;
        }
        if (test_failures(t))
            test_stop(t, "cannot go on");
    }
    for (k = 0; k < ncomms; k++)
        for (i = 0; i < 300; i++) {
            int64_t should = (int64_t)t->nranks * (t->nranks + 1) / 2 * i + (int64_t)t->nranks * k;

            if (out[k][i] != should) {
                test_fail(t, "request %d, element %d is %lld, should be %lld", k, (int)i, (long long)out[k][i],
                          (long long)should);
                break;
            }
        }
}

/* A request that is waited for while its peer comes late, and other operations afterwards. */
static void late_request(test_rank_t *t, rondo_comm_t comm)
{
    rondo_request_t request = NULL;
    float one = 1, sum = 0;
    int done = 0, asked = 0;

    test_note(t, "a request whose last rank is late");
    test_barrier(t);
    if (t->rank == t->nranks - 1) {
        int64_t until = test_clock_us() + 30000;

        while (test_clock_us() < until)
            continue;
    }
    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    TEST_OK(t, comm, rondo_group_submit(&request));
    while (!done && asked++ < 3)
        TEST_OK(t, comm, rondo_request_test(&request, &done));
    if (!done)
        TEST_OK(t, comm, rondo_request_wait(&request));
    TEST_TRUE(t, sum == (float)t->nranks);
    TEST_TRUE(t, request == NULL);
}

/* A wrong call inside a group says so at once; the group ends, and what comes after it is unharmed. */
static void wrong_call(test_rank_t *t, rondo_comm_t comm)
{
    int32_t one = 1, sum = 0;
    rondo_result_t end;

    test_note(t, "a wrong call in a group");
    TEST_OK(t, comm, rondo_group_start());
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT,
               rondo_allreduce(&one, &sum, 1, RONDO_FLOAT32, RONDO_BAND, comm, NULL));
    end = rondo_group_end();
    if (end != RONDO_SUCCESS && end != RONDO_ERR_INVALID_ARGUMENT)
        test_fail(t, "the group's end gave %s", rondo_result_string(end));
    test_barrier(t);
    TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    TEST_TRUE(t, sum == t->nranks);
}

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
    int which;
} worker_t;

static void *worker(void *arg)
{
    worker_t *w = arg;
    int32_t in[3][64], out[3][64];
    int i, k, round;

    for (round = 0; round < 30; round++) {
        for (k = 0; k < 3; k++)
            for (i = 0; i < 64; i++)
                in[k][i] = w->t->rank + i + k + round + w->which;
        TEST_OK(w->t, w->comm, rondo_group_start());
        for (k = 0; k < 3; k++)
            TEST_OK(w->t, w->comm, rondo_allreduce(in[k], out[k], 64, RONDO_INT32, RONDO_MAX, w->comm, NULL));
        if (!TEST_OK(w->t, w->comm, rondo_group_end()))
            return NULL;
        for (k = 0; k < 3; k++)
            for (i = 0; i < 64; i++)
                if (out[k][i] != w->t->nranks - 1 + i + k + round + w->which) {
                    test_fail(w->t, "thread %d, round %d, call %d, element %d is %d", w->which, round, k, i, out[k][i]);
                    return NULL;
                }
    }
    return NULL;
}

/* A submit or an estimate without a place for its result is refused, and the group ends with it: the call behind it is
 * no part of a group that nobody ends. */
static void nowhere(test_rank_t *t, rondo_comm_t comm)
{
    for (int submits = 0; submits < 2; submits++) {
        int one = 1, never = 0, sum = 0;

        test_note(t, "%s(NULL)", submits ? "rondo_group_submit" : "rondo_group_estimate");
        TEST_OK(t, comm, rondo_group_start());
        TEST_OK(t, comm, rondo_allreduce(&one, &never, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT,
                   submits ? rondo_group_submit(NULL) : rondo_group_estimate(NULL));
        TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
        TEST_TRUE(t, sum == t->nranks && never == 0);
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_USAGE, rondo_group_end());
    }
}

/* What makes, ends or changes a communicator is refused inside a group, which goes on. */
static void no_operation(test_rank_t *t, rondo_comm_t comm)
{
    const rondo_result_t usage = RONDO_ERR_INVALID_USAGE;
    rondo_unique_id_t id;
    rondo_registration_t reg, other;
    rondo_comm_t made;
    int one = 1, sum = 0;

    test_note(t, "calls that may not be in a group");
    memset(&id, 0, sizeof id);
    TEST_OK(t, comm, rondo_comm_register(comm, &one, sizeof one, &reg));
    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    TEST_GIVES(t, NULL, usage, rondo_comm_create(&made, t->nranks, &id, t->rank, NULL));
    TEST_GIVES(t, NULL, usage, rondo_comm_create_all(&made, 1, NULL, NULL));
    TEST_GIVES(t, comm, usage, rondo_comm_split(comm, 0, 0, &made, NULL));
    TEST_GIVES(t, comm, usage, rondo_comm_shrink(comm, NULL, 0, &made, NULL));
    TEST_GIVES(t, comm, usage, rondo_comm_register(comm, &sum, sizeof sum, &other));
    TEST_GIVES(t, comm, usage, rondo_comm_deregister(comm, reg));
    TEST_GIVES(t, comm, usage, rondo_comm_destroy(comm));
    TEST_TRUE(t, strstr(rondo_last_error(comm), "group") != NULL);
    TEST_OK(t, comm, rondo_group_end());
    TEST_TRUE(t, sum == t->nranks);
    TEST_OK(t, comm, rondo_comm_deregister(comm, reg));
}

/* A group belongs to its thread: two threads of a rank, each with a communicator, in groups at the same time. */
static void several_threads(test_rank_t *t, rondo_comm_t *comm)
{
    pthread_t thread;
    worker_t w[2] = {{t, comm[0], 0}, {t, comm[1], 1}};

    test_note(t, "groups from two threads of each rank");
    if (pthread_create(&thread, NULL, worker, &w[1]) != 0)
        test_stop(t, "cannot start a thread");
    worker(&w[0]);
    pthread_join(thread, NULL);
}

static void body(test_rank_t *t, void *arg)
{
    rondo_comm_t comm[4];
    msg_t list[MOST];
    uint64_t random = 77;
    int i;

    (void)arg;
    for (i = 0; i < 4; i++)
        comm[i] = test_comm(t, NULL);
    empty(t, comm[0]);
    tested(t, comm[0]);
    zero_counts(t, comm[0]);
    ungrouped(t, comm[0]);
    for (i = 1; i <= 1024; i *= 8)
        one_way(t, comm[i % 3], i * 2 > 1024 ? 1024 : i * 2);
    to_oneself(t, comm);
    many_messages(t, comm[0], 10, 50);
    many_messages(t, comm[1], 5, 9000);
    twos(t, comm[1]);
    long_exchange(t, comm[2]);
    for (i = 0; i < 10; i++) {
        test_note(t, "random messages, round %d", i);
        msg_draw(list, 60, t->nranks, 30000, &random);
        run_messages(t, comm[i % 4], list, 60, test_mix(random + (uint64_t)t->rank));
    }
    for (i = 0; i < 5; i++) {
        requests(t, comm, 4);
        late_request(t, comm[i % 4]);
    }
    wrong_call(t, comm[0]);
    nowhere(t, comm[0]);
    no_operation(t, comm[0]);
    several_threads(t, comm);
    test_note(t, "destroy");
    for (i = 0; i < 4; i++)
        TEST_OK(t, NULL, rondo_comm_destroy(comm[i]));
}

int main(void)
{
    static const int ranks[] = {1, 2, 3, 4, 6};
    int bad = 0, i, kind;

    test_begin("groups", 400);
    for (i = 0; i < 5 && bad == 0; i++)
        for (kind = TEST_PROCESSES; kind <= TEST_THREADS && bad == 0; kind++)
            bad += test_run((test_kind_t)kind, ranks[i], 100, body, NULL);
    return bad != 0;
}
