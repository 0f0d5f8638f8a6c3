/* The limits and prices of host memory: see choose.h, and candidates.h for the choice itself. */
#include "plan/choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/board_plan.h"
#include "sched/algo/algos.h"
#include "transport/shm/board.h"

#define SLICE_LEAST 4096              /* shorter slots are not worth a price of their own */
#define SLICES 16                     /* most lengths that are tried: a slot, a half, a quarter, ... */
#define FRAME ((size_t)64 << 10)      /* bytes that an operating system hands its network at once */
#define FRAME_DATA ((size_t)60 << 10) /* of these, what headers leave for data */
/* Bytes of a slice between nodes: longer ones, sent and received at once, do not stay in the caches. */
#define FRAMES_MOST ((size_t)252 << 10)

/* What a byte of a message alone costs by lines, where one in a step of a collective costs 1: a step's value lies in
 * scratch in between. On two cores of a Xeon 2 KB took 0.68 us by lines and 1.17 by slots (doc/notebook/host.md). */
#define ALONE 0.2

#define TO_ONE_MOST ((size_t)64 << 20)  /* bytes of the longest message to one rank for which CMA and slots compete */
#define TO_ONE_SLICE ((size_t)64 << 10) /* bytes of a slice there, by slots */
#define PUT_MOST ((size_t)1 << 30)      /* bytes that a sender writes at most: the kernel copies more in parts */
#define CHAIN_MOST ((size_t)64 << 10)   /* bytes of a reduce that a ring of many ranks is too slow for, by itself */

/* The operation, and the limits of its candidates. */
typedef struct limits {
    const rd_choose_args_t *args;
    rd_cost_env_t cost;
    rd_forced_t forced;
    size_t bytes;   /* bytes that the prices are for */
    size_t ll_most; /* most bytes of an all-to-all's message by lines */
} limits_t;

static size_t line_up(size_t bytes)
{
    return bytes < 64 ? 64 : (bytes + 63) / 64 * 64;
}

size_t rd_choose_ll_most(const rd_env_t *env, const rd_prices_t *prices)
{
    const rd_cost_env_t pair = {.nranks = 2, .nnodes = 1, .local = 2, .cores = 2, .prices = prices};
    /* A message by slots costs a fixed amount more, and less for each byte. */
    size_t least = 0, most = env->ll_max / 64;

    while (least < most) {
        size_t middle = (least + most + 1) / 2, bytes = middle * 64;
        double lines = rd_cost_algo_us(&pair, RD_ALLTOALL, &rd_algo_direct, 0, RD_PROTO_LL, 2 * bytes, bytes);

        if (lines <= rd_cost_algo_us(&pair, RD_ALLTOALL, &rd_algo_direct, 0, RD_PROTO_SIMPLE, 2 * bytes, bytes))
            least = middle;
        else
            most = middle - 1;
    }
    return least == env->ll_max / 64 ? env->ll_max : least * 64;
}

size_t rd_choose_ll_most_alone(const rd_env_t *env, const rd_prices_t *prices)
{
    rd_prices_t alone = prices ? *prices : *rd_prices_builtin(0);
    rd_price_t *lines = &alone.of[RD_PRICE_SHM][RD_PROTO_LL];

    lines->start *= ALONE;
    lines->beta *= ALONE;
    lines->cross *= ALONE;
    return rd_choose_ll_most(env, &alone);
}

size_t rd_choose_to_one_least(const rd_env_t *env, const rd_cost_env_t *node)
{
    const size_t n = (size_t)node->nranks;
    size_t least = SIZE_MAX;

    if (node->nranks < 3 || node->sharing > node->cores)
        return 0;
    for (size_t bytes = TO_ONE_MOST; bytes && bytes >= env->cma_min; bytes /= 2) {
        double read = rd_cost_algo_us(node, RD_GATHER, &rd_algo_direct, 0, RD_PROTO_CMA, n * bytes, bytes);

        if (read > rd_cost_algo_us(node, RD_GATHER, &rd_algo_direct, 0, RD_PROTO_SIMPLE, n * bytes, TO_ONE_SLICE))
            break;
        least = bytes;
    }
    return least;
}

size_t rd_choose_put_most(const rd_env_t *env, const rd_cost_env_t *node)
{
    return rd_cost_puts(node, RD_GATHER) || (env->proto[0] && node->nranks > 2) ? PUT_MOST : 0;
}

