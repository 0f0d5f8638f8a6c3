/* rondo_comm_revoke: one rank revokes while the others, and another thread of its own, wait in an operation that cannot
 * end. All of them leave, the communicator stays for rondo_comm_shrink, and the shrunk one moves data.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "util/harness.h"

#define COUNT 100000

typedef struct waiter {
    rondo_comm_t comm;
    rondo_result_t result;
    _Atomic int begun;
} waiter_t;

static float in[COUNT], out[COUNT];

/* Nobody sends. */
static void *wait_for_nothing(void *arg)
{
    waiter_t *w = arg;

    atomic_store(&w->begun, 1);
    w->result = rondo_recv(out, COUNT, RONDO_FLOAT32, 1, w->comm, NULL);
    return NULL;
}

static void shrink(test_rank_t *t, rondo_comm_t comm)
{
    rondo_comm_t smaller = NULL;
    int excluded = t->nranks - 1, size = 0;

    if (t->rank == excluded)
        return;
    test_note(t, "shrink");
    if (!TEST_OK(t, comm, rondo_comm_shrink(comm, &excluded, 1, &smaller, NULL)))
        return;
    in[0] = 1;
    TEST_OK(t, smaller, rondo_comm_size(smaller, &size));
    TEST_OK(t, smaller, rondo_allreduce(in, out, 1, RONDO_FLOAT32, RONDO_SUM, smaller, NULL));
    TEST_TRUE(t, size == t->nranks - 1 && out[0] == (float)size);
    TEST_OK(t, NULL, rondo_comm_destroy(smaller));
}

static void run(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL);
    waiter_t waiter = {comm, RONDO_SUCCESS, 0};
    rondo_result_t error = RONDO_SUCCESS;
    pthread_t thread;

    (void)arg;
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_barrier(t); /* all of them have returned from it: from here on rank 0 may end what is under way */
    if (t->rank == 0) {
        test_note(t, "revoke");
        if (pthread_create(&thread, NULL, wait_for_nothing, &waiter) != 0)
            test_stop(t, "no thread");
        while (!atomic_load(&waiter.begun))
            ;
        TEST_OK(t, comm, rondo_comm_revoke(comm));
        pthread_join(thread, NULL);
        TEST_GIVES(t, comm, RONDO_ERR_ABORTED, waiter.result);
        TEST_OK(t, comm, rondo_comm_get_error(comm, &error));
        TEST_GIVES(t, comm, RONDO_ERR_ABORTED, error);
        TEST_GIVES(t, comm, RONDO_ERR_ABORTED, rondo_barrier(comm, NULL));
    } else {
        test_note(t, "an operation that the other leaves");
        TEST_GIVES(t, comm, RONDO_ERR_REMOTE, rondo_barrier(comm, NULL));
    }
    test_barrier(t);
    shrink(t, comm);
    test_barrier(t);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

int main(void)
{
    int bad = 0;

    test_begin("revoke", 60);
    for (int i = 0; i < 3 && !bad; i++)
        bad += test_run(TEST_PROCESSES, 2 + i, 20, run, NULL);
    return bad != 0;
}
