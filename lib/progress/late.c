/* See late.h. */
#include "progress/late.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fpenv.h"
#include "monitor/heart.h"
#include "monitor/held.h"
#include "monitor/observe.h"
#include "monitor/probe.h"
#include "monitor/verdict.h"
#include "progress/queue.h"
#include "progress/unlike.h"

#define STEP_MS 20                     /* between two looks whether an answer has come */
#define ANSWER_MS 100                  /* who was asked so lately need not have answered */
#define CLOCK_MS 20                    /* by which the coarse clock may be wrong */
#define LONGEST (RD_ERROR_BYTES + 256) /* of a sentence with another one in it, before it is cut */
#define CIRCLE_MS 1000                 /* a wait of so long may be one of ranks that wait for each other */
#define NODES_EARLY 64                 /* that ask whether there is such a circle */
#define LEAD_MS 500                    /* from the first look to the second, or half of the wait if that is less */

/* ---- by the waits that ranks of the node tell each other ---- */

static int noted(_Atomic uint64_t *at, uint32_t now, uint32_t lately)
{
    uint64_t waits = atomic_load_explicit(at, memory_order_relaxed);

    return waits && now - (uint32_t)(waits >> 32) <= lately ? (int)(uint32_t)waits - 1 : -1;
}

/* Returns the rank that `rank` has lately waited for; -1: it does not wait, or it is on another node, and that is
 * unknown. */
static int waits_itself(rd_queue_t *q, int rank, uint32_t now, uint32_t lately)
{
    rd_control_t *control = rank < 0 ? NULL : q->controls[rank];

    return control ? noted(&control->waits, now, lately) : -1;
}

/* Returns the rank that is late: it is at the end of the chain of ranks that wait for each other. Lanes wait for
 * several ranks, and each rank names one of them. If the chain is a circle, a rank of this node is returned that does
 * not wait, or else one of another node that is waited for here. */
static int late_one(rd_queue_t *q, int peer)
{
    int64_t patience = q->wait.timeout_ms > 0 ? q->wait.timeout_ms : RD_LATE_MS;
    uint32_t now = (uint32_t)rd_clock_ms(), lately = patience < INT32_MAX ? (uint32_t)patience / 2 : INT32_MAX;
    int late = peer, far = -1;

    for (int hops = 0; hops < q->team->nranks && late != q->team->rank; hops++) {
        int next = waits_itself(q, late, now, lately);
        if (next < 0)
            return late;
        late = next;
    }
    for (int r = 0; r < q->team->nranks; r++) {
        if (!q->controls[r])
            continue;
        int next = waits_itself(q, r, now, lately);
        if (next < 0 && r != q->team->rank)
            return r;
        int other = noted(&q->controls[r]->waits_far, now, lately);
        if (next >= 0 && !q->controls[next])
            far = next;
        else if (other >= 0)
            far = other;
    }
    return far >= 0 ? far : peer;
}

/* ---- by the records ---- */

static void forget(rd_late_t *s)
{
    rd_observe_end(&s->view);
    s->looked = s->probed = false;
    s->asked = 0;
}

static void look(rd_queue_t *q)
{
    q->late.view = rd_observe_begin(true);
}

/* Looks again. Returns false if there is nothing to say. */
static bool judge(rd_queue_t *q, rd_monitor_verdict_t *verdict)
{
    const rd_view_comm_t *comm = rd_observe_again(q->late.view, q->team->seat);

    if (!comm)
        return false;
    rd_verdict_judge(q->late.view, comm, verdict);
    /* that a rank was late before does not explain a wait that goes on */
    return verdict->status != RD_VERDICT_NONE && verdict->status != RD_VERDICT_SLOW;
}

/* ---- by ranks of other nodes ---- */

/* Itself, and the first other rank of its node, because a process that is stopped does not answer. */
void rd_late_ask(const rd_team_t *team, rd_questioner_t by, int about)
{
    const rd_monitor_calls_t *calls = &team->seat->board->calls[RD_TRACK_COLLECTIVE];
    uint64_t begun = atomic_load(&calls->begun);
    rd_boot_question_t question = {.from = team->rank,
                                   .about = about,
                                   .number = rd_boot_ask_new(team->boot, by),
                                   .call = begun != atomic_load(&calls->ended) ? begun : 0};
    const int *node_of = team->node->node_of;
    int other = 0;

    while (other < team->nranks && (other == about || node_of[other] != node_of[about]))
        other++;
    rd_boot_ask(team->boot, about, &question);
    if (other < team->nranks)
        rd_boot_ask(team->boot, other, &question);
}

