/* See streams.h. */
#include "monitor/streams.h"

#include <stdlib.h>
#include <string.h>

#define FARTHEST (UINT64_C(1) << 62) /* more than the number of any call */
#define MOST_RANKS (1 << 20)

/* ---- who is where ---- */

/* Returns where the rank of a communicator is: the process, and *comm in its history; -1: it is not in the dump. */
static int process_of(const rd_dump_t *dump, uint64_t id, int rank, int *comm)
{
    for (int i = 0; i < dump->view->nprocesses; i++) {
        *comm = rd_dump_has(dump, i) ? rd_history_comm(&dump->histories[i], id, rank) : -1;
        if (*comm >= 0)
            return i;
    }
    return -1;
}

/* Returns how many of the communicator's ranks are here, or -1 if a process has two of them. */
static int members_here(const rd_dump_t *dump, uint64_t id, int size, int *members)
{
    int n = 0;

    for (int i = 0; i < dump->view->nprocesses; i++) {
        const rd_history_t *h = &dump->histories[i];
        for (int k = 0, of_process = 0; rd_dump_has(dump, i) && k < h->ncomms; k++) {
            if (h->comms[k].id != id)
                continue;
            if (of_process++ || h->comms[k].rank >= size || members[h->comms[k].rank] >= 0)
                return -1;
            members[h->comms[k].rank] = dump->numbers[i];
            n++;
        }
    }
    return n;
}

int *rd_dump_members(const rd_dump_t *dump, const rd_monitor_comm_t *comm, bool *known)
{
    int size = comm->size, job_size = 0;
    int *members = size <= MOST_RANKS ? malloc((size_t)size * sizeof *members) : NULL;
    bool alike = true;

    *known = size > MOST_RANKS;
    if (!members)
        return NULL;
    for (int r = 0; r < size; r++)
        members[r] = -1;
    int here = members_here(dump, comm->id, size, members);
    for (int i = 0; i < dump->view->nprocesses; i++)
        if (rd_dump_has(dump, i))
            job_size = dump->view->processes[i].reader.head.job_size;
    for (int r = 0; r < size; r++)
        alike &= members[r] < 0 || members[r] == r;
    if (here == size || (here > 0 && alike && size == job_size)) {
        for (int r = 0; r < size; r++)
            members[r] = members[r] < 0 ? r : members[r];
        return members;
    }
    *known = true;
    free(members);
    return NULL;
}

/* ---- streams ---- */

static int by_key(const void *a, const void *b)
{
    const rd_stream_t *x = a, *y = b;

    return x->id != y->id ? (x->id > y->id) - (x->id < y->id) : x->from != y->from ? x->from - y->from : x->to - y->to;
}

static rd_stream_t key_of(uint64_t id, rd_track_t track, int rank, int peer)
{
    rd_stream_t key = {.id = id, .from = -1, .to = -1, .start = 1, .last = UINT64_MAX};

    if (track == RD_TRACK_COLLECTIVE)
        return key;
    key.from = track == RD_TRACK_SEND ? rank : peer;
    key.to = track == RD_TRACK_SEND ? peer : rank;
    return key;
}

static rd_stream_t *find(const rd_streams_t *s, const rd_stream_t *key)
{
    return s->nstreams ? bsearch(key, s->streams, s->nstreams, sizeof *s->streams, by_key) : NULL;
}

const rd_stream_t *rd_streams_find_one(const rd_streams_t *s, uint64_t id, int from, int to)
{
    const rd_stream_t key = {.id = id, .from = from, .to = to};

    return find(s, &key);
}

static bool is_sane(const rd_history_run_t *r)
{
    return r->comm >= 0 && (r->track == RD_TRACK_COLLECTIVE || r->event.root >= 0) && r->event.number > 0 &&
           !rd_monitor_one_sided(r->event.kind) && r->event.number < FARTHEST && r->calls > 0 && r->calls < FARTHEST;
}

static rd_stream_t key_of_run(const rd_history_run_t *r)
{
    return key_of(r->event.comm, r->track, r->event.rank, r->event.root);
}

const rd_stream_t *rd_streams_of(const rd_streams_t *s, const rd_history_run_t *run)
{
    const rd_stream_t key = key_of_run(run);

    return is_sane(run) ? find(s, &key) : NULL;
}

static size_t count_runs(const rd_dump_t *dump)
{
    size_t n = 0;

    for (int i = 0; i < dump->view->nprocesses; i++)
        if (rd_dump_has(dump, i))
            n += dump->histories[i].nruns + (size_t)dump->histories[i].ncomms;
    return n;
}

