/* A computation that outlives its ranks: pi by the midpoint rule, in blocks that the ranks share out among themselves.
 * When a rank dies, the others' call returns RONDO_ERR_REMOTE; they shrink to who is left, share the same block out
 * anew, and go on. Nothing of MPI is asked after the communicator is made: with a rank dead, MPI_Finalize may wait for
 * ever, so the survivors leave by _Exit.
 *
 *     mpicc survive.c $(pkg-config --cflags --libs rondo) -o survive
 *     mpirun --enable-recovery -n 4 ./survive 2 30         # Open MPI; rank 2 kills itself in block 30
 *     mpiexec.mpich -disable-auto-cleanup -n 4 ./survive 2 30
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <rondo_mpi.h>

#define BLOCKS 100
#define STEPS 10000 /* of a block */

/* This rank's share of a block. */
static double share(int block, int rank, int nranks)
{
    double sum = 0, h = 1.0 / ((double)BLOCKS * STEPS);

    for (int i = rank; i < STEPS; i += nranks) {
        double x = h * ((double)block * STEPS + i + 0.5);
        sum += 4 * h / (1 + x * x);
    }
    return sum;
}

/* The communicator of those who are left, and the block from which they go on: one of them may have had its result
 * when another one's call failed. Who dies over it is left out in its turn. */
static rondo_result_t shrink(rondo_comm_t *comm, int *block)
{
    rondo_result_t result = RONDO_ERR_REMOTE;

    while (result == RONDO_ERR_REMOTE) {
        rondo_comm_t fewer;
        int first;
        if ((result = rondo_comm_shrink(*comm, NULL, RONDO_SURVIVORS, &fewer, NULL)) != RONDO_SUCCESS)
            break;
        rondo_comm_destroy(*comm);
        *comm = fewer;
        result = rondo_allreduce(block, &first, 1, RONDO_INT32, RONDO_MIN, fewer, NULL);
        if (result == RONDO_SUCCESS)
            *block = first;
    }
    return result;
}

int main(int argc, char **argv)
{
    int victim = argc > 1 ? atoi(argv[1]) : -1, when = argc > 2 ? atoi(argv[2]) : BLOCKS / 2;
    int place, rank, nranks, shrunk = 0;
    double pi = 0, sum[BLOCKS];
    rondo_comm_t comm;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &place);
    if (rondo_comm_create_mpi(&comm, MPI_COMM_WORLD, NULL) != RONDO_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int block = 0; block <= BLOCKS;) { /* behind the last one they meet, so that nobody leaves whom others need */
        if (place == victim && block == when)
            raise(SIGKILL);
        rondo_comm_rank(comm, &rank);
        rondo_comm_size(comm, &nranks);
        double mine = block < BLOCKS ? share(block, rank, nranks) : 0;
        rondo_result_t result =
            block < BLOCKS ? rondo_allreduce(&mine, &sum[block], 1, RONDO_FLOAT64, RONDO_SUM, comm, NULL)
                           : rondo_barrier(comm, NULL);
        if (result == RONDO_SUCCESS) {
            block++;
            continue;
        }
        shrunk++;
        if (result != RONDO_ERR_REMOTE || shrink(&comm, &block) != RONDO_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int block = 0; block < BLOCKS; block++)
        pi += sum[block];
    rondo_comm_rank(comm, &rank);
    rondo_comm_size(comm, &nranks);
    if (rank == 0)
        printf("pi is %.9f, by %d ranks at the end\n", pi, nranks);
    fflush(stdout);
    rondo_barrier(comm, NULL); /* MPICH ends the others when one leaves without MPI_Finalize: all is said by now */
    rondo_comm_destroy(comm);
    if (shrunk)
        _Exit(fabs(pi - M_PI) < 1e-9 ? 0 : 1);
    MPI_Finalize();
    return fabs(pi - M_PI) < 1e-9 ? 0 : 1;
}
