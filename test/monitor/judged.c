/* Verdicts on ranks that do not move: late, dead, failed, or in calls that do not meet. Thousands of ranks need no
 * machine, as their records are written here (judged.h).
 *
 *     judged [--ranks N]     ranks of the long chain (4096) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "monitor/judged.h"
#include "monitor/probe.h"
#include "sched/program.h"
#include "util/harness.h"

#define LONG_S 3 /* for a verdict on the long chain */

/* In its last call, since a second. */
static void waits(int rank, int peer)
{
    boards[rank]->waits_in = boards[rank]->calls[RD_TRACK_COLLECTIVE].begun;
    boards[rank]->waits_for = peer;
    boards[rank]->since_ms = NOW_MS - 1000;
    boards[rank]->seen_ms = NOW_MS;
}

/* ---- late, or what it sent is lost ---- */

static void late_or_lost(void)
{
    begin(3);
    calls(0, 5, 4);
    calls(1, 4, 4);
    calls(2, 5, 4);
    waits(0, 2);
    waits(2, 1);
    look_twice();
    EXPECT(RD_VERDICT_LATE, 1, "rank 1 (host:1001) is late, by 1 call");
    EXPECT(RD_VERDICT_LATE, 1, "; 2 ranks wait in all");
    calls(1, 5, 5); /* it came, and has gone: it is not late */
    look_twice();
    EXPECT(RD_VERDICT_UNKNOWN, -1, "rank 1 (host:1001), which has made that call and is outside");
    calls(1, 9, 9);
    look_twice();
    EXPECT(RD_VERDICT_UNKNOWN, -1, "what it sent has not come");
    calls(1, 5, 4);
    waits(1, 0);
    look_twice();
    EXPECT(RD_VERDICT_UNKNOWN, -1, "in a circle");
    boards[1]->state = RD_MONITOR_ENDED;
    look_twice();
    EXPECT(RD_VERDICT_BLAMED, 1, "rank 1 has left");
    boards[1]->state = RD_MONITOR_ALIVE;
    calls(1, 3, 3);
    CHECK(rd_view_look(&view, 0), "no memory");
    calls(1, 4, 4); /* it moves */
    judge();
    EXPECT(RD_VERDICT_UNKNOWN, -1, "which makes progress");
    end();
}

/* ---- calls that do not meet ---- */

/* A rank's next call, in its record: a collective of that kind, or a message to or from `peer`. */
static void call(int rank, int kind, int peer, int thread, int flags)
{
    const rd_track_t track = kind == RD_MONITOR_SEND                                     ? RD_TRACK_SEND
                             : kind == RD_MONITOR_RECV || kind == RD_MONITOR_WAIT_SIGNAL ? RD_TRACK_RECV
                                                                                         : RD_TRACK_COLLECTIVE;
    rd_monitor_head_t *head = (void *)((char *)boards[rank] - RD_MONITOR_PAGE);
    rd_monitor_event_t *events = (void *)((char *)head + head->events_at);
    const uint64_t n = head->next++;

    events[n % EVENTS] = (rd_monitor_event_t){.stamp = (n + 1) << 8 | 2,
                                              .comm = boards[rank]->id,
                                              .number = ++boards[rank]->calls[track].begun,
                                              .count = 8,
                                              .bytes = 8,
                                              .kind = (uint8_t)kind,
                                              .flags = (uint8_t)flags,
                                              .root = peer,
                                              .rank = rank,
                                              .thread = (uint64_t)thread};
    boards[rank]->calls[track].entry = n + 1;
}

static void ends(int rank)
{
    for (int track = 0; track < RD_TRACKS; track++)
        boards[rank]->calls[track].ended = boards[rank]->calls[track].begun;
}

static void blocks(int rank, int peer)
{
    boards[rank]->waits_in = 0;
    for (int track = 0; track < RD_TRACKS; track++)
        boards[rank]->waits_in += boards[rank]->calls[track].begun;
    boards[rank]->waits_for = peer;
    boards[rank]->since_ms = NOW_MS - 1000;
    boards[rank]->seen_ms = NOW_MS;
}

/* Another thread of the rank's process calls, in a communicator that is not seen. */
static void another_calls(int rank, int thread)
{
    rd_monitor_head_t *head = (void *)((char *)boards[rank] - RD_MONITOR_PAGE);
    rd_monitor_event_t *events = (void *)((char *)head + head->events_at);
    const uint64_t n = head->next++;

    events[n] = (rd_monitor_event_t){.stamp = (n + 1) << 8 | 2, .comm = 9, .number = 1, .thread = (uint64_t)thread};
}

