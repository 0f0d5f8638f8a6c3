/* Conjugate gradients for the Laplacian of a square, its rows dealt out to the ranks in blocks. The only collective is
 * the allreduce of the dot products. Its result is bitwise the same on every rank, so all ranks leave the loop in the
 * same iteration without asking each other.
 *
 *     mpicc cg.c $(pkg-config --cflags --libs rondo) -lm -o cg && mpirun -n 4 ./cg
 */
#include <math.h>
#include <rondo_mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define N 96 /* the square has N x N inner points */

static rondo_comm_t comm;
static int rank, nranks, rows; /* this rank's rows */

static void must(rondo_result_t result)
{
    if (result != RONDO_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1); /* rondo has said on standard error what was wrong */
}

static double dot(const double *a, const double *b)
{
    double mine = 0, sum;

    for (int i = 0; i < rows * N; i++)
        mine += a[i] * b[i];
    must(rondo_allreduce(&mine, &sum, 1, RONDO_FLOAT64, RONDO_SUM, comm, NULL));
    return sum;
}

/* y = A x. x has a row above and one below its own for the neighbours' rows; at the border they stay zero. */
static void laplace(double *x, double *y)
{
    must(rondo_group_start());
    if (rank > 0) {
        must(rondo_send(x, N, RONDO_FLOAT64, rank - 1, comm, NULL));
        must(rondo_recv(x - N, N, RONDO_FLOAT64, rank - 1, comm, NULL));
    }
    if (rank < nranks - 1) {
        must(rondo_send(x + (rows - 1) * N, N, RONDO_FLOAT64, rank + 1, comm, NULL));
        must(rondo_recv(x + rows * N, N, RONDO_FLOAT64, rank + 1, comm, NULL));
    }
    must(rondo_group_end());
    for (int i = 0; i < rows * N; i++) {
        double left = i % N > 0 ? x[i - 1] : 0, right = i % N < N - 1 ? x[i + 1] : 0;
        y[i] = 4 * x[i] - left - right - x[i - N] - x[i + N];
    }
}

static double *vector(int length)
{
    double *v = calloc((size_t)length, sizeof *v);

    if (!v)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return v;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    must(rondo_comm_create_mpi(&comm, MPI_COMM_WORLD, NULL));
    must(rondo_comm_rank(comm, &rank));
    must(rondo_comm_size(comm, &nranks));
    int first = N * rank / nranks;
    rows = N * (rank + 1) / nranks - first;

    double *wanted = vector((rows + 2) * N) + N, *p = vector((rows + 2) * N) + N;
    double *x = vector(rows * N), *r = vector(rows * N), *ap = vector(rows * N);
    for (int i = 0; i < rows * N; i++)
        wanted[i] = sin(0.1 * (first + i / N)) + cos(0.3 * (i % N));
    laplace(wanted, r); /* b, which is r as long as x is 0 */
    for (int i = 0; i < rows * N; i++)
        p[i] = r[i];

    double rr = dot(r, r), enough = 1e-24 * rr;
    int iterations = 0;
    for (; rr > enough && iterations < 1000; iterations++) {
        laplace(p, ap);
        double alpha = rr / dot(p, ap), before = rr;
        for (int i = 0; i < rows * N; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * ap[i];
        }
        rr = dot(r, r);
        for (int i = 0; i < rows * N; i++)
            p[i] = r[i] + rr / before * p[i];
    }

    double error = 0, worst;
    for (int i = 0; i < rows * N; i++)
        error = fmax(error, fabs(x[i] - wanted[i]));
    must(rondo_allreduce(&error, &worst, 1, RONDO_FLOAT64, RONDO_MAX, comm, NULL));
    if (rank == 0)
        printf("cg: %d iterations, largest error %.1e\n", iterations, worst);
    free(wanted - N);
    free(p - N);
    free(x);
    free(r);
    free(ap);
    must(rondo_comm_destroy(comm));
    MPI_Finalize();
    return worst < 1e-8 ? 0 : 1;
}
