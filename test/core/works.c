/* rondo_work_*: each call has a name by which it can be asked for, before, while and after it runs, also when it has
 * failed and when its communicator is gone; and one operation of a request can be waited for, for a time. On one node
 * and on two, by processes and by threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

static rondo_result_t add_up(rondo_comm_t comm)
{
    static _Thread_local int one, sum;

    one = 1;
    return rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
}

static rondo_work_info_t ask(test_rank_t *t, rondo_work_t work)
{
    rondo_work_info_t info = {.size = sizeof info};

    TEST_OK(t, NULL, rondo_work_query(work, &info));
    return info;
}

static rondo_work_t last(test_rank_t *t, rondo_comm_t comm)
{
    rondo_work_t work;

    TEST_OK(t, comm, rondo_work_last(comm, &work));
    return work;
}

static void expect(test_rank_t *t, rondo_work_t work, int state, uint64_t number, const char *call)
{
    rondo_work_info_t info = ask(t, work);

    if (info.state != state || info.number != number || strncmp(info.call, call, strlen(call)) != 0)
        test_fail(t, "state %d, number %llu, '%s'; not %d, %llu, '%s'", info.state, (unsigned long long)info.number,
                  info.call, state, (unsigned long long)number, call);
}

/* ---- calls that are over ---- */

static void blocking(test_rank_t *t, rondo_comm_t comm)
{
    rondo_work_t first, repeated, barrier, message;
    int peer = 1 - t->rank, out = 0, in = 0;

    test_note(t, "blocking calls");
    TEST_TRUE(t, last(t, comm).words[0] == 0 && last(t, comm).words[1] == 0);
    TEST_OK(t, comm, rondo_tag(3));
    TEST_OK(t, comm, add_up(comm));
    first = last(t, comm);
    for (int i = 0; i < 5; i++)
        TEST_OK(t, comm, add_up(comm));
    repeated = last(t, comm);
    TEST_OK(t, comm, rondo_tag(0));
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    barrier = last(t, comm);
    TEST_OK(t, comm,
            t->rank ? rondo_recv(&in, 1, RONDO_INT32, peer, comm, NULL)
                    : rondo_send(&out, 1, RONDO_INT32, peer, comm, NULL));
    message = last(t, comm);
    expect(t, first, RONDO_WORK_COMPLETED, 1, "allreduce, collective number 1 (1 int32, sum), tag 3");
    expect(t, repeated, RONDO_WORK_COMPLETED, 6, "allreduce, collective number 6 (1 int32, sum), tag 3");
    expect(t, barrier, RONDO_WORK_COMPLETED, 7, "barrier, collective number 7");
    expect(t, message, RONDO_WORK_COMPLETED, 1, t->rank ? "recv, number 1 (4 bytes" : "send, number 1 (4 bytes");
    rondo_work_info_t info = ask(t, first);
    TEST_TRUE(t, info.begun_ns > 0 && info.ended_ns >= info.begun_ns && info.bytes == 4 && info.count == 1 &&
                     info.tag == 3 && info.waits_for == -1 && info.result == RONDO_SUCCESS);
    TEST_TRUE(t, info.algo[0] && info.proto[0] && info.limit_ms == 0);
    TEST_TRUE(t, strcmp(ask(t, repeated).algo, info.algo) == 0 && !ask(t, message).algo[0]);
    TEST_TRUE(t, ask(t, repeated).begun_ns == 0 && ask(t, repeated).bytes == 4);
    TEST_OK(t, comm, rondo_work_wait(first, 0));
    info.size = 8;
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_work_query(first, &info));
}

/* ---- a request ---- */

