/* See hooks.h. */
#include "core/hooks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/caller.h"
#include "core/monitor_thread.h"

#define MOST 256      /* events that wait; further ones are dropped and counted */
#define LONG_MS 5000  /* a hook that takes longer is named in the log */
#define HOOKS_MOST 64 /* functions */

typedef struct hook {
    uint64_t handle; /* 0: none */
    int kind;
    rondo_hook_fn call;
    void *arg;
} hook_t;

/* Guards all that follows. It is not held while a hook runs. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;
static _Atomic int kinds; /* bits: somebody wants them */
static hook_t hooks[HOOKS_MOST];
static uint64_t handles;
static rondo_event_t *events; /* a ring */
static unsigned first, nevents, dropped;
static uint64_t running;        /* the hook that is being called; 0: none */
static int64_t running_ms;      /* since when */
static uint64_t named, calling; /* numbers of calls of hooks: the last one named in the log, and the one that runs */

/* ---- what has happened ---- */

/* Names a hook that takes long while it still runs, because it may never return. */
static void name_slow(void)
{
    if (!running || named == calling || rd_clock_ms() - running_ms < LONG_MS)
        return;
    named = calling;
    rd_log(NULL, RD_LOG_WARN, "hook %llu has been running for more than %d s, and the events after it wait",
           (unsigned long long)running, LONG_MS / 1000);
}

static void add(const rondo_event_t *event)
{
    if (nevents == MOST) {
        dropped++;
        return;
    }
    events[(first + nevents++) % MOST] = *event;
}

bool rd_hooks_wanted(int kind)
{
    return atomic_load_explicit(&kinds, memory_order_relaxed) >> kind & 1;
}

void rd_hooks_post(int kind, rondo_comm_t comm, rondo_result_t result, const char *text)
{
    if (!rd_hooks_wanted(kind) || (comm && comm->internal))
        return;
    rondo_event_t event = {.size = sizeof event, .kind = kind, .result = result, .rank = -1};
    if (comm) {
        event.rank = comm->team.rank;
        event.nranks = comm->team.nranks;
        snprintf(event.comm, sizeof event.comm, "%s", comm->ctx.name);
    }
    snprintf(event.text, sizeof event.text, "%s", text);
    pthread_mutex_lock(&lock);
    name_slow();
    if (events)
        add(&event);
    pthread_mutex_unlock(&lock);
    rd_monitor_thread_wake();
}

/* ---- calling ---- */

/* Called with the lock, which is released while the hook runs. */
static void call(const hook_t *hook, const rondo_event_t *event)
{
    const hook_t h = *hook;

    running = h.handle;
    running_ms = rd_clock_ms();
    calling++;
    pthread_mutex_unlock(&lock);
    rd_caller()->in_hook = true;
    rd_caller_note(rd_caller());
    h.call(event, h.arg);
    rd_caller()->in_hook = false;
    rd_caller_note(rd_caller());
    pthread_mutex_lock(&lock);
    name_slow();
    running = 0;
    pthread_cond_broadcast(&over);
}

void rd_hooks_turn(void)
{
    pthread_mutex_lock(&lock);
    while (nevents) {
        const rondo_event_t event = events[first];
        first = (first + 1) % MOST;
        nevents--;
        for (int i = 0; i < HOOKS_MOST; i++)
            if (hooks[i].handle && hooks[i].kind == event.kind)
                call(&hooks[i], &event);
    }
    if (dropped)
        rd_log(NULL, RD_LOG_WARN, "%u events for hooks were dropped, as %d waited already", dropped, MOST);
    dropped = 0;
    pthread_mutex_unlock(&lock);
}

/* ---- the program's ---- */

static void count_kinds(void)
{
    int bits = 0;

    for (int i = 0; i < HOOKS_MOST; i++)
        bits |= hooks[i].handle ? 1 << hooks[i].kind : 0;
    atomic_store(&kinds, bits);
}

/* Returns its handle; 0: there is no room. */
static uint64_t take(int kind, rondo_hook_fn function, void *arg)
{
    uint64_t handle = 0;

    pthread_mutex_lock(&lock);
    if (!events)
        events = calloc(MOST, sizeof *events);
    for (int i = 0; i < HOOKS_MOST && events && !handle; i++)
        if (!hooks[i].handle) {
            handle = ++handles;
            hooks[i] = (hook_t){handle, kind, function, arg};
        }
    count_kinds();
    pthread_mutex_unlock(&lock);
    return handle;
}

static rondo_result_t refuse(const char *call)
{
    return rd_error(NULL, RONDO_ERR_INVALID_USAGE, "%s in a hook, which must not call rondo", call);
}

rondo_result_t rondo_hook(int kind, rondo_hook_fn function, void *arg, uint64_t *handle)
{
    if (rd_caller()->in_hook)
        return refuse("rondo_hook");
    if (kind < 0 || kind >= RONDO_NUM_HOOKS || !function || !handle)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_hook: %s",
                        !function ? "call is NULL"
                        : !handle ? "handle is NULL"
                                  : "kind is none of RONDO_HOOK_*");
    if (!rd_monitor_thread_join())
        return rd_error(NULL, RONDO_ERR_SYSTEM, "rondo_hook: there is no thread that could call it");
    uint64_t taken = take(kind, function, arg);
    if (!taken) {
        rd_monitor_thread_leave();
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "rondo_hook: there are %d already, or there is no memory",
                        HOOKS_MOST);
    }
    *handle = taken;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_unhook(uint64_t handle)
{
    bool found = false;

    if (rd_caller()->in_hook)
        return refuse("rondo_unhook");
    pthread_mutex_lock(&lock);
    for (int i = 0; i < HOOKS_MOST && handle; i++)
        if (hooks[i].handle == handle) {
            hooks[i].handle = 0;
            found = true;
        }
    count_kinds();
    for (uint64_t its = calling; found && running == handle && calling == its;)
        pthread_cond_wait(&over, &lock);
    pthread_mutex_unlock(&lock);
    if (!found)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_unhook: there is no hook of that handle");
    rd_monitor_thread_leave();
    return RONDO_SUCCESS;
}

/* Other threads are gone, whatever they held. */
void rd_hooks_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&over, NULL);
    atomic_store(&kinds, 0);
    memset(hooks, 0, sizeof hooks);
    first = nevents = dropped = 0;
    running = 0;
}
