/* The planner lets the cost model choose an algorithm, compiles its program once, applies the chunk map to the user's
 * counts, and caches plans so that the next equal call finds its plan ready. See plan.h. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "plan/board_plan.h"
#include "plan/choose.h"
#include "plan/chunk_map.h"
#include "plan/force.h"
#include "sched/visits.h"
#include "transport/switch.h"
#include "transport/shm/ll.h"

#define SETS 32    /* of cached plans: by a hash of what they are for, */
#define WAYS 4     /* in each of them so many */
#define CACHED_V 4 /* plans of v-operations, of each kind */

/* Compiled programs, one for each (operation, algorithm, root, parameter). */
typedef struct compiled {
    struct compiled *next;
    rd_coll_t coll;
    const rd_algo_t *algo;
    int root, param, together, fuse;
    bool once; /* a value is written once for all its receivers */
    rd_program_t *program;
} compiled_t;

struct rd_planner {
    rd_planner_args_t args;
    rd_shape_t shape;
    rd_visits_t order;
    size_t ll_most; /* bytes of a pair's message by lines: choose.h */
    size_t ll_most_alone;
    size_t to_one_least; /* bytes of a message to the root of a gatherv that goes by CMA: choose.h */
    size_t put_most;     /* bytes of a gather's message by CMA that its sender writes: choose.h */
    compiled_t *programs;
    rd_plan_t *cache[SETS][WAYS];              /* the newest first */
    rd_plan_t *last_v[RD_NUM_COLLS][CACHED_V]; /* plans of the last v-operations, since codes repeat a few of them */
};

/* Plans of one message to or from a peer share the cache with those of operations, under these numbers. */
#define PLAN_SEND ((rd_coll_t)RD_NUM_COLLS)
#define PLAN_RECV ((rd_coll_t)(RD_NUM_COLLS + 1))

static bool is_message(const rd_coll_desc_t *desc)
{
    return desc->coll == PLAN_SEND || desc->coll == PLAN_RECV;
}

/* Returns all of a desc but its lengths, as one number. The desc was written a moment ago, field by field, and a load
 * that is wider than such a store waits until the store has left the core. It leaves behind the last message's stores,
 * which may take as long as a message. */
static uint64_t key_of(const rd_coll_desc_t *desc)
{
    return (uint64_t)desc->forced << 56 | (uint64_t)(uint32_t)desc->root << 32 | (uint64_t)(uint16_t)desc->op << 16 |
           (uint64_t)desc->to_one << 16 | /* what goes to one rank has no `op` */
           (uint64_t)desc->type << 8 | (uint64_t)desc->coll;
}

static bool made_for(const rd_plan_t *plan, uint64_t key, const rd_coll_desc_t *desc)
{
    return plan && plan->key == key && plan->desc.count == desc->count && plan->desc.own == desc->own;
}

rondo_result_t rd_planner_create(rd_planner_t **planner, const rd_planner_args_t *args)
{
    rondo_result_t result = rd_choose_check(args->env, args->ctx);
    rd_planner_t *p;

    if (result != RONDO_SUCCESS)
        return result;
    p = calloc(1, sizeof *p);
    if (!p)
        return rd_error(args->ctx, RONDO_ERR_NO_MEMORY, "no memory for the planner");
    p->args = *args;
    p->shape = (rd_shape_t){args->nranks, args->node->nnodes, args->node->nnodes > 1 ? args->node->node_of : NULL};
    if (args->node->order)
        p->order = (rd_visits_t){args->node->order, args->node->order + args->nranks};
    p->ll_most = rd_choose_ll_most(args->env, args->prices);
    p->ll_most_alone = rd_choose_ll_most_alone(args->env, args->prices);
    const rd_cost_env_t node = {args->node->most, 1, args->node->most, args->cores, args->sharing, args->prices, 0};
    p->to_one_least = rd_choose_to_one_least(args->env, &node);
    p->put_most = rd_choose_put_most(args->env, &node);
    *planner = p;
    return RONDO_SUCCESS;
}

static void plan_free(rd_plan_t *plan)
{
    rd_program_free(plan->own_program);
    free(plan->flat);
    free(plan->zcopy);
    free(plan->lanes);
    free(plan->sends);
    free(plan->tables);
    free(plan);
}

void rd_plan_put(rd_plan_t *plan)
{
    if (plan && --plan->users == 0)
        plan_free(plan);
}

