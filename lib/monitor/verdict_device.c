/* Who holds kernels up. A kernel that waits for long says for whom, in which call, and which call the peer's device has
 * begun last (record.h); the host's side of a call is over when it is enqueued. So a peer that has not enqueued the
 * call is late; one that has, and whose device has not begun it, is held up by what stands before it on that device;
 * and one whose kernel waits, in this communicator or in another one, leads on. */
#include <string.h>

#include "monitor/verdict_int.h"

#define HOPS 4096 /* of a chain of waits: more than a host has ranks */

static bool waits(const rd_view_rank_t *r)
{
    return rd_view_waits_for(&r->comm) >= 0;
}

/* Has the same wait gone on beyond the look before? What the record says of it is as old as the last poll. */
static bool waited(const rd_view_t *view, const rd_view_comm_t *then, const rd_view_rank_t *r)
{
    const rd_view_rank_t *was = rd_verdict_before(then, r->comm.rank);
    bool past = view->processes[r->process].past;

    return waits(r) && was && waits(was) && was->comm.since_ms == r->comm.since_ms &&
           was->comm.waits_in == r->comm.waits_in && (past || (int64_t)r->comm.seen_ms >= view->before_ms);
}

/* Finds another communicator in which a kernel waits on the device of this rank, and its rank there. */
static const rd_view_comm_t *elsewhere(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *r,
                                       const rd_view_rank_t **there)
{
    for (int i = 0; i < view->ncomms; i++) {
        const rd_view_comm_t *other = &view->comms[i];
        for (int k = 0; other->id != c->id && k < other->nranks; k++) {
            *there = &other->ranks[k];
            if ((*there)->process == r->process && (*there)->comm.device == r->comm.device && waits(*there))
                return other;
        }
    }
    return NULL;
}

/* Where the kernel of a rank waits for the kernel of a rank that waits: that one, and its communicator in *c. NULL: it
 * waits for a rank of which no kernel waits. */
static const rd_view_rank_t *onward(const rd_view_t *view, const rd_view_comm_t **c, const rd_view_rank_t *at)
{
    const rd_view_rank_t *next = rd_view_rank_of(*c, rd_view_waits_for(&at->comm)), *there;

    if (!next || waits(next))
        return next;
    const rd_view_comm_t *other = elsewhere(view, *c, next, &there);
    if (!other)
        return NULL;
    *c = other;
    return there;
}

static void say_late(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *at,
                     const rd_view_rank_t *late, uint64_t behind, rd_monitor_verdict_t *v)
{
    char text[RD_VERDICT_BYTES], by[64], call[192];

    rd_view_rank_text(view, at, by, sizeof by);
    rd_view_kernel_text(view, at, call, sizeof call);
    rd_verdict_late_text(view, c, late, behind, text, sizeof text);
    rd_verdict_say(v, RD_VERDICT_LATE, late->comm.rank, "%s; a kernel of %s waits for it in %s since %.1f s", text, by,
                   call, rd_view_waits_since(view, at));
}

/* A replay makes no call, so nothing says whether the graph was launched there. */
static void say_held(const rd_view_t *view, const rd_view_rank_t *at, const rd_view_rank_t *held,
                     rd_monitor_verdict_t *v)
{
    const unsigned long long behind = at->comm.peer_behind;
    const double since = rd_view_waits_since(view, at);
    char who[64], by[64], call[192];

    rd_view_rank_text(view, held, who, sizeof who);
    rd_view_rank_text(view, at, by, sizeof by);
    rd_view_kernel_text(view, at, call, sizeof call);
    if (at->comm.waits_in & RD_MONITOR_REPLAYED)
        rd_verdict_say(v, RD_VERDICT_LATE, held->comm.rank,
                       "%s has not begun the replay of %s: its device is %llu operation%s behind, so the graph was not "
                       "launched there, or what stands before it in its stream is not over; a kernel of %s waits for "
                       "it since %.1f s",
                       who, call, behind, behind == 1 ? "" : "s", by, since);
    else
        rd_verdict_say(v, RD_VERDICT_LATE, held->comm.rank,
                       "%s is held up on its device: it has enqueued %s, which has not begun there, so what stands "
                       "before it in its stream is not over; a kernel of %s waits for it since %.1f s",
                       who, call, by, since);
}

/* Where waits go from one communicator to another: `at` waits in `c` for the rank whose kernel, `next`, waits in `o`.
 */
typedef struct crossing {
    const rd_view_comm_t *c, *o; /* NULL: they do not */
    const rd_view_rank_t *at, *next;
} crossing_t;

