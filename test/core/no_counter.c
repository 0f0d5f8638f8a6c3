/* A process that has forbidden itself the processor's time stamp counter (PR_SET_TSC), which the C library's fine
 * clocks read as well: on one node everything works, with the monitor's record, limits and profiles that need a clock;
 * between nodes all ranks get an error that says so, because network libraries read the counter. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "util/harness.h"

#define COUNT 100000 /* longer than what is sent at once */
#define TIMES 300

static void forbid(test_rank_t *t)
{
    if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) != 0)
        test_stop(t, "the counter cannot be forbidden");
}

static void one_node(test_rank_t *t, void *arg)
{
    static float in[COUNT], out[COUNT];
    rondo_comm_t part = NULL;

    (void)arg;
    forbid(t);
    rondo_comm_t comm = test_comm(t, NULL);
    for (int i = 0; i < COUNT; i++)
        in[i] = (float)t->rank;
    for (int i = 0; i < TIMES; i++)
        TEST_OK(t, comm, rondo_allreduce(in, out, i % 50 ? 2 : COUNT, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    TEST_TRUE(t, out[0] == 1 && out[COUNT - 1] == 1);
    TEST_OK(t, comm, rondo_comm_split(comm, 0, t->rank, &part, NULL));
    if (part)
        TEST_OK(t, part, rondo_comm_destroy(part));
    TEST_OK(t, comm, rondo_comm_destroy(comm));
}

static void two_nodes(test_rank_t *t, void *arg)
{
    (void)arg;
    test_play_node(t, 2);
    forbid(t);
    (void)test_comm_gives(t, RONDO_ERR_UNSUPPORTED, "may not (prctl: PR_SET_TSC)");
}

int main(void)
{
    int set = 0;

    test_begin("no_counter", 60);
    if (prctl(PR_GET_TSC, &set, 0, 0, 0) != 0) {
        printf("no_counter: this kernel or processor has no such setting\n");
        return TEST_SKIPPED;
    }
    setenv("RONDO_IFACE", "lo", 1);
    int bad = test_run(TEST_PROCESSES, 2, 30, one_node, NULL);
    if (test_has_network())
        bad += test_run(TEST_PROCESSES, 2, 30, two_nodes, NULL);
    return bad != 0;
}
