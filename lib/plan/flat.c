/* Makes flat plans: see flat.h. */
#include "plan/flat.h"

#include <stdlib.h>

#include "plan/plan.h"

static void resolve(const rd_plan_t *plan, int32_t shift, rd_end_t e, int source, rd_flat_end_t *end)
{
    int32_t chunk = (e.index + shift) % plan->program->nchunks;

    end->where = (rd_where_t)e.where;
    switch (end->where) {
    case RD_IN:
        end->offset = (ptrdiff_t)rd_chunk_offset(&plan->in, chunk);
        break;
    case RD_OUT:
        end->offset = (ptrdiff_t)rd_chunk_offset(&plan->out, chunk);
        break;
    case RD_TMP:
        end->offset = (ptrdiff_t)((size_t)e.index * plan->slice);
        break;
    case RD_PEER:
        end->peer = plan->board.board && source ? plan->recvs[e.index]->peer : 0;
        if (plan->board.board && source)
            end->board = plan->board.board->of[end->peer];
        else if (source)
            end->recv = plan->recvs[e.index];
        else
            end->send = plan->sends[e.index];
        break;
    }
}

/* Returns where the messages with a chunk lie on their senders' boards. */
static uint32_t line_of(const rd_plan_t *plan, int32_t chunk)
{
    const rd_board_plan_t *board = &plan->board;

    if (!board->by_chunk)
        return 0;
    return (uint32_t)(chunk - (board->skips_root && chunk > plan->desc.root)) * (uint32_t)board->stride;
}

static size_t resolve_step(const rd_plan_t *plan, const rd_step_t *step, int32_t shift, uint64_t tag, rd_flat_step_t *q)
{
    int32_t chunk = (step->chunk + shift) % plan->program->nchunks;
    size_t bytes = rd_chunk_bytes(step->src[0].where == RD_IN ? &plan->in : &plan->out, chunk);

    *q = (rd_flat_step_t){step->nsrc,
                          step->ndst,
                          (uint32_t)bytes,
                          (uint32_t)((bytes + RD_LL_LINE_DATA - 1) / RD_LL_LINE_DATA),
                          bytes / plan->element,
                          tag,
                          line_of(plan, chunk),
                          plan->board.packed ? (uint32_t)rd_chunk_offset(&plan->in, chunk) : 0,
                          {{0}},
                          {{0}}};
    for (int i = 0; i < step->nsrc; i++)
        resolve(plan, shift, step->src[i], 1, &q->src[i]);
    for (int i = 0; i < step->ndst; i++)
        resolve(plan, shift, step->dst[i], 0, &q->dst[i]);
    return bytes;
}

/* Returns true if a plan by slots may be flat: its messages are short, one lane sends them all, each has one block
 * (exec/host/run_message.h has more), and they stay on the node, so that the walk need not ask how to write them, nor
 * tell a transport. */
static bool short_slots(const rd_plan_t *plan)
{
    const rd_program_t *program = plan->program;
    bool is_short = program->nlanes == 1;

    for (int i = 0; i < program->nsends; i++)
        is_short &= !plan->sends[i]->mirrored;
    for (int i = 0; i < program->nrecvs; i++)
        is_short &= !plan->recvs[i]->mirrored;
    for (int s = 0; s < program->nsteps; s++)
        is_short &= program->steps[s].part == RD_ALONE;
    for (int c = 0; c < program->nchunks; c++)
        is_short &=
            rd_chunk_bytes(&plan->in, c) <= RD_FLAT_SLOT_MOST && rd_chunk_bytes(&plan->out, c) <= RD_FLAT_SLOT_MOST;
    return is_short;
}

static bool may_be_flat(const rd_plan_t *plan, const rd_lane_plan_t *lane)
{
    if (lane->announced || lane->passes > 1)
        return false;
    switch (lane->proto) {
    case RD_PROTO_LL:
    case RD_PROTO_BOARD_LL:
        return true;
    case RD_PROTO_SIMPLE:
        return short_slots(plan);
    default:
        return false;
    }
}

/* Returns the number of steps of all lanes, or 0 if the plan is not short. Lanes of one message each, which an
 * all-to-all has, may run one after the other if those that send come first: what a lane sends fits into a quarter of
 * the lines of its connection, and a peer that is still in this operation has taken all messages of earlier ones out of
 * them. Longer lanes might wait for each other. */
