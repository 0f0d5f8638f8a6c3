/* The agreement, from the side of the leader, the lowest surviving rank. See agree_shrink.h.
 *
 *   gather   until each of the others has come or is gone          ->  a list, or PREPARE if one of them is READY
 *   vote     until each rank of the list has reported its result   ->  PREPARE, or another list, or the failure
 *   prepare  until each rank of the list is READY or gone          ->  KEEP */
#include "boot/agree_shrink.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "boot/registry.h"
#include "base/thread.h"

#define PATIENCE_MS                                                                                                    \
    200 /* from a death to the end of the rendezvous: time for the others to reach it and hear of the death */

#define WAY_MS 100 /* for which no connection is made to those that have not come, where descriptors are scarce */

static rd_member_t *member_of(rd_agree_shrink_t *r, int rank)
{
    return rank == r->rank ? NULL : &r->member[rank];
}

static bool is_listed(const rd_agree_shrink_t *r, int rank)
{
    return r->bits[rank / 8] >> rank % 8 & 1;
}

static rondo_result_t begin(rd_agree_shrink_t *r)
{
    rd_boot_t *b = r->boot;
    size_t n = (size_t)b->nranks;
    rd_hello_t mine = {.purpose = RD_FOR_AGREE_SHRINK, .rank = b->rank, .nranks = b->nranks};
    r->member = calloc(n, sizeof(*r->member));
    r->polls = calloc(n + RD_LISTENER_POLLS, sizeof(*r->polls));
    if (!r->member || !r->polls)
        return rd_error(b->ctx, RONDO_ERR_NO_MEMORY, "no memory for an agreement of %d ranks", b->nranks);
    for (int i = 0; i < b->nranks; i++) {
        r->member[i].probe = -1;
        r->member[i].lost = i < b->rank;
    }
    rd_listener_open(&r->incoming, b->listener, &r->creds, &b->addr, sizeof(b->addr), &mine);
    r->leads = 1;
    return RONDO_SUCCESS;
}

static void stop_knocking(rd_member_t *g)
{
    rd_fd_close(g->probe);
    g->probe = -1;
    g->answered = 0;
}

/* ---- which ranks live ---- */

/* Opens a connection to a rank that has not come. While the connection exists, the rank is alive. */
static void probe(rd_agree_shrink_t *r, int rank)
{
    rd_member_t *g = &r->member[rank];
    g->probe = rd_boot_dial(r->boot, rank);
    g->since_ms = rd_clock_ms();
    if (g->probe >= 0)
        return;
    g->lost = rd_agree_shrink_gone(errno);
    r->no_fd |= errno == EMFILE;
}

/* Handles an event on the probe, or a probe that takes long. A probe that ends is repeated: only a refusal says that
 * the rank is gone. */
static void knocked(rd_member_t *g, int event)
{
    if (!event && (g->answered || rd_clock_ms() - g->since_ms <= RD_AGREE_SHRINK_SILENT_MS))
        return;
    const int error = event ? rd_sock_error(g->probe) : ETIMEDOUT;
    if (!g->answered && !error) {
        g->answered = 1;
        return;
    }
    g->lost = rd_agree_shrink_gone(error);
    stop_knocking(g);
}

static void tell(rd_member_t *g, int type, const void *data, size_t bytes)
{
    if (g->chan)
        rd_chan_send(g->chan, type, data, bytes);
}

/* Sends a failure to one member, or to all that have come. */
static void tell_failure(rd_agree_shrink_t *r, rd_member_t *one, rondo_result_t code, const char *text)
{
    rd_fail_t fail = {.code = code, .failed_rank = r->rank};
    snprintf(fail.text, sizeof(fail.text), "%s", text);
    for (int i = 0; i < r->nranks && !one; i++)
        tell(&r->member[i], RD_REC_FAIL, &fail, sizeof(fail));
    if (one)
        tell(one, RD_REC_FAIL, &fail, sizeof(fail));
}

