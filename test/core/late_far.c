/* A rank of another node does not come to a collective by two trees, in each of which the ranks of the first node wait
 * for one another: their waits are a circle, in which one of them waits for that rank besides. Every error is about
 * that rank, as the communicator notes it, whatever its sentence says of others. So it is by a ring, whoever does not
 * come. */
#include <stdio.h>
#include <stdlib.h>

#include "core/comm.h"
#include "util/harness.h"

#define MOST 60000
#define LIMIT_MS 3000 /* a rank that waits and has no core for half of that is late */

typedef struct {
    const char *algo;
    int nranks, victim, count;
} case_t;

static void body(test_rank_t *t, void *arg)
{
    static int32_t in[MOST], out[MOST];
    const case_t *c = arg;
    rondo_config_t config = test_host_config();
    char algo[64], node[16];

    snprintf(algo, sizeof algo, "allreduce=%s", c->algo);
    snprintf(node, sizeof node, "node%d", t->rank == c->victim);
    setenv("RONDO_ALGO", algo, 1);
    setenv("RONDO_HOSTID", node, 1);
    rondo_comm_t comm = test_comm(t, &config);
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    TEST_OK(t, comm, rondo_timeout_set(comm, LIMIT_MS));
    test_barrier(t);
    test_note(t, "%s of %d, without rank %d", algo, c->count, c->victim);
    if (t->rank != c->victim &&
        TEST_GIVES(t, comm, RONDO_ERR_TIMEOUT,
                   rondo_allreduce(in, out, (size_t)c->count, RONDO_INT32, RONDO_SUM, comm, NULL)) &&
        atomic_load(&comm->health.stop.failed_rank) != c->victim)
        test_fail(t, "rank %d is blamed: %s", atomic_load(&comm->health.stop.failed_rank), rondo_last_error(comm));
    test_barrier(t);
    rondo_comm_destroy(comm);
}

static int all(const char *algo, int nranks)
{
    int bad = 0;

    for (int victim = 0; victim < nranks; victim++)
        for (int count = 100; count <= MOST; count *= 600) {
            case_t c = {algo, nranks, victim, count};
            int worse = test_run(TEST_PROCESSES, nranks, 40, body, &c);
            printf("late_far: %s of %d, %d ranks without %d: %s\n", algo, count, nranks, victim,
                   worse ? "WRONG" : "right");
            bad += worse;
        }
    return bad;
}

static int part(int i)
{
    return i < 2 ? all("tree", 4 + i) : all("ring", 4);
}

int main(void)
{
    test_begin("late_far", 200);
    if (!test_has_network())
        return TEST_SKIPPED;
    return test_at_once(3, part) != 0;
}
