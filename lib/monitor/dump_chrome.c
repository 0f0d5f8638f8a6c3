/* A dump as a trace in Chrome's JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing draw.
 *
 *   process        a process of the job
 *   thread         its collectives, sends or recvs in one communicator; calls that overlap have threads beside it
 *   slice          a call, or the rest of a run of equal calls, of which no times are kept: it says so
 *   arrow          from the call in which a rank waits to a slice of the rank that it waits for
 *   instant        the verdict
 *
 * Processes of one host have one clock. Those of several hosts are put together by their wall clocks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/dump.h"
#include "monitor/verdict.h"

#define LANES 8 /* calls of a track that overlap: in a group, or while another one waits to be tested */

typedef unsigned long long number_t;

typedef struct lane {
    uint64_t begun, ended; /* of its last slice, nanoseconds since the trace's begin; 0: it has none */
    bool open;             /* the slice is of a call that goes on */
    bool named;
} lane_t;

typedef struct chrome {
    rd_out_t *out;
    const rd_dump_t *dump;
    uint64_t base; /* what is subtracted from the wall clock, ns */
    uint64_t nslices, narrows, untimed;
    lane_t **lanes; /* of each process: [communicator][track][LANES]; the last communicator is those that are gone */
} chrome_t;

static const char *const track_names[RD_TRACKS] = {"", ", sends", ", recvs"};

/* ---- clocks ---- */

/* The first process of the same boot says how the clock of the host goes with the wall's, for all alike. */
static uint64_t unix_less_ns(const rd_dump_t *dump, int process)
{
    const rd_view_process_t *all = dump->view->processes;
    int i = 0;

    while (i < process &&
           (!all[i].reader.head.boot[0] || strcmp(all[i].reader.head.boot, all[process].reader.head.boot) != 0))
        i++;
    return all[i].reader.head.made_unix_ns - all[i].reader.head.made_ns;
}

static uint64_t from_base(const chrome_t *c, int process, uint64_t ns)
{
    uint64_t at = ns + unix_less_ns(c->dump, process);

    return at > c->base ? at - c->base : 0;
}

static uint64_t find_base(const rd_dump_t *dump)
{
    uint64_t base = UINT64_MAX;

    for (int i = 0; i < dump->view->nprocesses; i++)
        for (size_t k = 0; rd_dump_has(dump, i) && k < dump->histories[i].nruns; k++) {
            uint64_t at = dump->histories[i].runs[k].begun_ns;
            if (at && at + unix_less_ns(dump, i) < base)
                base = at + unix_less_ns(dump, i);
        }
    return base == UINT64_MAX ? 0 : base;
}

/* ---- events ---- */

static void begin_event(chrome_t *c, const char *phase, int process, int thread)
{
    rd_out_printf(c->out, "%s\n{\"ph\": \"%s\", \"pid\": %d, \"tid\": %d", c->nslices++ ? "," : "", phase,
                  c->dump->numbers[process], thread);
}

static void at(chrome_t *c, const char *name, uint64_t ns)
{
    rd_out_printf(c->out, ", \"%s\": %llu.%03u", name, (number_t)(ns / 1000), (unsigned)(ns % 1000));
}

static void name_it(chrome_t *c, const char *what, int process, int thread, const char *name)
{
    begin_event(c, "M", process, thread);
    rd_out_printf(c->out, ", \"name\": \"%s\", \"args\": {\"name\": ", what);
    rd_out_json(c->out, name);
    rd_out_printf(c->out, "}}");
}

static int thread_of(int comm, int track, int lane)
{
    return (comm * (RD_TRACKS + 1) + track) * LANES + lane + 1;
}

/* ---- calls ---- */

static lane_t *lanes_of(const chrome_t *c, int process, int comm, int track)
{
    return c->lanes[process] + (comm * RD_TRACKS + track) * LANES;
}

/* Takes the first lane that is free by then, or the last one. */
static int take_lane(chrome_t *c, int process, int comm, int track, uint64_t begun)
{
    const rd_history_t *h = &c->dump->histories[process];
    lane_t *lanes = lanes_of(c, process, comm, track);
    char name[160];
    int lane = 0;

    while (lane < LANES - 1 && lanes[lane].named && lanes[lane].ended > begun)
        lane++;
    if (lanes[lane].named)
        return lane;
    lanes[lane].named = true;
    if (comm < h->ncomms)
        snprintf(name, sizeof name, "%s, rank %d%s%s", h->comms[comm].name, h->comms[comm].rank, track_names[track],
                 lane ? " (at the same time)" : "");
    else
        snprintf(name, sizeof name, "communicators that are gone%s", track_names[track]);
    name_it(c, "thread_name", process, thread_of(comm, track, lane), name);
    return lane;
}

