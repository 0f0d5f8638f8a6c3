/* The tuner of a communicator (plan/tuner.h), from creation to the end. */
#ifndef RD_CORE_TUNED_H
#define RD_CORE_TUNED_H

#include "core/comm.h"

/* Takes the process's tuner, before the ranks agree: its name is among what they must have alike. */
void rd_tuned_take(rondo_comm_t comm);
/* The ranks have agreed and know their nodes. */
void rd_tuned_begin(rondo_comm_t comm);
void rd_tuned_end(rondo_comm_t comm);

#endif
