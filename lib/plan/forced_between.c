/* How RONDO_ALGO and RONDO_PROTO apply to the net communicators of a CUDA communicator. They name algorithms of GPUs;
 * between nodes the host runs its own algorithm of that name, or the one that has the same name in NCCL: where GPUs run
 * a chain, the host runs a ring. */
#include <stdio.h>
#include <string.h>

#include "plan/candidates.h"

/* Returns the host's algorithm for one that GPUs run, or NULL if the host has none for this operation. */
static const rd_algo_t *on_host(const rd_algo_t *algo, rd_coll_t coll)
{
    if (algo->colls & 1u << coll)
        return algo;
    if (!algo->nccl || !(algo->device.colls & 1u << coll))
        return NULL;
    for (const rd_algo_t *const *a = rd_algos; *a; a++)
        if ((*a)->colls & 1u << coll && (*a)->nccl && strcmp(algo->nccl, (*a)->nccl) == 0)
            return *a;
    return NULL;
}

/* Writes the names of the host's algorithms for the forced ones, each once. Returns how many there are. */
static int names(const rd_forced_t *forced, rd_coll_t coll, char *text, size_t size)
{
    const rd_algo_t *found[RD_ALGOS_MOST];
    size_t used = 0;
    int n = 0;

    *text = '\0';
    for (const rd_algo_t *const *a = rd_algos; *a; a++) {
        const rd_algo_t *host = rd_forced_names(forced, *a) ? on_host(*a, coll) : NULL;
        int known = !host;

        for (int i = 0; i < n && host; i++)
            known |= found[i] == host;
        if (known || used >= size)
            continue;
        found[n++] = host;
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "+" : "", host->name);
    }
    return n;
}

/* The host's other protocols serve the ranks of one node alone. */
static bool goes_by(unsigned protos)
{
    return !protos || protos >> RD_PROTO_SIMPLE & 1;
}

/* Returns true if nothing but Simple is allowed, for any operation. */
static bool simple_alone(const rd_env_t *env)
{
    bool alone = rd_forced_message_protos(env) == 1u << RD_PROTO_SIMPLE;

    for (int coll = 0; coll < RD_NUM_COLLS; coll++)
        alone &= coll == RD_BARRIER || rd_forced(env, (rd_coll_t)coll).protos == 1u << RD_PROTO_SIMPLE;
    return alone;
}

bool rd_forced_serves_between(const rd_env_t *env, rd_coll_t coll)
{
    const rd_forced_t forced = rd_forced(env, coll);
    char text[sizeof env->between];

    return goes_by(forced.protos) && (!forced.algo || forced.except || names(&forced, coll, text, sizeof text));
}

void rd_forced_between(const rd_env_t *env, rd_env_t *net)
{
    size_t used = 0;

    *net = *env;
    net->where_served = true;
    net->otherwise = NULL;
    net->algo[0] = net->between[0] = '\0';
    snprintf(net->proto, sizeof net->proto, "%s", simple_alone(env) ? rd_proto_name(RD_PROTO_SIMPLE) : "");
    for (int coll = 0; coll < RD_NUM_COLLS; coll++) {
        const rd_forced_t forced = rd_forced(env, (rd_coll_t)coll);
        char text[sizeof env->between];

        if (names(&forced, (rd_coll_t)coll, text, sizeof text) && used < sizeof net->between)
            used += (size_t)snprintf(net->between + used, sizeof net->between - used, "%s%s=%s%s", used ? "," : "",
                                     rd_coll_name((rd_coll_t)coll), forced.except ? "^" : "", text);
    }
}

/* Fills in settings that force nothing. */
static void force_nothing(const rd_env_t *env, rd_env_t *none)
{
    *none = *env;
    none->algo[0] = none->proto[0] = '\0';
    none->where_served = false;
    none->otherwise = NULL;
}

const rd_env_t *rd_forced_otherwise(const rd_env_t *env, rd_env_t *none)
{
    if (env->otherwise)
        return env->otherwise;
    force_nothing(env, none);
    return none;
}