static const char *message_excluded(bool here, bool cma, rd_proto_t proto)
{
    if (rd_proto_is_board(proto))
        return "needs a value that goes to several ranks, which a message of a pair is not";
    if (proto != RD_PROTO_SIMPLE && !here)
        return "needs both ranks on one node";
    if (proto == RD_PROTO_CMA && !cma)
        return "needs leave to read the peers' memory";
    return NULL;
}

static rd_proto_t message_usual(const rd_message_args_t *m)
{
    if (!m->here)
        return RD_PROTO_SIMPLE;
    if (m->bytes <= m->ll_most)
        return RD_PROTO_LL;
    return m->cma && m->bytes >= m->env->cma_min ? RD_PROTO_CMA : RD_PROTO_SIMPLE;
}

/* The usual protocol, if it is among the forced ones (0: none is forced). If not, the first of these that can carry the
 * message; if none can, one that is then refused. */
static rd_proto_t message_proto(unsigned forced, const rd_message_args_t *m)
{
    static const rd_proto_t order[] = {RD_PROTO_SIMPLE, RD_PROTO_CMA, RD_PROTO_LL};
    rd_proto_t usual = message_usual(m);
    int first = 0;

    if (!forced || forced >> usual & 1)
        return usual;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (forced >> order[i] & 1 && !message_excluded(m->here, m->cma, order[i]))
            return order[i];
    while (!(forced >> first & 1))
        first++;
    return (rd_proto_t)first;
}

/* Returns the data bytes of as many frames as fit, but of at least one: a slice a little longer than a frame takes
 * twice its time. */
static size_t whole_frames(size_t bytes)
{
    return bytes < FRAME ? FRAME_DATA : bytes / FRAME * FRAME - (FRAME - FRAME_DATA);
}

/* A message has a few slices, so that both ends work at once; they are not so short that the fixed cost of a slice is
 * more than that of its bytes. Between nodes the fixed cost is higher: slices are some frames long there, and the short
 * rest comes last. */
static size_t message_slice(const rd_env_t *env, rd_proto_t proto, bool here, size_t bytes, size_t slot)
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

rondo_result_t rd_choose_message(const rd_message_args_t *m, rd_proto_t *proto, size_t *slice, rd_log_ctx_t *ctx)
{
    rd_proto_t p = message_proto(rd_forced_message_protos(m->env), m);
    const char *why = message_excluded(m->here, m->cma, p);

    if (why && m->env->where_served) {
        rd_message_args_t free = *m;
        rd_env_t none;

        free.env = rd_forced_otherwise(m->env, &none);
        return rd_choose_message(&free, proto, slice, ctx);
    }
    if (why)
        return rd_error(ctx, RONDO_ERR_UNSUPPORTED, "RONDO_PROTO=%s cannot carry a message of %zu bytes: %s %s",
                        m->env->proto, m->bytes, rd_proto_name(p), why);
    *proto = p;
    *slice = message_slice(m->env, p, m->here, m->bytes, m->slot_bytes);
    return RONDO_SUCCESS;
}

/* Each message of an all-to-all has a protocol of its own. */
static const char *alltoall_excluded(const limits_t *k, rd_proto_t proto, size_t message)
{
    const rd_choose_args_t *a = k->args;
    const unsigned forced = k->forced.protos;
    const rd_message_args_t m = {
        .env = a->env, .here = a->shape->nnodes == 1, .cma = a->cma, .ll_most = k->ll_most, .bytes = message};

    if ((forced && !(forced & (forced - 1))) ||
        rd_proto_is_board(proto)) /* one protocol is taken or refused as it is */
        return message_excluded(m.here, m.cma, proto);
    if (a->uneven)
        return NULL; /* whatever is chosen here, each lane chooses for itself */
    if (proto != message_proto(forced, &m))
        return "messages of this length go by another protocol";
    return NULL;
}

static const char *ll_excluded(const rd_choose_args_t *a, size_t message)
{
    if (a->shape->nnodes > 1)
        return "needs shared memory between all ranks";
    if (a->uneven)
        return "needs lengths that every rank knows";
    if (message > RD_LL_MOST)
        return "a message is longer than a ring of lines takes";
    return message > a->env->ll_max ? "a message is longer than RONDO_LL_MAX" : NULL;
}

static const char *cma_excluded(const rd_choose_args_t *a, const rd_algo_t *algo)
{
    if (a->shape->nnodes > 1)
        return "needs all ranks on one node";
    if (!a->cma)
        return "needs leave to read the peers' memory, and contributions that need no scaling";
    if (a->shape->nranks > RD_MAX_ENDS && rd_coll_reduces(a->coll))
        return "sums more ranks than one step takes: the partial sums have no place";
    if (!(algo->stays & 1u << a->coll))
        return "passes on values that lie in no buffer of a rank, or overwrites what a peer may still read";
    return NULL;
}

