/* See series.h. */
#include "monitor/series.h"

static const struct {
    const char *name, *type, *help;
} metrics[RD_METRICS] = {
    [RD_METRIC_PROCESSES] = {"rondo_processes", "gauge", "Processes with a record, dead ones too."},
    [RD_METRIC_UP] = {"rondo_up", "gauge", "Does the process live? No value: it is of another pid name space."},
    [RD_METRIC_COMMUNICATORS] = {"rondo_communicators", "gauge", "Communicators of the process, also those not shown."},
    [RD_METRIC_CALLS] = {"rondo_calls_total", "counter", "Calls that have begun."},
    [RD_METRIC_CALLS_ENDED] = {"rondo_calls_ended_total", "counter",
                               "Calls that have ended; on a GPU: that are enqueued."},
    [RD_METRIC_BYTES] = {"rondo_bytes_total", "counter", "Bytes of the longer buffer of each call."},
    [RD_METRIC_WAIT] = {"rondo_wait_seconds", "gauge",
                        "For how long the call that goes on has waited for another rank."},
    [RD_METRIC_WAITS] = {"rondo_wait_seconds_total", "counter",
                         "For how long calls have waited for other ranks, without waits of less than a millisecond."},
    [RD_METRIC_PEER_WAITS] = {"rondo_peer_wait_seconds_total", "counter",
                              "The same for each of the ranks that were waited for most."},
    [RD_METRIC_STALLS] = {"rondo_stalls_total", "counter", "Lines of RONDO_STALL_MS in the log, by what they found."},
    [RD_METRIC_LATE] = {"rondo_late_rank", "gauge", "The rank that such a line has named, while that wait goes on."},
    [RD_METRIC_VERDICT] = {"rondo_verdict", "gauge",
                           "Exit status of rondo-ras who: 0 nobody, 3 late, 4 dead, stopped or left, 5 unknown."},
    [RD_METRIC_BLAMED] = {"rondo_blamed_rank", "gauge", "The rank that the verdict names, where it names one."},
    [RD_METRIC_SECONDS] = {"rondo_call_seconds", "histogram",
                           "How long calls on host memory took, of each run of equal calls the first one."},
    [RD_METRIC_UNTIMED] = {"rondo_calls_untimed_total", "counter",
                           "Calls that the ring had lost before their time was read (RONDO_MONITOR_EVENTS)."},
};

const char *rd_metric_name(rd_metric_t metric)
{
    return metrics[metric].name;
}

void rd_metric_begin(rd_out_t *out, rd_metric_t metric)
{
    rd_out_printf(out, "# HELP %s %s\n# TYPE %s %s\n", metrics[metric].name, metrics[metric].help, metrics[metric].name,
                  metrics[metric].type);
}

/* A text of a record is printable ASCII; a label has three characters that are written otherwise, of which that leaves
 * two, as in JSON. */
void rd_metric_label(rd_out_t *out, const char *name, const char *value)
{
    rd_out_printf(out, "%s=", name);
    rd_out_json(out, value);
}
