/* What the file of RONDO_METRICS says: all communicators of the process at one moment. */
#ifndef RD_CORE_METRICS_TEXT_H
#define RD_CORE_METRICS_TEXT_H

#include "monitor/durations.h"
#include "monitor/series.h"
#include "monitor/waited.h"

#define RD_METRICS_COMMS 9 /* that are shown: with these a process has 200 series at most, */
#define RD_METRICS_KINDS 8 /* with so many kinds of calls, */
#define RD_METRICS_PEERS 8 /* and so many ranks that were waited for */

/* A communicator, as it was looked at. */
typedef struct rd_metrics_comm {
    rd_monitor_comm_t comm;
    uint64_t bytes, waited_ms, stalls[RD_WAITED_VERDICTS];
    double waits; /* seconds, of the call that goes on */
    int late;     /* the rank that holds it up, as the log said; -1: it has said none */
    int npeers;
    struct {
        int rank;
        uint64_t ms;
    } peers[RD_METRICS_PEERS]; /* those that were waited for most, in their order */
} rd_metrics_comm_t;

typedef struct rd_metrics_look {
    rd_metrics_comm_t comms[RD_METRICS_COMMS]; /* the last ones that were looked at, as a ring */
    int ncomms;                                /* so many were looked at */
    char host[RD_MONITOR_NAME];
    int pid, number; /* in the job; -1: unknown */
    const rd_durations_t *durations;
} rd_metrics_look_t;

void rd_metrics_peers(rd_metrics_comm_t *comm, rd_waited_t *waited);
void rd_metrics_write(rd_out_t *out, const rd_metrics_look_t *look);

#endif