static void say_order(const rd_view_t *view, const crossing_t *x, rd_monitor_verdict_t *v)
{
    char one[64], two[64], here[192], there[192];

    rd_view_rank_text(view, x->at, one, sizeof one);
    rd_view_rank_text(view, x->next, two, sizeof two);
    rd_view_kernel_text(view, x->at, here, sizeof here);
    rd_view_kernel_text(view, x->next, there, sizeof there);
    rd_verdict_say(
        v, RD_VERDICT_BLAMED, -1,
        "kernels wait for each other in different communicators, to whose calls all ranks must give one order: "
        "that of %s waits in '%.30s' in %s, and that of %s in '%.30s' in %s",
        one, x->c->ranks[0].comm.name, here, two, x->o->ranks[0].comm.name, there);
}

/* Has the device of the rank that `at` waits for not begun the call? Epochs say so, and where there are none the number
 * of the call that it has begun last, unless one of the two is a replay. */
static bool behind(const rd_view_rank_t *at)
{
    const uint64_t in = at->comm.waits_in, begun = at->comm.peer_in;

    return in && (at->comm.peer_behind || (begun && !((in | begun) & RD_MONITOR_REPLAYED) && begun < in));
}

/* The waits of `at` end at a rank whose kernels do not wait. */
static void say_end(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *at, rd_monitor_verdict_t *v)
{
    const int peer = rd_view_waits_for(&at->comm);
    const rd_view_rank_t *next = rd_view_rank_of(c, peer);
    const uint64_t in = at->comm.waits_in;
    char who[64], where[400];

    rd_view_rank_text(view, at, who, sizeof who);
    rd_view_where_text(view, at, true, where, sizeof where);
    if (!next) {
        v->next = peer;
        rd_verdict_say(v, RD_VERDICT_UNKNOWN, -1,
                       "unknown: a kernel of %s waits for rank %d, of which there is no record on this host (%s)", who,
                       peer, where);
        return;
    }
    uint64_t number = in & ~RD_MONITOR_REPLAYED, enqueued = next->comm.calls[RD_TRACK_COLLECTIVE].begun;
    if (next->comm.state == RD_MONITOR_ENDED)
        rd_verdict_say(v, RD_VERDICT_BLAMED, peer,
                       "rank %d has left: it has destroyed its communicator, and a kernel of %s waits for it (%s)",
                       peer, who, where);
    else if (number > enqueued)
        say_late(view, c, at, next, number - enqueued, v);
    else if (behind(at))
        say_held(view, at, next, v);
    else
        rd_verdict_say(v, RD_VERDICT_UNKNOWN, -1,
                       "unknown: a kernel of %s waits for rank %d, of which no kernel is seen to wait (%s)", who, peer,
                       where);
}

static void follow(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *from, rd_monitor_verdict_t *v)
{
    const rd_view_rank_t *at = from;
    crossing_t x = {.o = NULL};
    char who[64], where[400];

    for (int hops = 0; hops < HOPS && (hops == 0 || at != from); hops++) {
        const rd_view_comm_t *o = c;
        const rd_view_rank_t *next = onward(view, &o, at);
        if (!next) {
            say_end(view, c, at, v);
            return;
        }
        if (o != c && !x.o)
            x = (crossing_t){c, o, at, next};
        c = o;
        at = next;
    }
    if (x.o) {
        say_order(view, &x, v);
        return;
    }
    rd_view_rank_text(view, from, who, sizeof who);
    rd_view_where_text(view, from, true, where, sizeof where);
    rd_verdict_say(v, RD_VERDICT_UNKNOWN, -1, "unknown: the waits of %s lead to kernels that wait for each other (%s)",
                   who, where);
}

/* A replay is of a call that was made long ago. */
static void judge(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *r, rd_monitor_verdict_t *v)
{
    const uint64_t in = r->comm.waits_in;

    if (!in || in & RD_MONITOR_REPLAYED || !rd_verdict_unlike(view, c, in, v))
        follow(view, c, r, v);
}

/* The last call that all have enqueued: kernels may get on with unlike ones, and give a wrong result. */
static uint64_t last_of_all(const rd_view_comm_t *c)
{
    uint64_t last = UINT64_MAX;

    for (int i = 0; i < c->nranks; i++) {
        uint64_t begun = c->ranks[i].comm.calls[RD_TRACK_COLLECTIVE].begun;
        last = begun < last ? begun : last;
    }
    return last;
}

void rd_verdict_kernels(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_comm_t *then,
                        rd_monitor_verdict_t *v)
{
    if (rd_verdict_unlike(view, c, last_of_all(c), v))
        return;
    for (int i = 0; i < c->nranks; i++) {
        rd_monitor_verdict_t one = {.rank = -1, .next = -1};
        if (!waited(view, then, &c->ranks[i]))
            continue;
        judge(view, c, &c->ranks[i], &one);
        if (v->status == RD_VERDICT_NONE || rd_verdict_worse(one.status, v->status) != v->status)
            *v = one;
    }
}

bool rd_verdict_kernel(const rd_view_t *view, const rd_view_comm_t *c, int rank, rd_monitor_verdict_t *v)
{
    const rd_view_rank_t *r = rd_view_rank_of(c, rank);

    if (!r || !waits(r))
        return false;
    judge(view, c, r, v);
    return true;
}
