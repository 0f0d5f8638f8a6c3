/* See choose.h. Every algorithm with every protocol is a candidate; one that can serve stands there once for each
 * length of message that is worth a price, one that cannot once, with its reason.
 */
#include "plan/choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/model.h"

#define SLICE_LEAST 4096 /* shorter slots are not worth a price of their own */
#define SLICES 16        /* a slot, a half, a quarter, ..., at most */
#define FRAME ((size_t)64 << 10)        /* what a kernel gives its network at once; */
#define FRAME_DATA ((size_t)60 << 10)   /* headers take a part of it */
#define FRAMES_MOST ((size_t)252 << 10) /* of a slice: two ways at once, longer ones do not stay in the caches */

/* Reasons that say nothing about what is wanted; told apart by address. */
static const char no_such[] = "does not do this operation", another_algo[] = "RONDO_ALGO names another",
                  another_proto[] = "RONDO_PROTO names another";

/* What is asked, and what is forced. */
typedef struct ask {
    const rd_choose_args_t *args;
    rd_cost_env_t cost;
    const char *forced; /* not terminated */
    size_t forced_length;
    const char *proto; /* forced, or "" */
    size_t bytes;      /* that the prices are for */
    size_t ll_most;    /* of an all-to-all's messages */
} ask_t;

typedef struct list {
    rd_choice_t entry[RD_CHOICES_MOST];
    int count;
} list_t;

/* "ring" speaks of every operation that moves data by an algorithm; "allreduce=ring,barrier=rd" of those that it names.
 * Forcing an algorithm must not take the barrier away, which few of them have; nor must a protocol. */
static const char *algo_forced(const rd_env_t *env, rd_coll_t coll, size_t *length)
{
    const char *name = rd_coll_name(coll), *all = NULL;
    size_t all_length = 0;

    for (const char *p = env->algo; *p; p += strcspn(p, ","), p += *p == ',') {
        size_t n = strcspn(p, ","), key = strcspn(p, "=,");

        if (key == n && coll != RD_BARRIER) {
            all = p;
            all_length = n;
        } else if (key < n && strlen(name) == key && memcmp(name, p, key) == 0) {
            *length = n - key - 1;
            return p + key + 1;
        }
    }
    *length = all_length;
    return all;
}

static int is_forced(const ask_t *k, const rd_algo_t *algo)
{
    return k->forced && strlen(algo->name) == k->forced_length && memcmp(algo->name, k->forced, k->forced_length) == 0;
}

static const char *algo_excluded(const ask_t *k, const rd_algo_t *algo, int param)
{
    const rd_choose_args_t *a = k->args;
    rd_sched_args_t sched = {a->shape, a->coll, 0, a->root, param, 0};
    const char *why = NULL;
    rd_work_t work;

    if (!(algo->colls & 1u << a->coll))
        return no_such;
    if (algo->excluded && (why = algo->excluded(&sched)))
        return why;
    if (k->forced && !is_forced(k, algo))
        return another_algo;
    if (!k->forced && rd_cost_work(&k->cost, a->coll, algo->name, param, &work) != 0)
        return "has no formula for its cost: used only where RONDO_ALGO names it";
    return NULL;
}

/* By PULL a peer reads a buffer some time after it was posted, so a schedule serves only where every message is of a
 * buffer that stays as it is until the operation is over, in place too. */
static int algo_keeps(const rd_algo_t *algo, rd_coll_t coll)
{
    static const struct {
        const char *name;
        unsigned colls;
    } keeps[] = {
        {"direct", 1u << RD_BROADCAST | 1u << RD_ALLGATHER | 1u << RD_REDUCE_SCATTER | 1u << RD_REDUCE |
                       1u << RD_ALLTOALL | 1u << RD_GATHER | 1u << RD_SCATTER},
        {"twoshot", 1u << RD_ALLREDUCE},
        {"binomial", 1u << RD_BROADCAST},
    };

    for (size_t i = 0; i < sizeof keeps / sizeof keeps[0]; i++) {
        if (strcmp(algo->name, keeps[i].name) == 0)
            return (keeps[i].colls & 1u << coll) != 0;
    }
    return 0;
}

