/* A Fourier transform in two dimensions as parallel codes do it: transform the rows that one has, transpose by
 * alltoallv, transform what are rows now. The rows need not divide evenly. A plane wave becomes one peak, in the place
 * that its wave numbers say.
 *
 *     mpicc transpose.c $(pkg-config --cflags --libs rondo) -lm -o transpose && mpirun -n 4 ./transpose
 */
#include <complex.h>
#include <math.h>
#include <rondo_mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS 50
#define COLS 42
#define WAVE_ROW 7 /* the wave's numbers */
#define WAVE_COL 19
#define TAU 6.283185307179586

static rondo_comm_t comm;
static int rank, nranks;

static void must(rondo_result_t result)
{
    if (result != RONDO_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1); /* rondo has said on standard error what was wrong */
}

static int first(int n, int r) /* of rank r's rows, if there are n */
{
    return n * r / nranks;
}

static double complex *matrix(int rows, int cols)
{
    double complex *m = malloc(((size_t)rows * cols + 1) * sizeof *m);

    if (!m)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return m;
}

/* In place and slowly: this is not about the transform. */
static void transform(double complex *x, int n)
{
    double complex y[ROWS > COLS ? ROWS : COLS];

    for (int k = 0; k < n; k++) {
        y[k] = 0;
        for (int i = 0; i < n; i++)
            y[k] += x[i] * cexp(-I * TAU * (k * i % n) / n);
    }
    for (int k = 0; k < n; k++)
        x[k] = y[k];
}

/* From this rank's rows of a rows x cols matrix to its rows of the transposed one. For each rank a block, in which the
 * other's rows come one after the other: packed here, so that they arrive as they are needed, and only the blocks have
 * to be put side by side. */
static void transpose(const double complex *a, int rows, int cols, double complex *b)
{
    int mine = first(rows, rank + 1) - first(rows, rank), theirs = first(cols, rank + 1) - first(cols, rank);
    double complex *send = matrix(mine, cols), *recv = matrix(theirs, rows), *next = send;
    size_t *counts = malloc(2 * (size_t)nranks * sizeof *counts), *back = counts + nranks;

    if (!counts)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int r = 0; r < nranks; r++) {
        for (int j = first(cols, r); j < first(cols, r + 1); j++)
            for (int i = 0; i < mine; i++)
                *next++ = a[i * cols + j];
        counts[r] = (size_t)(mine * (first(cols, r + 1) - first(cols, r)));
        back[r] = (size_t)(theirs * (first(rows, r + 1) - first(rows, r)));
    }
    must(rondo_alltoallv(send, counts, NULL, recv, back, NULL, RONDO_COMPLEX128, comm, NULL));
    next = recv;
    for (int r = 0; r < nranks; r++)
        for (int j = 0; j < theirs; j++)
            for (int i = first(rows, r); i < first(rows, r + 1); i++)
                b[j * rows + i] = *next++;
    free(counts);
    free(send);
    free(recv);
}

int main(int argc, char **argv)
{
    double error = 0, worst;

    MPI_Init(&argc, &argv);
    must(rondo_comm_create_mpi(&comm, MPI_COMM_WORLD, NULL));
    must(rondo_comm_rank(comm, &rank));
    must(rondo_comm_size(comm, &nranks));
    int top = first(ROWS, rank), rows = first(ROWS, rank + 1) - top;
    int left = first(COLS, rank), cols = first(COLS, rank + 1) - left;
    double complex *a = matrix(rows, COLS), *b = matrix(cols, ROWS);

    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < COLS; j++)
            a[i * COLS + j] = cexp(I * TAU * ((double)WAVE_ROW * (top + i) / ROWS + (double)WAVE_COL * j / COLS));
        transform(&a[i * COLS], COLS);
    }
    transpose(a, ROWS, COLS, b);
    for (int j = 0; j < cols; j++) {
        transform(&b[j * ROWS], ROWS);
        for (int i = 0; i < ROWS; i++) {
            double peak = left + j == WAVE_COL && i == WAVE_ROW ? ROWS * COLS : 0;
            error = fmax(error, cabs(b[j * ROWS + i] - peak));
        }
    }
    must(rondo_allreduce(&error, &worst, 1, RONDO_FLOAT64, RONDO_MAX, comm, NULL));
    if (rank == 0)
        printf("transpose: %d x %d, largest error %.1e\n", ROWS, COLS, worst);
    free(a);
    free(b);
    must(rondo_comm_destroy(comm));
    MPI_Finalize();
    return worst < 1e-8 ? 0 : 1;
}
