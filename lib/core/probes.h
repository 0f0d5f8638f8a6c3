/* Probes on their way (monitor/probe.h): one that has come by this communicator goes on by the one in which its rank's
 * thread waits, which may be another. */
#ifndef RD_CORE_PROBES_H
#define RD_CORE_PROBES_H

#include "core/comm.h"

/* By the liveness thread, for a question that carries a probe. */
void rd_probes_pass_on(rondo_comm_t comm, const rd_boot_question_t *question);

#endif
