/* The rendezvous thread.
 *
 * Members come through the listener (so they hold the secret), introduce themselves and wait. When all have come, each
 * receives the addresses of its neighbours, connects to them, reports that it is ready and leaves. The rendezvous sees
 * all ranks, and therefore it is the one that reports what is wrong: a rank that is claimed twice, different rank
 * counts, or a rank that left, failed or did not come in time. In each case all ranks that are there, and all that
 * still come, receive the same sentence.
 *
 * A derived id may be used again, and a rank may come for the next time while others have not yet finished with this
 * one. A rank that has already received all it came for, and comes again, is disconnected without an answer and tries
 * again: see join.c. */
#include "boot/rendezvous_int.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "base/wait.h"

#define SLICE_MS 50       /* the longest sleep: limits how late a deadline is noticed */
#define PART_MS 5000      /* how long the end waits for other roots, whose ranks are not ready yet */
#define LINGER_MS 200     /* how long it waits for roots that have heard of a failure, and for who has said nothing */
#define HANDSHAKE_MS 2000 /* and for processes in a handshake that have named this job, who are refused */

/* Lists the first few ranks that have not come. */
static void missing(const rd_rendezvous_t *m, char *text, size_t room)
{
    size_t used = 0;
    int named = 0;
    text[0] = 0;
    for (int r = 0; r < m->nranks && used < room; r++) {
        if (m->by_rank[r] >= 0 || !rd_rendezvous_expects(m, r))
            continue;
        if (++named > 8) {
            snprintf(text + used, room - used, " and more");
            return;
        }
        used += (size_t)snprintf(text + used, room - used, "%s%d", named > 1 ? ", " : "", r);
    }
}

/* Whoever has started the ranks looks for the missing ones before the time is over. */
static void say_missing(rd_rendezvous_t *m)
{
    char ctx[96], at[RD_ADDR_TEXT];

    if (!m->first_ms || !m->stall_ms || m->tabled || m->fail.code || rd_clock_ms() - m->first_ms < m->stall_ms)
        return;
    missing(m, ctx, sizeof(ctx));
    rd_log(NULL, RD_LOG_WARN,
           "of %d ranks only %d have come within %g s to %s, where this process made their unique id; missing: %s "
           "(RONDO_STALL_MS; they are waited for until RONDO_CREATE_TIMEOUT_MS is over)",
           rd_rendezvous_awaited(m), m->njoined, (double)m->stall_ms / 1000, rd_addr_print(&m->id.addr, at), ctx);
    m->stall_ms = 0;
}

static void check_deadline(rd_rendezvous_t *m)
{
    char ctx[96];
    int64_t later_ms =
        m->roots.known && m->tabled ? 1000 : 0; /* what it waits for has a deadline, too, and says more */
    if (!m->first_ms || m->timeout_ms <= 0 || m->fail.code || rd_clock_ms() - m->first_ms < m->timeout_ms + later_ms)
        return;
    missing(m, ctx, sizeof(ctx));
    if (m->njoined < rd_rendezvous_awaited(m))
        rd_rendezvous_fail(m, RONDO_ERR_TIMEOUT, -1,
                           "of %d ranks only %d came within %lld ms; missing: %s (RONDO_CREATE_TIMEOUT_MS)",
                           rd_rendezvous_awaited(m), m->njoined, (long long)m->timeout_ms, ctx);
    else if (m->tabled == 1 && m->roots.known)
        rd_rendezvous_fail(m, RONDO_ERR_TIMEOUT, -1,
                           "other ids of this communicator have not got all their ranks within %lld ms",
                           (long long)m->timeout_ms);
    else
        rd_rendezvous_fail(m, RONDO_ERR_TIMEOUT, -1,
                           "all %d ranks came, but only %d reached their neighbours within %lld ms: does a "
                           "firewall close the ports between the hosts (RONDO_IFACE, RONDO_PORTS)?",
                           rd_rendezvous_awaited(m), m->nready, (long long)m->timeout_ms);
}

