/* Finds a tuner plugin as NCCL does: the file that NCCL_TUNER_PLUGIN names, or libnccl-tuner-NAME.so; without it
 * libnccl-tuner.so, if there is one. The newest version that the library exports is taken. It is loaded once in a
 * process and stays, because it may have threads of its own. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/plugin_open.h"
#include "nccl/tuner.h"

#define NEWEST 6
#define OLDEST 2
#define PREFIX "libnccl-tuner"
#define PLAIN PREFIX ".so"

/* Says why there is no plugin: to everybody if one was asked for, else to who wants to know. */
static void say_none(bool asked, const char *name, const char *why)
{
    char text[600];

    snprintf(text, sizeof text, "the tuner plugin %.200s is not loaded, and rondo chooses by itself: %s", name, why);
    rondo_log_line(asked ? RD_LOG_WARN : RD_LOG_INFO, text);
}

static void *open_library(const char *name, bool asked)
{
    char why[RD_PLUGIN_WHY];
    void *library = rd_plugin_open(PREFIX, name, why);

    if (!library)
        say_none(asked, name, why);
    return library;
}

static const nc_tuner_export_t *newest(void *library, int *version)
{
    for (*version = NEWEST; *version >= OLDEST; --*version) {
        char symbol[32];

        snprintf(symbol, sizeof symbol, "ncclTunerPlugin_v%d", *version);
        const nc_tuner_export_t *table = dlsym(library, symbol);
        if (table && table->init.v2 && table->choose.v2 && table->end)
            return table;
    }
    return NULL;
}

const nc_tuner_export_t *nc_tuner_load(const char *given, int *version)
{
    const char *name = given ? given : PLAIN;
    char text[400];

    if (given && strcasecmp(given, "none") == 0)
        return NULL;
    void *library = open_library(name, given != NULL);
    if (!library)
        return NULL;
    const nc_tuner_export_t *table = newest(library, version);
    if (!table) {
        say_none(given != NULL, name, "it has none of ncclTunerPlugin_v2 to ncclTunerPlugin_v6");
        dlclose(library);
        return NULL;
    }
    snprintf(text, sizeof text, "tuner plugin %.100s, version %d, of %.200s", table->name ? table->name : "?", *version,
             name);
    rondo_log_line(RD_LOG_INFO, text);
    return table;
}
