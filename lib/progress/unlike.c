/* See unlike.h. */
#include "progress/unlike.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "monitor/view.h"

#define PATIENCE_MS 100 /* for ranks that decide who is right, */
#define ANSWER_MS 150   /* if some are on other nodes */
#define AGAIN_MS 1000   /* until they are asked again */
#define ALL_MOST 64     /* ranks of a communicator in which all are asked */
#define SENTENCE_MS 300 /* for the sentence of the rank that says it */

/* ---- the sentence ---- */

/* Only what such a call has: an operator where it reduces, a root where there is one. */
static void describe(char *text, size_t room, const rd_signature_t *s)
{
    const char *type = rd_type_name((rondo_type_t)s->type);
    const char *op = s->op < RONDO_NUM_OPS ? rd_op_name((rondo_op_t)s->op) : "user";
    char count[40] = "", named[40] = "", with[40] = "", root[24] = "", tag[32] = "";
    bool tables = false;
    const int coll = rd_coll_named(s->name, &tables);

    if (coll < RD_NUM_COLLS && coll != RD_BARRIER) {
        if (!tables)
            snprintf(count, sizeof count, ": count %llu", (unsigned long long)s->count);
        snprintf(named, sizeof named, "%stype %s", tables ? ": " : ", ", type ? type : "?");
    }
    if (coll < RD_NUM_COLLS && rd_coll_reduces((rd_coll_t)coll))
        snprintf(with, sizeof with, ", op %s", op ? op : "?");
    if (rd_view_kind_rooted(coll))
        snprintf(root, sizeof root, ", root %d", s->root);
    if (s->tag)
        snprintf(tag, sizeof tag, ", tag %llu", (unsigned long long)s->tag);
    snprintf(text, room, "%s number %llu%s%s%s%s%s", s->name, (unsigned long long)s->sequence, count, named, with, root,
             tag);
}

/* The calls are alike, and the tuner's answers, or what the calls force, are not. */
static rondo_result_t say_tuned(const rd_team_t *team, const rd_unlike_t *u)
{
    char one[RD_TUNER_TEXT], two[RD_TUNER_TEXT], as[40] = "";

    rd_tuner_describe(u->calls[0].tuned, one);
    rd_tuner_describe(u->calls[1].tuned, two);
    if (u->others)
        snprintf(as, sizeof as, ", as on %d other%s", u->others, u->others > 1 ? "s" : "");
    return rd_health_fail(team->health, RONDO_ERR_MISMATCH, u->ranks[1],
                          "%s%s does not %s alike on all ranks, as it must: %s number %llu, of %llu bytes, "
                          "is done on rank %d (%s) by %s%s; on rank %d (%s) by %s",
                          team->tuner ? "the tuner " : "", team->tuner ? team->tuner : "rondo_force_next",
                          team->tuner ? "answer" : "force", u->calls[0].name, (unsigned long long)u->calls[0].sequence,
                          (unsigned long long)u->calls[0].bytes, u->ranks[0],
                          rd_health_whois(team->health, u->ranks[0]), one, as, u->ranks[1],
                          rd_health_whois(team->health, u->ranks[1]), two);
}

rondo_result_t rd_unlike_say(const rd_team_t *team, const rd_unlike_t *u)
{
    rd_health_t *health = team->health;
    char one[192], two[192], as[40] = "", tags[64] = "";

    if (strcmp(u->field, RD_UNLIKE_TUNED) == 0)
        return say_tuned(team, u);
    describe(one, sizeof one, &u->calls[0]);
    describe(two, sizeof two, &u->calls[1]);
    if (u->calls[0].tag != u->calls[1].tag)
        snprintf(tags, sizeof tags, " (tag %llu against %llu)", (unsigned long long)u->calls[0].tag,
                 (unsigned long long)u->calls[1].tag);
    if (u->others)
        snprintf(as, sizeof as, ", as %d other%s", u->others, u->others > 1 ? "s do" : " does");
    return rd_health_fail(
        health, RONDO_ERR_MISMATCH, u->ranks[1],
        "ranks do not call the same: they differ in %s%s. rank %d (%s) calls %s%s; rank %d (%s) calls %s", u->field,
        tags, u->ranks[0], rd_health_whois(health, u->ranks[0]), one, as, u->ranks[1],
        rd_health_whois(health, u->ranks[1]), two);
}