/* Ranks that listen on loopback because the rendezvous is on their host must move when others are not there. */
static void ask_to_move(rd_rendezvous_t *m)
{
    int far = 0;
    for (int i = 0; i < m->nmembers; i++)
        far |= m->member[i].joined && !m->member[i].join.near;
    for (int i = 0; i < m->nmembers && far && !m->fail.code; i++) {
        rd_joiner_t *g = &m->member[i];
        if (!rd_addr_is_loopback(&g->join.addr))
            continue;
        if (g->join.fixed)
            rd_rendezvous_fail(m, RONDO_ERR_INVALID_ARGUMENT, rd_joiner_rank(g),
                               "rank %d (%s) listens on loopback by its RONDO_IFACE, but not all ranks are on its host",
                               rd_joiner_rank(g), g->join.whois);
        g->moving = 1;
        m->nmoving++;
        rd_chan_send(g->chan, RD_REC_MOVE, NULL, 0);
    }
}

static rd_contact_t contact_of(const rd_rendezvous_t *m, int rank)
{
    rd_contact_t contact = {0};
    const rd_contact_t *other = rd_rendezvous_expects(m, rank) ? NULL : rd_roots_contact(&m->roots, rank);
    if (other || !rd_rendezvous_expects(m, rank) || m->by_rank[rank] < 0)
        return other ? *other : contact;
    const rd_join_t *join = &m->member[m->by_rank[rank]].join;
    contact.addr = join->addr;
    memcpy(contact.whois, join->whois, RD_WHOIS);
    return contact;
}

/* Returns false if a rank that has come has no port: it could not listen, and is about to say why. Who had its address
 * from the table would find nobody there, and take it for one that has died. */
static bool all_listen(const rd_rendezvous_t *m)
{
    for (int i = 0; i < m->nmembers; i++)
        if (m->member[i].joined && !m->member[i].join.addr.port[0] && !m->member[i].join.addr.port[1])
            return false;
    return true;
}

/* All ranks of this block have come: the other roots may have their contacts. */
static void publish(rd_rendezvous_t *m)
{
    m->own = calloc((size_t)m->roots.count, sizeof(*m->own));
    if (!m->own)
        rd_rendezvous_fail(m, RONDO_ERR_NO_MEMORY, -1, "the rendezvous (%s) has no memory", m->id.maker);
    for (int i = 0; m->own && i < m->roots.count; i++)
        m->own[i] = contact_of(m, m->roots.first + i);
    m->roots.own = m->own;
}

static void send_tables(rd_rendezvous_t *m)
{
    struct {
        rd_salt_t salt;
        rd_contact_t contact[RD_BOOT_ROUNDS];
    } table = {.salt = m->salt};
    int first = m->roots.known ? m->roots.first : 0;
    for (int r = first; r < first + rd_rendezvous_awaited(m); r++) {
        rd_joiner_t *g = &m->member[m->by_rank[r]];
        int n = 0;
        for (int64_t d = 1; d < m->nranks; d *= 2)
            table.contact[n++] = contact_of(m, (int)((r + d) % m->nranks));
        rd_chan_send(g->chan, RD_REC_TABLE, &table, sizeof(table.salt) + (size_t)n * sizeof(table.contact[0]));
        g->notified = 1;
    }
}

static void send_failure(rd_rendezvous_t *m)
{
    for (int i = 0; i < m->nmembers; i++) {
        rd_joiner_t *g = &m->member[i];
        if (!g->joined || g->notified == 2)
            continue;
        rd_chan_send(g->chan, RD_REC_FAIL, &m->fail, sizeof(m->fail));
        g->notified = 2;
        m->nnotified++;
    }
    rd_roots_tell(&m->roots, &m->fail);
}

