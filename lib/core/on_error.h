/* What a call does whose communicator has failed: RONDO_ON_ERROR_*. */
#ifndef RD_CORE_ON_ERROR_H
#define RD_CORE_ON_ERROR_H

#include "core/comm.h"

/* Returns what the config says, or else the program for the whole process, or else the environment. */
int rd_on_error(const rondo_config_t *config, const rd_env_t *env);
void rd_on_error_of_process(int on_error);
/* What a call of this communicator does from now on. */
void rd_on_error_set(rondo_comm_t comm, int on_error);
/* The communicator has failed, and its error is returned if this does. The caller need not be outside of others. */
void rd_on_error_act(rondo_comm_t comm);
/* A communicator could not be made. */
void rd_on_error_unmade(int on_error);
bool rd_on_error_ends(int on_error); /* the process */

#endif
