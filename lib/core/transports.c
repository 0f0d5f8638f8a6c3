/* The table of transports: see transports.h. A build without a library has no entry for it. */
#include "core/transports.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "netplugin/transport_plugin.h"
#include "transport/cma/cma.h"
#include "transport/shm/shm.h"

#ifdef RD_HAVE_UCX
#include "ucx/transport_ucx.h"
#endif
#ifdef RD_HAVE_LIBFABRIC
#include "ofi/transport_ofi.h"
#endif

#define REGISTERED_MOST 8
#define NAME_BYTES 32 /* as in rd_env_t */

static const rd_transport_ops_t *const built_in[] = {
    &rd_transport_shm,    &rd_transport_cma,
#ifdef RD_HAVE_UCX
    &rd_transport_ucx,
#endif
#ifdef RD_HAVE_LIBFABRIC
    &rd_transport_ofi,
#endif
    &rd_transport_plugin, NULL,
};
#define BUILT_IN ((int)(sizeof built_in / sizeof built_in[0]) - 1)

static const rd_transport_ops_t *_Atomic registered[REGISTERED_MOST];

const rd_transport_ops_t *rd_transport_at(int i)
{
    if (i < BUILT_IN)
        return built_in[i];
    return i - BUILT_IN < REGISTERED_MOST ? atomic_load(&registered[i - BUILT_IN]) : NULL;
}

const rd_transport_ops_t *rd_transport_named(const char *name)
{
    const rd_transport_ops_t *ops;

    for (int i = 0; (ops = rd_transport_at(i)); i++) {
        if (strcmp(ops->name, name) == 0)
            return ops;
    }
    return NULL;
}

int rd_transport_register(const rd_transport_ops_t *ops)
{
    if (strlen(ops->name) >= NAME_BYTES || rd_transport_named(ops->name))
        return -1;
    for (int i = 0; i < REGISTERED_MOST; i++) {
        const rd_transport_ops_t *none = NULL;
        if (atomic_compare_exchange_strong(&registered[i], &none, ops))
            return 0;
    }
    return -1;
}

rondo_result_t rd_transport_check(const rd_env_t *env, rd_log_ctx_t *ctx)
{
    char names[256] = "";
    size_t used = 0;
    const rd_transport_ops_t *ops;

    if (!*env->transport || rd_transport_named(env->transport))
        return RONDO_SUCCESS;
    for (int i = 0; (ops = rd_transport_at(i)) && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", ops->name);
    return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT,
                    "RONDO_TRANSPORT=%s is not allowed: this library has the transports %s", env->transport, names);
}

const rd_transport_ops_t *rd_transport_between(const rd_env_t *env, char why[RD_TRANSPORT_WHY])
{
    const rd_transport_ops_t *ops = rd_transport_named(env->transport);

    if (ops && ops->reach != RD_BETWEEN_NODES) {
        snprintf(why, RD_TRANSPORT_WHY, "RONDO_TRANSPORT=%s excludes it", ops->name);
        return NULL;
    }
    snprintf(why, RD_TRANSPORT_WHY,
             "this library is built without UCX: configure it with --with-ucx, or start all "
             "ranks on one node with one RONDO_HOSTID");
    if (!rd_clock_has_counter()) {
        snprintf(
            why, RD_TRANSPORT_WHY,
            "network libraries read the time stamp counter, and this process may not (prctl: PR_SET_TSC): allow it "
            "that, or start all ranks on one node");
        return NULL;
    }
    const char *another = NULL; /* that would have to be asked for */
    for (int i = 0; (ops = rd_transport_at(i)); i++) {
        another = !another && ops->asked_for && !*env->transport ? ops->name : another;
        if (ops->reach != RD_BETWEEN_NODES ||
            (*env->transport ? strcmp(ops->name, env->transport) != 0 : ops->asked_for))
            continue;
        const char *unusable = ops->unusable ? ops->unusable() : NULL;
        if (!unusable)
            return ops;
        snprintf(why, RD_TRANSPORT_WHY, "%s", unusable);
    }
    if (another)
        snprintf(why + strlen(why), RD_TRANSPORT_WHY - strlen(why), ", or set RONDO_TRANSPORT=%s", another);
    return NULL;
}

/* Checks that each rank's choice is the same as this rank's. */
static rondo_result_t compare(const rd_transport_args_t *args, const char (*names)[NAME_BYTES])
{
    const char *mine = names[args->rank];
    int r = 0;

    while (r < args->nranks && strncmp(names[r], mine, NAME_BYTES) == 0)
        r++;
    if (r == args->nranks)
        return RONDO_SUCCESS;
    rd_boot_farewell_alike(args->boot);
    return rd_error(args->ctx, RONDO_ERR_INVALID_USAGE,
                    "rank %d (%s) goes by %.31s between nodes, this rank by %.31s: set RONDO_TRANSPORT alike on all", r,
                    rd_boot_whois(args->boot, r), names[r], mine);
}

/* Rank `without` has no transport, for the reason `why` there, and perhaps it is not the only one. */
static rondo_result_t none(const rd_transport_args_t *args, bool own, int without, const char *why)
{
    char said[RD_ERROR_BYTES];

    rd_boot_cause(args->boot, without, why, said);
    rd_boot_farewell_alike(args->boot);
    if (!own)
        return rd_error(args->ctx, RONDO_ERR_UNSUPPORTED, "%d nodes need a network transport, but %s",
                        args->node->nnodes, why);
    return rd_error(args->ctx, RONDO_ERR_REMOTE, "rank %d (%s) has no transport between nodes: %.400s", without,
                    rd_boot_whois(args->boot, without), said);
}

rondo_result_t rd_transport_choose(const rd_transport_ops_t **ops, const rd_transport_args_t *args)
{
    char why[RD_TRANSPORT_WHY];
    const rd_transport_ops_t *own = rd_transport_between(args->env, why);
    char(*names)[NAME_BYTES] = calloc((size_t)args->nranks, NAME_BYTES);

    if (!names)
        return rd_error(args->ctx, RONDO_ERR_NO_MEMORY, "no memory for %d ranks", args->nranks);
    if (own)
        snprintf(names[args->rank], NAME_BYTES, "%s", own->name);
    rondo_result_t result = rd_boot_allgather(args->boot, names, NAME_BYTES);
    int without = 0;
    while (result == RONDO_SUCCESS && without < args->nranks && *names[without])
        without++;
    if (result == RONDO_SUCCESS)
        result = without < args->nranks ? none(args, own, without, why) : compare(args, names);
    free(names);
    *ops = own;
    return result;
}
