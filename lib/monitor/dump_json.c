/* A dump as JSON: rondo's own format, which holds all that a record does, so that it can be judged later as the record
 * itself would have been (tools/load_json.c reads it). doc/monitor.md describes its members. */
#include <string.h>

#include "base/types.h"
#include "monitor/dump.h"
#include "monitor/stacks.h"
#include "monitor/verdict.h"
#include "sched/program.h"

typedef unsigned long long number_t;

static const char *const tracks[RD_TRACKS] = {"collectives", "sends", "recvs"};
static const char *const states[] = {"free", "alive", "failed", "ended"};

static void text(rd_out_t *out, const char *name, const char *value)
{
    rd_out_printf(out, ", \"%s\": ", name);
    rd_out_json(out, value);
}

static void write_process(rd_out_t *out, const rd_dump_t *dump, int process)
{
    const rd_view_process_t *p = &dump->view->processes[process];
    const rd_monitor_head_t *h = &p->reader.head;
    char state[2] = {p->state, 0};

    rd_out_printf(out, "\"process\": {\"number\": %d, \"pid\": %d, \"uid\": %d, \"job\": %d, \"job_rank\": %d",
                  dump->numbers[process], h->pid, h->uid, p->job, h->job_rank);
    rd_out_printf(out, ", \"job_size\": %d", h->job_size);
    text(out, "host", h->host);
    text(out, "boot", h->boot);
    text(out, "program", h->program);
    text(out, "library", h->library);
    text(out, "state", state);
    if (p->error[0])
        text(out, "error", p->error);
    rd_out_printf(out,
                  ",\n  \"pid_space\": %llu, \"started\": %llu, \"made_ns\": %llu, \"made_unix_ns\": %llu, "
                  "\"now_ns\": %llu, \"processor_ticks\": [%llu, %llu], \"queued_percent\": %d}",
                  (number_t)h->pid_space, (number_t)h->started, (number_t)h->made_ns, (number_t)h->made_unix_ns,
                  (number_t)p->now_ns, p->ticks_before, p->ticks, (int)(100 * p->queued + 0.5));
}

/* ---- communicators ---- */

static void write_board(rd_out_t *out, const rd_monitor_comm_t *c)
{
    rd_out_printf(out, "{\"state\": \"%s\", \"result\": %d", states[c->state], c->result);
    for (int t = 0; t < RD_TRACKS; t++)
        rd_out_printf(out, ", \"%s\": {\"begun\": %llu, \"ended\": %llu, \"entry\": %llu, \"bytes\": %llu}", tracks[t],
                      (number_t)c->calls[t].begun, (number_t)c->calls[t].ended, (number_t)c->calls[t].entry,
                      (number_t)c->calls[t].bytes);
    rd_out_printf(out,
                  ",\n     \"wait\": {\"for\": %lld, \"in\": %llu, \"since_ms\": %llu, \"seen_ms\": %llu, "
                  "\"step\": %lld, \"steps\": %lld, \"%s\": %llu, \"peer_behind\": %llu}, \"shrinks_ms\": %llu}",
                  (long long)c->waits_for, (number_t)c->waits_in, (number_t)c->since_ms, (number_t)c->seen_ms,
                  (long long)c->step, (long long)c->steps, c->device >= 0 ? "peer_in" : "thread", (number_t)c->peer_in,
                  (number_t)c->peer_behind, (number_t)c->shrinks_ms);
}

/* Words of two halves are two numbers. */
static void write_periods(rd_out_t *out, const char *name, const rd_monitor_period_t *periods, int n)
{
    bool any = false;

    rd_out_printf(out, ",\n    \"%s\": [", name);
    for (int i = 0; i < n; i++) {
        const rd_monitor_period_t *p = &periods[i];
        if (!p->number)
            continue;
        rd_out_printf(out, "%s[%llu, %u, %u, %u, %u, %u, %u]", any ? ", " : "", (number_t)p->number,
                      (unsigned)(p->waited >> 32), (unsigned)p->waited, (unsigned)(p->calls >> 32), (unsigned)p->calls,
                      (unsigned)(p->peer >> 32), (unsigned)p->peer);
        any = true;
    }
    rd_out_printf(out, "]");
}

