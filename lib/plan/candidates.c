/* See candidates.h. An algorithm and protocol that can serve is in the list once for each length of message that is
 * worth a price; one that cannot serve is there once, with the reason.
 */
#include "plan/candidates.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/word_list.h"

/* Reasons that do not concern a forced choice. They are distinguished by their addresses. */
static const char no_such[] = "does not do this operation", another_algo[] = "RONDO_ALGO names another",
                  excepted[] = "RONDO_ALGO excludes it", another_proto[] = "RONDO_PROTO names another";

static unsigned colls_of(const rd_executor_t *x, const rd_algo_t *algo)
{
    return x->gpus ? algo->device.colls : algo->colls;
}

/* ---- what is forced ---- */

static const char *text_of(const rd_env_t *env)
{
    return env->where_served ? env->between : env->algo;
}

/* Returns as bits what RONDO_PROTO allows for an operation; 0: it says nothing of it. */
static unsigned protos_of(const rd_env_t *env, const char *operation)
{
    rd_word_list_t list;
    unsigned found = 0;
    const char *word;
    size_t length;

    if (!rd_word_list_find(env->proto, operation, &list))
        return 0;
    for (size_t at = 0; rd_word_next(&list, &at, &word, &length);) {
        const int proto = rd_proto_find(word, length);
        if (proto >= 0)
            found |= 1u << proto;
    }
    return list.except ? ((1u << RD_NUM_PROTOS) - 1) & ~found : found;
}

unsigned rd_forced_message_protos(const rd_env_t *env)
{
    return protos_of(env, "message");
}

/* "ring" applies to every operation but the barrier; "allreduce=ring,barrier=rd" applies to the operations that it
 * names. A forced algorithm or protocol must not make the barrier impossible, which few algorithms have. */
rd_forced_t rd_forced(const rd_env_t *env, rd_coll_t coll)
{
    rd_forced_t forced = {.protos = coll == RD_BARRIER ? 0 : protos_of(env, rd_coll_name(coll))};
    rd_word_list_t list;

    if (rd_word_list_find(text_of(env), rd_coll_name(coll), &list) && (list.operation || coll != RD_BARRIER)) {
        forced.algo = list.words;
        forced.length = list.length;
        forced.except = list.except;
    }
    return forced;
}

bool rd_forced_names(const rd_forced_t *forced, const rd_algo_t *algo)
{
    const rd_word_list_t list = {.words = forced->algo, .length = forced->algo ? forced->length : 0};
    const char *word;
    size_t length;

    for (size_t at = 0; rd_word_next(&list, &at, &word, &length);)
        if (rd_word_is(algo->name, word, length))
            return true;
    return false;
}

/* Returns true if algorithms are asked for by name, and not only excluded. */
static bool asks(const rd_forced_t *forced)
{
    return forced->algo && !forced->except;
}

/* Between GPUs messages have rules of their own for the use of slices, and copies have no protocol. */
static bool proto_allowed(const rd_executor_t *x, const rd_forced_t *forced, const rd_algo_t *algo, rd_proto_t proto)
{
    return !forced->protos || (x->gpus && algo->device.kernel >= RD_KERNEL_MESSAGES) || forced->protos >> proto & 1;
}

/* ---- the loop ---- */

void rd_candidates_add(rd_choices_t *to, const rd_choice_t *choice)
{
    if (to->count < RD_CHOICES_MOST)
        to->entry[to->count++] = *choice;
}

static const char *algo_excluded(const rd_executor_t *x, const rd_algo_t *algo, const rd_sched_args_t *args, int local,
                                 const rd_forced_t *forced)
{
    const rd_count_t count = rd_count(args->coll, args->shape->nranks, args->shape->nnodes, local, args->param);
    const char *why = NULL;
    rd_work_t work;

    if (!(colls_of(x, algo) & 1u << args->coll))
        return no_such;
    if (algo->excluded && (why = algo->excluded(args)))
        return why;
    if (!rd_forced_allows(forced, algo))
        return forced->except ? excepted : another_algo;
    if (!asks(forced) && rd_algo_work(algo, &count, &work) != 0)
        return "has no formula for its cost: used only where RONDO_ALGO names it";
    return NULL;
}

