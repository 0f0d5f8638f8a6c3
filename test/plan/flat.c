/* Flat plans (plan/flat.h): which plans by slots are flat; and where the messages of one by lines of boards lie: where
 * their readers look, no two at one place, in as few lines as they need, and which of them are claimed.
 */
#include "plan/flat.h"

#include <stdlib.h>
#include <unistd.h>

#include "plan/board_plan.h"
#include "plan/plan.h"
#include "sched/algo.h"
#include "transport/shm/board.h"
#include "util/check.h"

#define RANKS_MOST 9

static rd_send_t sends[RANKS_MOST];
static rd_recv_t recvs[RANKS_MOST];
static char *boards[RANKS_MOST];
static rd_board_t board = {.of = boards};

typedef struct {
    rd_coll_t coll;
    int n, rank;
    size_t bytes; /* of a block, or of the vector */
    rd_proto_t proto;
    int root, together;
} case_t;

/* Makes the plan up to its flat steps, as plan.c does. */
static rd_plan_t *plan_make(const rd_algo_t *algo, const case_t *c)
{
    const rd_shape_t shape = {c->n, 1, NULL};
    const rd_sched_args_t args = {
        .shape = &shape, .coll = c->coll, .rank = c->rank, .root = c->root, .together = c->together};
    bool whole = c->coll == RD_ALLREDUCE;
    rd_steps_t *steps = algo->emit(&args);
    rd_program_t *program = NULL;
    rd_plan_t *plan = calloc(1, sizeof *plan);
    const char *why;

    if (!plan || !steps || (c->proto == RD_PROTO_BOARD_LL && rd_steps_once(steps) != 0) ||
        rd_compile(steps, 1, &program, &why) != 0)
        exit(1);
    rd_steps_free(steps);
    *plan = (rd_plan_t){
        .desc = {.coll = c->coll, .root = c->root}, .program = program, .own_program = program, .element = 1};
    plan->in = plan->out = (rd_chunks_t){NULL, NULL, c->bytes, whole ? c->bytes : c->bytes * (size_t)c->n, 0};
    plan->slice = 65536;
    plan->sends = calloc(RANKS_MOST, sizeof *plan->sends);
    plan->recvs = calloc(RANKS_MOST, sizeof *plan->recvs);
    plan->lanes = calloc((size_t)program->nlanes + 1, sizeof *plan->lanes);
    if (!plan->sends || !plan->recvs || !plan->lanes)
        exit(1);
    for (int i = 0; i < program->nsends; i++)
        plan->sends[i] = &sends[program->sends[i].peer];
    for (int i = 0; i < program->nrecvs; i++)
        plan->recvs[i] = &recvs[program->recvs[i].peer];
    for (int i = 0; i < program->nlanes; i++)
        plan->lanes[i] = (rd_lane_plan_t){.passes = 1, .slice = plan->slice, .proto = c->proto};
    board.self = c->rank;
    if (c->proto == RD_PROTO_BOARD_LL)
        rd_board_plan(plan, &board, c->proto, c->bytes, 65536);
    CHECK(rd_flat_plan(plan) == 0, "no memory");
    return plan;
}

static void plan_free(rd_plan_t *plan)
{
    rd_program_free(plan->own_program);
    free(plan->sends);
    free(plan->recvs);
    free(plan->lanes);
    free(plan->flat);
    free(plan);
}

/* Where each rank has written its block for another; -1: nowhere. */
typedef struct {
    int at[RANKS_MOST][RANKS_MOST], from[RANKS_MOST][RANKS_MOST];
} written_t;

/* A message that is packed has all blocks. */
static void look_at_writer(const case_t *c, const rd_plan_t *plan, written_t *w)
{
    int lines = 0, first = -1;

    for (int s = 0; s < plan->nflat; s++) {
        const rd_flat_step_t *q = &plan->flat[s];
        if (q->dst[0].where != RD_PEER)
            continue;
        for (int r = 0; r < c->n; r++) {
            CHECK(w->at[c->rank][r] != (int)q->at, "two messages of rank %d at line %u", c->rank, q->at);
            if (plan->board.packed || q->src[0].offset == (ptrdiff_t)(c->bytes * (size_t)r))
                w->from[c->rank][r] = plan->board.packed ? (int)(c->bytes * (size_t)r) : 0;
        }
        for (int r = 0; r < c->n; r++)
            if (plan->board.packed || q->src[0].offset == (ptrdiff_t)(c->bytes * (size_t)r))
                w->at[c->rank][r] = (int)q->at;
        lines += (int)q->lines;
        first = first < 0 ? (int)q->at : first;
    }
    CHECK((size_t)lines <= plan->board.numbers * plan->board.stride, "%d lines in %u by %zu", lines,
          plan->board.numbers, plan->board.stride);
    CHECK(c->coll != RD_SCATTER || (size_t)lines <= (size_t)(c->n - 1) * rd_ll_lines(c->bytes),
          "%d lines for %d readers", lines, c->n - 1);
    if (lines) {
        int rest = (int)plan->board.numbers * (int)plan->board.stride - first;
        rest = rest < lines ? rest : lines;
        CHECK((int)plan->board.claimed == (rest < RD_LL_CLAIM ? rest : RD_LL_CLAIM), "%u of %d lines are claimed",
              plan->board.claimed, rest);
        CHECK((int)plan->board.first == first, "claimed from %u, written from %d", plan->board.first, first);
    } else {
        CHECK(plan->board.claimed == 0, "%u lines of none are claimed", plan->board.claimed);
    }
}

