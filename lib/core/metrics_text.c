/* See metrics_text.h. */
#include "core/metrics_text.h"

#include <string.h>

#include "base/numbers.h"

typedef unsigned long long number_t;

typedef void (*comm_fn)(rd_out_t *out, const rd_metrics_look_t *look, rd_metric_t metric, const rd_metrics_comm_t *c);

static int shown(const rd_metrics_look_t *look)
{
    return look->ncomms < RD_METRICS_COMMS ? look->ncomms : RD_METRICS_COMMS;
}

/* Sorted by insertion: of a wide communicator most ranks are compared with the least of the list alone. */
void rd_metrics_peers(rd_metrics_comm_t *c, rd_waited_t *waited)
{
    c->npeers = 0;
    for (int rank = 0; rank < waited->size; rank++) {
        uint64_t ms = atomic_load_explicit(&waited->peers_ms[rank], memory_order_relaxed);
        int at = c->npeers;
        while (at > 0 && c->peers[at - 1].ms < ms)
            at--;
        if (!ms || at == RD_METRICS_PEERS)
            continue;
        int moved = (c->npeers < RD_METRICS_PEERS ? c->npeers : RD_METRICS_PEERS - 1) - at;
        memmove(&c->peers[at + 1], &c->peers[at], (size_t)moved * sizeof c->peers[0]);
        c->peers[at].rank = rank;
        c->peers[at].ms = ms;
        c->npeers += c->npeers < RD_METRICS_PEERS;
    }
}

static void write_value(rd_out_t *out, double value)
{
    locale_t before = rd_numbers_begin();

    rd_out_printf(out, "} %.9f\n", value);
    rd_numbers_end(before);
}

/* ---- labels ---- */

static void process_labels(rd_out_t *out, const rd_metrics_look_t *look)
{
    rd_metric_label(out, "host", look->host);
    rd_out_printf(out, ",pid=\"%d\"", look->pid);
    if (look->number >= 0)
        rd_out_printf(out, ",process=\"%d\"", look->number);
}

/* Begins a sample of a rank; what its caller adds stands behind a comma, or ends it. */
static void rank_labels(rd_out_t *out, const rd_metrics_look_t *look, rd_metric_t metric, const rd_metrics_comm_t *c)
{
    rd_out_printf(out, "%s{id=\"%016llx\",", rd_metric_name(metric), (number_t)c->comm.id);
    rd_metric_label(out, "communicator", c->comm.name);
    rd_out_printf(out, ",rank=\"%d\",", c->comm.rank);
    rd_metric_label(out, "host", look->host);
}

/* ---- of the process ---- */

static void write_process(rd_out_t *out, const rd_metrics_look_t *look, rd_metric_t metric, uint64_t value)
{
    rd_metric_begin(out, metric);
    rd_out_printf(out, "%s{", rd_metric_name(metric));
    process_labels(out, look);
    rd_out_printf(out, "} %llu\n", (number_t)value);
}

static void write_kind(rd_out_t *out, const rd_metrics_look_t *look, int kind)
{
    const rd_duration_t *of = &look->durations->kinds[kind];
    const char *name = rd_metric_name(RD_METRIC_SECONDS);
    uint64_t upto = 0;

    for (int i = 0; i < RD_DURATION_BUCKETS; i++) {
        upto += of->buckets[i];
        rd_out_printf(out, "%s_bucket{collective=\"%s\",", name, rd_view_kind_name(kind));
        process_labels(out, look);
        rd_out_printf(out, ",le=\"%s\"} %llu\n", rd_duration_bounds[i], (number_t)upto);
    }
    rd_out_printf(out, "%s_sum{collective=\"%s\",", name, rd_view_kind_name(kind));
    process_labels(out, look);
    write_value(out, of->seconds);
    rd_out_printf(out, "%s_count{collective=\"%s\",", name, rd_view_kind_name(kind));
    process_labels(out, look);
    rd_out_printf(out, "} %llu\n", (number_t)of->count);
}

/* The kinds of which there are most calls. */
static void write_durations(rd_out_t *out, const rd_metrics_look_t *look)
{
    bool done[RD_DURATION_KINDS] = {false};

    rd_metric_begin(out, RD_METRIC_SECONDS);
    for (int n = 0; n < RD_METRICS_KINDS; n++) {
        int most = -1;
        for (int kind = 0; kind < RD_DURATION_KINDS; kind++)
            if (!done[kind] && look->durations->kinds[kind].count > 0 &&
                (most < 0 || look->durations->kinds[kind].count > look->durations->kinds[most].count))
                most = kind;
        if (most < 0)
            return;
        done[most] = true;
        write_kind(out, look, most);
    }
}

