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
#include "boot/rendezvous.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "boot/listener.h"
#include "boot/registry.h"
#include "boot/roots.h"
#include "base/thread.h"
#include "base/wait.h"

#define SLICE_MS 50       /* the longest sleep: limits how late a deadline is noticed */
#define PART_MS 5000      /* how long the end waits for other roots, whose ranks are not ready yet */
#define LINGER_MS 200     /* how long it waits for roots that have heard of a failure, and for who has said nothing */
#define HANDSHAKE_MS 2000 /* and for processes in a handshake that have named this job, who are refused */

typedef struct member {
    rd_chan_t *chan;
    rd_join_t join;
    rd_roots_head_t head; /* of a rank that comes with several ids; unlike: with others than this is one of */
    int unlike;
    int joined, ready, notified; /* notified: it has the table (1), or knows of the failure (2) */
    int moving;                  /* it was asked to listen at another address */
} member_t;

typedef struct rendezvous {
    rd_served_t served; /* its entry in the registry; first */
    rd_id_t id;
    rd_salt_t salt;
    int listener;
    rd_listener_t incoming;
    int64_t timeout_ms, first_ms, ready_ms; /* ready_ms: when the last rank was ready; 0: not yet */
    int64_t failed_ms;
    member_t *member;
    int nmembers, room;
    int nranks; /* as the first member says; 0: no member has come yet */
    int most;   /* the greatest count that any member gave */
    int njoined, nready, nnotified, nmoving;
    int tabled;
    int *by_rank; /* the member of each rank; -1: none */
    rd_fail_t fail;
    rd_roots_t roots; /* the others, where there are several */
    rd_contact_t *own;
    struct pollfd *polls;
    int polls_room;
} rendezvous_t;

static void fail(rendezvous_t *m, rondo_result_t code, int failed_rank, const char *format, ...)
{
    if (m->fail.code)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(m->fail.text, sizeof(m->fail.text), format, args);
    va_end(args);
    m->fail.code = code;
    m->failed_ms = rd_clock_ms();
    m->fail.failed_rank = failed_rank;
}

static int rank_of(const member_t *g)
{
    return g->chan->theirs.rank;
}

static int awaited(const rendezvous_t *m)
{
    return m->roots.known ? m->roots.count : m->nranks;
}

static bool comes_here(const rendezvous_t *m, int rank)
{
    return !m->roots.known || (rank >= m->roots.first && rank < m->roots.first + m->roots.count);
}

/* Checks everything that can be wrong with a new member. */
static void examine(rendezvous_t *m, member_t *g)
{
    int rank = rank_of(g), nranks = g->chan->theirs.nranks;
    const member_t *first = NULL;
    for (int i = 0; i < m->nmembers && !first; i++)
        if (m->member[i].joined && &m->member[i] != g)
            first = &m->member[i];
    if (first && nranks != m->nranks)
        fail(m, RONDO_ERR_INVALID_ARGUMENT, rank,
             "rank %d (%s) says %d ranks, rank %d (%s) says %d: nranks must be equal", rank_of(first),
             first->join.whois, m->nranks, rank, g->join.whois, nranks);
    else if (g->unlike || nranks != m->nranks)
        fail(m, RONDO_ERR_INVALID_ARGUMENT, rank,
             "rank %d (%s) comes with %d ranks and %d ids, but not all others do: nranks and the list of ids must be "
             "equal on all ranks",
             rank, g->join.whois, nranks, g->head.plan.nroots ? g->head.plan.nroots : 1);
    else if (rank < 0 || rank >= nranks)
        fail(m, RONDO_ERR_INVALID_ARGUMENT, rank, "%s claims rank %d of %d ranks: ranks are 0 to %d", g->join.whois,
             rank, nranks, nranks - 1);
    else if (!comes_here(m, rank))
        fail(m, RONDO_ERR_INTERNAL, rank, "rank %d (%s) has come to the rendezvous of ranks %d to %d", rank,
             g->join.whois, m->roots.first, m->roots.first + m->roots.count - 1);
    else if (m->by_rank[rank] >= 0)
        fail(m, RONDO_ERR_INVALID_ARGUMENT, rank, "rank %d was claimed by %s and %s: each number belongs to one rank",
             rank, m->member[m->by_rank[rank]].join.whois, g->join.whois);
    else
        m->by_rank[rank] = (int)(g - m->member);
}

