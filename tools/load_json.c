/* rondo's own dumps: lib/monitor/dump_json.c writes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "load.h"
#include "monitor/dump.h"
#include "monitor/history.h"
#include "monitor/stacks.h"
#include "sched/program.h"

static uint64_t amount(const value_t *dict, const char *name)
{
    return value_amount(value_of(dict, name));
}

static int whole(const value_t *dict, const char *name, int otherwise)
{
    return value_int(value_of(dict, name), INT32_MIN + 1, INT32_MAX, otherwise);
}

static void text(char to[RD_MONITOR_NAME], const value_t *dict, const char *name)
{
    snprintf(to, RD_MONITOR_NAME, "%s", value_text(value_of(dict, name)));
}

static uint64_t id_of(const value_t *dict, const char *name)
{
    return strtoull(value_text(value_of(dict, name)), NULL, 16);
}

static void load_process(load_t *l, const value_t *p)
{
    const value_t *ticks = value_of(p, "processor_ticks");
    rd_monitor_head_t *h = l->head;

    h->pid = whole(p, "pid", 0);
    h->uid = whole(p, "uid", 0);
    h->job_rank = whole(p, "job_rank", -1);
    h->job_size = whole(p, "job_size", -1);
    h->pid_space = amount(p, "pid_space");
    h->started = amount(p, "started");
    h->made_ns = h->made_ticks = amount(p, "made_ns");
    h->made_unix_ns = amount(p, "made_unix_ns");
    text(h->host, p, "host");
    text(h->boot, p, "boot");
    text(h->program, p, "program");
    text(h->library, p, "library");
    const char *state = value_text(value_of(p, "state"));
    l->then.state = *state ? *state : RD_VIEW_ELSEWHERE;
    snprintf(l->then.error, sizeof l->then.error, "%s", value_text(value_of(p, "error")));
    l->then.now_ns = amount(p, "now_ns");
    l->then.ticks_before = value_amount(value_item(ticks, 0));
    l->then.ticks = value_amount(value_item(ticks, 1));
    l->then.queued = whole(p, "queued_percent", 0) / 100.0;
}

/* ---- communicators ---- */

static int state_of(const char *name)
{
    return strcmp(name, "alive") == 0    ? RD_MONITOR_ALIVE
           : strcmp(name, "failed") == 0 ? RD_MONITOR_FAILED
           : strcmp(name, "ended") == 0  ? RD_MONITOR_ENDED
                                         : RD_MONITOR_FREE;
}

static void load_board(rd_monitor_comm_t *c, const value_t *board)
{
    static const char *const tracks[RD_TRACKS] = {"collectives", "sends", "recvs"};
    const value_t *wait = value_of(board, "wait");

    c->version = 2;
    c->state = state_of(value_text(value_of(board, "state")));
    c->result = whole(board, "result", 0);
    for (int t = 0; t < RD_TRACKS; t++) {
        const value_t *track = value_of(board, tracks[t]);
        c->calls[t].begun = amount(track, "begun");
        c->calls[t].ended = amount(track, "ended");
        c->calls[t].entry = amount(track, "entry");
        c->calls[t].bytes = amount(track, "bytes");
    }
    c->waits_for = whole(wait, "for", -1);
    c->waits_in = amount(wait, "in");
    c->since_ms = amount(wait, "since_ms");
    c->seen_ms = amount(wait, "seen_ms");
    c->step = whole(wait, "step", -1);
    c->steps = whole(wait, "steps", 0);
    c->peer_in = amount(wait, c->device >= 0 ? "peer_in" : "thread");
    c->peer_behind = amount(wait, "peer_behind");
    c->shrinks_ms = amount(board, "shrinks_ms");
}

static uint64_t item(const value_t *list, size_t i)
{
    return value_amount(value_item(list, i)) & UINT32_MAX;
}

