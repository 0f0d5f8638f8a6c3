/* Finds a net plugin as NCCL does: a file, or NAME for libnccl-net-NAME.so, or the first of a list of them; without a
 * name libnccl-net.so. The newest version that the library exports is taken. Before version 11 a plugin is initialised
 * once in a process; from then on, for each communicator (plug_calls.c). */
#include "netplugin/plug_load.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/plugin_open.h"
#include "transport/network/net_fork.h"
#include "transport/network/net_load.h"

static rd_plug_t loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char wanted[256]; /* what the first call has named */
static char failure[600];
static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;

/* Plugins promise nothing for a child that is forked once they are initialised, and what some have then stays as long
 * as the process: threads, and what the devices of cards have mapped. */
static rd_net_fork_t at_fork = {.why = "this process was forked when its parent had loaded a net plugin, and net "
                                       "plugins do not work in such a child: fork before the first communicator "
                                       "between nodes is made, or let the child call exec",
                                .known = ATOMIC_FLAG_INIT};

const char *rd_plug_unusable(void)
{
    return rd_net_fork_orphaned(&at_fork);
}

static void *open_library(const char *name)
{
    char why[RD_PLUGIN_WHY];
    void *library = rd_plugin_open(RD_PLUG_PREFIX, name, why);

    if (!library)
        snprintf(failure, sizeof failure, "the net plugin %.200s cannot be loaded: %.299s", name, why);
    return library;
}

static bool is_whole(const rd_plug_export_t *t)
{
    return t->init.v8 && t->devices && t->properties && t->listen.v8 && t->connect.v8 && t->accept && t->reg &&
           t->dereg && t->send.v8 && t->recv.v8 && t->test && t->close_send && t->close_recv && t->close_listen;
}

/* Returns false, with the reason, if the library has no struct that serves. */
static bool find(void *library, const char *name)
{
    for (int version = RD_PLUG_NEWEST; version >= RD_PLUG_OLDEST; version--) {
        char symbol[32];

        snprintf(symbol, sizeof symbol, "ncclNetPlugin_v%d", version);
        const rd_plug_export_t *table = dlsym(library, symbol);
        if (!table)
            continue;
        if (!is_whole(table)) {
            snprintf(failure, sizeof failure, "%s of %.200s lacks a function that every net plugin has", symbol, name);
            return false;
        }
        loaded.version = version;
        loaded.table = table;
        loaded.name = table->name && *table->name ? table->name : "?";
        snprintf(loaded.file, sizeof loaded.file, "%s", name);
        return true;
    }
    snprintf(failure, sizeof failure,
             "%.200s is no net plugin that serves: it has none of ncclNetPlugin_v%d to "
             "ncclNetPlugin_v%d",
             name, RD_PLUG_OLDEST, RD_PLUG_NEWEST);
    return false;
}

/* A plugin of version 11 counts its devices after the first of its contexts is made: this one is ended at once. */
static bool start(void)
{
    void *context = NULL;
    char text[80];
    int count = 0, error = rd_plug_begin(&loaded, &context, 0);
    const char *call = "init";

    if (error == 0) {
        call = "devices";
        error = rd_plug_count(&loaded, &count);
    }
    if (error == 0 && count > 0 && rd_plug_end(&loaded, context) == 0) {
        loaded.ndevices = count;
        return true;
    }
    if (error != 0)
        snprintf(failure, sizeof failure, "the net plugin %.60s of %.200s fails: %s", loaded.name, loaded.file,
                 rd_plug_failure(call, error, text, sizeof text));
    else
        snprintf(failure, sizeof failure, "the net plugin %.60s of %.200s finds no device here", loaded.name,
                 loaded.file);
    return false;
}

static void load(void)
{
    char *next = wanted;
    rd_net_quiet_t quiet;

    rd_net_fork_begin(&at_fork); /* and never ends */
    rd_net_quiet_begin(&quiet);
    for (char *name; !loaded.ndevices && (name = strsep(&next, ",")) != NULL;) {
        void *library = *name ? open_library(name) : NULL;

        if (library && find(library, name) && start())
            rd_log(NULL, RD_LOG_INFO, "net plugin %s, version %d, of %.200s: %d device%s", loaded.name, loaded.version,
                   loaded.file, loaded.ndevices, loaded.ndevices == 1 ? "" : "s");
        else if (library && !loaded.table)
            dlclose(library);
    }
    rd_net_quiet_end(&quiet);
}

const char *rd_plug_names(const rd_env_t *env)
{
    const char *nccls = getenv("NCCL_NET_PLUGIN");

    return *env->net_plugin ? env->net_plugin : nccls && *nccls ? nccls : RD_PLUG_PREFIX ".so";
}

const rd_plug_t *rd_plug_load(const rd_env_t *env, char *why, size_t size)
{
    static char first[sizeof wanted]; /* `wanted` is cut into its names */
    const char *name = rd_plug_names(env);
    bool other;

    if (strcasecmp(name, "none") == 0) {
        snprintf(why, size,
                 "RONDO_TRANSPORT=plugin asks for a net plugin, and RONDO_NET_PLUGIN or NCCL_NET_PLUGIN says "
                 "that there is to be none");
        return NULL;
    }
    pthread_mutex_lock(&naming);
    if (!*first) {
        snprintf(first, sizeof first, "%s", name);
        snprintf(wanted, sizeof wanted, "%s", name);
    }
    other = strncmp(first, name, sizeof first - 1) != 0;
    pthread_mutex_unlock(&naming);
    if (other) {
        snprintf(why, size, "this process has looked for the net plugin %.100s before, and cannot have %.100s besides",
                 first, name);
        return NULL;
    }
    pthread_once(&once, load);
    if (loaded.ndevices)
        return &loaded;
    snprintf(why, size,
             "%s (RONDO_NET_PLUGIN names a file, or NAME of " RD_PLUG_PREFIX "-NAME.so; unset RONDO_TRANSPORT to go "
             "by UCX)",
             failure);
    return NULL;
}

const rd_plug_t *rd_plug_loaded(void)
{
    return loaded.ndevices ? &loaded : NULL;
}
