/* Fuzz target: the record of a process, which any process may have written, beside an honest one of the same
 * communicator. It is refused, or it is looked at twice, judged, and some are written in every format of dumps.
 *
 * An input is a list of changes of an honest record: two bytes of an offset, one of a length (1 to 8), and so many
 * bytes. An offset beyond the record cuts it short there, modulo its length. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/dumps.h"
#include "monitor/dump.h"
#include "monitor/probe.h"
#include "monitor/ticks.h"
#include "monitor/verdict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define COMMS 2
#define EVENTS 8
#define BYTES (RD_MONITOR_PAGE + COMMS * sizeof(rd_monitor_comm_t) + EVENTS * sizeof(rd_monitor_event_t))

static void write_head(rd_monitor_head_t *h, int rank)
{
    *h = (rd_monitor_head_t){.magic = RD_MONITOR_MAGIC,
                             .version = RD_MONITOR_VERSION,
                             .head_bytes = RD_MONITOR_PAGE,
                             .comm_bytes = sizeof(rd_monitor_comm_t),
                             .ncomms = COMMS,
                             .event_bytes = sizeof(rd_monitor_event_t),
                             .nevents = EVENTS,
                             .comms_at = RD_MONITOR_PAGE,
                             .events_at = RD_MONITOR_PAGE + COMMS * sizeof(rd_monitor_comm_t),
                             .bytes = BYTES,
                             .pid = 1000 + rank,
                             .job_rank = rank,
                             .job_size = 2,
                             .made_ns = 1000,
                             .clock = RD_TICKS_NS,
                             .host = "host",
                             .program = "program",
                             .next = EVENTS + 3,
                             .used = COMMS,
                             .failed = 1};
    h->failures[0] = (rd_monitor_failure_t){
        .version = 2, .comm = 8, .failed_ns = 5000, .rank = rank, .failed_rank = 1, .text = "rank 1 has left"};
}

static void write_comm(rd_monitor_comm_t *c, int i, int rank)
{
    *c = (rd_monitor_comm_t){.version = 2,
                             .id = (uint64_t)(7 + i),
                             .state = i ? RD_MONITOR_FAILED : RD_MONITOR_ALIVE,
                             .rank = rank,
                             .size = 2,
                             .nodes = 1,
                             .locals = 2,
                             .device = i - 1, /* one of host memory, one of GPUs */
                             .made_ns = 2000,
                             .name = "world",
                             .waits_for = i || rank ? -1 : 1,
                             .waits_in = 6,
                             .since_ms = 10,
                             .seen_ms = 20,
                             .step = 1,
                             .steps = 2};
    c->calls[RD_TRACK_COLLECTIVE].begun = (uint64_t)(6 - rank);
    c->calls[RD_TRACK_COLLECTIVE].ended = 5;
    c->calls[RD_TRACK_COLLECTIVE].entry = EVENTS + 2;
    c->shorts[0] = (rd_monitor_period_t){.number = 1, .waited = UINT64_C(100) << 32 | 3, .calls = 5, .peer = 2};
    c->links[0] = (rd_monitor_link_t){.peer = 2, .period = UINT64_C(3) << 32 | 1, .paces = {12, 0}};
}

static void write_events(rd_monitor_event_t *events, int rank)
{
    for (uint64_t i = 3; i < EVENTS + 3; i++)
        events[i % EVENTS] = (rd_monitor_event_t){.stamp = (i + 1) << 8 | 2,
                                                  .begun = 3000 + i,
                                                  .ended = 3500 + i,
                                                  .comm = 7 + (i & 1),
                                                  .number = i / 2,
                                                  .count = i,
                                                  .bytes = 4 * i,
                                                  .kind = (uint8_t)(i % 4 == 3 ? RD_MONITOR_SEND : i % 4),
                                                  .root = 1 - rank,
                                                  .rank = rank,
                                                  .repeats = i & 1,
                                                  .thread = 9,
                                                  .choice = rd_monitor_choice_word(1, 0)};
}