static void admit(rd_agree_shrink_t *r, rd_chan_t *chan)
{
    int rank = chan->theirs.rank;
    rd_member_t late = {.chan = chan};
    if (chan->theirs.purpose != RD_FOR_AGREE_SHRINK || chan->theirs.nranks != r->nranks || rank < 0 ||
        rank >= r->nranks || rank == r->rank) {
        rd_chan_free(chan);
        return;
    }
    rd_member_t *g = &r->member[rank];
    if (g->lost || g->chan) {
        tell_failure(r, &late, RONDO_ERR_REMOTE, "the others took this rank for gone: its connection had ended");
        rd_chan_free(chan);
        return;
    }
    g->chan = chan;
    rd_sock_heartbeat(chan->fd, false);
}

static void hear(rd_member_t *g)
{
    const unsigned char *data;
    size_t bytes;
    int type;
    rd_chan_pump(g->chan);
    while (rd_chan_next(g->chan, &type, &data, &bytes)) {
        if (type != RD_REC_STATE || bytes != sizeof(g->state))
            continue;
        memcpy(&g->state, data, sizeof(g->state));
        g->came = 1;
        stop_knocking(g);
    }
    if (!rd_chan_over(g->chan))
        return;
    g->lost = 1;
    rd_chan_free(g->chan);
    g->chan = NULL;
}

/* Where this rank has hardly a descriptor, not even in a table of its own, the connections to those that have not come
 * give way to those that come, for a while. */
static void make_way(rd_agree_shrink_t *r)
{
    if (!r->own_table || !rd_fd_none_left(r->incoming.error))
        return;
    for (int i = 0; i < r->nranks; i++)
        stop_knocking(&r->member[i]);
    r->incoming.error = 0;
    r->probe_ms = rd_clock_ms() + WAY_MS;
}

static void lose_the_dead(rd_agree_shrink_t *r)
{
    for (int i = 0; i < r->nranks; i++) {
        rd_member_t *g = member_of(r, i);
        if (!g || g->lost || !r->ops.died(r->ops.arg, i))
            continue;
        g->lost = 1;
        stop_knocking(g);
        rd_chan_free(g->chan);
        g->chan = NULL;
    }
}

/* Runs one turn of the loop: sleeps until something happens, and handles it. */
static void turn(rd_agree_shrink_t *r)
{
    int n = r->nranks;
    lose_the_dead(r);
    for (int i = 0; i < n; i++) {
        rd_member_t *g = member_of(r, i);
        if (g && !g->chan && !g->came && !g->lost && g->probe < 0 && rd_clock_ms() >= r->probe_ms)
            probe(r, i);
        r->polls[i] = (struct pollfd){.fd = -1};
        if (g && g->chan)
            r->polls[i] = (struct pollfd){.fd = g->chan->fd, .events = rd_chan_events(g->chan)};
        else if (g && g->probe >= 0)
            r->polls[i] = (struct pollfd){.fd = g->probe, .events = g->answered ? POLLIN : POLLOUT};
    }
    int incoming = rd_listener_fill(&r->incoming, r->polls + n);
    if (r->listed && r->incoming.error)
        r->polls[n].fd = -1; /* a stranger waits there */
    rd_sock_poll(r->polls, (nfds_t)(n + incoming), RD_BOOT_SLICE_MS);
    for (int i = 0; i < n; i++) {
        rd_member_t *g = member_of(r, i);
        if (g && g->chan)
            hear(g);
        else if (g && g->probe >= 0)
            knocked(g, r->polls[i].revents);
    }
    rd_listener_pump(&r->incoming);
    for (rd_chan_t *c; (c = rd_listener_next(&r->incoming));)
        admit(r, c);
    r->no_fd |= !r->listed && r->incoming.error == EMFILE;
    make_way(r);
}

/* ---- what follows ---- */

static void send_list(rd_agree_shrink_t *r)
{
    size_t all = ((size_t)r->nranks + 7) / 8;
    rd_agree_shrink_list_t part = {.round = r->mine.round};
    for (size_t at = 0; at < all; at += RD_AGREE_SHRINK_PART) {
        size_t bytes = all - at < RD_AGREE_SHRINK_PART ? all - at : RD_AGREE_SHRINK_PART;
        part.offset = (int32_t)at;
        memcpy(part.bits, r->bits + at, bytes);
        for (int i = 0; i < r->nranks; i++)
            tell(&r->member[i], RD_REC_LIST, &part, offsetof(rd_agree_shrink_list_t, bits) + bytes);
    }
}

