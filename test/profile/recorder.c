/* A profiler plugin of version VERSION, as others would build it: it includes nothing of rondo's and nothing of NCCL's,
 * but reads descriptors at the offsets that NCCL's headers give them on 64 bits. */
#include "profile/recorder.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) recorder_t recorder_seen = {.version = VERSION};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define seen recorder_seen

/* Offsets of a collective's and of a message's members. 0: the version has none. */
typedef struct {
    int number, func, in, out, count, root, type, channels, algo, proto, group;
    int p2p_func, p2p_buffer, p2p_type, p2p_count, p2p_peer, p2p_channels, p2p_group;
} offsets_t;

#if VERSION == 1
static const offsets_t at = {40, 48, 56, 64, 72, 80, 84, 104, 106, 107, 0, 40, 48, 56, 64, 72, 0, 0};
#elif VERSION == 2
static const offsets_t at = {40, 48, 56, 64, 72, 80, 88, 104, 112, 120, 0, 40, 48, 56, 64, 72, 0, 0};
#elif VERSION == 3
static const offsets_t at = {40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 0, 40, 48, 56, 64, 72, 0, 0};
#elif VERSION == 4
static const offsets_t at = {24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 0, 24, 32, 40, 48, 56, 60, 0};
#else
static const offsets_t at = {24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 24, 32, 40, 48, 56, 60, 64};
#endif

static uint64_t word(const char *d, int offset)
{
    uint64_t w;

    memcpy(&w, d + offset, sizeof w);
    return w;
}

static int number(const char *d, int offset)
{
    int n;

    memcpy(&n, d + offset, sizeof n);
    return n;
}

static void *address(const char *d, int offset)
{
    return (void *)(uintptr_t)word(d, offset);
}

static int byte(const char *d, int offset)
{
    return (unsigned char)d[offset];
}

/* Copies the words, and checks so that they are words. */
static void text(char to[24], const char *d, int offset)
{
    strncpy(to, address(d, offset), 23);
}

static int setting(const char *name, int standard)
{
    const char *value = getenv(name);

    return value ? (int)strtol(value, NULL, 0) : standard;
}

static int result(void)
{
    if (!setting("RECORDER_ERRORS", 0))
        return 0;
    seen.errors++;
    return 3;
}

/* `names`: versions from 4 on. */
static int init(void **context, int *mask, const char *name, uint64_t id, int nodes, int nranks, int rank)
{
    pthread_mutex_lock(&lock);
    int refused = setting("RECORDER_REFUSE", 0) == ++seen.inits, c = seen.inits - seen.refused - 1;

    if (refused) {
        seen.refused++;
        *mask = 0;
    } else if (c < RECORDER_COMMS) {
        *context = &seen.comms[c];
        if (!seen.mask)
            *mask = setting("RECORDER_MASK", 0);
        seen.mask = mask;
        strncpy(seen.comms[c].name, name ? name : "", sizeof seen.comms[c].name - 1);
        seen.comms[c].id = id;
        seen.comms[c].nodes = nodes;
        seen.comms[c].nranks = nranks;
        seen.comms[c].rank = rank;
    }
    pthread_mutex_unlock(&lock);
    return refused ? 1 : 0;
}

#if VERSION <= 3
static int begin(void **context, int *mask)
{
    return init(context, mask, NULL, 0, 0, 0, -1);
}
#elif VERSION == 4
static int begin(void **context, int *mask, const char *name, uint64_t id, int nodes, int nranks, int rank,
                 void (*log)(int, unsigned long, const char *, int, const char *, ...))
{
    log(3, 1, __FILE__, __LINE__, "recorder of %d ranks\n", nranks);
    return init(context, mask, name, id, nodes, nranks, rank);
}
#else
static int begin(void **context, uint64_t id, int *mask, const char *name, int nodes, int nranks, int rank,
                 void (*log)(int, unsigned long, const char *, int, const char *, ...))
{
    log(3, 1, __FILE__, __LINE__, "recorder of %d ranks\n", nranks);
    return init(context, mask, name, id, nodes, nranks, rank);
}
#endif

static void collective(recorder_event_t *e, const char *d)
{
    e->number = word(d, at.number);
    e->in = address(d, at.in);
    e->out = address(d, at.out);
    e->count = word(d, at.count);
    e->root = number(d, at.root);
    e->channels = byte(d, at.channels);
    e->group = at.group ? address(d, at.group) : NULL;
    if (VERSION == 1) {
        e->func_number = byte(d, at.func);
        e->type_number = byte(d, at.type);
        e->algo_number = byte(d, at.algo);
        e->proto_number = byte(d, at.proto);
        return;
    }
    text(e->func, d, at.func);
    text(e->datatype, d, at.type);
    text(e->algo, d, at.algo);
    text(e->proto, d, at.proto);
}