static void ask(rd_queue_t *q, int about)
{
    if (!q->team->seat || !q->team->seat->record)
        return;
    rd_late_ask(q->team, RD_QUESTIONER_CALL, about);
    q->late.asked = about + 1;
    q->late.asked_ms = rd_clock_ms();
}

bool rd_late_probe(const rd_team_t *team, rd_questioner_t by)
{
    rd_boot_question_t question = {.from = team->rank, .nprobe = sizeof(rd_probe_t)};
    rd_view_t view = {0};
    rd_probe_t probe;

    if (!team->seat || !team->seat->record)
        return false;
    bool begun = rd_held_own(&view) && rd_view_look(&view, 0) &&
                 rd_probe_begin(&view, team->seat->board->id, team->rank, &probe);
    rd_view_free(&view);
    if (!begun)
        return false;
    question.number = rd_boot_ask_new(team->boot, by);
    question.about = probe.at.peer;
    memcpy(question.probe, &probe, sizeof probe);
    rd_boot_ask(team->boot, question.about, &question);
    return true;
}

/* Early it is a circle that is looked for: ranks of other nodes can be in one only by another communicator. Of many
 * nodes each would ask. */
static bool may_ask(const rd_queue_t *q)
{
    const rd_view_t *view = q->late.view;

    if (!q->late.early)
        return true;
    for (int i = 0; view && i < view->ncomms && q->team->node->nnodes <= NODES_EARLY; i++) {
        const rd_monitor_comm_t *c = &view->comms[i].ranks[0].comm;
        if (c->id != q->team->seat->board->id && c->nodes > 1 && c->device < 0)
            return true;
    }
    return false;
}

/* The rank that the waits of this node lead to, if it is on another one. */
static void ask_first(rd_queue_t *q, int peer)
{
    int late = late_one(q, peer);

    q->late.hops = 0;
    if (late >= 0 && !q->controls[late])
        ask(q, late);
}

/* Asks the next node, where an answer says that its rank waits for one there. */
static void ask_next(rd_queue_t *q)
{
    rd_boot_answer_t answer;

    if (!q->late.asked || q->late.hops >= RD_LATE_HOPS ||
        !rd_boot_answered(q->team->boot, RD_QUESTIONER_CALL, &answer) || answer.next < 0 || q->controls[answer.next])
        return;
    q->late.hops++;
    ask(q, answer.next);
}

/* What is known of who holds the call up. */
typedef struct found {
    int status;                /* of a verdict that names a rank, or RD_VERDICT_UNKNOWN */
    int rank;                  /* that is named, or to which the waits lead as far as others have answered; -1: none */
    bool circle;               /* a verdict on ranks that wait for each other */
    bool says_why;             /* `text` is a verdict that says why it is unknown who is late */
    char text[RD_ERROR_BYTES]; /* the verdict, or what is known all the same; "": nothing */
} found_t;

/* What ranks of other nodes have answered by now. */
static void find_answer(const rd_queue_t *q, found_t *f)
{
    const bool looked = q->late.view && q->team->seat && q->team->seat->record;
    const bool just_now = rd_clock_ms() - q->late.asked_ms < ANSWER_MS;
    rd_boot_answer_t answer;

    *f = (found_t){.status = RD_VERDICT_UNKNOWN, .rank = q->late.asked - 1};
    if (!q->late.asked)
        return;
    if (!rd_boot_answered(q->team->boot, RD_QUESTIONER_CALL, &answer)) {
        if (looked && !just_now)
            snprintf(f->text, sizeof f->text, "; rank %d (%s) was asked, and does not answer", f->rank,
                     rd_health_whois(q->health, f->rank));
        return;
    }
    bool names = rd_verdict_names(answer.status);
    f->rank = names ? answer.rank : answer.next >= 0 ? answer.next : f->rank;
    f->status = names ? answer.status : RD_VERDICT_UNKNOWN;
    snprintf(f->text, sizeof f->text, names ? "%s" : "; %.500s", answer.text);
}

bool rd_late_closes(const rd_team_t *team, const rd_view_t *view, int about, const rd_boot_answer_t *answer,
                    rd_monitor_verdict_t *verdict)
{
    const rd_monitor_comm_t *board = team->seat->board;
    const rd_view_comm_t *comm = rd_view_comm_of(view->comms, view->ncomms, board->id);
    rd_verdict_hop_t hop;

    if (!comm || answer->status != RD_VERDICT_LATE || answer->rank != about || answer->nmore != sizeof hop)
        return false;
    memcpy(&hop, answer->more, sizeof hop);
    return rd_verdict_closes(view, comm, about, atomic_load(&board->calls[RD_TRACK_COLLECTIVE].begun), &hop,
                             answer->text, verdict);
}

