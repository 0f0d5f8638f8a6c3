/* Finding and loading a plugin, and its beginning and end for a communicator. */
#include "profile/plugin_describe.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/plugin_open.h"

#define NEWEST 7
#define PREFIX "libnccl-profiler"

static rd_plugin_t loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *_Atomic wanted; /* the first name that was asked for stands */
static _Atomic bool said;          /* somebody wants it */

/* By NCCL's levels: version, warning, information, abort, trace. */
__attribute__((format(printf, 5, 6))) static void log_line(int level, unsigned long flags, const char *file, int line,
                                                           const char *format, ...)
{
    const bool warns = level == 2 || level == 4;
    char text[RD_ERROR_BYTES];
    va_list args;

    (void)flags;
    (void)file;
    (void)line;
    if (!rd_log_enabled(warns ? RD_LOG_WARN : RD_LOG_INFO))
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text[strcspn(text, "\n")] = '\0';
    rd_log(NULL, warns ? RD_LOG_WARN : RD_LOG_INFO, "profiler: %s", text);
}

static void *open_library(const char *name)
{
    char why[RD_PLUGIN_WHY];
    void *library = rd_plugin_open(PREFIX, name, why);

    if (!library)
        rd_log(NULL, said ? RD_LOG_WARN : RD_LOG_INFO, "the profiler plugin %.200s cannot be loaded: %s", name, why);
    return library;
}

static void load(void)
{
    const char *name = atomic_load(&wanted);
    void *library = open_library(name);

    if (!library)
        return;
    for (int version = NEWEST; version > 0; version--) {
        char symbol[32];

        snprintf(symbol, sizeof symbol, "ncclProfiler_v%d", version);
        const rd_plugin_export_t *table = dlsym(library, symbol);
        if (!table || !table->init.v1 || !table->start || !table->stop || !table->state || !table->finalize)
            continue;
        loaded.version = version;
        loaded.table = table;
        rd_log(NULL, RD_LOG_INFO, "profiler plugin %s, version %d, of %.200s", table->name ? table->name : "?", version,
               name);
        return;
    }
    rd_log(NULL, said ? RD_LOG_WARN : RD_LOG_INFO,
           "%.200s is no profiler plugin: it has none of ncclProfiler_v1 to ncclProfiler_v%d", name, NEWEST);
    dlclose(library);
}

/* The winner's name stays until `load` has returned, because its thread waits for that, too. */
rd_plugin_t *rd_plugin_load(const char *name, bool asked)
{
    const char *nobody = NULL;

    if (!name || !*name || strcasecmp(name, "none") == 0)
        return NULL;
    if (atomic_compare_exchange_strong(&wanted, &nobody, name))
        atomic_store(&said, asked);
    pthread_once(&once, load);
    return loaded.table ? &loaded : NULL;
}

bool rd_plugin_init(rd_plugin_t *plugin, const rd_plugin_comm_t *c, void **context)
{
    const rd_plugin_export_t *t = plugin->table;
    const int before = atomic_load_explicit(&plugin->mask, memory_order_relaxed);
    int *mask = (int *)(void *)&plugin->mask, error;

    *context = NULL;
    if (plugin->version <= 3)
        error = t->init.v1(context, mask);
    else if (plugin->version == 4)
        error = t->init.v4(context, mask, c->name, c->id, c->nodes, c->nranks, c->rank, log_line);
    else
        error = t->init.v5(context, c->id, mask, c->name, c->nodes, c->nranks, c->rank, log_line);
    if (!error)
        return true;
    atomic_store_explicit(&plugin->mask, before, memory_order_relaxed);
    rd_log(NULL, RD_LOG_WARN,
           "the profiler plugin %s refuses communicator %s (NCCL's error %d), which goes on without it",
           t->name ? t->name : "?", c->name, error);
    return false;
}

static void count(rd_plugin_t *plugin, int error)
{
    if (error)
        atomic_fetch_add_explicit(&plugin->errors, 1, memory_order_relaxed);
}

/* Returns the types of events that a plugin of this version knows. */
static int known(int version)
{
    if (version >= 5)
        return ~0;
    return RD_EVENT_GROUP | RD_EVENT_COLL | RD_EVENT_P2P | (version >= 3 ? RD_EVENT_KERNEL_CHANNEL : 0);
}

void *rd_plugin_start(rd_plugin_t *plugin, void *context, const rd_plugin_event_t *event)
{
    rd_plugin_descriptor_t d;
    void *handle = NULL;
    int error;

    if (!(known(plugin->version) & event->type))
        return NULL;
    memset(&d, 0, sizeof d);
    rd_plugin_describe(&d, plugin->version, event);
    error = plugin->table->start(context, &handle, &d);
    count(plugin, error);
    return error ? NULL : handle;
}

/* The states that rondo has came with version 4, those of groups with version 5. */
void rd_plugin_state(rd_plugin_t *plugin, void *handle, int state, uint64_t timer)
{
    rd_plugin_state_t args = {.channel = {timer}};

    if (handle && plugin->version >= (state == RD_STATE_CHANNEL_STOP ? 4 : 5))
        count(plugin, plugin->table->state(handle, state, &args));
}

void rd_plugin_stop(rd_plugin_t *plugin, void *handle)
{
    if (handle)
        count(plugin, plugin->table->stop(handle));
}

/* As with NCCL, a plugin that has given no context is not asked. */
void rd_plugin_finalize(rd_plugin_t *plugin, void *context)
{
    if (context)
        count(plugin, plugin->table->finalize(context));
}
