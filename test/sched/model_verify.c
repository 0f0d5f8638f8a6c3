/* What must come out of a run of the model: see model.h. */
#include "sched/model_parts.h"

static value_t expected(const model_t *m, int rank, int chunk, int pass)
{
    value_t sum = {0, 0};

    switch (m->args.coll) {
    case RD_BROADCAST:
    case RD_SCATTER:
        return model_leaf(m->args.root, chunk, pass);
    case RD_ALLGATHER:
    case RD_GATHER:
        return model_leaf(chunk, chunk, pass);
    case RD_ALLTOALL:
        return model_leaf(chunk, rank, pass);
    default:
        for (int r = 0; r < m->n; r++)
            sum.set += model_leaf(r, chunk, pass).set;
        return sum;
    }
}

/* One chunk on all ranks; for sums the order on the first rank is that of all. */
static int verify_chunk(model_t *m, int chunk)
{
    for (int p = 0; p < m->run->passes; p++) {
        value_t want = {0, 0};

        for (int r = 0; r < m->n; r++) {
            const value_t *cell = model_out_cell(m, r, chunk, p);

            if (cell == NULL || p >= model_length_out(m, r, chunk))
                continue;
            if (m->args.coll == RD_ALLTOALL || !model_written(&want))
                want = expected(m, r, chunk, p);
            if (m->reduces && want.order == 0)
                want.order = cell->order;
            if (cell->set != want.set)
                return model_wrong(m, NULL, "rank %d, chunk %d, pass %d: wrong result", r, chunk, p);
            if (cell->order != want.order)
                return model_wrong(m, NULL, "rank %d, chunk %d, pass %d: summed in another order", r, chunk, p);
        }
    }
    return 0;
}

int model_verify(model_t *m)
{
    for (int i = 0; i < m->ntasks; i++) {
        const task_t *t = &m->tasks[i];

        if (t->pass < t->passes)
            return model_wrong(m, t, "deadlock: %d of %d lanes ended", m->done, m->ntasks);
    }
    for (int i = 0; i < m->nlinks; i++)
        if (m->links[i].sent != m->links[i].taken)
            return model_wrong(m, NULL, "from rank %d to %d: %d messages sent, %d taken", m->links[i].from,
                               m->links[i].to, m->links[i].sent, m->links[i].taken);
    for (int i = 0; m->know != NULL && i < m->n * m->n; i++)
        if (!(m->know[i / m->n * m->words + i % m->n / 64] >> (i % m->n % 64) & 1))
            return model_wrong(m, NULL, "rank %d left before rank %d came", i / m->n, i % m->n);
    for (int c = 0; c < m->nchunks; c++)
        if (verify_chunk(m, c) != 0)
            return -1;
    return 0;
}
