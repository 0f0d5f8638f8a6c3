/* rondo-ras analyse: what ranks got, by the hashes of RONDO_HASH. */
#include <stdlib.h>

#include "monitor/verdict.h"
#include "ras_analysis.h"
#include "sched/program.h"

/* Every rank gets the same of these. A broadcast's root gets what it gives. */
static bool gives_all_the_same(int kind)
{
    return kind == RD_ALLREDUCE || kind == RD_BROADCAST || kind == RD_ALLGATHER;
}

/* Sorts the ranks by what they got in the call; -1: that is not known. Returns the call if they differ, else NULL. */
static const rd_monitor_event_t *sort_outputs(analysis_t *a, uint64_t number, int *sort, uint64_t *outputs, int *nsorts)
{
    const rd_monitor_event_t *call = NULL;
    uint64_t first;

    *nsorts = 0;
    for (int i = 0; i < a->nmembers; i++) {
        const rd_history_run_t *r = ras_run_at(a, &a->members[i], number, &first);
        const bool known = r && gives_all_the_same(r->event.kind) && r->event.output;
        const bool gives = known && r->event.kind == RD_BROADCAST && r->event.input;
        const uint64_t output = !known ? 0 : gives ? r->event.input : r->event.output;
        sort[i] = -1;
        for (int k = 0; known && k < *nsorts && sort[i] < 0; k++)
            if (outputs[k] == output)
                sort[i] = k;
        if (!known || sort[i] >= 0)
            continue;
        call = &r->event;
        sort[i] = *nsorts;
        outputs[(*nsorts)++] = output;
    }
    return *nsorts > 1 ? call : NULL;
}

static void say_outputs(analysis_t *a, const char *name, uint64_t number, const rd_monitor_event_t *call,
                        const int *sort, const uint64_t *outputs, int nsorts)
{
    char text[2048] = "";
    int most = 0, others = 0;

    for (int k = 0; k < nsorts; k++)
        most = ras_count_of(a, sort, k) > ras_count_of(a, sort, most) ? k : most;
    ras_add(text, sizeof text, "ranks did not get the same, for the first time in collective number %llu, ",
            (unsigned long long)number);
    ras_add_call(call, text, sizeof text);
    for (int i = 0; i < nsorts; i++) {
        const int k = i + 1 == nsorts ? most : i < most ? i : i + 1; /* most of them come last */
        if (i >= RAS_SORTS && k != most) {
            others += ras_count_of(a, sort, k);
            continue;
        }
        ras_add(text, sizeof text, "%s", i ? "; " : ": ");
        if (others)
            ras_add(text, sizeof text, "%d more got something else; ", others);
        ras_add_ranks(a, sort, k, text, sizeof text);
        ras_add(text, sizeof text, " got %016llx", (unsigned long long)outputs[k]);
    }
    ras_say(a, RD_VERDICT_BLAMED, name, text);
}

/* Calls that were hashed are runs of one call. */
void ras_outputs(analysis_t *a, const rd_stream_t *s, const char *name)
{
    int *sort = calloc((size_t)a->nmembers + 1, sizeof *sort), nsorts;
    uint64_t *outputs = calloc((size_t)a->nmembers + 1, sizeof *outputs);
    const rd_monitor_event_t *call = NULL;

    a->memory |= !sort || !outputs;
    for (int i = 0; i < a->nmembers; i++)
        a->members[i].at = 0;
    for (size_t i = 0; sort && outputs && i < s->ends && !call; i++) {
        uint64_t number = a->streams->ends[s->first + i];
        call = number < s->start ? NULL : sort_outputs(a, number, sort, outputs, &nsorts);
        if (call)
            say_outputs(a, name, number, call, sort, outputs, nsorts);
    }
    free(sort);
    free(outputs);
}