/* Rank 0 receives from rank 2, which calls a collective, as rank 1 does. */
static void collective_and_message(int thread, int flags)
{
    begin(3);
    for (int r = 0; r < 3; r++) {
        call(r, RD_BARRIER, 0, thread, 0);
        ends(r);
    }
    call(2, RD_MONITOR_SEND, 1, 1, 0); /* to another one */
    ends(2);
    call(0, RD_MONITOR_RECV, 2, 1, flags);
    call(1, RD_BARRIER, 0, 1, 0);
    call(2, RD_BARRIER, 0, 1, 0);
    blocks(0, 2);
    blocks(1, 2);
    blocks(2, 0);
}

static void do_not_meet(void)
{
    static const char words[] =
        "do not meet: rank 0 (host:1000) waits in recv, number 1 (8 bytes, rank 2), which rank 2 "
        "has not sent; rank 2 (host:1002) waits in barrier, collective number 2, which rank 0 "
        "has not called";

    collective_and_message(1, 0);
    look_twice();
    EXPECT(RD_VERDICT_BLAMED, -1, words);
    CHECK(verdict.circle, "calls that do not meet are a circle");
    rd_verdict_of(&view, &view.comms[0], 1, 0, &verdict); /* as an error says it */
    EXPECT(RD_VERDICT_BLAMED, -1, words);
    boards[0]->calls[RD_TRACK_RECV].begun++; /* twice the same: the second one waits */
    ends(0);
    boards[0]->calls[RD_TRACK_RECV].ended--;
    blocks(0, 2);
    look_twice();
    EXPECT(RD_VERDICT_BLAMED, -1, "recv, number 2 (8 bytes, rank 2), which rank 2 has not sent");
    boards[2]->calls[RD_TRACK_COLLECTIVE].ended++;
    call(2, RD_MONITOR_SEND, 0, 1, 0);
    boards[2]->calls[RD_TRACK_SEND].begun++;
    ends(2);
    call(2, RD_BARRIER, 0, 1, 0); /* it has sent both: they are on their way */
    blocks(2, 0);
    look_twice();
    EXPECT(RD_VERDICT_UNKNOWN, -1,
           "in a circle: rank 0 (host:1000) waits in recv, number 2 (8 bytes, rank 2) for rank 2;");
    CHECK(!verdict.circle, "what is under way may end it");
    end();
    collective_and_message(2, 0); /* another thread makes calls, too */
    look_twice();
    EXPECT(RD_VERDICT_UNKNOWN, -1, "in a circle");
    end();
    collective_and_message(1, 0); /* or has, elsewhere, and may be who repeats what this rank called */
    boards[2]->calls[RD_TRACK_SEND].begun++;
    boards[2]->calls[RD_TRACK_SEND].ended++;
    blocks(2, 0);
    look_twice();
    EXPECT(RD_VERDICT_BLAMED, -1, "do not meet");
    another_calls(2, 2);
    look_twice();
    EXPECT(RD_VERDICT_UNKNOWN, -1, "in a circle");
    boards[2]->thread = 1; /* who waited last, as far as is known the only one */
    look_twice();
    EXPECT(RD_VERDICT_BLAMED, -1, "do not meet");
    end();
    collective_and_message(1, RD_MONITOR_GROUPED); /* and whoever has submitted a group is free */
    look_twice();
    EXPECT(RD_VERDICT_UNKNOWN, -1, "in a circle");
    end();
    begin(2); /* a wait for a signal has a number among those of receives, and must not be counted as one */
    call(0, RD_MONITOR_RECV, 1, 1, 0);
    call(0, RD_MONITOR_WAIT_SIGNAL, 1, 1, 0);
    ends(0);
    call(0, RD_MONITOR_RECV, 1, 1, 0);
    for (int i = 0; i < 2; i++)
        call(1, RD_MONITOR_SEND, 0, 1, 0);
    ends(1);
    call(1, RD_BARRIER, 0, 1, 0);
    blocks(0, 1);
    blocks(1, 0);
    look_twice();
    EXPECT(RD_VERDICT_UNKNOWN, -1, "in a circle");
    end();
}

/* A rank that is outside of calls is late with a message that it has not sent, and not with one that it has. */
static void late_with_message(void)
{
    begin(3);
    call(0, RD_MONITOR_RECV, 1, 1, 0);
    blocks(0, 1);
    look_twice();
    EXPECT(RD_VERDICT_LATE, 1, "rank 1 (host:1001) is late: outside, no call yet; ");
    call(1, RD_MONITOR_SEND, 2, 1, 0);
    ends(1);
    look_twice();
    EXPECT(RD_VERDICT_LATE, 1, "rank 1 (host:1001) is late: outside, after 1 send and 0 recvs; ");
    call(1, RD_MONITOR_SEND, 0, 1, 0);
    ends(1);
    look_twice();
    EXPECT(RD_VERDICT_UNKNOWN, -1, "rank 1 (host:1001), which has made the call at the other end and is outside");
    end();
}