/* ---- what differs ---- */

static bool reduces(const rd_signed_call_t *c)
{
    return c->call.kind < RD_NUM_COLLS && rd_coll_reduces((rd_coll_t)c->call.kind);
}

static const char *differs(const rd_signed_call_t *a, const rd_signed_call_t *b)
{
    const rd_monitor_call_t *x = &a->call, *y = &b->call;

    if (x->kind != y->kind || (x->flags ^ y->flags) & RD_MONITOR_TABLES)
        return "operation";
    if (reduces(a) ? x->count != y->count : x->bytes != y->bytes)
        return reduces(a) || x->type == y->type ? "count" : "bytes";
    if (a->tables != b->tables)
        return "counts (each rank's must be the same everywhere)";
    if (reduces(a) && x->type != y->type)
        return "type";
    if (reduces(a) && x->op != y->op)
        return "op";
    if (x->root != y->root)
        return "root";
    if (x->tag != y->tag)
        return "tag";
    return a->tuned != b->tuned ? RD_UNLIKE_TUNED : "an earlier call";
}

static void fill(rd_signature_t *s, const rd_signed_call_t *c, uint64_t number)
{
    const char *name = c->call.kind < RD_NUM_COLLS          ? rd_coll_name((rd_coll_t)c->call.kind)
                       : c->call.kind == RD_MONITOR_SPLIT   ? "comm_split"
                       : c->call.kind == RD_MONITOR_WINDOW  ? "window"
                       : c->call.kind == RD_MONITOR_GROW    ? "comm_grow"
                       : c->call.kind == RD_MONITOR_SUSPEND ? "comm_suspend"
                       : c->call.kind == RD_MONITOR_RESUME  ? "comm_resume"
                                                            : "?";

    *s = (rd_signature_t){.sequence = number,
                          .count = c->call.count,
                          .counts = c->tables,
                          .tag = c->call.tag,
                          .bytes = c->call.bytes,
                          .tuned = c->tuned,
                          .type = c->call.type,
                          .op = c->call.op,
                          .root = c->call.root};
    snprintf(s->name, sizeof s->name, "%s%s", name, c->call.flags & RD_MONITOR_TABLES ? "v" : "");
}

/* ---- who differs ---- */

/* A process has answered once, perhaps before the rank called what this rank is in now, which the network then brings.
 */
static const rd_called_t *called(const rd_queue_t *q, int rank)
{
    if (q->controls[rank])
        return &q->controls[rank]->called;
    const rd_called_t *heard = rd_transport_called(q->net, rank);
    const uint64_t mine = q->team->seat->board->calls[RD_TRACK_COLLECTIVE].begun;
    uint64_t sign;

    if (q->answered.of != rank + 1 || (heard && rd_called_sign(heard, mine, &sign)))
        return heard;
    return q->answered.called;
}

static int64_t patience_ms(const rd_queue_t *q)
{
    return q->team->node->nnodes > 1 ? ANSWER_MS : PATIENCE_MS;
}

static bool both(const rd_called_t *a, const rd_called_t *b, uint64_t number, bool *alike)
{
    uint64_t one, two;

    if (!rd_called_sign(a, number, &one) || !rd_called_sign(b, number, &two))
        return false;
    *alike = one == two;
    return true;
}

/* Returns the number of the first call up to `last` that the two have not made alike; 0: there is none, as far as that
 * is remembered. A signature is of all calls before, so the last one that both have made decides. */