static void add_protos(const rd_executor_t *x, const void *limits, const rd_forced_t *forced, const rd_algo_t *algo,
                       int param, const char *why, rd_choices_t *choices)
{
    for (int proto = 0; proto < RD_NUM_PROTOS; proto++) {
        rd_choice_t c = {.algo = algo, .param = param, .proto = (rd_proto_t)proto};

        if (!(x->protos & 1u << proto))
            continue;
        c.excluded = why ? why : x->excluded(limits, &c);
        if (!c.excluded && !proto_allowed(x, forced, algo, c.proto))
            c.excluded = another_proto;
        if (c.excluded)
            rd_candidates_add(choices, &c);
        else
            x->price(limits, c, choices);
    }
}

/* The best comes first; equal ones keep the order of the table of algorithms, so that all ranks have the same order. */
static bool cheaper(const rd_choice_t *a, const rd_choice_t *b)
{
    if (!a->excluded != !b->excluded)
        return !a->excluded;
    return !a->excluded && a->us < b->us;
}

/* Insertion: stable, and the list is short. */
static void sort(rd_choices_t *choices)
{
    for (int i = 1; i < choices->count; i++) {
        rd_choice_t c = choices->entry[i];
        int j = i;

        for (; j > 0 && cheaper(&c, &choices->entry[j - 1]); j--)
            choices->entry[j] = choices->entry[j - 1];
        choices->entry[j] = c;
    }
}

void rd_candidates(const rd_executor_t *x, const void *limits, const rd_sched_args_t *like, int local,
                   const rd_forced_t *forced, rd_choices_t *choices)
{
    rd_sched_args_t args = *like;

    choices->count = 0;
    for (const rd_algo_t *const *algo = rd_algos; *algo; algo++) {
        int first = x->gpus ? (*algo)->device.param : 0, last = x->gpus ? first : (*algo)->params;

        for (args.param = first; colls_of(x, *algo) && args.param <= last; args.param++) {
            const char *why = algo_excluded(x, *algo, &args, local, forced);

            if (!why || args.param == first)
                add_protos(x, limits, forced, *algo, args.param, why, choices);
        }
    }
    sort(choices);
}

const rd_choice_t *rd_candidates_best(const rd_choices_t *choices, const rd_forced_t *forced)
{
    for (int i = 0; i < choices->count && !choices->entry[i].excluded; i++)
        if (!choices->entry[i].wanted_name || asks(forced))
            return &choices->entry[i];
    return NULL;
}

const rd_choice_t *rd_candidates_reason(const rd_choices_t *choices, const rd_forced_t *forced)
{
    const rd_choice_t *reason = NULL;

    for (int i = 0; i < choices->count; i++) {
        const rd_choice_t *c = &choices->entry[i];

        if (!c->excluded || c->excluded == another_algo || c->excluded == another_proto || c->excluded == excepted ||
            (asks(forced) ? !rd_forced_names(forced, c->algo) : c->excluded == no_such))
            continue;
        reason = c;
        if (forced->protos >> c->proto & 1)
            break; /* this is the reason of a forced protocol */
    }
    return reason;
}

/* ---- names ---- */

#define NAMES 512

typedef struct names {
    char text[NAMES];
    size_t used;
} names_t;

static void name_add(names_t *names, const char *name)
{
    if (names->used < NAMES)
        names->used +=
            (size_t)snprintf(names->text + names->used, NAMES - names->used, "%s%s", names->used ? ", " : "", name);
}

static rondo_result_t operation_check(const char *variable, const char *value, const char *name, size_t length,
                                      rd_log_ctx_t *ctx)
{
    names_t names = {"", 0};

    for (int coll = 0; coll < RD_NUM_COLLS; coll++) {
        const char *known = rd_coll_name((rd_coll_t)coll);
        if (rd_word_is(known, name, length))
            return RONDO_SUCCESS;
        name_add(&names, known);
    }
    return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT,
                    "%s=%s: there is no operation \"%.*s\" to choose for; there are %s", variable, value, (int)length,
                    name, names.text);
}