/* Has another node answered that the rank which was asked about is held by one that waits for it here? */
static bool closes(const rd_queue_t *q, rd_monitor_verdict_t *v)
{
    rd_boot_answer_t answer;

    return q->late.asked && rd_boot_answered(q->team->boot, RD_QUESTIONER_CALL, &answer) &&
           rd_late_closes(q->team, q->late.view, q->late.asked - 1, &answer, v);
}

/* Has the probe come back? Then this call is one of a circle. */
static bool is_round(const rd_queue_t *q, rd_boot_answer_t *answer)
{
    return q->late.probed && rd_boot_answered(q->team->boot, RD_QUESTIONER_CALL_PROBE, answer);
}

/* Looks at this node again, so two calls must be as far from each other as two looks. Where the records of this node
 * lead to a rank of another one, and those that wait here have not, that rank is asked now. */
static void find(rd_queue_t *q, found_t *f)
{
    rd_monitor_verdict_t v;
    const bool looked = judge(q, &v);
    bool unknown = looked && v.status == RD_VERDICT_UNKNOWN;
    rd_boot_answer_t answer;

    if ((!looked || v.status != RD_VERDICT_BLAMED) && is_round(q, &answer)) {
        *f = (found_t){.status = RD_VERDICT_BLAMED, .rank = -1, .circle = true};
        snprintf(f->text, sizeof f->text, "%s", answer.text);
        return;
    }

    if (unknown && !q->late.asked && v.next >= 0 && !q->controls[v.next] && may_ask(q))
        ask(q, v.next);
    if (unknown)
        unknown = !closes(q, &v);
    if (unknown && !v.failed && q->team->node->nnodes == 1 && v.next < 0) {
        *f = (found_t){.status = RD_VERDICT_UNKNOWN, .rank = -1, .says_why = true};
        rd_verdict_copy(f->text, sizeof f->text - 128, v.text); /* what is said before it and behind must have room */
    } else if (!looked || unknown) {
        find_answer(q, f);
    } else {
        *f = (found_t){.status = v.status, .rank = v.rank, .circle = v.circle};
        rd_verdict_copy(f->text, sizeof f->text, v.text);
    }
}

/* ---- in the log ---- */

static int64_t look_ms(int64_t due_ms)
{
    return due_ms - (due_ms < 2 * LEAD_MS ? due_ms / 2 : LEAD_MS);
}

/* What comes early must leave time for two looks before what is due then. */
static void begin(rd_queue_t *q)
{
    rd_late_t *s = &q->late;
    const int64_t stall = q->team->env->stall_ms, limit = q->wait.timeout_ms;
    const bool recorded = q->team->seat && q->team->seat->record;

    forget(s);
    s->wait_ms = q->wait.began_ms;
    s->early = recorded && stall >= 2 * CIRCLE_MS && (limit <= 0 || limit >= 2 * CIRCLE_MS);
    s->due_ms = s->early ? CIRCLE_MS : stall;
}

/* One rank of the node says it: the first that is about to, until it looks for the next time. Early, until it has said
 * it: each wait of half a second looks so, and the next one must not go without. */
static bool claim(const rd_queue_t *q, int64_t now_ms)
{
    const rd_late_t *s = &q->late;
    rd_control_t *first = rd_queue_first(q);
    _Atomic int64_t *until = s->early ? &first->circle_until_ms : &first->late_until_ms;
    int64_t claimed = atomic_load(until), next = q->wait.began_ms + (s->early ? s->due_ms : look_ms(2 * s->due_ms));

    return claimed <= now_ms && atomic_compare_exchange_strong(until, &claimed, next - CLOCK_MS);
}

/* Whoever has not claimed the line may be the one whose probe comes back. Returns false if another rank of the node has
 * said that there is a circle. */
static bool claim_circle(const rd_queue_t *q, int64_t now_ms)
{
    _Atomic int64_t *until = &rd_queue_first(q)->circle_until_ms;
    int64_t claimed = atomic_load(until);

    return claimed < q->wait.began_ms + q->late.due_ms &&
           atomic_compare_exchange_strong(until, &claimed, now_ms + CIRCLE_MS);
}