static void first_came(rendezvous_t *m, int nranks)
{
    size_t n = nranks > 0 ? (size_t)nranks : 1;
    m->first_ms = rd_clock_ms();
    m->nranks = nranks;
    m->by_rank = nranks <= RD_MOST_RANKS ? malloc(n * sizeof(int)) : NULL;
    if (!m->by_rank)
        fail(m, RONDO_ERR_NO_MEMORY, -1, "the rendezvous (%s) has no memory for %d ranks", m->id.maker, nranks);
    else
        memset(m->by_rank, 0xff, n * sizeof(int));
}

static bool comes_again(const rendezvous_t *m, const member_t *g)
{
    int rank = rank_of(g);

    return m->id.derived && m->by_rank && rank >= 0 && rank < m->nranks && m->by_rank[rank] >= 0 &&
           m->member[m->by_rank[rank]].notified;
}

/* A process that comes with an id whose ranks all have the table is told so; it changes nothing for those ranks. */
static void refuse_second_use(rendezvous_t *m, member_t *g)
{
    rd_fail_t said = {.code = RONDO_ERR_INVALID_USAGE, .failed_rank = -1};
    snprintf(said.text, sizeof(said.text),
             "the %d ranks of this unique id, made by %s, have met already: an id serves one communicator", m->nranks,
             m->id.maker);
    rd_chan_send(g->chan, RD_REC_FAIL, &said, sizeof(said));
}

static void on_join(rendezvous_t *m, member_t *g, const unsigned char *data, size_t bytes)
{
    if (bytes != sizeof(g->join) || g->joined)
        return;
    if (m->tabled == 2 && !m->id.derived) {
        refuse_second_use(m, g);
        return;
    }
    if (comes_again(m, g)) {
        rd_chan_hang_up(g->chan);
        return;
    }
    memcpy(&g->join, data, bytes);
    g->join.whois[RD_WHOIS - 1] = 0;
    g->joined = 1;
    atomic_fetch_add(&m->served.members, 1);
    m->roots.single |= !m->roots.known;
    g->unlike |= m->roots.known && !g->head.plan.nroots;
    if (m->njoined++ == 0 && !m->first_ms)
        first_came(m, g->chan->theirs.nranks);
    int most = m->roots.known && !g->unlike ? m->roots.count : g->chan->theirs.nranks; /* unlike: seldom the only one */
    m->most = most > m->most ? most : m->most;
    m->most += !comes_here(m, rank_of(g)); /* those that should have come still do */
    if (!m->fail.code)
        examine(m, g);
}

/* A rank has several ids, of which this is one. */
static void on_roots(rendezvous_t *m, member_t *g, const unsigned char *data, size_t bytes)
{
    rd_root_t roots[RD_ROOTS_MOST];
    int n = g->joined ? -1 : rd_roots_open(data, bytes, &m->id.creds, &g->head, roots);
    if (n < 0)
        return;
    g->unlike = (m->njoined > 0 && !m->roots.known) || !rd_roots_agree(&m->roots, &g->head);
    if (!g->unlike && rd_roots_begin(&m->roots, roots, n) != 0)
        fail(m, RONDO_ERR_NO_MEMORY, -1, "the rendezvous (%s) has no memory", m->id.maker);
    sodium_memzero(roots, sizeof(roots));
}

static void on_record(rendezvous_t *m, member_t *g, int type, const unsigned char *data, size_t bytes)
{
    rd_fail_t said;
    if (type == RD_REC_ROOTS) {
        on_roots(m, g, data, bytes);
    } else if (type == RD_REC_JOIN) {
        on_join(m, g, data, bytes);
    } else if (type == RD_REC_ADDR && bytes == sizeof(rd_addr_t) && g->moving) {
        memcpy(&g->join.addr, data, bytes);
        g->moving = 0;
        m->nmoving--;
    } else if (type == RD_REC_READY && g->notified && !g->ready) {
        g->ready = 1;
        if (++m->nready == awaited(m))
            m->ready_ms = rd_clock_ms();
    } else if (type == RD_REC_FAIL && bytes == sizeof(said) && g->joined) {
        memcpy(&said, data, bytes);
        said.text[sizeof(said.text) - 1] = 0;
        if (said.failed_rank < -1 || said.failed_rank >= m->nranks)
            said.failed_rank = -1;
        if (said.failed_rank == rank_of(g))
            fail(m, said.code, said.failed_rank, "rank %d (%s): %s", rank_of(g), g->join.whois, said.text);
        else /* the sentence is about another rank */
            fail(m, said.code, said.failed_rank, "%s", said.text);
        m->nnotified += g->notified != 2;
        g->notified = 2; /* it knows of the failure */
    }
}

