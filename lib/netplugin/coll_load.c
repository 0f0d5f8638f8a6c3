/* Finds a CollNet plugin in the libraries in which NCCL would look for it, asks what it adds, and makes its calls, by
 * one thread at a time but for `connect` and the end of a group, which may wait for others: plug_calls.c says why. */
#include "netplugin/coll_load.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "netplugin/plug_load.h"
#include "netplugin/plug_search.h"

#define DEVICES_MOST 1024

static rd_coll_plug_t loaded;
static pthread_mutex_t calling = PTHREAD_MUTEX_INITIALIZER;

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
    return plug->table->close_comm(comm);
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

/* As in NCCL, a call is about all of one part. */
typedef struct part {
    rd_coll_part_v8_t eight;
    rd_coll_part_v9_t nine;
} part_t;

static void *part(const rd_coll_plug_t *plug, part_t *p, const void *at, size_t bytes, void *registration)
{
    void *data = (void *)(uintptr_t)at;

    p->eight = (rd_coll_part_v8_t){registration, data, (uint32_t)bytes};
    p->nine = (rd_coll_part_v9_t){registration, data, bytes};
    return plug->version == 8 ? (void *)&p->eight : &p->nine;
}

int rd_coll_allgather(const rd_coll_plug_t *plug, void *comm, const void *from, void *to, size_t each, int ranks,
                      void *registration, void **request)
{
    const size_t bytes = (size_t)ranks * each;
    part_t whole;
    void *parts = part(plug, &whole, to, bytes, registration);

    *request = NULL;
    return CALL(plug->table->allgather(comm, (void *)(uintptr_t)from, 1, parts, each, 0, bytes, registration, request));
}

int rd_coll_reduce_scatter(const rd_coll_plug_t *plug, void *comm, const void *from, void *to, size_t each, int ranks,
                           rondo_type_t type, rondo_op_t op, void *registration, void **request)
{
    const size_t bytes = (size_t)ranks * each;
    part_t whole;
    void *parts = part(plug, &whole, from, bytes, registration);

    *request = NULL;
    return CALL(plug->table->reduce_scatter(comm, 1, parts, to, each, 0, bytes, types[type] - 1, ops[op] - 1,
                                            registration, request));
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

static bool find(rd_plug_search_t *search, void *library, const char *name)
{
    const rd_coll_export_t *table = rd_plug_table(library, "ncclCollNetPlugin", &loaded.version);

    if (!table) {
        snprintf(search->failure, sizeof search->failure,
                 "%.200s has no CollNet plugin: none of ncclCollNetPlugin_v%d to _v%d", name, RD_PLUG_OLDEST,
                 RD_PLUG_NEWEST);
        return false;
    }
    loaded.table = table;
    loaded.name = table->name && *table->name ? table->name : "?";
    snprintf(loaded.file, sizeof loaded.file, "%s", name);
    return true;
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
static bool start(rd_plug_search_t *search)
{
    void *context = NULL;
    char text[80];
    const char *call = "init";
    int count = 0, error;

    if (!loaded.table->init.v8 || !loaded.table->devices) {
        snprintf(search->failure, sizeof search->failure, "the CollNet plugin %.60s of %.200s lacks init or devices",
                 loaded.name, loaded.file);
        return false;
    }
    error = loaded.version >= 11 ? rd_coll_begin(&loaded, &context, 0) : CALL(loaded.table->init.v8(rd_plug_log));
    const bool began = error == 0;
    if (began) {
        call = "devices";
        error = CALL(loaded.table->devices(&count));
    }
    if (error != 0)
        snprintf(search->failure, sizeof search->failure, "the CollNet plugin %.60s of %.200s fails: %s", loaded.name,
                 loaded.file, rd_plug_failure(call, error, text, sizeof text));
    else if (count < 1 || count > DEVICES_MOST)
        snprintf(search->failure, sizeof search->failure, "the CollNet plugin %.60s of %.200s has %d devices here",
                 loaded.name, loaded.file, count);
    else if (!is_whole(loaded.table))
        snprintf(search->failure, sizeof search->failure,
                 "the CollNet plugin %.60s of %.200s lacks a function that all of them have", loaded.name, loaded.file);
    else
        loaded.ndevices = count;
    loaded.gathers = loaded.table->allgather != NULL;
    loaded.scatters = loaded.table->reduce_scatter != NULL;
    if (loaded.ndevices)
        ask_support();
    if (began)
        (void)rd_coll_end(&loaded, context);
    return loaded.ndevices;
}

static rd_plug_found_t look(rd_plug_search_t *search, void *library, const char *name)
{
    if (!find(search, library, name))
        return RD_PLUG_LACKS;
    if (!start(search))
        return RD_PLUG_FAILS;
    rd_log(NULL, RD_LOG_INFO, "CollNet plugin %s, version %d, of %.200s: %d device%s", loaded.name, loaded.version,
           loaded.file, loaded.ndevices, loaded.ndevices == 1 ? "" : "s");
    return RD_PLUG_SERVES;
}

const rd_coll_plug_t *rd_coll_load(const rd_env_t *env, char *why, size_t size)
{
    static rd_plug_search_t search = {.what = "CollNet plugin", .look = look, .lock = PTHREAD_MUTEX_INITIALIZER};
    const char *unusable = rd_plug_unusable();

    if (unusable)
        snprintf(why, size, "%s", unusable);
    return !unusable && rd_plug_search(&search, env, why, size) ? &loaded : NULL;
}
