/* What carries the words of a job's ranks: the launcher's daemons (launch_pmix.c) or its MPI (launch_mpi.c). */
#ifndef RD_LAUNCH_INT_H
#define RD_LAUNCH_INT_H

#include "launch.h"

typedef struct launch_ops {
    bool (*start)(int *rank, int *nranks);
    int (*gather)(const void *mine, void *all, size_t bytes);
    int (*keep)(bool stays);
    void (*end)(void);
} launch_ops_t;

extern const launch_ops_t launch_pmix;

/* Of an MPI `start` may fail for several reasons. */
int launch_mpi_start(int *rank, int *nranks, char why[LAUNCH_WHY]);
extern const launch_ops_t launch_mpi; /* without `start` */

/* The symbol of a library, put into a pointer of whatever type. */
bool launch_find(void *library, const char *name, void *pointer);

#endif
