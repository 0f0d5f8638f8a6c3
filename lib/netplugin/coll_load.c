/* Finds a CollNet plugin in the libraries in which NCCL would look for it, asks what it adds, and makes its calls, by
 * one thread at a time but for `connect`: plug_calls.c says why. */
#include "netplugin/coll_load.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/plugin_open.h"
#include "netplugin/plug_load.h"
#include "transport/network/net_load.h"

#define DEVICES_MOST 1024

static rd_coll_plug_t loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER, calling = PTHREAD_MUTEX_INITIALIZER;
static char wanted[256]; /* what the first call has named */
static char failure[600];

/* ---- calls */

static int over(int result)
{
    pthread_mutex_unlock(&calling);
    return result;
}

#define CALL(call) (pthread_mutex_lock(&calling), over(call))

int rd_coll_begin(const rd_coll_plug_t *plug, void **context, uint64_t id)
{
    *context = NULL;
    return plug->version >= 11 ? CALL(plug->table->init.v11(context, id, rd_plug_log)) : 0;
}

int rd_coll_end(const rd_coll_plug_t *plug, void *context)
{
    return plug->version >= 11 && plug->table->finalize ? CALL(plug->table->finalize(context)) : 0;
}

int rd_coll_device(const rd_coll_plug_t *plug, int device, int *memory, size_t *most)
{
    rd_plug_properties_v8_t eight = {.name = NULL};
    rd_plug_properties_v9_t nine = {.name = NULL};
    int error = CALL(plug->table->properties(device, plug->version == 8 ? (void *)&eight : &nine));

    *memory = plug->version == 8 ? eight.memory : nine.memory;
    *most = plug->version == 8 ? INT_MAX : nine.most_bytes_collective;
    return error;
}

int rd_coll_listen(const rd_coll_plug_t *plug, void *context, int device, void *handle, void **listen)
{
    *listen = NULL;
    return CALL(plug->version >= 11 ? plug->table->listen.v11(context, device, handle, listen)
                                    : plug->table->listen.v8(device, handle, listen));
}

int rd_coll_connect(const rd_coll_plug_t *plug, void **handles, int nranks, int rank, void *listen, void **comm)
{
    *comm = NULL;
    return plug->table->connect(handles, nranks, rank, listen, comm);
}

int rd_coll_reg(const rd_coll_plug_t *plug, void *comm, void *data, size_t bytes, void **registration)
{
    *registration = NULL;
    return CALL(plug->table->reg(comm, data, bytes, RD_PLUG_HOST, registration));
}

int rd_coll_dereg(const rd_coll_plug_t *plug, void *comm, void *registration)
{
    return CALL(plug->table->dereg(comm, registration));
}

int rd_coll_close(const rd_coll_plug_t *plug, void *comm)
{
    return CALL(plug->table->close_comm(comm));
}

int rd_coll_close_listen(const rd_coll_plug_t *plug, void *listen)
{
    return CALL(plug->table->close_listen(listen));
}

/* NCCL's numbers, plus one; 0: it has no such type or operator. */
static const unsigned char types[RONDO_NUM_TYPES] = {
    [RONDO_INT8] = 1,    [RONDO_UINT8] = 2,     [RONDO_INT32] = 3,        [RONDO_UINT32] = 4,
    [RONDO_INT64] = 5,   [RONDO_UINT64] = 6,    [RONDO_FLOAT16] = 7,      [RONDO_FLOAT32] = 8,
    [RONDO_FLOAT64] = 9, [RONDO_BFLOAT16] = 10, [RONDO_FLOAT8_E4M3] = 11, [RONDO_FLOAT8_E5M2] = 12};
static const unsigned char ops[RONDO_NUM_OPS] = {[RONDO_SUM] = 1, [RONDO_PROD] = 2, [RONDO_MAX] = 3, [RONDO_MIN] = 4};
#define TYPES_OLD 10 /* as many types there were before version 10 */

int rd_coll_allreduce(const rd_coll_plug_t *plug, void *comm, const void *from, void *to, size_t count,
                      rondo_type_t type, rondo_op_t op, void *from_registration, void *to_registration, void **request)
{
    const rd_coll_export_t *t = plug->table;
    void *data = (void *)(uintptr_t)from;

    *request = NULL;
    if (plug->version >= 9)
        return CALL(t->allreduce.v9(comm, data, to, count, types[type] - 1, ops[op] - 1, from_registration,
                                    to_registration, request));
    return CALL(t->allreduce.v8(comm, data, to, (int)count, types[type] - 1, ops[op] - 1, from_registration,
                                to_registration, request));
}

int rd_coll_test(const rd_coll_plug_t *plug, void *request, int *done, int *bytes)
{
    *done = 0;
    *bytes = -1;
    return CALL(plug->table->test(request, done, bytes));
}