static size_t line_up(size_t bytes)
{
    return bytes < 64 ? 64 : (bytes + 63) / 64 * 64;
}

size_t rd_choose_ll_most(const rd_env_t *env, const rd_prices_t *prices)
{
    const rd_cost_env_t pair = {2, 1, 2, 2, 0, prices};
    size_t least = 0, most = env->ll_max / 64; /* by slots it costs a fixed amount more, and less for each byte */

    while (least < most) {
        size_t middle = (least + most + 1) / 2, bytes = middle * 64;
        double lines = rd_cost_us(&pair, RD_ALLTOALL, "direct", 0, RD_PROTO_LL, 2 * bytes, bytes);

        if (lines <= rd_cost_us(&pair, RD_ALLTOALL, "direct", 0, RD_PROTO_SIMPLE, 2 * bytes, bytes))
            least = middle;
        else
            most = middle - 1;
    }
    return least == env->ll_max / 64 ? env->ll_max : least * 64;
}

static rd_proto_t message_proto(const rd_env_t *env, int here, int pull, size_t ll_most, size_t bytes)
{
    for (int proto = 0; proto < RD_NUM_PROTOS; proto++)
        if (strcmp(env->proto, rd_proto_name((rd_proto_t)proto)) == 0)
            return (rd_proto_t)proto;
    if (!here)
        return RD_PROTO_SIMPLE;
    if (bytes <= ll_most)
        return RD_PROTO_LL;
    return pull && bytes >= env->pull_min ? RD_PROTO_PULL : RD_PROTO_SIMPLE;
}

static const char *message_excluded(int here, int pull, rd_proto_t proto)
{
    if (proto != RD_PROTO_SIMPLE && !here)
        return "needs both ranks on one node";
    if (proto == RD_PROTO_PULL && !pull)
        return "needs leave to read the peers' memory";
    return NULL;
}

/* As many as fit, but one at least: what is little longer than a frame takes twice its time. */
static size_t whole_frames(size_t bytes)
{
    return bytes < FRAME ? FRAME_DATA : bytes / FRAME * FRAME - (FRAME - FRAME_DATA);
}

/* A few slices a message, so that both ends work at once; not so short that each costs more than it moves. Between
 * nodes that is more: there they are some frames long, and what little is left over comes last. */
static size_t message_slice(const rd_env_t *env, rd_proto_t proto, int here, size_t bytes, size_t slot)
{
    size_t most = env->slice_bytes && env->slice_bytes < slot ? env->slice_bytes : slot;
    size_t least = most < 16384 ? most : 16384, quarter = bytes / 4;

    if (proto == RD_PROTO_LL)
        return RD_LL_MOST;
    if (!here)
        quarter = whole_frames(quarter);
    if (!here && most > FRAMES_MOST)
        most = FRAMES_MOST;
    return line_up(quarter < least ? least : quarter > most ? most : quarter);
}

rondo_result_t rd_choose_message(const rd_env_t *env, int here, int pull, size_t ll_most, size_t bytes,
                                 size_t slot_bytes, rd_proto_t *proto, size_t *slice, rd_who_t *who)
{
    rd_proto_t p = message_proto(env, here, pull, ll_most, bytes);
    const char *why = message_excluded(here, pull, p);

    if (why)
        return rd_error(who, RONDO_ERR_UNSUPPORTED, "RONDO_PROTO=%s cannot carry a message of %zu bytes: %s %s",
                        env->proto, bytes, env->proto, why);
    *proto = p;
    *slice = message_slice(env, p, here, bytes, slot_bytes);
    return RONDO_SUCCESS;
}

