/* Dumps of PyTorch's flight recorder, and rondo's own in that format (lib/monitor/dump_fr.c): each process group
 * becomes a communicator. Times are of the wall clock. What the format does not say (who waits for whom, how the
 * process is) is not known afterwards either. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/types.h"
#include "load.h"
#include "monitor/dump_fr.h"
#include "monitor/history.h"
#include "sched/program.h"

typedef struct fr {
    load_t *load;
    const value_t *groups;   /* name, {desc, ranks} */
    bool ours;               /* rondo has written it */
    uint64_t *sends, *recvs; /* of each group: messages so far */
    uint64_t *bytes;         /* of each group and track: of all its calls so far */
    bool *open;              /* of each group and track: has one not completed? */
} fr_t;

/* ---- groups ---- */

/* Walks over the text of a list of numbers. Returns false at its end. */
static bool next_number(const char **at, long *number)
{
    char *end;

    while (**at && (**at < '0' || **at > '9'))
        ++*at;
    if (!**at)
        return false;
    *number = strtol(*at, &end, 10);
    *at = end;
    return true;
}

/* Finds the rank with this number in the job. Returns false if the group has no such rank. */
static bool find_rank(const char *ranks, int number, int *rank, int *size)
{
    long one;

    *rank = -1;
    *size = 0;
    while (next_number(&ranks, &one)) {
        if (one == number)
            *rank = *size;
        ++*size;
    }
    return *rank >= 0;
}

/* Alike on all ranks: a group of rondo's has its number, others have one made of their name and ranks. */
static uint64_t id_of(const fr_t *fr, const char *name, const char *ranks)
{
    char *end;
    uint64_t id = strtoull(name, &end, 16);

    if (fr->ours && end == name + 16 && !*end)
        return id;
    return rd_hash(rd_hash(RD_HASH_EMPTY, name, strlen(name)), ranks, strlen(ranks));
}

static void load_group(fr_t *fr, size_t i, int number)
{
    const char *name = value_text(fr->groups->items[2 * i]);
    const value_t *group = fr->groups->items[2 * i + 1];
    const char *ranks = value_text(value_of(group, "ranks")), *desc = value_text(value_of(group, "desc"));
    rd_monitor_comm_t *c = &fr->load->later[i];
    int rank, size;

    if (!find_rank(ranks, number, &rank, &size))
        return;
    c->version = 2;
    c->id = id_of(fr, name, ranks);
    c->state = RD_MONITOR_ALIVE;
    c->rank = rank;
    c->size = size;
    c->device = -1;
    c->waits_for = -1;
    snprintf(c->name, sizeof c->name, "%s", *desc && strcmp(desc, "undefined") != 0 ? desc : name);
}

/* Returns the group of an entry, or -1. */
static int group_of(const fr_t *fr, const value_t *entry)
{
    const char *name = value_text(value_item(value_of(entry, "process_group"), 0));

    for (size_t i = 0; i < fr->groups->nitems / 2; i++)
        if (strcmp(value_text(fr->groups->items[2 * i]), name) == 0)
            return fr->load->later[i].version ? (int)i : -1;
    return -1;
}

/* ---- entries ---- */

static uint8_t kind_of(const char *name)
{
    static const struct {
        const char *name;
        uint8_t kind;
    } others[] = {{"_broadcast_oop", RD_BROADCAST},
                  {"_reduce_oop", RD_REDUCE},
                  {"all_gather", RD_ALLGATHER},
                  {"all_gather_into_tensor_coalesced", RD_ALLGATHER},
                  {"ALLGATHER_coalesced", RD_ALLGATHER},
                  {"reduce_scatter", RD_REDUCE_SCATTER},
                  {"reduce_scatter_tensor_coalesced", RD_REDUCE_SCATTER},
                  {"REDUCE_SCATTER_coalesced", RD_REDUCE_SCATTER},
                  {"allreduce_coalesced", RD_ALLREDUCE},
                  {"barrier", RD_BARRIER}};
    const char *word = strchr(name, ':');

    word = word ? word + 1 : name;
    if (strncmp(word, "send ", 5) == 0 || strncmp(word, "recv ", 5) == 0)
        return *word == 's' ? RD_MONITOR_SEND : RD_MONITOR_RECV;
    for (int kind = 0; kind < RD_NUM_COLLS; kind++)
        if (strcmp(rd_dump_fr_name(kind), word) == 0)
            return (uint8_t)kind;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i].name, word) == 0)
            return others[i].kind;
    return RD_MONITOR_OTHER;
}