/* Each sends to the next one, and receives behind that. */
static void all_send(void)
{
    begin(5);
    for (int r = 0; r < 5; r++) {
        call(r, RD_MONITOR_SEND, (r + 1) % 5, 1, 0);
        blocks(r, (r + 1) % 5);
    }
    look_twice();
    EXPECT(RD_VERDICT_BLAMED, -1,
           "rank 0 (host:1000) waits in send, number 1 (8 bytes, rank 1), which rank 1 does not receive;");
    CHECK(strstr(verdict.text, "and so on, 5 ranks in all"), "%s", verdict.text);
    ((rd_monitor_head_t *)(void *)((char *)boards[3] - RD_MONITOR_PAGE))->next = 0; /* the record forgets */
    look_twice();
    EXPECT(RD_VERDICT_UNKNOWN, -1, "in a circle: rank 0 (host:1000) waits in send");
    end();
}

/* Each of two ranks is in a barrier and waits for the other: rank 0 in communicator 7, rank 1 in communicator 8. Of
 * the latter it is an event with these flags. */
static void two_orders(int flags)
{
    begin(2);
    for (int r = 0; r < 2; r++) {
        rd_monitor_head_t *head = (void *)((char *)boards[r] - RD_MONITOR_PAGE);
        rd_monitor_comm_t *other = boards[r] + 1;
        head->used = 2;
        memcpy((void *)other, (const void *)boards[r], sizeof *other);
        other->id = 8;
        call(r, RD_BARRIER, 0, 1, r ? flags : 0);
        blocks(r, 1 - r);
        if (r == 0)
            continue;
        rd_monitor_event_t *event = (void *)((char *)head + head->events_at);
        event->comm = 8; /* its call was of the other one */
        memcpy((void *)other->calls, (const void *)boards[r]->calls, sizeof other->calls);
        memset((void *)boards[r]->calls, 0, sizeof boards[r]->calls);
        other->waits_in = 1;
        other->waits_for = 0;
        other->since_ms = NOW_MS - 1000;
        other->seen_ms = NOW_MS;
    }
}

/* A rank has made its first barrier in the first or the second communicator. */
static void has_made(int rank, int place)
{
    rd_monitor_head_t *head = (void *)((char *)boards[rank] - RD_MONITOR_PAGE);
    rd_monitor_event_t *events = (void *)((char *)head + head->events_at);
    rd_monitor_comm_t *c = boards[rank] + place;
    const uint64_t n = head->next++;

    events[n] = (rd_monitor_event_t){
        .stamp = (n + 1) << 8 | 2, .comm = c->id, .number = 1, .kind = RD_BARRIER, .rank = rank, .thread = 1};
    c->calls[RD_TRACK_COLLECTIVE].begun = c->calls[RD_TRACK_COLLECTIVE].ended = 1;
    c->calls[RD_TRACK_COLLECTIVE].entry = n + 1;
}

static void look_twice_at(int ncomms)
{
    for (int look = 0; look < 2; look++)
        CHECK(rd_view_look(&view, 0) && view.ncomms == ncomms, "%d communicators", view.ncomms);
}

static void judge_the_first(void)
{
    look_twice_at(2);
    rd_verdict_judge(&view, &view.comms[0], &verdict);
}

/* The other one's call is over when its limit is: that communicator is still said to live at the second look. */
static void order_that_fails(void)
{
    rd_monitor_comm_t *other = boards[1] + 1;

    CHECK(rd_view_look(&view, 0), "no memory");
    other->failed[RD_TRACK_COLLECTIVE] = 1 << 8 | RONDO_ERR_TIMEOUT;
    other->calls[RD_TRACK_COLLECTIVE].ended = 1;
    CHECK(rd_view_look(&view, 0), "no memory");
    rd_verdict_judge(&view, &view.comms[0], &verdict);
    EXPECT(RD_VERDICT_BLAMED, -1, "in different communicators");
    CHECK(!verdict.circle, "it is over where a call has failed");
    other->calls[RD_TRACK_COLLECTIVE].ended = 0;
    judge_the_first();
    other->calls[RD_TRACK_COLLECTIVE].ended = 1; /* what has failed is one before, of another thread perhaps */
    CHECK(rd_view_look(&view, 0), "no memory");
    rd_verdict_judge(&view, &view.comms[0], &verdict);
    EXPECT(RD_VERDICT_LATE, 1, "rank 1 (host:1001) is late");
    other->failed[RD_TRACK_COLLECTIVE] = 0;
    other->calls[RD_TRACK_COLLECTIVE].ended = 0;
}

