/* Every operation of libnccl.so.2 on host communicators, with NCCL's types and operators, in place and not, every root,
 * odd counts: the result is compared element by element. A process a rank, and a thread a rank; streams are handed in
 * and not looked at.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nccl/nccl_harness.h"

static void one(test_rank_t *t, ncclComm_t comm, const do_case_t *c)
{
    static int stream; /* any address: it must not be looked at */
    char text[200], wrong[256];
    do_call_t call;

    do_text(c, text, sizeof text);
    test_note(t, "%d ranks: %s", t->nranks, text);
    if (do_prepare(&call, c, t->rank, t->nranks) != 0)
        test_stop(t, "no memory");
    if (!NCCL_OK(t, nccl_post(&call, comm, (cudaStream_t)(void *)&stream)))
        test_stop(t, "cannot go on");
    if (do_verify(&call, 1, wrong, sizeof wrong) != 0)
        test_fail(t, "%s", wrong);
    do_release(&call);
}

static void questions(test_rank_t *t, ncclComm_t comm)
{
    int count = 0, rank = -1, device = 0, version = 0;

    NCCL_OK(t, ncclCommCount(comm, &count));
    NCCL_OK(t, ncclCommUserRank(comm, &rank));
    NCCL_OK(t, ncclCommCuDevice(comm, &device));
    NCCL_OK(t, ncclGetVersion(&version));
    TEST_TRUE(t, count == t->nranks && rank == t->rank && device == -1 && version == NCCL_VERSION(2, 28, 9));
}

/* Alone, and two in a group: each needs what it sends kept apart. */
static void in_place(test_rank_t *t, ncclComm_t comm)
{
    int *x[2];

    for (int k = 0; k < 2; k++)
        x[k] = malloc((size_t)t->nranks * NCCL_PLACE * sizeof **x);
    for (int round = 0; round < 4; round++) {
        test_note(t, "all-to-all in place, round %d", round);
        for (int k = 0; k < 2; k++)
            nccl_place(t, x[k], round + 4 * k);
        NCCL_OK(t, ncclGroupStart());
        for (int k = 0; k < 2; k++)
            NCCL_OK(t, ncclAlltoAll(x[k], x[k], NCCL_PLACE, ncclInt, comm, NULL));
        NCCL_OK(t, ncclGroupEnd());
        nccl_placed(t, x[0], round);
        nccl_placed(t, x[1], round + 4);
        nccl_place(t, x[0], round);
        NCCL_OK(t, ncclAlltoAll(x[0], x[0], NCCL_PLACE, ncclInt, comm, NULL));
        nccl_placed(t, x[0], round);
    }
    free(x[0]);
    free(x[1]);
}

/* A child ends what it has from its parent, memory of such a call among it: nothing happens, to neither of them. */
static void forked(test_rank_t *t, ncclComm_t comm)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        (void)ncclCommAbort(comm);
        _exit(0);
    }
    TEST_TRUE(t, child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void all(test_rank_t *t, void *arg)
{
    static const size_t counts[] = {1, 0, 1023, 30011};
    ncclComm_t comm = nccl_comm(t);
    uint64_t random = 77;
    int cases = 0;

    (void)arg;
    questions(t, comm);
    for (int what = 0; what < DO_NUM; what++) {
        for (int type = 0; type < RONDO_NUM_TYPES; type++) {
            if (!nccl_posts((do_what_t)what) || nccl_type((rondo_type_t)type) < 0)
                continue;
            for (int op = 0; op < (do_reduces((do_what_t)what) ? RONDO_NUM_OPS : 1); op++) {
                do_case_t c = {.what = (do_what_t)what, .type = (rondo_type_t)type, .op = op};

                if (nccl_op(op) < 0)
                    continue;
                c.count = counts[cases++ % 4];
                c.data = do_reduces(c.what) ? REF_ROUNDING : REF_BYTES;
                c.root = (int)test_below(&random, (unsigned)t->nranks);
                c.in_place = do_has_in_place(c.what) && test_below(&random, 2);
                c.seed = test_random(&random) >> 32;
                one(t, comm, &c);
            }
        }
    }
    in_place(t, comm);
    if (t->kind == TEST_PROCESSES)
        forked(t, comm);
    NCCL_OK(t, ncclCommFinalize(comm));
    NCCL_OK(t, ncclCommDestroy(comm));
}

int main(void)
{
    int bad = 0;

    test_begin("nccl/operations", 120);
    nccl_begin();
    for (int n = 1; n <= 4 && !bad; n++)
        bad += test_run(n % 2 ? TEST_PROCESSES : TEST_THREADS, n, 40, all, NULL);
    return bad != 0;
}
