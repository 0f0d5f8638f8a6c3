/* What is known of one rank, and how it is said. */
#include <stdio.h>
#include <string.h>

#include "base/proto.h"
#include "base/types.h"
#include "base/wait.h"
#include "monitor/ticks.h"
#include "monitor/view.h"
#include "sched/algo.h"
#include "sched/program.h"

const rd_view_rank_t *rd_view_rank_of(const rd_view_comm_t *comm, int rank)
{
    int low = 0, high = comm->nranks; /* the first that is not below `rank` lies between them */

    while (low < high) {
        int middle = low + (high - low) / 2;
        if (comm->ranks[middle].comm.rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < comm->nranks && comm->ranks[low].comm.rank == rank ? &comm->ranks[low] : NULL;
}

bool rd_view_gone(const rd_view_t *view, const rd_view_rank_t *rank)
{
    char state = view->processes[rank->process].state;

    return state == RD_VIEW_ENDED || state == 'Z' || state == 'X';
}

bool rd_view_stopped(const rd_view_t *view, const rd_view_rank_t *rank)
{
    char state = view->processes[rank->process].state;

    return state == 'T' || state == 't';
}

uint64_t rd_view_begun(const rd_monitor_comm_t *comm)
{
    uint64_t sum = 0;

    for (int track = 0; track < RD_TRACKS; track++)
        sum += comm->calls[track].begun;
    return sum;
}

int rd_view_inside(const rd_monitor_comm_t *comm)
{
    for (int track = 0; track < RD_TRACKS; track++)
        if (comm->calls[track].begun != comm->calls[track].ended)
            return track;
    return -1;
}

int rd_view_waits_for(const rd_monitor_comm_t *comm)
{
    int64_t peer = comm->waits_for;
    bool waits = comm->device >= 0 ? comm->state != RD_MONITOR_ENDED
                                   : rd_view_inside(comm) >= 0 && comm->waits_in == rd_view_begun(comm);

    return waits && comm->seen_ms && peer >= 0 && peer < comm->size ? (int)peer : -1;
}

/* Seconds, by the clock of the rank's host. */
static double since(const rd_view_t *view, const rd_view_rank_t *rank, uint64_t then_ms)
{
    const rd_view_process_t *process = &view->processes[rank->process];
    int64_t now = process->past || process->now_ns ? (int64_t)(process->now_ns / 1000000) : rd_clock_ms();
    const uint64_t ms = (uint64_t)now - then_ms; /* which a record may have anything for */

    return ms < UINT64_C(1) << 40 ? (double)ms / 1000 : 0;
}

double rd_view_waits_since(const rd_view_t *view, const rd_view_rank_t *rank)
{
    return since(view, rank, rank->comm.since_ms);
}

uint64_t rd_view_bytes(const rd_view_t *view, const rd_view_rank_t *rank)
{
    const rd_reader_t *reader = &view->processes[rank->process].reader;
    uint64_t sum = 0;

    for (int track = 0; track < RD_TRACKS; track++) {
        const rd_monitor_calls_t *calls = &rank->comm.calls[track];
        rd_monitor_event_t event;
        sum += calls->bytes;
        if (rd_reader_last(reader, &rank->comm, (rd_track_t)track, &event) && calls->begun >= event.number)
            sum += (calls->begun - event.number + 1) * event.bytes;
    }
    return sum;
}

/* Both clocks have run on from the moment of the head until the look, and so are compared. */
uint64_t rd_view_time(const rd_view_process_t *p, uint64_t ticks)
{
    const rd_monitor_head_t *h = &p->reader.head;

    if (!ticks || h->clock == RD_TICKS_NS)
        return ticks;
    if (h->clock != RD_TICKS_TSC || ticks < h->made_ticks || p->now_ticks <= h->made_ticks || p->now_ns <= h->made_ns)
        return 0;
    double rate = (double)(p->now_ns - h->made_ns) / (double)(p->now_ticks - h->made_ticks);
    double later = (double)(ticks - h->made_ticks) * rate;
    return later < 1e18 ? h->made_ns + (uint64_t)later : 0;
}

const char *rd_view_kind_name(int kind)
{
    return kind == RD_MONITOR_SEND            ? "send"
           : kind == RD_MONITOR_RECV          ? "recv"
           : kind == RD_MONITOR_SPLIT         ? "comm_split"
           : kind == RD_MONITOR_WINDOW        ? "window"
           : kind == RD_MONITOR_GROW          ? "comm_grow"
           : kind == RD_MONITOR_SUSPEND       ? "comm_suspend"
           : kind == RD_MONITOR_RESUME        ? "comm_resume"
           : kind == RD_MONITOR_WAIT_SIGNAL   ? "wait_signal"
           : kind == RD_MONITOR_PUT           ? "put"
           : kind == RD_MONITOR_SIGNAL        ? "signal"
           : kind == RD_MONITOR_GET           ? "get"
           : kind == RD_MONITOR_FLUSH         ? "flush"
           : kind >= 0 && kind < RD_NUM_COLLS ? rd_coll_name((rd_coll_t)kind)
                                              : "call";
}

int rd_view_kind_named(const char *name)
{
    for (int kind = RD_MONITOR_SEND; kind <= RD_MONITOR_LAST; kind++)
        if (kind != RD_MONITOR_OTHER && strcmp(name, rd_view_kind_name(kind)) == 0)
            return kind;
    return -1;
}

bool rd_view_kind_rooted(int kind)
{
    return kind == RD_REDUCE || kind == RD_BROADCAST || kind == RD_GATHER || kind == RD_SCATTER;
}

const char *rd_view_algo_name(const rd_monitor_event_t *e)
{
    const int number = (int)(e->choice & 0xff) - 1;
    int n = 0;

    while (rd_algos[n] && n < number)
        n++;
    return number >= 0 && rd_algos[n] ? rd_algos[n]->name : NULL;
}

const char *rd_view_proto_name(const rd_monitor_event_t *e)
{
    const int number = (int)(e->choice >> 8 & 0xff) - 1;

    return number >= 0 && number < RD_NUM_PROTOS ? rd_proto_name((rd_proto_t)number) : NULL;
}

uint64_t rd_view_choice_named(const char *algo, const char *proto)
{
    const rd_algo_t *found = rd_algo_find(algo);
    int number = 0;

    while (number < RD_NUM_PROTOS && strcmp(proto, rd_proto_name((rd_proto_t)number)) != 0)
        number++;
    return rd_monitor_choice_word(found ? rd_algo_number(found) : -1, number < RD_NUM_PROTOS ? number : -1);
}

static void untagged(const rd_monitor_event_t *e, char *text, size_t bytes)
{
    const char *type = e->type < RONDO_NUM_TYPES ? rd_type_name((rondo_type_t)e->type) : NULL;
    const char *op = e->op < RONDO_NUM_OPS ? rd_op_name((rondo_op_t)e->op) : "a user's operator";
    unsigned long long count = (unsigned long long)e->count;

    if (e->kind == RD_MONITOR_SEND || e->kind == RD_MONITOR_RECV)
        snprintf(text, bytes, " (%llu bytes, rank %d)", count, e->root);
    else if (e->kind == RD_MONITOR_WAIT_SIGNAL)
        snprintf(text, bytes, " (%llu signals, rank %d first)", count, e->root);
    else if (rd_monitor_one_sided(e->kind) && e->root < 0)
        snprintf(text, bytes, " (all ranks)");
    else if (rd_monitor_one_sided(e->kind))
        snprintf(text, bytes, " (%llu bytes, rank %d)", count, e->root);
    else if (e->kind == RD_BARRIER || rd_monitor_bare(e->kind))
        snprintf(text, bytes, "%s", "");
    else if (e->flags & RD_MONITOR_TABLES)
        snprintf(text, bytes, " (by tables, %s)", type ? type : "?");
    else if (e->op == RD_MONITOR_UNKNOWN)
        snprintf(text, bytes, " (%llu %s)", count, type ? type : "?");
    else if (e->kind < RD_NUM_COLLS && rd_coll_reduces((rd_coll_t)e->kind))
        snprintf(text, bytes, " (%llu %s, %s)", count, type ? type : "?", op);
    else
        snprintf(text, bytes, " (%llu %s)", count, type ? type : "?");
}

static void arguments(const rd_monitor_event_t *e, char *text, size_t bytes)
{
    untagged(e, text, bytes);
    size_t n = strlen(text);
    if (e->tag)
        snprintf(text + n, bytes - n, ", tag %llu", (unsigned long long)e->tag);
}

void rd_view_event_text(const rd_monitor_event_t *event, char *text, size_t bytes)
{
    char more[128];

    arguments(event, more, sizeof more);
    snprintf(text, bytes, "%s%s", rd_view_kind_name(event->kind), more);
}

void rd_view_number_text(const rd_monitor_event_t *event, int track, uint64_t number, char *text, size_t bytes)
{
    static const char *const tracks[RD_TRACKS] = {"collective", "send", "recv"};
    char more[128];

    if (!event) {
        snprintf(text, bytes, "%s number %llu", tracks[track], (unsigned long long)number);
        return;
    }
    arguments(event, more, sizeof more);
    snprintf(text, bytes, "%s%s number %llu%s", rd_view_kind_name(event->kind),
             track == RD_TRACK_COLLECTIVE ? ", collective" : ",", (unsigned long long)number, more);
}

void rd_view_call_text(const rd_view_t *view, const rd_view_rank_t *rank, int track, char *text, size_t bytes)
{
    rd_monitor_event_t event;
    bool known = rd_reader_last(&view->processes[rank->process].reader, &rank->comm, (rd_track_t)track, &event);

    rd_view_number_text(known ? &event : NULL, track, rank->comm.calls[track].begun, text, bytes);
}

/* Finds the event of the run of collectives that has this one. */
static bool event_of(const rd_view_t *view, const rd_view_rank_t *rank, uint64_t number, rd_monitor_event_t *event)
{
    const rd_reader_t *reader = &view->processes[rank->process].reader;
    uint64_t n = rd_reader_events(reader), kept = n < reader->head.nevents ? n : reader->head.nevents;

    for (uint64_t i = 1; i <= kept; i++)
        if (rd_reader_event(reader, n - i, event) && event->comm == rank->comm.id && event->rank == rank->comm.rank &&
            event->kind != RD_MONITOR_SEND && event->kind != RD_MONITOR_RECV && !rd_monitor_one_sided(event->kind) &&
            event->number <= number)
            return true;
    return false;
}

bool rd_view_collective(const rd_view_t *view, const rd_view_rank_t *rank, uint64_t number, rd_monitor_event_t *event)
{
    if (rank->comm.calls[RD_TRACK_COLLECTIVE].begun < number)
        return false;
    if (rd_reader_last(&view->processes[rank->process].reader, &rank->comm, RD_TRACK_COLLECTIVE, event) &&
        event->number <= number)
        return true;
    /* Another event may be missing in between, which is being written. */
    return event_of(view, rank, number, event) && number - event->number <= event->repeats;
}

const char *rd_view_differs(const rd_monitor_event_t *x, const rd_monitor_event_t *y)
{
    bool reduces = x->kind < RD_NUM_COLLS && rd_coll_reduces((rd_coll_t)x->kind);

    if (x->kind != y->kind || (x->flags ^ y->flags) & RD_MONITOR_TABLES)
        return "operation";
    if (x->flags & RD_MONITOR_TABLES)
        return x->root != y->root ? "root" : x->tag != y->tag ? "tag" : NULL;
    if (reduces ? x->count != y->count : x->bytes != y->bytes)
        return reduces || x->type == y->type ? "count" : "bytes";
    if (reduces && x->type != y->type)
        return "type";
    if (reduces && x->op != y->op)
        return "op";
    if (rd_view_kind_rooted(x->kind) && x->root != y->root)
        return "root";
    return x->tag != y->tag ? "tag" : NULL;
}

void rd_view_kernel_text(const rd_view_t *view, const rd_view_rank_t *rank, char *text, size_t bytes)
{
    uint64_t number = rank->comm.waits_in & ~RD_MONITOR_REPLAYED;
    const char *replayed = rank->comm.waits_in & RD_MONITOR_REPLAYED ? ", from a graph" : "";
    rd_monitor_event_t event;
    char more[128];

    if (!number) {
        snprintf(text, bytes, "sends and receives");
    } else if (!event_of(view, rank, number, &event)) {
        snprintf(text, bytes, "collective number %llu%s", (unsigned long long)number, replayed);
    } else {
        arguments(&event, more, sizeof more);
        snprintf(text, bytes, "%s, collective number %llu%s%s", rd_view_kind_name(event.kind),
                 (unsigned long long)number, more, replayed);
    }
}

void rd_view_rank_text(const rd_view_t *view, const rd_view_rank_t *rank, char *text, size_t bytes)
{
    const rd_monitor_head_t *head = &view->processes[rank->process].reader.head;

    snprintf(text, bytes, "rank %d (%.40s:%d)", rank->comm.rank, head->host, head->pid);
}

void rd_view_where_text(const rd_view_t *view, const rd_view_rank_t *rank, bool numbers, char *text, size_t bytes)
{
    const rd_monitor_comm_t *c = &rank->comm;
    bool gone = rd_view_gone(view, rank); /* who has ended waits for nobody */
    int track = rd_view_inside(c), peer = gone ? -1 : rd_view_waits_for(c);
    const unsigned long long sends = c->calls[RD_TRACK_SEND].begun, recvs = c->calls[RD_TRACK_RECV].begun;
    char call[192], kernel[192], wait[320] = "";
    const char *what = gone                            ? "dead, "
                       : rd_view_stopped(view, rank)   ? "stopped, "
                       : c->state == RD_MONITOR_FAILED ? "failed, "
                       : c->state == RD_MONITOR_ENDED  ? "has left, "
                                                       : "";

    rd_view_call_text(view, rank, track < 0 ? RD_TRACK_COLLECTIVE : track, call, sizeof call);
    if (peer >= 0 && c->device >= 0) {
        rd_view_kernel_text(view, rank, kernel, sizeof kernel);
        if (numbers)
            snprintf(wait, sizeof wait, "; its kernel waits for rank %d since %.1f s in %s", peer,
                     rd_view_waits_since(view, rank), kernel);
        else
            snprintf(wait, sizeof wait, "; its kernel waits for rank %d in %s", peer, kernel);
    } else if (peer >= 0 && numbers && c->step > 0)
        snprintf(wait, sizeof wait, ", waits for rank %d since %.1f s, step %lld of %lld", peer,
                 rd_view_waits_since(view, rank), (long long)c->step, (long long)c->steps);
    else if (peer >= 0 && numbers)
        snprintf(wait, sizeof wait, ", waits for rank %d since %.1f s", peer, rd_view_waits_since(view, rank));
    else if (peer >= 0)
        snprintf(wait, sizeof wait, ", waits for rank %d", peer);
    if (track >= 0)
        snprintf(text, bytes, "%sin %s%s", what, call, wait);
    else if (c->shrinks_ms && !gone && numbers)
        snprintf(text, bytes, "%sin comm_shrink since %.1f s, after %s", what, since(view, rank, c->shrinks_ms), call);
    else if (c->shrinks_ms && !gone)
        snprintf(text, bytes, "%sin comm_shrink, after %s", what, call);
    else if (c->calls[RD_TRACK_COLLECTIVE].begun)
        snprintf(text, bytes, "%s%s %s%s", what, c->device >= 0 ? "has enqueued" : "outside, after", call, wait);
    else if (sends + recvs)
        snprintf(text, bytes, "%soutside, after %llu send%s and %llu recv%s", what, sends, sends == 1 ? "" : "s", recvs,
                 recvs == 1 ? "" : "s");
    else
        snprintf(text, bytes, "%soutside, no call yet", what);
}
