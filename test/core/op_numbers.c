/* The numbers of a program's own operators come round after some 2^31: none is negative or one of the built-in ones,
 * and none is that of an operator which the communicator still has. The counter is set to just before the ends of its
 * range, by including its file.
 */
#include "core/op.c"

#include <limits.h>

#include "util/harness.h"

#define OPS 6
#define N 4

/* On each rank the k-th operator multiplies by k + 1. */
static void make(test_rank_t *t, rondo_comm_t comm, rondo_op_t *ops, int k)
{
    const float scalar = (float)(k + 1);

    TEST_OK(t, comm, rondo_op_create_premulsum(&ops[k], &scalar, RONDO_FLOAT32, 0, comm));
    TEST_TRUE(t, ops[k] >= RONDO_NUM_OPS);
    for (int other = 0; other < k; other++)
        TEST_TRUE(t, ops[other] != ops[k]);
}

static void use(test_rank_t *t, rondo_comm_t comm, rondo_op_t op, int k)
{
    float in[N], out[N];

    for (int i = 0; i < N; i++)
        in[i] = (float)(t->rank + i);
    TEST_OK(t, comm, rondo_allreduce(in, out, N, RONDO_FLOAT32, op, comm, NULL));
    for (int i = 0; i < N; i++)
        TEST_TRUE(t, out[i] == (float)((k + 1) * (1 + 2 * i)));
}

/* The counter goes on to `next` once the first operators have been made. */
static void body(test_rank_t *t, void *arg)
{
    static const unsigned next[] = {INT_MAX - RONDO_NUM_OPS - 2u, NUMBERS - 2, UINT_MAX - 1};
    rondo_comm_t comm = test_comm(t, NULL);

    (void)arg;
    for (size_t i = 0; i < sizeof next / sizeof next[0]; i++) {
        rondo_op_t ops[OPS];

        test_note(t, "behind %u operators", next[i]);
        atomic_store(&made_so_far, next[i] % NUMBERS);
        make(t, comm, ops, 0);
        atomic_store(&made_so_far, next[i]);
        for (int k = 1; k < OPS; k++)
            make(t, comm, ops, k);
        for (int k = 0; k < OPS; k++) {
            use(t, comm, ops[k], k);
            TEST_OK(t, comm, rondo_op_destroy(ops[k], comm));
        }
    }
    TEST_OK(t, comm, rondo_comm_destroy(comm));
}

int main(void)
{
    test_begin("core/op_numbers", 60);
    return test_run(TEST_PROCESSES, 2, 60, body, NULL) != 0;
}