/* ---- of each communicator ---- */

static void write_calls(rd_out_t *out, const rd_metrics_look_t *look, rd_metric_t metric, const rd_metrics_comm_t *c)
{
    static const char *const tracks[RD_TRACKS] = {"collective", "send", "recv"};

    for (int t = 0; t < RD_TRACKS; t++) {
        rank_labels(out, look, metric, c);
        rd_out_printf(out, ",kind=\"%s\"} %llu\n", tracks[t],
                      (number_t)(metric == RD_METRIC_CALLS ? c->comm.calls[t].begun : c->comm.calls[t].ended));
    }
}

static void write_bytes(rd_out_t *out, const rd_metrics_look_t *look, rd_metric_t metric, const rd_metrics_comm_t *c)
{
    rank_labels(out, look, metric, c);
    rd_out_printf(out, "} %llu\n", (number_t)c->bytes);
}

static void write_wait(rd_out_t *out, const rd_metrics_look_t *look, rd_metric_t metric, const rd_metrics_comm_t *c)
{
    rank_labels(out, look, metric, c);
    write_value(out, metric == RD_METRIC_WAIT ? c->waits : (double)c->waited_ms / 1000);
}

static void write_stalls(rd_out_t *out, const rd_metrics_look_t *look, rd_metric_t metric, const rd_metrics_comm_t *c)
{
    static const char *const kinds[RD_WAITED_VERDICTS] = {"late", "blamed", "unknown"};

    for (int i = 0; i < RD_WAITED_VERDICTS; i++) {
        rank_labels(out, look, metric, c);
        rd_out_printf(out, ",kind=\"%s\"} %llu\n", kinds[i], (number_t)c->stalls[i]);
    }
}

static void write_late(rd_out_t *out, const rd_metrics_look_t *look, rd_metric_t metric, const rd_metrics_comm_t *c)
{
    if (c->late < 0)
        return;
    rank_labels(out, look, metric, c);
    rd_out_printf(out, "} %d\n", c->late);
}

/* Is this one of the peers that all communicators together have waited for most? */
static bool is_shown(const rd_metrics_look_t *look, uint64_t ms)
{
    int more = 0;

    for (int i = 0; i < shown(look); i++)
        for (int k = 0; k < look->comms[i].npeers; k++)
            more += look->comms[i].peers[k].ms > ms;
    return more < RD_METRICS_PEERS;
}

static void write_peers(rd_out_t *out, const rd_metrics_look_t *look)
{
    int n = 0; /* of those that have waited alike some are left out */

    rd_metric_begin(out, RD_METRIC_PEER_WAITS);
    for (int i = 0; i < shown(look); i++)
        for (int k = 0; k < look->comms[i].npeers && n < RD_METRICS_PEERS; k++) {
            const rd_metrics_comm_t *c = &look->comms[i];
            if (!is_shown(look, c->peers[k].ms))
                continue;
            rank_labels(out, look, RD_METRIC_PEER_WAITS, c);
            rd_out_printf(out, ",peer=\"%d\"", c->peers[k].rank);
            write_value(out, (double)c->peers[k].ms / 1000);
            n++;
        }
}

static void of_comms(rd_out_t *out, const rd_metrics_look_t *look, rd_metric_t metric, comm_fn write_comm)
{
    rd_metric_begin(out, metric);
    for (int i = 0; i < shown(look); i++)
        write_comm(out, look, metric, &look->comms[i]);
}

void rd_metrics_write(rd_out_t *out, const rd_metrics_look_t *look)
{
    write_process(out, look, RD_METRIC_UP, 1);
    write_process(out, look, RD_METRIC_COMMUNICATORS, (uint64_t)look->ncomms);
    of_comms(out, look, RD_METRIC_CALLS, write_calls);
    of_comms(out, look, RD_METRIC_CALLS_ENDED, write_calls);
    of_comms(out, look, RD_METRIC_BYTES, write_bytes);
    of_comms(out, look, RD_METRIC_WAIT, write_wait);
    of_comms(out, look, RD_METRIC_WAITS, write_wait);
    write_peers(out, look);
    of_comms(out, look, RD_METRIC_STALLS, write_stalls);
    of_comms(out, look, RD_METRIC_LATE, write_late);
    write_durations(out, look);
    write_process(out, look, RD_METRIC_UNTIMED, look->durations->lost);
}
