/* A dump as PyTorch's flight recorder makes them, version 2.10, for its analyser (torchfrtrace) and for what else reads
 * these: a pickle for each process.
 *
 * What the format cannot say as it is, is said so that the analyser's rules find what is wrong, and nothing else:
 *
 *   - It compares calls one by one. Which of a long run are written out, streams.h decides for all ranks alike.
 *   - Messages are matched within a process group. So those between two ranks have a group of their own, as PyTorch has
 *     a communicator for each such pair, with a number that both sides count.
 *   - A communicator's split is a barrier, since it has no word for it. Calls with tables have sizes 0.
 *   - What it has no word for is in "rondo" of an entry: operator, root, flags.
 *
 * Times are known of the first call of a run, and None for the others; stacks where the record has them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "monitor/dump_fr.h"
#include "monitor/pickle.h"
#include "monitor/stacks.h"
#include "monitor/verdict.h"
#include "sched/program.h"

#define NAME 48 /* of a process group: a communicator's number, and two ranks */

typedef struct fr {
    rd_out_t *out;
    const rd_dump_t *dump;
    const rd_streams_t *streams;
    int process;
    int **members; /* of each of its communicators, or NULL */
    uint64_t written;
} fr_t;

static const char *const names[RD_NUM_COLLS] = {
    [RD_ALLREDUCE] = "all_reduce",
    [RD_REDUCE] = "reduce",
    [RD_BROADCAST] = "broadcast",
    [RD_ALLGATHER] = "_all_gather_base",
    [RD_REDUCE_SCATTER] = "_reduce_scatter_base",
    [RD_ALLTOALL] = "all_to_all",
    [RD_GATHER] = "gather",
    [RD_SCATTER] = "scatter",
    [RD_BARRIER] = "all_reduce_barrier",
};

static const char *const types[RONDO_NUM_TYPES] = {
    [RONDO_INT8] = "Char",
    [RONDO_UINT8] = "Byte",
    [RONDO_INT16] = "Short",
    [RONDO_UINT16] = "UInt16",
    [RONDO_INT32] = "Int",
    [RONDO_UINT32] = "UInt32",
    [RONDO_INT64] = "Long",
    [RONDO_UINT64] = "UInt64",
    [RONDO_FLOAT16] = "Half",
    [RONDO_BFLOAT16] = "BFloat16",
    [RONDO_FLOAT32] = "Float",
    [RONDO_FLOAT64] = "Double",
    [RONDO_FLOAT8_E4M3] = "Float8_e4m3fn",
    [RONDO_FLOAT8_E5M2] = "Float8_e5m2",
    [RONDO_COMPLEX64] = "ComplexFloat",
    [RONDO_COMPLEX128] = "ComplexDouble",
    [RONDO_BOOL] = "Bool",
};

const char *rd_dump_fr_name(int kind)
{
    return kind < RD_NUM_COLLS ? names[kind] : rd_monitor_bare(kind) ? names[RD_BARRIER] : "";
}

const char *rd_dump_fr_type(int type)
{
    return type >= RONDO_NUM_TYPES ? "Byte" : types[type] ? types[type] : rd_type_name((rondo_type_t)type);
}

/* ---- names and values ---- */

static void key(fr_t *fr, const char *name)
{
    rd_pickle_text(fr->out, name);
}

static void text(fr_t *fr, const char *name, const char *value)
{
    key(fr, name);
    rd_pickle_text(fr->out, value);
}

static void number(fr_t *fr, const char *name, uint64_t value)
{
    key(fr, name);
    rd_pickle_int(fr->out, value);
}

static void group_name(char name[NAME], const rd_stream_t *s)
{
    if (s->from < 0)
        snprintf(name, NAME, "%016llx", (unsigned long long)s->id);
    else
        snprintf(name, NAME, "%016llx:%d:%d", (unsigned long long)s->id, s->from < s->to ? s->from : s->to,
                 s->from < s->to ? s->to : s->from);
}

/* A time of this process as PyTorch has them: of the wall clock. */
static void time_of(fr_t *fr, const char *name, uint64_t ns)
{
    const rd_monitor_head_t *head = &fr->dump->view->processes[fr->process].reader.head;

    key(fr, name);
    if (ns)
        rd_pickle_int(fr->out, ns + head->made_unix_ns - head->made_ns);
    else
        rd_pickle_none(fr->out);
}

/* ---- entries ---- */

static void sizes(fr_t *fr, const char *name, uint64_t count)
{
    key(fr, name);
    rd_pickle_list(fr->out);
    rd_pickle_list(fr->out);
    rd_pickle_int(fr->out, count);
    rd_pickle_list_end(fr->out);
    rd_pickle_list_end(fr->out);
}

