/* See board_plan.h. Every rank computes the same numbers, because all arguments are equal on all ranks. */
#include "plan/board_plan.h"

#include "plan/plan.h"
#include "transport/shm/board.h"

/* In an allgather a rank sends its own block alone. */
static bool by_chunk(rd_coll_t coll)
{
    return coll != RD_ALLGATHER;
}

static size_t stride_of(rd_proto_t proto, size_t bytes)
{
    size_t slot = RD_BOARD_SLOT_LEAST;

    if (proto == RD_PROTO_BOARD_LL)
        return rd_ll_lines(bytes);
    while (slot < bytes)
        slot *= 2;
    return slot;
}

bool rd_board_fits(rd_coll_t coll, int nchunks, rd_proto_t proto, size_t bytes)
{
    size_t numbers = by_chunk(coll) ? (size_t)nchunks : 1, ring;

    ring = proto == RD_PROTO_BOARD_LL ? RD_BOARD_LINES : RD_BOARD_BYTES;
    return numbers * stride_of(proto, bytes) <= ring / 2;
}

/* The blocks of a scatter or reduce_scatter that all lie in the writer's input are written as one message if that is
 * short: eight bytes each for 32 ranks are 5 lines then, not 31. Each reader takes its own. Not where they are scaled
 * as they are read, for which there is scratch of one block alone; and not in a scatter whose blocks by themselves take
 * no more lines: a reader whose block lies across the end of a line would wait for two, as among two ranks that get 32
 * bytes each. */
static size_t packed(const rd_plan_t *plan, rd_proto_t proto, size_t bytes)
{
    rd_coll_t coll = plan->desc.coll;
    size_t readers = (size_t)plan->program->nchunks - 1;

    if (proto != RD_PROTO_BOARD_LL || (coll != RD_SCATTER && coll != RD_REDUCE_SCATTER))
        return 0;
    if (plan->tables || plan->reducer.load || plan->in.total > RD_LL_MOST)
        return 0;
    return coll == RD_SCATTER && rd_ll_lines(plan->in.total) >= readers * rd_ll_lines(bytes) ? 0 : plan->in.total;
}

void rd_board_plan(rd_plan_t *plan, rd_board_t *board, rd_proto_t proto, size_t bytes, size_t slice)
{
    bool chunks = by_chunk(plan->desc.coll);

    if (proto == RD_PROTO_BOARD_LL) /* all of it in one message */
        slice = bytes ? (bytes + RD_LINE - 1) / RD_LINE * RD_LINE : RD_LINE;
    plan->board = (rd_board_plan_t){.board = board,
                                    .numbers = chunks ? (uint32_t)plan->program->nchunks : 1,
                                    .by_chunk = chunks,
                                    .stride = stride_of(proto, proto == RD_PROTO_BOARD_LL ? bytes : slice),
                                    .passes = (bytes + slice - 1) / slice,
                                    .slice = slice,
                                    .packed = packed(plan, proto, bytes)};
    if (proto == RD_PROTO_BOARD_LL && plan->desc.coll == RD_SCATTER && plan->board.numbers > 1) {
        plan->board.skips_root = true;
        plan->board.numbers--;
    }
    if (plan->board.packed) {
        plan->board.numbers = 1;
        plan->board.by_chunk = false;
        plan->board.stride = stride_of(proto, plan->board.packed);
    }
}
