/* Halo exchange of a periodic box in three dimensions: each rank has a block with a layer around it, and gets the six
 * faces of that layer from its neighbours by sends and receives in one group, in any order and without tags. A rank
 * that is its own neighbour sends to itself. Checked with a field that every point can tell from where it lies.
 *
 *     mpicc halo.c $(pkg-config --cflags --libs rondo) -o halo && mpirun -n 4 ./halo
 */
#include <rondo_mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define N 12 /* inner points of a block in each direction */
#define FACE (N * N)

static rondo_comm_t comm;
static int rank, grid[3], me[3]; /* the blocks in each direction, and which is mine */
static double u[N + 2][N + 2][N + 2], out[3][2][FACE], in[3][2][FACE];

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

static void exchange(void)
{
    for (int d = 0; d < 3; d++)
        for (int i = 0; i < FACE; i++) {
            out[d][0][i] = *point(d, 1, 1 + i / N, 1 + i % N);
            out[d][1][i] = *point(d, N, 1 + i / N, 1 + i % N);
        }
    must(rondo_group_start());
    for (int d = 0; d < 3; d++) {
        int below = neighbour(d, -1), above = neighbour(d, 1);
        must(rondo_send(out[d][0], FACE, RONDO_FLOAT64, below, comm, NULL));
        must(rondo_send(out[d][1], FACE, RONDO_FLOAT64, above, comm, NULL));
        /* Messages of a pair match in order: where both neighbours are one rank, its lower face comes first. */
        must(rondo_recv(in[d][1], FACE, RONDO_FLOAT64, above, comm, NULL));
        must(rondo_recv(in[d][0], FACE, RONDO_FLOAT64, below, comm, NULL));
    }
    must(rondo_group_end());
    for (int d = 0; d < 3; d++)
        for (int i = 0; i < FACE; i++) {
            *point(d, 0, 1 + i / N, 1 + i % N) = in[d][0][i];
            *point(d, N + 1, 1 + i / N, 1 + i % N) = in[d][1][i];
        }
}

/* What lies at i, j, k of this block's array, the layer included: the point's number in the whole box. */
static double field(int i, int j, int k)
{
    int at[3] = {i, j, k};

    for (int d = 0; d < 3; d++)
        at[d] = (me[d] * N + at[d] - 1 + grid[d] * N) % (grid[d] * N);
    return ((double)at[0] * grid[1] * N + at[1]) * grid[2] * N + at[2];
}

/* Sets the inner points, or counts those of the block and of its layer's faces that are not as they should be. */
static int visit(int set)
{
    int wrong = 0;

    for (int i = 0; i < N + 2; i++)
        for (int j = 0; j < N + 2; j++)
            for (int k = 0; k < N + 2; k++) {
                int outside = (i % (N + 1) == 0) + (j % (N + 1) == 0) + (k % (N + 1) == 0);
                if (set)
                    u[i][j][k] = outside ? -1 : field(i, j, k);
                else if (outside < 2) /* not the edges */
                    wrong += u[i][j][k] != field(i, j, k);
            }
    return wrong;
}

int main(int argc, char **argv)
{
    int nranks, wrong, all;

    MPI_Init(&argc, &argv);
    must(rondo_comm_create_mpi(&comm, MPI_COMM_WORLD, NULL));
    must(rondo_comm_rank(comm, &rank));
    must(rondo_comm_size(comm, &nranks));
    MPI_Dims_create(nranks, 3, grid);
    me[0] = rank / (grid[1] * grid[2]);
    me[1] = rank / grid[2] % grid[1];
    me[2] = rank % grid[2];
    visit(1);
    exchange();
    wrong = visit(0);
    must(rondo_allreduce(&wrong, &all, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    if (rank == 0)
        printf("halo: %d x %d x %d blocks, %d points wrong\n", grid[0], grid[1], grid[2], all);
    must(rondo_comm_destroy(comm));
    MPI_Finalize();
    return all != 0;
}