/* Two communicators of one name are called in two orders: their numbers tell them apart. */
static void order_of_one_name(void)
{
    two_orders(0);
    judge_the_first();
    EXPECT(RD_VERDICT_BLAMED, -1, "waits in 'world' (0000000000000007) in barrier");
    CHECK(verdict.circle, "two orders are a circle");
    CHECK(strstr(verdict.text, "which waits in 'world' (0000000000000008) in barrier"), "%s", verdict.text);
    for (int r = 0; r < 2; r++) { /* sentences have the beginnings of long names */
        memset((void *)boards[r]->name, 'n', 31);
        memset((void *)(boards[r] + 1)->name, 'n', 32);
    }
    judge_the_first();
    EXPECT(RD_VERDICT_BLAMED, -1, "nnn' (0000000000000007) in barrier");
    order_that_fails();
    (boards[1] + 1)->waits_for = -1; /* then it is late, in the other one */
    judge_the_first();
    EXPECT(RD_VERDICT_LATE, 1,
           "it is in another communicator, 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn' (0000000000000008): in barrier");
    end();
}

/* Of calls that repeat one, the record has the thread of the first. In rank 1's process another thread has called, too;
 * where the board says who has waited, that counts. */
static void order_by_threads(void)
{
    two_orders(0);
    has_made(1, 0);
    boards[1]->calls[RD_TRACK_COLLECTIVE].begun = boards[1]->calls[RD_TRACK_COLLECTIVE].ended = 2;
    calls(0, 3, 2);
    blocks(0, 1);
    boards[0]->thread = 1;
    judge_the_first();
    EXPECT(RD_VERDICT_BLAMED, -1, "in different communicators");
    boards[1]->thread = 2; /* which makes the calls of the first one now */
    judge_the_first();
    EXPECT(RD_VERDICT_LATE, 1, "rank 1 (host:1001) is late, by 1 call: outside, after barrier, collective number 2");
    CHECK(!strstr(verdict.text, "in another communicator"), "%s", verdict.text);
    (boards[1] + 1)->thread = 2; /* and has taken over the other one, which repeats */
    judge_the_first();
    EXPECT(RD_VERDICT_LATE, 1, "is late");
    boards[1]->thread = 0;
    (boards[1] + 1)->thread = 1;
    judge_the_first();
    EXPECT(RD_VERDICT_BLAMED, -1, "in different communicators");
    another_calls(1, 2);
    judge_the_first();
    EXPECT(RD_VERDICT_LATE, 1, "is late");
    boards[1]->thread = 1;
    judge_the_first();
    EXPECT(RD_VERDICT_BLAMED, -1, "in different communicators");
    boards[1]->calls[RD_TRACK_COLLECTIVE].entry = 0; /* the ring has no event of it any more */
    judge_the_first();
    EXPECT(RD_VERDICT_BLAMED, -1, "in different communicators");
    boards[1]->thread = 0;
    judge_the_first();
    EXPECT(RD_VERDICT_LATE, 1, "is late");
    CHECK(!strstr(verdict.text, "in another communicator"), "%s", verdict.text);
    end();
    two_orders(0);
    another_calls(1, 2); /* whose the first call of rank 1 may be */
    judge_the_first();
    EXPECT(RD_VERDICT_LATE, 1, "is late, by 1 call: outside, no call yet");
    CHECK(!strstr(verdict.text, "in another communicator"), "%s", verdict.text);
    end();
}

/* Ranks 1 and 2 of the first communicator are threads of one process, so the thread that is in the second one may be
 * that of rank 2. */
static void threads_as_ranks(void)
{
    two_orders(0);
    rd_monitor_comm_t *third = boards[1] + 2;
    ((rd_monitor_head_t *)(void *)((char *)boards[1] - RD_MONITOR_PAGE))->used = 3;
    memcpy((void *)third, (const void *)boards[1], sizeof *third);
    third->rank = 2;
    boards[0]->size = boards[1]->size = third->size = 3;
    judge_the_first();
    EXPECT(RD_VERDICT_LATE, 1, "is late, by 1 call: outside, no call yet");
    CHECK(!strstr(verdict.text, "in another communicator"), "%s", verdict.text);
    end();
}

