/* Waits for requests. */
#ifndef RD_MPI_WAITS_H
#define RD_MPI_WAITS_H

#include "mpi/entries.h"

/* Fills in the entries of what waits for requests, where rondo takes those in between. */
void rd_mpi_waits_fill(rd_mpi_entries_t *entries);
/* MPI_Wait, by the way of the program's. */
int rd_mpi_wait(MPI_Request *request);

#endif