void rd_planner_free(rd_planner_t *p)
{
    if (!p)
        return;
    for (int i = 0; i < SETS * WAYS; i++)
        rd_plan_put(p->cache[i / WAYS][i % WAYS]);
    for (int i = 0; i < RD_NUM_COLLS * CACHED_V; i++)
        rd_plan_put(p->last_v[i / CACHED_V][i % CACHED_V]);
    while (p->programs) {
        compiled_t *c = p->programs;
        p->programs = c->next;
        rd_program_free(c->program);
        free(c);
    }
    free(p);
}

size_t rd_plan_scratch(const rd_plan_t *plan)
{
    size_t wide = plan->reducer.store ? (size_t)plan->program->nchunks : 0; /* the output's chunks */
    size_t scratch = ((size_t)plan->program->ntmp + 1 + wide) * plan->slice;

    return plan->posts || plan->slice == 0 ? RD_MAX_ENDS * RD_CMA_BLOCK : scratch;
}

/* The result depends on (pair, bytes) and on values that all ranks agreed on, so both ends agree. */
static rondo_result_t message_rule(const rd_planner_t *p, const rd_coll_desc_t *desc, int peer, size_t bytes,
                                   rd_lane_plan_t *lane)
{
    const rd_node_t *node = p->args.node;
    const rd_layout_t *layout = &p->args.conns->layout;
    const bool here = node->node_of[peer] == node->node_of[p->args.rank];
    const bool oversubscribed = p->args.sharing > p->args.cores;
    rd_env_t own;
    const rd_env_t *env = rd_force_env(p->args.env, desc->forced, &own);
    const rd_message_args_t message = {.env = env,
                                       .here = here,
                                       .cma = here && p->args.conns->cma &&
                                              (!desc->to_one || env->proto[0] || bytes >= p->to_one_least),
                                       .ll_most = is_message(desc) ? p->ll_most_alone : p->ll_most,
                                       .bytes = bytes,
                                       .slot_bytes = here || oversubscribed ? layout->slot_bytes : layout->long_bytes};

    return rd_choose_message(&message, &lane->proto, &lane->slice, p->args.ctx);
}

static rondo_result_t program_get(rd_planner_t *p, rd_coll_t coll, int root, const rd_choice_t *choice,
                                  const rd_program_t **program)
{
    /* A post names a buffer of its sender, so a message that is forwarded must first lie in one. */
    bool once = rd_proto_is_board(choice->proto);
    int fuse = (p->args.conns->layout.slots > 1 || once) && choice->proto != RD_PROTO_CMA;
    const rd_sched_args_t args = {&p->shape, coll, p->args.rank, root, choice->param, choice->together};
    const char *why = "no memory";
    rd_steps_t *steps;
    compiled_t *c;

    for (c = p->programs; c; c = c->next) {
        if (c->coll == coll && c->algo == choice->algo && c->root == root && c->param == choice->param &&
            c->together == choice->together && c->fuse == fuse && c->once == once) {
            *program = c->program;
            return RONDO_SUCCESS;
        }
    }
    c = calloc(1, sizeof *c);
    if (!c)
        return rd_error(p->args.ctx, RONDO_ERR_NO_MEMORY, "no memory for a program");
    *c = (compiled_t){p->programs, coll, choice->algo, root, choice->param, choice->together, fuse, once, NULL};
    steps = rd_visits_emit(choice->algo, &args, &p->order);
    if (!steps || (once && rd_steps_once(steps) != 0) || rd_compile(steps, fuse, &c->program, &why) != 0) {
        rd_steps_free(steps);
        free(c);
        return rd_error(p->args.ctx, RONDO_ERR_INTERNAL, "%s by %s does not compile: %s", rd_coll_name(coll),
                        choice->algo->name, why);
    }
    rd_steps_free(steps);
    p->programs = c;
    *program = c->program;
    return RONDO_SUCCESS;
}

/* Returns the bytes of the longest chunk that a lane touches. */
static size_t lane_bytes(const rd_plan_t *plan, const rd_lane_t *lane)
{
    int n = plan->program->nchunks;
    size_t most = 0;

    for (int s = lane->first; s < lane->first + lane->count; s++) {
        const rd_step_t *step = &plan->program->steps[s];
        const rd_chunks_t *side = step->src[0].where == RD_IN ? &plan->in : &plan->out;
        for (int k = 0, chunk = step->chunk; k < step->repeat; k++, chunk = (chunk + step->stride + n) % n) {
            size_t bytes = rd_chunk_bytes(side, chunk);
            most = bytes > most ? bytes : most;
        }
    }
    return most;
}

