/* The list of phases, and the elements that a phase moves: see phases.h. */
#include "sched/phases.h"

#include <stdlib.h>

struct rd_phase_table {
    struct rd_phase_table *next;
    size_t entry[];
};

rd_phase_t *rd_phases_add(rd_phases_t *p, const rd_phase_t *phase)
{
    if (p->failed)
        return NULL;
    if (p->count == p->room) {
        size_t room = p->room ? 2 * p->room : 8;
        rd_phase_t *more = realloc(p->list, room * sizeof *more);
        if (!more) {
            p->failed = true;
            return NULL;
        }
        p->list = more;
        p->room = room;
    }
    p->list[p->count] = *phase;
    return &p->list[p->count++];
}

size_t *rd_phases_table(rd_phases_t *p, size_t n)
{
    struct rd_phase_table *table = calloc(1, sizeof *table + n * sizeof *table->entry);

    if (!table) {
        p->failed = true;
        return NULL;
    }
    table->next = p->tables;
    p->tables = table;
    return table->entry;
}

void rd_phases_free(rd_phases_t *p)
{
    for (struct rd_phase_table *table; (table = p->tables);) {
        p->tables = table->next;
        free(table);
    }
    free(p->list);
    *p = (rd_phases_t){.list = NULL};
}

int rd_local_rank(const int *node_of, int rank)
{
    int local_rank = 0;

    for (int r = 0; r < rank; r++)
        local_rank += node_of[r] == node_of[rank];
    return local_rank;
}

/* Where block `number` lies, one behind the other unless `displs` says it. */
static size_t displacement(const size_t *counts, const size_t *displs, int number)
{
    size_t sum = 0;

    if (displs)
        return displs[number];
    for (int i = 0; i < number; i++)
        sum += counts[i];
    return sum;
}

size_t rd_phase_given(const rd_phase_t *f, int self, int to, rd_spot_t *spot)
{
    const rd_tables_t *t = &f->tables;

    *spot = f->from;
    if (f->tabled && t->in_counts) { /* alltoallv, reduce_scatterv */
        *spot = rd_spot_plus(f->from, displacement(t->in_counts, t->in_displs, to));
        return t->in_counts[to];
    }
    switch (f->coll) {
    case RD_REDUCE_SCATTER:
        *spot = rd_spot_plus(f->from, (size_t)to * (f->count + f->gap));
        return f->count;
    case RD_ALLGATHER:
        return f->tabled ? t->out_counts[self] : f->count;
    case RD_ALLTOALL:
        *spot = rd_spot_plus(f->from, (size_t)to * f->count);
        return f->count;
    case RD_SCATTER:
        *spot = rd_spot_plus(f->from, (size_t)to * f->count);
        return self == f->root ? f->count : 0;
    case RD_BROADCAST:
        return self == f->root ? f->count : 0;
    case RD_REDUCE:
    case RD_GATHER:
        return to == f->root ? f->count : 0;
    default:
        return f->count;
    }
}

size_t rd_phase_taken(const rd_phase_t *f, int self, int from, rd_spot_t *spot)
{
    const rd_tables_t *t = &f->tables;

    *spot = f->to;
    if (f->tabled && t->out_counts) { /* alltoallv, allgatherv */
        *spot = rd_spot_plus(f->to, displacement(t->out_counts, t->out_displs, from));
        return t->out_counts[from];
    }
    switch (f->coll) {
    case RD_REDUCE_SCATTER:
        return f->tabled ? t->in_counts[self] : f->count;
    case RD_ALLGATHER:
    case RD_ALLTOALL:
        *spot = rd_spot_plus(f->to, (size_t)from * f->count);
        return f->count;
    case RD_GATHER:
        *spot = rd_spot_plus(f->to, (size_t)from * f->count);
        return self == f->root ? f->count : 0;
    case RD_REDUCE:
        return self == f->root ? f->count : 0;
    case RD_SCATTER:
    case RD_BROADCAST:
        return from == f->root ? f->count : 0;
    default:
        return f->count;
    }
}