static uint8_t type_of(const value_t *entry, const char *member)
{
    const char *word = value_text(value_item(value_of(entry, member), 0));

    for (int type = 0; type < RONDO_NUM_TYPES; type++)
        if (strcmp(rd_dump_fr_type(type), word) == 0)
            return (uint8_t)type;
    return RD_MONITOR_BYTE;
}

/* The elements of all tensors. */
static uint64_t elements(const value_t *sizes)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < value_items(sizes); i++) {
        const value_t *shape = value_item(sizes, i);
        uint64_t n = 1;
        for (size_t k = 0; k < value_items(shape); k++)
            n *= value_amount(value_item(shape, k));
        sum += n;
    }
    return sum;
}

/* Arguments as PyTorch has them. Lengths of an all-to-all may be each rank's own, so they are not compared. */
static void load_sizes(rd_monitor_event_t *e, const value_t *entry, int size)
{
    bool from_output = e->kind == RD_REDUCE_SCATTER || e->kind == RD_SCATTER || e->kind == RD_MONITOR_RECV;
    bool message = rd_history_track(e->kind) != RD_TRACK_COLLECTIVE;
    uint64_t n = elements(value_of(entry, from_output ? "output_sizes" : "input_sizes"));
    uint64_t blocks =
        e->kind == RD_ALLGATHER || e->kind == RD_REDUCE_SCATTER || e->kind == RD_GATHER || e->kind == RD_SCATTER
            ? (uint64_t)size
            : 1;

    e->type = type_of(entry, from_output ? "output_dtypes" : "input_dtypes");
    e->op = e->kind < RD_NUM_COLLS && rd_coll_reduces((rd_coll_t)e->kind) ? RD_MONITOR_UNKNOWN : 0;
    e->root = -1;
    if (e->kind == RD_ALLTOALL)
        e->flags |= RD_MONITOR_TABLES;
    if (e->kind == RD_ALLTOALL || e->kind == RD_BARRIER)
        return;
    e->count = n;
    e->bytes = n * (e->type < RONDO_NUM_TYPES ? rondo_type_size((rondo_type_t)e->type) : 1) * blocks;
    if (message)
        e->count = e->bytes;
}

/* Rondo's own dumps have more. */
static void load_own(rd_monitor_event_t *e, const value_t *own)
{
    const char *op = value_text(value_of(own, "op"));
    rondo_op_t found;

    int kind = rd_view_kind_named(value_text(value_of(own, "call")));
    if (kind >= 0)
        e->kind = (uint8_t)kind;
    e->count = value_amount(value_of(own, "count"));
    e->bytes = value_amount(value_of(own, "bytes"));
    e->tag = value_amount(value_of(own, "tag"));
    e->input = value_amount(value_of(own, "input_hash"));
    e->output = value_amount(value_of(own, "output_hash"));
    e->root = value_int(value_of(own, "root"), -1, INT32_MAX, -1);
    e->result = value_int(value_of(own, "result"), 0, INT32_MAX, 0);
    e->flags = (uint8_t)((value_is_true(value_of(own, "tables")) ? RD_MONITOR_TABLES : 0) |
                         (value_is_true(value_of(own, "grouped")) ? RD_MONITOR_GROUPED : 0));
    if (strcmp(op, "user") == 0)
        e->op = RONDO_NUM_OPS;
    else if (rd_op_parse(op, &found) == 0)
        e->op = (uint8_t)found;
}

/* "send 0->1", "recv 1<-0": the second rank is the peer. */
static int peer_of(const char *name, int size)
{
    const char *arrow = strpbrk(name, "<>");
    long peer = arrow ? strtol(arrow + 1 + (*arrow == '<'), NULL, 10) : -1;

    return peer >= 0 && peer < size ? (int)peer : -1;
}

/* Messages are counted in each direction, from the first one on: who has lost some has them with a higher number. */
static uint64_t number_of(fr_t *fr, int group, const value_t *entry, const rd_monitor_event_t *e)
{
    uint64_t *so_far = e->kind == RD_MONITOR_SEND ? &fr->sends[group] : &fr->recvs[group];
    uint64_t sequence = value_amount(value_of(entry, "p2p_seq_id"));

    if (rd_history_track(e->kind) == RD_TRACK_COLLECTIVE)
        return value_amount(value_of(entry, "collective_seq_id"));
    if (fr->ours)
        return sequence / 2;
    if (fr->sends[group] == 0 && fr->recvs[group] == 0 && sequence > 1)
        fr->sends[group] = fr->recvs[group] = sequence;
    return ++*so_far;
}

