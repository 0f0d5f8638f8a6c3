/* Fortran's entries. */
#ifndef RD_MPI_FORTRAN_H
#define RD_MPI_FORTRAN_H

#include "mpi/entries.h"

/* Fills in the entries of Fortran, which call those of C that are there already. */
void rd_mpi_fortran_fill(rd_mpi_entries_t *entries);

#endif
