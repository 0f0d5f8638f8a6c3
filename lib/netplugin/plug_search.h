/* Where plugins made for NCCL are looked for, of whichever of the two kinds: those that carry messages (plug_load.h),
 * and those that add (coll_load.h). */
#ifndef RD_NETPLUGIN_PLUG_SEARCH_H
#define RD_NETPLUGIN_PLUG_SEARCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/env.h"

#define RD_PLUG_PREFIX "libnccl-net"
#define RD_PLUG_NAMES 256

/* What a library that has been opened has. One that fails stays open, because it may have threads of its own. */
typedef enum rd_plug_found { RD_PLUG_LACKS, RD_PLUG_FAILS, RD_PLUG_SERVES } rd_plug_found_t;

/* A search, static, which the first call in a process makes once and for all. */
typedef struct rd_plug_search {
    const char *what; /* "net plugin" */
    /* Looks at a library; if it does not serve, search->failure says why. */
    rd_plug_found_t (*look)(struct rd_plug_search *search, void *library, const char *name);
    char failure[600];
    pthread_mutex_t lock;      /* over what follows */
    char first[RD_PLUG_NAMES]; /* what the first call has named; "": there was none yet */
    bool serves;
} rd_plug_search_t;

/* Looks through the libraries that RONDO_NET_PLUGIN names, or NCCL_NET_PLUGIN, or libnccl-net.so, up to the first that
 * serves. Returns false, with a sentence in `why`, if none does, or if an earlier call has named others. */
bool rd_plug_search(rd_plug_search_t *search, const rd_env_t *env, char *why, size_t size);
/* Returns the newest table of a kind ("ncclNetPlugin") that the library has, and its version; NULL: it has none. */
const void *rd_plug_table(void *library, const char *kind, int *version);
/* Returns why no plugin can be used in this process, or NULL. */
const char *rd_plug_unusable(void);

#endif
