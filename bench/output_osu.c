/* The columns of the OSU micro-benchmarks, so that scripts made for osu_allreduce and its sisters read them: size,
 * average latency over the ranks; with --full (OSU's -f) also the least and the greatest rank and the calls. What OSU
 * has no column for (peer, ratio) comes behind, where such scripts do not look. The times are of calls in a row, where
 * OSU puts a barrier between them. */

#include "perf.h"

#define WIDTH 18

static const char *mpi_name(rondo_type_t type)
{
    static const char *const names[RONDO_NUM_TYPES] = {
        [RONDO_INT8] = "MPI_INT8_T",
        [RONDO_UINT8] = "MPI_UINT8_T",
        [RONDO_INT16] = "MPI_INT16_T",
        [RONDO_UINT16] = "MPI_UINT16_T",
        [RONDO_INT32] = "MPI_INT",
        [RONDO_UINT32] = "MPI_UINT32_T",
        [RONDO_INT64] = "MPI_INT64_T",
        [RONDO_UINT64] = "MPI_UINT64_T",
        [RONDO_FLOAT32] = "MPI_FLOAT",
        [RONDO_FLOAT64] = "MPI_DOUBLE",
        [RONDO_COMPLEX64] = "MPI_C_FLOAT_COMPLEX",
        [RONDO_BOOL] = "MPI_C_BOOL",
        [RONDO_COMPLEX128] = "MPI_C_DOUBLE_COMPLEX",
    };

    return names[type] ? names[type] : type_name(type);
}

static bool has_size(const options_t *options)
{
    return options->op->layout != LAYOUT_NONE;
}

/* Theirs is the only one whose second column is a rate: of both directions, in MB/s. */
static bool is_rate(const options_t *options)
{
    return options->op->layout == LAYOUT_RING && options->op->windowed;
}

static double shown(const options_t *options, size_t bytes, double time)
{
    return is_rate(options) ? 2 * (double)bytes / time * 1e-6 : time * 1e6;
}

static void begin(const options_t *options)
{
    printf("\n# OSU MPI %s v7.4\n", options->op->osu_title);
    if (has_size(options))
        printf("# Datatype: %s.\n%-*s%*s", mpi_name(options->type), 10, "# Size", WIDTH,
               is_rate(options) ? "Bandwidth (MB/s)" : "Avg Latency(us)");
    else
        printf("# Avg Latency(us)");
    if (options->full)
        printf("%*s%*s%*s", WIDTH, "Min Latency(us)", WIDTH, "Max Latency(us)", 12, "Iterations");
    if (options->percentiles)
        printf("%*s%*s", WIDTH, "P50 Tail Lat(us)", WIDTH, "P99 Tail Lat(us)");
    if (options->peer != PEER_NONE)
        printf("%*s%*s", WIDTH, is_rate(options) ? "Peer (MB/s)" : "Peer(us)", 12, "Ratio");
    printf("\n");
    fflush(stdout);
}

static void row(const options_t *options, const row_t *row, const row_t *in)
{
    (void)in;
    if (has_size(options))
        printf("%-*zu%*.2f", 10, row->bytes, WIDTH, shown(options, row->bytes, row->mine.rank_mean));
    else
        printf("%*.2f", 17, row->mine.rank_mean * 1e6);
    if (options->full)
        printf("%*.2f%*.2f%*ld", WIDTH, row->mine.rank_min * 1e6, WIDTH, row->mine.rank_max * 1e6, 12,
               row->iters * options->turns);
    if (options->percentiles)
        printf("%*.2f%*.2f", WIDTH, row->mine.p50 * 1e6, WIDTH, row->mine.p99 * 1e6);
    if (row->has_peer)
        printf("%*.2f%*.2f", WIDTH, shown(options, row->bytes, row->peer.rank_mean), 12, row->ratio.median);
    printf("\n");
    fflush(stdout);
}

static void end(const options_t *options, long wrong)
{
    (void)options;
    if (wrong > 0)
        fprintf(stderr, "rondo-perf: %ld wrong elements\n", wrong);
}

const output_t output_osu = {begin, row, end};