/* Is it this rank, or one that has come and is not lost? */
static bool is_here(rd_agree_shrink_t *r, int rank)
{
    const rd_member_t *g = member_of(r, rank);

    return !g || (g->came && !g->lost);
}

static void make_list(rd_agree_shrink_t *r)
{
    int32_t round = r->mine.round;
    memset(r->bits, 0, ((size_t)r->nranks + 7) / 8);
    for (int i = 0; i < r->nranks; i++) {
        rd_member_t *g = member_of(r, i);
        if (g && g->state.round > round)
            round = g->state.round;
        if (is_here(r, i))
            r->bits[i / 8] |= (unsigned char)(1 << i % 8);
    }
    r->mine.round = round + 1;
    r->mine.standing = RD_STANDS_OUTSIDE;
    rd_agree_shrink_list(r);
    send_list(r);
    r->listed = 1;
}

static void tell_round(rd_agree_shrink_t *r, int type)
{
    for (int i = 0; i < r->nranks; i++)
        tell(&r->member[i], type, &r->mine.round, sizeof(r->mine.round));
}

static const rd_member_state_t *state_of(rd_agree_shrink_t *r, int rank)
{
    return rank == r->rank ? &r->mine : &r->member[rank].state;
}

/* Counts the ranks of the list that are not lost and have got at least as far as `least` in this round. */
static int count(rd_agree_shrink_t *r, rd_standing_t least)
{
    int n = 0;
    for (int k = 0; k < r->nmembers; k++) {
        int i = r->members[k];
        const rd_member_state_t *s = state_of(r, i);
        if (i == r->rank || !r->member[i].lost)
            n += s->round == r->mine.round && s->standing >= (int32_t)least;
    }
    return n;
}

static int count_lost(const rd_agree_shrink_t *r)
{
    int n = 0;
    for (int k = 0; k < r->nmembers; k++)
        n += r->members[k] != r->rank && r->member[r->members[k]].lost;
    return n;
}

/* Says on all ranks that the communicator of `n` ranks is not made because of what one of them has said. */
static rondo_result_t fail_for(rd_agree_shrink_t *r, rondo_result_t code, int n, int rank)
{
    const rd_member_state_t *s = state_of(r, rank);
    char text[sizeof(((rd_fail_t *)0)->text)];

    snprintf(text, sizeof(text), "the communicator of the %d ranks that are left was not made: rank %d (%s): %.*s", n,
             rank, rd_boot_whois(r->boot, rank), (int)sizeof(s->why) - 1, s->why);
    tell_failure(r, NULL, code, text);
    return rd_error(r->boot->ctx, code, "%s", text);
}

/* This rank has no descriptor for a communicator, so that each one that comes hears so at once, and makes way for the
 * next one. */
static void turn_away(rd_agree_shrink_t *r)
{
    char text[sizeof(((rd_fail_t *)0)->text)];

    snprintf(text, sizeof(text), "the communicator of the ranks that are left was not made: rank %d (%s): %.*s",
             r->rank, rd_boot_whois(r->boot, r->rank), (int)sizeof(r->mine.why) - 1, r->mine.why);
    for (int i = 0; i < r->nranks; i++) {
        rd_member_t *g = member_of(r, i);
        if (!g || !g->chan || !g->came)
            continue;
        tell_failure(r, g, RONDO_ERR_SYSTEM, text);
        rd_chan_leave(g->chan);
        g->chan = NULL;
    }
}

/* No rank has died, and yet the attempt failed: there is no use in trying again. */
static rondo_result_t cancel(rd_agree_shrink_t *r)
{
    int ctx = -1;
    for (int k = 0; k < r->nmembers; k++) {
        const rd_member_state_t *s = state_of(r, r->members[k]);
        if (s->standing == RD_STANDS_FAILED &&
            (ctx < 0 || (state_of(r, ctx)->code == RONDO_ERR_REMOTE && s->code != RONDO_ERR_REMOTE)))
            ctx = r->members[k];
    }
    int code = state_of(r, ctx)->code;
    if (code <= RONDO_IN_PROGRESS || code > RD_LAST_RESULT)
        code = RONDO_ERR_REMOTE;
    return fail_for(r, (rondo_result_t)code, r->nmembers, ctx);
}

