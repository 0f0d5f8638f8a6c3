/* What STATUS is answered: see nccl_ras.h. */
#include <rondo.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/numbers.h"
#include "monitor/nccl_ras.h"
#include "monitor/verdict.h"

/* NCCL's words for the state of a rank, with two of rondo's own for what NCCL's has no word for. */
typedef enum state { RUNNING, ABORT, NOCOMM, FAILED, DEAD, STATES } state_t;
static const char *const state_names[STATES] = {"RUNNING", "ABORT", "NOCOMM", "FAILED", "DEAD"};

/* What is wrong with a communicator: NCCL's words, as bits. */
enum { MISMATCH = 1, ERROR = 2, INCOMPLETE = 4 };

static state_t state_of(const rd_view_t *view, const rd_view_rank_t *r)
{
    if (r->comm.state == RD_MONITOR_ENDED)
        return NOCOMM;
    if (rd_view_gone(view, r))
        return DEAD;
    return r->comm.state != RD_MONITOR_FAILED ? RUNNING : r->comm.result == RONDO_ERR_ABORTED ? ABORT : FAILED;
}

static uint64_t collectives(const rd_view_rank_t *r)
{
    return r->comm.calls[RD_TRACK_COLLECTIVE].begun;
}

/* Writes the states that ranks have, by comma. Returns what is wrong. */
static int judge(const rd_view_t *view, const rd_view_comm_t *c, char *states, size_t bytes)
{
    unsigned seen = 0;
    int wrong = 0;
    size_t used = 0;

    for (int i = 0; i < c->nranks; i++) {
        seen |= 1u << state_of(view, &c->ranks[i]);
        wrong |= collectives(&c->ranks[i]) != collectives(&c->ranks[0]) ? MISMATCH : 0;
    }
    wrong |= (seen & (1u << FAILED | 1u << ABORT) ? ERROR : 0) | (seen & 1u << DEAD ? INCOMPLETE : 0);
    wrong |= seen & (seen - 1) ? MISMATCH : 0; /* several states */
    for (int s = 0; s < STATES; s++)
        if (seen >> s & 1 && used < bytes)
            used += (size_t)snprintf(states + used, bytes - used, "%s%s", used ? "," : "", state_names[s]);
    return wrong;
}

static void wrong_text(int wrong, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s%s%s%s%s", wrong ? "" : "OK", wrong & INCOMPLETE ? "INCOMPLETE" : "",
             wrong & INCOMPLETE && wrong & ~INCOMPLETE ? "," : "", wrong & ERROR ? "ERROR" : "",
             wrong & MISMATCH ? wrong & ERROR ? ",MISMATCH" : "MISMATCH" : "");
}

/* ---- text ---- */

static void head(rd_out_t *out, const rd_view_t *view)
{
    int alive = 0, ranks = 0;

    for (int i = 0; i < view->nprocesses; i++)
        alive += view->processes[i].state != RD_VIEW_ENDED && view->processes[i].state != 'Z';
    for (int i = 0; i < view->ncomms; i++)
        ranks += view->comms[i].nranks;
    rd_out_printf(out,
                  "rondo %d.%d.%d: what the records of host %.60s say; ranks of other hosts are asked there\n\n"
                  "Job summary\n===========\n\n  Processes      Alive  Communicators      Ranks\n"
                  "%11d %10d %14d %10d\n\n",
                  RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH,
                  view->nprocesses ? view->processes[0].reader.head.host : "?", view->nprocesses, alive, view->ncomms,
                  ranks);
}

static void ranks_text(rd_out_t *out, const rd_view_t *view, const rd_view_comm_t *c)
{
    char name[128], where[400];

    for (int i = 0; i < c->nranks; i++) {
        const rd_view_rank_t *r = &c->ranks[i];
        rd_view_rank_text(view, r, name, sizeof name);
        rd_view_where_text(view, r, true, where, sizeof where);
        rd_out_printf(out, "    %s: %s, %llu collectives, %llu sends, %llu recvs; %s\n", name,
                      state_names[state_of(view, r)], (unsigned long long)collectives(r),
                      (unsigned long long)r->comm.calls[RD_TRACK_SEND].begun,
                      (unsigned long long)r->comm.calls[RD_TRACK_RECV].begun, where);
    }
}

static void comms_text(rd_out_t *out, const rd_view_t *view, bool verbose, double seconds)
{
    char states[80], errors[40];

    locale_t before = rd_numbers_begin();
    rd_out_printf(out, "Communicators... (%.3fs)\n=============\n\n", seconds);
    rd_numbers_end(before);
    if (!view->ncomms)
        rd_out_printf(out, "There is none.\n");
    else
        rd_out_printf(out, "%-16s %6s %6s %6s  %-16s %-18s %s\n", "Id", "Size", "Nodes", "Here", "Status", "Errors",
                      "Name");
    for (int i = 0; i < view->ncomms; i++) {
        const rd_view_comm_t *c = &view->comms[i];
        const rd_monitor_comm_t *m = &c->ranks[0].comm;
        wrong_text(judge(view, c, states, sizeof states), errors, sizeof errors);
        rd_out_printf(out, "%016llx %6d %6d %6d  %-16s %-18s %s\n", (unsigned long long)c->id, m->size, m->nodes,
                      c->nranks, states, errors, m->name);
        if (verbose)
            ranks_text(out, view, c);
    }
}

