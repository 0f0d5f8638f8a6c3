/* rondo-ras list and status: processes, and communicators with their ranks, like ones on one line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ras.h"

const char *ras_state_name(char state)
{
    switch (state) {
    case RD_VIEW_ENDED:
    case 'Z':
    case 'X':
        return "dead";
    case RD_VIEW_ELSEWHERE:
        return "unknown";
    case 'T':
    case 't':
        return "stopped";
    case 'R':
        return "runs";
    default:
        return "sleeps";
    }
}

const char *ras_comm_number(const rd_view_t *view, const rd_view_comm_t *c, char text[RAS_COMM_NUMBER])
{
    text[0] = 0;
    for (int i = 0; i < view->ncomms && !text[0]; i++)
        if (view->comms[i].id != c->id && strcmp(view->comms[i].ranks[0].comm.name, c->ranks[0].comm.name) == 0)
            snprintf(text, RAS_COMM_NUMBER, " (%016llx)", (unsigned long long)c->id);
    return text;
}

static int comms_of(const rd_view_t *view, int process)
{
    int n = 0;

    for (int i = 0; i < view->ncomms; i++)
        for (int r = 0; r < view->comms[i].nranks; r++)
            n += view->comms[i].ranks[r].process == process;
    return n;
}

int ras_list(rd_view_t *view, const ras_options_t *options)
{
    int shown = 0;

    if (options->json)
        printf("[");
    else
        printf("%9s %9s %8s %-8s %5s  %-24s %s\n", "job", "pid", "job rank", "state", "comms", "program", "host");
    for (int i = 0; i < view->nprocesses; i++) {
        const rd_view_process_t *p = &view->processes[i];
        const rd_monitor_head_t *h = &p->reader.head;
        char rank[16] = "-";
        if (options->job && p->job != options->job)
            continue;
        if (h->job_rank >= 0)
            snprintf(rank, sizeof rank, "%d", h->job_rank);
        if (!options->json) {
            printf("%9d %9d %8s %-8s %5d  %-24s %s\n", p->job, h->pid, rank, ras_state_name(p->state),
                   comms_of(view, i), h->program, h->host);
            shown++;
            continue;
        }
        printf("%s\n  {\"job\": %d, \"pid\": %d, \"job_rank\": %d, \"state\": \"%s\", \"communicators\": %d, "
               "\"program\": ",
               shown++ ? "," : "", p->job, h->pid, h->job_rank, ras_state_name(p->state), comms_of(view, i));
        ras_print_json(h->program);
        printf(", \"host\": ");
        ras_print_json(h->host);
        printf("}");
    }
    if (options->json)
        printf("]\n");
    return RD_VERDICT_NONE;
}

/* ---- status ---- */

/* "rank 5", or "ranks 0, 2-3": those from the `from`-th on that are as that one is. `done` marks them. */
static void print_alike(const rd_view_comm_t *c, char (*where)[400], bool *done, int from)
{
    int alike = 0;

    for (int i = from; i < c->nranks; i++)
        alike += !done[i] && strcmp(where[i], where[from]) == 0;
    printf(alike > 1 ? "  ranks " : "  rank ");
    for (int i = from, first = 1; i < c->nranks; i++) {
        int last = i;
        if (done[i] || strcmp(where[i], where[from]) != 0)
            continue;
        while (last + 1 < c->nranks && !done[last + 1] && strcmp(where[last + 1], where[from]) == 0 &&
               c->ranks[last + 1].comm.rank == c->ranks[last].comm.rank + 1)
            last++;
        if (last > i)
            printf("%s%d-%d", first ? "" : ", ", c->ranks[i].comm.rank, c->ranks[last].comm.rank);
        else
            printf("%s%d", first ? "" : ", ", c->ranks[i].comm.rank);
        for (int k = i; k <= last; k++)
            done[k] = true;
        first = 0;
        i = last;
    }
}

static bool print_folded(const rd_view_t *view, const rd_view_comm_t *c)
{
    char(*where)[400] = calloc((size_t)c->nranks, sizeof *where);
    bool *done = calloc((size_t)c->nranks, sizeof *done);

    for (int i = 0; where && i < c->nranks; i++)
        rd_view_where_text(view, &c->ranks[i], false, where[i], sizeof where[i]);
    for (int i = 0; where && done && i < c->nranks; i++) {
        if (done[i])
            continue;
        print_alike(c, where, done, i);
        printf(": %s\n", where[i]);
    }
    bool good = where && done;
    free(where);
    free(done);
    return good;
}

/* A call that repeats the one before it has no time of its own. */
static void print_age(const rd_view_t *view, const rd_view_rank_t *r)
{
    const rd_reader_t *reader = &view->processes[r->process].reader;
    int track = rd_view_inside(&r->comm);
    rd_monitor_event_t event;
    double ago = 0;

    if (track >= 0 && rd_reader_last(reader, &r->comm, (rd_track_t)track, &event) &&
        event.number == r->comm.calls[track].begun)
        ago = rd_reader_ago(reader, event.begun);
    if (ago > 0)
        printf(", the call began %.1f s ago", ago);
    printf("\n");
}