/* Where descriptors are scarce, the connections of those that know of the failure make room for those that wait. */
static void let_go(rd_rendezvous_t *m)
{
    for (int i = 0; i < m->nmembers; i++) {
        rd_chan_t *c = m->member[i].chan;
        if (m->member[i].notified == 2 && !rd_chan_over(c) && !rd_chan_queued(c))
            rd_chan_hang_up(c);
    }
}

static void hear_roots(rd_rendezvous_t *m)
{
    rd_roots_pump(&m->roots);
    if (m->roots.known && !m->first_ms)
        rd_rendezvous_begin(m, m->roots.plan.nranks);
    m->most = m->roots.known && m->most == 0 ? m->roots.count : m->most;
    if (m->roots.fail.code)
        rd_rendezvous_fail(m, m->roots.fail.code, m->roots.fail.failed_rank, "%s", m->roots.fail.text);
}

/* Takes the actions that follow from the present state. */
static void decide(rd_rendezvous_t *m)
{
    hear_roots(m);
    say_missing(m);
    check_deadline(m);
    if (!m->fail.code && !m->tabled && m->njoined && m->njoined == rd_rendezvous_awaited(m) && all_listen(m)) {
        if (m->roots.known)
            publish(m);
        else
            ask_to_move(m);
        m->tabled = 1;
    }
    if (!m->fail.code && m->tabled == 1 && m->nmoving == 0 && (!m->roots.known || rd_roots_complete(&m->roots))) {
        send_tables(m);
        m->tabled = 2;
    }
    if (m->fail.code)
        send_failure(m);
    if (!m->fail.code && m->ready_ms)
        rd_roots_ready(&m->roots);
    if (m->fail.code && m->served.moved)
        let_go(m);
}

/* Strangers, who look for open ports, may have connected as well: the ranks of this job do not wait long for those. */
static int64_t handshake_ms(const rd_rendezvous_t *m)
{
    for (int i = 0; i < m->incoming.npending; i++)
        if (m->incoming.pending[i]->state == RD_CHAN_PROOF)
            return HANDSHAKE_MS;
    return m->incoming.npending ? LINGER_MS : 0;
}

/* All ranks are ready, and nobody is left who comes too late with this id and would not learn why he is refused. */
static bool is_done(const rd_rendezvous_t *m)
{
    int64_t since_ms = rd_clock_ms() - m->ready_ms;

    if (!m->ready_ms || !rd_roots_flushed(&m->roots) || (!rd_roots_parted(&m->roots) && since_ms < PART_MS))
        return false;
    return m->id.derived || since_ms >= handshake_ms(m);
}

/* Returns true if the rendezvous has ended. Members that have finished keep their place in the list (by_rank points
 * there), but not their connection. */
static bool is_over(const rd_rendezvous_t *m)
{
    if (!m->fail.code)
        return is_done(m);
    for (int i = 0; i < m->nmembers; i++)
        if (!rd_chan_over(m->member[i].chan) && rd_chan_queued(m->member[i].chan))
            return false;
    if (!rd_roots_flushed(&m->roots))
        return false;
    if (!rd_roots_parted(&m->roots) && rd_clock_ms() - m->failed_ms < LINGER_MS)
        return false;
    return (m->most > 0 && m->nnotified >= m->most && rd_roots_informed(&m->roots)) ||
           (m->timeout_ms > 0 && m->first_ms && rd_clock_ms() - m->first_ms >= m->timeout_ms + 1000);
}

/* Returns 0, or -1 if there is no memory. */
static int admit(rd_rendezvous_t *m, rd_chan_t *chan)
{
    if (chan->theirs.purpose == RD_FOR_MEETING && chan->theirs.slot == RD_SLOT_ROOT && !m->id.derived)
        return rd_roots_admit(&m->roots, chan);
    if (chan->theirs.purpose != RD_FOR_MEETING) {
        rd_chan_free(chan);
        return 0;
    }
    if (m->nmembers == m->room) {
        int room = m->room ? 2 * m->room : 16;
        rd_joiner_t *more = realloc(m->member, (size_t)room * sizeof(*more));
        if (!more) {
            rd_chan_free(chan);
            return -1;
        }
        m->member = more;
        m->room = room;
    }
    m->member[m->nmembers++] = (rd_joiner_t){.chan = chan};
    rd_rendezvous_hear(m, &m->member[m->nmembers - 1]);
    return 0;
}

