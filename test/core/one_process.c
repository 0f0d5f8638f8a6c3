/* All ranks in one thread: rondo_comm_create_all, and groups that hold the calls of every rank. One thread makes the
 * progress of all of them, so nothing may wait for a rank whose turn it is not. Also memory and registrations, and a
 * communicator that does not block.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"
#include "util/operation.h"

#define MOST 6

static void all_ranks(test_rank_t *t, rondo_comm_t *comms, int n, const do_case_t *c, int submit)
{
    do_call_t call[MOST];
    rondo_request_t request = NULL;
    char text[200], wrong[256];
    int r, done = 0;

    do_text(c, text, sizeof text);
    test_note(t, "%d ranks in one thread: %s", n, text);
    for (r = 0; r < n; r++)
        if (do_prepare(&call[r], c, r, n) != 0)
            test_stop(t, "no memory");
    TEST_OK(t, NULL, rondo_group_start());
    for (r = n - 1; r >= 0; r--)
        TEST_OK(t, comms[r], do_post(&call[r], comms[r]));
    if (!submit) {
        if (!TEST_OK(t, comms[0], rondo_group_end()))
            test_stop(t, "cannot go on");
    } else {
        TEST_OK(t, comms[0], rondo_group_submit(&request));
        while (!done)
            if (!TEST_OK(t, comms[0], rondo_request_test(&request, &done)))
                test_stop(t, "cannot go on");
    }
    for (r = 0; r < n; r++) {
        if (do_verify(&call[r], 1, wrong, sizeof wrong) != 0)
            test_fail(t, "rank %d: %s", r, wrong);
        if (do_hash(&call[r]) != do_hash(&call[0]))
            test_fail(t, "ranks 0 and %d got different bits", r);
    }
    for (r = 0; r < n; r++)
        do_release(&call[r]);
}

static void create_all(test_rank_t *t, void *arg)
{
    static const size_t counts[] = {3, 0, 4097, 100003};
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comms[MOST];
    uint64_t random = 9;
    int n = *(int *)arg, r, what, k;

    config.device = RONDO_DEVICE_HOST;
    test_note(t, "create_all, %d", n);
    if (!TEST_OK(t, NULL, rondo_comm_create_all(comms, n, NULL, &config)))
        return;
    for (r = 0; r < n; r++) {
        int rank = -1, size = -1;

        TEST_OK(t, comms[r], rondo_comm_rank(comms[r], &rank));
        TEST_OK(t, comms[r], rondo_comm_size(comms[r], &size));
        TEST_TRUE(t, rank == r && size == n);
    }
    for (what = 0; what < DO_NUM; what++)
        for (k = 0; k < 4; k++) {
            do_case_t c = {.what = (do_what_t)what, .type = RONDO_FLOAT32, .op = RONDO_SUM, .count = counts[k]};

            c.data = do_reduces(c.what) ? REF_ROUNDING : REF_BYTES;
            c.root = (int)test_below(&random, (unsigned)n);
            c.in_place = do_has_in_place(c.what) && test_below(&random, 2);
            c.skew = do_has_counts(c.what) ? (int)test_below(&random, 100) : 0;
            c.seed = test_random(&random) >> 32;
            all_ranks(t, comms, n, &c, k % 2);
        }
    for (r = 0; r < n; r++) {
        test_note(t, "destroy %d of %d", r, n);
        TEST_OK(t, NULL, rondo_comm_destroy(comms[r]));
    }
}

static void memory(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL);
    rondo_registration_t reg = NULL;
    size_t bytes = 3000001, i;
    void *buffer = NULL;
    unsigned char *data;

    (void)arg;
    test_note(t, "memory and registration");
    if (!TEST_OK(t, comm, rondo_mem_alloc(&buffer, bytes, comm)))
        return;
    data = buffer;
    for (i = 0; i < bytes; i++)
        data[i] = (unsigned char)(i % 251);
    TEST_OK(t, comm, rondo_comm_register(comm, buffer, bytes, &reg));
    TEST_OK(t, comm, rondo_allreduce(buffer, buffer, bytes, RONDO_UINT8, RONDO_MAX, comm, NULL));
    for (i = 0; i < bytes && data[i] == (unsigned char)(i % 251);)
        i++;
    if (i < bytes)
        test_fail(t, "element %zu is %d", i, data[i]);
    TEST_OK(t, comm, rondo_comm_deregister(comm, reg));
    TEST_OK(t, comm, rondo_mem_free(buffer, comm));
    TEST_OK(t, comm, rondo_mem_free(NULL, comm));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_deregister(comm, NULL));
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

/* blocking = 0: whatever is under way is over when rondo_comm_get_error no longer says RONDO_IN_PROGRESS. */
static int settled(test_rank_t *t, rondo_comm_t comm, rondo_result_t result, const char *text)
{
    while (result == RONDO_IN_PROGRESS) {
        rondo_result_t asked = rondo_comm_get_error(comm, &result);

        if (!test_result(t, comm, asked, RONDO_SUCCESS, text))
            return 0;
    }
    return test_result(t, comm, result, RONDO_SUCCESS, text);
}

static void not_blocking(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    int32_t in[100], out[100], i, k;
    rondo_comm_t comm = NULL;
    rondo_unique_id_t id;

    (void)arg;
    config.device = RONDO_DEVICE_HOST;
    config.blocking = 0;
    test_note(t, "creation that does not block");
    test_id(t, &id);
    if (!settled(t, comm, rondo_comm_create(&comm, t->nranks, &id, t->rank, &config), "creation"))
        return;
    for (k = 0; k < 20; k++) {
        for (i = 0; i < 100; i++)
            in[i] = i + k;
        test_note(t, "operation %d that does not block", k);
        if (!settled(t, comm, rondo_allreduce(in, out, 100, RONDO_INT32, RONDO_SUM, comm, NULL), "allreduce"))
            return;
        for (i = 0; i < 100; i++)
            if (out[i] != t->nranks * in[i]) {
                test_fail(t, "element %d is %d", i, out[i]);
                return;
            }
    }
    if (settled(t, comm, rondo_comm_finalize(comm), "finalize"))
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

int main(void)
{
    int bad = 0, n;

    test_begin("one_process", 100);
    for (n = 1; n <= MOST && !bad; n++)
        bad += test_run(n % 2 ? TEST_PROCESSES : TEST_THREADS, 1, 30, create_all, &n);
    for (n = 1; n <= 3 && !bad; n++) {
        bad += test_run(TEST_PROCESSES, n, 20, memory, NULL);
        bad += test_run(TEST_THREADS, n, 20, not_blocking, NULL);
    }
    return bad != 0;
}
