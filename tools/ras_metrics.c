/* rondo-ras metrics: what the records count, as text for Prometheus, whose node exporter reads such a file. Only what
 * the records have: totals of calls and bytes, waits that go on, and the verdict. A counter begins again when a
 * communicator does, which has another id then. */
#include <stdio.h>
#include <stdlib.h>

#include "monitor/series.h"
#include "ras.h"

#define COMMS_MOST 24 /* of a process: its series stay below 200 */

typedef struct metrics {
    rd_out_t *out;
    const rd_view_t *view;
    const ras_options_t *options;
    int *comms;                     /* of each process, so far */
    rd_monitor_verdict_t *verdicts; /* of each communicator */
} metrics_t;

static bool is_shown(const metrics_t *m, int process)
{
    return !m->options->job || m->view->processes[process].job == m->options->job;
}

static void begin(metrics_t *m, rd_metric_t metric)
{
    rd_metric_begin(m->out, metric);
    for (int i = 0; i < m->view->nprocesses; i++)
        m->comms[i] = 0;
}

static void process_labels(metrics_t *m, int process)
{
    const rd_view_process_t *p = &m->view->processes[process];

    rd_out_printf(m->out, "{job=\"%d\",pid=\"%d\",", p->job, p->reader.head.pid);
    rd_metric_label(m->out, "host", p->reader.head.host);
}

static void comm_labels(metrics_t *m, const rd_view_comm_t *c)
{
    rd_out_printf(m->out, "{job=\"%d\",id=\"%016llx\",", m->view->processes[c->ranks[0].process].job,
                  (unsigned long long)c->id);
    rd_metric_label(m->out, "communicator", c->ranks[0].comm.name);
}

static void rank_labels(metrics_t *m, const rd_view_comm_t *c, const rd_view_rank_t *r)
{
    comm_labels(m, c);
    rd_out_printf(m->out, ",rank=\"%d\",", r->comm.rank);
    rd_metric_label(m->out, "host", m->view->processes[r->process].reader.head.host);
}

/* ---- of each rank ---- */

typedef void (*rank_fn)(metrics_t *m, const char *name, const rd_view_comm_t *c, const rd_view_rank_t *r);

static void of_ranks(metrics_t *m, rd_metric_t metric, rank_fn write_rank)
{
    begin(m, metric);
    for (int i = 0; i < m->view->ncomms; i++)
        for (int k = 0; k < m->view->comms[i].nranks; k++) {
            const rd_view_rank_t *r = &m->view->comms[i].ranks[k];
            if (m->comms[r->process]++ < COMMS_MOST)
                write_rank(m, rd_metric_name(metric), &m->view->comms[i], r);
        }
}

static void write_tracks(metrics_t *m, const char *name, const rd_view_comm_t *c, const rd_view_rank_t *r, bool ended)
{
    static const char *const tracks[RD_TRACKS] = {"collective", "send", "recv"};

    for (int t = 0; t < RD_TRACKS; t++) {
        rd_out_printf(m->out, "%s", name);
        rank_labels(m, c, r);
        rd_out_printf(m->out, ",kind=\"%s\"} %llu\n", tracks[t],
                      (unsigned long long)(ended ? r->comm.calls[t].ended : r->comm.calls[t].begun));
    }
}

static void write_begun(metrics_t *m, const char *name, const rd_view_comm_t *c, const rd_view_rank_t *r)
{
    write_tracks(m, name, c, r, false);
}

static void write_ended(metrics_t *m, const char *name, const rd_view_comm_t *c, const rd_view_rank_t *r)
{
    write_tracks(m, name, c, r, true);
}

static void write_bytes(metrics_t *m, const char *name, const rd_view_comm_t *c, const rd_view_rank_t *r)
{
    rd_out_printf(m->out, "%s", name);
    rank_labels(m, c, r);
    rd_out_printf(m->out, "} %llu\n", (unsigned long long)rd_view_bytes(m->view, r));
}

static void write_wait(metrics_t *m, const char *name, const rd_view_comm_t *c, const rd_view_rank_t *r)
{
    rd_out_printf(m->out, "%s", name);
    rank_labels(m, c, r);
    rd_out_printf(m->out, "} %.3f\n", rd_view_waits_for(&r->comm) >= 0 ? rd_view_waits_since(m->view, r) : 0.0);
}

