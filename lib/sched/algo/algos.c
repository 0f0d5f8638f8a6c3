/* The registry of collectives and algorithms by name. It is the table in which the planner, the executors, the checker
 * and the tools find the cards that the files of local.mk define.
 */
#include <string.h>

#include "base/word_list.h"
#include "sched/algo/algos.h"

static const char *const coll_names[RD_NUM_COLLS] = {
    [RD_ALLREDUCE] = "allreduce", [RD_REDUCE] = "reduce",     [RD_BROADCAST] = "broadcast",
    [RD_ALLGATHER] = "allgather", [RD_ALLTOALL] = "alltoall", [RD_REDUCE_SCATTER] = "reduce_scatter",
    [RD_GATHER] = "gather",       [RD_SCATTER] = "scatter",   [RD_BARRIER] = "barrier",
};

const rd_algo_t *const rd_algos[] = {
#define RD_CARD(card) &card,
#include "sched/algo/cards.h"
#undef RD_CARD
    NULL,
};

_Static_assert(sizeof rd_algos / sizeof rd_algos[0] <= RD_ALGOS_MOST + 1, "a row for each in tables of prices");

const char *rd_coll_name(rd_coll_t coll)
{
    return (unsigned)coll < RD_NUM_COLLS ? coll_names[coll] : "unknown";
}

int rd_coll_named(const char *name, bool *tables)
{
    for (int c = 0; c < RD_NUM_COLLS; c++) {
        const size_t n = strlen(coll_names[c]);
        *tables = strncmp(name, coll_names[c], n) == 0 && strcmp(name + n, "v") == 0;
        if (*tables || strcmp(name, coll_names[c]) == 0)
            return c;
    }
    return RD_NUM_COLLS;
}

int rd_coll_parse(const char *name, rd_coll_t *coll)
{
    bool tables;
    const int found = rd_coll_named(name, &tables);

    if (found == RD_NUM_COLLS || tables)
        return -1;
    *coll = (rd_coll_t)found;
    return 0;
}

const rd_algo_t *rd_algo_find(const char *name)
{
    return rd_algo_named(name, strlen(name));
}

const rd_algo_t *rd_algo_named(const char *name, size_t length)
{
    for (int a = 0; rd_algos[a]; a++)
        if (rd_word_is(rd_algos[a]->name, name, length))
            return rd_algos[a];
    return NULL;
}

int rd_algo_number(const rd_algo_t *algo)
{
    int number = 0;

    while (rd_algos[number] != algo)
        number++;
    return number;
}

const char *rd_sched_any(const rd_sched_args_t *args)
{
    (void)args;
    return NULL;
}
