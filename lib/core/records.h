/* A communicator in the records of its node's processes (monitor/), which rondo-ras reads. */
#ifndef RD_CORE_RECORDS_H
#define RD_CORE_RECORDS_H

#include "core/comm.h"

/* Before the node is found: takes part in the record of this process. Returns the descriptor that the other processes
 * get, or -1. */
int rd_comm_record(rondo_comm_t comm);
/* After it: this process holds the records that the others have brought along. */
void rd_comm_hold_records(rondo_comm_t comm);
/* Returns the communicator's number, alike on all ranks and like no other's. It is derived from its secret, which it
 * does not tell. */
uint64_t rd_comm_number(rondo_comm_t comm);
/* When all but the user's calls can begin: this rank is seen. */
void rd_comm_take_seat(rondo_comm_t comm);
/* Answers a rank of another node, which asks what holds one of this node up. */
void rd_comm_answer(rondo_comm_t comm, const rd_boot_question_t *question);
/* The end of all that, also where nothing of it was done. */
void rd_comm_drop_records(rondo_comm_t comm);

/* Finds the numbers of the communicator's ranks in the job: *stride is the step from one to the next, 0 where they are
 * not known or the steps differ. After rd_comm_hold_records. */
void rd_comm_job_ranks(const struct rondo_comm *comm, int *start, int *stride);

#endif
