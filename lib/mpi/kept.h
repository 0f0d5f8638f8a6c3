/* Operators of the user's behind a call. */
#ifndef RD_MPI_KEPT_H
#define RD_MPI_KEPT_H

#include "mpi/interpose.h"

/* Can they be kept? The same on all ranks (setup.c). */
bool rd_mpi_may_keep(void);
/* Keeps the operator of a reduction, which is the user's, and its type until rd_mpi_let_go. false: there is no memory.
 */
bool rd_mpi_keep(const rd_mpi_call_t *call);
void rd_mpi_let_go(const rd_mpi_call_t *call);
void rd_mpi_kept_fill(rd_mpi_entries_t *entries); /* C's entries that free operators and types */

#endif