/* All streams that there are, each once. */
static bool find_keys(rd_streams_t *s, const rd_dump_t *dump)
{
    size_t n = 0, kept = 0;

    s->streams = calloc(count_runs(dump) + 1, sizeof *s->streams);
    if (!s->streams)
        return false;
    for (int i = 0; i < dump->view->nprocesses; i++) {
        const rd_history_t *h = &dump->histories[i];
        for (int k = 0; rd_dump_has(dump, i) && k < h->ncomms; k++)
            s->streams[n++] = key_of(h->comms[k].id, RD_TRACK_COLLECTIVE, 0, 0);
        for (size_t k = 0; rd_dump_has(dump, i) && k < h->nruns; k++)
            if (is_sane(&h->runs[k]))
                s->streams[n++] = key_of_run(&h->runs[k]);
    }
    qsort(s->streams, n, sizeof *s->streams, by_key);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || by_key(&s->streams[kept - 1], &s->streams[i]) != 0)
            s->streams[kept++] = s->streams[i];
    s->nstreams = kept;
    return true;
}

/* ---- numbers ---- */

static void leave_out(rd_streams_t *s, uint64_t id, rd_track_t track, int rank)
{
    for (size_t i = 0; i < s->nstreams; i++)
        if (s->streams[i].id == id && rank == (track == RD_TRACK_SEND ? s->streams[i].from : s->streams[i].to))
            s->streams[i].left_out = true;
}

static void begin_later(rd_streams_t *s, uint64_t id, uint64_t number)
{
    const rd_stream_t key = key_of(id, RD_TRACK_COLLECTIVE, 0, 0);
    rd_stream_t *stream = find(s, &key);

    if (stream && stream->start < number)
        stream->start = number;
}

/* A rank has its calls of the track from `number` on. */
static void has_from(rd_streams_t *s, const rd_monitor_comm_t *c, rd_track_t track, uint64_t number)
{
    if (track == RD_TRACK_COLLECTIVE)
        begin_later(s, c->id, number);
    else if (number > 1)
        leave_out(s, c->id, track, c->rank);
}

/* Numbers the runs of a process. `expected`: of each communicator and track, the number that follows what was seen. */
static void number_runs(rd_streams_t *s, const rd_history_t *h, uint64_t *numbers, uint64_t *seen, uint64_t *expected)
{
    for (size_t i = 0; i < h->nruns; i++) {
        const rd_history_run_t *r = &h->runs[i];
        const rd_stream_t *stream = rd_streams_of(s, r);
        if (!stream)
            continue;
        uint64_t *next = &expected[r->comm * RD_TRACKS + (int)r->track];
        if (r->event.number != *next)
            has_from(s, &h->comms[r->comm], r->track, r->event.number);
        *next = r->event.number + r->calls;
        numbers[i] = r->track == RD_TRACK_COLLECTIVE ? r->event.number : seen[stream - s->streams] + 1;
        seen[stream - s->streams] += r->calls;
    }
    for (int k = 0; k < h->ncomms * RD_TRACKS; k++) {
        uint64_t begun = h->comms[k / RD_TRACKS].calls[k % RD_TRACKS].begun;
        if (expected[k] < begun + 1)
            has_from(s, &h->comms[k / RD_TRACKS], (rd_track_t)(k % RD_TRACKS), begun + 1);
    }
}

static bool number_all(rd_streams_t *s, const rd_dump_t *dump)
{
    bool good = true;

    s->numbers = calloc((size_t)dump->view->nprocesses + 1, sizeof *s->numbers);
    good = s->numbers;
    for (int i = 0; good && i < dump->view->nprocesses; i++) {
        const rd_history_t *h = &dump->histories[i];
        size_t tracks = (size_t)h->ncomms * RD_TRACKS;
        uint64_t *seen = calloc(s->nstreams + 1, sizeof *seen);
        uint64_t *expected = calloc(tracks + 1, sizeof *expected);
        s->numbers[i] = calloc(h->nruns + 1, sizeof **s->numbers);
        good = seen && expected && s->numbers[i];
        for (size_t k = 0; good && k < tracks; k++)
            expected[k] = 1;
        if (good)
            number_runs(s, h, s->numbers[i], seen, expected);
        free(seen);
        free(expected);
    }
    return good;
}

static void find_both_sides(rd_streams_t *s, const rd_dump_t *dump)
{
    int comm;

    for (size_t i = 0; i < s->nstreams; i++) {
        rd_stream_t *stream = &s->streams[i];
        if (stream->from >= 0 && (process_of(dump, stream->id, stream->from, &comm) < 0 ||
                                  process_of(dump, stream->id, stream->to, &comm) < 0))
            stream->left_out = true;
    }
}

/* ---- communicators that go on ---- */

/* Has a rank made a call since the first look? The rings are read after the second one. */
static bool goes_on(const rd_dump_t *dump, uint64_t id)
{
    const rd_view_comm_t *before = rd_view_comm_of(dump->view->before, dump->view->nbefore, id);

    for (int i = 0; before && i < dump->view->nprocesses; i++)
        for (int k = 0; k < dump->histories[i].ncomms; k++) {
            const rd_monitor_comm_t *c = &dump->histories[i].comms[k];
            const rd_view_rank_t *was = c->id == id ? rd_view_rank_of(before, c->rank) : NULL;
            if (was &&
                (rd_view_begun(&was->comm) != rd_view_begun(c) || rd_view_inside(&was->comm) != rd_view_inside(c)))
                return true;
        }
    return false;
}

