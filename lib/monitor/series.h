/* Text for Prometheus: the series that there are, with type and help, as a process writes them (core/metrics.h) and
 * rondo-ras metrics does. A series that both have means the same. */
#ifndef RD_MONITOR_SERIES_H
#define RD_MONITOR_SERIES_H

#include "monitor/out.h"

typedef enum rd_metric {
    RD_METRIC_PROCESSES,
    RD_METRIC_UP,
    RD_METRIC_COMMUNICATORS,
    RD_METRIC_CALLS,
    RD_METRIC_CALLS_ENDED,
    RD_METRIC_BYTES,
    RD_METRIC_WAIT,
    RD_METRIC_WAITS,
    RD_METRIC_PEER_WAITS,
    RD_METRIC_STALLS,
    RD_METRIC_LATE,
    RD_METRIC_VERDICT,
    RD_METRIC_BLAMED,
    RD_METRIC_SECONDS,
    RD_METRIC_UNTIMED,
    RD_METRICS
} rd_metric_t;

const char *rd_metric_name(rd_metric_t metric);
/* Writes the lines that stand before all samples of a series. */
void rd_metric_begin(rd_out_t *out, rd_metric_t metric);
/* Writes name="value" for any text. */
void rd_metric_label(rd_out_t *out, const char *name, const char *value);

#endif
