/* rondo-info plan --plot: what the cost model predicts of every algorithm over the message size, which of them would be
 * chosen, and as dots what a record of bench/record.py has measured of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "chart.h"
#include "info_plot.h"
#include "topo/topo.h"

#define FIRST 8
#define LAST ((size_t)64 << 20)
#define PANEL 0

/* The text of a member of a line of JSON, as bench/record.py writes it: without spaces. */
static bool member(const char *line, const char *name, char *text, size_t room)
{
    char key[32];
    const char *at;

    snprintf(key, sizeof key, "\"%s\":", name);
    at = strstr(line, key);
    if (!at)
        return false;
    at += strlen(key);
    at += *at == '"';
    snprintf(text, room, "%.*s", (int)strcspn(at, "\",}"), at);
    return true;
}

/* A row of this operation and number of ranks becomes a dot. An algorithm is named as in RONDO_ALGO, perhaps with a
 * protocol: "ring/ll". */
static int dot(chart_t *chart, const info_plot_t *plot, const char *line)
{
    char op[24], nodes[24], mode[16], bytes[24], us[24], algo[48] = "chosen", name[64], wanted[24];
    double x, y;

    snprintf(wanted, sizeof wanted, "%d", plot->args.shape->nranks);
    if (!member(line, "op", op, sizeof op) || !member(line, "nodes", nodes, sizeof nodes) ||
        !member(line, "mode", mode, sizeof mode) || !member(line, "bytes", bytes, sizeof bytes) ||
        !member(line, "us", us, sizeof us) || strcmp(op, rd_coll_name(plot->args.coll)) != 0 ||
        strcmp(nodes, wanted) != 0 || strcmp(mode, "host") != 0)
        return 0;
    (void)member(line, "algo", algo, sizeof algo);
    algo[strcspn(algo, "/")] = '\0';
    snprintf(name, sizeof name, "%s, measured", algo);
    x = atof(bytes);
    y = atof(us);
    chart_point(chart, PANEL, name, CHART_DOTS, x, y, y, y);
    return 1;
}

static int dots(chart_t *chart, const info_plot_t *plot)
{
    char line[1024];
    int found = 0;
    FILE *f = fopen(plot->record, "r");

    while (f && fgets(line, sizeof line, f))
        found += dot(chart, plot, line);
    if (f)
        fclose(f);
    if (!found)
        fprintf(stderr, "rondo-info plan: --measured %s: it %s\n", plot->record,
                f ? "has no rows of this operation and these ranks on one node" : "cannot be read");
    return found ? 0 : 1;
}

/* Every algorithm at its best protocol and message size, and below them the one that would be chosen. False: nothing
 * serves this size, because it is too short for a whole element each or because of what is forced. */
static bool one_size(chart_t *chart, const info_plot_t *plot, size_t bytes)
{
    static rd_choice_t all[RD_CHOICES_MOST];
    rd_choose_args_t args = plot->args;
    rd_choice_t best;
    int nall = RD_CHOICES_MOST;

    args.bytes = bytes * plot->blocks / args.type_size * args.type_size;
    if (args.coll == RD_REDUCE_SCATTER)
        args.bytes -= args.bytes % ((size_t)args.shape->nranks * args.type_size);
    if (args.bytes == 0 || rd_choose(&args, &best, all, &nall, NULL) != RONDO_SUCCESS)
        return false;
    for (int i = 0; i < nall && !all[i].excluded; i++) {
        bool seen = false;

        for (int j = 0; j < i; j++)
            seen |= all[j].algo == all[i].algo;
        if (!seen) /* the cheapest comes first */
            chart_point(chart, PANEL, all[i].algo->name, CHART_PLAIN, (double)bytes, all[i].us, all[i].us, all[i].us);
    }
    chart_point(chart, PANEL, "chosen", CHART_UNDER, (double)bytes, best.us, best.us, best.us);
    return true;
}

static chart_t *empty_chart(const info_plot_t *plot, char *title)
{
    char caption[1024];
    const rd_choose_args_t *a = &plot->args;
    chart_t *chart;

    snprintf(title, 128, "%s, %d ranks on %d %s", rd_coll_name(a->coll), a->shape->nranks, a->shape->nnodes,
             a->shape->nnodes == 1 ? "node" : "nodes");
    snprintf(caption, sizeof caption,
             "Predicted by the cost model with the prices of %s, %d cores a node: each algorithm at its best protocol "
             "and message size.%s%s%s\n$ rondo-info plan %s --ranks %d --plot %s",
             plot->prices, a->cores, plot->record ? " Dots were measured: " : "", plot->record ? plot->record : "",
             plot->record ? "." : "", rd_coll_name(a->coll), a->shape->nranks, plot->file);
    chart = chart_new(title, caption, 1);
    if (chart)
        chart_panel(chart, "predicted time of a call", "time [µs]", true);
    return chart;
}

int info_plan_plot(const info_plot_t *plot)
{
    char title[128];
    chart_t *chart = empty_chart(plot, title);
    bool bad, drawn = false;
    const char *why;

    if (chart)
        chart_large(chart);
    rd_log_set_level(RD_LOG_NONE); /* a size that a forced algorithm cannot serve is left out */
    for (size_t bytes = FIRST; bytes <= LAST && chart; bytes *= 2)
        drawn |= one_size(chart, plot, bytes);
    if (drawn)
        rd_log_set_level((rd_log_level_t)plot->args.env->debug);
    bad = !drawn || (plot->record && dots(chart, plot) != 0);
    if (bad) {
        chart_free(chart);
        return 1;
    }
    why = chart_write(chart, plot->file);
    if (why)
        fprintf(stderr, "rondo-info plan: --plot %s: %s\n", plot->file, why);
    return why != NULL;
}
