/* See metrics.h. */
#include "core/metrics.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/caller.h"
#include "core/lifetime.h"
#include "core/living.h"
#include "core/metrics_file.h"
#include "core/monitor_thread.h"
#include "monitor/own.h"

#define AGAIN_MS 100 /* until a thread that ends has let go */

/* Of the fields below it. It is never held while a file is touched: calls of the user's take it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gone = PTHREAD_COND_INITIALIZER; /* there is no file any more */
static int users;
static bool ended;            /* the process is in exit */
static bool there;            /* a file, perhaps */
static char wanted[PATH_MAX]; /* the name of the file, */
static unsigned nwanted;      /* the number of the job that wants it, */
static int64_t wanted_ms;     /* and how often */
static pid_t maker;

/* Of all below it, which is the thread's: one that ends may still wait for a file server when another begins. */
static pthread_mutex_t turning = PTHREAD_MUTEX_INITIALIZER;
static unsigned njob; /* the job that the file is of */
static int64_t every_ms, due_ms;
static rd_durations_t durations;
static rd_metrics_look_t seen;

/* ---- looking ---- */

static void look_at(rd_metrics_comm_t *c, rondo_comm_t comm, const rd_own_t *own)
{
    const rd_monitor_comm_t *board = &own->rank.comm;
    rd_waited_t *waited = comm->waited;

    memset(c, 0, sizeof *c);
    c->comm = *board;
    c->bytes = rd_view_bytes(&own->view, &own->rank);
    c->waits = rd_view_waits_for(board) >= 0 ? rd_view_waits_since(&own->view, &own->rank) : 0;
    c->late = -1;
    if (!waited)
        return;
    c->waited_ms = atomic_load(&waited->total_ms);
    for (int i = 0; i < RD_WAITED_VERDICTS; i++)
        c->stalls[i] = atomic_load(&waited->stalls[i]);
    if (rd_view_waits_for(board) >= 0 && atomic_load(&waited->late_in) == board->waits_in)
        c->late = (int)atomic_load(&waited->late);
    rd_metrics_peers(c, waited);
}

/* From the youngest to the oldest, so the oldest stay. */
static void look(rondo_comm_t comm, void *arg)
{
    rd_own_t own;

    (void)arg;
    if (!rd_comm_query_enter(comm))
        return;
    if (comm->metrics && comm->seat.record && rd_own_look(&own, &comm->seat)) {
        if (seen.ncomms == 0) {
            rd_durations_read(&durations, &own.process);
            snprintf(seen.host, sizeof seen.host, "%s", own.process.reader.head.host);
            seen.pid = own.process.reader.head.pid;
            seen.number = own.process.reader.head.job_rank;
        }
        look_at(&seen.comms[seen.ncomms++ % RD_METRICS_COMMS], comm, &own);
    }
    rd_comm_query_leave(comm);
}

/* ---- the thread ---- */

/* Returns false if nobody wants a file. */
static bool take_orders(void)
{
    char name[PATH_MAX];
    bool wants, other;

    pthread_mutex_lock(&lock);
    wants = users > 0 && !ended;
    other = wants && njob != nwanted;
    if (other) {
        memcpy(name, wanted, sizeof name);
        njob = nwanted;
        every_ms = wanted_ms;
        due_ms = 0;
    }
    there = there || wants;
    pthread_mutex_unlock(&lock);
    if (other)
        rd_metrics_file_begin(name);
    return wants;
}

static void end_file(void)
{
    rd_metrics_file_remove();
    pthread_mutex_lock(&lock);
    there = users > 0 && !ended; /* it may be wanted again meanwhile */
    if (!there)
        pthread_cond_broadcast(&gone);
    pthread_mutex_unlock(&lock);
}

int rd_metrics_turn(void)
{
    int64_t now = rd_clock_ms();
    int next = -1;

    if (pthread_mutex_trylock(&turning) != 0)
        return AGAIN_MS;
    if (!take_orders()) {
        end_file();
    } else {
        if (now >= due_ms) {
            due_ms = now + every_ms;
            seen.ncomms = 0;
            seen.durations = &durations;
            rd_living_each(look, NULL);
            if (seen.ncomms)
                rd_metrics_file_replace(&seen);
        }
        next = due_ms - now > INT32_MAX ? INT32_MAX : (int)(due_ms - now);
    }
    pthread_mutex_unlock(&turning);
    return next;
}

/* ---- the process ends ---- */

/* The thread goes on in exit, and removes the file: it is waited for, but no file server is for longer than a second.
 * Nor is the thread itself, in which a hook may end the process. */
void rd_metrics_end(void)
{
    struct timespec until;

    if (maker != getpid())
        return;
    rd_clock_read(CLOCK_REALTIME, &until);
    until.tv_sec++;
    if (pthread_mutex_timedlock(&lock, &until) != 0)
        return;
    ended = true;
    bool waits = there && !rd_caller()->in_hook;
    pthread_mutex_unlock(&lock);
    if (rd_caller()->in_hook)
        (void)rd_metrics_turn();
    if (!waits)
        return;
    rd_monitor_thread_wake();
    pthread_mutex_lock(&lock);
    while (there && pthread_cond_timedwait(&gone, &lock, &until) == 0)
        continue;
    pthread_mutex_unlock(&lock);
}

/* ---- who wants it ---- */

/* Returns false if there can be no such file. */
static bool begin(rondo_comm_t comm)
{
    static _Atomic int registered;

    if (!rd_metrics_file_name(wanted, comm->env.metrics)) {
        rd_log(&comm->ctx, RD_LOG_WARN, "the name of RONDO_METRICS is too long: %s", comm->env.metrics);
        return false;
    }
    nwanted++;
    wanted_ms = comm->env.metrics_ms;
    maker = getpid();
    if (!atomic_exchange(&registered, 1))
        (void)atexit(rd_metrics_end); /* of a process that does not destroy its communicators */
    return true;
}

void rd_metrics_join(rondo_comm_t comm)
{
    if (comm->internal || !comm->env.metrics[0] || !comm->seat.record || !rd_monitor_thread_join())
        return;
    pthread_mutex_lock(&lock);
    comm->metrics = users > 0 || begin(comm);
    users += comm->metrics;
    pthread_mutex_unlock(&lock);
    if (!comm->metrics) {
        rd_monitor_thread_leave();
        return;
    }
    comm->waited = rd_waited_make(comm->team.nranks); /* without memory waits are not counted */
    comm->seat.waited = comm->waited;
    rd_monitor_thread_wake();
}

/* The thread removes the file, in its last turn if it ends now. */
void rd_metrics_leave(rondo_comm_t comm)
{
    if (!comm->metrics)
        return;
    comm->metrics = false;
    pthread_mutex_lock(&lock);
    bool last = --users == 0;
    pthread_mutex_unlock(&lock);
    if (last)
        rd_monitor_thread_wake();
    rd_monitor_thread_leave();
    free(comm->waited);
    comm->waited = NULL;
}

void rd_metrics_stall(rondo_comm_t comm, int status, int rank)
{
    if (comm->waited)
        rd_waited_stall(comm->waited, status, rank,
                        atomic_load_explicit(&comm->seat.board->waits_in, memory_order_relaxed));
}

/* The parent's communicators, and what counts their waits, stay unused in the child. */
void rd_metrics_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_mutex_init(&turning, NULL);
    pthread_cond_init(&gone, NULL);
    users = 0;
    ended = there = false;
    rd_metrics_file_forget();
}
