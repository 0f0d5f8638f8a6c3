/* Renames the ranks and blocks of a schedule: see visits.h. */
#include "sched/visits.h"

#include "sched/list.h"

/* Has each chunk an owner, rank c that of chunk c? Elsewhere chunks are parts of a whole. */
static bool has_blocks(rd_coll_t coll)
{
    return coll != RD_ALLREDUCE && coll != RD_BROADCAST && coll != RD_REDUCE && coll != RD_BARRIER;
}

static void end_rename(rd_end_t *end, const int *rank, bool blocks)
{
    if (end->where == RD_PEER || (blocks && (end->where == RD_IN || end->where == RD_OUT)))
        end->index = rank[end->index];
}

static void rename_all(rd_steps_t *s, const int *rank, bool blocks)
{
    for (int i = 0; i < s->nsteps; i++) {
        rd_step_t *step = &s->steps[i];

        if (blocks)
            step->chunk = rank[step->chunk];
        for (int k = 0; k < step->nsrc; k++)
            end_rename(&step->src[k], rank, blocks);
        for (int k = 0; k < step->ndst; k++)
            end_rename(&step->dst[k], rank, blocks);
    }
}

rd_steps_t *rd_visits_emit(const rd_algo_t *algo, const rd_sched_args_t *args, const rd_visits_t *order)
{
    if (!order->rank || !algo->ordered)
        return algo->emit(args);
    /* The order is node by node, so by places there is nothing left that a schedule would have to know of nodes. */
    const rd_shape_t shape = {args->shape->nranks, 1, NULL};
    rd_sched_args_t by_visit = *args;

    by_visit.shape = &shape;
    by_visit.rank = order->visit[args->rank];
    by_visit.root = order->visit[args->root];
    rd_steps_t *s = algo->emit(&by_visit);
    if (s && rd_steps_expand(s) == 0)
        rename_all(s, order->rank, has_blocks(args->coll));
    return s;
}