static rondo_request_t submit(test_rank_t *t, rondo_comm_t comm, int *buffers)
{
    rondo_request_t request = NULL;

    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, rondo_allreduce(&buffers[0], &buffers[1], 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    TEST_OK(t, comm, rondo_send(&buffers[2], 1, RONDO_INT32, 1 - t->rank, comm, NULL));
    TEST_OK(t, comm, rondo_recv(&buffers[3], 1, RONDO_INT32, 1 - t->rank, comm, NULL));
    TEST_OK(t, comm, rondo_allreduce(&buffers[4], &buffers[5], 1, RONDO_INT32, RONDO_MAX, comm, NULL));
    TEST_OK(t, comm, rondo_group_submit(&request));
    return request;
}

/* For how long a call may still wait follows what is said of that while it is under way. */
static void limits(test_rank_t *t, rondo_comm_t comm, rondo_work_t work)
{
    TEST_TRUE(t, ask(t, work).limit_ms == 0);
    TEST_OK(t, comm, rondo_timeout_set(comm, 600000));
    TEST_TRUE(t, ask(t, work).limit_ms == 600000);
    TEST_OK(t, comm, rondo_timeout_extend(comm, 5000));
    TEST_TRUE(t, ask(t, work).limit_ms == 605000);
    TEST_OK(t, comm, rondo_timeout_set(comm, INT64_MAX));
    TEST_TRUE(t, ask(t, work).limit_ms == (INT64_C(1) << 40) + 5000); /* the longest there is */
    TEST_OK(t, comm, rondo_timeout_set(comm, 0));
    TEST_TRUE(t, ask(t, work).limit_ms == 0);
}

/* Rank 1 comes when rank 0 has seen that nothing is over. */
static void requested(test_rank_t *t, rondo_comm_t comm)
{
    int buffers[6] = {t->rank + 1, 0, t->rank, -1, t->rank, -1};
    rondo_request_t request = NULL;
    rondo_work_t works[5];

    test_note(t, "a request");
    test_barrier(t);
    if (t->rank == 0) {
        request = submit(t, comm, buffers);
        for (int i = 0; i < 4; i++)
            TEST_OK(t, comm, rondo_request_work(request, i, &works[i]));
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_request_work(request, 4, &works[4]));
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_request_work(request, -1, &works[4]));
        expect(t, works[0], RONDO_WORK_STARTED, 8, "allreduce, collective number 8 (1 int32, sum)");
        expect(t, works[3], RONDO_WORK_ENQUEUED, 9, "allreduce, collective number 9 (1 int32, max)");
        TEST_GIVES(t, NULL, RONDO_ERR_TIMEOUT, rondo_work_wait(works[0], 100));
        TEST_GIVES(t, NULL, RONDO_ERR_TIMEOUT, rondo_work_wait(works[3], 0));
        TEST_TRUE(t, ask(t, works[0]).waits_for == 1);
        limits(t, comm, works[3]);
    }
    test_barrier(t);
    if (t->rank == 1) {
        request = submit(t, comm, buffers);
        for (int i = 0; i < 4; i++)
            TEST_OK(t, comm, rondo_request_work(request, i, &works[i]));
    }
    TEST_OK(t, comm, rondo_work_wait(works[2], t->rank ? -1 : INT64_MAX));
    TEST_TRUE(t, buffers[3] == 1 - t->rank);
    TEST_OK(t, comm, rondo_work_wait(works[3], 60000));
    expect(t, works[0], RONDO_WORK_COMPLETED, 8, "allreduce");
    expect(t, works[3], RONDO_WORK_COMPLETED, 9, "allreduce");
    TEST_TRUE(t, buffers[1] == 3 && buffers[5] == 1);
    TEST_OK(t, comm, rondo_request_wait(&request));
    expect(t, works[1], RONDO_WORK_COMPLETED, t->rank ? 1 : 2, "send");
    expect(t, works[2], RONDO_WORK_COMPLETED, t->rank ? 2 : 1, "recv");
}

/* Of several messages one way only the first is a task, but each has its name, and the last call is the one that was
 * made last. Rank 1 comes when rank 0 has seen that nothing has come. */
