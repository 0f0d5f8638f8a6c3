/* rondo-info doctor --network: the tables of rates and delays. Of many nodes there is no table, but a summary and the
 * worst pairs. */
#include <stdio.h>
#include <stdlib.h>

#include "doctor_nodes.h"

#define WORST 10

static const char *const stages[] = {[WAY_UNTRIED] = "-",
                                     [WAY_BLOCKED] = "blocked",
                                     [WAY_NO_START] = "fails",
                                     [WAY_NO_SMALL] = "mute",
                                     [WAY_NO_LARGE] = "stalls"};

static void table(const nodes_view_t *view, const char *title, bool rates)
{
    printf("\n%-24s", title);
    for (int to = 0; to < view->n; to++)
        printf(" %8d", to + 1);
    printf("\n");
    for (int from = 0; from < view->n; from++) {
        printf("%3d %-20.20s", from + 1, view->node[from].name);
        for (int to = 0; to < view->n; to++) {
            const nodes_way_t *way = nodes_way(view, from, to);
            if (from == to)
                printf(" %8s", ".");
            else if (way->stage != WAY_DONE)
                printf(" %8s", stages[way->stage]);
            else
                printf(" %8.*f", rates ? 2 : 1, rates ? way->gbps : way->us);
        }
        printf("\n");
    }
}

static void legend(const nodes_view_t *view)
{
    bool seen[WAY_DONE + 1] = {false};
    static const char *const words[] = {[WAY_UNTRIED] = "was not tried, because the other direction is blocked",
                                        [WAY_BLOCKED] = "no connection can be made",
                                        [WAY_NO_START] = "no communicator can be made",
                                        [WAY_NO_SMALL] = "short messages do not come through",
                                        [WAY_NO_LARGE] = "long messages do not come through"};

    for (int i = 0; i < view->n * view->n; i++)
        seen[view->way[i].stage] |= i / view->n != i % view->n;
    for (int s = 0; s < WAY_DONE; s++)
        if (seen[s])
            printf("%-8s %s\n", stages[s], words[s]);
}

static int slower(const void *a, const void *b)
{
    const nodes_way_t *x = *(nodes_way_t *const *)a, *y = *(nodes_way_t *const *)b;

    return (x->gbps > y->gbps) - (x->gbps < y->gbps);
}

static int longer(const void *a, const void *b)
{
    const nodes_way_t *x = *(nodes_way_t *const *)a, *y = *(nodes_way_t *const *)b;

    return (x->us < y->us) - (x->us > y->us);
}

static void line(const nodes_view_t *view, const nodes_way_t *way)
{
    int at = (int)(way - view->way);

    printf("  %-20s to %-20s %8.2f GB/s %8.1f us\n", view->node[at / view->n].name, view->node[at % view->n].name,
           way->gbps, way->us);
}

static void summary(const nodes_view_t *view)
{
    nodes_way_t **done = calloc((size_t)view->n * (size_t)view->n, sizeof *done);
    int n = 0, failed = 0;

    for (int i = 0; done && i < view->n * view->n; i++)
        if (i / view->n != i % view->n && view->way[i].stage == WAY_DONE)
            done[n++] = &view->way[i];
        else if (i / view->n != i % view->n)
            failed++;
    printf("\n%d ways measured, %d failed or not tried\n", n, failed);
    for (int rates = 1; rates >= 0 && n > 0; rates--) {
        qsort(done, (size_t)n, sizeof *done, rates ? slower : longer);
        if (rates)
            printf("\nGB/s: least %.2f, median %.2f, most %.2f; the least:\n", done[0]->gbps, done[n / 2]->gbps,
                   done[n - 1]->gbps);
        else
            printf("\nus: least %.1f, median %.1f, most %.1f; the most:\n", done[n - 1]->us, done[n / 2]->us,
                   done[0]->us);
        for (int i = 0; i < n && i < WORST; i++)
            line(view, done[i]);
    }
    free(done);
}

void doctor_matrix(const nodes_view_t *view)
{
    if (view->n < 2)
        return;
    if (view->n > NODES_LISTED) {
        summary(view);
        return;
    }
    table(view, "GB/s, row to column", true);
    table(view, "us, short messages", false);
    legend(view);
}
