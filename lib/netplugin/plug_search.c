/* Looks for plugins as NCCL does: a file, or NAME for libnccl-net-NAME.so, or the first of a list of them; without a
 * name libnccl-net.so. */
#include "netplugin/plug_search.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/plugin_open.h"
#include "netplugin/plug_abi.h"
#include "transport/network/net_fork.h"
#include "transport/network/net_load.h"

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

const void *rd_plug_table(void *library, const char *kind, int *version)
{
    const void *table = NULL;

    for (int v = RD_PLUG_NEWEST; v >= RD_PLUG_OLDEST && !table; v--) {
        char symbol[40];

        snprintf(symbol, sizeof symbol, "%s_v%d", kind, v);
        table = dlsym(library, symbol);
        *version = v;
    }
    return table;
}

static const char *names_of(const rd_env_t *env)
{
    const char *nccls = getenv("NCCL_NET_PLUGIN");

    return *env->net_plugin ? env->net_plugin : nccls && *nccls ? nccls : RD_PLUG_PREFIX ".so";
}

/* Returns true if the library serves; sets *stays if it has begun to do anything. */
static bool serves(rd_plug_search_t *search, const char *name, bool *stays)
{
    char why[RD_PLUGIN_WHY];
    void *library = rd_plugin_open(RD_PLUG_PREFIX, name, why);

    if (!library) {
        snprintf(search->failure, sizeof search->failure, "the net plugin %.200s cannot be loaded: %.299s", name, why);
        return false;
    }
    const rd_plug_found_t found = search->look(search, library, name);
    if (found == RD_PLUG_LACKS)
        dlclose(library);
    *stays |= found != RD_PLUG_LACKS;
    return found == RD_PLUG_SERVES;
}

static void look_through(rd_plug_search_t *search)
{
    char names[RD_PLUG_NAMES], *next = names;
    rd_net_quiet_t quiet;
    bool stays = false;

    memcpy(names, search->first, sizeof names);
    rd_net_fork_begin(&at_fork);
    rd_net_quiet_begin(&quiet);
    for (char *name; !search->serves && (name = strsep(&next, ",")) != NULL;)
        search->serves = *name && serves(search, name, &stays);
    rd_net_quiet_end(&quiet);
    if (!stays)
        rd_net_fork_end(&at_fork);
}

bool rd_plug_search(rd_plug_search_t *search, const rd_env_t *env, char *why, size_t size)
{
    const char *names = names_of(env);
    bool other;

    if (strcasecmp(names, "none") == 0) {
        snprintf(why, size, "RONDO_NET_PLUGIN or NCCL_NET_PLUGIN says that there is to be none: a %s is asked for",
                 search->what);
        return false;
    }
    pthread_mutex_lock(&search->lock);
    if (!*search->first) {
        snprintf(search->first, sizeof search->first, "%s", names);
        look_through(search);
    }
    other = strncmp(search->first, names, sizeof search->first - 1) != 0;
    pthread_mutex_unlock(&search->lock);
    if (other)
        snprintf(why, size, "this process has looked for a %s in %.100s before, and cannot look in %.100s besides",
                 search->what, search->first, names);
    else if (!search->serves)
        snprintf(why, size, "%s", search->failure);
    return !other && search->serves;
}