/* Ranks whose process has ended, and those of a communicator that has failed. */
static int broken_text(rd_out_t *out, const rd_view_t *view, const rd_view_comm_t *c)
{
    char name[128], where[400];
    int said = 0;

    for (int i = 0; i < c->nranks; i++) {
        const rd_view_rank_t *r = &c->ranks[i];
        state_t state = state_of(view, r);
        if (state != DEAD && state != FAILED && state != ABORT)
            continue;
        rd_view_rank_text(view, r, name, sizeof name);
        rd_view_where_text(view, r, true, where, sizeof where);
        if (!said++)
            rd_out_printf(out, "%016llx '%s'\n", (unsigned long long)c->id, r->comm.name);
        rd_out_printf(out, "  %s %s", name, state_names[state]);
        if (state != DEAD)
            rd_out_printf(out, ": %s", rondo_result_string((rondo_result_t)r->comm.result));
        rd_out_printf(out, "; %s\n", where);
    }
    return said;
}

/* Who has begun how many collectives, where that differs. */
static int counts_text(rd_out_t *out, const rd_view_comm_t *c)
{
    uint64_t least = UINT64_MAX, most = 0;
    int first = -1, behind = 0;

    for (int i = 0; i < c->nranks; i++) {
        uint64_t n = collectives(&c->ranks[i]);
        most = n > most ? n : most;
        least = n < least ? n : least;
    }
    for (int i = c->nranks - 1; i >= 0 && least < most; i--)
        if (collectives(&c->ranks[i]) < most) {
            first = c->ranks[i].comm.rank;
            behind++;
        }
    if (behind)
        rd_out_printf(out,
                      "%016llx '%s': ranks have begun %llu to %llu collectives; %d of the %d here have begun fewer, "
                      "the first is rank %d\n",
                      (unsigned long long)c->id, c->ranks[0].comm.name, (unsigned long long)least,
                      (unsigned long long)most, behind, c->nranks, first);
    return behind;
}

static int verdict_text(rd_out_t *out, const rd_view_t *view, const rd_view_comm_t *c)
{
    rd_monitor_verdict_t v;

    rd_verdict_judge(view, c, &v);
    if (v.status == RD_VERDICT_NONE)
        return 0;
    rd_out_printf(out, "%016llx '%s': ", (unsigned long long)c->id, c->ranks[0].comm.name);
    rd_out_text(out, v.text); /* longer than a line of rd_out_printf may be */
    rd_out_printf(out, "%s", v.also[0] ? "\n  also: " : "");
    rd_out_text(out, v.also);
    rd_out_printf(out, "\n");
    return 1;
}

void rd_nccl_ras_text(rd_out_t *out, const rd_view_t *view, bool verbose, double seconds)
{
    int said = 0;

    head(out, view);
    comms_text(out, view, verbose, seconds);
    rd_out_printf(out, "\nErrors\n======\n\n");
    for (int i = 0; i < view->ncomms; i++)
        said += broken_text(out, view, &view->comms[i]);
    rd_out_printf(out, "%sWarnings\n========\n\n", said ? "\n" : "");
    said = 0;
    for (int i = 0; i < view->ncomms; i++)
        said += counts_text(out, &view->comms[i]);
    rd_out_printf(out, "%sWho is waited for\n=================\n\n", said ? "\n" : "");
    said = 0;
    for (int i = 0; i < view->ncomms; i++)
        said += verdict_text(out, view, &view->comms[i]);
    if (!said)
        rd_out_printf(out, "Nobody.\n");
}

/* ---- JSON ---- */

/* NCCL's number for a result, as libnccl.so.2 returns it. */
static int nccl_result(int result)
{
    static const int numbers[] = {
        [RONDO_SUCCESS] = 0,           [RONDO_IN_PROGRESS] = 7,     [RONDO_ERR_INVALID_ARGUMENT] = 4,
        [RONDO_ERR_INVALID_USAGE] = 5, [RONDO_ERR_UNSUPPORTED] = 5, [RONDO_ERR_NO_MEMORY] = 2,
        [RONDO_ERR_SYSTEM] = 2,        [RONDO_ERR_CUDA] = 1,        [RONDO_ERR_INTERNAL] = 3,
        [RONDO_ERR_REMOTE] = 6,        [RONDO_ERR_TIMEOUT] = 8,     [RONDO_ERR_ABORTED] = 5,
        [RONDO_ERR_MISMATCH] = 5,      [RONDO_ERR_NAN] = 5};

    return result >= 0 && result < (int)(sizeof numbers / sizeof numbers[0]) ? numbers[result] : 3;
}

