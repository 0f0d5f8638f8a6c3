/* Which bytes of a buffer a call touches. */
#ifndef RD_MPI_DEVICE_SPANS_H
#define RD_MPI_DEVICE_SPANS_H

#include "mpi/interpose.h"

typedef struct rd_mpi_piece {
    int64_t from, to;
} rd_mpi_piece_t;

/* Sets `low` and `high`, which are equal if there are none. */
void rd_mpi_span_measure(const rd_mpi_comm_t *c, const rd_mpi_call_t *call, bool is_send, rd_mpi_span_t *s);
/* Sets the pieces of what is received, if it has gaps. Returns MPI_SUCCESS, or an error, which the handler has seen. */
int rd_mpi_span_divide(rd_mpi_comm_t *c, const rd_mpi_call_t *call, rd_mpi_span_t *s);

#endif