/* Returns one that this process may have, or NULL. */
static char *honest(int rank)
{
    char *base = aligned_alloc(64, (BYTES + 63) / 64 * 64);

    if (!base)
        return NULL;
    memset(base, 0, BYTES);
    write_head((rd_monitor_head_t *)(void *)base, rank);
    rd_monitor_comm_t *comms = (rd_monitor_comm_t *)(void *)(base + RD_MONITOR_PAGE);
    for (int i = 0; i < COMMS; i++)
        write_comm(&comms[i], i, rank);
    write_events((rd_monitor_event_t *)(void *)(comms + COMMS), rank);
    return base;
}

/* Returns how long the record is then. */
static size_t change(char *base, const uint8_t *data, size_t bytes)
{
    size_t length = BYTES;

    while (bytes >= 3) {
        size_t at = (size_t)data[0] | (size_t)data[1] << 8, n = data[2] % 8 + 1;
        data += 3;
        bytes -= 3;
        n = n < bytes ? n : bytes;
        if (at >= BYTES)
            length = at % BYTES;
        for (size_t i = 0; i < n && at + i < BYTES; i++)
            base[at + i] = (char)data[i];
        data += n;
        bytes -= n;
    }
    return length;
}

/* The copy ends where the record does, so that a sanitizer sees a look beyond it. */
static bool add(rd_view_t *view, char *base, size_t length)
{
    const rd_view_process_t then = {.state = 'S', .now_ns = 30000000, .now_ticks = 30000000};
    char *copy = aligned_alloc(64, (length + 63) / 64 * 64 + 64 * !length);

    if (copy)
        memcpy(copy, base, length);
    free(base);
    if (copy)
        (void)rd_view_add_past(view, copy, length, &then);
    return copy;
}

static void show(const rd_view_t *view)
{
    char text[400];

    for (int i = 0; i < view->ncomms; i++)
        for (int r = 0; r < view->comms[i].nranks; r++) {
            rd_view_where_text(view, &view->comms[i].ranks[r], true, text, sizeof text);
            rd_view_where_text(view, &view->comms[i].ranks[r], false, text, sizeof text);
            (void)rd_view_bytes(view, &view->comms[i].ranks[r]);
        }
}

/* Probes of each rank go on by a record as long as they can. */
static void probe(const rd_view_t *view)
{
    for (int i = 0; i < view->ncomms; i++)
        for (int r = 0; r < view->comms[i].nranks; r++) {
            rd_probe_step_t step = RD_PROBE_GOES_ON;
            rd_probe_t p;
            if (!rd_probe_begin(view, view->comms[i].id, view->comms[i].ranks[r].comm.rank, &p))
                continue;
            for (int k = 0; k < 4 && step == RD_PROBE_GOES_ON; k++)
                step = rd_probe_follow(view, &p);
        }
}

/* To write every format takes three quarters of the time, so the input decides whether that is done: one in eight. */
static bool writes(const uint8_t *data, size_t bytes)
{
    unsigned sum = 0;

    for (size_t i = 0; i < bytes; i++)
        sum += data[i];
    return sum % 8 == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    rd_view_t view = {0};
    rd_monitor_verdict_t v;
    char *changed = honest(1), *other = honest(0);

    if (!changed || !other)
        abort();
    size_t length = change(changed, data, bytes);
    if (!add(&view, changed, length) || !add(&view, other, BYTES) || view.nprocesses < 1)
        abort(); /* the honest one is always taken */
    if (!rd_view_look(&view, 0) || !rd_view_look(&view, 0))
        abort();
    show(&view);
    for (int i = 0; i < view.ncomms; i++)
        rd_verdict_judge(&view, &view.comms[i], &v);
    probe(&view);
    if (writes(data, bytes) && !dumps_write(&view))
        abort();
    rd_view_free(&view);
    return 0;
}
