/* What RONDO_ALGO and RONDO_PROTO force on the net communicators of a CUDA communicator. They name what GPUs run;
 * between nodes the host runs its algorithm of that name, or the one that NCCL calls alike: where GPUs have a chain,
 * the host has a ring. */
#include <stdio.h>
#include <string.h>

#include "plan/candidates.h"

static bool is_named(const rd_algo_t *algo, const rd_forced_t *forced)
{
    return strlen(algo->name) == forced->length && memcmp(algo->name, forced->algo, forced->length) == 0;
}

static const rd_algo_t *named(const rd_forced_t *forced)
{
    for (const rd_algo_t *const *a = rd_algos; *a; a++)
        if (is_named(*a, forced))
            return *a;
    return NULL;
}

/* Returns the host's algorithm for a forced one, or NULL if the host has none for this operation. */
static const rd_algo_t *on_host(const rd_forced_t *forced, rd_coll_t coll)
{
    const rd_algo_t *like = named(forced);

    if (like && like->colls & 1u << coll)
        return like;
    if (!like || !like->nccl || !(like->device.colls & 1u << coll))
        return NULL;
    for (const rd_algo_t *const *a = rd_algos; *a; a++)
        if ((*a)->colls & 1u << coll && (*a)->nccl && strcmp(like->nccl, (*a)->nccl) == 0)
            return *a;
    return NULL;
}

/* The host's other protocols serve the ranks of one node alone. */
static bool goes_by(const char *proto)
{
    return !*proto || strcmp(proto, rd_proto_name(RD_PROTO_SIMPLE)) == 0;
}

bool rd_forced_serves_between(const rd_env_t *env, rd_coll_t coll)
{
    const rd_forced_t forced = rd_forced(env, coll);

    return goes_by(forced.proto) && (!forced.algo || on_host(&forced, coll));
}

void rd_forced_between(const rd_env_t *env, rd_env_t *net)
{
    size_t used = 0;

    *net = *env;
    net->where_served = true;
    net->algo[0] = '\0';
    if (!goes_by(net->proto))
        net->proto[0] = '\0';
    for (int coll = 0; coll < RD_NUM_COLLS; coll++) {
        const rd_forced_t forced = rd_forced(env, (rd_coll_t)coll);
        const rd_algo_t *algo = forced.algo ? on_host(&forced, (rd_coll_t)coll) : NULL;

        if (algo && used < sizeof net->algo)
            used += (size_t)snprintf(net->algo + used, sizeof net->algo - used, "%s%s=%s", used ? "," : "",
                                     rd_coll_name((rd_coll_t)coll), algo->name);
    }
}

void rd_forced_none(const rd_env_t *env, rd_env_t *none)
{
    *none = *env;
    none->algo[0] = none->proto[0] = '\0';
    none->where_served = false;
}