/* `from`: the number of the first call of the slice; `calls`: how many it stands for. */
static void write_slice(chrome_t *c, int process, const rd_history_run_t *r, uint64_t from, uint64_t calls,
                        uint64_t begun, uint64_t ended)
{
    const rd_history_t *h = &c->dump->histories[process];
    const rd_monitor_event_t *e = &r->event;
    int comm = r->comm >= 0 ? r->comm : h->ncomms, lane = take_lane(c, process, comm, (int)r->track, begun);
    bool open = r->over < r->calls && from + calls == e->number + r->calls;
    const char *name = rd_view_kind_name(e->kind);

    ended = ended < begun ? begun : ended;
    begin_event(c, "X", process, thread_of(comm, (int)r->track, lane));
    at(c, "ts", begun);
    at(c, "dur", ended - begun);
    if (from == e->number)
        rd_out_printf(c->out, ", \"name\": \"%s\", \"args\": {", name);
    else
        rd_out_printf(c->out,
                      ", \"name\": \"%llu more %s\", \"args\": {\"times\": \"not kept: within this span\", "
                      "\"calls\": %llu, ",
                      (number_t)calls, name, (number_t)calls);
    rd_out_printf(c->out, "\"number\": %llu, \"communicator\": \"%016llx\", \"rank\": %d, \"state\": \"%s\"",
                  (number_t)from, (number_t)e->comm, e->rank,
                  rd_history_state_name(rd_history_state(h, r, from + calls - 1 - e->number)));
    rd_dump_arguments(c->out, e);
    rd_out_printf(c->out, ", \"result\": %d}}", e->result);
    lanes_of(c, process, comm, (int)r->track)[lane] = (lane_t){begun, ended, open, true};
}

/* `until`: when the next run of the track begins, or now. */
static void write_run(chrome_t *c, int process, const rd_history_run_t *r, uint64_t until)
{
    uint64_t begun = from_base(c, process, r->begun_ns), ended = from_base(c, process, r->ended_ns);

    if (!r->begun_ns || !r->calls) {
        c->untimed++;
        return;
    }
    if (!r->ended_ns)
        ended = r->over ? begun : from_base(c, process, c->dump->view->processes[process].now_ns);
    write_slice(c, process, r, r->event.number, 1, begun, ended);
    if (r->calls > 1)
        write_slice(c, process, r, r->event.number + 1, r->calls - 1, ended, until);
}

/* Returns false if there is no memory. */
static bool write_calls(chrome_t *c, int process)
{
    const rd_history_t *h = &c->dump->histories[process];
    uint64_t now = from_base(c, process, c->dump->view->processes[process].now_ns);
    uint64_t *until = calloc(h->nruns + 1, sizeof *until);
    uint64_t *next = calloc((size_t)(h->ncomms + 1) * RD_TRACKS, sizeof *next);

    for (size_t i = h->nruns; until && next && i-- > 0;) {
        const rd_history_run_t *r = &h->runs[i];
        uint64_t *of = &next[(r->comm >= 0 ? r->comm : h->ncomms) * RD_TRACKS + (int)r->track];
        until[i] = *of ? *of : now;
        if (r->begun_ns)
            *of = from_base(c, process, r->begun_ns);
    }
    for (size_t i = 0; until && next && i < h->nruns; i++)
        write_run(c, process, &h->runs[i], until[i]);
    bool good = until && next;
    free(until);
    free(next);
    return good;
}

/* ---- waits ---- */

/* Returns the slice of the call that goes on, if there is one. */
static const lane_t *open_lane(const chrome_t *c, int process, int comm, int track, int *thread)
{
    const lane_t *lanes = lanes_of(c, process, comm, track);

    for (int lane = LANES; lane-- > 0;) {
        *thread = thread_of(comm, track, lane);
        if (lanes[lane].open)
            return &lanes[lane];
    }
    return NULL;
}

static bool find_rank(const chrome_t *c, uint64_t id, int rank, int *process, int *comm)
{
    for (*process = 0; *process < c->dump->view->nprocesses; (*process)++) {
        *comm = rd_dump_has(c->dump, *process) ? rd_history_comm(&c->dump->histories[*process], id, rank) : -1;
        if (*comm >= 0)
            return true;
    }
    return false;
}

