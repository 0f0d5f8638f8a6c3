/* A group for whose collective there is no memory is refused before anything of it has begun: nothing of it reaches
 * the other ranks but the news, and they do not wait for ever.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

#define COUNT 100000

static _Atomic int refusing, refused;

/* In front of the C library's, which knows no way to run out of memory at will. */
__attribute__((visibility("default"))) void *aligned_alloc(size_t alignment, size_t bytes)
{
    void *memory = NULL;

    if (refusing) {
        refused++;
        errno = ENOMEM;
        return NULL;
    }
    return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

typedef struct {
    float *in, *sum, *small;
    int from[10], to[10];
} data_t;

/* The communicator may have failed before the group is whole: the end then says the same as the call. */
static rondo_result_t group(test_rank_t *t, rondo_comm_t comm, data_t *d, rondo_request_t *request)
{
    int right = (t->rank + 1) % t->nranks, left = (t->rank + t->nranks - 1) % t->nranks;
    rondo_result_t result;

    TEST_OK(t, comm, rondo_group_start());
    rondo_send(d->from, 10, RONDO_INT32, right, comm, NULL);
    rondo_allreduce(d->in, d->small, 3, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    rondo_allreduce(d->in, d->sum, COUNT, RONDO_FLOAT32, RONDO_AVG, comm, NULL);
    rondo_recv(d->to, 10, RONDO_INT32, left, comm, NULL);
    if (!request)
        return rondo_group_end();
    result = rondo_group_submit(request);
    return result == RONDO_SUCCESS ? rondo_request_wait(request) : result;
}

static void body(test_rank_t *t, void *arg)
{
    int submits = *(int *)arg, i;
    rondo_comm_t comm = test_comm(t, NULL);
    rondo_request_t request = NULL;
    data_t d = {calloc(COUNT, sizeof(float)), calloc(COUNT, sizeof(float)), calloc(3, sizeof(float)), {0}, {0}};

    if (!d.in || !d.sum || !d.small)
        test_stop(t, "no memory");
    for (i = 0; i < COUNT; i++)
        d.in[i] = 1;
    for (i = 0; i < 10; i++)
        d.from[i] = 1;
    test_barrier(t);
    refusing = t->rank == 0;
    test_note(t, "a group without memory");
    TEST_GIVES(t, comm, t->rank ? RONDO_ERR_REMOTE : RONDO_ERR_NO_MEMORY,
               group(t, comm, &d, submits ? &request : NULL));
    refusing = 0;
    TEST_TRUE(t, request == NULL && d.sum[1] == 0 && d.small[1] == 0);
    if (t->rank == 0)
        TEST_TRUE(t, refused > 0 && strstr(rondo_last_error(comm), "scratch") != NULL);
    else
        TEST_TRUE(t, strstr(rondo_last_error(comm), "rank 0") != NULL);
    TEST_TRUE(t, t->rank > 1 || d.to[0] == 0); /* rank 0's message, and the one to it */
    test_barrier(t);
    rondo_comm_destroy(comm);
    free(d.in);
    free(d.sum);
    free(d.small);
}

int main(void)
{
    int bad = 0, submits;

    test_begin("group_memory", 200);
    setenv("RONDO_PROTO", "simple", 1); /* one that needs scratch */
    for (submits = 0; submits < 2; submits++)
        bad += test_run(TEST_PROCESSES, 4, 60, body, &submits);
    return bad != 0;
}
