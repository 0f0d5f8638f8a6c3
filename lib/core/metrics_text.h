/* What the file of RONDO_METRICS says: all communicators of the process at one moment. */
#ifndef RD_CORE_METRICS_TEXT_H
#define RD_CORE_METRICS_TEXT_H

#include "monitor/durations.h"
#include "monitor/series.h"
#include "monitor/waited.h"

/* What a process shows at most: 200 series in all. */
#define RD_METRICS_COMMS 9 /* communicators */
#define RD_METRICS_KINDS 8 /* kinds of calls */
#define RD_METRICS_PEERS 8 /* ranks that were waited for, of each communicator */

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
    int ncomms;                                /* how many were looked at in all */
    char host[RD_MONITOR_NAME];
    int pid, number; /* in the job; -1: unknown */
    const rd_durations_t *durations;
} rd_metrics_look_t;

void rd_metrics_peers(rd_metrics_comm_t *comm, rd_waited_t *waited);
void rd_metrics_write(rd_out_t *out, const rd_metrics_look_t *look);

#endif