/* ---- of each process and communicator ---- */

static void write_processes(metrics_t *m)
{
    int n = 0;

    for (int i = 0; i < m->view->nprocesses; i++)
        n += is_shown(m, i);
    begin(m, RD_METRIC_PROCESSES);
    rd_out_printf(m->out, "rondo_processes %d\n", n);
    begin(m, RD_METRIC_UP);
    for (int i = 0; i < m->view->nprocesses; i++) {
        const rd_view_rank_t rank = {.process = i};
        if (!is_shown(m, i) || m->view->processes[i].state == RD_VIEW_ELSEWHERE)
            continue;
        rd_out_printf(m->out, "rondo_up");
        process_labels(m, i);
        rd_out_printf(m->out, "} %d\n", !rd_view_gone(m->view, &rank));
    }
}

/* Each communicator is judged once: a verdict takes looks of its own, and two need not agree. */
static void write_verdicts(metrics_t *m)
{
    begin(m, RD_METRIC_VERDICT);
    for (int i = 0; i < m->view->ncomms; i++) {
        rd_out_printf(m->out, "rondo_verdict");
        comm_labels(m, &m->view->comms[i]);
        rd_out_printf(m->out, "} %d\n", m->verdicts[i].status);
    }
    begin(m, RD_METRIC_BLAMED);
    for (int i = 0; i < m->view->ncomms; i++) {
        if (m->verdicts[i].status == RD_VERDICT_NONE || m->verdicts[i].rank < 0)
            continue;
        rd_out_printf(m->out, "rondo_blamed_rank");
        comm_labels(m, &m->view->comms[i]);
        rd_out_printf(m->out, "} %d\n", m->verdicts[i].rank);
    }
}

static bool write_metrics(rd_out_t *out, void *arg)
{
    metrics_t m = *(metrics_t *)arg;

    m.out = out;
    write_processes(&m);
    of_ranks(&m, RD_METRIC_CALLS, write_begun);
    of_ranks(&m, RD_METRIC_CALLS_ENDED, write_ended);
    of_ranks(&m, RD_METRIC_BYTES, write_bytes);
    of_ranks(&m, RD_METRIC_WAIT, write_wait);
    write_verdicts(&m);
    return true;
}

static int write_once(const rd_view_t *view, const ras_options_t *options)
{
    metrics_t m = {.view = view, .options = options};

    m.comms = calloc((size_t)view->nprocesses + 1, sizeof *m.comms);
    m.verdicts = calloc((size_t)view->ncomms + 1, sizeof *m.verdicts);
    int bad = m.comms && m.verdicts ? 0 : RAS_NOTHING;
    if (bad)
        fprintf(stderr, "rondo-ras: no memory\n");
    for (int i = 0; !bad && i < view->ncomms; i++)
        rd_verdict_judge(view, &view->comms[i], &m.verdicts[i]);
    if (!bad)
        bad = ras_replace_file(options->out ? options->out : "-", 0644, write_metrics, &m);
    free(m.verdicts);
    free(m.comms);
    return bad;
}

/* Finds what is there now. Other hosts that do not answer, which has been said, may do so the next time. */
static bool find_again(rd_view_t *view, ras_options_t *options)
{
    if (!options->hosts)
        options->job = ras_live_process(view, options->job);
    rd_view_free(view);
    const bool found = ras_find(view, options);
    options->job = rd_view_job(view, options->job);
    return found || options->hosts;
}

/* Once, or each so many seconds if they are given. */
int ras_metrics(rd_view_t *view, const ras_options_t *given)
{
    ras_options_t own = *given, *options = &own;
    bool once = options->seconds <= 0 && !options->count;
    int bad = 0;

    for (int n = 0; (once ? n < 1 : !options->count || n < options->count) && !bad; n++) {
        if (n > 0)
            ras_pause(options->seconds > 0 ? options->seconds : 15);
        if ((n > 0 && !find_again(view, options)) || !ras_look_again(view, options)) {
            fprintf(stderr, "rondo-ras: no memory\n");
            return RAS_NOTHING;
        }
        bad = write_once(view, options);
    }
    return bad;
}
