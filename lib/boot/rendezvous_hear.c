/* What the members of a rendezvous say, and what is wrong with one. */
#include "boot/rendezvous_int.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"

void rd_rendezvous_fail(rd_rendezvous_t *m, rondo_result_t code, int failed_rank, const char *format, ...)
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

/* Checks everything that can be wrong with a new member. */
static void examine(rd_rendezvous_t *m, rd_joiner_t *g)
{
    int rank = rd_joiner_rank(g), nranks = g->chan->theirs.nranks;
    const rd_joiner_t *first = NULL;
    for (int i = 0; i < m->nmembers && !first; i++)
        if (m->member[i].joined && &m->member[i] != g)
            first = &m->member[i];
    if (first && nranks != m->nranks)
        rd_rendezvous_fail(m, RONDO_ERR_INVALID_ARGUMENT, rank,
                           "rank %d (%s) says %d ranks, rank %d (%s) says %d: nranks must be equal",
                           rd_joiner_rank(first), first->join.whois, m->nranks, rank, g->join.whois, nranks);
    else if (g->unlike || nranks != m->nranks)
        rd_rendezvous_fail(
            m, RONDO_ERR_INVALID_ARGUMENT, rank,
            "rank %d (%s) comes with %d ranks and %d ids, but not all others do: nranks and the list of ids must be "
            "equal on all ranks",
            rank, g->join.whois, nranks, g->head.plan.nroots ? g->head.plan.nroots : 1);
    else if (rank < 0 || rank >= nranks)
        rd_rendezvous_fail(m, RONDO_ERR_INVALID_ARGUMENT, rank, "%s claims rank %d of %d ranks: ranks are 0 to %d",
                           g->join.whois, rank, nranks, nranks - 1);
    else if (!rd_rendezvous_expects(m, rank))
        rd_rendezvous_fail(m, RONDO_ERR_INTERNAL, rank, "rank %d (%s) has come to the rendezvous of ranks %d to %d",
                           rank, g->join.whois, m->roots.first, m->roots.first + m->roots.count - 1);
    else if (m->by_rank[rank] >= 0)
        rd_rendezvous_fail(m, RONDO_ERR_INVALID_ARGUMENT, rank,
                           "rank %d was claimed by %s and %s: each number belongs to one rank", rank,
                           m->member[m->by_rank[rank]].join.whois, g->join.whois);
    else
        m->by_rank[rank] = (int)(g - m->member);
}

void rd_rendezvous_begin(rd_rendezvous_t *m, int nranks)
{
    size_t n = nranks > 0 ? (size_t)nranks : 1;
    m->first_ms = rd_clock_ms();
    m->nranks = nranks;
    m->by_rank = nranks <= RD_MOST_RANKS ? malloc(n * sizeof(int)) : NULL;
    if (!m->by_rank)
        rd_rendezvous_fail(m, RONDO_ERR_NO_MEMORY, -1, "the rendezvous (%s) has no memory for %d ranks", m->id.maker,
                           nranks);
    else
        memset(m->by_rank, 0xff, n * sizeof(int));
}

static bool comes_again(const rd_rendezvous_t *m, const rd_joiner_t *g)
{
    int rank = rd_joiner_rank(g);

    return m->id.derived && m->by_rank && rank >= 0 && rank < m->nranks && m->by_rank[rank] >= 0 &&
           m->member[m->by_rank[rank]].notified;
}

void rd_rendezvous_refuse(const rd_rendezvous_t *m, const rd_joiner_t *g)
{
    rd_fail_t said = {.code = RONDO_ERR_INVALID_USAGE, .failed_rank = -1};
    snprintf(said.text, sizeof(said.text),
             "the %d ranks of this unique id, made by %s, have met already: an id serves one communicator", m->nranks,
             m->id.maker);
    rd_chan_send(g->chan, RD_REC_FAIL, &said, sizeof(said));
}

static void on_join(rd_rendezvous_t *m, rd_joiner_t *g, const unsigned char *data, size_t bytes)
{
    if (bytes != sizeof(g->join) || g->joined)
        return;
    if (m->tabled == 2 && !m->id.derived) {
        rd_rendezvous_refuse(m, g);
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
        rd_rendezvous_begin(m, g->chan->theirs.nranks);
    int most = m->roots.known && !g->unlike ? m->roots.count : g->chan->theirs.nranks; /* unlike: seldom the only one */
    m->most = most > m->most ? most : m->most;
    m->most += !g->unlike && !rd_rendezvous_expects(m, rd_joiner_rank(g)); /* those that should have come still do */
    if (!m->fail.code)
        examine(m, g);
}

/* A rank has several ids, of which this is one. */
static void on_roots(rd_rendezvous_t *m, rd_joiner_t *g, const unsigned char *data, size_t bytes)
{
    rd_root_t roots[RD_ROOTS_MOST];
    int n = g->joined ? -1 : rd_roots_open(data, bytes, &m->id.creds, &g->head, roots);
    if (n < 0)
        return;
    g->unlike = (m->njoined > 0 && !m->roots.known) || !rd_roots_agree(&m->roots, &g->head);
    if (!g->unlike && rd_roots_begin(&m->roots, roots, n) != 0)
        rd_rendezvous_fail(m, RONDO_ERR_NO_MEMORY, -1, "the rendezvous (%s) has no memory", m->id.maker);
    sodium_memzero(roots, sizeof(roots));
}

static void on_record(rd_rendezvous_t *m, rd_joiner_t *g, int type, const unsigned char *data, size_t bytes)
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
        if (++m->nready == rd_rendezvous_awaited(m))
            m->ready_ms = rd_clock_ms();
    } else if (type == RD_REC_FAIL && bytes == sizeof(said) && g->joined) {
        memcpy(&said, data, bytes);
        said.text[sizeof(said.text) - 1] = 0;
        if (said.failed_rank < -1 || said.failed_rank >= m->nranks)
            said.failed_rank = -1;
        if (said.failed_rank == rd_joiner_rank(g))
            rd_rendezvous_fail(m, said.code, said.failed_rank, "rank %d (%s): %s", rd_joiner_rank(g), g->join.whois,
                               said.text);
        else /* the sentence is about another rank */
            rd_rendezvous_fail(m, said.code, said.failed_rank, "%s", said.text);
        m->nnotified += g->notified != 2;
        g->notified = 2; /* it knows of the failure */
    }
}

void rd_rendezvous_hear(rd_rendezvous_t *m, rd_joiner_t *g)
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
        rd_rendezvous_fail(m, RONDO_ERR_REMOTE, rd_joiner_rank(g),
                           "rank %d (%s) ended before the communicator was made", rd_joiner_rank(g), g->join.whois);
}
