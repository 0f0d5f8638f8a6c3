/* See history.h. */
#include "monitor/history.h"

#include <rondo.h>
#include <stdlib.h>
#include <string.h>

#define NONE SIZE_MAX

rd_track_t rd_history_track(int kind)
{
    if (rd_monitor_one_sided(kind))
        return kind == RD_MONITOR_PUT || kind == RD_MONITOR_SIGNAL ? RD_TRACK_SEND : RD_TRACK_RECV;
    return kind == RD_MONITOR_SEND ? RD_TRACK_SEND : kind == RD_MONITOR_RECV ? RD_TRACK_RECV : RD_TRACK_COLLECTIVE;
}

int rd_history_comm(const rd_history_t *h, uint64_t id, int rank)
{
    for (int i = 0; i < h->ncomms; i++)
        if (h->comms[i].id == id && h->comms[i].rank == rank)
            return i;
    return -1;
}

/* Of a run only the last call can have failed: the next one would not have been alike. */
rd_history_state_t rd_history_state(const rd_history_t *h, const rd_history_run_t *run, uint64_t at)
{
    if (run->event.flags & RD_MONITOR_QUEUED)
        return RD_HISTORY_ENQUEUED;
    if (at >= run->over)
        return RD_HISTORY_STARTED;
    if (run->event.result > RONDO_IN_PROGRESS && at + 1 == run->calls)
        return RD_HISTORY_FAILED;
    return run->comm >= 0 && h->comms[run->comm].device >= 0 ? RD_HISTORY_ENQUEUED : RD_HISTORY_COMPLETED;
}

const char *rd_history_state_name(rd_history_state_t state)
{
    static const char *const names[] = {"started", "failed", "enqueued", "completed"};

    return names[state];
}

/* The ring is read from its newest event back: a run's event is completed before the next one of its track is made, so
 * whoever has seen that one finds this one complete. */
static bool read_events(rd_history_t *h, const rd_reader_t *reader)
{
    uint64_t next = rd_reader_events(reader), nevents = reader->head.nevents;
    uint64_t first = next > nevents ? next - nevents : 0;

    h->runs = calloc(next > nevents ? nevents : next ? next : 1, sizeof *h->runs);
    if (!h->runs)
        return false;
    h->lost = first;
    for (uint64_t index = next; index > first; index--) {
        rd_history_run_t *run = &h->runs[h->nruns];
        if (rd_reader_event(reader, index - 1, &run->event)) {
            run->index = index - 1;
            h->nruns++;
        } else {
            h->lost++;
        }
    }
    for (size_t i = 0; i < h->nruns / 2; i++) {
        rd_history_run_t other = h->runs[i];
        h->runs[i] = h->runs[h->nruns - 1 - i];
        h->runs[h->nruns - 1 - i] = other;
    }
    return true;
}

static bool read_comms(rd_history_t *h, const rd_reader_t *reader)
{
    int most = rd_reader_comms(reader);

    h->comms = calloc((size_t)most + 1, sizeof *h->comms);
    h->entries = calloc((size_t)most + 1, sizeof *h->entries);
    if (!h->comms || !h->entries)
        return false;
    for (int i = 0; i < most; i++)
        if (rd_reader_comm(reader, i, &h->comms[h->ncomms]))
            h->entries[h->ncomms++] = i;
    return true;
}

static void count_calls(rd_history_run_t *run, const rd_monitor_calls_t *board)
{
    uint64_t number = run->event.number, begun = board->begun, ended = board->ended;

    run->calls = run->event.repeats < UINT64_MAX ? run->event.repeats + 1 : run->event.repeats;
    if (board->entry == run->index + 1 && begun >= number)
        run->calls = begun - number + 1;
    run->over = ended >= number && ended - number < run->calls ? ended - number + 1 : ended >= number ? run->calls : 0;
    if (!run->over && run->event.ended)
        run->over = 1;
}

/* A run that was its track's last when it was read may have ended since, and another one have begun. */
static void read_again(rd_history_t *h, const rd_reader_t *reader, size_t *last)
{
    for (int i = 0; i < h->ncomms * RD_TRACKS; i++) {
        rd_history_run_t *run = last[i] == NONE ? NULL : &h->runs[last[i]];
        rd_monitor_event_t event;
        if (run && h->comms[i / RD_TRACKS].calls[i % RD_TRACKS].entry != run->index + 1 &&
            rd_reader_event(reader, run->index, &event))
            run->event = event;
    }
}

bool rd_history_read(rd_history_t *h, const rd_view_process_t *process)
{
    const rd_reader_t *reader = &process->reader;

    memset(h, 0, sizeof *h);
    size_t *last = NULL;
    if (read_events(h, reader) && read_comms(h, reader))
        last = calloc((size_t)h->ncomms * RD_TRACKS + 1, sizeof *last);
    if (!last) {
        rd_history_free(h);
        return false;
    }
    for (int i = 0; i < h->ncomms * RD_TRACKS; i++)
        last[i] = NONE;
    for (size_t i = 0; i < h->nruns; i++) {
        rd_history_run_t *run = &h->runs[i];
        run->track = rd_history_track(run->event.kind);
        run->comm = rd_history_comm(h, run->event.comm, run->event.rank);
        if (run->comm >= 0)
            last[run->comm * RD_TRACKS + (int)run->track] = i;
    }
    read_again(h, reader, last);
    for (size_t i = 0; i < h->nruns; i++) {
        static const rd_monitor_calls_t none;
        rd_history_run_t *run = &h->runs[i];
        count_calls(run, run->comm < 0 ? &none : &h->comms[run->comm].calls[run->track]);
        run->begun_ns = rd_view_time(process, run->event.begun);
        run->ended_ns = rd_view_time(process, run->event.ended);
    }
    free(last);
    return true;
}

void rd_history_free(rd_history_t *h)
{
    free(h->runs);
    free(h->comms);
    free(h->entries);
    memset(h, 0, sizeof *h);
}