static void write_sizes(fr_t *fr, const rd_monitor_event_t *e, const rd_monitor_comm_t *c)
{
    uint64_t all = e->count * (uint64_t)c->size, in = e->count, out = in;

    if (e->kind == RD_ALLGATHER || (e->kind == RD_GATHER && e->root == c->rank))
        out = all;
    if (e->kind == RD_REDUCE_SCATTER || (e->kind == RD_SCATTER && e->root == c->rank))
        in = all;
    if (e->kind == RD_ALLTOALL)
        in = out = all;
    sizes(fr, "input_sizes", e->kind == RD_MONITOR_RECV ? 0 : in);
    sizes(fr, "output_sizes", e->kind == RD_MONITOR_SEND ? 0 : out);
    for (int i = 0; i < 2; i++) {
        key(fr, i ? "output_dtypes" : "input_dtypes");
        rd_pickle_list(fr->out);
        if (e->kind != RD_BARRIER && !rd_monitor_bare(e->kind))
            rd_pickle_text(fr->out, rd_dump_fr_type(e->type));
        rd_pickle_list_end(fr->out);
    }
}

/* Messages name the two ranks by their order in the pair's group, which the analyser sorts by their numbers in the job.
 */
static void write_name(fr_t *fr, const rd_monitor_event_t *e, const rd_stream_t *s, const int *members)
{
    char name[64];
    int from = s->from >= 0 && members[s->from] > members[s->to], to = !from;

    if (e->kind == RD_MONITOR_SEND)
        snprintf(name, sizeof name, "nccl:send %d->%d", from, to);
    else if (e->kind == RD_MONITOR_RECV)
        snprintf(name, sizeof name, "nccl:recv %d<-%d", to, from);
    else if (rd_monitor_one_sided(e->kind))
        snprintf(name, sizeof name, "nccl:%s", rd_view_kind_name(e->kind));
    else
        snprintf(name, sizeof name, "nccl:%s", rd_dump_fr_name(e->kind));
    text(fr, "profiling_name", name);
}

/* In a pair's group both directions are numbered: one has the even numbers, the other one the odd ones. */
static void write_numbers(fr_t *fr, const rd_stream_t *s, uint64_t n)
{
    bool message = s->from >= 0;
    uint64_t both = message ? 2 * n + (s->from > s->to) : n;

    number(fr, "record_id", fr->written);
    number(fr, "op_id", fr->written);
    number(fr, "collective_seq_id", both);
    number(fr, "p2p_seq_id", message ? both : 0);
    key(fr, "is_p2p");
    rd_pickle_bool(fr->out, message);
}

/* A call that has failed has not completed for PyTorch. */
static void write_state(fr_t *fr, const rd_history_run_t *r, uint64_t at)
{
    rd_history_state_t state = rd_history_state(&fr->dump->histories[fr->process], r, at);
    bool over = state == RD_HISTORY_COMPLETED, on_device = state == RD_HISTORY_ENQUEUED;
    uint64_t begun = at ? 0 : r->begun_ns, ended = at || !over ? 0 : r->ended_ns;

    time_of(fr, "time_created_ns", begun);
    time_of(fr, "time_discovered_started_ns", on_device ? 0 : begun);
    time_of(fr, "time_discovered_completed_ns", ended);
    if (begun && ended > begun) {
        key(fr, "duration_ms");
        rd_pickle_float(fr->out, (double)(ended - begun) / 1e6);
    }
    text(fr, "state", on_device ? "scheduled" : over ? "completed" : "started");
    key(fr, "retired");
    rd_pickle_bool(fr->out, over);
    key(fr, "timeout_ms"); /* is not in the record */
    rd_pickle_none(fr->out);
}

static void write_own(fr_t *fr, const rd_monitor_event_t *e)
{
    key(fr, "rondo");
    rd_pickle_dict(fr->out);
    text(fr, "call", rd_view_kind_name(e->kind));
    number(fr, "count", e->count);
    number(fr, "bytes", e->bytes);
    if (e->kind < RD_NUM_COLLS && rd_coll_reduces((rd_coll_t)e->kind) && e->op != RD_MONITOR_UNKNOWN)
        text(fr, "op", e->op < RONDO_NUM_OPS ? rd_op_name((rondo_op_t)e->op) : "user");
    key(fr, "root");
    rd_pickle_signed(fr->out, e->root);
    if (e->tag)
        number(fr, "tag", e->tag);
    if (e->input)
        number(fr, "input_hash", e->input);
    if (e->output)
        number(fr, "output_hash", e->output);
    key(fr, "tables");
    rd_pickle_bool(fr->out, e->flags & RD_MONITOR_TABLES);
    key(fr, "grouped");
    rd_pickle_bool(fr->out, e->flags & RD_MONITOR_GROUPED);
    key(fr, "result");
    rd_pickle_signed(fr->out, e->result);
    rd_pickle_dict_end(fr->out);
}