/* ---- finding it */

static bool is_whole(const rd_coll_export_t *t)
{
    return t->init.v8 && t->properties && t->listen.v8 && t->connect && t->supports && t->reg && t->dereg &&
           t->allreduce.v8 && t->test && t->close_comm && t->close_listen;
}

static bool find(void *library, const char *name)
{
    for (int version = RD_PLUG_NEWEST; version >= RD_PLUG_OLDEST; version--) {
        char symbol[32];

        snprintf(symbol, sizeof symbol, "ncclCollNetPlugin_v%d", version);
        const rd_coll_export_t *table = dlsym(library, symbol);
        if (!table)
            continue;
        loaded.version = version;
        loaded.table = table;
        loaded.name = table->name && *table->name ? table->name : "?";
        snprintf(loaded.file, sizeof loaded.file, "%s", name);
        return true;
    }
    snprintf(failure, sizeof failure, "%.200s has no CollNet plugin: none of ncclCollNetPlugin_v%d to _v%d", name,
             RD_PLUG_OLDEST, RD_PLUG_NEWEST);
    return false;
}

static void ask_support(void)
{
    for (int type = 0; type < RONDO_NUM_TYPES; type++)
        for (int op = 0; op < RONDO_NUM_OPS; op++) {
            int supported = 0;

            if (!types[type] || !ops[op] || (loaded.version < 10 && types[type] > TYPES_OLD))
                continue;
            if (CALL(loaded.table->supports(types[type] - 1, ops[op] - 1, &supported)) == 0 && supported == 1)
                loaded.adds[type] |= (uint16_t)(1u << op);
        }
}

/* A plugin of version 11 counts its devices after the first of its contexts is made: this one is ended at once. */
static bool start(void)
{
    void *context = NULL;
    char text[80];
    const char *call = "init";
    int count = 0, error;

    if (!loaded.table->init.v8 || !loaded.table->devices) {
        snprintf(failure, sizeof failure, "the CollNet plugin %.60s of %.200s lacks init or devices", loaded.name,
                 loaded.file);
        return false;
    }
    error = loaded.version >= 11 ? rd_coll_begin(&loaded, &context, 0) : CALL(loaded.table->init.v8(rd_plug_log));
    if (error == 0) {
        call = "devices";
        error = CALL(loaded.table->devices(&count));
    }
    if (error != 0)
        snprintf(failure, sizeof failure, "the CollNet plugin %.60s of %.200s fails: %s", loaded.name, loaded.file,
                 rd_plug_failure(call, error, text, sizeof text));
    else if (count < 1 || count > DEVICES_MOST)
        snprintf(failure, sizeof failure, "the CollNet plugin %.60s of %.200s has %d devices here", loaded.name,
                 loaded.file, count);
    else if (!is_whole(loaded.table))
        snprintf(failure, sizeof failure, "the CollNet plugin %.60s of %.200s lacks a function that all of them have",
                 loaded.name, loaded.file);
    else
        loaded.ndevices = count;
    if (loaded.ndevices)
        ask_support();
    if (error == 0)
        (void)rd_coll_end(&loaded, context);
    return loaded.ndevices;
}

static void load(void)
{
    char why[RD_PLUGIN_WHY], *next = wanted;
    rd_net_quiet_t quiet;

    rd_net_quiet_begin(&quiet);
    for (char *name; !loaded.ndevices && (name = strsep(&next, ",")) != NULL;) {
        void *library = *name ? rd_plugin_open(RD_PLUG_PREFIX, name, why) : NULL;

        if (*name && !library)
            snprintf(failure, sizeof failure, "the net plugin %.200s cannot be loaded: %.299s", name, why);
        if (library && find(library, name) && start())
            rd_log(NULL, RD_LOG_INFO, "CollNet plugin %s, version %d, of %.200s: %d device%s", loaded.name,
                   loaded.version, loaded.file, loaded.ndevices, loaded.ndevices == 1 ? "" : "s");
    }
    rd_net_quiet_end(&quiet);
}

const rd_coll_plug_t *rd_coll_load(const rd_env_t *env, char *why, size_t size)
{
    static char first[sizeof wanted]; /* `wanted` is cut into its names */
    const char *name = rd_plug_names(env);
    bool other;

    if (strcasecmp(name, "none") == 0) {
        snprintf(why, size, "RONDO_NET_PLUGIN or NCCL_NET_PLUGIN says that there is to be no plugin");
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
        snprintf(why, size, "this process has looked for a CollNet plugin in %.100s before, and cannot look in %.100s",
                 first, name);
        return NULL;
    }
    pthread_once(&once, load);
    if (loaded.ndevices)
        return &loaded;
    snprintf(why, size, "%s", failure);
    return NULL;
}
