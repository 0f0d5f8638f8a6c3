/* Records that a test writes word for word, and the verdict on them, so that what is true of them is known: no process
 * has to reach a state by chance. A program includes this once. */
#ifndef JUDGED_H
#define JUDGED_H

#include <stdlib.h>
#include <string.h>

#include "monitor/verdict.h"
#include "util/check.h"

#define COMMS 3 /* of which most tests use but one */
#define EVENTS 64
#define NOW_MS 100000

static rd_view_t view;
static rd_monitor_verdict_t verdict;
static rd_monitor_comm_t **boards;
static int nranks;

/* Of one rank of a communicator. */
static rd_monitor_comm_t *record(int rank)
{
    const size_t bytes = RD_MONITOR_PAGE + COMMS * sizeof(rd_monitor_comm_t) + EVENTS * sizeof(rd_monitor_event_t);
    char *base = aligned_alloc(64, (bytes + 63) / 64 * 64);
    const rd_view_process_t then = {.state = 'S', .now_ns = NOW_MS * UINT64_C(1000000)};

    if (!base)
        exit(1);
    memset(base, 0, bytes);
    rd_monitor_head_t *head = (void *)base;
    head->version = RD_MONITOR_VERSION;
    head->head_bytes = sizeof *head;
    head->comm_bytes = sizeof(rd_monitor_comm_t);
    head->event_bytes = sizeof(rd_monitor_event_t);
    head->ncomms = COMMS;
    head->nevents = EVENTS;
    head->comms_at = RD_MONITOR_PAGE;
    head->events_at = RD_MONITOR_PAGE + COMMS * sizeof(rd_monitor_comm_t);
    head->bytes = bytes;
    head->pid = 1000 + rank;
    head->used = 1;
    snprintf(head->host, sizeof head->host, "host");
    head->magic = RD_MONITOR_MAGIC;
    rd_monitor_comm_t *c = (void *)(base + head->comms_at);
    c->version = 2;
    c->id = 7;
    c->state = RD_MONITOR_ALIVE;
    c->rank = rank;
    c->size = nranks;
    c->nodes = 1;
    c->locals = nranks;
    c->device = -1;
    c->made_ns = 1000000;
    c->waits_for = -1;
    snprintf(c->name, sizeof c->name, "world");
    const char *why = rd_view_add_past(&view, base, bytes, &then);
    CHECK(!why, "the record is refused: %s", why);
    return c;
}

static void begin(int ranks)
{
    nranks = ranks;
    boards = calloc((size_t)ranks, sizeof *boards);
    for (int r = 0; boards && r < ranks; r++)
        boards[r] = record(r);
}

static void end(void)
{
    rd_view_free(&view);
    free(boards);
}

static void calls(int rank, uint64_t begun, uint64_t ended)
{
    boards[rank]->calls[RD_TRACK_COLLECTIVE].begun = begun;
    boards[rank]->calls[RD_TRACK_COLLECTIVE].ended = ended;
}

static void judge(void)
{
    CHECK(rd_view_look(&view, 0) && view.ncomms == 1, "%d communicators", view.ncomms);
    if (view.ncomms == 1)
        rd_verdict_judge(&view, &view.comms[0], &verdict);
}

static void look_twice(void)
{
    CHECK(rd_view_look(&view, 0), "no memory");
    judge();
}

#define EXPECT(status, rank, words) expect(__LINE__, status, rank, words)

static void expect(int line, int status, int rank, const char *words)
{
    CHECK(verdict.status == status && verdict.rank == rank && strstr(verdict.text, words),
          "line %d: status %d, rank %d: %s; wanted %d, %d and '%s'", line, verdict.status, verdict.rank, verdict.text,
          status, rank, words);
}

#endif