/* How many messages of each stream are over on either side. */
static void count_over(const rd_streams_t *s, const rd_dump_t *dump, uint64_t *sent, uint64_t *taken)
{
    for (int i = 0; i < dump->view->nprocesses; i++)
        for (size_t k = 0; k < dump->histories[i].nruns; k++) {
            const rd_history_run_t *r = &dump->histories[i].runs[k];
            const rd_stream_t *stream = rd_streams_of(s, r);
            if (stream && r->track != RD_TRACK_COLLECTIVE)
                (r->track == RD_TRACK_SEND ? sent : taken)[stream - s->streams] += r->over;
        }
}

static uint64_t over_on_all(const rd_dump_t *dump, uint64_t id)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < dump->view->nprocesses; i++)
        for (int k = 0; k < dump->histories[i].ncomms; k++) {
            const rd_monitor_comm_t *c = &dump->histories[i].comms[k];
            if (c->id == id && c->calls[RD_TRACK_COLLECTIVE].ended < least)
                least = c->calls[RD_TRACK_COLLECTIVE].ended;
        }
    return least;
}

static bool find_last(rd_streams_t *s, const rd_dump_t *dump)
{
    uint64_t *sent = calloc(s->nstreams + 1, sizeof *sent), *taken = calloc(s->nstreams + 1, sizeof *taken);
    bool good = sent && taken, on = false;

    if (good)
        count_over(s, dump, sent, taken);
    for (size_t i = 0; good && i < s->nstreams; i++) {
        rd_stream_t *stream = &s->streams[i];
        if (i == 0 || stream->id != s->streams[i - 1].id)
            on = goes_on(dump, stream->id);
        if (on)
            stream->last = stream->from < 0 ? over_on_all(dump, stream->id) : sent[i] < taken[i] ? sent[i] : taken[i];
    }
    free(sent);
    free(taken);
    return good;
}

/* ---- where runs end ---- */

typedef struct end {
    size_t stream;
    uint64_t number;
} end_t;

static int by_number(const void *a, const void *b)
{
    const end_t *x = a, *y = b;

    return x->stream != y->stream ? (x->stream > y->stream) - (x->stream < y->stream)
                                  : (x->number > y->number) - (x->number < y->number);
}

static bool find_ends(rd_streams_t *s, const rd_dump_t *dump)
{
    size_t n = 0, most = 2 * count_runs(dump) + s->nstreams + 1;
    end_t *all = calloc(most, sizeof *all);

    s->ends = calloc(most, sizeof *s->ends);
    for (int i = 0; all && s->ends && i < dump->view->nprocesses; i++)
        for (size_t k = 0; k < dump->histories[i].nruns; k++) {
            const rd_history_run_t *r = &dump->histories[i].runs[k];
            const rd_stream_t *stream = rd_streams_of(s, r);
            if (!stream)
                continue;
            all[n++] = (end_t){(size_t)(stream - s->streams), s->numbers[i][k]};
            all[n++] = (end_t){(size_t)(stream - s->streams), s->numbers[i][k] + r->calls};
        }
    for (size_t i = 0; all && s->ends && i < s->nstreams; i++)
        if (s->streams[i].last < FARTHEST)
            all[n++] = (end_t){i, s->streams[i].last + 1};
    if (all && s->ends)
        qsort(all, n, sizeof *all, by_number);
    for (size_t i = 0; all && s->ends && i < n; i++) {
        rd_stream_t *stream = &s->streams[all[i].stream];
        if (i > 0 && by_number(&all[i - 1], &all[i]) == 0)
            continue;
        if (stream->ends++ == 0)
            stream->first = s->nends;
        s->ends[s->nends++] = all[i].number;
    }
    bool good = all && s->ends;
    free(all);
    return good;
}

uint64_t rd_streams_next(const rd_streams_t *s, const rd_stream_t *stream, uint64_t from, uint64_t last)
{
    const uint64_t *ends = s->ends + stream->first;
    size_t low = 0, high = stream->ends;

    from = from < stream->start ? stream->start : from;
    last = last > stream->last ? stream->last : last;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ends[middle] + RD_STREAM_NEAR > from)
            high = middle;
        else
            low = middle + 1;
    }
    if (low == stream->ends)
        return 0;
    uint64_t near = ends[low] > RD_STREAM_NEAR ? ends[low] - RD_STREAM_NEAR : 1;
    uint64_t number = near > from ? near : from;
    return number <= last ? number : 0;
}

bool rd_streams_find(rd_streams_t *s, const rd_dump_t *dump)
{
    memset(s, 0, sizeof *s);
    if (find_keys(s, dump) && number_all(s, dump)) {
        find_both_sides(s, dump);
        if (find_last(s, dump) && find_ends(s, dump))
            return true;
    }
    rd_streams_free(s, dump);
    return false;
}

void rd_streams_free(rd_streams_t *s, const rd_dump_t *dump)
{
    for (int i = 0; s->numbers && i < dump->view->nprocesses; i++)
        free(s->numbers[i]);
    free(s->numbers);
    free(s->streams);
    free(s->ends);
    memset(s, 0, sizeof *s);
}