static const char *board_excluded(const rd_choose_args_t *a, const rd_choice_t *c, int chunks, size_t message)
{
    if (a->shape->nnodes > 1 || a->shape->nranks < 2)
        return "needs several ranks, all on one node";
    if (a->widened)
        return "needs partial results of the type of the elements";
    if (!(c->algo->board & 1u << a->coll))
        return "sends several values of a chunk: there is none to be written once";
    if (c->proto == RD_PROTO_BOARD_LL && message > RD_LL_MOST)
        return "a message is longer than a ring of lines takes";
    if (c->proto == RD_PROTO_BOARD)
        message = message > RD_BOARD_SLOT_LEAST ? RD_BOARD_SLOT_LEAST : message;
    return rd_board_fits(a->coll, chunks, c->proto, message) ? NULL : "has more messages in a pass than a board takes";
}

/* The chunks of an algorithm without a formula are taken to be as long as the whole. */
static size_t chunk_of(const limits_t *k, const rd_choice_t *c, int *chunks)
{
    const rd_choose_args_t *a = k->args;
    const rd_count_t count = rd_count(a->coll, a->shape->nranks, a->shape->nnodes, a->local, c->param);
    rd_work_t work = {.chunks = 1};
    size_t chunk;

    (void)rd_algo_work(c->algo, &count, &work);
    *chunks = work.chunks;
    chunk = rd_work_chunk(a->coll, k->bytes, work.chunks);
    return chunk > a->longest ? chunk : a->longest;
}

/* Returns how many blocks of `chunk` bytes may go as one message: short ones, as many as fit a slot. On a node each
 * goes alone, since a message costs little there; nor do messages count for blocks of half a slot or more (measured on
 * 8 played nodes: 16 KB were faster together by a fifth, 32 KB slower by a tenth). What goes between nodes alone may
 * fill the long slots; what is passed on goes within nodes, too. */
static int together(const rd_choose_args_t *a, const rd_choice_t *c, size_t chunk)
{
    bool between = a->local == 1 || (c->algo->near == RD_PEERS_COUNTED && !c->algo->relays);
    size_t fit = (between && a->long_bytes ? a->long_bytes : a->slot_bytes) / line_up(chunk);

    if (!c->algo->joins || a->shape->nnodes == 1 || c->proto != RD_PROTO_SIMPLE || 2 * line_up(chunk) > a->slot_bytes)
        return 0;
    return (int)(fit < (size_t)a->shape->nranks ? fit : (size_t)a->shape->nranks);
}

/* A schedule that passes on blocks pays where many of them are a message, and where those of a node are not long enough
 * to be read out of their senders' memory by CMA, which the price of a direct exchange between nodes does not know
 * (measured on 4 played nodes of 4: 8 KB were faster by 4 %, 16 KB slower by 25 %). */
static const char *passed_on_excluded(const limits_t *k, const rd_choice_t *c, size_t chunk)
{
    const rd_choose_args_t *a = k->args;
    const bool cut = a->env->slice_bytes && a->env->slice_bytes < chunk, named = k->forced.algo && !k->forced.except;
    const bool read = a->local > 1 && a->cma && chunk >= a->env->cma_min;

    if (a->uneven)
        return "passes on blocks of other ranks, which must all be equally long";
    if (!named && (cut || read || together(a, c, chunk) < 2))
        return "pays where short blocks go together: used for others only where RONDO_ALGO names it";
    return NULL;
}

static bool in_blocks(rd_coll_t coll)
{
    return coll == RD_ALLGATHER || coll == RD_REDUCE_SCATTER;
}

/* Returns the most bytes of a slice that goes to a switch, or comes from it: of blocks a message has one for each node,
 * and lies in one slot. */
static size_t switch_slice(const rd_choose_args_t *a)
{
    size_t most = a->switch_bytes;

    if (in_blocks(a->coll))
        most = (most < a->slot_bytes ? most : a->slot_bytes) / (size_t)a->shape->nnodes;
    return most / 64 * 64;
}

static const char *switch_excluded(const rd_choose_args_t *a)
{
    if (!a->switch_bytes)
        return "needs a CollNet plugin that all ranks have, and that adds this type so (RONDO_COLLNET)";
    if (a->longest && in_blocks(a->coll))
        return "needs blocks that are all equally long";
    return switch_slice(a) ? NULL : "has more nodes than a message of the CollNet plugin has lines";
}

