/* Nonblocking and persistent calls that the MPI serves, but not as they came. */
#ifndef RD_MPI_STAND_IN_H
#define RD_MPI_STAND_IN_H

#include "mpi/interpose.h"

/* For a call that rondo does not serve for that reason: they return it if the MPI shall have the call as it came,
 * MPI_SUCCESS, or an error, which the handler has seen. */
int rd_mpi_stand_in_start(const rd_mpi_call_t *call, rd_mpi_reason_t reason, MPI_Request *request);
int rd_mpi_stand_in_init(const rd_mpi_call_t *call, rd_mpi_reason_t reason, MPI_Request *request);
/* A persistent one is started, again; is freed, when it is not active. */
int rd_mpi_stand_in_submit(rd_mpi_operation_t *o);
void rd_mpi_stand_in_free(rd_mpi_operation_t *o);
void rd_mpi_stand_ins_turn(void); /* lands those for which the MPI has done its part */
bool rd_mpi_stand_ins_any(void);
double rd_mpi_finalize_patience(void);
void rd_mpi_stand_ins_end(void); /* in MPI_Finalize */

/* Gives an operation a request that is complete when `done` is called, which is set here. */
int rd_mpi_nonblocking_request(rd_mpi_operation_t *o);
int rd_mpi_persistent_request(rd_mpi_operation_t *o);
int rd_mpi_start_next(MPI_Request *request); /* by who comes behind */

#endif
