/* Checks that every operation's entry makes. Each says what was wrong, what it was and what is allowed. */
#ifndef RD_ARGS_H
#define RD_ARGS_H

#include "comm.h"

/* Where an argument was given: the public call, and its communicator. */
typedef struct rd_at {
    const char *call;
    rondo_comm_t comm;
} rd_at_t;

rondo_result_t rd_args_start(rd_at_t at, rondo_type_t type, rondo_stream_t stream);
rondo_result_t rd_args_rank(rd_at_t at, const char *what, int rank);

#endif