static uint64_t parted(const rd_called_t *a, const rd_called_t *b, uint64_t last)
{
    uint64_t least = last >= RD_CALLED ? last - RD_CALLED + 1 : 1;
    bool alike = true;

    while (last >= least && !both(a, b, last, &alike))
        last--;
    if (last < least || alike)
        return 0;
    while (last > least && both(a, b, last - 1, &alike) && !alike)
        last--;
    return last;
}

/* Returns the first number at which a rank of the node parted from this one; 0: none has. */
static uint64_t look(const rd_queue_t *q)
{
    uint64_t mine = q->team->seat->board->calls[RD_TRACK_COLLECTIVE].begun, first = 0;

    for (int r = 0; r < q->team->nranks; r++) {
        const rd_called_t *theirs = called(q, r);
        uint64_t at = theirs && r != q->team->rank ? parted(&q->self->called, theirs, mine) : 0;
        if (at && (!first || at < first))
            first = at;
    }
    return first;
}

/* Returns how many ranks have the signature for this number, the lowest of them through *rank; any other signature, if
 * not `same`. */
static int with(const rd_queue_t *q, uint64_t number, uint64_t sign, bool same, int *rank)
{
    uint64_t its;
    int n = 0;

    for (int r = q->team->nranks - 1; r >= 0; r--) {
        if (!called(q, r) || !rd_called_sign(called(q, r), number, &its) || (its == sign) != same)
            continue;
        n++;
        *rank = r;
    }
    return n;
}

/* Finds the two sides: the rank that stands for most, or else the lowest one, and one that calls something else.
 * Returns true if nobody who has not come can change that. */
static bool weigh(const rd_queue_t *q, uint64_t number, int ranks[2], int *others)
{
    int most = 0, first = q->team->rank, unlike = 0;
    uint64_t its;

    for (int r = 0; r < q->team->nranks; r++) {
        if (!called(q, r) || !rd_called_sign(called(q, r), number, &its))
            continue;
        int n = with(q, number, its, true, &first);
        if (n <= most)
            continue;
        most = n;
        ranks[0] = first;
    }
    *others = 0;
    if (!most || !rd_called_sign(called(q, ranks[0]), number, &its))
        return false;
    unlike = with(q, number, its, false, &ranks[1]);
    bool decided = most > q->team->nranks - most; /* whatever the rest calls */
    *others = decided ? most - 1 : 0;
    /* Ranks of several nodes may all say it, and say the same if they know all. */
    return unlike && ((decided && q->team->node->nnodes == 1) || most + unlike == q->team->nranks);
}

static rondo_result_t say(rd_queue_t *q, uint64_t number, const int ranks[2], int others)
{
    rd_signed_call_t calls[2];
    rd_unlike_t u = {.field = "an earlier call", .ranks = {ranks[0], ranks[1]}, .others = others};
    bool known = true;

    for (int i = 0; i < 2; i++) {
        bool found = rd_called_find(called(q, ranks[i]), number, &calls[i]);
        if (found)
            fill(&u.calls[i], &calls[i], number);
        else
            snprintf(u.calls[i].name, sizeof u.calls[i].name, "something else");
        known &= found;
    }
    if (known)
        u.field = differs(&calls[0], &calls[1]);
    return rd_unlike_say(q->team, &u);
}

static bool is_signed(const rd_queue_t *q)
{
    return q->signing.called && q->team->seat && !q->team->env->check;
}

static void ask_process(rd_queue_t *q, int rank)
{
    if (rank < 0 || q->controls[rank])
        return;
    rd_late_ask(q->team, RD_QUESTIONER_UNLIKE, rank);
    q->answered.asked = rank + 1;
}

