/* The table of times that a tuner plugin changes: see tuner.h. */
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "nccl/tuner.h"

/* NCCL's numbers of algorithms and protocols. What rondo has not has no name here. */
static const char *const algos[NC_TUNER_ALGOS] = {"tree", "ring", "collnetdirect", "collnetchain", NULL, NULL, "pat"};
static const char *const protos[NC_TUNER_PROTOS] = {"ll", "ll128", "simple"};

/* What goes inside nodes first and then between them as `name` does is NCCL's algorithm, too: NCCL's rings and trees go
 * through the GPUs of a node before they leave it. */
static bool is_algo(const rd_tuner_candidate_t *c, const char *name)
{
    static const char inside[] = "hier_";

    if (c->nccl && strcasecmp(c->nccl, name) == 0)
        return true;
    return strncmp(c->algo, inside, sizeof inside - 1) == 0 && strcmp(c->algo + sizeof inside - 1, name) == 0;
}

/* Returns the candidate's cell, or -1 if NCCL has none for it. */
static int cell_of(const rd_tuner_candidate_t *c)
{
    for (int a = 0; a < NC_TUNER_ALGOS; a++)
        for (int p = 0; p < NC_TUNER_PROTOS; p++)
            if (algos[a] && strcmp(c->proto, protos[p]) == 0 && is_algo(c, algos[a]))
                return a * NC_TUNER_PROTOS + p;
    return -1;
}

void nc_tuner_fill(nc_tuner_table_t *t, const rd_tuner_candidate_t *of, int count)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < NC_TUNER_CELLS; i++) {
        t->cell[i] = NC_TUNER_NONE;
        t->best[i] = -1;
    }
    for (int i = count - 1; i >= 0; i--) { /* the first is the cheapest */
        int cell = cell_of(&of[i]);
        if (cell < 0)
            continue;
        t->cell[cell] = (float)of[i].us;
        t->best[cell] = i;
    }
}

static bool is_none(float us)
{
    return us == NC_TUNER_NONE;
}

/* The first of equal ones, as in NCCL. */
int nc_tuner_read(const nc_tuner_table_t *was, const nc_tuner_table_t *is, const char **why)
{
    int cheapest = -1;

    *why = NULL;
    if (memcmp(was->before, is->before, sizeof was->before) != 0 ||
        memcmp(was->behind, is->behind, sizeof was->behind) != 0)
        *why = "wrote beside the table";
    if (memcmp(was->cell, is->cell, sizeof was->cell) == 0)
        return -1;
    for (int i = 0; i < NC_TUNER_CELLS && !*why; i++) {
        if (isnan(is->cell[i]) || (is->cell[i] < 0 && !is_none(is->cell[i])))
            *why = isnan(is->cell[i]) ? "gave a time that is no number" : "gave a time below zero";
        else if (is_none(was->cell[i]) && !is_none(is->cell[i]))
            *why = "gave a time to a combination that was marked as missing";
        else if (!is_none(is->cell[i]) && (cheapest < 0 || is->cell[i] < is->cell[cheapest]))
            cheapest = i;
    }
    return *why ? -1 : cheapest;
}

int nc_tuner_slice(const rd_tuner_candidate_t *of, int count, int cell, size_t chunk)
{
    int found = -1, shortest = -1;

    for (int i = 0; i < count; i++) {
        if (cell_of(&of[i]) != cell)
            continue;
        if (of[i].slice <= chunk && (found < 0 || of[i].slice > of[found].slice))
            found = i;
        if (shortest < 0 || of[i].slice < of[shortest].slice)
            shortest = i;
    }
    return found >= 0 ? found : shortest;
}
