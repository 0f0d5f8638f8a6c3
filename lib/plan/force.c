/* See force.h. The texts of a process are interned, so that a number, which is short enough for the key of a plan, says
 * the same as long as the process lives. */
#include "plan/force.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/intern.h"
#include "plan/candidates.h"

typedef struct forcing {
    bool has_algo, has_proto; /* false: what the variable says stays */
    bool prefers;
    int blocks, cta_policy; /* -1: the communicator's */
    char algo[sizeof((rd_env_t *)NULL)->algo];
    char proto[sizeof((rd_env_t *)NULL)->proto];
} forcing_t;

static bool same(const void *one, const void *other)
{
    const forcing_t *a = one, *b = other;

    return a->has_algo == b->has_algo && a->has_proto == b->has_proto && a->prefers == b->prefers &&
           a->blocks == b->blocks && a->cta_policy == b->cta_policy && strcmp(a->algo, b->algo) == 0 &&
           strcmp(a->proto, b->proto) == 0;
}

static _Atomic(void *) table[RD_FORCE_MOST];
static const rd_intern_t forcings = {.same = same, .bytes = sizeof(forcing_t), .most = RD_FORCE_MOST, .table = table};

static const forcing_t *forcing(unsigned number)
{
    return rd_interned(&forcings, (int)number - 1);
}

static int number_of(const forcing_t *wanted)
{
    int found = rd_intern(&forcings, wanted);

    return found < 0 ? -1 : found + 1;
}

int rd_force_number(const char *algo, const char *proto, bool prefers)
{
    forcing_t wanted = {
        .has_algo = algo != NULL, .has_proto = proto != NULL, .prefers = prefers, .blocks = -1, .cta_policy = -1};

    if (!algo && !proto)
        return 0;
    snprintf(wanted.algo, sizeof wanted.algo, "%s", algo ? algo : "");
    snprintf(wanted.proto, sizeof wanted.proto, "%s", proto ? proto : "");
    return number_of(&wanted);
}

int rd_force_with(unsigned number, int blocks, int cta_policy)
{
    forcing_t wanted = {.prefers = false};

    if (number)
        wanted = *forcing(number);
    wanted.blocks = blocks;
    wanted.cta_policy = cta_policy;
    return wanted.has_algo || wanted.has_proto || blocks >= 0 || cta_policy >= 0 ? number_of(&wanted) : 0;
}

bool rd_force_prefers(unsigned number)
{
    return number && forcing(number)->prefers;
}

int rd_force_blocks(unsigned number)
{
    return number ? forcing(number)->blocks : -1;
}

int rd_force_cta_policy(unsigned number)
{
    return number ? forcing(number)->cta_policy : -1;
}

/* What is preferred is what is forced where it serves, as on a net communicator; where it does not, the variables
 * apply.
 */
static void prefer(rd_env_t *own, const rd_env_t *variables)
{
    own->where_served = true;
    own->otherwise = variables;
    memcpy(own->between, own->algo, sizeof own->algo);
}

const rd_env_t *rd_force_env(const rd_env_t *env, unsigned number, rd_env_t *copy)
{
    if (!number)
        return env;
    const forcing_t *f = forcing(number);
    rd_env_t own = *env;

    if (f->has_algo)
        memcpy(own.algo, f->algo, sizeof own.algo);
    if (f->has_proto)
        memcpy(own.proto, f->proto, sizeof own.proto);
    if (f->prefers && !env->where_served)
        prefer(&own, env);
    if (f->cta_policy >= 0)
        rd_cta_policy_set(&own, f->cta_policy);
    *copy = own;
    if (!env->where_served)
        return copy;
    own.where_served = false;
    rd_forced_between(&own, copy);
    if (!f->has_algo)
        memcpy(copy->between, env->between, sizeof copy->between);
    if (!f->has_proto)
        memcpy(copy->proto, env->proto, sizeof copy->proto);
    copy->otherwise = f->prefers ? env : env->otherwise;
    return copy;
}

uint64_t rd_force_word(unsigned number)
{
    if (!number)
        return 0;
    const forcing_t *f = forcing(number);
    const int how[] = {f->prefers, f->has_algo, f->has_proto, f->blocks, f->cta_policy};

    return (rd_hash(rd_hash(rd_hash(RD_HASH_EMPTY, f->algo, sizeof f->algo), f->proto, sizeof f->proto), how,
                    sizeof how) &
            ~RD_TUNER_CHOICE) |
           1;
}
