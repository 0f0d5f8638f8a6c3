/* Events of a communicator's calls: see profile.h. */
#include "profile/profile.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* What the tasks of one communicator in one group have in common: the event Group. */
typedef struct batch {
    uint64_t of; /* the group's serial */
    int tasks;
    void *handle;
} batch_t;

struct rd_profile {
    _Atomic int references; /* the communicator's, and open groups' */
    rd_plugin_t *plugin;
    void *context;
    rd_plugin_comm_t comm;
    pid_t pid;                      /* a forked child leaves the parent's events alone */
    uint64_t numbers[RD_NUM_FUNCS]; /* of calls so far */
    batch_t *batch;                 /* of the last group, while it has tasks */
    pthread_mutex_t lock;           /* of what follows: a group may end while the communicator does */
    bool over;
    rd_profile_group_t *groups; /* open ones that began here */
};

struct rd_profile_group {
    rd_profile_t *of;
    rd_profile_group_t *next;
    uint64_t serial;
    bool lone;
    void *handle; /* of the event GroupApi; NULL: there is none, or it was stopped */
};

struct rd_profile_task {
    rd_profile_t *of;
    rd_profile_call_t call;
    int mask;
    void *api, *handle, *channel;
    batch_t *batch;
};

_Atomic bool rd_profile_used;
static _Thread_local rd_profile_group_t *open_group; /* of this thread's group; NULL until a call of it is shown */

/* An event is started for its own sake, or for those below it. */
#define BELOW_TASK (RD_EVENT_PROXY_OP | RD_EVENT_PROXY_STEP | RD_EVENT_KERNEL_CHANNEL | RD_EVENT_NET_PLUGIN)
#define WANTS_COLL (RD_EVENT_COLL | BELOW_TASK)
#define WANTS_P2P (RD_EVENT_P2P | BELOW_TASK)
#define WANTS_GROUP (RD_EVENT_GROUP | WANTS_COLL | WANTS_P2P)
#define WANTS_COLL_API (RD_EVENT_COLL_API | WANTS_COLL | RD_EVENT_COPY_ENGINE)
#define WANTS_P2P_API (RD_EVENT_P2P_API | WANTS_P2P)
#define WANTS_GROUP_API (RD_EVENT_GROUP_API | RD_EVENT_KERNEL_LAUNCH | WANTS_GROUP | WANTS_COLL_API | WANTS_P2P_API)