/* The messages of an all-to-all go each by its own rule. */
static const char *alltoall_excluded(const ask_t *k, rd_proto_t proto, size_t message)
{
    const rd_choose_args_t *a = k->args;
    int here = a->shape->nnodes == 1;

    if (k->proto[0])
        return strcmp(k->proto, rd_proto_name(proto)) != 0 ? another_proto : message_excluded(here, a->pull, proto);
    if (a->uneven)
        return NULL; /* whatever is chosen here, each lane asks for itself */
    if (proto != message_proto(a->env, here, a->pull, k->ll_most, message))
        return "messages of this length go by another protocol";
    return NULL;
}

static const char *proto_excluded(const ask_t *k, const rd_algo_t *algo, rd_proto_t proto, size_t message)
{
    const rd_choose_args_t *a = k->args;

    if (a->coll == RD_ALLTOALL)
        return alltoall_excluded(k, proto, message);
    if (proto == RD_PROTO_LL) {
        if (a->shape->nnodes > 1)
            return "needs shared memory between all ranks";
        if (a->uneven)
            return "needs lengths that every rank knows";
        if (message > RD_LL_MOST)
            return "a message is longer than a ring of lines takes";
        if (message > a->env->ll_max)
            return "a message is longer than RONDO_LL_MAX";
    }
    if (proto == RD_PROTO_PULL) {
        if (a->shape->nnodes > 1)
            return "needs all ranks on one node";
        if (!a->pull)
            return "needs leave to read the peers' memory, and contributions that need no scaling";
        if (a->shape->nranks > RD_MAX_ENDS &&
            (1u << a->coll & (1u << RD_ALLREDUCE | 1u << RD_REDUCE | 1u << RD_REDUCE_SCATTER)))
            return "sums more ranks than one step takes: the partial sums have no place";
        if (!algo_keeps(algo, a->coll))
            return "passes on values that lie in no buffer of a rank, or overwrites what a peer may still read";
    }
    if (k->proto[0] && strcmp(k->proto, rd_proto_name(proto)) != 0)
        return another_proto;
    return NULL;
}

static rd_choice_t *add(list_t *list, const rd_choice_t *c)
{
    if (list->count == RD_CHOICES_MOST)
        return NULL;
    list->entry[list->count] = *c;
    return &list->entry[list->count++];
}

/* The chunks of an algorithm without a formula are taken to be as long as the whole. */
static size_t chunk_of(const ask_t *k, const rd_algo_t *algo, int param)
{
    rd_work_t work = {.chunks = 1};
    size_t chunk;

    (void)rd_cost_work(&k->cost, k->args->coll, algo->name, param, &work);
    chunk = rd_cost_chunk(k->args->coll, k->bytes, work.chunks);
    return chunk > k->args->longest ? chunk : k->args->longest;
}

/* What goes one way, and between nodes alone, may take the long slots, if it fills two of them, but where cores are
 * crowded: there nobody takes from the network what a sender gives it, and the caches lose it. */
static size_t longest_slice(const rd_choose_args_t *a, size_t chunk)
{
    const unsigned one_way = 1u << RD_BROADCAST | 1u << RD_REDUCE | 1u << RD_GATHER | 1u << RD_SCATTER;
    int takes = a->local == 1 && a->shape->nnodes > 1 && a->sharing <= a->cores && 1u << a->coll & one_way;

    return takes && a->long_bytes > a->slot_bytes && chunk >= 2 * a->long_bytes ? a->long_bytes : a->slot_bytes;
}

/* Slots, halves, quarters...: shorter messages fill a pipeline sooner, longer ones cost less each. All at least as long
 * as the chunk are the same: the longest stands for them. */