/* "function+0x1c (file)". Lines of sources are not known. */
static void write_frames(fr_t *fr, uint64_t index)
{
    const rd_stack_t *stack = rd_stacks_find(fr->dump->view->processes[fr->process].stacks, index);

    key(fr, "frames");
    rd_pickle_list(fr->out);
    for (int i = 0; stack && i < stack->nframes; i++) {
        char name[RD_FRAME_TEXT], file[RD_FRAME_TEXT] = "";
        snprintf(name, sizeof name, "%s", stack->frames[i].text);
        char *at = strstr(name, " (");
        if (at) {
            snprintf(file, sizeof file, "%.*s", (int)strcspn(at + 2, ")"), at + 2);
            *at = 0;
        }
        rd_pickle_dict(fr->out);
        text(fr, "name", name);
        text(fr, "filename", file);
        number(fr, "line", 0);
        rd_pickle_dict_end(fr->out);
    }
    rd_pickle_list_end(fr->out);
}

/* Call `n` of the stream, which is in the run behind `at` others. */
static void write_entry(fr_t *fr, const rd_history_run_t *r, const rd_stream_t *s, uint64_t n, uint64_t at)
{
    const rd_monitor_comm_t *c = &fr->dump->histories[fr->process].comms[r->comm];
    char group[NAME], thread[24];

    group_name(group, s);
    snprintf(thread, sizeof thread, "%llu", (unsigned long long)r->event.thread);
    rd_pickle_dict(fr->out);
    write_numbers(fr, s, n);
    number(fr, "pg_id", (uint64_t)r->comm);
    key(fr, "process_group");
    rd_pickle_text(fr->out, group);
    rd_pickle_text(fr->out, c->name);
    rd_pickle_pair(fr->out);
    write_name(fr, &r->event, s, fr->members[r->comm]);
    write_sizes(fr, &r->event, c);
    write_state(fr, r, at);
    write_frames(fr, r->event.stack);
    text(fr, "thread_id", thread);
    write_own(fr, &r->event);
    rd_pickle_dict_end(fr->out);
    fr->written++;
}

/* Other records may say other things of the communicator. */
static bool is_written(const fr_t *fr, const rd_stream_t *s, int comm)
{
    const rd_monitor_comm_t *c = &fr->dump->histories[fr->process].comms[comm];

    return s->id == c->id && !s->left_out && fr->members[comm] && s->from < c->size && s->to < c->size;
}

static void write_run(fr_t *fr, size_t i)
{
    const rd_history_run_t *r = &fr->dump->histories[fr->process].runs[i];
    const rd_stream_t *s = rd_streams_of(fr->streams, r);

    if (!s || !is_written(fr, s, r->comm) || (s->from < 0 && !rd_dump_fr_name(r->event.kind)[0]))
        return;
    uint64_t first = fr->streams->numbers[fr->process][i], last = first + r->calls - 1;
    for (uint64_t n = first; (n = rd_streams_next(fr->streams, s, n, last)) && fr->written < RD_STREAM_MOST; n++)
        write_entry(fr, r, s, n, n - first);
}

/* ---- groups ---- */

static void write_group(fr_t *fr, const char *group, const char *name, const int *ranks, int n)
{
    size_t room = (size_t)n * 12 + 3, used = 0;
    char *list = malloc(room);

    key(fr, group);
    rd_pickle_dict(fr->out);
    text(fr, "desc", name);
    for (int i = 0; list && i < n; i++)
        used += (size_t)snprintf(list + used, room - used, "%s%d", i ? ", " : "[", ranks[i]);
    if (list)
        snprintf(list + used, room - used, "%s", n ? "]" : "[]");
    text(fr, "ranks", list ? list : "[]");
    rd_pickle_dict_end(fr->out);
    free(list);
}

/* A pair's group is of both directions. */
static void write_pair(fr_t *fr, int comm, const rd_stream_t *s)
{
    const rd_monitor_comm_t *c = &fr->dump->histories[fr->process].comms[comm];
    const rd_stream_t *back = s->from > s->to ? rd_streams_find_one(fr->streams, s->id, s->to, s->from) : NULL;
    const int pair[2] = {fr->members[comm][s->from], fr->members[comm][s->to]};
    char group[NAME];

    if ((s->from != c->rank && s->to != c->rank) || (back && is_written(fr, back, comm)))
        return;
    group_name(group, s);
    write_group(fr, group, c->name, pair, 2);
}

