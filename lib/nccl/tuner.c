/* Asks a tuner plugin of NCCL's for rondo's plans. An answer that makes no sense is said, once a communicator to
 * everybody, and the choice is rondo's own. What a plugin says of channels has no effect: a plan has as many lanes as
 * its algorithm. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/shim.h"
#include "nccl/tuner.h"

#define CHANNELS_MOST 1024 /* far more than any version of NCCL has */
#define UNDEFINED (-1)

static const nc_tuner_export_t *plugin;
static int version;
static char name[100]; /* "plugin Basic (version 4)" */

typedef struct context {
    void *own; /* the plugin's */
    bool warned;
    nc_tuner_domains_t domains;
    nc_tuner_constants_t constants; /* the plugin keeps its address */
} context_t;

/* By NCCL's levels: version, warning, information, abort, trace. Plugins say at trace what they look at for each plan,
 * as many lines as they have rules: what nobody reads is not formatted. */
__attribute__((format(printf, 5, 6))) static void log_line(int level, unsigned long flags, const char *file, int line,
                                                           const char *format, ...)
{
    const bool warns = level == 2 || level == 4;
    const rd_log_level_t at = warns ? RD_LOG_WARN : level > 4 ? RD_LOG_TRACE : RD_LOG_INFO;
    char text[480] = "tuner: ";
    size_t used = strlen(text);
    va_list args;

    (void)flags;
    (void)file;
    (void)line;
    if (!rondo_log_takes(at))
        return;
    va_start(args, format);
    vsnprintf(text + used, sizeof text - used, format, args);
    va_end(args);
    text[strcspn(text, "\n")] = '\0';
    rondo_log_line(at, text);
}

static bool begin(const rd_tuner_comm_t *comm, void **made)
{
    context_t *c = calloc(1, sizeof *c);
    const size_t nranks = (size_t)comm->nranks, nnodes = (size_t)comm->nnodes;
    char text[300];
    int error;

    if (!c)
        return false;
    c->domains = (nc_tuner_domains_t){comm->nnodes, comm->fewest, comm->most};
    error = version >= 5 ? plugin->init.v5(&c->own, comm->id, nranks, nnodes, log_line, &c->domains, &c->constants)
                         : plugin->init.v2(nranks, nnodes, log_line, &c->own);
    if (!error) {
        *made = c;
        return true;
    }
    free(c);
    snprintf(text, sizeof text,
             "the tuner %s refuses a communicator of %zu ranks (NCCL's error %d), for which rondo chooses by itself",
             name, nranks, error);
    rondo_log_line(RD_LOG_WARN, text);
    return false;
}

static void end(void *context)
{
    context_t *c = context;

    (void)plugin->end(c->own);
    free(c);
}

/* Returns NCCL's number of the function, or -1 if NCCL asks no tuner for it. */
static int function_of(const char *operation)
{
    static const char *const functions[] = {"broadcast", "reduce", "allgather", "reduce_scatter", "allreduce"};

    for (int f = 0; f < (int)(sizeof functions / sizeof functions[0]); f++)
        if (strcmp(functions[f], operation) == 0)
            return f;
    return -1;
}

/* Version 2 says which cell it wants; one that is marked as missing it does not get. */
static const char *ask_v2(context_t *c, int function, size_t bytes, nc_tuner_table_t *t, int *channels)
{
    int algo = UNDEFINED, proto = UNDEFINED;
    int error = plugin->choose.v2(c->own, function, bytes, 0, 0, 1, &algo, &proto, channels);

    if (error)
        return "returned an error";
    if (algo == UNDEFINED || proto == UNDEFINED)
        return NULL;
    if (algo < 0 || algo >= NC_TUNER_ALGOS || proto < 0 || proto >= NC_TUNER_PROTOS)
        return "named an algorithm or a protocol that NCCL has not";
    float *cell = &t->cell[algo * NC_TUNER_PROTOS + proto];
    if (*cell != NC_TUNER_NONE)
        *cell = 0;
    return NULL;
}

/* Has the plugin change the table. Returns NULL, or what is wrong. */
static const char *ask(context_t *c, int function, size_t bytes, nc_tuner_table_t *t, int *channels)
{
    float **table = (float **)(void *)t->cell;
    const char *why = NULL;
    int error = 0;

    if (version == 2)
        why = ask_v2(c, function, bytes, t, channels);
    else if (version == 3)
        error = plugin->choose.v3(c->own, function, bytes, 1, table, NC_TUNER_ALGOS, NC_TUNER_PROTOS, channels);
    else
        error = plugin->choose.v4(c->own, function, bytes, 1, table, NC_TUNER_ALGOS, NC_TUNER_PROTOS, 0, channels);
    if (error)
        why = "returned an error";
    if (!why && (*channels < 0 || *channels > CHANNELS_MOST))
        why = "gave a number of channels that cannot be";
    return why;
}

/* The length of slices, where the plugin has something to say about that. */
static int slice(context_t *c, int function, const rd_tuner_call_t *call, int cell, int channels,
                 const rd_tuner_candidate_t *of, int count, int best)
{
    size_t chunk = of[best].slice;

    if (version < 6 || !plugin->chunk)
        return best;
    if (plugin->chunk(c->own, function, call->bytes, cell / NC_TUNER_PROTOS, cell % NC_TUNER_PROTOS,
                      channels ? channels : 1, &chunk) != 0 ||
        !chunk || chunk == of[best].slice)
        return best;
    return nc_tuner_slice(of, count, cell, chunk);
}

static void say_wrong(context_t *c, const rd_tuner_call_t *call, const char *why)
{
    char text[300];

    snprintf(text, sizeof text, "the tuner %s %s for %s of %zu bytes, for which rondo chooses by itself", name, why,
             call->operation, call->bytes);
    rondo_log_line(c->warned ? RD_LOG_INFO : RD_LOG_WARN, text);
    c->warned = true;
}

/* Where rondo has nothing that NCCL has a name for, there is nothing to ask. */
static int choose(void *context, const rd_tuner_call_t *call, const rd_tuner_candidate_t *of, int count)
{
    const int function = function_of(call->operation);
    nc_tuner_table_t was, is;
    int channels = 0, some = 0;
    const char *why;

    nc_tuner_fill(&was, of, count);
    for (int i = 0; i < NC_TUNER_CELLS; i++)
        some |= was.best[i] >= 0;
    if (function < 0 || !some)
        return -1;
    is = was;
    why = ask(context, function, call->bytes, &is, &channels);
    int cell = why ? -1 : nc_tuner_read(&was, &is, &why);
    if (why)
        say_wrong(context, call, why);
    return cell < 0 ? -1 : slice(context, function, call, cell, channels, of, count, was.best[cell]);
}

void nc_tuner(const char *given)
{
    static const rd_tuner_t tuner = {.name = name, .begin = begin, .choose = choose, .end = end};

    plugin = nc_tuner_load(given, &version);
    if (!plugin)
        return;
    snprintf(name, sizeof name, "plugin %.60s (version %d)", plugin->name ? plugin->name : "?", version);
    rondo_tuner_set(&tuner);
}