static void add_priced(const ask_t *k, list_t *list, rd_choice_t c, size_t chunk)
{
    const rd_choose_args_t *a = k->args;
    size_t least = a->slot_bytes / 16 < SLICE_LEAST ? SLICE_LEAST : a->slot_bytes / 16;
    size_t slot = longest_slice(a, chunk) / 64 * 64, slice = slot;

    if (a->env->slice_bytes && a->env->slice_bytes < slice)
        slice = a->env->slice_bytes;
    if (c.proto != RD_PROTO_SIMPLE)
        slice = line_up(chunk);
    if (a->coll == RD_ALLTOALL && c.proto != RD_PROTO_PULL)
        slice = message_slice(a->env, c.proto, a->shape->nnodes == 1, chunk, a->slot_bytes);
    for (int i = 0; i < SLICES; i++, slice = slice / 2 / 64 * 64) {
        c.slice = slice;
        c.us = rd_cost_us(&k->cost, a->coll, c.algo->name, c.param, c.proto, k->bytes, slice);
        if (c.us < 0)
            c.us = 0; /* forced, without a formula */
        add(list, &c);
        if (c.proto != RD_PROTO_SIMPLE || a->coll == RD_ALLTOALL || a->env->slice_bytes || a->uneven ||
            slice / 2 < least || slice / 2 < chunk / 64)
            return;
        if (slice / 2 >= chunk)
            return;
    }
}

static void add_candidates(const ask_t *k, list_t *list, const rd_algo_t *algo, int param)
{
    const char *why = algo_excluded(k, algo, param);
    size_t chunk = chunk_of(k, algo, param);

    for (int proto = 0; proto < RD_NUM_PROTOS; proto++) {
        rd_choice_t c = {.algo = algo, .param = param, .proto = (rd_proto_t)proto, .slice = k->args->slot_bytes};

        c.excluded = why ? why : proto_excluded(k, algo, c.proto, chunk);
        if (c.excluded)
            add(list, &c);
        else
            add_priced(k, list, c, chunk);
    }
}

/* The best first; equal ones in the order of the table of algorithms, so that the order is the same everywhere. */
static int cheaper(const void *x, const void *y)
{
    const rd_choice_t *a = x, *b = y;

    if (!a->excluded != !b->excluded)
        return a->excluded ? 1 : -1;
    if (!a->excluded && a->us != b->us)
        return a->us < b->us ? -1 : 1;
    return 0;
}

/* Insertion: stable, and the list is short. */
static void sort(list_t *list)
{
    for (int i = 1; i < list->count; i++) {
        rd_choice_t c = list->entry[i];
        int j = i;

        for (; j > 0 && cheaper(&c, &list->entry[j - 1]) < 0; j--)
            list->entry[j] = list->entry[j - 1];
        list->entry[j] = c;
    }
}

static int entry_known(const char *name, size_t length, const char *(*name_of)(int i), char *names, size_t bytes)
{
    size_t used = 0;

    names[0] = '\0';
    for (int i = 0; name_of(i); i++) {
        if (strlen(name_of(i)) == length && memcmp(name_of(i), name, length) == 0)
            return 1;
        if (used < bytes)
            used += (size_t)snprintf(names + used, bytes - used, "%s%s", used ? ", " : "", name_of(i));
    }
    return 0;
}

static const char *algo_name(int i)
{
    return rd_algos[i] ? rd_algos[i]->name : NULL;
}

static const char *coll_name(int i)
{
    return i < RD_NUM_COLLS ? rd_coll_name((rd_coll_t)i) : NULL;
}

