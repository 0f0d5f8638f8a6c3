/* A group for whose collective there is no memory is refused before anything of it has begun: the same group works a
 * moment later, while the other ranks have been waiting for it all the time.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

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

static rondo_result_t group(test_rank_t *t, rondo_comm_t comm, data_t *d, rondo_request_t *request)
{
    int right = (t->rank + 1) % t->nranks, left = (t->rank + t->nranks - 1) % t->nranks;

    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, rondo_send(d->from, 10, RONDO_INT32, right, comm, NULL));
    TEST_OK(t, comm, rondo_allreduce(d->in, d->small, 3, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    TEST_OK(t, comm, rondo_allreduce(d->in, d->sum, COUNT, RONDO_FLOAT32, RONDO_AVG, comm, NULL));
    TEST_OK(t, comm, rondo_recv(d->to, 10, RONDO_INT32, left, comm, NULL));
    return request ? rondo_group_submit(request) : rondo_group_end();
}

static void body(test_rank_t *t, void *arg)
{
    int submits = *(int *)arg, i, left = (t->rank + t->nranks - 1) % t->nranks;
    rondo_comm_t comm = test_comm(t, NULL);
    rondo_request_t request = NULL;
    data_t d = {malloc(COUNT * sizeof(float)), calloc(COUNT, sizeof(float)), calloc(3, sizeof(float)), {0}, {0}};

    if (!d.in || !d.sum || !d.small)
        test_stop(t, "no memory");
    for (i = 0; i < COUNT; i++)
        d.in[i] = (float)(t->rank + i % 50);
    for (i = 0; i < 10; i++)
        d.from[i] = t->rank * 100 + i;
    if (t->rank == 0) {
        test_note(t, "a group without memory");
        refusing = 1;
        TEST_GIVES(t, comm, RONDO_ERR_NO_MEMORY, group(t, comm, &d, submits ? &request : NULL));
        refusing = 0;
        TEST_TRUE(t, refused > 0 && request == NULL);
        TEST_TRUE(t, strstr(rondo_last_error(comm), "scratch") != NULL);
        TEST_TRUE(t, d.sum[1] == 0 && d.small[1] == 0);
    }
    test_note(t, "the same group");
    if (!TEST_OK(t, comm, group(t, comm, &d, submits ? &request : NULL)))
        test_stop(t, "cannot go on");
    TEST_OK(t, comm, rondo_request_wait(&request));
    for (i = 0; i < 3; i++)
        TEST_TRUE(t, d.small[i] == (float)(t->nranks * (t->nranks - 1) / 2 + t->nranks * i));
    for (i = 0; i < COUNT; i++)
        if (d.sum[i] != (float)(t->nranks - 1) / 2 + (float)(i % 50)) {
            test_fail(t, "element %d is %g", i, (double)d.sum[i]);
            break;
        }
    for (i = 0; i < 10; i++)
        TEST_TRUE(t, d.to[i] == left * 100 + i);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
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