/* Each reader finds its block. */
static void look_at_reader(const case_t *c, const rd_plan_t *plan, const written_t *w)
{
    for (int s = 0; s < plan->nflat; s++) {
        const rd_flat_step_t *q = &plan->flat[s];
        for (int i = 0; i < q->nsrc; i++) {
            int peer = q->src[i].peer;
            if (q->src[i].where == RD_PEER)
                CHECK(w->at[peer][c->rank] == (int)q->at && w->from[peer][c->rank] == (int)q->from,
                      "rank %d looks at line %u of rank %d, from byte %u: its block is at %d, from %d", c->rank, q->at,
                      peer, q->from, w->at[peer][c->rank], w->from[peer][c->rank]);
        }
    }
}

static void boards_of(rd_coll_t coll, int n, int root, size_t bytes)
{
    const rd_algo_t *direct = rd_algo_find("direct");
    static written_t w;
    char name[96];

    snprintf(name, sizeof name, "%s of %zu bytes, %d ranks, root %d", rd_coll_name(coll), bytes, n, root);
    check_now = name;
    for (int a = 0; a < RANKS_MOST; a++)
        for (int b = 0; b < RANKS_MOST; b++)
            w.at[a][b] = -1;
    for (int reads = 0; reads < 2; reads++)
        for (int rank = 0; rank < n; rank++) {
            const case_t c = {coll, n, rank, bytes, RD_PROTO_BOARD_LL, root, 0};
            rd_plan_t *plan = plan_make(direct, &c);
            if (reads)
                look_at_reader(&c, plan, &w);
            else
                look_at_writer(&c, plan, &w);
            plan_free(plan);
        }
    check_now = NULL;
}

static bool is_flat(size_t bytes, bool mirrored)
{
    const case_t c = {RD_ALLREDUCE, 2, 0, bytes, RD_PROTO_SIMPLE, 0, 0};
    rd_plan_t *plan;

    sends[1].mirrored = mirrored;
    plan = plan_make(rd_algo_find("oneshot"), &c);
    sends[1].mirrored = false;
    bool flat = plan->flat && plan->flat_by == RD_PROTO_SIMPLE;
    plan_free(plan);
    return flat;
}

/* Of the rank of six which has neighbours of its own node alone, where five are on one: its blocks go together. */
static bool parts_are_flat(int together)
{
    const case_t c = {RD_ALLGATHER, 6, 2, 8, RD_PROTO_SIMPLE, 0, together};
    rd_plan_t *plan = plan_make(rd_algo_find("pat"), &c);
    bool flat = plan->flat != NULL;

    plan_free(plan);
    return flat;
}

int main(void)
{
    static const size_t lengths[] = {8, 24, 32, 56, 64, 120};

    alarm(60);
    for (int i = 0; i < RANKS_MOST; i++)
        recvs[i].peer = sends[i].peer = i;
    for (int n = 2; n <= RANKS_MOST; n++)
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
            for (int root = 0; root < n; root++)
                boards_of(RD_SCATTER, n, root, lengths[l]);
            boards_of(RD_REDUCE_SCATTER, n, 0, lengths[l]);
        }
    CHECK(is_flat(512, false) && is_flat(RD_FLAT_SLOT_MOST, false), "short messages by slots");
    CHECK(!is_flat(RD_FLAT_SLOT_MOST + 1, false), "a long message by slots");
    CHECK(!is_flat(512, true), "a message to another node");
    CHECK(parts_are_flat(1) && !parts_are_flat(6), "blocks that are one message together");
    printf("flat: %d failures\n", failures);
    return failures != 0;
}