static void serve(rendezvous_t *m, member_t *g)
{
    const unsigned char *data;
    size_t bytes;
    int type;
    rd_chan_pump(g->chan);
    while (rd_chan_next(g->chan, &type, &data, &bytes))
        on_record(m, g, type, data, bytes);
    if (!rd_chan_over(g->chan))
        return;
    if (g->joined && !g->ready)
        fail(m, RONDO_ERR_REMOTE, rank_of(g), "rank %d (%s) ended before the communicator was made", rank_of(g),
             g->join.whois);
}

/* Lists the first few ranks that have not come. */
static void missing(const rendezvous_t *m, char *text, size_t room)
{
    size_t used = 0;
    int named = 0;
    text[0] = 0;
    for (int r = 0; r < m->nranks && used < room; r++) {
        if (m->by_rank[r] >= 0 || !comes_here(m, r))
            continue;
        if (++named > 8) {
            snprintf(text + used, room - used, " and more");
            return;
        }
        used += (size_t)snprintf(text + used, room - used, "%s%d", named > 1 ? ", " : "", r);
    }
}

static void check_deadline(rendezvous_t *m)
{
    char ctx[96];
    int64_t later_ms =
        m->roots.known && m->tabled ? 1000 : 0; /* what it waits for has a deadline, too, and says more */
    if (!m->first_ms || m->timeout_ms <= 0 || m->fail.code || rd_clock_ms() - m->first_ms < m->timeout_ms + later_ms)
        return;
    missing(m, ctx, sizeof(ctx));
    if (m->njoined < awaited(m))
        fail(m, RONDO_ERR_TIMEOUT, -1, "of %d ranks only %d came within %lld ms; missing: %s (RONDO_CREATE_TIMEOUT_MS)",
             awaited(m), m->njoined, (long long)m->timeout_ms, ctx);
    else if (m->tabled == 1 && m->roots.known)
        fail(m, RONDO_ERR_TIMEOUT, -1, "other ids of this communicator have not got all their ranks within %lld ms",
             (long long)m->timeout_ms);
    else
        fail(m, RONDO_ERR_TIMEOUT, -1,
             "all %d ranks came, but only %d reached their neighbours within %lld ms: does a "
             "firewall close the ports between the hosts (RONDO_IFACE, RONDO_PORTS)?",
             awaited(m), m->nready, (long long)m->timeout_ms);
}

/* Ranks that listen on loopback because the rendezvous is on their host must move when others are not there. */
static void ask_to_move(rendezvous_t *m)
{
    int far = 0;
    for (int i = 0; i < m->nmembers; i++)
        far |= m->member[i].joined && !m->member[i].join.near;
    for (int i = 0; i < m->nmembers && far && !m->fail.code; i++) {
        member_t *g = &m->member[i];
        if (!rd_addr_is_loopback(&g->join.addr))
            continue;
        if (g->join.fixed)
            fail(m, RONDO_ERR_INVALID_ARGUMENT, rank_of(g),
                 "rank %d (%s) listens on loopback by its RONDO_IFACE, but not all ranks are on its host", rank_of(g),
                 g->join.whois);
        g->moving = 1;
        m->nmoving++;
        rd_chan_send(g->chan, RD_REC_MOVE, NULL, 0);
    }
}

static rd_contact_t contact_of(const rendezvous_t *m, int rank)
{
    rd_contact_t contact = {0};
    const rd_contact_t *other = comes_here(m, rank) ? NULL : rd_roots_contact(&m->roots, rank);
    if (other || !comes_here(m, rank) || m->by_rank[rank] < 0)
        return other ? *other : contact;
    const rd_join_t *join = &m->member[m->by_rank[rank]].join;
    contact.addr = join->addr;
    memcpy(contact.whois, join->whois, RD_WHOIS);
    return contact;
}