/* Returns the bytes of the longest chunk of all. */
static size_t chunk_bytes(const rd_plan_t *plan)
{
    const rd_chunks_t *side = plan->in.bytes ? &plan->in : &plan->out;
    size_t most = 0;

    for (int c = 0; c < plan->program->nchunks; c++) {
        size_t bytes = rd_chunk_bytes(side, c);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Makes the slices equally long, so that the last one is not much shorter; they are whole lines of 64 bytes. */
static size_t even_slice(size_t bytes, size_t slice)
{
    size_t passes = (bytes + slice - 1) / slice;

    if (passes < 2)
        return slice;
    return ((bytes + passes - 1) / passes + RD_LINE - 1) / RD_LINE * RD_LINE;
}

/* Returns the peer that a lane of an all-to-all serves; it is this rank for the copy of its own block. */
static int lane_peer(const rd_program_t *program, const rd_lane_t *lane, int self)
{
    const rd_step_t *step = &program->steps[lane->first];

    if (step->src[0].where == RD_PEER)
        return program->recvs[step->src[0].index].peer;
    return step->dst[0].where == RD_PEER ? program->sends[step->dst[0].index].peer : self;
}

/* The length of a message travels with it where its two ends may give different ones: in sends and receives, and in an
 * all-to-all with tables. There an empty block is no message, because most may be empty; but RONDO_CHECK=1 compares it
 * with what the peer gives. */
static void say_length(const rd_planner_t *p, const rd_plan_t *plan, const rd_lane_t *lane, size_t bytes,
                       rd_lane_plan_t *to)
{
    const rd_step_t *step = lane->count ? &plan->program->steps[lane->first] : NULL;
    bool of_pair = step && (step->src[0].where == RD_PEER || step->dst[0].where == RD_PEER);
    bool message = is_message(&plan->desc);
    bool block = (plan->in.bytes || plan->out.bytes) && (bytes || p->args.env->check);

    if (!of_pair || (!message && !block))
        return;
    const int *node_of = p->args.node->node_of;
    bool here = node_of[lane_peer(plan->program, lane, p->args.rank)] == node_of[p->args.rank];
    to->whole = bytes;
    if (to->proto == RD_PROTO_LL && to->passes == 1)
        to->tag = rd_ll_tag(bytes + 1);
    else
        to->announced = here && to->passes && to->proto == RD_PROTO_SIMPLE ? RD_ANNOUNCED_IN_SLOT : RD_ANNOUNCED_AHEAD;
}

/* On boards all ranks have messages at the same places, so all take the same slices. */
static void plan_board(rd_planner_t *p, rd_plan_t *plan, const rd_choice_t *choice)
{
    size_t bytes = chunk_bytes(plan);

    if (rd_proto_is_board(choice->proto))
        rd_board_plan(plan, &p->args.conns->board, choice->proto, bytes, even_slice(bytes, choice->slice));
}

/* All ranks cut a chunk into the same slices: a lane touches the longest chunk on each of them, but for those to and
 * from a switch, where a head may touch none but its own. */
static rondo_result_t plan_lanes(rd_planner_t *p, rd_plan_t *plan, const rd_choice_t *choice)
{
    const rd_program_t *program = plan->program;
    rondo_result_t result = RONDO_SUCCESS;

    plan->lanes = calloc((size_t)program->nlanes + 1, sizeof *plan->lanes);
    if (!plan->lanes)
        return rd_error(p->args.ctx, RONDO_ERR_NO_MEMORY, "no memory for %d lanes", program->nlanes);
    for (int i = 0; i < program->nlanes; i++) {
        rd_lane_plan_t *lane = &plan->lanes[i];
        size_t bytes = program->lanes[i].count ? lane_bytes(plan, &program->lanes[i]) : 0;
        const size_t cut = choice && choice->algo->switched ? chunk_bytes(plan) : bytes;
        if (choice && plan->board.board)
            *lane = (rd_lane_plan_t){.slice = plan->board.slice, .proto = choice->proto};
        else if (choice)
            *lane = (rd_lane_plan_t){.slice = even_slice(cut, choice->slice), .proto = choice->proto};
        else
            result = message_rule(p, &plan->desc, lane_peer(program, &program->lanes[i], p->args.rank), bytes, lane);
        if (result != RONDO_SUCCESS)
            return result;
        if (lane->proto == RD_PROTO_CMA) {
            *lane = (rd_lane_plan_t){.passes = bytes != 0, .slice = bytes + 1, .proto = RD_PROTO_CMA}; /* one message */
            lane->put = bytes <= p->put_most && (plan->desc.to_one || plan->desc.coll == RD_GATHER);
            plan->posts = true;
        } else {
            lane->passes = (bytes + lane->slice - 1) / lane->slice;
            plan->slice = lane->slice > plan->slice ? lane->slice : plan->slice;
        }
        if (!choice)
            say_length(p, plan, &program->lanes[i], bytes, lane);
    }
    return RONDO_SUCCESS;
}

/* Returns the number of a link's connection in its table; -1: it is to or from the switch. */
static int connection(const rd_planner_t *p, const rd_link_t *link, int collective)
{
    int channel = collective && link->channel == RD_CHANNEL_P2P ? 0 : link->channel;

    return link->peer == rd_switch_of(&p->shape) ? -1 : channel * p->args.nranks + link->peer;
}

/* Program links to connections. An all-to-all runs on a collective's channel: grouped sends of the user's own may be
 * under way on theirs. */
static rondo_result_t bind(rd_planner_t *p, rd_plan_t *plan, int collective)
{
    const rd_program_t *program = plan->program;
    size_t links = (size_t)(program->nsends + program->nrecvs);
    void **table = calloc(links + 1, sizeof *table);

    if (!table)
        return rd_error(p->args.ctx, RONDO_ERR_NO_MEMORY, "no memory for %zu links", links);
    plan->sends = (rd_send_t **)table;
    plan->recvs = (rd_recv_t **)(table + program->nsends);
    for (int i = 0; i < program->nsends; i++) {
        int at = connection(p, &program->sends[i], collective);
        plan->collnet = at < 0 ? p->args.conns->collnet : plan->collnet;
        plan->sends[i] = at < 0 ? &p->args.conns->collnet->send : &p->args.conns->sends[at];
    }
    for (int i = 0; i < program->nrecvs; i++) {
        int at = connection(p, &program->recvs[i], collective);
        plan->recvs[i] = at < 0 ? &p->args.conns->collnet->recv : &p->args.conns->recvs[at];
    }
    plan->nt_store = p->args.env->nt_store[0] ? rd_nt_store_parse(p->args.env->nt_store) : p->args.prices->nt_store;
    if (plan->halvings) /* flat plans and zero-copy need the result to be where it was computed */
        return RONDO_SUCCESS;
    if (rd_flat_plan(plan) != 0)
        return rd_error(p->args.ctx, RONDO_ERR_NO_MEMORY, "no memory for the steps of a plan");
    if (p->args.node->nnodes > 1)
        rd_zcopy_plan(plan);
    return RONDO_SUCCESS;
}

static void plan_reducer(const rd_planner_t *p, rd_plan_t *plan, const rd_reducer_t *custom)
{
    rd_coll_t coll = plan->desc.coll;

    if (coll != RD_ALLREDUCE && coll != RD_REDUCE && coll != RD_REDUCE_SCATTER)
        return;
    if (custom)
        plan->reducer = *custom;
    else
        p->args.init_reducer(&plan->reducer, plan->desc.type, plan->desc.op, p->args.nranks, RD_SIMD_BEST);
    for (; plan->reducer.store && plan->element < sizeof(float); plan->element *= 2)
        plan->halvings++;
    plan->switch_type = plan->halvings ? RONDO_FLOAT32 : plan->desc.type;
    plan->switch_op = custom ? RONDO_NUM_OPS : plan->desc.op == RONDO_AVG ? RONDO_SUM : plan->desc.op;
}

/* Sets the range that the final division is applied to: all of the output that this rank keeps. */
static void plan_finish(const rd_planner_t *p, rd_plan_t *plan)
{
    int rank = p->args.rank;
    rd_coll_t coll = plan->desc.coll;

    if (!plan->reducer.finish || (coll == RD_REDUCE && rank != plan->desc.root))
        return;
    plan->finish_bytes = plan->out.total;
    if (coll == RD_REDUCE_SCATTER) {
        plan->finish_offset = rd_chunk_offset(&plan->out, rank);
        plan->finish_bytes = rd_chunk_bytes(&plan->out, rank);
    }
}

static rondo_result_t choose(rd_planner_t *p, const rd_plan_t *plan, const rd_tables_t *tables, rd_choice_t *choice)
{
    const rd_layout_t *layout = &p->args.conns->layout;
    const rd_collnet_t *collnet = p->args.conns->collnet;
    rd_env_t own;
    rd_choose_args_t args = {
        .coll = plan->desc.coll,
        .bytes = rd_map_whole(plan, tables, p->args.nranks),
        .longest = rd_map_longest(plan, tables, p->args.nranks),
        .type_size = plan->element,
        .root = plan->desc.root,
        .unforced = plan->desc.own != 0,
        .uneven = plan->desc.coll == RD_ALLTOALL && tables,
        .shape = &p->shape,
        .env = rd_force_env(p->args.env, plan->desc.forced, &own),
        .local = p->args.node->most,
        .cores = p->args.cores,
        .sharing = p->args.sharing,
        .prices = p->args.prices,
        .slot_bytes = layout->slot_bytes,
        .long_bytes = layout->long_bytes,
        .slots = (int)layout->slots,
        .switch_bytes = rd_collnet_serves(collnet, plan->desc.coll, plan->switch_type, plan->switch_op),
        .cma = p->args.conns->cma && !plan->reducer.load,
        .widened = plan->reducer.store != NULL,
        .tuned = tables || plan->desc.own ? NULL : p->args.tuned,
    };
    args.tuned_call = (rd_tuner_call_t){rd_coll_name(args.coll), args.bytes >> plan->halvings};
    return rd_choose(&args, choice, NULL, NULL, p->args.ctx);
}

static rondo_result_t plan_make(rd_planner_t *p, const rd_coll_desc_t *desc, const rd_tables_t *tables,
                                const rd_reducer_t *custom, rd_plan_t **made)
{
    rd_plan_t *plan = calloc(1, sizeof *plan);
    rondo_result_t result;
    rd_choice_t choice;

    if (!plan)
        return rd_error(p->args.ctx, RONDO_ERR_NO_MEMORY, "no memory for a plan");
    plan->desc = *desc;
    plan->key = key_of(desc);
    plan->users = 1;
    plan->element = desc->coll == RD_BARRIER ? 1 : rondo_type_size(desc->type);
    plan_reducer(p, plan, custom);
    plan->switch_root = p->args.conns->collnet ? p->args.node->node_of[desc->root] : 0;
    result = choose(p, plan, tables, &choice);
    if (result == RONDO_SUCCESS)
        result = program_get(p, desc->coll, desc->root, &choice, &plan->program);
    if (result == RONDO_SUCCESS) {
        plan->algo = choice.algo->name;
        plan->algo_number = rd_algo_number(choice.algo);
        plan->us = choice.us;
        plan->tuned = p->args.tuned || desc->forced ? rd_tuner_word(&choice) : 0;
        rd_map_uniform(plan, p->args.rank, p->args.nranks);
        if (tables)
            result = rd_map_tables(plan, tables, p->args.nranks, p->args.ctx);
    }
    if (result == RONDO_SUCCESS) {
        plan_finish(p, plan);
        plan_board(p, plan, &choice);
        result = plan_lanes(p, plan, desc->coll == RD_ALLTOALL && !choice.algo->relays ? NULL : &choice);
    }
    if (result == RONDO_SUCCESS)
        result = bind(p, plan, 1);
    if (result != RONDO_SUCCESS) {
        plan_free(plan);
        return result;
    }
    *made = plan;
    return RONDO_SUCCESS;
}

/* Moves a plan to the front of its set, or of its kind of v-operation; the place at `at` is free. */
static void to_front(rd_plan_t **kind, int at, rd_plan_t *plan)
{
    memmove(kind + 1, kind, (size_t)at * sizeof *kind);
    kind[0] = plan;
}

/* Puts a plan in place of the oldest of `most`, which is freed when its last run is over. */
static void remember(rd_plan_t **kind, int most, rd_plan_t *plan)
{
    rd_plan_put(kind[most - 1]);
    to_front(kind, most - 1, plan);
    plan->users++;
}

static rd_plan_t **set_of(rd_planner_t *p, uint64_t key, size_t count, size_t own)
{
    uint64_t h = count * 0x9e3779b97f4a7c15u;

    h ^= (key << 40 | key >> 24) ^ own;
    return p->cache[(h * 0xd6e8feb86659fd93u >> 57) % SETS];
}

/* Returns the plan of the cache for that desc, or NULL. Calls that come in turns may be in one set. */
static inline rd_plan_t *cached(rd_planner_t *p, uint64_t key, const rd_coll_desc_t *desc)
{
    rd_plan_t **set = set_of(p, key, desc->count, desc->own);

    for (int i = 0; i < WAYS; i++)
        if (made_for(set[i], key, desc))
            return set[i];
    return NULL;
}

/* Returns the plan for exactly these tables, or NULL. */
static rd_plan_t *known_v(rd_planner_t *p, uint64_t key, const rd_coll_desc_t *desc, const rd_tables_t *tables)
{
    rd_plan_t **kind = p->last_v[desc->coll];

    for (int i = 0; i < CACHED_V && kind[i]; i++) {
        rd_plan_t *plan = kind[i];
        if (!made_for(plan, key, desc) || !rd_map_same(plan, tables, p->args.nranks))
            continue;
        if (i)
            to_front(kind, i, plan);
        return plan;
    }
    return NULL;
}

rondo_result_t rd_plan_get(rd_planner_t *p, const rd_coll_desc_t *desc, const rd_tables_t *tables,
                           const rd_reducer_t *custom, rd_plan_t **plan)
{
    uint64_t key = key_of(desc);
    rd_plan_t *known = NULL;
    rondo_result_t result;
    fenv_t program;

    if (tables && !custom)
        known = known_v(p, key, desc, tables);
    else if (!custom)
        known = cached(p, key, desc);
    if (known) {
        known->users++;
        *plan = known;
        return RONDO_SUCCESS;
    }
    rd_fpenv_begin(&program);
    result = plan_make(p, desc, tables, custom, plan);
    rd_fpenv_end(&program);
    if (result != RONDO_SUCCESS)
        return result;
    if (tables && !custom)
        remember(p->last_v[desc->coll], CACHED_V, *plan);
    else if (!custom)
        remember(set_of(p, key, desc->count, desc->own), WAYS, *plan);
    if (!tables || rd_log_enabled(RD_LOG_PLAN)) /* plans that are made anew at each call would fill the log */
        rd_plan_print(*plan, p->args.rank, p->args.ctx);
    return RONDO_SUCCESS;
}

/* The program of one message: one lane, one step. */
static rd_program_t *message_program(int peer, int send)
{
    const char *why;
    rd_program_t *program = NULL;
    rd_steps_t *steps = rd_steps_create(1);

    if (!steps)
        return NULL;
    rd_steps_lane(steps, RD_CHANNEL_P2P);
    if (send)
        rd_step_send(steps, rd_in(0), 0, peer);
    else
        rd_step_recv(steps, rd_out(0), 0, peer);
    if (rd_compile(steps, 0, &program, &why) != 0)
        program = NULL;
    rd_steps_free(steps);
    return program;
}

static inline rd_coll_desc_t message_desc(int peer, int send, size_t bytes)
{
    return (rd_coll_desc_t){.coll = send ? PLAN_SEND : PLAN_RECV, .root = peer, .count = bytes};
}

static __attribute__((noinline)) rondo_result_t make_p2p(rd_planner_t *p, int peer, int send, size_t bytes,
                                                         rd_plan_t **plan)
{
    rd_plan_t *made = calloc(1, sizeof *made);
    rondo_result_t result;

    if (!made)
        return rd_error(p->args.ctx, RONDO_ERR_NO_MEMORY, "no memory for a plan");
    made->desc = message_desc(peer, send, bytes);
    made->key = key_of(&made->desc);
    made->users = made->element = 1;
    made->algo = send ? "send" : "recv";
    made->algo_number = -1;
    made->in = made->out = (rd_chunks_t){NULL, NULL, bytes, bytes, 0};
    made->program = made->own_program = message_program(peer, send);
    result = made->program ? plan_lanes(p, made, NULL) : rd_error(p->args.ctx, RONDO_ERR_NO_MEMORY, "no memory");
    if (result == RONDO_SUCCESS)
        result = bind(p, made, 0);
    if (result != RONDO_SUCCESS) {
        plan_free(made);
        return result;
    }
    made->one_message = made->nflat == 1 && made->flat_by == RD_PROTO_LL;
    remember(set_of(p, made->key, bytes, 0), WAYS, made);
    *plan = made;
    return RONDO_SUCCESS;
}

rondo_result_t rd_plan_get_p2p(rd_planner_t *p, int peer, int send, size_t bytes, rd_plan_t **plan)
{
    const rd_coll_desc_t desc = message_desc(peer, send, bytes); /* in registers: it is handed to nobody */
    uint64_t key = key_of(&desc);
    rd_plan_t *made = cached(p, key, &desc);

    if (!made)
        return make_p2p(p, peer, send, bytes, plan);
    made->users++;
    *plan = made;
    return RONDO_SUCCESS;
}