/* Who is waited for has a slice of its own for that, as it may be outside of calls. */
static void write_arrow(chrome_t *c, int process, int comm)
{
    const rd_monitor_comm_t *m = &c->dump->histories[process].comms[comm];
    int inside = rd_view_inside(m), peer = rd_view_waits_for(m), other, there, thread = 0;
    const lane_t *from = peer >= 0 && inside >= 0 ? open_lane(c, process, comm, inside, &thread) : NULL;
    char name[64], thread_name[160];

    if (!from || !find_rank(c, m->id, peer, &other, &there))
        return;
    uint64_t since = from_base(c, process, m->since_ms * 1000000);
    uint64_t now = from_base(c, other, c->dump->view->processes[other].now_ns);
    since = since < from->begun ? from->begun : since > from->ended ? from->ended : since;
    now = now < since ? since : now;
    int to = thread_of(there, RD_TRACKS, 0);
    const rd_monitor_comm_t *target = &c->dump->histories[other].comms[there];
    snprintf(thread_name, sizeof thread_name, "%s, rank %d: waited for", target->name, target->rank);
    snprintf(name, sizeof name, "waited for by rank %d", m->rank);
    name_it(c, "thread_name", other, to, thread_name);
    begin_event(c, "X", other, to);
    at(c, "ts", since);
    at(c, "dur", now - since);
    rd_out_printf(c->out, ", \"name\": \"%s\", \"args\": {\"communicator\": \"%016llx\"}}", name, (number_t)m->id);
    c->narrows++;
    begin_event(c, "s", process, thread);
    at(c, "ts", since);
    rd_out_printf(c->out, ", \"id\": %llu, \"cat\": \"wait\", \"name\": \"waits\"}", (number_t)c->narrows);
    begin_event(c, "f", other, to);
    at(c, "ts", since);
    rd_out_printf(c->out, ", \"id\": %llu, \"cat\": \"wait\", \"name\": \"waits\", \"bp\": \"e\"}",
                  (number_t)c->narrows);
}

static void write_verdicts(chrome_t *c)
{
    const rd_view_t *view = c->dump->view;

    for (int i = 0; i < view->ncomms; i++) {
        const rd_view_comm_t *comm = &view->comms[i];
        const rd_view_rank_t *named;
        rd_monitor_verdict_t v;
        rd_verdict_judge(view, comm, &v);
        named = rd_view_rank_of(comm, v.rank);
        named = named ? named : &comm->ranks[0];
        if (v.status == RD_VERDICT_NONE || !rd_dump_has(c->dump, named->process))
            continue;
        begin_event(c, "i", named->process, 0);
        at(c, "ts", from_base(c, named->process, view->processes[named->process].now_ns));
        rd_out_printf(c->out,
                      ", \"s\": \"g\", \"name\": \"verdict\", \"args\": {\"status\": %d, \"communicator\": ", v.status);
        rd_out_json(c->out, comm->ranks[0].comm.name);
        rd_out_printf(c->out, ", \"text\": ");
        rd_out_json(c->out, v.text);
        rd_out_printf(c->out, "}}");
    }
}

static bool write_process(chrome_t *c, int process)
{
    const rd_monitor_head_t *head = &c->dump->view->processes[process].reader.head;
    size_t comms = (size_t)c->dump->histories[process].ncomms + 1;
    char name[192];

    c->lanes[process] = calloc(comms * RD_TRACKS * LANES, sizeof **c->lanes);
    if (!c->lanes[process])
        return false;
    snprintf(name, sizeof name, "%d (%s:%d) %s", c->dump->numbers[process], head->host, head->pid, head->program);
    name_it(c, "process_name", process, 0, name);
    begin_event(c, "M", process, 0);
    rd_out_printf(c->out, ", \"name\": \"process_sort_index\", \"args\": {\"sort_index\": %d}}",
                  c->dump->numbers[process]);
    return write_calls(c, process);
}

bool rd_dump_chrome(rd_out_t *out, const rd_dump_t *dump)
{
    int n = dump->view->nprocesses;
    chrome_t c = {.out = out, .dump = dump, .base = find_base(dump)};
    bool good;

    c.lanes = calloc((size_t)n + 1, sizeof *c.lanes);
    good = c.lanes;
    rd_out_printf(out, "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [");
    for (int i = 0; good && i < n; i++)
        good = !rd_dump_has(dump, i) || write_process(&c, i);
    for (int i = 0; good && i < n; i++)
        for (int k = 0; rd_dump_has(dump, i) && k < dump->histories[i].ncomms; k++)
            write_arrow(&c, i, k);
    if (good)
        write_verdicts(&c);
    rd_out_printf(out, "],\n\"otherData\": {\"begin_unix_ns\": \"%llu\", \"calls_without_times\": \"%llu\"}}\n",
                  (number_t)c.base, (number_t)c.untimed);
    for (int i = 0; c.lanes && i < n; i++)
        free(c.lanes[i]);
    free(c.lanes);
    return good;
}