static void message(recorder_event_t *e, const char *d)
{
    e->in = e->out = address(d, at.p2p_buffer);
    e->count = word(d, at.p2p_count);
    e->root = number(d, at.p2p_peer);
    e->channels = at.p2p_channels ? byte(d, at.p2p_channels) : 0;
    e->group = at.p2p_group ? address(d, at.p2p_group) : NULL;
    if (VERSION == 1) {
        e->func_number = byte(d, at.p2p_func);
        e->type_number = byte(d, at.p2p_type);
        return;
    }
    text(e->func, d, at.p2p_func);
    text(e->datatype, d, at.p2p_type);
}

static void api(recorder_event_t *e, const char *d)
{
    text(e->func, d, 24);
    e->count = word(d, 32);
    text(e->datatype, d, 40);
    if (e->type == 1 << 9)
        e->root = number(d, 48);
}

static void fill(recorder_event_t *e, const char *d)
{
    switch (e->type) {
    case 1 << 1:
        collective(e, d);
        break;
    case 1 << 2:
        message(e, d);
        break;
    case 1 << 6:
        e->channels = byte(d, 24);
        e->begun = VERSION >= 4 ? word(d, 32) : 0;
        break;
    case 1 << 8:
        e->depth = number(d, 28);
        break;
    case 1 << 9:
    case 1 << 10:
        api(e, d);
        break;
    }
}

static int comm_of(const void *context)
{
    for (int c = 0; c < RECORDER_COMMS; c++)
        if (context == &seen.comms[c])
            return c;
    return -1;
}

static int start(void *context, void **handle, void *descriptor)
{
    const char *d = descriptor;
    int c = comm_of(context);

    pthread_mutex_lock(&lock);
    seen.order++;
    seen.wrong += c < 0 || seen.comms[c].over;
    if (seen.nevents == RECORDER_MOST) {
        seen.most++;
        pthread_mutex_unlock(&lock);
        return 0;
    }
    recorder_event_t *e = &seen.events[seen.nevents++];
    e->comm = c;
    e->type = VERSION <= 4 ? (unsigned)byte(d, 0) : (unsigned)word(d, 0);
    e->parent = address(d, 8);
    e->rank = number(d, 16);
    e->started = seen.order;
    e->root = -1;
    fill(e, d);
    *handle = setting("RECORDER_WANTS", ~0) & (int)e->type ? e : NULL;
    int r = result();
    pthread_mutex_unlock(&lock);
    return r;
}

static recorder_event_t *event_of(void *handle)
{
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)seen.events;

    if (handle && offset < sizeof seen.events && offset % sizeof(recorder_event_t) == 0)
        return handle;
    seen.wrong++;
    return NULL;
}

static int stop(void *handle)
{
    pthread_mutex_lock(&lock);
    recorder_event_t *e = event_of(handle);

    seen.order++;
    if (e) {
        seen.wrong += e->stops++ > 0 || seen.comms[e->comm].over;
        e->stopped = seen.order;
    }
    int r = result();
    pthread_mutex_unlock(&lock);
    return r;
}

static int state(void *handle, int what, void *args)
{
    pthread_mutex_lock(&lock);
    recorder_event_t *e = event_of(handle);

    seen.order++;
    if (e) {
        seen.wrong += e->stops > 0 || seen.comms[e->comm].over || what < 0 || what >= 32;
        e->states[what & 31] = seen.order;
        if (what == 22)
            memcpy(&e->ended, args, sizeof e->ended);
    }
    int r = result();
    pthread_mutex_unlock(&lock);
    return r;
}

static int end(void *context)
{
    int c = comm_of(context);

    pthread_mutex_lock(&lock);
    seen.order++;
    seen.finals++;
    if (c < 0 || seen.comms[c].over)
        seen.wrong++;
    else
        seen.comms[c].over = seen.order;
    int r = result();
    pthread_mutex_unlock(&lock);
    return r;
}

#define NAME2(version) ncclProfiler_v##version
#define NAME(version) NAME2(version)
/* Members of forks follow in some builds, and must not be called. */
__attribute__((visibility("default"))) struct {
    const char *name;
    void *init;
    int (*start)(void *, void **, void *);
    int (*stop)(void *);
    int (*state)(void *, int, void *);
    int (*end)(void *);
    void *fork;
} NAME(VERSION) = {"recorder", (void *)begin, start, stop, state, end, (void *)1};