/* Ranks that seem to wait for each other in two communicators, of which one is free to go on, or has what it needs. */
static void no_order(void)
{
    two_orders(RD_MONITOR_GROUPED); /* rank 1 may have submitted it */
    judge_the_first();
    CHECK(!verdict.circle, "a submitted group holds nobody");
    EXPECT(RD_VERDICT_LATE, 1, "it is in another communicator, 'world' (0000000000000008): in barrier");
    end();
    two_orders(0);
    (boards[1] + 1)->device = 0; /* who has enqueued it may go on */
    judge_the_first();
    EXPECT(RD_VERDICT_LATE, 1, "it is in another communicator, 'world' (0000000000000008): in barrier");
    end();
    two_orders(0);
    (boards[1] + 1)->calls[RD_TRACK_SEND].begun = 1; /* a thread waits in each of two calls, or in none */
    (boards[1] + 1)->waits_in = 2;
    judge_the_first();
    EXPECT(RD_VERDICT_LATE, 1, "it is in another communicator, 'world' (0000000000000008): in barrier");
    end();
    two_orders(0);
    has_made(1, 0); /* what rank 0 waits for */
    judge_the_first();
    EXPECT(RD_VERDICT_UNKNOWN, -1, "rank 1 (host:1001), which has made that call and is outside");
    end();
    two_orders(0);
    has_made(0, 1); /* what rank 1 waits for */
    judge_the_first();
    EXPECT(RD_VERDICT_LATE, 1, "it is in another communicator, 'world' (0000000000000008): in barrier");
    end();
}

/* Rank 0 waits in 7 for rank 1, which waits in 8 for rank 2. That one is late in both, and it is the cause. */
static void late_in_the_end(void)
{
    begin(3);
    for (int r = 1; r < 3; r++) {
        rd_monitor_head_t *head = (void *)((char *)boards[r] - RD_MONITOR_PAGE);
        rd_monitor_comm_t *other = boards[r] + 1;
        head->used = 2;
        memcpy((void *)other, (const void *)boards[r], sizeof *other);
        other->id = 8;
        snprintf(other->name, sizeof other->name, "part");
    }
    call(0, RD_BARRIER, 0, 1, 0);
    blocks(0, 1);
    rd_monitor_comm_t *world = boards[1];
    boards[1] = world + 1; /* its record has the call in 8 */
    has_made(2, 0);
    calls(2, 0, 0);
    rd_monitor_head_t *head = (void *)((char *)world - RD_MONITOR_PAGE);
    rd_monitor_event_t *events = (void *)((char *)head + head->events_at);
    head->next = 1;
    events[0] =
        (rd_monitor_event_t){.stamp = 1 << 8 | 2, .comm = 8, .number = 1, .kind = RD_BARRIER, .rank = 1, .thread = 1};
    boards[1]->calls[RD_TRACK_COLLECTIVE].begun = boards[1]->calls[RD_TRACK_COLLECTIVE].entry = 1;
    blocks(1, 2);
    judge_the_first();
    EXPECT(RD_VERDICT_LATE, 2, "rank 2 (host:1002) is late, by 1 call: outside");
    EXPECT(RD_VERDICT_LATE, 2,
           "; rank 1 (host:1001) waits for it in another communicator, and for that one rank 0 (host:");
    calls(2, 1, 1); /* it is late in 8 alone */
    judge_the_first();
    EXPECT(RD_VERDICT_LATE, 1, "rank 1 (host:1001) is late");
    EXPECT(RD_VERDICT_LATE, 1, "; in the end it waits for rank 2 (host:1002) of 'part', which is late");
    (boards[2] + 1)->calls[RD_TRACK_COLLECTIVE].begun = 1; /* nor there */
    (boards[2] + 1)->calls[RD_TRACK_COLLECTIVE].ended = 1;
    judge_the_first();
    EXPECT(RD_VERDICT_LATE, 1, "rank 1 (host:1001) is late");
    CHECK(!strstr(verdict.text, "in the end"), "%s", verdict.text);
    boards[1] = world;
    end();
}

/* Two orders from node to node. The node of rank 1 finds that it is late in the first communicator, as it waits for
 * rank 0 in the second; and that of rank 0, by this hop, that it waits for the same. */
static void two_orders_far(void)
{
    two_orders(0);
    rd_view_drop(&view, 0);
    CHECK(rd_view_look(&view, 0) && view.ncomms == 2, "%d communicators", view.ncomms);
    rd_verdict_of(&view, &view.comms[0], 1, 0, &verdict); /* in a message: what is owed is not known */
    EXPECT(RD_VERDICT_LATE, 1, "it is in another communicator");
    CHECK(!verdict.hop.comm, "the hop of a message leads to %d", (int)verdict.hop.comm);
    rd_verdict_of(&view, &view.comms[0], 1, 1, &verdict);
    EXPECT(RD_VERDICT_LATE, 1, "it is in another communicator");
    const rd_verdict_hop_t hop = verdict.hop;
    CHECK(hop.comm == 8 && hop.number == 1 && hop.waits_for == 0, "it leads to communicator %d, number %d, rank %d",
          (int)hop.comm, (int)hop.number, (int)hop.waits_for);
    end();
    two_orders(0);
    rd_view_drop(&view, 1);
    look_twice_at(2);
    CHECK(rd_verdict_closes(&view, &view.comms[0], 1, 1, &hop, "rank 1 is late", &verdict), "it is no circle");
    EXPECT(RD_VERDICT_BLAMED, -1, "and that in the end for the first: rank 1 is late");
    CHECK(!rd_verdict_closes(&view, &view.comms[0], 1, 2, &hop, "", &verdict), "in another call");
    CHECK(!rd_verdict_closes(&view, &view.comms[0], 0, 1, &hop, "", &verdict), "for another rank");
    has_made(0, 1);
    look_twice_at(2);
    CHECK(!rd_verdict_closes(&view, &view.comms[0], 1, 1, &hop, "", &verdict), "what is waited for was called");
    end();
}