static void followed(test_rank_t *t, rondo_comm_t comm)
{
    static const bool sends[] = {true, false, true, false, false, true};
    const uint64_t number[] = {3u - (unsigned)t->rank, 2u + (unsigned)t->rank, 4u - (unsigned)t->rank,
                               3u + (unsigned)t->rank, 4u + (unsigned)t->rank, 5u - (unsigned)t->rank};
    int out[3][2] = {{10, 0}, {20, 0}, {30, 40}}, in[3][2] = {{0}}, nsent = 0, nreceived = 0, peer = 1 - t->rank;
    rondo_request_t request = NULL;
    rondo_work_t works[7], end;

    test_note(t, "messages that follow others");
    test_barrier(t);
    if (t->rank == 1)
        test_barrier(t);
    TEST_OK(t, comm, rondo_group_start());
    for (int i = 0; i < 6; i++) {
        int k = sends[i] ? nsent++ : nreceived++;
        size_t count = k == 2 ? 2 : 1;
        TEST_OK(t, comm,
                sends[i] ? rondo_send(out[k], count, RONDO_INT32, peer, comm, NULL)
                         : rondo_recv(in[k], count, RONDO_INT32, peer, comm, NULL));
    }
    TEST_OK(t, comm, rondo_group_submit(&request));
    end = last(t, comm);
    for (int i = 0; i < 6; i++)
        TEST_OK(t, comm, rondo_request_work(request, i, &works[i]));
    TEST_TRUE(t, memcmp(&end, &works[5], sizeof end) == 0);
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_request_work(request, 6, &works[6]));
    if (t->rank == 0) {
        for (int i = 0; i < 6; i++)
            if (!sends[i])
                expect(t, works[i], RONDO_WORK_STARTED, number[i], "recv");
        TEST_GIVES(t, NULL, RONDO_ERR_TIMEOUT, rondo_work_wait(works[4], 0));
        test_barrier(t);
    }
    TEST_OK(t, comm, rondo_work_wait(works[4], -1));
    TEST_OK(t, comm, rondo_request_wait(&request));
    for (int i = 0; i < 6; i++)
        expect(t, works[i], RONDO_WORK_COMPLETED, number[i], sends[i] ? "send" : "recv");
    TEST_TRUE(t, memcmp(in, out, sizeof in) == 0);
}

/* What a request does by one-sided operations is not counted. */
static void one_sided(test_rank_t *t, rondo_comm_t comm)
{
    const rondo_wait_desc_t wait = {.count = 1, .peer = 1 - t->rank};
    int one = 1, sum = 0;
    rondo_request_t request = NULL;
    rondo_window_t window = NULL;
    rondo_work_t work;

    test_note(t, "one-sided operations");
    TEST_OK(t, comm, rondo_window_create(comm, NULL, 8, &window, 0));
    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, rondo_signal(1 - t->rank, 0, 0, 0, comm, NULL));
    TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    TEST_OK(t, comm, rondo_wait_signal(1, &wait, comm, NULL));
    TEST_OK(t, comm, rondo_group_submit(&request));
    TEST_OK(t, comm, rondo_request_work(request, 0, &work));
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_request_work(request, 1, &work));
    TEST_OK(t, comm, rondo_request_wait(&request));
    expect(t, work, RONDO_WORK_COMPLETED, 2, "allreduce, collective number 2"); /* the window was the first */
    TEST_TRUE(t, sum == 2);
    TEST_OK(t, comm, rondo_window_destroy(comm, window));
}

/* ---- failures ---- */