/* A short reduce from neighbour to neighbour is quick where the next one follows at once, as the cost model reckons:
 * each rank passes on a sum and is in the next call. Of a reduce by itself all ranks but one wait for the ranks before
 * them. Measured with a barrier between two calls, 16 ranks with a core each: 256 B take 3.0 us and 16 KB 20, by a
 * binomial tree 0.85 and 4.7; one after the other 0.36 and 2.5, by the tree 0.41 and 3.4. */
static bool is_chain(const rd_choose_args_t *a, const rd_choice_t *c, size_t bytes)
{
    return a->coll == RD_REDUCE && c->algo->near == RD_PEERS_NEIGHBOURS && a->shape->nnodes == 1 &&
           a->shape->nranks > 4 && a->sharing <= a->cores && bytes <= CHAIN_MOST;
}

static const char *excluded(const void *limits, const rd_choice_t *c)
{
    const limits_t *k = limits;
    int chunks;
    size_t message = chunk_of(k, c, &chunks);
    const char *why = c->algo->relays ? passed_on_excluded(k, c, message) : NULL;

    if (why)
        return why;
    if (c->algo->switched && (why = switch_excluded(k->args)))
        return why;
    if (k->args->coll == RD_ALLTOALL && !c->algo->relays)
        return alltoall_excluded(k, c->proto, message);
    if (c->algo->board_alone && !rd_proto_is_board(c->proto) && !k->forced.algo)
        return "pays by boards alone: used by others only where RONDO_ALGO names it";
    if (!k->forced.algo && is_chain(k->args, c, k->bytes))
        return "would make each rank wait for all before it: used for so few bytes only where RONDO_ALGO names it";
    if (c->proto == RD_PROTO_LL)
        return ll_excluded(k->args, message);
    if (rd_proto_is_board(c->proto))
        return board_excluded(k->args, c, chunks, message);
    return c->proto == RD_PROTO_CMA ? cma_excluded(k->args, c->algo) : NULL;
}

/* An operation that flows one way, and between nodes alone, may use the long slots if it fills two of them. It may not
 * where ranks outnumber cores: there the receiver does not take the data from the network soon enough, and the caches
 * lose it. */
static size_t longest_slice(const rd_choose_args_t *a, size_t chunk)
{
    const unsigned one_way = 1u << RD_BROADCAST | 1u << RD_REDUCE | 1u << RD_GATHER | 1u << RD_SCATTER;
    int takes = a->local == 1 && a->shape->nnodes > 1 && a->sharing <= a->cores && 1u << a->coll & one_way;

    return takes && a->long_bytes > a->slot_bytes && chunk >= 2 * a->long_bytes ? a->long_bytes : a->slot_bytes;
}

/* Prices one length of slice. Blocks of several slices go alone; a slice of those that go together is no longer than
 * they are, because scratch has a place of its length for each. */
static void price_slice(const limits_t *k, rd_choice_t *c, size_t chunk, rd_choices_t *to)
{
    rd_cost_env_t cost = k->cost;

    c->together = cost.together = c->slice < chunk ? 0 : together(k->args, c, chunk);
    if (c->together > 1)
        c->slice = line_up(chunk);
    c->us = rd_cost_algo_us(&cost, k->args->coll, c->algo, c->param, c->proto, k->bytes, c->slice);
    if (c->us < 0)
        c->us = 0; /* forced, without a formula */
    rd_candidates_add(to, c);
}

/* Tries slices of a slot, a half, a quarter...: shorter messages fill a pipeline sooner, longer ones cost less in all.
 * All lengths from the chunk's on are equivalent, and only the longest of them is listed. */