static int short_steps(const rd_plan_t *plan)
{
    const rd_program_t *program = plan->program;
    int steps = 0, lanes = 0, longest = 0;

    for (int i = 0; i < program->nlanes; i++) {
        const rd_lane_t *lane = &program->lanes[i];
        int here = 0;

        if (plan->lanes[i].passes == 0 && !plan->lanes[i].announced)
            continue;
        if (!may_be_flat(plan, &plan->lanes[i]))
            return 0;
        for (int s = lane->first; s < lane->first + lane->count; s++)
            here += program->steps[s].repeat;
        longest = here > longest ? here : longest;
        steps += here;
        lanes++;
    }
    if (plan->board.board)
        return steps;
    return (lanes > 1 && longest > 1) || steps > RD_FLAT_STEPS_MOST ? 0 : steps;
}

/* Of packed messages the first step that sends one writes all, and the others have nothing left to do. Returns false if
 * the step is one of those. */
static bool pack(const rd_plan_t *plan, rd_flat_step_t *q, bool *written)
{
    bool again = *written;

    if (!plan->board.packed || q->dst[0].where != RD_PEER)
        return true;
    q->bytes = (uint32_t)plan->board.packed;
    q->lines = (uint32_t)plan->board.stride;
    q->from = 0;
    q->src[0].offset = 0;
    *written = true;
    return !again;
}

static bool is_local(const rd_flat_step_t *q)
{
    for (int i = 0; i < q->ndst; i++)
        if (q->dst[i].where == RD_PEER)
            return false;
    return true;
}

/* A copy of what the step before it sends, as the root of a broadcast has, is one more destination of that step: to
 * walk over a step takes as many instructions as to send a line. Returns true if `q`, the next one, is that, and done.
 */
static bool join(const rd_plan_t *plan, const rd_flat_step_t *q)
{
    rd_flat_step_t *last = plan->nflat ? &plan->flat[plan->nflat - 1] : NULL;

    if (!last || plan->board.packed || last->nsrc != 1 || q->nsrc != 1 || last->ndst + q->ndst > RD_MAX_ENDS)
        return false;
    if (last->src[0].where != RD_IN || q->src[0].where != RD_IN || last->src[0].offset != q->src[0].offset)
        return false;
    if (last->bytes != q->bytes || last->tag != q->tag || last->at != q->at || !is_local(q))
        return false;
    for (int i = 0; i < q->ndst; i++)
        last->dst[last->ndst++] = q->dst[i];
    return true;
}

static void resolve_lane(rd_plan_t *plan, const rd_lane_t *lane, uint64_t tag)
{
    const rd_program_t *program = plan->program;
    bool written = false;

    for (int s = lane->first; s < lane->first + lane->count; s++) {
        const rd_step_t *step = &program->steps[s];
        for (int k = 0, shift = 0; k < step->repeat; k++) {
            rd_flat_step_t *q = &plan->flat[plan->nflat];
            plan->nflat += resolve_step(plan, step, shift, tag, q) != 0 && pack(plan, q, &written) && !join(plan, q);
            shift = (shift + step->stride + program->nchunks) % program->nchunks;
        }
    }
}

/* Returns the protocol of all lanes that have anything to do. */
static rd_proto_t first_proto(const rd_plan_t *plan)
{
    int i = 0;

    while (i + 1 < plan->program->nlanes && plan->lanes[i].passes == 0)
        i++;
    return plan->program->nlanes ? plan->lanes[i].proto : RD_PROTO_LL;
}

/* Notes which lines of its board this rank writes first: they are claimed at the end of the operation before. */
static void note_claims(rd_plan_t *plan)
{
    rd_board_plan_t *board = &plan->board;
    uint32_t all = board->numbers * (uint32_t)board->stride;

    for (int s = plan->nflat - 1; s >= 0; s--) {
        if (is_local(&plan->flat[s]))
            continue;
        board->first = plan->flat[s].at;
        board->claimed += plan->flat[s].lines;
    }
    if (board->claimed > all - board->first)
        board->claimed = all - board->first;
    if (board->claimed > RD_LL_CLAIM)
        board->claimed = RD_LL_CLAIM;
}

int rd_flat_plan(rd_plan_t *plan)
{
    const rd_program_t *program = plan->program;
    bool lines = plan->program->nlanes && plan->lanes[0].proto == RD_PROTO_BOARD_LL;
    int steps = plan->finish_bytes && !lines ? 0 : short_steps(plan);

    if (steps == 0 && !lines)
        return 0;
    plan->flat = calloc((size_t)steps + 1, sizeof *plan->flat);
    if (!plan->flat)
        return lines ? -1 : 0;
    plan->flat_by = first_proto(plan);
    for (int receives = 0; receives < 2; receives++) {
        for (int i = 0; i < program->nlanes; i++) {
            const rd_lane_t *lane = &program->lanes[i];
            int first = lane->count ? program->steps[lane->first].src[0].where == RD_PEER : 0;
            if (plan->lanes[i].passes && first == receives)
                resolve_lane(plan, lane, plan->lanes[i].tag);
        }
    }
    if (lines)
        note_claims(plan);
    return 0;
}
