/* What MONITOR is told: see nccl_ras.h. An event is what two looks at the records, one behind the other, differ in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "monitor/nccl_ras.h"
#include "monitor/verdict.h"

#define STALL_TIMES 10 /* a second apart: until a wait is told of in which nobody is to blame */

/* One line, or one object. `rank`: of whose process it is; NULL: of none in particular. */
static void tell(rd_nccl_ras_events_t *e, const rd_view_t *view, int group, const char *event,
                 const rd_view_rank_t *rank, const char *details)
{
    const rd_monitor_head_t *head = rank ? &view->processes[rank->process].reader.head : NULL;
    const time_t now = time(NULL);
    struct tm parts;
    char clock[32];

    if (!(e->groups & group))
        return;
    strftime(clock, sizeof clock, "%F %T", localtime_r(&now, &parts));
    if (!e->json) {
        rd_out_printf(e->out, "[%s] %s: ", clock, event);
        if (head)
            rd_out_printf(e->out, "rank %d (%s:%d) ", rank->comm.rank, head->host, head->pid);
        rd_out_text(e->out, details);
        rd_out_printf(e->out, "\n");
        return;
    }
    rd_out_printf(e->out, "{\n  \"timestamp\": \"%s\",\n  \"group\": \"%s\",\n  \"event\": \"%s\",\n", clock,
                  group == RD_NCCL_RAS_LIFECYCLE ? "LIFECYCLE" : "TRACE", event);
    if (head) {
        rd_out_printf(e->out, "  \"peer\": {\n    \"host\": ");
        rd_out_json(e->out, head->host);
        rd_out_printf(e->out, ",\n    \"pid\": %d,\n    \"rank\": %d,\n    \"cuda_devs\": [", head->pid,
                      rank->comm.rank);
        if (rank->comm.device >= 0)
            rd_out_printf(e->out, "%d", rank->comm.device);
        rd_out_printf(e->out, "],\n    \"nvml_devs\": []\n  },\n");
    }
    rd_out_printf(e->out, "  \"details\": ");
    rd_out_json(e->out, details);
    rd_out_printf(e->out, "\n}\n");
}

/* Had the process of that rank been there, at the look before? */
static bool had_been(const rd_nccl_ras_events_t *e, const rd_view_t *view, const rd_view_rank_t *rank)
{
    const rd_monitor_head_t *head = &view->processes[rank->process].reader.head;

    for (int i = 0; i < e->nprocesses; i++)
        if (e->processes[i].pid == head->pid && e->processes[i].started == head->started)
            return !e->processes[i].gone;
    return false;
}

/* A rank has ended its part, has failed, or its process has gone. */
static void tell_rank(rd_nccl_ras_events_t *e, const rd_view_t *view, const rd_view_rank_t *was,
                      const rd_view_rank_t *now)
{
    char text[256];

    if (was->comm.state == RD_MONITOR_ALIVE && now->comm.state == RD_MONITOR_FAILED) {
        snprintf(text, sizeof text, "has failed in '%s': %s", now->comm.name,
                 rondo_result_string((rondo_result_t)now->comm.result));
        tell(e, view, RD_NCCL_RAS_LIFECYCLE, "COMM_FAILED", now, text);
    }
    if (rd_view_gone(view, now) && now->comm.state != RD_MONITOR_ENDED && had_been(e, view, now)) {
        snprintf(text, sizeof text, "has died as a member of '%s'", now->comm.name);
        tell(e, view, RD_NCCL_RAS_LIFECYCLE, "PEER_DEAD", now, text);
    }
}

