/* rondo without MPI: the first process makes an id, its children have it from the fork, and all of them join. However
 * else the ranks are started, the id is all that they need to be handed, by any means that is kept from others.
 *
 *     cc processes.c $(pkg-config --cflags --libs rondo) -o processes && ./processes 4
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rondo.h>

static int run_rank(const rondo_unique_id_t *id, int rank, int nranks)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm;
    double mine = rank + 1, sum = 0;

    config.device = RONDO_DEVICE_HOST;
    if (rondo_comm_create(&comm, nranks, id, rank, &config) != RONDO_SUCCESS) {
        fprintf(stderr, "rank %d: %s\n", rank, rondo_last_error(NULL));
        return 1;
    }
    if (rondo_allreduce(&mine, &sum, 1, RONDO_FLOAT64, RONDO_SUM, comm, NULL) != RONDO_SUCCESS) {
        fprintf(stderr, "rank %d: %s\n", rank, rondo_last_error(comm));
        rondo_comm_abort(comm);
        return 1;
    }
    printf("rank %d of %d: the sum is %g\n", rank, nranks, sum);
    if (rondo_comm_destroy(comm) != RONDO_SUCCESS)
        return 1;
    return sum == nranks * (nranks + 1) / 2.0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    int nranks = argc > 1 ? atoi(argv[1]) : 2;
    rondo_unique_id_t id;

    if (rondo_unique_id_create(&id) != RONDO_SUCCESS) {
        fprintf(stderr, "%s\n", rondo_last_error(NULL));
        return 1;
    }
    for (int rank = 1; rank < nranks; rank++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0)
            exit(run_rank(&id, rank, nranks));
    }
    int failed = run_rank(&id, 0, nranks);
    int status;
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}
