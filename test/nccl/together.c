/* One process that uses rondo as NCCL and by its own name: one librondo serves both, in turns, in one group, and with
 * ids made by the one and joined by the other.
 */
#include <stdlib.h>
#include <string.h>

#include "nccl/nccl_harness.h"

static void both(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t own = NULL;
    ncclComm_t comm;
    rondo_unique_id_t id;
    ncclUniqueId same;
    float in[2] = {1, 2}, out[2] = {0, 0};
    int n = t->nranks;

    (void)arg;
    config.device = RONDO_DEVICE_HOST;
    test_note(t, "two communicators");
    comm = nccl_comm(t);
    own = test_comm(t, &config);
    for (int i = 0; i < 50; i++) {
        NCCL_OK(t, ncclAllReduce(&in[0], &out[0], 1, ncclFloat, ncclSum, comm, NULL));
        TEST_OK(t, own, rondo_allreduce(&in[1], &out[1], 1, RONDO_FLOAT32, RONDO_SUM, own, NULL));
        TEST_TRUE(t, out[0] == (float)n && out[1] == (float)(2 * n));
        out[0] = out[1] = 0;
    }
    test_note(t, "one of NCCL's groups within one of rondo's");
    TEST_OK(t, NULL, rondo_group_start());
    NCCL_OK(t, ncclGroupStart());
    NCCL_OK(t, ncclAllReduce(&in[0], &out[0], 1, ncclFloat, ncclSum, comm, NULL));
    TEST_OK(t, own, rondo_allreduce(&in[1], &out[1], 1, RONDO_FLOAT32, RONDO_SUM, own, NULL));
    NCCL_OK(t, ncclGroupEnd());
    TEST_OK(t, NULL, rondo_group_end());
    TEST_TRUE(t, out[0] == (float)n && out[1] == (float)(2 * n));
    NCCL_OK(t, ncclCommDestroy(comm));
    TEST_OK(t, NULL, rondo_comm_destroy(own));

    test_note(t, "rank 0 by its own name, the others as NCCL");
    test_id(t, &id);
    memcpy(&same, &id, sizeof same);
    if (t->rank == 0) {
        TEST_OK(t, NULL, rondo_comm_create(&own, n, &id, 0, &config));
        TEST_OK(t, own, rondo_allreduce(&in[0], &out[0], 1, RONDO_FLOAT32, RONDO_SUM, own, NULL));
        TEST_OK(t, NULL, rondo_comm_destroy(own));
    } else {
        NCCL_OK(t, ncclCommInitRank(&comm, n, same, t->rank));
        NCCL_OK(t, ncclAllReduce(&in[0], &out[0], 1, ncclFloat, ncclSum, comm, NULL));
        NCCL_OK(t, ncclCommDestroy(comm));
    }
    TEST_TRUE(t, out[0] == (float)n);
}

int main(void)
{
    int bad = 0;

    test_begin("nccl/together", 60);
    nccl_begin();
    bad += test_run(TEST_PROCESSES, 3, 30, both, NULL);
    bad += test_run(TEST_THREADS, 2, 30, both, NULL);
    return bad != 0;
}
