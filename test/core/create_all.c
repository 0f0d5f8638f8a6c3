/* rondo_comm_create_all where one rank cannot be made: the error is that rank's, and the caller gets no communicator,
 * not one that has been aborted. A device that is none is found before any rank waits for the others.
 */
#include <stdio.h>

#include "util/harness.h"

enum { N = 3 };

rondo_result_t __real_rondo_comm_create(rondo_comm_t *comm, int nranks, const rondo_unique_id_t *id, int rank,
                                        const rondo_config_t *config);
rondo_result_t __wrap_rondo_comm_create(rondo_comm_t *comm, int nranks, const rondo_unique_id_t *id, int rank,
                                        const rondo_config_t *config);

static int begun; /* creations of this process, of which the last one is refused */

rondo_result_t __wrap_rondo_comm_create(rondo_comm_t *comm, int nranks, const rondo_unique_id_t *id, int rank,
                                        const rondo_config_t *config)
{
    if (++begun == N)
        return RONDO_ERR_NO_MEMORY;
    return __real_rondo_comm_create(comm, nranks, id, rank, config);
}

static void gives(test_rank_t *t, rondo_result_t want, int last, int blocking)
{
    const int devices[N] = {RONDO_DEVICE_HOST, RONDO_DEVICE_HOST, last};
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comms[N] = {NULL};

    config.blocking = blocking;
    test_note(t, "device %d, blocking = %d", last, blocking);
    TEST_GIVES(t, NULL, want, rondo_comm_create_all(comms, N, devices, &config));
    for (int r = 0; r < N; r++)
        TEST_TRUE(t, comms[r] == NULL);
}

static void body(test_rank_t *t, void *arg)
{
    (void)arg;
    gives(t, RONDO_ERR_NO_MEMORY, RONDO_DEVICE_HOST, 0);
    TEST_TRUE(t, begun == N);
    gives(t, RONDO_ERR_INVALID_ARGUMENT, RONDO_DEVICE_AUTO - 1, 0);
    gives(t, RONDO_ERR_INVALID_ARGUMENT, RONDO_DEVICE_AUTO - 1, 1);
    TEST_TRUE(t, begun == N);
}

int main(void)
{
    test_begin("core/create_all", 60);
    return test_run(TEST_PROCESSES, 1, 30, body, NULL) != 0;
}