/* ---- probes, each step of which sees one record ---- */

/* Follows a probe of a rank for so many steps at most. Returns how it has ended. */
static rd_probe_step_t probe_of(uint64_t comm, int rank, int most, rd_probe_t *p)
{
    rd_probe_step_t step = RD_PROBE_GOES_ON;

    CHECK(rd_view_look(&view, 0), "no memory");
    if (!rd_probe_begin(&view, comm, rank, p))
        return RD_PROBE_ENDS;
    for (int i = 0; i < most && step == RD_PROBE_GOES_ON; i++)
        step = rd_probe_follow(&view, p);
    return step;
}

static void expect_text(const rd_probe_t *p, const char *words)
{
    char text[RD_ERROR_BYTES];

    rd_probe_text(p, text, sizeof text);
    CHECK(strstr(text, words), "%s; wanted '%s'", text, words);
}

/* Rank 0 receives from rank 2, which is in a collective, and rank 1 waits for them. */
static void probes_of_messages(void)
{
    rd_probe_t p;

    collective_and_message(1, 0);
    CHECK(probe_of(7, 0, 2, &p) == RD_PROBE_IS_BACK && p.waits == 2 && !p.several, "%d waits", (int)p.waits);
    expect_text(&p, "do not meet: rank 0 (host:1000) waits in 'world' in recv, number 1 (8 bytes, rank 2) for rank 2, "
                    "which waits as rank 2 (host:1002) of 'world' in barrier, collective number 2");
    CHECK(probe_of(7, 2, 2, &p) == RD_PROBE_IS_BACK, "of the other one");
    CHECK(probe_of(7, 1, 9, &p) == RD_PROBE_GOES_ON, "rank 1, for which nobody waits, is none of them");
    boards[2]->calls[RD_TRACK_COLLECTIVE].ended++;
    call(2, RD_MONITOR_SEND, 0, 1, 0);
    ends(2);
    call(2, RD_BARRIER, 0, 1, 0);
    blocks(2, 0);
    CHECK(probe_of(7, 0, 9, &p) == RD_PROBE_ENDS, "rank 2 has sent it");
    CHECK(probe_of(7, 2, 9, &p) == RD_PROBE_ENDS, "rank 2 has sent it");
    end();
    collective_and_message(2, 0); /* another thread makes calls, too */
    CHECK(probe_of(7, 0, 9, &p) == RD_PROBE_ENDS, "a rank of two threads");
    end();
    collective_and_message(1, RD_MONITOR_GROUPED);
    CHECK(probe_of(7, 0, 9, &p) == RD_PROBE_ENDS, "a submitted group holds nobody");
    CHECK(probe_of(7, 2, 9, &p) == RD_PROBE_ENDS, "a submitted group holds nobody");
    end();
}

/* Rank 1 waits for rank 2 in a collective in which both are, and that for rank 0, which receives from rank 1. */
static rd_probe_step_t probe_within(int kind, int flags)
{
    rd_probe_t p;

    begin(3);
    call(0, RD_MONITOR_RECV, 1, 1, 0);
    call(1, kind, 2, 1, flags);
    call(2, kind, 2, 1, flags);
    blocks(0, 1);
    blocks(1, 2);
    blocks(2, 0);
    const rd_probe_step_t step = probe_of(7, 0, 9, &p);
    end();
    return step;
}

static void probes_within_a_call(void)
{
    CHECK(probe_within(RD_ALLREDUCE, 0) == RD_PROBE_IS_BACK, "an allreduce ends when all have come");
    CHECK(probe_within(RD_BROADCAST, 0) == RD_PROBE_ENDS, "a broadcast may end before all have come");
    CHECK(probe_within(RD_ALLGATHER, RD_MONITOR_TABLES) == RD_PROBE_ENDS, "a block may be empty");
}

