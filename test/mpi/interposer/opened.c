/* The library that opening.c opens. */
#include <mpi.h>
#include <stdio.h>

int go(void)
{
    int rank, nranks, wrong = 0;

    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    for (int i = 0; i < 20; i++) {
        int mine = rank + i, sum = 0;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong += sum != nranks * (nranks - 1) / 2 + nranks * i;
    }
    MPI_Finalize();
    if (!rank && !wrong)
        printf("good\n");
    return wrong;
}
