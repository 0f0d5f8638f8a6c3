/* What the test's plugins share, each of one VERSION of NCCL's interface (8 to 11) and with WORDS, the variable that
 * says how it misbehaves. To be included once. */
#ifndef TEST_NETPLUGIN_PLUGIN_H
#define TEST_NETPLUGIN_PLUGIN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HANDLE 128
#define SHOWN __attribute__((visibility("default")))

enum { GOOD = 0, SYSTEM = 2, INTERNAL = 3, ARGUMENT = 4, REMOTE = 6 };

typedef void (*log_fn)(int level, unsigned long flags, const char *file, int line, const char *format, ...);

/* ---- what WORDS says: words with commas between them ---- */

static int has(const char *word)
{
    const char *all = getenv(WORDS), *at = all ? strstr(all, word) : NULL;
    size_t n = strlen(word);

    return at && (at == all || at[-1] == ',') && (at[n] == '\0' || at[n] == ',');
}

/* fail=CALL/N. Counts the calls; returns nonzero if this is the one that fails. */
static int fails(const char *call)
{
    static int calls;
    const char *all = getenv(WORDS), *at = all ? strstr(all, "fail=") : NULL;
    size_t n = strlen(call);

    if (!at || strncmp(at + 5, call, n) != 0 || at[5 + n] != '/')
        return 0;
    return __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) == atoi(at + 6 + n);
}

/* ---- memory that is registered with a comm ---- */

#define REGIONS 256

typedef struct region {
    char *at; /* NULL: free */
    size_t bytes;
} region_t;

static int region_add(region_t *regions, void *data, size_t bytes, int memory, void **out)
{
    if (fails("reg"))
        return SYSTEM;
    for (int i = 0; i < REGIONS; i++) {
        if (regions[i].at)
            continue;
        regions[i] = (region_t){data, bytes};
        *out = &regions[i];
        return memory == 1 ? GOOD : ARGUMENT;
    }
    return INTERNAL;
}

static int region_drop(const region_t *regions, void *registration)
{
    region_t *r = registration;

    if (r < regions || r >= regions + REGIONS || !r->at)
        return ARGUMENT;
    r->at = NULL;
    return GOOD;
}

static int region_has(const region_t *regions, const void *registration, const char *data, size_t bytes)
{
    const region_t *r = registration;

    return r >= regions && r < regions + REGIONS && r->at && data >= r->at && data + bytes <= r->at + r->bytes;
}

/* ---- a device's properties in this version ---- */

typedef struct properties {
    char *name, *path;
    uint64_t guid;
    int memory, once;
#if VERSION > 8
    int flushes;
#endif
    int mbps, port;
    float latency;
    int comms, receives, offload, offload_version;
#if VERSION > 8
    int nparts, parts[4];
    size_t most, most_collective;
#endif
#if VERSION > 10
    int requests;
#endif
} properties_t;

/* ---- from version 11 on, whose calls have the context that init has given ---- */

#if VERSION > 10
#define CONTEXT void *context,
#define IS_CONTEXT (context == &contexts)
static int contexts;

static void context_new(void **context)
{
    *context = &contexts;
    contexts++;
}

static int finalize(void *context)
{
    return IS_CONTEXT && contexts-- > 0 ? GOOD : ARGUMENT;
}
#else
#define CONTEXT
#define IS_CONTEXT 1
#endif

#endif