/* Returns a rank that has come, and has not enough descriptors left for a communicator of `n` ranks; -1: none. */
static int poor_rank(rd_agree_shrink_t *r, int n)
{
    const int need = rd_boot_fds(n, r->ops.env);

    /* Less those for the ranks that have come, which it goes on to hold. The communicator of the last list, if it is
     * made, holds some until there is another list: they are no longer counted then, and what was measured stands. */
    if (!r->own_table && r->mine.standing < RD_STANDS_MADE) {
        r->mine.spare = rd_fd_free(need);
        if (r->mine.spare < need)
            snprintf(r->mine.why, sizeof(r->mine.why), "cannot make a communicator: %s", rd_fd_strerror(EMFILE));
    }
    for (int i = 0; i < r->nranks && n > 1; i++)
        if (is_here(r, i) && state_of(r, i)->spare < need)
            return i;
    return -1;
}

static int count_here(rd_agree_shrink_t *r)
{
    int n = 0;
    for (int i = 0; i < r->nranks; i++)
        n += is_here(r, i);
    return n;
}

typedef enum { GOES_ON, IS_LISTED, IS_KEPT, IS_OVER } decision_t;

static decision_t keep(rd_agree_shrink_t *r)
{
    tell_round(r, RD_REC_KEEP);
    return IS_KEPT;
}

static decision_t prepare(rd_agree_shrink_t *r)
{
    r->mine.standing = RD_STANDS_READY;
    r->listed = 1;
    tell_round(r, RD_REC_PREPARE);
    return count(r, RD_STANDS_READY) == r->nmembers - count_lost(r) ? keep(r) : GOES_ON;
}

static decision_t decide_gathered(rd_agree_shrink_t *r, rondo_result_t *result)
{
    for (int i = 0; i < r->nranks; i++) {
        rd_member_t *g = member_of(r, i);
        if (g && !g->came && !g->lost)
            return GOES_ON;
    }
    /* Some ranks are READY from a leader that is gone: all had made the communicator, and some may have kept it and
     * left. The ranks that are here become READY first: should this leader die as well between one KEEP and the next,
     * the next leader must find that out. */
    if (r->mine.standing >= RD_STANDS_MADE && count(r, RD_STANDS_READY) > 0)
        return prepare(r);
    int n = count_here(r), poor = poor_rank(r, n);
    if (poor >= 0) {
        *result = fail_for(r, RONDO_ERR_SYSTEM, n, poor);
        return IS_OVER;
    }
    make_list(r);
    return IS_LISTED;
}

/* What could not be accepted while a list was out was no rank: all that live had come. */
static void clear_refusals(rd_agree_shrink_t *r)
{
    r->incoming.poor = 0;
    r->incoming.refusals = 0;
    r->incoming.error = 0;
}

static decision_t decide_listed(rd_agree_shrink_t *r, rondo_result_t *result)
{
    int here = r->nmembers - count_lost(r);
    if (r->mine.standing == RD_STANDS_READY)
        return count(r, RD_STANDS_READY) == here ? keep(r) : GOES_ON;
    if (here < r->nmembers) { /* the others will hear of it when they have returned from making the communicator */
        r->listed = 0;
        clear_refusals(r);
        return decide_gathered(r, result);
    }
    if (count(r, RD_STANDS_FAILED) < here)
        return GOES_ON;
    if (count(r, RD_STANDS_MADE) < here) {
        *result = cancel(r);
        return IS_OVER;
    }
    return prepare(r);
}

static rondo_result_t check(rd_agree_shrink_t *r)
{
    char awaited[RD_WHOIS + 64] = "not all answered";
    for (int i = r->nranks - 1; i >= 0; i--) {
        rd_member_t *g = member_of(r, i);
        if (g && !g->lost && (!g->came || (r->listed && g->state.round < r->mine.round)))
            snprintf(awaited, sizeof(awaited), "rank %d (%s) lives and did not come", i, rd_boot_whois(r->boot, i));
    }
    rondo_result_t result = rd_agree_shrink_check(r, awaited);
    if (result == RONDO_ERR_TIMEOUT)
        tell_failure(r, NULL, result, rd_thread_error());
    return result;
}