static void load_periods(rd_monitor_period_t *periods, int n, const value_t *from)
{
    for (size_t i = 0; i < value_items(from) && i < (size_t)n; i++) {
        const value_t *p = value_item(from, i);
        periods[i].number = value_amount(value_item(p, 0));
        periods[i].waited = item(p, 1) << 32 | item(p, 2);
        periods[i].calls = item(p, 3) << 32 | item(p, 4);
        periods[i].peer = item(p, 5) << 32 | item(p, 6);
    }
}

static void load_links(rd_monitor_link_t *links, const value_t *from)
{
    for (size_t i = 0; i < value_items(from) && i < RD_MONITOR_LINKS; i++) {
        const value_t *l = value_item(from, i);
        links[i].peer = item(l, 0);
        links[i].period = item(l, 1) << 32 | item(l, 2);
        for (size_t k = 0; k < RD_MONITOR_PACES; k++)
            links[i].paces[k / 8] |= (item(l, 3 + k) & 0xff) << k % 8 * 8;
    }
}

static void load_failure(load_t *l, const rd_monitor_comm_t *c, const value_t *from)
{
    rd_monitor_failure_t *to = &l->head->failures[l->head->failed % RD_MONITOR_FAILURES];

    if (!from)
        return;
    to->version = 2;
    to->comm = c->id;
    to->rank = c->rank;
    to->failed_rank = whole(from, "failed_rank", -1);
    to->heard = value_is_true(value_of(from, "heard"));
    to->failed_ns = amount(from, "failed_ns");
    snprintf(to->text, sizeof to->text, "%s", value_text(value_of(from, "text")));
    l->head->failed++;
}

static void load_comm(load_t *l, int entry, const value_t *from)
{
    const value_t *boards = value_of(from, "boards");
    rd_monitor_comm_t *c = &l->later[entry];

    c->id = id_of(from, "id");
    c->rank = whole(from, "rank", -1);
    c->size = whole(from, "size", 0);
    c->nodes = whole(from, "nodes", 0);
    c->node = whole(from, "node", 0);
    c->locals = whole(from, "locals", 0);
    c->device = whole(from, "device", -1);
    c->made_ns = amount(from, "made_ns");
    c->ended_ns = amount(from, "ended_ns");
    text(c->name, from, "name");
    if (value_items(boards) > 1) {
        l->comms[entry] = *c;
        load_board(&l->comms[entry], value_item(boards, 0));
    }
    load_board(c, value_item(boards, value_items(boards) - 1));
    load_periods(c->shorts, RD_PERIODS_SHORT, value_of(from, "short_periods"));
    load_periods(c->longs, RD_PERIODS_LONG, value_of(from, "long_periods"));
    load_links(c->links, value_of(from, "links"));
    load_failure(l, c, value_of(from, "failure"));
}

static size_t room_for_comms(const value_t *comms)
{
    int most = -1;

    for (size_t i = 0; i < value_items(comms); i++) {
        int entry = value_int(value_of(value_item(comms, i), "entry"), 0, LOAD_COMMS_MOST - 1, -1);
        most = entry > most ? entry : most;
    }
    return (size_t)(most + 1);
}

/* ---- calls ---- */

static void load_kind(rd_monitor_event_t *e, const value_t *call)
{
    const char *name = value_text(value_of(call, "call"));
    const char *op = value_text(value_of(call, "op"));
    const value_t *type_name = value_of(call, "type");
    rondo_type_t type = 0;
    rondo_op_t op_found = 0;
    rd_coll_t coll;

    e->kind = rd_view_kind_named(name) >= 0     ? (uint8_t)rd_view_kind_named(name)
              : rd_coll_parse(name, &coll) == 0 ? (uint8_t)coll
                                                : RD_MONITOR_OTHER;
    e->type = type_name && rd_type_parse(value_text(type_name), &type) == 0 ? (uint8_t)type : 0;
    if (rd_history_track(e->kind) != RD_TRACK_COLLECTIVE)
        e->type = RD_MONITOR_BYTE;
    e->op = strcmp(op, "user") == 0                                         ? RONDO_NUM_OPS
            : rd_op_parse(op, &op_found) == 0                               ? (uint8_t)op_found
            : e->kind < RD_NUM_COLLS && rd_coll_reduces((rd_coll_t)e->kind) ? RD_MONITOR_UNKNOWN
                                                                            : 0;
}