static void probes_of_orders(void)
{
    rd_probe_t p;

    two_orders(0);
    CHECK(probe_of(7, 0, 2, &p) == RD_PROBE_IS_BACK && p.several, "%d waits", (int)p.waits);
    expect_text(&p,
                "in different communicators, which they must call in one order: rank 0 (host:1000) waits in 'world' in "
                "barrier, collective number 1");
    CHECK(probe_of(8, 1, 2, &p) == RD_PROBE_IS_BACK, "of the other one");
    has_made(0, 1); /* what rank 1 waits for */
    CHECK(probe_of(7, 0, 9, &p) == RD_PROBE_ENDS, "it is not owed");
    end();
    two_orders(RD_MONITOR_GROUPED);
    CHECK(probe_of(7, 0, 9, &p) == RD_PROBE_ENDS, "a submitted group holds nobody");
    end();
    begin(5); /* each sends to the next one: three are said */
    for (int r = 0; r < 5; r++) {
        call(r, RD_MONITOR_SEND, (r + 1) % 5, 1, 0);
        blocks(r, (r + 1) % 5);
    }
    CHECK(probe_of(7, 3, 5, &p) == RD_PROBE_IS_BACK && p.waits == 5, "%d waits", (int)p.waits);
    expect_text(&p, "for rank 1; and so on, 5 ranks in all");
    end();
}

/* With names as long as they can be nothing is cut off. */
static void long_names(void)
{
    static char host[RD_MONITOR_NAME];

    begin(5);
    memset(host, 'h', sizeof host - 1);
    for (int r = 0; r < 5; r++) {
        rd_monitor_head_t *head = (void *)((char *)boards[r] - RD_MONITOR_PAGE);
        memcpy(view.processes[r].reader.head.host, host, sizeof host);
        head->pid = view.processes[r].reader.head.pid = 4194300 + r;
        call(r, RD_ALLREDUCE, 0, 1, 0);
        rd_monitor_event_t *event = (void *)((char *)head + head->events_at);
        event->count = event->tag = UINT64_MAX;
        event->type = RONDO_COMPLEX128;
        boards[r]->calls[RD_TRACK_COLLECTIVE].begun = UINT64_C(123456789012) + (uint64_t)r;
        blocks(r, (r + 1) % 5);
    }
    look_twice();
    EXPECT(RD_VERDICT_UNKNOWN, -1, "; and so on, 5 ranks in all");
    CHECK(strlen(verdict.text) > 512, "it is short: %s", verdict.text);
    end();
    char cut[16];
    rd_verdict_copy(cut, sizeof cut, "rank 1 is dead");
    CHECK(strcmp(cut, "rank 1 is dead") == 0, "%s", cut);
    rd_verdict_copy(cut, sizeof cut, "rank 12 is dead.");
    CHECK(strcmp(cut, "rank 12 is d...") == 0, "%s", cut);
}

/* A chain of all ranks, of which the last is late: each look at it has to be as long as it is, and no longer. */
static void long_chain(int ranks)
{
    int64_t began = rd_clock_ms();

    begin(ranks);
    for (int r = 0; r < ranks; r++) {
        calls(r, 8, r == ranks - 1 ? 8 : 7);
        if (r < ranks - 1)
            waits(r, r + 1);
    }
    calls(ranks - 1, 7, 7);
    int64_t made = rd_clock_ms();
    look_twice();
    int64_t ms = rd_clock_ms() - made;
    printf("judged: %d ranks: %lld ms for their records, %lld ms for the verdict\n", ranks, (long long)(made - began),
           (long long)ms);
    EXPECT(RD_VERDICT_LATE, ranks - 1, "is late, by 1 call");
    CHECK(ms < LONG_S * 1000 * (getenv("RONDO_TEST_SLOW") ? 10 : 1), "it took %lld ms", (long long)ms);
    calls(ranks - 1, 8, 7);
    waits(ranks - 1, 0);
    look_twice();
    EXPECT(RD_VERDICT_UNKNOWN, -1, "in a circle");
    end();
}

/* ---- calls that have failed ---- */

static void fails(int rank, int result, int failed_rank, int heard, const char *text)
{
    rd_monitor_head_t *head = (void *)((char *)boards[rank] - RD_MONITOR_PAGE);
    rd_monitor_failure_t *f = &head->failures[head->failed++ % RD_MONITOR_FAILURES];

    boards[rank]->state = RD_MONITOR_FAILED;
    boards[rank]->result = result;
    f->version = 2;
    f->comm = boards[rank]->id;
    f->rank = rank;
    f->failed_rank = failed_rank;
    f->heard = heard;
    snprintf(f->text, sizeof f->text, "%s", text);
}

/* What the process of a late rank does, by its ticks and the part of the time that it lacked a core. */
static void does(char state, unsigned long long ticks, double queued, const char *words)
{
    rd_view_process_t *p = &view.processes[1];

    p->state = state;
    p->ticks_before = 100;
    p->ticks = 100 + ticks;
    p->queued = queued;
    judge();
    EXPECT(RD_VERDICT_LATE, 1, words);
}