static void dismiss_attendant(rd_agree_shrink_t *r)
{
    uint64_t one = 1;
    if (!r->attends)
        return;
    if (write(r->wake, &one, sizeof(one)) == sizeof(one))
        pthread_join(r->attendant, NULL);
    rd_fd_close(r->wake);
    r->attends = 0;
}

/* No other rank can come to this one. */
static rondo_result_t cannot_accept(rd_agree_shrink_t *r)
{
    const rondo_result_t code = r->incoming.poor ? RONDO_ERR_NO_MEMORY : RONDO_ERR_SYSTEM;

    r->mine.code = code;
    snprintf(r->mine.why, sizeof(r->mine.why), "cannot accept the connections of the other ranks (accept4): %s",
             rd_fd_strerror(r->incoming.poor ? ENOMEM : r->incoming.error));
    return fail_for(r, code, count_here(r), r->rank);
}

rondo_result_t rd_agree_shrink_lead(rd_agree_shrink_t *r, rd_agree_shrink_verdict_t *verdict)
{
    rondo_result_t result = RONDO_SUCCESS;
    dismiss_attendant(r);
    if (!r->leads && (result = begin(r)))
        return result;
    for (;;) {
        decision_t decision = r->listed ? decide_listed(r, &result) : decide_gathered(r, &result);
        if (decision == IS_OVER)
            return result;
        *verdict = decision == IS_KEPT ? RD_AGREE_SHRINK_KEEP : RD_AGREE_SHRINK_LIST;
        if (decision != GOES_ON)
            return RONDO_SUCCESS;
        if ((result = check(r)))
            return result;
        turn(r);
        if (r->own_table && r->mine.standing < RD_STANDS_MADE)
            turn_away(r);
        if (r->no_fd && !r->own_table)
            return RONDO_ERR_SYSTEM;
        if (!r->listed && (r->incoming.poor || rd_fd_refused(r->incoming.error) || r->incoming.error == ENFILE))
            return cannot_accept(r);
    }
}

/* ---- while a list is made ---- */

static void *attend(void *arg)
{
    rd_agree_shrink_t *r = arg;
    int n = r->nranks;
    r->polls[n] = (struct pollfd){.fd = r->wake, .events = POLLIN};
    if (poll(r->polls, (nfds_t)n + 1, -1) <= 0 || r->polls[n].revents)
        return NULL;
    if (poll(&r->polls[n], 1, PATIENCE_MS) == 0)
        rd_served_cancel(r->job, "one of the ranks that were left has died, too");
    return NULL;
}

/* Without this thread a death would only be found at the deadline of the rendezvous, so a failure to start it is
 * tolerated. */
void rd_agree_shrink_attend(rd_agree_shrink_t *r)
{
    if (!r->leads || r->nmembers == 1)
        return;
    rd_fd_fork_lock();
    r->wake = rd_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    rd_fd_fork_unlock();
    if (r->wake < 0)
        return;
    memcpy(r->job, r->boot->derived, sizeof(r->job));
    for (int i = 0; i < r->nranks; i++) {
        rd_member_t *g = member_of(r, i);
        r->polls[i] = (struct pollfd){.fd = g && g->chan && is_listed(r, i) ? g->chan->fd : -1, .events = POLLRDHUP};
    }
    r->attends = rd_thread_start(&r->attendant, attend, r) == 0;
    if (!r->attends)
        rd_fd_close(r->wake);
}

void rd_agree_shrink_lead_end(rd_agree_shrink_t *r)
{
    dismiss_attendant(r);
    if (!r->leads)
        goto free;
    rd_listener_close(&r->incoming);
    for (int i = 0; i < r->nranks; i++) {
        stop_knocking(&r->member[i]);
        rd_chan_free(r->member[i].chan);
    }
    r->leads = r->listed = 0;
free:
    free(r->member);
    free(r->polls);
    r->member = NULL;
    r->polls = NULL;
}