static void load_call(load_t *l, uint64_t index, const value_t *call)
{
    rd_monitor_event_t e = {
        .begun = amount(call, "begun_ns"),
        .comm = id_of(call, "communicator"),
        .number = amount(call, "number"),
        .count = amount(call, "count"),
        .bytes = amount(call, "bytes"),
        .ended = amount(call, "ended_ns"),
        .rank = whole(call, "rank", -1),
        .result = whole(call, "result", 0),
        .thread = amount(call, "thread"),
        .tag = amount(call, "tag"),
        .stack = amount(call, "stack"),
        .choice = rd_view_choice_named(value_text(value_of(call, "algorithm")), value_text(value_of(call, "protocol"))),
        .input = id_of(call, "input_hash"),
        .output = id_of(call, "output_hash")};
    uint64_t calls = amount(call, "calls");

    load_kind(&e, call);
    e.root = whole(call, value_of(call, "peer") ? "peer" : "root", 0);
    e.repeats = calls ? calls - 1 : 0;
    if (value_is_true(value_of(call, "tables")))
        e.flags |= RD_MONITOR_TABLES;
    if (value_is_true(value_of(call, "grouped")))
        e.flags |= RD_MONITOR_GROUPED;
    if (e.input || e.output)
        e.flags |= RD_MONITOR_HASHED;
    if (strcmp(value_text(value_of(call, "state")), "enqueued") == 0)
        e.flags |= RD_MONITOR_QUEUED;
    load_event(l, index, &e);
}

/* Without memory there are none. */
static void load_stacks(load_t *l, const value_t *from)
{
    const size_t n = value_items(from);
    rd_stacks_t *s = n && n <= LOAD_STACKS_MOST ? rd_stacks_make(n) : NULL;

    for (size_t i = 0; s && i < n; i++) {
        const value_t *frames = value_of(value_item(from, i), "frames");
        rd_stack_t *to = &s->stacks[s->n++];
        to->index = amount(value_item(from, i), "stack");
        for (size_t k = 0; k < value_items(frames) && k < RD_MONITOR_FRAMES; k++) {
            rd_frame_t *frame = &to->frames[to->nframes++];
            frame->module = -1;
            snprintf(frame->text, sizeof frame->text, "%s", value_text(value_item(frames, k)));
        }
    }
    l->then.stacks = s;
}

const char *load_json(load_t *l, const value_t *file)
{
    const value_t *comms = value_of(file, "communicators"), *calls = value_of(file, "calls");
    size_t n = value_items(calls);
    uint64_t first = amount(value_item(calls, 0), "index"), last = n ? amount(value_item(calls, n - 1), "index") : 0;

    if (strcmp(value_text(value_of(file, "format")), "rondo-dump") != 0)
        return "it is JSON, but no dump of rondo's";
    if (amount(file, "version") != RD_DUMP_VERSION)
        return "it is of another version of rondo";
    if (last < first || last - first >= LOAD_EVENTS_MOST)
        return "its calls make no sense";
    if (!load_make(l, room_for_comms(comms), n ? last - first + 1 : 1))
        return "there is no memory for it";
    load_process(l, value_of(file, "process"));
    for (size_t i = 0; i < value_items(comms); i++) {
        int entry = value_int(value_of(value_item(comms, i), "entry"), 0, LOAD_COMMS_MOST - 1, -1);
        if (entry >= 0)
            load_comm(l, entry, value_item(comms, i));
    }
    l->head->next = amount(file, "lost_calls");
    for (size_t i = 0, before = first; i < n; i++) {
        uint64_t index = amount(value_item(calls, i), "index");
        if (index < before || index > last) {
            load_drop(l);
            return "its calls are in no order";
        }
        load_call(l, index, value_item(calls, i));
        before = index;
    }
    load_stacks(l, value_of(file, "stacks"));
    return NULL;
}