/* Returns false if a rank that has come has no port: it could not listen, and is about to say why. Who had its address
 * from the table would find nobody there, and take it for one that has died. */
static bool all_listen(const rendezvous_t *m)
{
    for (int i = 0; i < m->nmembers; i++)
        if (m->member[i].joined && !m->member[i].join.addr.port[0] && !m->member[i].join.addr.port[1])
            return false;
    return true;
}

/* All ranks of this block have come: the other roots may have their contacts. */
static void publish(rendezvous_t *m)
{
    m->own = calloc((size_t)m->roots.count, sizeof(*m->own));
    if (!m->own)
        fail(m, RONDO_ERR_NO_MEMORY, -1, "the rendezvous (%s) has no memory", m->id.maker);
    for (int i = 0; m->own && i < m->roots.count; i++)
        m->own[i] = contact_of(m, m->roots.first + i);
    m->roots.own = m->own;
}

static void send_tables(rendezvous_t *m)
{
    struct {
        rd_salt_t salt;
        rd_contact_t contact[RD_BOOT_ROUNDS];
    } table = {.salt = m->salt};
    int first = m->roots.known ? m->roots.first : 0;
    for (int r = first; r < first + awaited(m); r++) {
        member_t *g = &m->member[m->by_rank[r]];
        int n = 0;
        for (int64_t d = 1; d < m->nranks; d *= 2)
            table.contact[n++] = contact_of(m, (int)((r + d) % m->nranks));
        rd_chan_send(g->chan, RD_REC_TABLE, &table, sizeof(table.salt) + (size_t)n * sizeof(table.contact[0]));
        g->notified = 1;
    }
}

static void send_failure(rendezvous_t *m)
{
    for (int i = 0; i < m->nmembers; i++) {
        member_t *g = &m->member[i];
        if (!g->joined || g->notified == 2)
            continue;
        rd_chan_send(g->chan, RD_REC_FAIL, &m->fail, sizeof(m->fail));
        g->notified = 2;
        m->nnotified++;
    }
    rd_roots_tell(&m->roots, &m->fail);
}

/* Where descriptors are scarce, the connections of those that know of the failure make room for those that wait. */
static void let_go(rendezvous_t *m)
{
    for (int i = 0; i < m->nmembers; i++) {
        rd_chan_t *c = m->member[i].chan;
        if (m->member[i].notified == 2 && !rd_chan_over(c) && !rd_chan_queued(c))
            rd_chan_hang_up(c);
    }
}

static void hear_roots(rendezvous_t *m)
{
    rd_roots_pump(&m->roots);
    if (m->roots.known && !m->first_ms)
        first_came(m, m->roots.plan.nranks);
    m->most = m->roots.known && m->most == 0 ? m->roots.count : m->most;
    if (m->roots.fail.code)
        fail(m, m->roots.fail.code, m->roots.fail.failed_rank, "%s", m->roots.fail.text);
}