static rondo_result_t algo_check(const rd_env_t *env, const rd_executor_t *x, const char *name, size_t length,
                                 rd_log_ctx_t *ctx)
{
    const rd_algo_t *named = rd_algo_named(name, length);
    const char *where = x->gpus ? "on CUDA" : "on host memory";
    names_t names = {"", 0};

    if (named && (colls_of(x, named) || env->where_served))
        return RONDO_SUCCESS;
    for (const rd_algo_t *const *algo = rd_algos; *algo; algo++)
        if (colls_of(x, *algo))
            name_add(&names, (*algo)->name);
    if (named)
        return rd_error(ctx, RONDO_ERR_UNSUPPORTED, "RONDO_ALGO=%s: %s \"%.*s\" does not run; there are %s",
                        text_of(env), where, (int)length, name, names.text);
    return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT, "RONDO_ALGO=%s: %s there is no algorithm \"%.*s\"; there are %s",
                    text_of(env), where, (int)length, name, names.text);
}

/* Each list must leave a protocol that there is here. That its words are protocols was seen when it was read. */
static rondo_result_t proto_check(const rd_env_t *env, const rd_executor_t *x, rd_log_ctx_t *ctx)
{
    rondo_result_t result = RONDO_SUCCESS;
    names_t names = {"", 0};
    rd_word_list_t list;

    for (size_t at = 0; result == RONDO_SUCCESS && rd_word_list_next(env->proto, &at, &list);)
        if (list.operation)
            result = operation_check("RONDO_PROTO", env->proto, list.operation, list.operation_length, ctx);
    if (result != RONDO_SUCCESS)
        return result;
    bool known = !env->proto[0] || !rd_forced_message_protos(env) || rd_forced_message_protos(env) & x->protos;
    for (int coll = 0; coll < RD_NUM_COLLS; coll++) {
        unsigned protos = protos_of(env, rd_coll_name((rd_coll_t)coll));
        known = known && (!protos || protos & x->protos);
    }
    if (known || env->where_served)
        return RONDO_SUCCESS;
    for (int proto = 0; proto < RD_NUM_PROTOS; proto++)
        if (x->protos >> proto & 1)
            name_add(&names, rd_proto_name((rd_proto_t)proto));
    return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT, "RONDO_PROTO=%s: %s there are %s", env->proto,
                    x->gpus ? "on CUDA" : "on host memory", names.text);
}

static rondo_result_t list_check(const rd_env_t *env, const rd_executor_t *x, const rd_word_list_t *list,
                                 rd_log_ctx_t *ctx)
{
    rondo_result_t result = RONDO_SUCCESS;
    size_t length, at = 0;
    const char *word;
    int words = 0;

    if (list->operation)
        result = operation_check("RONDO_ALGO", text_of(env), list->operation, list->operation_length, ctx);
    for (; result == RONDO_SUCCESS && rd_word_next(list, &at, &word, &length); words++)
        result = algo_check(env, x, word, length, ctx);
    return result == RONDO_SUCCESS && words == 0 ? algo_check(env, x, "", 0, ctx) : result;
}

rondo_result_t rd_names_check(const rd_env_t *env, const rd_executor_t *x, rd_log_ctx_t *ctx)
{
    rondo_result_t result = RONDO_SUCCESS;
    rd_word_list_t list;

    for (size_t at = 0; result == RONDO_SUCCESS && rd_word_list_next(text_of(env), &at, &list);)
        result = list_check(env, x, &list, ctx);
    if (result == RONDO_SUCCESS && !rd_word_lists_ordered(text_of(env)))
        result =
            rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT,
                     "RONDO_ALGO=%s: only the first list may be for all operations: ring;allreduce:tree", text_of(env));
    return result == RONDO_SUCCESS ? proto_check(env, x, ctx) : result;
}