static void write_groups(fr_t *fr)
{
    const rd_history_t *h = &fr->dump->histories[fr->process];
    char group[NAME];

    key(fr, "pg_config");
    rd_pickle_dict(fr->out);
    for (int i = 0; i < h->ncomms; i++)
        for (size_t k = 0; k < fr->streams->nstreams; k++) {
            const rd_stream_t *s = &fr->streams->streams[k];
            if (!is_written(fr, s, i))
                continue;
            group_name(group, s);
            if (s->from < 0)
                write_group(fr, group, h->comms[i].name, fr->members[i], h->comms[i].size);
            else
                write_pair(fr, i, s);
        }
    rd_pickle_dict_end(fr->out);
}

static void write_status(fr_t *fr)
{
    const rd_history_t *h = &fr->dump->histories[fr->process];
    char id[16];

    key(fr, "pg_status");
    rd_pickle_dict(fr->out);
    for (int i = 0; i < h->ncomms; i++) {
        const rd_monitor_calls_t *calls = &h->comms[i].calls[RD_TRACK_COLLECTIVE];
        snprintf(id, sizeof id, "%d", i);
        key(fr, id);
        rd_pickle_dict(fr->out);
        number(fr, "last_enqueued_collective", calls->begun);
        if (h->comms[i].device < 0) {
            number(fr, "last_started_collective", calls->begun);
            number(fr, "last_completed_collective", calls->ended);
        }
        rd_pickle_dict_end(fr->out);
    }
    rd_pickle_dict_end(fr->out);
}

static void write_comm(fr_t *fr, const rd_monitor_comm_t *c)
{
    const rd_view_t *view = fr->dump->view;
    const rd_view_comm_t *seen = rd_view_comm_of(view->comms, view->ncomms, c->id);
    rd_monitor_verdict_t v = {.rank = -1};
    char id[24], value[24];

    snprintf(id, sizeof id, "%016llx", (unsigned long long)c->id);
    key(fr, id);
    rd_pickle_dict(fr->out);
    text(fr, "name", c->name);
    snprintf(value, sizeof value, "%d", c->rank);
    text(fr, "rank", value);
    snprintf(value, sizeof value, "%d", c->size);
    text(fr, "size", value);
    snprintf(value, sizeof value, "%d", rd_view_waits_for(c));
    text(fr, "waits_for", value);
    if (seen)
        rd_verdict_judge(view, seen, &v);
    text(fr, "verdict", v.text);
    rd_pickle_dict_end(fr->out);
}

/* ---- the whole ---- */

static bool find_members(fr_t *fr)
{
    const rd_history_t *h = &fr->dump->histories[fr->process];
    bool known = true;

    fr->members = calloc((size_t)h->ncomms + 1, sizeof *fr->members);
    for (int i = 0; fr->members && known && i < h->ncomms; i++) {
        fr->members[i] = rd_dump_members(fr->dump, &h->comms[i], &known);
        known |= fr->members[i] != NULL;
    }
    return fr->members && known;
}

bool rd_dump_fr(rd_out_t *out, const rd_dump_t *dump, const rd_streams_t *streams, int process)
{
    const rd_history_t *h = &dump->histories[process];
    fr_t fr = {.out = out, .dump = dump, .streams = streams, .process = process};
    char library[RD_MONITOR_NAME + 8];
    bool good = find_members(&fr);

    if (good) {
        rd_pickle_begin(out);
        rd_pickle_dict(out);
        text(&fr, "version", "2.10");
        snprintf(library, sizeof library, "rondo %s", dump->view->processes[process].reader.head.library);
        text(&fr, "comm_lib_version", library);
        write_groups(&fr);
        write_status(&fr);
        key(&fr, "nccl_comm_state");
        rd_pickle_dict(out);
        for (int i = 0; i < h->ncomms; i++)
            write_comm(&fr, &h->comms[i]);
        rd_pickle_dict_end(out);
        key(&fr, "entries");
        rd_pickle_list(out);
        for (size_t i = 0; i < h->nruns; i++)
            write_run(&fr, i);
        rd_pickle_list_end(out);
        rd_pickle_dict_end(out);
        rd_pickle_end(out);
    }
    for (int i = 0; fr.members && i < h->ncomms; i++)
        free(fr.members[i]);
    free(fr.members);
    return good;
}