/* Not inlined: what is on its stack is large, and seldom needed. */
__attribute__((noinline)) static void hear_process(rd_queue_t *q)
{
    const size_t bytes = sizeof(rd_called_t); /* whole lines, as of all that has lines in it */
    rd_called_digest_t digest;
    rd_boot_answer_t answer;
    rd_answered_t *answered = &q->answered;

    _Static_assert(sizeof digest <= RD_BOOT_MORE, "a digest fits into an answer");
    if (!rd_boot_answered(q->team->boot, RD_QUESTIONER_UNLIKE, &answer))
        return;
    if (!answered->called)
        answered->called = aligned_alloc(RD_LINE, bytes);
    answered->of = 0;
    if (answered->called && answer.nmore == sizeof digest) {
        memcpy(&digest, answer.more, sizeof digest);
        memset(answered->called, 0, bytes);
        rd_called_hear(answered->called, &digest);
        answered->of = answered->asked;
    }
    answered->asked = 0;
}

/* A rank that waits for long asks ever more seldom. */
void rd_unlike_ask(rd_queue_t *q, int peer, int64_t now_ms)
{
    if (!is_signed(q) || q->team->node->nnodes == 1)
        return;
    uint64_t call = q->team->seat->board->calls[RD_TRACK_COLLECTIVE].begun;
    bool again = q->asked_in == call && q->asked_ms;
    if (again && now_ms - q->asked_ms < q->asked_gap)
        return;
    q->asked_gap = again ? 2 * q->asked_gap : AGAIN_MS;
    if (!again)
        q->answered.of = 0;
    ask_process(q, peer);
    q->asked_in = call;
    q->asked_ms = now_ms;
    for (int r = 0; r < q->team->nranks; r++)
        if (!q->controls[r] && (r == peer || q->team->nranks <= ALL_MOST))
            rd_transport_ask_called(q->net, r);
}

static rondo_result_t check(rd_queue_t *q, int64_t now_ms)
{
    int ranks[2] = {-1, -1}, others;

    if (q->answered.asked)
        hear_process(q);
    uint64_t number = is_signed(q) ? look(q) : 0;

    if (!number) {
        q->unlike_ms = 0;
        return RONDO_SUCCESS;
    }
    if (!q->unlike_ms)
        q->unlike_ms = now_ms;
    rd_unlike_ask(q, -1, now_ms);
    if (!weigh(q, number, ranks, &others) && now_ms - q->unlike_ms < patience_ms(q))
        return RONDO_SUCCESS;
    if (ranks[0] < 0 || ranks[1] < 0 || !(rd_queue_says(q) || now_ms - q->unlike_ms > SENTENCE_MS))
        return RONDO_SUCCESS;
    return say(q, number, ranks, others);
}

/* Where cores are shared the clock is read at every yield, and what others have called lies in their caches: so this
 * looks once in a tick of the clock. */
rondo_result_t rd_unlike_check(rd_queue_t *q, int64_t now_ms)
{
    if (now_ms == q->looked_ms || now_ms == q->wait.began_ms)
        return RONDO_SUCCESS;
    q->looked_ms = now_ms;
    return check(q, now_ms);
}

rondo_result_t rd_unlike_answer(rd_queue_t *q, int *moved)
{
    *moved |= rd_transport_progress(q->net);
    return rd_unlike_check(q, rd_clock_ms());
}

/* A rank of this node has said what it calls before it sends, one of another node has yet to answer. */
rondo_result_t rd_unlike_wait(rd_queue_t *q, int peer)
{
    const struct timespec millisecond = {0, 1000000};
    int64_t now = rd_clock_ms(), until = now + (peer >= 0 && !q->controls[peer] && is_signed(q) ? 2 * ANSWER_MS : 0);
    rondo_result_t result = rd_health_poll(q->health);

    q->asked_ms = 0;
    rd_unlike_ask(q, peer, now);
    while (result == RONDO_SUCCESS) {
        now = rd_clock_ms();
        result = check(q, now);
        if (result != RONDO_SUCCESS || (!q->unlike_ms && now >= until))
            return result;
        if (!rd_transport_progress(q->net))
            nanosleep(&millisecond, NULL);
        result = rd_health_poll(q->health);
    }
    return result;
}