static bool is_message(const rd_profile_call_t *call)
{
    return call->func == RD_FUNC_SEND || call->func == RD_FUNC_RECV;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    rd_clock_read(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *start(const rd_profile_t *p, rd_plugin_event_t event)
{
    event.rank = p->comm.rank;
    event.comm = p->comm.name;
    event.comm_id = p->comm.id;
    return rd_plugin_start(p->plugin, p->context, &event);
}

/* ---- the communicator ---- */

static void release(rd_profile_t *p)
{
    if (atomic_fetch_sub(&p->references, 1) != 1)
        return;
    pthread_mutex_destroy(&p->lock);
    free(p);
}

rd_profile_t *rd_profile_make(rd_plugin_t *plugin, const rd_plugin_comm_t *comm)
{
    rd_profile_t *p = plugin ? calloc(1, sizeof *p) : NULL;

    if (!p)
        return NULL;
    if (!rd_plugin_init(plugin, comm, &p->context)) {
        free(p);
        return NULL;
    }
    p->plugin = plugin;
    p->comm = *comm;
    p->pid = getpid();
    atomic_init(&p->references, 1);
    pthread_mutex_init(&p->lock, NULL);
    atomic_store(&rd_profile_used, true);
    return p;
}

void rd_profile_end(rd_profile_t *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    for (rd_profile_group_t *g = p->groups; g; g = g->next) {
        rd_plugin_stop(p->plugin, g->handle);
        g->handle = NULL;
    }
    p->over = true;
    pthread_mutex_unlock(&p->lock);
    rd_plugin_finalize(p->plugin, p->context);
    uint64_t errors = atomic_exchange(&p->plugin->errors, 0);
    if (errors)
        rd_log(NULL, RD_LOG_INFO, "the profiler plugin has returned %llu errors, which were ignored",
               (unsigned long long)errors);
    release(p);
}

/* ---- groups ---- */

static rd_profile_group_t *group_begin(rd_profile_t *p, int mask, int depth)
{
    static _Atomic uint64_t serials;
    rd_profile_group_t *g = calloc(1, sizeof *g);

    if (!g)
        return NULL;
    g->of = p;
    g->serial = atomic_fetch_add(&serials, 1) + 1;
    g->lone = depth == 0;
    if (mask & WANTS_GROUP_API)
        g->handle = start(p, (rd_plugin_event_t){.type = RD_EVENT_GROUP_API, .depth = depth + 1});
    rd_plugin_state(p->plugin, g->handle, RD_STATE_GROUP_START_STOP, 0);
    atomic_fetch_add(&p->references, 1);
    pthread_mutex_lock(&p->lock);
    g->next = p->groups;
    p->groups = g;
    pthread_mutex_unlock(&p->lock);
    return g;
}

static void group_ends(rd_profile_group_t *g)
{
    if (!g || g->of->pid != getpid())
        return;
    pthread_mutex_lock(&g->of->lock);
    rd_plugin_state(g->of->plugin, g->handle, RD_STATE_GROUP_END_START, 0);
    pthread_mutex_unlock(&g->of->lock);
}

static void group_end(rd_profile_group_t *g)
{
    if (!g || g->of->pid != getpid())
        return;
    rd_profile_t *p = g->of;
    pthread_mutex_lock(&p->lock);
    rd_plugin_stop(p->plugin, g->handle);
    for (rd_profile_group_t **at = &p->groups; *at; at = &(*at)->next) {
        if (*at != g)
            continue;
        *at = g->next;
        break;
    }
    pthread_mutex_unlock(&p->lock);
    free(g);
    release(p);
}

void rd_profile_open_ends(void)
{
    group_ends(open_group);
}

void rd_profile_open_end(void)
{
    group_end(open_group);
    open_group = NULL;
}

/* The group may have begun at another communicator, which another thread may be ending. */
static void *group_handle(rd_profile_group_t *g)
{
    void *handle;

    if (!g)
        return NULL;
    pthread_mutex_lock(&g->of->lock);
    handle = g->handle;
    pthread_mutex_unlock(&g->of->lock);
    return handle;
}

/* ---- calls ---- */

void rd_profile_call_begin(rd_profile_t *p, rd_profile_span_t *span, const rd_profile_call_t *call, int depth,
                           bool launches)
{
    int mask = atomic_load_explicit(&p->plugin->mask, memory_order_relaxed);
    rd_profile_group_t *g = depth ? open_group : NULL;

    if (!g)
        g = group_begin(p, mask, depth);
    if (depth)
        open_group = g;
    *span = (rd_profile_span_t){.mask = mask, .group = g};
    const rd_plugin_event_t event = {
        .type = is_message(call) ? RD_EVENT_P2P_API : RD_EVENT_COLL_API, .parent = group_handle(g), .call = call};
    if (mask & (is_message(call) ? WANTS_P2P_API : WANTS_COLL_API))
        span->api = start(p, event);
    if (launches && mask & RD_EVENT_KERNEL_LAUNCH)
        span->launch =
            start(p, (rd_plugin_event_t){.type = RD_EVENT_KERNEL_LAUNCH, .parent = event.parent, .call = call});
}

void rd_profile_call_end(rd_profile_t *p, rd_profile_span_t *span)
{
    rd_plugin_stop(p->plugin, span->launch);
    rd_plugin_stop(p->plugin, span->api);
    if (!span->group || !span->group->lone)
        return;
    group_ends(span->group);
    group_end(span->group);
}

/* ---- operations ---- */

static batch_t *batch_of(rd_profile_t *p, const rd_profile_group_t *g)
{
    uint64_t serial = g ? g->serial : 0;

    if (!p->batch || p->batch->of != serial) {
        p->batch = calloc(1, sizeof *p->batch);
        if (!p->batch)
            return NULL;
        p->batch->of = serial;
    }
    p->batch->tasks++;
    return p->batch;
}

rd_profile_task_t *rd_profile_task(rd_profile_t *p, const rd_profile_span_t *span, const rd_profile_call_t *call)
{
    rd_profile_task_t *t = malloc(sizeof *t);

    if (!t)
        return NULL;
    *t = (rd_profile_task_t){
        .of = p, .call = *call, .mask = span->mask, .api = span->api, .batch = batch_of(p, span->group)};
    return t;
}

/* Calls are counted whether or not anybody looks, so that the numbers are alike on all ranks. */
void rd_profile_task_begin(rd_profile_task_t *t)
{
    if (!t)
        return;
    rd_profile_t *p = t->of;
    rd_plugin_event_t event = {.type = is_message(&t->call) ? RD_EVENT_P2P : RD_EVENT_COLL,
                               .parent = t->api,
                               .call = &t->call,
                               .number = p->numbers[t->call.func]++};
    if (t->batch && !t->batch->handle && t->mask & WANTS_GROUP)
        t->batch->handle = start(p, (rd_plugin_event_t){.type = RD_EVENT_GROUP});
    event.group = t->batch ? t->batch->handle : NULL;
    if (t->mask & (is_message(&t->call) ? WANTS_P2P : WANTS_COLL))
        t->handle = start(p, event);
}

void rd_profile_task_runs(rd_profile_task_t *t)
{
    if (t && t->call.channels && t->mask & RD_EVENT_KERNEL_CHANNEL)
        t->channel = start(
            t->of, (rd_plugin_event_t){
                       .type = RD_EVENT_KERNEL_CHANNEL, .parent = t->handle, .call = &t->call, .timer = now_ns()});
}

void rd_profile_task_end(rd_profile_task_t *t)
{
    if (!t)
        return;
    rd_plugin_state(t->of->plugin, t->channel, RD_STATE_CHANNEL_STOP, t->channel ? now_ns() : 0);
    rd_plugin_stop(t->of->plugin, t->channel);
    rd_plugin_stop(t->of->plugin, t->handle);
    t->channel = t->handle = NULL;
}

void rd_profile_task_free(rd_profile_task_t *t)
{
    if (!t)
        return;
    if (t->batch && --t->batch->tasks == 0) {
        rd_plugin_stop(t->of->plugin, t->batch->handle);
        if (t->of->batch == t->batch)
            t->of->batch = NULL;
        free(t->batch);
    }
    free(t);
}
