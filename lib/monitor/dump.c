/* What all formats of dumps need: the rings, and the numbers of the processes. See dump.h. */
#include "monitor/dump.h"

#include <stdlib.h>
#include <string.h>

bool rd_dump_has(const rd_dump_t *dump, int process)
{
    return !dump->job || dump->view->processes[process].job == dump->job;
}

/* ---- the numbers ---- */

static int launcher_number(const rd_dump_t *dump, int process)
{
    return dump->view->processes[process].reader.head.job_rank;
}

/* The process's rank in its first communicator. */
static int first_rank(const rd_dump_t *dump, int process)
{
    const rd_history_t *h = &dump->histories[process];

    return h->ncomms ? h->comms[0].rank : -1;
}

static int by_order(const rd_dump_t *dump, int process)
{
    int n = 0;

    for (int i = 0; i < process; i++)
        n += rd_dump_has(dump, i);
    return n;
}

/* Numbers all processes. Returns false if one has none, or two of a job have the same. */
static bool number_all(rd_dump_t *dump, int (*number)(const rd_dump_t *dump, int process))
{
    const rd_view_t *v = dump->view;

    for (int i = 0; i < v->nprocesses; i++) {
        if (!rd_dump_has(dump, i))
            continue;
        dump->numbers[i] = number(dump, i);
        for (int k = 0; k < i; k++)
            if (dump->numbers[k] == dump->numbers[i] && v->processes[k].job == v->processes[i].job)
                return false;
        if (dump->numbers[i] < 0)
            return false;
    }
    return true;
}

/* Returns false if there is no memory. */
static bool begin(rd_dump_t *dump, const rd_view_t *view, int job)
{
    size_t n = (size_t)view->nprocesses + 1;

    *dump = (rd_dump_t){.view = view,
                        .job = job,
                        .histories = calloc(n, sizeof *dump->histories),
                        .numbers = calloc(n, sizeof *dump->numbers)};
    return dump->histories && dump->numbers;
}

bool rd_dump_read_one(rd_dump_t *dump, const rd_view_t *view, int process, int number)
{
    bool good = begin(dump, view, 0) && rd_history_read(&dump->histories[process], &view->processes[process]);

    if (good)
        dump->numbers[process] = number;
    else
        rd_dump_free(dump);
    return good;
}

bool rd_dump_read(rd_dump_t *dump, const rd_view_t *view, int job)
{
    bool good = begin(dump, view, job);

    for (int i = 0; good && i < view->nprocesses; i++) {
        dump->numbers[i] = -1;
        good = !rd_dump_has(dump, i) || rd_history_read(&dump->histories[i], &view->processes[i]);
    }
    if (good && !number_all(dump, launcher_number) && !number_all(dump, first_rank))
        number_all(dump, by_order);
    if (!good)
        rd_dump_free(dump);
    return good;
}

void rd_dump_free(rd_dump_t *dump)
{
    for (int i = 0; dump->histories && i < dump->view->nprocesses; i++)
        rd_history_free(&dump->histories[i]);
    free(dump->histories);
    free(dump->numbers);
    memset(dump, 0, sizeof *dump);
}
