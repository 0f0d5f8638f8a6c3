/* rondo-perf --plot: the rows of a run as a picture. An operation has a column: its time over the size, and below that
 * its bandwidth; the peer and what the machine itself gives (--bound) stand beside rondo. Rank 0 alone is here. */
#include <stdlib.h>
#include <string.h>

#include "perf.h"
#include "tools/chart.h"

#define BOUNDS_MOST 4096

typedef struct {
    char op[24];
    size_t bytes;
    double us;
} bound_t;

static chart_t *chart;
static bound_t *bounds;
static int nbounds;

/* The last number before " ranks" in a heading of rondo-perf's or of a probe's. */
static int ranks_in(const char *heading)
{
    const char *at = strstr(heading, " ranks");

    while (at && at > heading && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at ? atoi(at) : 0;
}

/* The rows for this number of ranks, of a table in rondo-perf's form. */
static void read_bounds(const options_t *options)
{
    char line[512], op[24] = "";
    FILE *f = fopen(options->bound, "r");

    bounds = calloc(BOUNDS_MOST, sizeof *bounds);
    if (!f || !bounds)
        die(NULL, "--bound %s: it cannot be read", options->bound);
    while (fgets(line, sizeof line, f)) {
        bound_t *b = &bounds[nbounds];
        size_t count;
        char name[24];

        if (sscanf(line, "# %*s %*[0-9.]: %23[a-z_],", name) == 1)
            snprintf(op, sizeof op, "%s", ranks_in(line) == world.nranks ? name : "");
        else if (op[0] && nbounds < BOUNDS_MOST && sscanf(line, "%zu %zu %lf", &b->bytes, &count, &b->us) == 3)
            memcpy(bounds[nbounds++].op, op, sizeof op);
    }
    fclose(f);
    if (nbounds == 0)
        die(NULL, "--bound %s: it has no rows of %d ranks; bench/probes/host_bound.c prints some", options->bound,
            world.nranks);
}

static const char *peer_name(const options_t *options)
{
    static char name[96];

    switch (options->peer) {
    case PEER_MPI:
        snprintf(name, sizeof name, "%.*s", (int)strcspn(peer_mpi_version(), ","), peer_mpi_version());
        return name;
    case PEER_NCCL:
        return peer_nccl_version();
    case PEER_SELF:
        snprintf(name, sizeof name, "rondo %s", options->peer_algo);
        return name;
    default:
        return "a copy of the result";
    }
}

/* Operations side by side. */
static int across(const options_t *options)
{
    return options->nops <= 4 ? options->nops : options->nops <= 6 ? 3 : 4;
}

static void captions(const options_t *options, char *title, size_t ntitle, char *caption, size_t ncaption)
{
    machine_t machine;

    machine_describe(&machine);
    snprintf(title, ntitle, "%d ranks, %s%s%s, %s", world.nranks, type_name(options->type),
             options->ops[0]->reduces ? " " : "", options->ops[0]->reduces ? reduction_name(options->reduction) : "",
             !options->cuda   ? "host memory"
             : options->graph ? "CUDA, from a graph"
                              : "CUDA, in a stream");
    snprintf(caption, ncaption,
             "%s, %d cores (%d for a rank), %ld MB; %s; rondo %d.%d.%d. Lines are medians of %d turns on the slowest "
             "rank, bands their quartiles%s.\n%s  (%d ranks by %s)",
             machine.cpu, machine.cores, machine.allowed, machine.memory_mb, machine.system, rondo_version() / 10000,
             rondo_version() / 100 % 100, rondo_version() % 100, options->turns,
             options->peer != PEER_NONE ? ", peer in turns with rondo" : "", options->command, world.nranks,
             world.launcher);
}

void plot_open(const options_t *options)
{
    int wide = across(options);
    char title[256], caption[2048];

    if (options->bound)
        read_bounds(options);
    captions(options, title, sizeof title, caption, sizeof caption);
    chart = chart_new(title, caption, wide);
    if (!chart)
        die(NULL, "no memory for a picture");
    /* row by row: the times of some operations, their bandwidths, the times of the next ones */
    for (int first = 0; first < options->nops; first += wide)
        for (int half = 0; half < 2; half++)
            for (int i = first; i < first + wide; i++) {
                bool there = i < options->nops && (half == 0 || options->ops[i]->layout != LAYOUT_NONE);

                chart_panel(chart, there ? options->ops[i]->name : "", half ? "bandwidth [GB/s]" : "time [µs]", !half);
            }
}

/* Bandwidths are shown where a call's time is not mostly latency, so their panel has no logarithm. */
static void add(const options_t *options, const char *name, chart_kind_t kind, const row_t *row, const stats_t *time)
{
    int wide = across(options);
    int panel = options->number / wide * 2 * wide + options->number % wide;
    double bytes = (double)row->bytes, moved = (double)row->moved * 1e-9;

    if (options->op->layout == LAYOUT_NONE)
        bytes = 0;
    chart_point(chart, panel, name, kind, bytes, time->median * 1e6, time->low * 1e6, time->high * 1e6);
    if (bytes > 0)
        chart_point(chart, panel + wide, name, kind, bytes, moved / time->median, moved / time->high,
                    moved / time->low);
}

void plot_row(const options_t *options, const row_t *row)
{
    add(options, "rondo", CHART_LINE, row, &row->mine.time);
    if (row->has_peer)
        add(options, peer_name(options), CHART_LINE, row, &row->peer.time);
    for (int i = 0; i < nbounds; i++)
        if (bounds[i].bytes == row->bytes && strcmp(bounds[i].op, options->op->name) == 0) {
            double s = bounds[i].us * 1e-6;

            add(options, "bare machine", CHART_PLAIN, row, &(stats_t){.median = s, .low = s, .high = s});
        }
}

bool plot_close(const options_t *options)
{
    const char *why = chart_write(chart, options->plot);

    free(bounds);
    if (why)
        fprintf(stderr, "rondo-perf: --plot %s: %s\n", options->plot, why);
    return !why;
}
