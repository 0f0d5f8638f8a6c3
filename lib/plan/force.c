/* See force.h. The texts of a process are kept in a table that only grows, so that a number, which is short enough for
 * the key of a plan, says the same as long as the process lives. */
#include "plan/force.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "plan/candidates.h"

typedef struct forcing {
    bool has_algo, has_proto; /* false: what the variable says stays */
    bool prefers;
    char algo[sizeof((rd_env_t *)NULL)->algo];
    char proto[sizeof((rd_env_t *)NULL)->proto];
} forcing_t;

static forcing_t *table[RD_FORCE_MOST]; /* number n is entry n - 1; one that is counted stays as it is */
static _Atomic int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool same(const forcing_t *a, const forcing_t *b)
{
    return a->has_algo == b->has_algo && a->has_proto == b->has_proto && a->prefers == b->prefers &&
           strcmp(a->algo, b->algo) == 0 && strcmp(a->proto, b->proto) == 0;
}

static int find(const forcing_t *wanted, int known)
{
    for (int i = 0; i < known; i++)
        if (same(table[i], wanted))
            return i + 1;
    return 0;
}

static int add(const forcing_t *wanted)
{
    int known = atomic_load_explicit(&count, memory_order_relaxed), number = find(wanted, known);

    if (number)
        return number;
    if (known == RD_FORCE_MOST || !(table[known] = malloc(sizeof *wanted)))
        return -1;
    *table[known] = *wanted;
    atomic_store_explicit(&count, known + 1, memory_order_release);
    return known + 1;
}

int rd_force_number(const char *algo, const char *proto, bool prefers)
{
    forcing_t wanted = {.has_algo = algo != NULL, .has_proto = proto != NULL, .prefers = prefers};
    int number;

    if (!algo && !proto)
        return 0;
    snprintf(wanted.algo, sizeof wanted.algo, "%s", algo ? algo : "");
    snprintf(wanted.proto, sizeof wanted.proto, "%s", proto ? proto : "");
    number = find(&wanted, atomic_load_explicit(&count, memory_order_acquire));
    if (number)
        return number;
    pthread_mutex_lock(&lock);
    number = add(&wanted);
    pthread_mutex_unlock(&lock);
    return number;
}

bool rd_force_prefers(unsigned number)
{
    return number && table[number - 1]->prefers;
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
    const forcing_t *f = table[number - 1];
    rd_env_t own = *env;

    if (f->has_algo)
        memcpy(own.algo, f->algo, sizeof own.algo);
    if (f->has_proto)
        memcpy(own.proto, f->proto, sizeof own.proto);
    if (f->prefers && !env->where_served)
        prefer(&own, env);
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
    const forcing_t *f = table[number - 1];
    const uint8_t how[] = {f->prefers, f->has_algo, f->has_proto};

    return (rd_hash(rd_hash(rd_hash(RD_HASH_EMPTY, f->algo, sizeof f->algo), f->proto, sizeof f->proto), how,
                    sizeof how) &
            ~RD_TUNER_CHOICE) |
           1;
}