static void print_all(const rd_view_t *view, const rd_view_comm_t *c)
{
    char where[400];

    for (int i = 0; i < c->nranks; i++) {
        const rd_view_rank_t *r = &c->ranks[i];
        const rd_monitor_calls_t *calls = r->comm.calls;
        rd_view_where_text(view, r, true, where, sizeof where);
        printf("  rank %-4d pid %-8d %-8s %s\n", r->comm.rank, view->processes[r->process].reader.head.pid,
               ras_state_name(view->processes[r->process].state), where);
        printf("            collectives %llu, sends %llu, recvs %llu, bytes %llu",
               (unsigned long long)calls[RD_TRACK_COLLECTIVE].begun, (unsigned long long)calls[RD_TRACK_SEND].begun,
               (unsigned long long)calls[RD_TRACK_RECV].begun, (unsigned long long)rd_view_bytes(view, r));
        print_age(view, r);
    }
}

static void print_head(const rd_view_t *view, const rd_view_comm_t *c)
{
    const rd_monitor_comm_t *m = &c->ranks[0].comm;

    printf("job %d, '%s' (%016llx): %d rank%s on %d node%s, %d here, %s\n", view->processes[c->ranks[0].process].job,
           m->name, (unsigned long long)c->id, m->size, m->size == 1 ? "" : "s", m->nodes, m->nodes == 1 ? "" : "s",
           c->nranks, m->device >= 0 ? "CUDA" : "host memory");
}

static void print_rank_json(const rd_view_t *view, const rd_view_rank_t *r, bool first)
{
    static const char *const tracks[RD_TRACKS] = {"collectives", "sends", "recvs"};
    static const char *const states[] = {"free", "alive", "failed", "ended"};
    const rd_monitor_comm_t *m = &r->comm;
    char where[400];

    rd_view_where_text(view, r, true, where, sizeof where);
    printf("%s\n     {\"rank\": %d, \"pid\": %d, \"process\": \"%s\", \"state\": \"%s\", \"device\": %d",
           first ? "" : ",", m->rank, view->processes[r->process].reader.head.pid,
           ras_state_name(view->processes[r->process].state), states[m->state], m->device);
    for (int t = 0; t < RD_TRACKS; t++)
        printf(", \"%s\": {\"begun\": %llu, \"ended\": %llu}", tracks[t], (unsigned long long)m->calls[t].begun,
               (unsigned long long)m->calls[t].ended);
    printf(", \"bytes\": %llu, \"waits_for\": %d, \"waits_seconds\": %.1f, \"where\": ",
           (unsigned long long)rd_view_bytes(view, r), rd_view_waits_for(m),
           rd_view_waits_for(m) >= 0 ? rd_view_waits_since(view, r) : 0.0);
    ras_print_json(where);
    printf("}");
}

static void print_json(const rd_view_t *view)
{
    printf("{\"version\": 1, \"communicators\": [");
    for (int i = 0; i < view->ncomms; i++) {
        const rd_view_comm_t *c = &view->comms[i];
        const rd_monitor_comm_t *m = &c->ranks[0].comm;
        printf("%s\n  {\"job\": %d, \"id\": \"%016llx\", \"name\": ", i ? "," : "",
               view->processes[c->ranks[0].process].job, (unsigned long long)c->id);
        ras_print_json(m->name);
        printf(", \"size\": %d, \"nodes\": %d, \"ranks\": [", m->size, m->nodes);
        for (int r = 0; r < c->nranks; r++)
            print_rank_json(view, &c->ranks[r], r == 0);
        printf("]}");
    }
    printf("]}\n");
}

/* Is it worth while to ask who holds somebody up? */
static bool is_held_up(const rd_view_t *view)
{
    for (int i = 0; i < view->ncomms; i++)
        for (int k = 0; k < view->comms[i].nranks; k++) {
            const rd_view_rank_t *r = &view->comms[i].ranks[k];
            if (rd_view_waits_for(&r->comm) >= 0 && rd_view_waits_since(view, r) > 1)
                return true;
        }
    return false;
}

int ras_status(rd_view_t *view, const ras_options_t *options)
{
    if (options->json) {
        print_json(view);
        return RD_VERDICT_NONE;
    }
    for (int i = 0; i < view->ncomms; i++) {
        print_head(view, &view->comms[i]);
        if (options->all)
            print_all(view, &view->comms[i]);
        else if (!print_folded(view, &view->comms[i]))
            return RAS_NOTHING;
    }
    if (!view->ncomms)
        printf("%d process%s with a record, and no communicator\n", view->nprocesses,
               view->nprocesses == 1 ? "" : "es");
    if (is_held_up(view))
        printf("    see: rondo-ras who says who holds them up\n");
    return RD_VERDICT_NONE;
}
