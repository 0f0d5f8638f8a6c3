/* Halo exchange of a periodic box in three dimensions, as in halo.c, by one-sided operations: each rank opens a window
 * with room for its six faces, and its neighbours put them there, each with a signal of its own. Nobody receives.
 * Before a rank puts again, the neighbour has signalled that it has read the last face.
 *
 *     mpicc halo_onesided.c $(pkg-config --cflags --libs rondo) -o halo_onesided && mpirun -n 4 ./halo_onesided
 */
#include <rondo_mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define N 12 /* inner points of a block in each direction */
#define FACE (N * N)
#define STEPS 5

/* Signals of the face on a side of direction d: it has come; it has been read. */
#define COME(d, side) (2 * (d) + (side))
#define READ(d, side) (6 + 2 * (d) + (side))

static rondo_comm_t comm;
static int rank, grid[3], me[3]; /* the blocks in each direction, and which is mine */
static double u[N + 2][N + 2][N + 2], out[FACE];
static double (*in)[2][FACE]; /* this rank's part of the window: in[d][side] */
static rondo_window_t window;

static void must(rondo_result_t result)
{
    if (result != RONDO_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1); /* rondo has said on standard error what was wrong */
}

/* The point a, b of the plane number `at` across direction d. */
static double *point(int d, int at, int a, int b)
{
    return d == 0 ? &u[at][a][b] : d == 1 ? &u[a][at][b] : &u[a][b][at];
}

static int neighbour(int d, int step)
{
    int at[3] = {me[0], me[1], me[2]};

    at[d] = (at[d] + step + grid[d]) % grid[d];
    return (at[0] * grid[1] + at[1]) * grid[2] + at[2];
}

static void wait_for(int peer, int signal)
{
    const rondo_wait_desc_t one = {1, peer, signal, 0};

    must(rondo_wait_signal(1, &one, comm, NULL));
}

/* A rank's lower face (0) is the upper one (1) of its lower neighbour's layer. */
static void exchange(int step)
{
    for (int d = 0; d < 3; d++)
        for (int side = 0; side < 2; side++) {
            int to = neighbour(d, side ? 1 : -1), there = 1 - side;
            if (step)
                wait_for(to, READ(d, there));
            for (int i = 0; i < FACE; i++)
                out[i] = *point(d, side ? N : 1, 1 + i / N, 1 + i % N);
            /* `out` is ours again at once. */
            must(rondo_put_signal(out, FACE, RONDO_FLOAT64, to, window, (2 * d + there) * sizeof *in[0], COME(d, there),
                                  0, 0, comm, NULL));
        }
    for (int d = 0; d < 3; d++)
        for (int side = 0; side < 2; side++) {
            int from = neighbour(d, side ? 1 : -1);
            wait_for(from, COME(d, side));
            for (int i = 0; i < FACE; i++)
                *point(d, side ? N + 1 : 0, 1 + i / N, 1 + i % N) = in[d][side][i];
            must(rondo_signal(from, READ(d, side), 0, 0, comm, NULL));
        }
}

/* What lies at i, j, k of this block's array, the layer included: the point's number in the whole box, and the step. */
static double field(int i, int j, int k, int step)
{
    int at[3] = {i, j, k};

    for (int d = 0; d < 3; d++)
        at[d] = (me[d] * N + at[d] - 1 + grid[d] * N) % (grid[d] * N);
    return ((double)at[0] * grid[1] * N + at[1]) * grid[2] * N + at[2] + 0.5 * step;
}

/* Sets the inner points, or counts those of the block and of its layer's faces that are not as they should be. */
static int visit(int set, int step)
{
    int wrong = 0;

    for (int i = 0; i < N + 2; i++)
        for (int j = 0; j < N + 2; j++)
            for (int k = 0; k < N + 2; k++) {
                int outside = (i % (N + 1) == 0) + (j % (N + 1) == 0) + (k % (N + 1) == 0);
                if (set)
                    u[i][j][k] = outside ? -1 : field(i, j, k, step);
                else if (outside < 2) /* not the edges */
                    wrong += u[i][j][k] != field(i, j, k, step);
            }
    return wrong;
}

int main(int argc, char **argv)
{
    int nranks, wrong = 0, all;

    MPI_Init(&argc, &argv);
    must(rondo_comm_create_mpi(&comm, MPI_COMM_WORLD, NULL));
    must(rondo_comm_rank(comm, &rank));
    must(rondo_comm_size(comm, &nranks));
    MPI_Dims_create(nranks, 3, grid);
    me[0] = rank / (grid[1] * grid[2]);
    me[1] = rank / grid[2] % grid[1];
    me[2] = rank % grid[2];
    must(rondo_window_create(comm, NULL, 3 * sizeof *in, &window, 0));
    must(rondo_window_buffer(comm, window, (void **)&in));
    for (int step = 0; step < STEPS; step++) {
        visit(1, step);
        exchange(step);
        wrong += visit(0, step);
    }
    must(rondo_allreduce(&wrong, &all, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    if (rank == 0)
        printf("halo_onesided: %d x %d x %d blocks, %d points wrong\n", grid[0], grid[1], grid[2], all);
    must(rondo_window_destroy(comm, window));
    must(rondo_comm_destroy(comm));
    MPI_Finalize();
    return all != 0;
}