static void price(const void *limits, rd_choice_t c, rd_choices_t *to)
{
    const limits_t *k = limits;
    const rd_choose_args_t *a = k->args;
    bool sliced = c.proto == RD_PROTO_SIMPLE || c.proto == RD_PROTO_BOARD;
    int chunks;
    size_t chunk = chunk_of(k, &c, &chunks), least = c.proto == RD_PROTO_BOARD ? 0 : a->slot_bytes / 16;
    size_t slice = c.proto == RD_PROTO_BOARD ? RD_BOARD_SLOT_MOST : longest_slice(a, chunk) / 64 * 64;

    least = least < SLICE_LEAST ? SLICE_LEAST : least;
    while (c.proto == RD_PROTO_BOARD && slice > RD_BOARD_SLOT_LEAST && !rd_board_fits(a->coll, chunks, c.proto, slice))
        slice /= 2;
    if (a->env->slice_bytes && a->env->slice_bytes < slice)
        slice = a->env->slice_bytes;
    if (c.algo->switched && switch_slice(a) < slice)
        slice = switch_slice(a);
    if (!sliced)
        slice = line_up(chunk);
    if (a->coll == RD_ALLTOALL && !c.algo->relays && c.proto != RD_PROTO_CMA)
        slice = message_slice(a->env, c.proto, a->shape->nnodes == 1, chunk, a->slot_bytes);
    for (int i = 0; i < SLICES; i++, slice = slice / 2 / 64 * 64) {
        c.slice = slice;
        price_slice(k, &c, chunk, to);
        if (!sliced || a->coll == RD_ALLTOALL || a->env->slice_bytes || a->uneven || slice / 2 < least ||
            slice / 2 < chunk / 64)
            return;
        if (slice / 2 >= chunk)
            return;
    }
}

static const rd_executor_t host = {
    .protos = RD_PROTOS_HOST,
    .excluded = excluded,
    .price = price,
};

rondo_result_t rd_choose_check(const rd_env_t *env, rd_log_ctx_t *ctx)
{
    return rd_names_check(env, &host, ctx);
}

/* Reports why no candidate can serve, in terms of the forced choice. */
static rondo_result_t refuse(const limits_t *k, const rd_choices_t *list, rd_log_ctx_t *ctx)
{
    const rd_choose_args_t *a = k->args;
    const rd_choice_t *reason = rd_candidates_reason(list, &k->forced);
    char forced[448] = "";
    int n = 0;

    if (k->forced.algo)
        n = snprintf(forced, sizeof forced, "RONDO_ALGO=%s", a->env->algo);
    if (k->forced.protos)
        snprintf(forced + n, sizeof forced - (size_t)n, "%sRONDO_PROTO=%s", n ? " with " : "", a->env->proto);
    return rd_error(ctx, RONDO_ERR_UNSUPPORTED, "%s cannot serve %s of %zu bytes on %d ranks: %s%s%s",
                    *forced ? forced : "rondo", rd_coll_name(a->coll), a->bytes, a->shape->nranks,
                    reason ? reason->algo->name : "", reason ? " " : "",
                    reason ? reason->excluded : "no algorithm has this operation");
}

static void limits_begin(limits_t *k, const rd_choose_args_t *args)
{
    k->args = args;
    k->cost = (rd_cost_env_t){.nranks = args->shape->nranks,
                              .nnodes = args->shape->nnodes,
                              .local = args->local,
                              .cores = args->cores > 0 ? args->cores : 1,
                              .sharing = args->sharing,
                              .prices = args->prices};
    k->forced = args->unforced ? (rd_forced_t){.protos = 0} : rd_forced(args->env, args->coll);
    k->ll_most = args->coll == RD_ALLTOALL ? rd_choose_ll_most(args->env, args->prices) : 0;
    k->bytes = args->uneven ? args->slot_bytes * (size_t)args->shape->nranks : args->bytes;
}

rondo_result_t rd_choose(const rd_choose_args_t *args, rd_choice_t *best, rd_choice_t *all, int *nall,
                         rd_log_ctx_t *ctx)
{
    const rd_sched_args_t sched = {.shape = args->shape, .coll = args->coll, .root = args->root};
    rondo_result_t result = rd_choose_check(args->env, ctx);
    const rd_choice_t *choice;
    rd_choices_t list;
    limits_t k;

    list.count = 0;
    if (result == RONDO_SUCCESS) {
        limits_begin(&k, args);
        rd_candidates(&host, &k, &sched, args->local, &k.forced, &list);
    }
    if (all) {
        *nall = list.count < *nall ? list.count : *nall;
        memcpy(all, list.entry, (size_t)*nall * sizeof *all);
    }
    if (result != RONDO_SUCCESS)
        return result;
    choice = rd_candidates_best(&list, &k.forced);
    if (!choice && args->env->where_served) {
        rd_choose_args_t free = *args;
        rd_env_t none;

        free.env = rd_forced_otherwise(args->env, &none);
        return rd_choose(&free, best, NULL, NULL, ctx);
    }
    if (!choice)
        return refuse(&k, &list, ctx);
    const rd_choice_t *named = args->tuned ? rd_tuner_choice(args->tuned, &args->tuned_call, &list, &k.forced) : NULL;
    *best = named ? *named : *choice;
    return RONDO_SUCCESS;
}