static void write_links(rd_out_t *out, const rd_monitor_link_t *links)
{
    bool any = false;

    rd_out_printf(out, ",\n    \"links\": [");
    for (int i = 0; i < RD_MONITOR_LINKS; i++) {
        const rd_monitor_link_t *l = &links[i];
        if (!l->peer)
            continue;
        rd_out_printf(out, "%s[%llu, %u, %u", any ? ", " : "", (number_t)l->peer, (unsigned)(l->period >> 32),
                      (unsigned)l->period);
        for (int k = 0; k < RD_MONITOR_PACES; k++)
            rd_out_printf(out, ", %u", (unsigned)(l->paces[k / 8] >> k % 8 * 8 & 0xff));
        rd_out_printf(out, "]");
        any = true;
    }
    rd_out_printf(out, "]");
}

/* With which sentence the communicator has failed on this rank. */
static void write_failure(rd_out_t *out, const rd_view_process_t *process, const rd_monitor_comm_t *c)
{
    rd_monitor_failure_t failure;

    if (!rd_reader_failure(&process->reader, c->id, c->rank, &failure))
        return;
    rd_out_printf(out, ",\n    \"failure\": {\"failed_rank\": %d, \"heard\": %s, \"failed_ns\": %llu",
                  failure.failed_rank, failure.heard ? "true" : "false", (number_t)failure.failed_ns);
    text(out, "text", failure.text);
    rd_out_printf(out, "}");
}

static const rd_view_rank_t *rank_of(const rd_view_comm_t *comm, int process, int entry)
{
    for (int i = 0; comm && i < comm->nranks; i++)
        if (comm->ranks[i].process == process && comm->ranks[i].entry == entry)
            return &comm->ranks[i];
    return NULL;
}

static void write_verdict(rd_out_t *out, const rd_view_t *view, const rd_view_comm_t *comm)
{
    rd_monitor_verdict_t v;

    rd_verdict_judge(view, comm, &v);
    rd_out_printf(out, ",\n    \"verdict\": {\"status\": %d, \"rank\": %d", v.status, v.rank);
    text(out, "text", v.text);
    text(out, "also", v.also);
    rd_out_printf(out, "}");
}

static void write_comm(rd_out_t *out, const rd_dump_t *dump, int process, int i)
{
    const rd_view_t *view = dump->view;
    const rd_history_t *h = &dump->histories[process];
    const rd_monitor_comm_t *c = &h->comms[i];
    const rd_view_comm_t *now = rd_view_comm_of(view->comms, view->ncomms, c->id);
    const rd_view_rank_t *was = rank_of(rd_view_comm_of(view->before, view->nbefore, c->id), process, h->entries[i]);

    rd_out_printf(out, "%s\n   {\"id\": \"%016llx\"", i ? "," : "", (number_t)c->id);
    text(out, "name", c->name);
    rd_out_printf(out,
                  ", \"rank\": %d, \"size\": %d, \"nodes\": %d, \"node\": %d, \"locals\": %d, \"device\": %d, "
                  "\"entry\": %d, \"made_ns\": %llu, \"ended_ns\": %llu,\n    \"boards\": [",
                  c->rank, c->size, c->nodes, c->node, c->locals, c->device, h->entries[i], (number_t)c->made_ns,
                  (number_t)c->ended_ns);
    if (was) {
        write_board(out, &was->comm);
        rd_out_printf(out, ",\n    ");
    }
    write_board(out, c);
    rd_out_printf(out, "]");
    write_periods(out, "short_periods", c->shorts, RD_PERIODS_SHORT);
    write_periods(out, "long_periods", c->longs, RD_PERIODS_LONG);
    write_links(out, c->links);
    write_failure(out, &view->processes[process], c);
    if (now && rank_of(now, process, h->entries[i]))
        write_verdict(out, view, now);
    rd_out_printf(out, "}");
}

/* ---- calls ---- */