rondo_result_t rd_choose_check(const rd_env_t *env, rd_who_t *who)
{
    char names[160];

    for (const char *p = env->algo; *p; p += strcspn(p, ","), p += *p == ',') {
        size_t n = strcspn(p, ","), key = strcspn(p, "=,"), skip = key < n ? key + 1 : 0;

        if (skip && !entry_known(p, key, coll_name, names, sizeof names))
            return rd_error(who, RONDO_ERR_INVALID_ARGUMENT,
                            "RONDO_ALGO=%s: there is no operation \"%.*s\" to choose for; there are %s", env->algo,
                            (int)key, p, names);
        if (!entry_known(p + skip, n - skip, algo_name, names, sizeof names))
            return rd_error(who, RONDO_ERR_INVALID_ARGUMENT,
                            "RONDO_ALGO=%s: there is no algorithm \"%.*s\"; there are %s", env->algo, (int)(n - skip),
                            p + skip, names);
    }
    if (strcmp(env->proto, "ll128") == 0 || strcmp(env->proto, "sentinel") == 0)
        return rd_error(who, RONDO_ERR_INVALID_ARGUMENT,
                        "RONDO_PROTO=%s is a protocol between GPUs: on host memory there are ll, simple and cma",
                        env->proto);
    return RONDO_SUCCESS;
}

/* Nothing can serve: says why, by what is forced. */
static rondo_result_t refuse(const ask_t *k, const list_t *list, rd_who_t *who)
{
    const rd_choose_args_t *a = k->args;
    const char *why = "no algorithm does it", *algo = "";
    char forced[320] = "";
    int n = 0;

    for (int i = 0; i < list->count; i++) {
        const rd_choice_t *c = &list->entry[i];

        if (c->excluded == another_algo || c->excluded == another_proto ||
            (k->forced ? !is_forced(k, c->algo) : c->excluded == no_such))
            continue;
        why = c->excluded;
        algo = c->algo->name;
        if (k->proto[0] && strcmp(k->proto, rd_proto_name(c->proto)) == 0)
            break; /* the reason of the protocol that is wanted */
    }
    if (k->forced)
        n = snprintf(forced, sizeof forced, "RONDO_ALGO=%s", a->env->algo);
    if (k->proto[0])
        snprintf(forced + n, sizeof forced - (size_t)n, "%sRONDO_PROTO=%s", n ? " with " : "", k->proto);
    return rd_error(who, RONDO_ERR_UNSUPPORTED, "%s cannot serve %s of %zu bytes on %d ranks: %s%s%s",
                    *forced ? forced : "rondo", rd_coll_name(a->coll), a->bytes, a->shape->nranks, algo,
                    *algo ? " " : "", why);
}

static void ask_begin(ask_t *k, const rd_choose_args_t *args)
{
    k->args = args;
    k->cost = (rd_cost_env_t){args->shape->nranks, args->shape->nnodes, args->local, args->cores > 0 ? args->cores : 1,
                              args->sharing,       args->prices};
    k->forced = args->unforced ? NULL : algo_forced(args->env, args->coll, &k->forced_length);
    k->proto = args->unforced || args->coll == RD_BARRIER ? "" : args->env->proto;
    k->ll_most = args->coll == RD_ALLTOALL ? rd_choose_ll_most(args->env, args->prices) : 0;
    k->bytes = args->uneven ? args->slot_bytes * (size_t)args->shape->nranks : args->bytes;
}

rondo_result_t rd_choose(const rd_choose_args_t *args, rd_choice_t *best, rd_choice_t *all, int *nall, rd_who_t *who)
{
    list_t list = {.count = 0};
    rondo_result_t result;
    ask_t k;

    ask_begin(&k, args);
    result = rd_choose_check(args->env, who);
    if (result != RONDO_SUCCESS)
        return result;
    for (const rd_algo_t *const *algo = rd_algos; *algo; algo++)
        for (int param = 0; param <= (*algo)->params; param++)
            if (param == 0 || !algo_excluded(&k, *algo, param))
                add_candidates(&k, &list, *algo, param);
    sort(&list);
    if (all) {
        *nall = list.count < *nall ? list.count : *nall;
        memcpy(all, list.entry, (size_t)*nall * sizeof *all);
    }
    if (list.count == 0 || list.entry[0].excluded)
        return refuse(&k, &list, who);
    *best = list.entry[0];
    return RONDO_SUCCESS;
}