/* Rank 1 leaves while rank 0 has begun a call that it repeats, which fails, and so does the next one. */
static void failing(test_rank_t *t, rondo_comm_t comm)
{
    rondo_request_t request = NULL;
    rondo_work_t before, failed, later;
    int one = 1, sum;

    test_note(t, "failures");
    TEST_OK(t, comm, add_up(comm));
    TEST_OK(t, comm, add_up(comm));
    before = last(t, comm);
    if (t->rank == 0) {
        TEST_OK(t, comm, rondo_group_start());
        for (int i = 0; i < 3; i++)
            TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
        TEST_OK(t, comm, rondo_group_submit(&request));
        TEST_OK(t, comm, rondo_request_work(request, 0, &failed));
    }
    test_barrier(t);
    if (t->rank == 1) {
        rondo_comm_abort(comm);
        test_barrier(t);
        return;
    }
    TEST_GIVES(t, comm, RONDO_ERR_REMOTE, rondo_request_wait(&request));
    TEST_GIVES(t, comm, RONDO_ERR_REMOTE, add_up(comm));
    later = last(t, comm);
    test_barrier(t);
    for (int gone = 0; gone < 2; gone++) {
        expect(t, before, RONDO_WORK_COMPLETED, 11, "allreduce");
        expect(t, failed, RONDO_WORK_FAILED, 12, "allreduce");
        TEST_TRUE(t, ask(t, failed).result == RONDO_ERR_REMOTE && ask(t, before).result == RONDO_SUCCESS);
        TEST_TRUE(t, ask(t, later).state == RONDO_WORK_FAILED);
        if (!gone) {
            TEST_GIVES(t, comm, RONDO_ERR_REMOTE, rondo_work_wait(failed, 0));
            TEST_OK(t, comm, rondo_work_wait(before, 0));
            rondo_comm_abort(comm);
        }
    }
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_work_wait(failed, 0));
}

/* Rank 1 leaves where rank 0 repeats its call, which fails, and so does the next one: both are known to have failed. */
static void failing_repeats(test_rank_t *t, rondo_comm_t comm)
{
    rondo_work_t before, failed;

    test_note(t, "repetitions that fail");
    for (int i = 0; i < 3; i++)
        TEST_OK(t, comm, add_up(comm));
    before = last(t, comm);
    if (t->rank == 0) {
        TEST_GIVES(t, comm, RONDO_ERR_REMOTE, add_up(comm));
        failed = last(t, comm);
        TEST_GIVES(t, comm, RONDO_ERR_REMOTE, add_up(comm));
        expect(t, before, RONDO_WORK_COMPLETED, 3, "allreduce");
        expect(t, failed, RONDO_WORK_FAILED, 4, "allreduce");
        expect(t, last(t, comm), RONDO_WORK_FAILED, 5, "allreduce");
        TEST_TRUE(t, ask(t, failed).result == RONDO_ERR_REMOTE);
    }
    rondo_comm_abort(comm);
}

static void body(test_rank_t *t, void *arg)
{
    const rondo_work_t none = {{0, 0}};
    rondo_comm_t other = test_comm(t, NULL), comm = test_comm_on(t, *(int *)arg); /* the record stays for the first */

    if (!comm)
        return;
    TEST_TRUE(t, ask(t, none).state == RONDO_WORK_UNKNOWN);
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_work_wait(none, 0));
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_work_wait(none, -2));
    blocking(t, comm);
    requested(t, comm);
    followed(t, comm);
    one_sided(t, other);
    failing(t, comm);
    failing_repeats(t, test_comm_on(t, *(int *)arg));
    TEST_OK(t, other, rondo_comm_destroy(other));
}

static void without_record(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL);

    (void)arg;
    TEST_OK(t, comm, add_up(comm));
    TEST_TRUE(t, last(t, comm).words[0] == 0 && last(t, comm).words[1] == 0);
    rondo_comm_destroy(comm);
}

int main(void)
{
    int bad = 0, nodes[] = {1, 2};

    test_begin("works", 90);
    for (int i = 0; i < 2; i++)
        bad |= test_run(TEST_PROCESSES, 2, 30, body, &nodes[i]) != 0;
    bad |= test_run(TEST_THREADS, 2, 30, body, &nodes[0]) != 0;
    setenv("RONDO_MONITOR", "0", 1);
    bad |= test_run(TEST_PROCESSES, 2, 30, without_record, NULL) != 0;
    return bad;
}
