/* Meetings of the ranks that are left of a communicator: each is told when a member will not come. */
#include <stdio.h>

#include "transport/liveness_int.h"

static rd_meeting_t *meetings;
static const char *const gone_how[] = {"",
                                       "has left it, by an abort or in order",
                                       "has died, too, or has left it",
                                       "has failed before",
                                       "has died, too",
                                       "is not there any more: the connection to it was lost, and nobody listens "
                                       "where it did"};

void rd_meeting_tell(rd_meeting_t *m)
{
    if (!m->stop)
        return;
    if (m->ended)
        rd_stop_set(m->stop, m->ctx, RONDO_ERR_ABORTED, m->ctx->rank,
                    "another thread has aborted the communicator that is shrunk");
    if (m->gone < 0)
        return;
    int rank = m->members[m->gone];
    rd_stop_set(m->stop, m->ctx, RONDO_ERR_REMOTE, m->gone,
                "rank %d (%s) of the communicator that is shrunk %s; leave it out as well", rank, m->whois,
                gone_how[m->how]);
}

static bool failed_first(const rd_liveness_t *w, int rank)
{
    return rd_stop_get(w->stop) == RONDO_ERR_REMOTE && atomic_load(&w->stop->failed_rank) == rank;
}

int rd_how_gone(const rd_liveness_t *w, int rank)
{
    return failed_first(w, rank) && w->gone[rank] < RD_FAILED ? RD_FAILED : w->gone[rank];
}

static void note_gone_member(rd_meeting_t *m, const rd_liveness_t *w)
{
    bool any = false;

    if (m->gone >= 0 || m->liveness != w)
        return;
    for (int i = 0; i < m->nmembers; i++)
        any |= w->gone[m->members[i]] != RD_HERE;
    for (int i = 0; i < m->nmembers && any; i++) {
        int how = rd_how_gone(w, m->members[i]);
        if (how > m->how || (how == m->how && how && failed_first(w, m->members[i]))) {
            m->gone = i;
            m->how = how;
        }
    }
    if (!any)
        return;
    m->how = w->gone[m->members[m->gone]] == RD_LEFT ? RD_LEFT : m->how; /* what is known of it is said */
    snprintf(m->whois, sizeof m->whois, "%s", rd_boot_whois(w->boot, m->members[m->gone]));
    rd_meeting_tell(m);
}

void rd_meetings_add(rd_meeting_t *m)
{
    m->next = meetings;
    meetings = m;
    note_gone_member(m, m->liveness);
}

void rd_meetings_remove(rd_meeting_t *m)
{
    rd_meeting_t **p = &meetings;

    while (*p && *p != m)
        p = &(*p)->next;
    if (!*p)
        return;
    *p = m->next;
    if (m->liveness)
        rd_redials_turn(m->liveness); /* nobody is asked for it any more */
}

void rd_meetings_gone(const rd_liveness_t *w)
{
    for (rd_meeting_t *m = meetings; m; m = m->next)
        note_gone_member(m, w);
}

void rd_meetings_ended(const rd_liveness_t *w)
{
    for (rd_meeting_t *m = meetings; m; m = m->next)
        if (m->liveness == w) {
            m->liveness = NULL;
            m->ended = true;
            rd_meeting_tell(m);
        }
}

void rd_meetings_forget(void)
{
    meetings = NULL;
}

/* Returns the place of a rank among the members of a meeting that waits for all of them; -1: it does not. */
static int awaited(const rd_meeting_t *m, const rd_liveness_t *w, int rank)
{
    for (int i = 0; m->liveness == w && m->stop && m->gone < 0 && i < m->nmembers; i++)
        if (m->members[i] == rank)
            return i;
    return -1;
}

bool rd_meetings_await(const rd_liveness_t *w, int rank)
{
    for (const rd_meeting_t *m = meetings; m; m = m->next)
        if (awaited(m, w, rank) >= 0)
            return true;
    return false;
}

void rd_meetings_miss(const rd_liveness_t *w, int rank)
{
    for (rd_meeting_t *m = meetings; m; m = m->next) {
        int i = awaited(m, w, rank);
        if (i < 0)
            continue;
        m->gone = i;
        m->how = RD_ABSENT;
        snprintf(m->whois, sizeof m->whois, "%s", rd_boot_whois(w->boot, rank));
        rd_meeting_tell(m);
    }
}

void rd_meetings_turn(void)
{
    for (rd_meeting_t *m = meetings; m; m = m->next)
        if (m->liveness)
            rd_redials_turn(m->liveness);
}
