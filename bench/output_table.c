/* rondo-perf's own table: times with their spread, bandwidths, the peer and the ratio. Lines that are no row begin
 * with '#'. */
#include "perf.h"

static void begin(const options_t *options)
{
    bool in_place = options->in_place || options->op->in_place_only;
    machine_t machine;

    machine_describe(&machine);
    printf("# rondo-perf %d.%d.%d: %s, %s", rondo_version() / 10000, rondo_version() / 100 % 100, rondo_version() % 100,
           options->op->name, type_name(options->type));
    if (options->op->reduces)
        printf(" %s", reduction_name(options->reduction));
    if (options->op->rooted)
        printf(", root %d", options->root);
    printf(", %d ranks, %s, %s\n", world.nranks,
           !options->cuda   ? "host memory"
           : options->graph ? "CUDA, from a graph"
                            : "CUDA, in a stream",
           in_place ? "in place" : "out of place");
    printf("# %s; %d cores (%d for a rank), %ld MB; %s\n", machine.cpu, machine.cores, machine.allowed,
           machine.memory_mb, machine.system);
    if (options->peer == PEER_MPI)
        printf("# peer: %s, in turns; ratio = peer / rondo, median of %d turns: above 1, rondo is faster\n",
               peer_mpi_version(), options->turns);
    if (options->peer == PEER_NCCL)
        printf("# peer: %s, in turns; ratio = peer / rondo, median of %d turns: above 1, rondo is faster\n",
               peer_nccl_version(), options->turns);
    if (options->peer == PEER_SELF)
        printf("# peer: RONDO_ALGO=%s, in turns; ratio = peer / rondo, median of %d turns\n", options->peer_algo,
               options->turns);
    if (options->peer == PEER_COPY)
        printf(
            "# peer: a copy of the result on every rank, in turns; ratio = copy / rondo: the part of memory's bound\n");
    printf("#%11s %11s %10s %10s %10s %8s %8s %6s", "bytes", "count", "time us", "min", "max", "algbw", "busbw",
           "#wrong");
    if (options->peer != PEER_NONE)
        printf(" %10s %7s %7s %7s", "peer us", "ratio", "low", "high");
    if (options->percentiles)
        printf(" %10s %10s %10s", "p50 us", "p99 us", "max us");
    if (options->percentiles && options->peer != PEER_NONE)
        printf(" %10s %10s %10s", "peer p50", "p99", "max");
    printf("\n#%11s %11s %10s %10s %10s %8s %8s %6s", "", "", "(median)", "", "", "(GB/s)", "(GB/s)", "");
    if (options->peer != PEER_NONE)
        printf(" %10s %7s %7s %7s", "(median)", "", "(25 %)", "(75 %)");
    printf("\n");
    fflush(stdout);
}

static void percentiles(const side_t *side)
{
    printf(" %10.3f %10.3f %10.3f", side->p50 * 1e6, side->p99 * 1e6, side->slowest * 1e6);
}

static void row(const options_t *options, const row_t *row, const row_t *in)
{
    double algbw = (double)row->moved / row->mine.time.median * 1e-9;

    (void)in;
    printf("%12zu %11zu %10.3f %10.3f %10.3f %8.3f %8.3f ", row->bytes, row->count, row->mine.time.median * 1e6,
           row->mine.time.min * 1e6, row->mine.time.max * 1e6, algbw, algbw * op_bus_factor(options->op, world.nranks));
    if (row->wrong < 0)
        printf("%6s", "N/A");
    else
        printf("%6ld", row->wrong);
    if (row->has_peer)
        printf(" %10.3f %7.2f %7.2f %7.2f", row->peer.time.median * 1e6, row->ratio.median, row->ratio.low,
               row->ratio.high);
    else if (options->peer != PEER_NONE)
        printf(" %10s %7s %7s %7s", "-", "-", "-", "-");
    if (options->percentiles)
        percentiles(&row->mine);
    if (options->percentiles && row->has_peer)
        percentiles(&row->peer);
    printf("\n");
    fflush(stdout);
}

static void end(const options_t *options, long wrong)
{
    if (wrong > 0)
        printf("# WRONG: %ld elements\n", wrong);
    else if (options->verify && options->op->layout != LAYOUT_NONE)
        printf("# all results right\n");
}

const output_t output_table = {begin, row, end};
