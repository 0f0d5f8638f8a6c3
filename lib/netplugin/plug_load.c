/* Finds a net plugin in the libraries of plug_search.c. The newest version that the library exports is taken. Before
 * version 11 a plugin is initialised once in a process; from then on, for each communicator (plug_calls.c). */
#include "netplugin/plug_load.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "netplugin/plug_search.h"

static rd_plug_t loaded;

static bool is_whole(const rd_plug_export_t *t)
{
    return t->init.v8 && t->devices && t->properties && t->listen.v8 && t->connect.v8 && t->accept && t->reg &&
           t->dereg && t->send.v8 && t->recv.v8 && t->test && t->close_send && t->close_recv && t->close_listen;
}

/* Returns false, with the reason, if the library has no struct that serves. */
static bool find(rd_plug_search_t *search, void *library, const char *name)
{
    const rd_plug_export_t *table = rd_plug_table(library, "ncclNetPlugin", &loaded.version);

    if (!table) {
        snprintf(search->failure, sizeof search->failure,
                 "%.200s is no net plugin that serves: it has none of ncclNetPlugin_v%d to ncclNetPlugin_v%d", name,
                 RD_PLUG_OLDEST, RD_PLUG_NEWEST);
        return false;
    }
    if (!is_whole(table)) {
        snprintf(search->failure, sizeof search->failure,
                 "ncclNetPlugin_v%d of %.200s lacks a function that every net plugin has", loaded.version, name);
        return false;
    }
    loaded.table = table;
    loaded.name = table->name && *table->name ? table->name : "?";
    snprintf(loaded.file, sizeof loaded.file, "%s", name);
    return true;
}

/* A plugin of version 11 counts its devices after the first of its contexts is made: this one is ended at once. */
static bool start(rd_plug_search_t *search)
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
        snprintf(search->failure, sizeof search->failure, "the net plugin %.60s of %.200s fails: %s", loaded.name,
                 loaded.file, rd_plug_failure(call, error, text, sizeof text));
    else
        snprintf(search->failure, sizeof search->failure, "the net plugin %.60s of %.200s finds no device here",
                 loaded.name, loaded.file);
    return false;
}

static rd_plug_found_t look(rd_plug_search_t *search, void *library, const char *name)
{
    if (!find(search, library, name))
        return RD_PLUG_LACKS;
    if (!start(search))
        return RD_PLUG_FAILS;
    rd_log(NULL, RD_LOG_INFO, "net plugin %s, version %d, of %.200s: %d device%s", loaded.name, loaded.version,
           loaded.file, loaded.ndevices, loaded.ndevices == 1 ? "" : "s");
    return RD_PLUG_SERVES;
}

const rd_plug_t *rd_plug_load(const rd_env_t *env, char *why, size_t size)
{
    static rd_plug_search_t search = {.what = "net plugin", .look = look, .lock = PTHREAD_MUTEX_INITIALIZER};

    if (rd_plug_search(&search, env, why, size))
        return &loaded;
    const size_t used = strlen(why);
    snprintf(why + used, size - used,
             " (RONDO_NET_PLUGIN names a file, or NAME of " RD_PLUG_PREFIX "-NAME.so; unset RONDO_TRANSPORT to go by "
             "UCX)");
    return NULL;
}

const rd_plug_t *rd_plug_loaded(void)
{
    return loaded.ndevices ? &loaded : NULL;
}