/* In the log, and to who wants to know of stalls. */
static void say_line(rd_queue_t *q, const found_t *f, int late, const char *line)
{
    rd_log(q->team->ctx, RD_LOG_WARN, "%s", line);
    if (q->on_stall)
        q->on_stall(q, f->status, late, line);
}

/* Is it a circle? Then that is said early. */
static void say_circle(rd_queue_t *q)
{
    char line[RD_ERROR_BYTES + 192];
    rd_boot_answer_t answer;
    found_t f;

    if (!q->late.view && !is_round(q, &answer))
        return;
    find(q, &f);
    if (!f.circle || !claim_circle(q, rd_clock_ms()))
        return;
    snprintf(line, sizeof line, "a call waits for %g s: %s (`rondo-ras who` says it again)",
             (double)q->late.due_ms / 1000, f.text);
    say_line(q, &f, f.rank, line);
}

/* `ms`: so long it waits; `more`: what is said at the end. */
static void say(rd_queue_t *q, int peer, int64_t ms, const char *more)
{
    double seconds = (double)ms / 1000;
    found_t f;

    find(q, &f);
    bool named = f.status != RD_VERDICT_UNKNOWN;
    int late = named ? f.rank : late_one(q, f.rank >= 0 ? f.rank : peer);
    char line[RD_ERROR_BYTES + 192];
    if (named)
        snprintf(line, sizeof line, "a call waits for %g s: %s (%s)", seconds, f.text, more);
    else if (f.says_why)
        snprintf(line, sizeof line, "a call waits for %g s: for rank %d (%s); who is late is %s (%s)", seconds, late,
                 rd_health_whois(q->health, late), f.text, more);
    else
        snprintf(line, sizeof line, "a call waits for %g s: for rank %d (%s), which has not come or is slow%s (%s)",
                 seconds, late, rd_health_whois(q->health, late), f.text, more);
    say_line(q, &f, late, line);
}

/* The line is due. Plans the next one. */
static void say_due(rd_queue_t *q, int peer)
{
    rd_late_t *s = &q->late;

    if (s->early)
        say_circle(q);
    else if (s->view)
        say(q, peer, s->due_ms, "RONDO_STALL_MS; `rondo-ras who` says it again");
    forget(s);
    s->due_ms = s->early ? q->team->env->stall_ms : 2 * s->due_ms;
    s->early = false;
}

/* So long the wait lasts when something is due next: a line, or else, which is the last, the time limit. 0: never. */
static int64_t next_due(const rd_queue_t *q, bool *last)
{
    const int64_t due = q->late.due_ms, limit = q->wait.timeout_ms;

    *last = !due || (limit > 0 && limit <= due);
    return *last ? limit : due;
}

static void look_first(rd_queue_t *q, int peer, int64_t now_ms, bool last)
{
    rd_late_t *s = &q->late;

    if (!s->looked && (last || claim(q, now_ms))) {
        look(q);
        if (may_ask(q))
            ask_first(q, peer);
    }
    if (!s->looked && (s->view || s->early) && q->team->node->nnodes <= NODES_EARLY)
        s->probed = rd_late_probe(q->team, RD_QUESTIONER_CALL_PROBE);
    s->looked = true;
}

void rd_late_check(rd_queue_t *q, int peer, int64_t now_ms)
{
    rd_late_t *s = &q->late;
    const int64_t waited = now_ms - q->wait.began_ms;
    bool last;

    if (s->wait_ms != q->wait.began_ms)
        begin(q);
    if (waited >= RD_HEART_LOOK_MS)
        rd_heart_look(RD_HEART_WATCH, now_ms); /* one that is stuck does not see that a rank dies */
    int64_t due = next_due(q, &last);
    if (due <= 0 || waited < look_ms(due))
        return;
    fenv_t program;
    rd_fpenv_begin(&program);
    look_first(q, peer, now_ms, last);
    if (!s->early)
        ask_next(q);
    if (!last && waited >= due) {
        say_due(q, peer);
        due = next_due(q, &last);
        if (due > 0 && waited >= look_ms(due)) /* it had no turn for long, and its time limit may be over, too */
            look_first(q, peer, now_ms, last);
    }
    rd_fpenv_end(&program);
}

/* ---- the time limit ---- */

