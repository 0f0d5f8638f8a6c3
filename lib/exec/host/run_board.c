/* See run_board.h. The walk is that of run_flat.c with lines on boards. */
#include "exec/host/run_board.h"

#include "exec/host/flat_walk.h"
#include "exec/host/host_copy.h"

#define AHEAD 8 /* steps of one message whose first line is fetched before it is looked at */

/* Fetches the lines that the next steps read. Each lies in another core's cache, and one after the other they would
 * take a message's time each. */
static inline void fetch_ahead(rd_board_t *b, const rd_run_t *run)
{
    const rd_flat_step_t *steps = run->plan->flat;

    for (; b->ahead < run->plan->nflat; b->ahead++) {
        const rd_flat_step_t *q = &steps[b->ahead];
        if (b->ahead > run->flat + (q->nsrc > 1 ? 1 : AHEAD))
            return;
        for (int i = 0; i < q->nsrc; i++) {
            if (q->src[i].where == RD_PEER)
                __builtin_prefetch(rd_board_line(q->src[i].board, b->lines + q->at + q->from / RD_LL_LINE_DATA));
        }
    }
}

static inline bool peek(const rd_run_t *run, const rd_flat_step_t *q, char *board, uint64_t at, char *message)
{
    const rd_plan_t *plan = run->plan;

    if (plan->board.packed)
        return rd_board_peek_part(board, run->sign, at, plan->board.packed, q->from, message, q->bytes);
    return rd_board_peek(board, run->sign, at, message, q->bytes);
}

/* Looks for source i of the step. Returns false if it has not come. */
static inline bool find(rd_run_t *run, const rd_flat_step_t *q, uint64_t at, int i, char *message)
{
    if (peek(run, q, q->src[i].board, at, message))
        return true;
    run->plan->board.board->missing = i;
    run->waits_for = q->src[i].peer;
    return false;
}

/* Returns true if all messages of the step have come: they are in `message`, and src[] says where each source is. What
 * was missing the last time is looked for first, so a rank that waits looks at one line. */
static inline bool take(rd_run_t *run, const rd_flat_step_t *q, uint64_t at, char (*message)[RD_LL_MOST],
                        const char **src)
{
    const rd_plan_t *plan = run->plan;
    int late = plan->board.board->missing;

    if (late >= 0 && !find(run, q, at, late, message[late]))
        return false;
    for (int i = 0; i < q->nsrc; i++) {
        if (q->src[i].where != RD_PEER)
            src[i] = rd_flat_address(run, &q->src[i]);
        else if (i == late || find(run, q, at, i, message[i]))
            src[i] = message[i];
        else
            return false;
        if (q->src[i].where == RD_IN && plan->reducer.load)
            src[i] = rd_flat_load(run, q, src[i]);
    }
    plan->board.board->missing = -1;
    return true;
}

/* Returns true if the step was done. */
static inline bool step(rd_run_t *run, const rd_flat_step_t *q)
{
    const rd_plan_t *plan = run->plan;
    rd_board_t *b = plan->board.board;
    const uint64_t at = b->lines + q->at;
    _Alignas(64) char message[RD_MAX_ENDS][RD_LL_MOST];
    _Alignas(64) char sum[RD_LL_MOST];
    const char *src[RD_MAX_ENDS];

    src[0] = NULL; /* all of them would be as many stores at each call */
    for (int i = 0; i < q->ndst; i++) {
        if (q->dst[i].where == RD_PEER &&
            !rd_board_has_room(b, RD_READ_LINES, at + q->lines, RD_BOARD_LINES, &run->waits_for))
            return false;
    }
    if (!take(run, q, at, message, src))
        return false;
    const char *from = rd_flat_value(run, q, src, sum);
    for (int i = 0; i < q->ndst; i++) {
        if (q->dst[i].where == RD_PEER)
            rd_board_write(b->of[b->self], run->sign, at, from, q->bytes);
        else if (rd_flat_address(run, &q->dst[i]) != from)
            rd_copy(rd_flat_address(run, &q->dst[i]), from, q->bytes);
    }
    return true;
}

/* The first lines that this rank writes in the next operation are claimed, which other caches hold: as after
 * rd_ll_send. */
static void end(rd_run_t *run)
{
    const rd_plan_t *plan = run->plan;
    rd_board_t *b = plan->board.board;
    size_t lines = plan->board.passes * plan->board.numbers * plan->board.stride;

    rd_board_end_lines(b, lines);
    for (uint32_t i = 0; i < plan->board.claimed; i++)
        rd_line_claim(rd_board_line(b->of[b->self], b->lines + plan->board.first + i));
    if (plan->finish_bytes)
        plan->reducer.finish(run->out + plan->finish_offset, plan->finish_bytes / plan->element, plan->reducer.arg);
}

bool rd_board_advance(rd_run_t *run)
{
    const rd_plan_t *plan = run->plan;
    int first = run->flat;

    for (; run->flat < plan->nflat; run->flat++) {
        fetch_ahead(plan->board.board, run);
        if (!step(run, &plan->flat[run->flat]))
            break;
    }
    run->open = run->flat < plan->nflat;
    if (!run->open)
        end(run);
    return run->flat != first || !run->open;
}

bool rd_board_ready(rd_run_t *run, const rd_step_t *step, rd_board_slot_t slot)
{
    const rd_plan_t *plan = run->plan;
    rd_board_t *b = plan->board.board;

    for (int i = 0; i < step->nsrc; i++) {
        const rd_recv_t *recv = step->src[i].where == RD_PEER ? plan->recvs[step->src[i].index] : NULL;
        if (recv && !rd_board_arrived(b->of[recv->peer], run->sign, slot)) {
            run->waits_for = recv->peer;
            return false;
        }
    }
    for (int i = 0; i < step->ndst; i++) {
        if (step->dst[i].where == RD_PEER &&
            !rd_board_has_room(b, RD_READ_BYTES, slot.end, RD_BOARD_BYTES, &run->waits_for))
            return false;
    }
    return true;
}