/* Calls of a track are over in their order: those before the first one that is not. */
static void count(fr_t *fr, int group, const rd_monitor_event_t *e, uint64_t index, bool over)
{
    rd_track_t track = rd_history_track(e->kind);
    rd_monitor_calls_t *calls = &fr->load->later[group].calls[track];
    bool *open = &fr->open[group * RD_TRACKS + (int)track];

    if (e->number > calls->begun) {
        calls->begun = e->number;
        calls->entry = index + 1;
        calls->bytes = fr->bytes[group * RD_TRACKS + (int)track];
    }
    fr->bytes[group * RD_TRACKS + (int)track] += e->bytes;
    *open |= !over;
    if (!*open)
        calls->ended = calls->begun;
}

/* The rank was inside the call, waiting for others, until it failed. */
static bool waited(int result)
{
    return result == RONDO_ERR_REMOTE || result == RONDO_ERR_TIMEOUT;
}

static void load_entry(fr_t *fr, uint64_t index, const value_t *entry)
{
    const char *name = value_text(value_of(entry, "profiling_name"));
    const char *state = value_text(value_of(entry, "state"));
    int group = group_of(fr, entry);
    rd_monitor_event_t e = {.begun = value_amount(value_of(entry, "time_created_ns")),
                            .ended = value_amount(value_of(entry, "time_discovered_completed_ns")),
                            .kind = kind_of(name),
                            .thread = strtoull(value_text(value_of(entry, "thread_id")), NULL, 10)};
    bool over = strcmp(state, "completed") == 0;

    if (group < 0)
        return;
    rd_monitor_comm_t *c = &fr->load->later[group];
    load_sizes(&e, entry, c->size);
    if (value_of(entry, "rondo"))
        load_own(&e, value_of(entry, "rondo"));
    if (rd_history_track(e.kind) != RD_TRACK_COLLECTIVE)
        e.root = peer_of(name, c->size);
    e.comm = c->id;
    e.rank = c->rank;
    e.number = number_of(fr, group, entry, &e);
    if (strcmp(state, "scheduled") == 0) {
        e.flags |= RD_MONITOR_QUEUED;
        if (fr->ours)
            c->device = 0; /* which one is not said */
    }
    if (!e.number)
        return;
    load_event(fr->load, index, &e);
    count(fr, group, &e, index, over || (e.result > RONDO_IN_PROGRESS && !waited(e.result)));
    fr->load->then.now_ns = e.begun > fr->load->then.now_ns ? e.begun : fr->load->then.now_ns;
    fr->load->then.now_ns = e.ended > fr->load->then.now_ns ? e.ended : fr->load->then.now_ns;
}

const char *load_fr(load_t *l, const value_t *file, int number)
{
    fr_t fr = {.load = l, .groups = value_of(file, "pg_config")};
    const value_t *entries = value_of(file, "entries");
    size_t n = value_items(entries);

    if (!entries || !fr.groups || fr.groups->kind != VALUE_DICT || !value_of(file, "version"))
        return "it is a pickle, but no dump of a flight recorder: it lacks version, entries or pg_config";
    if (number < 0)
        return "the name of a flight recorder's dump must end in the number of its rank";
    if (n > LOAD_EVENTS_MOST || fr.groups->nitems / 2 > LOAD_COMMS_MOST)
        return "it has too many entries";
    size_t groups = fr.groups->nitems / 2;
    fr.sends = calloc(groups + 1, sizeof *fr.sends);
    fr.recvs = calloc(groups + 1, sizeof *fr.recvs);
    fr.open = calloc((groups + 1) * RD_TRACKS, sizeof *fr.open);
    fr.bytes = calloc((groups + 1) * RD_TRACKS, sizeof *fr.bytes);
    bool good = fr.sends && fr.recvs && fr.open && fr.bytes && load_make(l, groups, n ? n : 1);
    if (good) {
        fr.ours = strncmp(value_text(value_of(file, "comm_lib_version")), "rondo ", 6) == 0;
        l->head->job_rank = number;
        l->head->job_size = -1;
        l->then.state = RD_VIEW_ELSEWHERE;
        snprintf(l->head->library, sizeof l->head->library, "%s",
                 value_text(value_of(file, "comm_lib_version")) + (fr.ours ? 6 : 0));
        for (size_t i = 0; i < groups; i++)
            load_group(&fr, i, number);
        for (size_t i = 0; i < n; i++)
            load_entry(&fr, i, value_item(entries, i));
    }
    free(fr.sends);
    free(fr.recvs);
    free(fr.open);
    free(fr.bytes);
    return good ? NULL : "there is no memory for it";
}