/* Takes the actions that follow from the present state. */
static void decide(rendezvous_t *m)
{
    hear_roots(m);
    check_deadline(m);
    if (!m->fail.code && !m->tabled && m->njoined && m->njoined == awaited(m) && all_listen(m)) {
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
static int64_t handshake_ms(const rendezvous_t *m)
{
    for (int i = 0; i < m->incoming.npending; i++)
        if (m->incoming.pending[i]->state == RD_CHAN_PROOF)
            return HANDSHAKE_MS;
    return m->incoming.npending ? LINGER_MS : 0;
}

/* All ranks are ready, and nobody is left who comes too late with this id and would not learn why he is refused. */
static bool is_done(const rendezvous_t *m)
{
    int64_t since_ms = rd_clock_ms() - m->ready_ms;

    if (!m->ready_ms || !rd_roots_flushed(&m->roots) || (!rd_roots_parted(&m->roots) && since_ms < PART_MS))
        return false;
    return m->id.derived || since_ms >= handshake_ms(m);
}

/* Returns true if the rendezvous has ended. Members that have finished keep their place in the list (by_rank points
 * there), but not their connection. */
static bool is_over(const rendezvous_t *m)
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
static int admit(rendezvous_t *m, rd_chan_t *chan)
{
    if (chan->theirs.purpose == RD_FOR_MEETING && chan->theirs.slot == RD_SLOT_ROOT && !m->id.derived)
        return rd_roots_admit(&m->roots, chan);
    if (chan->theirs.purpose != RD_FOR_MEETING) {
        rd_chan_free(chan);
        return 0;
    }
    if (m->nmembers == m->room) {
        int room = m->room ? 2 * m->room : 16;
        member_t *more = realloc(m->member, (size_t)room * sizeof(*more));
        if (!more) {
            rd_chan_free(chan);
            return -1;
        }
        m->member = more;
        m->room = room;
    }
    m->member[m->nmembers++] = (member_t){.chan = chan};
    serve(m, &m->member[m->nmembers - 1]);
    return 0;
}

/* This process has no descriptor left for the ranks that wait to be let in, one of which may have just that to say. So
 * this thread goes on with a table of its own; what it takes along is closed in the process's table when the thread has
 * been joined. Where that fails it goes on as it is. */
static void take_own_table(rendezvous_t *m)
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

static int no_memory(rendezvous_t *m)
{
    fail(m, RONDO_ERR_NO_MEMORY, -1, "the rendezvous (%s) has no memory", m->id.maker);
    return -1;
}

static int refused(rendezvous_t *m, const char *call, int error)
{
    fail(m, RONDO_ERR_SYSTEM, -1, "the rendezvous (%s) may not call %s: %s", m->id.maker, call, strerror(error));
    return -1;
}

/* Runs one turn of the loop: sleeps until something happens, and handles it. Returns 0, or -1 if it cannot go on. */
static int turn(rendezvous_t *m)
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
    if (!rd_sock_poll(p, (nfds_t)n, m->first_ms || m->incoming.npending ? SLICE_MS : -1))
        return refused(m, "poll", errno);
    if (p[0].revents)
        rd_served_woken(&m->served);
    for (int i = 0; i < members; i++)
        if (p[1 + i].revents)
            serve(m, &m->member[i]);
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

static void end(rendezvous_t *m)
{
    rd_listener_close(&m->incoming);
    for (int i = 0; i < m->nmembers; i++) {
        if (!m->fail.code && !m->id.derived && !m->member[i].joined && !rd_chan_over(m->member[i].chan))
            refuse_second_use(m, &m->member[i]);
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
    rendezvous_t *m = arg;
    while (!is_over(m)) {
        if (turn(m) != 0) { /* a rank that is not yet admitted learns of it from the end of its connection */
            rd_served_fail(m->served.job, m->fail.text);
            send_failure(m);
            break;
        }
        const char *failed = rd_served_failed(&m->served), *why = rd_served_cancelled(&m->served);
        if (failed)
            fail(m, RONDO_ERR_REMOTE, -1, "%s", failed);
        if (why) {
            fail(m, RONDO_ERR_REMOTE, -1, "%s; so the rendezvous (%s) gave up", why, m->id.maker);
            send_failure(m);
            break;
        }
        decide(m);
    }
    end(m);
    rd_served_done(&m->served);
    return NULL;
}

rondo_result_t rd_rendezvous_start(const rd_id_t *id, int listener, int64_t timeout_ms, rd_log_ctx_t *ctx)
{
    rd_hello_t mine = {.purpose = RD_FOR_MEETING, .rank = -1};
    rendezvous_t *m = calloc(1, sizeof(*m));
    if (!m) {
        rd_fd_close(listener);
        return rd_error(ctx, RONDO_ERR_NO_MEMORY, "no memory for the rendezvous");
    }
    m->id = *id;
    m->listener = listener;
    m->timeout_ms = timeout_ms;
    m->roots.maker = m->id.maker;
    randombytes_buf(&m->salt, sizeof(m->salt));
    rd_listener_open(&m->incoming, listener, &id->creds, &id->addr, sizeof(id->addr), &mine);
    memcpy(m->served.job, id->creds.job, sizeof(m->served.job));
    if (rd_served_start(&m->served, rendezvous_run) == 0)
        return RONDO_SUCCESS;
    rondo_result_t code = rd_error(ctx, RONDO_ERR_SYSTEM, "cannot start the rendezvous: %s", rd_thread_strerror(errno));
    rd_fd_close(listener);
    free(m);
    return code;
}