/* This process has no descriptor left for the ranks that wait to be let in, one of which may have just that to say. So
 * this thread goes on with a table of its own; what it takes along is closed in the process's table when the thread has
 * been joined. Where that fails it goes on as it is. */
static void take_own_table(rd_rendezvous_t *m)
{
    int *own = malloc((size_t)(2 + m->nmembers + RD_LISTENER_POLLS + rd_roots_polls(&m->roots)) * sizeof(int)), n = 0;
    if (!own)
        return;
    own[n++] = m->listener;
    for (int i = 0; i < m->nmembers; i++)
        if (m->member[i].chan->fd >= 0)
            own[n++] = m->member[i].chan->fd;
    for (int i = 0; i < m->incoming.npending; i++)
        own[n++] = m->incoming.pending[i]->fd;
    n += rd_roots_fds(&m->roots, own + n);
    own[n++] = m->served.wake;
    if (rd_fd_own_table(own, n) != 0) {
        free(own);
        return;
    }
    m->incoming.error = 0;
    m->served.moved = own;
    m->served.nmoved = n;
}

static int no_memory(rd_rendezvous_t *m)
{
    rd_rendezvous_fail(m, RONDO_ERR_NO_MEMORY, -1, "the rendezvous (%s) has no memory", m->id.maker);
    return -1;
}

static int refused(rd_rendezvous_t *m, const char *call, int error)
{
    rd_rendezvous_fail(m, RONDO_ERR_SYSTEM, -1, "the rendezvous (%s) may not call %s: %s", m->id.maker, call,
                       strerror(error));
    return -1;
}

/* Runs one turn of the loop: sleeps until something happens, and handles it. Returns 0, or -1 if it cannot go on. */
static int turn(rd_rendezvous_t *m)
{
    int need = 1 + RD_LISTENER_POLLS + m->nmembers + rd_roots_polls(&m->roots), n = 0;
    if (need > m->polls_room) {
        struct pollfd *more = realloc(m->polls, (size_t)(2 * need) * sizeof(*more));
        if (!more)
            return no_memory(m);
        m->polls = more;
        m->polls_room = 2 * need;
    }
    struct pollfd *p = m->polls;
    p[n++] = (struct pollfd){.fd = m->served.wake, .events = POLLIN};
    for (int i = 0; i < m->nmembers; i++) {
        rd_chan_t *c = m->member[i].chan;
        p[n++] = (struct pollfd){.fd = rd_chan_over(c) ? -1 : c->fd, .events = rd_chan_events(c)};
    }
    int members = m->nmembers;
    n += rd_listener_fill(&m->incoming, p + n);
    n += rd_roots_fill(&m->roots, p + n);
    if (!rd_sock_poll(p, (nfds_t)n, m->first_ms || m->incoming.npending || m->served.wake < 0 ? SLICE_MS : -1))
        return refused(m, "poll", errno);
    if (p[0].revents)
        rd_served_woken(&m->served);
    for (int i = 0; i < members; i++)
        if (p[1 + i].revents)
            rd_rendezvous_hear(m, &m->member[i]);
    rd_listener_pump(&m->incoming);
    for (rd_chan_t *c; (c = rd_listener_next(&m->incoming));)
        if (admit(m, c) != 0)
            return no_memory(m);
    if (rd_fd_refused(m->incoming.error))
        return refused(m, "accept4", m->incoming.error);
    if (m->incoming.error && !m->served.moved)
        take_own_table(m);
    return m->incoming.poor ? no_memory(m) : 0;
}