/* Writes what is said where no rank is known to hold the others up, and returns the rank that it names, or -1. */
static int unknown(rd_queue_t *q, int peer, const found_t *f, char text[LONGEST])
{
    const int late = late_one(q, f->rank >= 0 ? f->rank : peer);
    const char *whois = rd_health_whois(q->health, late);
    const long long ms = q->wait.timeout_ms;

    if (f->says_why) {
        snprintf(text, LONGEST,
                 "waited longer than %lld ms for rank %d (%s); who is late or stopped is %s; see RONDO_TIMEOUT_MS", ms,
                 late, whois, f->text);
        return -1;
    }
    if (late == peer)
        snprintf(text, LONGEST,
                 "waited longer than %lld ms for rank %d (%s), and why is unknown%s; see RONDO_TIMEOUT_MS", ms, peer,
                 whois, f->text);
    else
        snprintf(
            text, LONGEST,
            "waited longer than %lld ms, in the end for rank %d (%s), and why is unknown: rank %d (%s), which this "
            "rank waits for, waits as well%s; see RONDO_TIMEOUT_MS",
            ms, late, whois, peer, rd_health_whois(q->health, peer), f->text);
    return late;
}

/* On several nodes limits may be over in the same instant, and each sees but its own ranks. So that all say the same,
 * the lowest rank says it, by what it hears first: or the next one, if the lowest may be stopped. If nothing comes of
 * that, this rank says it. */
static rondo_result_t fail(rd_queue_t *q, int status, int late, const char *text)
{
    const rd_node_t *node = q->team->node;
    const int speaker = late == 0 && status != RD_VERDICT_LATE ? 1 : 0;
    rd_boot_claim_t claim = {.late = late};

    if (late >= 0 && node->nnodes > 1 && node->node_of[speaker] != node->node_of[q->team->rank]) {
        snprintf(claim.text, sizeof claim.text, "%.*s", RD_ERROR_BYTES - 1, text);
        rd_boot_claim(q->team->boot, speaker, &claim);
        if (rd_queue_news(q, RD_QUEUE_NEWS_MS))
            return rd_health_check(q->health);
    }
    return rd_health_fail(q->health, RONDO_ERR_TIMEOUT, late, "%s", text);
}

/* What the others of the node wait for: the rank that says it waits for one of another node. */
static int news_ms(const rd_queue_t *q)
{
    return q->team->node->nnodes > 1 ? 4 * RD_QUEUE_NEWS_MS : RD_QUEUE_NEWS_MS;
}

/* Answers of other nodes may be on their way, or another rank may know more: both are waited for a moment before this
 * rank says that it does not know. As `find`. */
static void find_patiently(rd_queue_t *q, found_t *f)
{
    const struct timespec step = {0, STEP_MS * 1000000};

    find(q, f);
    for (int ms = 0; ms < RD_QUEUE_NEWS_MS && f->status == RD_VERDICT_UNKNOWN && q->late.asked; ms += STEP_MS) {
        nanosleep(&step, NULL);
        if (rd_health_poll(q->health) != RONDO_SUCCESS)
            break;
        ask_next(q);
        find_answer(q, f);
    }
}

static rondo_result_t time_out(rd_queue_t *q, int peer)
{
    char text[LONGEST];
    found_t f;

    if (!rd_queue_says(q) && rd_queue_news(q, news_ms(q)))
        return rd_health_check(q->health);
    /* Who seems late, on another node, may have called something else, and be in no call. */
    if (rd_unlike_wait(q, late_one(q, peer)) != RONDO_SUCCESS)
        return rd_health_check(q->health);
    find_patiently(q, &f);
    if (rd_health_check(q->health) != RONDO_SUCCESS)
        return rd_health_check(q->health);
    if (f.status == RD_VERDICT_UNKNOWN)
        return fail(q, f.status, unknown(q, peer, &f, text), text);
    snprintf(text, sizeof text, "waited longer than %lld ms: %s; see RONDO_TIMEOUT_MS", (long long)q->wait.timeout_ms,
             f.text);
    return fail(q, f.status, f.rank >= 0 ? f.rank : peer, text);
}

rondo_result_t rd_late_timeout(rd_queue_t *q, int peer)
{
    fenv_t program;

    rd_fpenv_begin(&program);
    rondo_result_t result = time_out(q, peer);
    rd_fpenv_end(&program);
    return result;
}

void rd_late_report(rd_queue_t *q, int peer)
{
    fenv_t program;

    rd_fpenv_begin(&program);
    say(q, peer, q->wait.timeout_ms, "its time limit is over, and it waits on: RONDO_ON_ERROR_REPORT");
    rd_fpenv_end(&program);
}

void rd_late_forget(rd_queue_t *q)
{
    forget(&q->late);
}
