/* See monitor_thread.h. */
#define _GNU_SOURCE
#include "core/monitor_thread.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/thread.h"
#include "base/wait.h"
#include "boot/sock.h"
#include "core/hooks.h"
#include "core/metrics.h"
#include "core/status_lines.h"
#include "core/triggers.h"
#include "monitor/heart.h"

#define END_MS 1000

/* Of one thread, which may outlast the wait for its end. */
typedef struct state {
    pthread_t thread;
    int event;
    _Atomic int stop, replaced, users; /* users: of this struct: the thread, and who waits for it */
    char why[512];                     /* it has taken the place of another one; "": of none */
} state_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users;
static state_t *state;
static bool replaced;             /* one was, which happens once */
static _Atomic int event_fd = -1; /* for signal handlers */

static void drop(state_t *s)
{
    if (atomic_fetch_sub(&s->users, 1) != 1)
        return;
    rd_fd_close(s->event);
    free(s);
}

/* In milliseconds; -1: never. */
static int sooner(int one, int other)
{
    return one < 0 || (other >= 0 && other < one) ? other : one;
}

static int call_hooks(void)
{
    rd_hooks_turn();
    return -1;
}

static int make_dumps(void)
{
    rd_triggers_turn();
    return -1;
}

/* What is to be done at each turn. Each returns in how many ms again; -1: when it is woken. */
static int (*const parts[])(void) = {call_hooks, make_dumps, rd_status_lines_turn, rd_metrics_turn};
#define PARTS (sizeof parts / sizeof parts[0])
#define METRICS (PARTS - 1)
static _Atomic int taken[PARTS];

/* A thread that was replaced may still be in a part, and nobody else is then. */
static int take_turn(size_t part)
{
    if (atomic_exchange(&taken[part], 1))
        return -1;
    const int ms = parts[part]();
    atomic_store(&taken[part], 0);
    return ms;
}

static void *run(void *arg)
{
    state_t *s = arg;
    int next_ms = -1;

    if (s->why[0])
        rd_log(NULL, RD_LOG_WARN, "%s; another thread has taken its place", s->why);
    while (!atomic_load(&s->stop)) {
        struct pollfd fds[2] = {{s->event, POLLIN, 0}, {rd_triggers_fd(), POLLIN, 0}};
        uint64_t times;
        (void)poll(fds, 2, sooner(next_ms, RD_HEART_LOOK_MS));
        (void)!read(s->event, &times, sizeof times);
        if (atomic_load(&s->stop))
            break;
        rd_heart_works(RD_HEART_MONITOR);
        rd_heart_look(RD_HEART_WATCH, rd_clock_ms());
        next_ms = -1;
        for (size_t part = 0; part < PARTS; part++)
            next_ms = sooner(next_ms, take_turn(part));
        if (!atomic_load(&s->replaced)) /* else it is another one's heart by now */
            rd_heart_rests(RD_HEART_MONITOR);
    }
    (void)take_turn(METRICS); /* removes the file of the last communicator */
    drop(s);
    return NULL;
}

void rd_monitor_thread_wake(void)
{
    const uint64_t once = 1;
    int saved = errno, fd = atomic_load(&event_fd);

    if (fd >= 0)
        (void)!write(fd, &once, sizeof once);
    errno = saved;
}

/* Returns NULL with errno. */
static state_t *start(const char *why)
{
    state_t *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    snprintf(s->why, sizeof s->why, "%s", why);
    rd_fd_fork_lock();
    s->event = rd_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    rd_fd_fork_unlock();
    atomic_init(&s->users, 2);
    int error = s->event < 0 ? errno : rd_thread_start(&s->thread, run, s);
    if (!error)
        return s;
    if (s->event >= 0)
        rd_fd_close(s->event);
    free(s);
    errno = error;
    return NULL;
}

/* What holds this one up may hold up the next one, and so it is done once. It is the watch that calls this. */
static void replace(const char *why)
{
    const uint64_t once = 1;

    pthread_mutex_lock(&lock);
    state_t *old = state, *next = old && !replaced ? start(why) : NULL;
    if (next) {
        replaced = true;
        state = next;
        atomic_store(&event_fd, next->event);
        atomic_store(&old->replaced, 1);
        atomic_store(&old->stop, 1);
        (void)!write(old->event, &once, sizeof once);
        pthread_detach(old->thread);
    }
    pthread_mutex_unlock(&lock);
    if (!next)
        return;
    drop(old);
    rd_monitor_thread_wake();
}

static void fork_prepare(void)
{
    pthread_mutex_lock(&lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* The child has no such thread, and its descriptor is closed with all others. */
static void fork_child(void)
{
    pthread_mutex_unlock(&lock);
    atomic_store(&event_fd, -1);
    state = NULL;
    users = 0;
    for (size_t part = 0; part < PARTS; part++)
        atomic_store(&taken[part], 0);
    rd_triggers_forget();
    rd_hooks_forget();
    rd_metrics_forget();
}

static const rd_fork_handlers_t at_fork = {.prepare = fork_prepare, .parent = fork_parent, .child = fork_child};

bool rd_monitor_thread_join(void)
{
    rd_fork_register(RD_FORK_MONITOR_THREAD, &at_fork);
    pthread_mutex_lock(&lock);
    if (!state)
        state = start("");
    int error = errno;
    rd_heart_on_stuck(RD_HEART_MONITOR, replace);
    bool good = state != NULL;
    if (good)
        users++;
    if (good)
        atomic_store(&event_fd, state->event);
    pthread_mutex_unlock(&lock);
    if (!good)
        rd_log(NULL, RD_LOG_WARN, "there is no thread for dumps that are asked for, and the like: %s",
               rd_thread_strerror(error));
    return good;
}

static void end(state_t *s)
{
    const uint64_t once = 1;
    struct timespec until;

    rd_clock_read(CLOCK_REALTIME, &until);
    until.tv_sec += END_MS / 1000;
    atomic_store(&s->stop, 1);
    (void)!write(s->event, &once, sizeof once);
    if (pthread_timedjoin_np(s->thread, NULL, &until) != 0)
        pthread_detach(s->thread);
    drop(s);
}

void rd_monitor_thread_leave(void)
{
    state_t *last = NULL;

    pthread_mutex_lock(&lock);
    if (users && --users == 0) { /* a forked child has none */
        last = state;
        state = NULL;
        atomic_store(&event_fd, -1);
    }
    pthread_mutex_unlock(&lock);
    if (last)
        end(last);
}