void rd_dump_arguments(rd_out_t *out, const rd_monitor_event_t *e)
{
    bool message = rd_history_track(e->kind) != RD_TRACK_COLLECTIVE;
    const char *type = e->type < RONDO_NUM_TYPES ? rd_type_name((rondo_type_t)e->type) : NULL;

    if (e->flags & RD_MONITOR_TABLES)
        rd_out_printf(out, ", \"tables\": true");
    else if (e->kind != RD_BARRIER && !rd_monitor_bare(e->kind))
        rd_out_printf(out, ", \"count\": %llu, \"bytes\": %llu", (number_t)e->count, (number_t)e->bytes);
    if (type && e->kind != RD_BARRIER && !rd_monitor_bare(e->kind))
        text(out, "type", type);
    if (e->kind < RD_NUM_COLLS && rd_coll_reduces((rd_coll_t)e->kind) && e->op != RD_MONITOR_UNKNOWN)
        text(out, "op", e->op < RONDO_NUM_OPS ? rd_op_name((rondo_op_t)e->op) : "user");
    if (message)
        rd_out_printf(out, ", \"peer\": %d", e->root);
    else if (rd_view_kind_rooted(e->kind) && e->root >= 0)
        rd_out_printf(out, ", \"root\": %d", e->root);
    if (rd_view_algo_name(e))
        text(out, "algorithm", rd_view_algo_name(e));
    if (rd_view_proto_name(e))
        text(out, "protocol", rd_view_proto_name(e));
    if (e->tag)
        rd_out_printf(out, ", \"tag\": %llu", (number_t)e->tag);
    if (e->flags & RD_MONITOR_GROUPED)
        rd_out_printf(out, ", \"grouped\": true");
    if (e->input)
        rd_out_printf(out, ", \"input_hash\": \"%016llx\"", (number_t)e->input);
    if (e->output)
        rd_out_printf(out, ", \"output_hash\": \"%016llx\"", (number_t)e->output);
}

static void write_run(rd_out_t *out, const rd_history_t *h, const rd_history_run_t *r, bool first)
{
    const rd_monitor_event_t *e = &r->event;
    const rd_monitor_comm_t *c = r->comm >= 0 ? &h->comms[r->comm] : NULL;

    rd_out_printf(out, "%s\n   {\"index\": %llu, \"communicator\": \"%016llx\", \"rank\": %d, \"call\": \"%s\"",
                  first ? "" : ",", (number_t)r->index, (number_t)e->comm, e->rank, rd_view_kind_name(e->kind));
    rd_out_printf(out, ", \"number\": %llu, \"calls\": %llu, \"over\": %llu, \"state\": \"%s\"", (number_t)e->number,
                  (number_t)r->calls, (number_t)r->over, rd_history_state_name(rd_history_state(h, r, r->calls - 1)));
    rd_dump_arguments(out, e);
    if (r->begun_ns)
        rd_out_printf(out, ", \"begun_ns\": %llu", (number_t)r->begun_ns);
    if (r->ended_ns)
        rd_out_printf(out, ", \"ended_ns\": %llu", (number_t)r->ended_ns);
    if (c && r->over < r->calls && rd_view_waits_for(c) >= 0 && rd_view_inside(c) == (int)r->track)
        rd_out_printf(out, ", \"waits_for\": %d", rd_view_waits_for(c));
    if (e->stack)
        rd_out_printf(out, ", \"stack\": %llu", (number_t)e->stack);
    rd_out_printf(out, ", \"result\": %d, \"thread\": %llu}", e->result, (number_t)e->thread);
}

static void write_stacks(rd_out_t *out, const rd_stacks_t *s)
{
    rd_out_printf(out, ",\n \"stacks\": [");
    for (size_t i = 0; i < s->n; i++) {
        rd_out_printf(out, "%s\n   {\"stack\": %llu, \"frames\": [", i ? "," : "", (number_t)s->stacks[i].index);
        for (int k = 0; k < s->stacks[i].nframes; k++) {
            rd_out_printf(out, k ? ", " : "");
            rd_out_json(out, s->stacks[i].frames[k].text);
        }
        rd_out_printf(out, "]}");
    }
    rd_out_printf(out, "]");
}

void rd_dump_json(rd_out_t *out, const rd_dump_t *dump, int process)
{
    const rd_history_t *h = &dump->histories[process];

    rd_out_printf(out, "{\"format\": \"rondo-dump\", \"version\": %d,\n ", RD_DUMP_VERSION);
    write_process(out, dump, process);
    rd_out_printf(out, ",\n \"communicators\": [");
    for (int i = 0; i < h->ncomms; i++)
        write_comm(out, dump, process, i);
    rd_out_printf(out, "],\n \"lost_calls\": %llu,\n \"calls\": [", (number_t)h->lost);
    for (size_t i = 0; i < h->nruns; i++)
        write_run(out, h, &h->runs[i], i == 0);
    rd_out_printf(out, "]");
    if (dump->view->processes[process].stacks)
        write_stacks(out, dump->view->processes[process].stacks);
    rd_out_printf(out, "}\n");
}
