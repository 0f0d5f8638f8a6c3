/* Threads with the shortest stacks that rondo.h promises to be enough make communicators, call, ask, and end them. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rondo.h"
#include "util/check.h"
#include "util/harness.h"

#define STACK_BYTES 65536
#define RANKS 2
#define MOST 65536

static rondo_unique_id_t id;
static _Atomic int over; /* the wait of rank 0 */
static int numbers[RANKS][MOST];

static void call(rondo_comm_t comm, int rank)
{
    rondo_status_t status = {.size = sizeof status};
    static char why[RANKS][1024];
    rondo_window_t window;

    for (size_t count = 1; count <= MOST; count *= 16)
        CHECK(rondo_allreduce(numbers[rank], numbers[rank], count, RONDO_INT32, RONDO_SUM, comm, NULL) ==
              RONDO_SUCCESS);
    CHECK(rondo_window_create(comm, NULL, 64, &window, 0) == RONDO_SUCCESS);
    CHECK(rondo_window_destroy(comm, window) == RONDO_SUCCESS);
    CHECK(rondo_comm_status(comm, &status) == RONDO_SUCCESS);
    CHECK(rondo_explain(comm, why[rank], sizeof why[rank]) == RONDO_SUCCESS);
}

static void *live(void *arg)
{
    const int rank = *(int *)arg;
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm, part;

    config.device = RONDO_DEVICE_HOST;
    rondo_result_t result = rondo_comm_create(&comm, RANKS, &id, rank, &config);

    CHECK(result == RONDO_SUCCESS, "%s", rondo_last_error(NULL));
    if (result != RONDO_SUCCESS)
        return NULL;
    call(comm, rank);
    CHECK(rondo_comm_split(comm, 0, rank, &part, NULL) == RONDO_SUCCESS);
    call(part, rank);
    rondo_comm_destroy(part);
    /* Rank 1 does not come: who looks for the reason does so in the call that waits. */
    if (rank == 0) {
        CHECK(rondo_timeout_set(comm, 50) == RONDO_SUCCESS);
        CHECK(rondo_barrier(comm, NULL) == RONDO_ERR_TIMEOUT, "%s", rondo_last_error(comm));
        atomic_store(&over, 1);
    }
    while (!atomic_load(&over))
        usleep(1000);
    rondo_comm_abort(comm);
    return NULL;
}

int main(void)
{
    int ranks[RANKS] = {0, 1};
    pthread_t threads[RANKS];
    pthread_attr_t attributes;

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    return TEST_SKIPPED; /* whose frames are longer */
#endif
    setenv("RONDO_DEBUG", "none", 1);
    if (rondo_unique_id_create(&id) != RONDO_SUCCESS || pthread_attr_init(&attributes) != 0 ||
        pthread_attr_setstacksize(&attributes, STACK_BYTES) != 0)
        return 1;
    for (int r = 0; r < RANKS; r++)
        if (pthread_create(&threads[r], &attributes, live, &ranks[r]) != 0)
            return 1;
    for (int r = 0; r < RANKS; r++)
        pthread_join(threads[r], NULL);
    printf("short_stack: %d failures\n", failures);
    return failures != 0;
}
