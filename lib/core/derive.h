/* What the communicators that are made from another one have in common. */
#ifndef RD_CORE_DERIVE_H
#define RD_CORE_DERIVE_H

#include "core/background.h"

/* What the ranks of a communicator tell each other before they make another one. */
typedef struct rd_exchange {
    const char *name;                                    /* "comm_split" */
    uint8_t kind;                                        /* RD_MONITOR_SPLIT */
    rondo_result_t (*run)(rondo_comm_t comm, void *arg); /* uses comm->boot, and nothing else that waits */
    void *arg;
    /* What others must hear of a failure before the caller does, whose process may end then; NULL: nothing. */
    void (*failed)(rondo_comm_t comm, void *arg, rondo_result_t result);
} rd_exchange_t;

/* Runs the exchange inside `comm`: it is recorded as a call, compared with what other ranks call (RONDO_CHECK), and
 * what fails it is the first cause. */
rondo_result_t rd_derive_exchange(rondo_comm_t comm, const rd_exchange_t *exchange);

/* What fails while a communicator is made is often but the consequence of what has happened to the one that it is made
 * from. The news of that may take a moment to come; then it is that cause, with its rank, which the caller gets. */
rondo_result_t rd_derive_cause(rondo_comm_t comm, rondo_result_t result);
/* The same for the creation of `made`, which is over. A failure, unless it is that of `comm`, is returned only when the
 * others have heard of it, and will take nothing that happens to `comm` from then on for the cause. */
rondo_result_t rd_derive_made(rondo_comm_t comm, rondo_comm_t made, rondo_result_t result);
/* The same for members of `comm` that meet and observe each other, as in a shrink by a list, while `comm` may have
 * failed long before. */
void rd_derive_met(rondo_comm_t comm, rondo_comm_t made, rondo_result_t result);

/* Completes a job that makes a communicator from job->used, after its arguments were checked, and begins it. Nothing
 * has been exchanged yet: what is wrong with the config is refused. It frees job->members if it does not begin. */
rondo_result_t rd_derive_begin(rd_job_t *job, const rondo_config_t *given, bool makes, rondo_comm_t *newcomm);

#endif