static void doing(void)
{
    begin(2);
    calls(0, 5, 4);
    calls(1, 4, 4);
    waits(0, 1);
    look_twice();
    does('R', 20, 0.9, "; its process computes; rank 0");
    does('S', 20, 0, "; its process computes; rank 0");
    does('R', 1, 0.9, "; its process waits for a core; rank 0");
    does('R', 0, 0, "; its process sleeps; rank 0"); /* it has just woken */
    does('S', 1, 0.9, "; its process sleeps; rank 0");
    does('D', 0, 0, "; its process waits in the kernel; rank 0");
    end();
}

/* One that is dead has a sentence of its own; so has a second one; more of them are a list. */
static void dead(void)
{
    static const char second[] = "rank 3 (host:1003) is dead: its process ended before its first collective here";
    static const char three[] = "rank 3 (host:1003), rank 4 (host:1004) are dead, too";
    static const char most[] = "rank 8 (host:1008) and 3 more are dead, too";

    begin(12);
    view.processes[2].state = RD_VIEW_ENDED;
    look_twice();
    EXPECT(RD_VERDICT_BLAMED, 2, "rank 2 (host:1002) is dead");
    CHECK(!verdict.also[0], "one alone: %s", verdict.also);
    view.processes[3].state = RD_VIEW_ENDED;
    look_twice();
    CHECK(strcmp(verdict.also, second) == 0, "two: %s", verdict.also);
    view.processes[4].state = RD_VIEW_ENDED;
    look_twice();
    CHECK(strcmp(verdict.also, three) == 0, "three: %s", verdict.also);
    for (int r = 5; r < 12; r++)
        view.processes[r].state = RD_VIEW_ENDED;
    look_twice();
    EXPECT(RD_VERDICT_BLAMED, 2, "rank 2 (host:1002) is dead");
    CHECK(strstr(verdict.also, three) == NULL && strstr(verdict.also, most) && !strstr(verdict.also, "rank 9"),
          "ten: %s", verdict.also);
    end();
}

/* The sentence is that of the rank which has found it out, also when all have ended since; and a process that ends
 * after the failure is not to blame for it. */
static void failed(void)
{
    begin(3);
    fails(0, RONDO_ERR_REMOTE, 1, 1, "rank 1 died or failed, as rank 2 reports");
    fails(2, RONDO_ERR_REMOTE, 1, 0, "rank 1 has destroyed its communicator");
    look_twice();
    EXPECT(RD_VERDICT_BLAMED, 1, "a call has failed: rank 1 has destroyed its communicator");
    CHECK(verdict.failed, "it is not said to be a failure's");
    view.processes[0].state = RD_VIEW_ENDED;
    look_twice();
    EXPECT(RD_VERDICT_BLAMED, 1, "rank 1 has destroyed its communicator");
    view.processes[1].state = RD_VIEW_ENDED; /* which had not failed before */
    look_twice();
    EXPECT(RD_VERDICT_BLAMED, 1, "rank 1 (host:1001) is dead");
    CHECK(!verdict.failed, "a death is said to be a failure's");
    end();
    begin(2);
    fails(0, RONDO_ERR_MISMATCH, 1, 0, "they differ in op");
    fails(1, RONDO_ERR_MISMATCH, 1, 0, "they differ in op");
    look_twice();
    EXPECT(RD_VERDICT_BLAMED, -1, "a call has failed: they differ in op");
    fails(0, RONDO_ERR_TIMEOUT, 1, 0, "waited longer than 5 ms");
    boards[1]->state = RD_MONITOR_ALIVE;
    for (int i = 0; i < RD_MONITOR_FAILURES; i++)
        fails(0, RONDO_ERR_TIMEOUT, 1, 0, "waited longer than 5 ms");
    ((rd_monitor_head_t *)(void *)((char *)boards[1] - RD_MONITOR_PAGE))->failures[0].comm = 0;
    look_twice();
    EXPECT(RD_VERDICT_LATE, 1, "a call has failed: waited longer than 5 ms");
    boards[0]->id = boards[1]->id = 9; /* whose sentence is forgotten */
    look_twice();
    EXPECT(RD_VERDICT_UNKNOWN, -1, "unknown: the communicator has failed at rank 0");
    end();
}

int main(int argc, char **argv)
{
    test_begin("monitor/judged", 300);
    late_or_lost();
    do_not_meet();
    late_with_message();
    all_send();
    order_of_one_name();
    order_by_threads();
    threads_as_ranks();
    no_order();
    late_in_the_end();
    two_orders_far();
    probes_of_messages();
    probes_within_a_call();
    probes_of_orders();
    long_names();
    doing();
    dead();
    failed();
    long_chain(argc == 3 && strcmp(argv[1], "--ranks") == 0 ? atoi(argv[2]) : 4096);
    printf("%d failures\n", failures);
    return failures != 0;
}
