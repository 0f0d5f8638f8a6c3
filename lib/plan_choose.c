/* See plan_choose.h. Lists algorithm x protocol, excludes what cannot serve with its reason, prices the rest, takes the
 * cheapest.
 */
#include "plan_choose.h"

#include <string.h>

/* The longest single message, were slices as long as slots. */
static size_t message_bytes(const rd_choose_args_t *a, const rd_algo_t *algo)
{
    int whole = a->coll == RD_BROADCAST || a->coll == RD_REDUCE || a->coll == RD_ALLREDUCE;
    int split = a->coll == RD_ALLREDUCE && strcmp(algo->name, "oneshot") != 0 && strcmp(algo->name, "rd") != 0;
    size_t n = (size_t)a->shape->nranks, bytes = a->bytes;

    if (a->coll == RD_BARRIER)
        return 1;
    if (!whole || split)
        bytes = (bytes + n - 1) / n;
    return bytes < a->slot_bytes ? bytes : a->slot_bytes;
}

/* The name forced for this operation, its length in *n, or NULL. "ring" speaks of every operation that moves data;
 * "allreduce=ring,barrier=rd" of those that it names. */
static const char *algo_forced(const rd_env_t *env, rd_coll_t coll, size_t *n)
{
    const char *coll_name = rd_coll_name(coll);

    for (const char *p = env->algo; *p; p += strcspn(p, ","), p += *p == ',') {
        size_t length = strcspn(p, ","), key = strcspn(p, "=,");

        if (key == length) {
            if (coll == RD_BARRIER)
                continue;
            *n = length;
            return p;
        }
        if (strlen(coll_name) == key && memcmp(coll_name, p, key) == 0) {
            *n = length - key - 1;
            return p + key + 1;
        }
    }
    return NULL;
}

static const char *proto_excluded(const rd_choose_args_t *a, rd_proto_t proto, size_t message)
{
    if (proto != RD_PROTO_LL)
        return NULL;
    if (a->shape->nnodes > 1)
        return "ll needs shared memory between all ranks";
    if (a->uneven)
        return "ll needs lengths that every rank knows";
    if (message > a->env->ll_max)
        return "messages are longer than RONDO_LL_MAX";
    if (message > RD_LL_MOST)
        return "messages are longer than a line ring takes";
    return NULL;
}

static double price(const rd_choose_args_t *a, const rd_choice_t *c)
{
    double us = c->proto == RD_PROTO_LL ? 1 : 2;

    if (a->coll == RD_ALLREDUCE)
        us += strcmp(c->algo->name, a->bytes <= 16384 ? "oneshot" : "twoshot") != 0 ? 10 : 0;
    else if (strcmp(c->algo->name, "direct") != 0)
        us += strcmp(c->algo->name, "ring") == 0 ? 10 : 20;
    return us;
}

static void candidate(const rd_choose_args_t *a, const rd_algo_t *algo, rd_proto_t proto, rd_choice_t *c)
{
    rd_sched_args_t sched = {a->shape, a->coll, 0, a->root, 0};
    size_t message = message_bytes(a, algo), n;
    const char *forced = algo_forced(a->env, a->coll, &n);

    memset(c, 0, sizeof *c);
    c->algo = algo;
    c->proto = proto;
    c->slice = proto == RD_PROTO_LL ? (message + 63) / 64 * 64 : a->slot_bytes;
    if (a->env->slice_bytes && a->env->slice_bytes < c->slice)
        c->slice = a->env->slice_bytes;
    if (!(algo->colls & 1u << a->coll))
        c->excluded = "does not do this operation";
    else if (algo->excluded && (c->excluded = algo->excluded(&sched)))
        ;
    else if (!(c->excluded = proto_excluded(a, proto, message)) && forced &&
             (strlen(algo->name) != n || memcmp(algo->name, forced, n) != 0))
        c->excluded = "RONDO_ALGO names another";
    if (!c->excluded && a->env->proto[0] && strcmp(a->env->proto, rd_proto_name(proto)) != 0)
        c->excluded = "RONDO_PROTO names another";
    if (!c->excluded)
        c->us = price(a, c);
}

static rondo_result_t none_left(const rd_choose_args_t *a, const rd_choice_t *nearest, rd_who_t *who)
{
    size_t n = 0;
    const char *forced = algo_forced(a->env, a->coll, &n);

    return rd_error(
        who, RONDO_ERR_UNSUPPORTED, "%s of %zu bytes on %d ranks cannot be served by RONDO_ALGO=%.*s%s%s%s%s",
        rd_coll_name(a->coll), a->bytes, a->shape->nranks, forced ? (int)n : 5, forced ? forced : "(any)",
        a->env->proto[0] ? " RONDO_PROTO=" : "", a->env->proto, nearest ? ": " : "", nearest ? nearest->excluded : "");
}

rondo_result_t rd_choose(const rd_choose_args_t *args, rd_choice_t *best, rd_choice_t *all, int *nall, rd_who_t *who)
{
    int most = all ? *nall : 0, count = 0, found = 0;
    rd_choice_t nearest, cheapest;

    memset(&nearest, 0, sizeof nearest);
    for (const rd_algo_t *const *algo = rd_algos; *algo; algo++) {
        for (int proto = 0; proto < RD_NUM_PROTOS; proto++) {
            rd_choice_t c;

            candidate(args, *algo, (rd_proto_t)proto, &c);
            if (count < most)
                all[count++] = c;
            if (c.excluded)
                nearest = c;
            else if (!found++ || c.us < cheapest.us)
                cheapest = c;
        }
    }
    if (!found)
        return none_left(args, nearest.excluded ? &nearest : NULL, who);
    *best = cheapest;
    if (all)
        *nall = count;
    return RONDO_SUCCESS;
}
