/* rondo_explain: who holds a communicator up now. It looks as a call does that has waited for long (progress/late.h),
 * but from any thread: so it is inside the communicator only while it reads, and not while it waits. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fpenv.h"
#include "core/comm.h"
#include "core/lifetime.h"
#include "monitor/held.h"
#include "monitor/verdict.h"
#include "progress/late.h"

#define ANSWER_MS 300 /* for each node that is asked */

/* One at a time: a communicator remembers one question of the user's. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void rd_explain_forget(void)
{
    pthread_mutex_init(&lock, NULL);
}

static void rest(long ms)
{
    const struct timespec time = {0, ms * 1000000};

    nanosleep(&time, NULL);
}

/* Looks, and judges if it is the second time. Returns false if there is nothing to be seen. */
static bool look(rondo_comm_t comm, rd_view_t *view, rd_monitor_verdict_t *verdict)
{
    const rd_view_comm_t *seen = NULL;

    if (!rd_comm_query_enter(comm))
        return false;
    if (comm->seat.record && rd_held_view(view) && rd_view_look(view, 0))
        seen = rd_view_comm_of(view->comms, view->ncomms, comm->seat.board->id);
    rd_comm_query_leave(comm);
    if (seen && verdict)
        rd_verdict_judge(view, seen, verdict);
    return seen;
}

static bool ask(rondo_comm_t comm, int about, char who[80])
{
    if (!rd_comm_query_enter(comm))
        return false;
    snprintf(who, 80, "rank %d (%s)", about, rd_boot_whois(comm->boot, about));
    rd_late_ask(&comm->team, RD_QUESTIONER_USER, about);
    rd_comm_query_leave(comm);
    return true;
}

static bool answered(rondo_comm_t comm, rd_boot_answer_t *answer)
{
    if (!rd_comm_query_enter(comm))
        return false;
    bool has = rd_boot_answered(comm->boot, RD_QUESTIONER_USER, answer);
    rd_comm_query_leave(comm);
    return has;
}

/* Does the first answer lead back to this node? */
static bool closes(rondo_comm_t comm, const rd_view_t *view, int about, const rd_boot_answer_t *answer,
                   rd_monitor_verdict_t *verdict)
{
    if (!rd_comm_query_enter(comm))
        return false;
    bool closed = rd_late_closes(&comm->team, view, about, answer, verdict);
    rd_comm_query_leave(comm);
    return closed;
}

/* Follows the waits from node to node, as long as the next one answers. */
static void follow(rondo_comm_t comm, const rd_view_t *view, int next, char text[RD_VERDICT_BYTES])
{
    rd_monitor_verdict_t verdict;
    char who[80];

    for (int hops = 0; hops < RD_LATE_HOPS && next >= 0 && ask(comm, next, who); hops++) {
        rd_boot_answer_t answer;
        int ms = 0;
        while (!answered(comm, &answer) && ms < ANSWER_MS) {
            rest(5);
            ms += 5;
        }
        if (!answered(comm, &answer)) {
            snprintf(text, RD_VERDICT_BYTES, "unknown: %s is waited for, was asked, and does not answer", who);
            return;
        }
        const bool closed = hops == 0 && closes(comm, view, next, &answer, &verdict);
        snprintf(text, RD_VERDICT_BYTES, "%s", closed ? verdict.text : answer.text);
        next = answer.next;
    }
}

static bool probe(rondo_comm_t comm)
{
    if (!rd_comm_query_enter(comm))
        return false;
    bool probed = rd_late_probe(&comm->team, RD_QUESTIONER_USER_PROBE);
    rd_comm_query_leave(comm);
    return probed;
}

/* Has the probe come back, so that this rank waits in a circle? */
static bool is_round(rondo_comm_t comm, rd_boot_answer_t *answer)
{
    if (!rd_comm_query_enter(comm))
        return false;
    bool has = rd_boot_answered(comm->boot, RD_QUESTIONER_USER_PROBE, answer);
    rd_comm_query_leave(comm);
    return has;
}

static void find(rondo_comm_t comm, char text[RD_VERDICT_BYTES])
{
    rd_monitor_verdict_t verdict = {.next = -1};
    rd_boot_answer_t answer;
    rd_view_t view = {0};
    bool probed = false;

    snprintf(text, RD_VERDICT_BYTES, "unknown: there is no record of this communicator (RONDO_MONITOR=0)");
    if (look(comm, &view, NULL)) {
        probed = probe(comm);
        rest(RD_VERDICT_MS);
        if (look(comm, &view, &verdict))
            snprintf(text, RD_VERDICT_BYTES, "%s",
                     verdict.status == RD_VERDICT_NONE ? "nobody is waited for" : verdict.text);
    }
    if (verdict.status != RD_VERDICT_BLAMED && probed && is_round(comm, &answer))
        snprintf(text, RD_VERDICT_BYTES, "%s", answer.text);
    else
        follow(comm, &view, verdict.next, text);
    rd_view_free(&view);
}

rondo_result_t rondo_explain(rondo_comm_t comm, char *text, size_t bytes)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_explain");
    char found[RD_VERDICT_BYTES];
    fenv_t program;

    if (result != RONDO_SUCCESS)
        return result;
    if (!text || !bytes)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "rondo_explain: text is NULL or has no room");
    pthread_mutex_lock(&lock);
    rd_fpenv_begin(&program);
    if (rd_health_check(&comm->health) != RONDO_SUCCESS)
        snprintf(found, sizeof found, "%s", comm->health.stop.text);
    else
        find(comm, found);
    rd_fpenv_end(&program);
    pthread_mutex_unlock(&lock);
    rd_verdict_copy(text, bytes, found);
    return RONDO_SUCCESS;
}
