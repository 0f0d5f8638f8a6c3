/* A rank that ends because of an error is not the cause of it. The ranks call different things, and each ends its
 * process the moment its call returns, in whatever order; all of them get RONDO_ERR_MISMATCH, with one sentence. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/harness.h"

typedef struct {
    const char *name;
    int nranks, nodes, check;
    enum { COUNT, LENGTH, OPERATION } differs;
} job_t;

/* By RONDO_CHECK, by a message's length, or by what the operation itself finds. */
static rondo_result_t call(const job_t *j, int rank, rondo_comm_t comm, char *in, char *out)
{
    int odd = rank == j->nranks - 1;

    if (j->differs == COUNT)
        return rondo_allreduce(in, out, odd ? 10 : 11, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    if (j->differs == OPERATION && odd)
        return rondo_allgather(in, out, 11, RONDO_FLOAT32, comm, NULL);
    if (j->differs == OPERATION)
        return rondo_allreduce(in, out, 11, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    if (rank == 0)
        return rondo_send(in, 100, RONDO_UINT8, j->nranks - 1, comm, NULL);
    if (odd)
        return rondo_recv(out, 50, RONDO_UINT8, 0, comm, NULL);
    return rondo_barrier(comm, NULL);
}

static void body(test_rank_t *t, void *arg)
{
    const job_t *j = arg;
    char in[4096] = {0}, out[8 * 4096];

    test_note(t, "%s: %d ranks on %d nodes", j->name, j->nranks, j->nodes);
    rondo_comm_t comm = test_comm_on(t, j->nodes);
    if (!comm)
        return;
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_barrier(t); /* a rank that is still in that one would hear of the mismatch there */
    rondo_result_t result = call(j, t->rank, comm, in, out);
    if (result == RONDO_SUCCESS && j->differs == LENGTH) /* a short message may be gone before it is found out */
        while (result == RONDO_SUCCESS)
            result = rondo_barrier(comm, NULL);
    if (result != RONDO_ERR_MISMATCH)
        test_fail(t, "%s, %s", rondo_result_string(result), rondo_last_error(comm));
    _exit(0);
}

int main(int argc, char **argv)
{
    const job_t jobs[] = {{"counts under RONDO_CHECK", 2, 1, 1, COUNT},
                          {"counts under RONDO_CHECK", 3, 1, 1, COUNT},
                          {"counts under RONDO_CHECK", 4, 2, 1, COUNT},
                          {"counts under RONDO_CHECK", 2, 2, 1, COUNT},
                          {"operations under RONDO_CHECK", 5, 1, 1, OPERATION},
                          {"lengths", 2, 1, 0, LENGTH},
                          {"lengths", 3, 1, 0, LENGTH},
                          {"lengths", 4, 2, 0, LENGTH}};
    int bad = 0, rounds = argc > 1 ? atoi(argv[1]) : 6;

    test_begin("mismatch_exit", 240);
    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
            setenv("RONDO_CHECK", jobs[i].check ? "1" : "0", 1);
            bad += test_run(TEST_PROCESSES, jobs[i].nranks, 60, body, (void *)(uintptr_t)&jobs[i]) != 0;
        }
    printf("%d runs, %d wrong\n", rounds * (int)(sizeof jobs / sizeof jobs[0]), bad);
    return bad != 0;
}
