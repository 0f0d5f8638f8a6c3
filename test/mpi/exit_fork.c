/* A communicator beside MPI's own life: made at the least thread level (2 ranks) and at the highest (4), used by a
 * thread that is not MPI's, used and destroyed after MPI_Finalize, and one left to the end of the process. With 4 ranks
 * the odd ones count as on another node, so that UCX is at work when MPI lets go of its own.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <rondo_mpi.h>

#define COUNT 3000

static int rank, nranks;

static int failed(const char *what, const char *text)
{
    fprintf(stderr, "endings: FAILED rank %d/%d: %s: %s\n", rank, nranks, what, text);
    return 1;
}

static int use(rondo_comm_t comm, const char *when)
{
    static _Thread_local double in[COUNT], out[COUNT];

    for (int i = 0; i < COUNT; i++)
        in[i] = rank + i;
    if (rondo_allreduce(in, out, COUNT, RONDO_FLOAT64, RONDO_SUM, comm, NULL) != RONDO_SUCCESS)
        return failed(when, rondo_last_error(comm));
    for (int i = 0; i < COUNT; i++)
        if (out[i] != nranks * (double)i + nranks * (nranks - 1) / 2)
            return failed(when, "a wrong sum");
    return 0;
}

static void *use_elsewhere(void *arg)
{
    return (void *)(size_t)use(arg, "in another thread");
}

static rondo_comm_t make(void)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm = NULL;
    rondo_result_t result;

    config.device = RONDO_DEVICE_HOST;
    if (nranks > 2)
        setenv("RONDO_HOSTID", rank % 2 ? "odd" : "even", 1);
    result = rondo_comm_create_mpi(&comm, MPI_COMM_WORLD, &config);
    if (result == RONDO_ERR_UNSUPPORTED) { /* no network is built in */
        unsetenv("RONDO_HOSTID");
        result = rondo_comm_create_mpi(&comm, MPI_COMM_WORLD, &config);
    }
    return result == RONDO_SUCCESS ? comm : NULL;
}

int main(int argc, char **argv)
{
    int level = -1, bad = 0;
    rondo_comm_t comm, left;
    pthread_t thread;
    void *worse = NULL;

    /* How many there are is known after MPI_Init only: a launcher's word for it decides the level. */
    const char *size = getenv("OMPI_COMM_WORLD_SIZE") ? getenv("OMPI_COMM_WORLD_SIZE") : getenv("PMI_SIZE");
    int asked = size && atoi(size) > 2 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, asked, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    comm = make();
    left = make();
    if (!comm || !left) {
        failed("creation", rondo_last_error(NULL));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    bad |= use(comm, "before MPI_Finalize") | use(left, "before MPI_Finalize");
    if (pthread_create(&thread, NULL, use_elsewhere, comm) == 0)
        pthread_join(thread, &worse);
    bad |= worse != NULL;
    MPI_Finalize();
    /* Who is through with the second sum has seen everybody through with the first: nobody misses who exits. */
    bad |= use(left, "after MPI_Finalize");
    bad |= use(comm, "after MPI_Finalize");
    if (rondo_comm_destroy(comm) != RONDO_SUCCESS)
        bad |= failed("rondo_comm_destroy", rondo_last_error(NULL));
    if (rank == 0)
        printf("endings: %d ranks, MPI's thread level %d\n", nranks, level);
    return bad;
}
