/* A rank destroys its communicator, in order, before a collective of the others, in which few of them wait for it
 * directly: on two nodes of three ranks each one that leaves is found out by all, whatever lane of the schedule waits
 * for it. Nothing has a time limit but the test itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

#define RANKS 6
#define MOST 60000

typedef struct {
    const char *algo;
    int leaver, count;
} case_t;

static void body(test_rank_t *t, void *arg)
{
    static int32_t in[MOST], out[MOST];
    const case_t *c = arg;
    rondo_config_t config = test_host_config();
    char algo[64], node[16], name[32];

    snprintf(algo, sizeof algo, "allreduce=%s", c->algo);
    snprintf(node, sizeof node, "node%d", t->rank / 3);
    snprintf(name, sizeof name, "rank %d (", c->leaver);
    setenv("RONDO_ALGO", algo, 1);
    setenv("RONDO_HOSTID", node, 1);
    rondo_comm_t comm = test_comm(t, &config);
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_barrier(t);
    test_note(t, "%s of %d, behind rank %d's end", algo, c->count, c->leaver);
    if (t->rank != c->leaver &&
        TEST_GIVES(t, comm, RONDO_ERR_REMOTE,
                   rondo_allreduce(in, out, (size_t)c->count, RONDO_INT32, RONDO_SUM, comm, NULL)))
        TEST_TRUE(t, strstr(rondo_last_error(comm), name) != NULL);
    rondo_comm_destroy(comm);
}

int main(void)
{
    static const char *const algos[] = {"hier_tree", "hier_ring", "tree"};
    int bad = 0;

    test_begin("left_before", 200);
    if (!test_has_network())
        return TEST_SKIPPED;
    for (size_t i = 0; i < sizeof algos / sizeof algos[0]; i++)
        for (int leaver = 0; leaver < RANKS; leaver += i ? RANKS - 1 : 1)
            for (int count = 100; count <= MOST; count *= 600) {
                case_t c = {algos[i], leaver, count};
                int worse = test_run(TEST_PROCESSES, RANKS, 30, body, &c);
                printf("left_before: %s of %d behind rank %d's end: %s\n", c.algo, count, leaver,
                       worse ? "WRONG" : "right");
                bad += worse;
            }
    return bad != 0;
}
