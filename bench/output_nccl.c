/* The columns of nccl-tests, out of place and in place, so that scripts made for all_reduce_perf read them. Peer and
 * ratio (out of place) come behind the last column. Where an operation has no form in place, the second half is
 * measured out of place again and its #wrong is N/A, as nccl-tests does. */
#include "perf.h"

static double sum_busbw;
static int halves;

static void begin(const options_t *options)
{
    machine_t machine;
    const char *more = options->peer == PEER_NONE ? "" : "       peer    ratio";

    machine_describe(&machine);
    sum_busbw = 0;
    halves = 0;
    printf("# nccl-tests version rondo-perf %d.%d.%d\n", rondo_version() / 10000, rondo_version() / 100 % 100,
           rondo_version() % 100);
    printf("# Collective test starting: %s\n", options->op->nccl_title);
    printf("# nThread 1 nGpus 1 minBytes %zu maxBytes %zu step: %zu(factor) warmup iters: %d iters: %d agg iters: 1 "
           "validation: %d graph: %d unalign: %zu\n#\n# Using devices\n",
           options->first, options->last, options->factor, options->warmup, options->iters, options->verify,
           options->graph, options->offset);
    for (int r = 0; r < world.nranks; r++)
        printf("#  Rank %2d Group %2d Pid %6d on %10s device %2d [%s] %s\n", r, 0, world.pids[r], "host", r,
               options->cuda ? "cuda" : "host", machine.cpu);
    printf("#\n# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          \n", "", "",
           "", "", "");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s %s\n", "size", "count", "type", "redop",
           "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong", more);
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s \n", "(B)", "(elements)", "", "", "",
           "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
    fflush(stdout);
}

/* As many digits as fit: 14.61, 10342.3, 123456. */
static void print_fitting(double value, int width)
{
    int digits = 1;

    for (double limit = 10; value >= limit && digits < 20; limit *= 10)
        digits++;
    printf("  %*.*f", width, digits < width - 2 ? 2 : digits < width - 1 ? 1 : 0, value);
}

static void half(const options_t *options, const row_t *row)
{
    double algbw = (double)row->moved / row->mine.time.median * 1e-9;
    double busbw = algbw * op_bus_factor(options->op, world.nranks);

    print_fitting(row->mine.time.median * 1e6, 7);
    print_fitting(algbw, 6);
    print_fitting(busbw, 6);
    if (row->wrong < 0)
        printf("  %6s", "N/A");
    else
        printf("  %6g", (double)row->wrong);
    sum_busbw += busbw;
    halves++;
}

static void row(const options_t *options, const row_t *out, const row_t *in)
{
    bool reduces = options->op->reduces || options->op->layout == LAYOUT_RING; /* sendrecv_perf prints sum */

    printf("%12zu  %12zu  %8s  %6s  %6d", out->bytes, out->count, type_nccl_name(options->type),
           reduces ? reduction_name(options->reduction) : "none", options->op->rooted ? options->root : -1);
    half(options, out);
    half(options, in);
    if (out->has_peer)
        printf("  %10.2f  %7.2f", out->peer.time.median * 1e6, out->ratio.median);
    printf("\n");
    fflush(stdout);
}

static void end(const options_t *options, long wrong)
{
    printf("# %-20s : %ld %s\n", "Out of bounds values", wrong, wrong ? "FAILED" : "OK");
    printf("# %-20s : %g \n#\n", "Avg bus bandwidth", halves ? sum_busbw / halves : 0);
    printf("# Collective test concluded: %s\n#\n\n", options->op->nccl_title);
}

const output_t output_nccl = {begin, row, end};