static void tell_comms(rd_nccl_ras_events_t *e, const rd_view_t *view)
{
    char text[256];

    for (int i = 0; i < view->ncomms; i++) {
        const rd_view_comm_t *now = &view->comms[i], *was = rd_view_comm_of(view->before, view->nbefore, now->id);
        const rd_monitor_comm_t *c = &now->ranks[0].comm;
        snprintf(text, sizeof text, "'%s' (%016llx), %d ranks on %d nodes", c->name, (unsigned long long)now->id,
                 c->size, c->nodes);
        if (!was)
            tell(e, view, RD_NCCL_RAS_LIFECYCLE, "COMM_MADE", NULL, text);
        for (int k = 0; was && k < now->nranks; k++) {
            const rd_view_rank_t *before = rd_view_rank_of(was, now->ranks[k].comm.rank);
            if (before)
                tell_rank(e, view, before, &now->ranks[k]);
        }
    }
    for (int i = 0; i < view->nbefore; i++) {
        const rd_view_comm_t *was = &view->before[i];
        snprintf(text, sizeof text, "'%s' (%016llx)", was->ranks[0].comm.name, (unsigned long long)was->id);
        if (!rd_view_comm_of(view->comms, view->ncomms, was->id))
            tell(e, view, RD_NCCL_RAS_LIFECYCLE, "COMM_ENDED", NULL, text);
    }
}

/* ---- who is waited for ---- */

/* Returns what is known of the communicator's stall; NULL: there is no more room. */
static rd_nccl_ras_stall_t *stall_of(rd_nccl_ras_events_t *e, uint64_t id)
{
    rd_nccl_ras_stall_t *free_one = NULL;

    for (int i = 0; i < RD_NCCL_RAS_STALLS; i++) {
        if (e->stalls[i].times && e->stalls[i].id == id)
            return &e->stalls[i];
        if (!e->stalls[i].times)
            free_one = &e->stalls[i];
    }
    return free_one;
}

static void tell_stall(rd_nccl_ras_events_t *e, const rd_view_t *view, const rd_view_comm_t *c)
{
    rd_nccl_ras_stall_t *stall = stall_of(e, c->id);
    rd_monitor_verdict_t v;
    char text[RD_VERDICT_BYTES + 80];

    if (!stall)
        return;
    rd_verdict_judge(view, c, &v);
    if (v.failed) /* COMM_FAILED has been told */
        return;
    if (v.status == RD_VERDICT_NONE) {
        snprintf(text, sizeof text, "'%s'", c->ranks[0].comm.name);
        if (stall->times && stall->said)
            tell(e, view, RD_NCCL_RAS_TRACE, "GOES_ON", NULL, text);
        *stall = (rd_nccl_ras_stall_t){0};
        return;
    }
    *stall = (rd_nccl_ras_stall_t){c->id, stall->times + 1, stall->times ? stall->said : 0};
    if (stall->said == v.status + 1 || (v.status != RD_VERDICT_BLAMED && stall->times < STALL_TIMES))
        return;
    stall->said = v.status + 1;
    snprintf(text, sizeof text, "'%s': %s", c->ranks[0].comm.name, v.text);
    tell(e, view, RD_NCCL_RAS_TRACE, "STALLED", v.rank >= 0 ? rd_view_rank_of(c, v.rank) : NULL, text);
}

/* ---- */

static void note_processes(rd_nccl_ras_events_t *e, const rd_view_t *view)
{
    rd_nccl_ras_process_t *all = realloc(e->processes, ((size_t)view->nprocesses + 1) * sizeof *all);

    if (!all)
        return;
    e->processes = all;
    e->nprocesses = view->nprocesses;
    for (int i = 0; i < view->nprocesses; i++) {
        const rd_monitor_head_t *head = &view->processes[i].reader.head;
        const rd_view_rank_t rank = {.process = i};
        all[i] = (rd_nccl_ras_process_t){head->started, head->pid, rd_view_gone(view, &rank)};
    }
}

void rd_nccl_ras_events(rd_nccl_ras_events_t *e, rd_out_t *out, const rd_view_t *view)
{
    e->out = out;
    for (int i = 0; i < RD_NCCL_RAS_STALLS; i++)
        if (e->stalls[i].times && !rd_view_comm_of(view->comms, view->ncomms, e->stalls[i].id)) /* it has ended */
            e->stalls[i] = (rd_nccl_ras_stall_t){0};
    if (view->before_ms) {
        tell_comms(e, view);
        for (int i = 0; e->groups & RD_NCCL_RAS_TRACE && i < view->ncomms; i++)
            tell_stall(e, view, &view->comms[i]);
    }
    note_processes(e, view);
}
