/* Communicators that are ended while somebody still holds something of them: requests that are asked for afterwards,
 * groups that were recorded before, calls that another thread is in, or just about to make. Each gets an answer, none
 * looks at memory that is no longer there (freed memory is overwritten here, so that it shows), and an abort waits for
 * its own communicator alone.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/harness.h"

#define COUNT 5000

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
    _Atomic int begun, over;
    rondo_result_t result;
} other_t;

static pthread_t start(test_rank_t *t, void *(*run)(void *), other_t *other)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run, other) != 0)
        test_stop(t, "cannot start a thread");
    return thread;
}

static void *abort_it(void *arg)
{
    other_t *o = arg;

    while (!o->begun)
        sched_yield();
    usleep(3000);
    o->result = rondo_comm_abort(o->comm);
    o->over = 1;
    return NULL;
}

/* An abort by another thread, from whenever the caller says so. */
static pthread_t abort_from(test_rank_t *t, rondo_comm_t comm, other_t *other)
{
    *other = (other_t){t, comm, 0, 0, RONDO_ERR_INTERNAL};
    return start(t, abort_it, other);
}

static rondo_result_t submit(test_rank_t *t, rondo_comm_t *comm, int ncomms, float *buffer, rondo_request_t *request)
{
    int i;

    TEST_OK(t, NULL, rondo_group_start());
    for (i = 0; i < ncomms; i++)
        TEST_OK(
            t, comm[i],
            rondo_allreduce(buffer + i * COUNT, buffer + i * COUNT, COUNT, RONDO_FLOAT32, RONDO_SUM, comm[i], NULL));
    return rondo_group_submit(request);
}

/* A destroy waits for what was submitted; the request tells of it afterwards. */
static void asked_after_destroy(test_rank_t *t, float *buffer)
{
    rondo_comm_t comm = test_comm(t, NULL);
    rondo_request_t request = NULL;
    int done = 0;

    test_note(t, "a request after the destroy");
    buffer[0] = 1;
    TEST_OK(t, comm, submit(t, &comm, 1, buffer, &request));
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    TEST_TRUE(t, buffer[0] == (float)t->nranks);
    if (t->rank % 2)
        TEST_OK(t, NULL, rondo_request_wait(&request));
    else
        TEST_OK(t, NULL, rondo_request_test(&request, &done));
    TEST_TRUE(t, request == NULL);
    test_note(t, "a second destroy");
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_destroy(comm));
    TEST_TRUE(t, strstr(rondo_last_error(NULL), "destroyed") != NULL);
    test_barrier(t);
}

typedef struct {
    other_t other;
    rondo_request_t request;
    rondo_result_t waited;
} waiter_t;

static void *wait_for_it(void *arg)
{
    waiter_t *w = arg;

    atomic_store(&w->other.begun, 1);
    w->waited = rondo_request_wait(&w->request);
    atomic_store(&w->other.over, 1);
    return NULL;
}

/* One request on two communicators. One of them is aborted while another thread waits for both: the abort returns
 * although the wait goes on, until rank 0 comes for the other one. */
static void one_of_two(test_rank_t *t, float *buffer)
{
    rondo_comm_t comm[2] = {test_comm(t, NULL), test_comm(t, NULL)};
    waiter_t w = {{t, comm[0], 0, 0, RONDO_SUCCESS}, NULL, RONDO_SUCCESS};
    pthread_t thread;

    test_note(t, "one communicator of two is aborted");
    buffer[COUNT] = 1;
    if (t->rank == 0) {
        test_barrier(t); /* all others have submitted */
        test_barrier(t); /* all others have aborted */
        TEST_OK(t, comm[1],
                rondo_allreduce(buffer + COUNT, buffer + COUNT, COUNT, RONDO_FLOAT32, RONDO_SUM, comm[1], NULL));
        rondo_comm_destroy(comm[0]);
    } else {
        TEST_OK(t, comm[0], submit(t, comm, 2, buffer, &w.request));
        thread = start(t, wait_for_it, (other_t *)&w);
        while (!atomic_load(&w.other.begun))
            sched_yield();
        test_barrier(t); /* nobody's abort comes before this */
        usleep(2000);
        TEST_OK(t, NULL, rondo_comm_abort(comm[0]));
        TEST_TRUE(t, !atomic_load(&w.other.over));
        test_barrier(t);
        pthread_join(thread, NULL);
        if (w.waited != RONDO_ERR_ABORTED && w.waited != RONDO_ERR_REMOTE)
            test_fail(t, "the request gave %s", rondo_result_string(w.waited));
    }
    TEST_TRUE(t, buffer[COUNT] == (float)t->nranks);
    TEST_OK(t, NULL, rondo_comm_destroy(comm[1]));
    test_barrier(t);
}