static void end(rd_rendezvous_t *m)
{
    rd_listener_close(&m->incoming);
    for (int i = 0; i < m->nmembers; i++) {
        if (!m->fail.code && !m->id.derived && !m->member[i].joined && !rd_chan_over(m->member[i].chan))
            rd_rendezvous_refuse(m, &m->member[i]);
        rd_chan_free(m->member[i].chan);
    }
    rd_roots_end(&m->roots);
    rd_fd_close(m->listener);
    free(m->own);
    m->own = NULL;
    free(m->member);
    free(m->by_rank);
    free(m->polls);
    m->member = NULL;
    m->by_rank = NULL;
    m->polls = NULL;
}

static void *rendezvous_run(void *arg)
{
    rd_rendezvous_t *m = arg;
    while (!is_over(m)) {
        if (turn(m) != 0) { /* a rank that is not yet admitted learns of it from the end of its connection */
            rd_served_fail(m->served.job, m->fail.text);
            send_failure(m);
            break;
        }
        const char *failed = rd_served_failed(&m->served), *why = rd_served_cancelled(&m->served);
        if (failed)
            rd_rendezvous_fail(m, RONDO_ERR_REMOTE, -1, "%s", failed);
        if (why) {
            rd_rendezvous_fail(m, RONDO_ERR_REMOTE, -1, "%s; so the rendezvous (%s) gave up", why, m->id.maker);
            send_failure(m);
            break;
        }
        decide(m);
    }
    end(m);
    rd_served_done(&m->served);
    return NULL;
}

static rd_rendezvous_t *rendezvous_alloc(const rd_id_t *id, int listener, int64_t timeout_ms, int64_t stall_ms)
{
    const rd_hello_t mine = {.purpose = RD_FOR_MEETING, .rank = -1};
    rd_rendezvous_t *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->id = *id;
    m->listener = listener;
    m->timeout_ms = timeout_ms;
    m->stall_ms = stall_ms;
    m->roots.maker = m->id.maker;
    randombytes_buf(&m->salt, sizeof(m->salt));
    rd_listener_open(&m->incoming, listener, &id->creds, &id->addr, sizeof(id->addr), &mine);
    memcpy(m->served.job, id->creds.job, sizeof(m->served.job));
    return m;
}

void rd_rendezvous_refuse_all(const rd_id_t *id, int listener, const char *why, int64_t ms)
{
    rd_rendezvous_t *m = rendezvous_alloc(id, listener, 0, 0);
    const int64_t until = rd_clock_ms() + ms;
    int none = -1;
    if (!m)
        return;
    m->served.wake = -1;
    m->served.moved = &none; /* the caller's thread keeps the table of the process */
    m->nnotified = 1;        /* the caller's rank */
    rd_rendezvous_fail(m, RONDO_ERR_REMOTE, 0, "%s", why);
    while (!is_over(m) && rd_clock_ms() < until && turn(m) == 0)
        decide(m);
    m->listener = -1;
    end(m);
    free(m);
}

rondo_result_t rd_rendezvous_start(const rd_id_t *id, int listener, bool own, int64_t timeout_ms, int64_t stall_ms,
                                   rd_log_ctx_t *ctx)
{
    rd_rendezvous_t *m = rendezvous_alloc(id, listener, timeout_ms, stall_ms);
    if (!m && !own)
        rd_fd_close(listener);
    if (!m)
        return rd_error(ctx, RONDO_ERR_NO_MEMORY, "no memory for the rendezvous");
    if ((own ? rd_served_start_own_table(&m->served, rendezvous_run, listener)
             : rd_served_start(&m->served, rendezvous_run)) == 0)
        return RONDO_SUCCESS;
    rondo_result_t code = rd_error(ctx, RONDO_ERR_SYSTEM, "cannot start the rendezvous: %s", rd_thread_strerror(errno));
    rd_fd_close(own ? -1 : listener);
    free(m);
    return code;
}
