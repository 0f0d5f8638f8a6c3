/* The record of this process: made with its first communicator, and let go with the last. */
#ifndef RD_MONITOR_PROCESS_H
#define RD_MONITOR_PROCESS_H

#include "base/env.h"

/* Takes part in this process's record, which is made if there is none. Where that fails, a line of the log says why,
 * and there is none: no communicator fails because of it. Returns false if there is none. */
bool rd_record_join(const rd_env_t *env, const rd_log_ctx_t *ctx);
void rd_record_leave(void);

/* The record's descriptor, which is open as long as this process takes part; -1: there is no record. */
int rd_record_fd(void);
/* The same in a signal handler. */
int rd_record_open_fd(void);
/* This process's rank by the launcher's variables, and how many there are; -1: they say nothing, or there is no record.
 */
int rd_record_job_rank(void);
int rd_record_job_size(void);

#endif
