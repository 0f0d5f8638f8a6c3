/* See durations.h. */
#include "monitor/durations.h"

#include <string.h>

static const double bounds[RD_DURATION_BUCKETS - 1] = {1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1};
const char *const rd_duration_bounds[RD_DURATION_BUCKETS] = {"1e-05", "0.0001", "0.001", "0.01", "0.1", "1", "+Inf"};

static bool on_device(const rd_reader_t *reader, uint64_t id)
{
    rd_monitor_comm_t comm;

    for (int i = 0; i < rd_reader_comms(reader); i++)
        if (rd_reader_comm(reader, i, &comm) && comm.id == id)
            return comm.device >= 0;
    return false;
}

static void add(rd_duration_t *of, double seconds)
{
    int i = 0;

    while (i < RD_DURATION_BUCKETS - 1 && seconds > bounds[i])
        i++;
    of->buckets[i]++;
    of->count++;
    of->seconds += seconds;
}

/* Returns false if it has not ended. */
static bool take(rd_durations_t *d, const rd_view_process_t *process, uint64_t index)
{
    rd_monitor_event_t e;

    if (!rd_reader_event(&process->reader, index, &e)) {
        d->lost++;
        return true;
    }
    if (!e.ended)
        return false;
    uint64_t begun = rd_view_time(process, e.begun), ended = rd_view_time(process, e.ended);
    if (begun && ended >= begun && e.kind < RD_DURATION_KINDS && !on_device(&process->reader, e.comm))
        add(&d->kinds[e.kind], (double)(ended - begun) * 1e-9);
    return true;
}

static void keep(rd_durations_t *d, uint64_t index)
{
    if (d->npending < RD_DURATION_PENDING)
        d->pending[d->npending++] = index;
    else
        d->lost++;
}

void rd_durations_read(rd_durations_t *d, const rd_view_process_t *process)
{
    const rd_monitor_head_t *head = &process->reader.head;
    uint64_t events = rd_reader_events(&process->reader), first = d->next;
    int n = d->npending;

    if (d->record != head->made_ns) {
        memset(d, 0, sizeof *d);
        d->record = head->made_ns;
        first = 0;
        n = 0;
    }
    d->npending = 0;
    for (int i = 0; i < n; i++)
        if (!take(d, process, d->pending[i]))
            d->pending[d->npending++] = d->pending[i];
    if (events - first > head->nevents) {
        d->lost += events - first - head->nevents;
        first = events - head->nevents;
    }
    for (; first < events; first++)
        if (!take(d, process, first))
            keep(d, first);
    d->next = events;
}