/* A group is recorded, its communicator is aborted, the group ends: with the abort's result, and so do calls on what
 * is no longer a communicator. */
static void recorded_before(test_rank_t *t, float *buffer)
{
    rondo_comm_t comm = test_comm(t, NULL);
    rondo_request_t request = (rondo_request_t)(void *)buffer;
    rondo_result_t error = RONDO_SUCCESS, result;
    pthread_t thread;
    other_t other;
    int submits;

    test_note(t, "a group from before an abort");
    test_barrier(t);
    thread = abort_from(t, comm, &other);
    submits = t->rank % 2;
    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, rondo_allreduce(buffer, buffer, COUNT, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    TEST_OK(t, comm, rondo_send(buffer, 1, RONDO_FLOAT32, t->rank, comm, NULL));
    TEST_OK(t, comm, rondo_recv(buffer + 1, 1, RONDO_FLOAT32, t->rank, comm, NULL));
    test_barrier(t); /* nobody's abort comes before this */
    other.begun = 1;
    pthread_join(thread, NULL);
    /* Another rank's abort may have been the first. */
    result = submits ? rondo_group_submit(&request) : rondo_group_end();
    if (result != RONDO_ERR_ABORTED && result != RONDO_ERR_REMOTE)
        test_fail(t, "the group gave %s", rondo_result_string(result));
    TEST_TRUE(t, request == (rondo_request_t)(void *)buffer && rondo_last_error(NULL)[0] != 0);
    test_note(t, "calls that come after an abort");
    TEST_GIVES(t, NULL, RONDO_ERR_ABORTED, rondo_barrier(comm, NULL));
    TEST_TRUE(t, strstr(rondo_last_error(NULL), "aborted") != NULL);
    TEST_GIVES(t, NULL, RONDO_ERR_ABORTED, rondo_comm_get_error(comm, &error));
    TEST_GIVES(t, NULL, RONDO_ERR_ABORTED, rondo_comm_abort(comm));
    test_barrier(t);
}

static void *keep_asking(void *arg)
{
    other_t *o = arg;
    rondo_result_t error = RONDO_SUCCESS, result;

    do {
        result = rondo_comm_get_error(o->comm, &error);
        if (result == RONDO_SUCCESS && error == RONDO_SUCCESS)
            continue;
        if (result == RONDO_SUCCESS && error != RONDO_ERR_ABORTED && error != RONDO_ERR_REMOTE)
            test_fail(o->t, "rondo_comm_get_error: %s", rondo_result_string(error));
    } while (result == RONDO_SUCCESS && !o->over);
    return NULL;
}

/* Calls, questions and an abort meet at any moment: the calls end with an error. */
static void any_moment(test_rank_t *t, float *buffer, int round)
{
    rondo_comm_t comm = test_comm(t, NULL);
    other_t aborter, asker = {t, comm, 0, 0, RONDO_SUCCESS};
    rondo_result_t result = RONDO_SUCCESS;
    pthread_t thread, asking;
    int k;

    test_note(t, "an abort at any moment, round %d", round);
    test_barrier(t); /* an abort before a creation is over elsewhere ends that */
    thread = abort_from(t, comm, &aborter);
    asking = start(t, keep_asking, &asker);
    aborter.begun = 1;
    for (k = 0; result == RONDO_SUCCESS; k++) {
        rondo_request_t request = NULL;

        switch ((round + k) % 3) {
        case 0:
            result = rondo_allreduce(buffer, buffer, 10, RONDO_FLOAT32, RONDO_MAX, comm, NULL);
            break;
        case 1:
            rondo_group_start();
            rondo_allreduce(buffer, buffer, COUNT, RONDO_FLOAT32, RONDO_MAX, comm, NULL);
            result = rondo_group_end();
            break;
        default:
            rondo_group_start();
            rondo_barrier(comm, NULL);
            result = rondo_group_submit(&request);
            if (result == RONDO_SUCCESS)
                result = rondo_request_wait(&request);
        }
    }
    if (result != RONDO_ERR_ABORTED && result != RONDO_ERR_REMOTE)
        test_fail(t, "a call gave %s", rondo_result_string(result));
    TEST_TRUE(t, rondo_last_error(NULL)[0] != 0);
    pthread_join(thread, NULL);
    asker.over = 1;
    pthread_join(asking, NULL);
    TEST_TRUE(t, aborter.result == RONDO_SUCCESS);
    test_barrier(t);
}

/* An abort ends a split whose other ranks never come. */
static void in_a_split(test_rank_t *t)
{
    rondo_comm_t comm = test_comm(t, NULL), half = NULL;
    rondo_result_t result;
    pthread_t thread;
    other_t other;

    test_note(t, "an abort during a split");
    test_barrier(t);
    if (t->rank > 0) {
        thread = abort_from(t, comm, &other);
        other.begun = 1;
        result = rondo_comm_split(comm, 1, 0, &half, NULL);
        if (result != RONDO_ERR_ABORTED && result != RONDO_ERR_REMOTE)
            test_fail(t, "the split gave %s", rondo_result_string(result));
        TEST_TRUE(t, half == NULL);
        pthread_join(thread, NULL);
    }
    test_barrier(t);
    if (t->rank == 0)
        rondo_comm_destroy(comm);
    test_barrier(t);
}

/* Rank 0 sends, or sums, from memory that it unmaps the moment its aborted call has returned: another thread of the
 * process that was reading there must not crash. */
static void vanishing(test_rank_t *t, int round)
{
    size_t count = 6 << 20, bytes = count * sizeof(float);
    rondo_comm_t comm = test_comm(t, NULL);
    rondo_result_t result = RONDO_SUCCESS;
    other_t aborter = {t, comm, 0, 0, RONDO_ERR_INTERNAL};
    pthread_t thread = 0;
    float *from = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    float *to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (from == MAP_FAILED || to == MAP_FAILED)
        test_stop(t, "no memory");
    test_note(t, "a buffer that vanishes, round %d", round);
    test_barrier(t);
    if (t->rank == 0) {
        thread = start(t, abort_it, &aborter);
        aborter.begun = 1;
    }
    while (result == RONDO_SUCCESS) {
        if (round % 2)
            result = rondo_allreduce(from, to, count, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
        else if (t->rank == 0)
            result = rondo_send(from, count, RONDO_FLOAT32, 1, comm, NULL);
        else
            result = rondo_recv(to, count, RONDO_FLOAT32, 0, comm, NULL);
    }
    munmap(from, bytes);
    munmap(to, bytes);
    TEST_TRUE(t, result == (t->rank == 0 ? RONDO_ERR_ABORTED : RONDO_ERR_REMOTE));
    TEST_TRUE(t, t->rank == 0 || strstr(rondo_last_error(comm), "rank 0") != NULL);
    if (t->rank == 0)
        pthread_join(thread, NULL);
    else
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    test_barrier(t);
}

static void vanish(test_rank_t *t, void *arg)
{
    int round;

    (void)arg;
    for (round = 0; round < 12; round++)
        vanishing(t, round);
}

static void body(test_rank_t *t, void *arg)
{
    float *buffer = calloc(2 * COUNT, sizeof *buffer);
    int round;

    (void)arg;
    if (!buffer)
        test_stop(t, "no memory");
    asked_after_destroy(t, buffer);
    one_of_two(t, buffer);
    recorded_before(t, buffer);
    for (round = 0; round < 6; round++)
        any_moment(t, buffer, round);
    in_a_split(t);
    free(buffer);
}

int main(void)
{
    int bad = 0, kind, n;

    test_begin("ended", 240);
    mallopt(M_PERTURB, 0xa5);
    for (kind = TEST_PROCESSES; kind <= TEST_THREADS; kind++)
        for (n = 2; n <= 4 && bad == 0; n += 2)
            bad += test_run((test_kind_t)kind, n, 100, body, NULL);
    for (kind = TEST_PROCESSES; kind <= TEST_THREADS; kind++)
        bad += test_run((test_kind_t)kind, 2, 100, vanish, NULL);
    return bad != 0;
}