static const char *truth(bool is)
{
    return is ? "true" : "false";
}

static void member(rd_out_t *out, const char *name, const char *text)
{
    rd_out_printf(out, ", \"%s\": ", name);
    rd_out_json(out, text);
}

/* The library's number of a device is not one of NVML's, which is not known. */
static void who_json(rd_out_t *out, const rd_view_t *view, const rd_view_rank_t *r, bool first)
{
    const rd_monitor_head_t *h = &view->processes[r->process].reader.head;

    rd_out_printf(out, "%s\n        {\"rank\": %d", first ? "" : ",", r->comm.rank);
    member(out, "host", h->host);
    rd_out_printf(out, ", \"pid\": %d, \"cuda_dev\": %d, \"nvml_dev\": -1", h->pid, r->comm.device);
}

static void rank_json(rd_out_t *out, const rd_view_t *view, const rd_view_rank_t *r, bool first)
{
    state_t state = state_of(view, r);
    bool failed = state == FAILED || state == ABORT;
    char where[400];

    rd_view_where_text(view, r, true, where, sizeof where);
    who_json(out, view, r, first);
    rd_out_printf(out,
                  ",\n         \"status\": {\"init_state\": 0, \"async_error\": %d, \"finalize_called\": %s, "
                  "\"destroy_flag\": %s, \"abort_flag\": %s},\n",
                  failed ? nccl_result(r->comm.result) : 0, truth(state == NOCOMM), truth(state == NOCOMM),
                  truth(state == ABORT));
    rd_out_printf(out, "         \"collective_counts\": {\"Collectives\": %llu, \"Send\": %llu, \"Recv\": %llu}",
                  (unsigned long long)collectives(r), (unsigned long long)r->comm.calls[RD_TRACK_SEND].begun,
                  (unsigned long long)r->comm.calls[RD_TRACK_RECV].begun);
    member(out, "state", state_names[state]);
    rd_out_printf(out, ", \"waits_for\": %d", rd_view_waits_for(&r->comm));
    member(out, "where", where);
    rd_out_printf(out, "}");
}

static int ndead(const rd_view_t *view, const rd_view_comm_t *c)
{
    int n = 0;

    for (int i = 0; i < c->nranks; i++)
        n += state_of(view, &c->ranks[i]) == DEAD;
    return n;
}

/* Of a rank on another host no more is known than that it is there, so it is in neither list. */
static void comm_json(rd_out_t *out, const rd_view_t *view, const rd_view_comm_t *c, bool first)
{
    const rd_monitor_comm_t *m = &c->ranks[0].comm;
    int dead = ndead(view, c), said = 0;
    rd_monitor_verdict_t v;

    rd_verdict_judge(view, c, &v);
    rd_out_printf(out,
                  "%s\n    {\"hash\": \"0x%llx\", \"secondary_hash\": \"0x0:0x0\", \"size\": %d, \"ranks_count\": %d, "
                  "\"missing_ranks_count\": %d, \"ranks_elsewhere_count\": %d",
                  first ? "" : ",", (unsigned long long)c->id, m->size, c->nranks - dead, dead, m->size - c->nranks);
    member(out, "name", m->name);
    rd_out_printf(out, ", \"verdict_status\": %d", v.status);
    member(out, "verdict", v.status == RD_VERDICT_NONE ? "" : v.text);
    rd_out_printf(out, ",\n      \"ranks\": [");
    for (int i = 0; i < c->nranks; i++)
        if (state_of(view, &c->ranks[i]) != DEAD)
            rank_json(out, view, &c->ranks[i], said++ == 0);
    rd_out_printf(out, "],\n      \"missing_ranks\": [");
    said = 0;
    for (int i = 0; i < c->nranks; i++)
        if (state_of(view, &c->ranks[i]) == DEAD) {
            who_json(out, view, &c->ranks[i], said++ == 0);
            rd_out_printf(out, ", \"status\": {\"unresponsive\": true, \"considered_dead\": true}}");
        }
    rd_out_printf(out, "]}");
}

void rd_nccl_ras_json(rd_out_t *out, const rd_view_t *view, double seconds)
{
    time_t now = time(NULL);
    struct tm local;
    char when[32] = "";

    if (localtime_r(&now, &local))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
    rd_out_printf(out,
                  "{\n  \"nccl_version\": \"rondo %d.%d.%d\",\n  \"timestamp\": \"%s\",\n"
                  "  \"communicators_count\": %d,\n  \"communicators\": [",
                  RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH, when, view->ncomms);
    for (int i = 0; i < view->ncomms; i++)
        comm_json(out, view, &view->comms[i], i == 0);
    locale_t before = rd_numbers_begin();
    rd_out_printf(out, "],\n  \"ras\": {\"collection_time_sec\": %.3f, \"timeouts_count\": 0}\n}\n", seconds);
    rd_numbers_end(before);
}
