/* One JSON object: what was run, where, and a result for every size; of several operations a list of such objects.
 * Times in microseconds, bandwidths in GB/s. */
#include "perf.h"

static bool first;

static void begin(const options_t *options)
{
    machine_t machine;

    machine_describe(&machine);
    first = true;
    if (options->nops > 1)
        printf(options->number == 0 ? "[\n" : ",\n");
    printf("{\n  \"program\": \"rondo-perf\",\n  \"version\": %d,\n  \"operation\": \"%s\",\n", rondo_version(),
           options->op->name);
    printf("  \"type\": \"%s\",\n  \"op\": \"%s\",\n  \"root\": %d,\n  \"ranks\": %d,\n", type_name(options->type),
           options->op->reduces ? reduction_name(options->reduction) : "none", options->op->rooted ? options->root : -1,
           world.nranks);
    printf("  \"launcher\": \"%s\",\n  \"memory\": \"%s\",\n  \"graph\": %s,\n  \"in_place\": %s,\n  \"registered\": "
           "%s,\n",
           world.launcher, options->cuda ? "cuda" : "host", options->graph ? "true" : "false",
           options->in_place || options->op->in_place_only ? "true" : "false", options->registered ? "true" : "false");
    printf("  \"offset\": %zu,\n  \"skew\": %s,\n  \"pieces\": %d,\n  \"turns\": %d,\n", options->offset,
           options->skew ? "true" : "false", options->pieces, options->turns);
    printf("  \"algo\": \"%s\",\n  \"proto\": \"%s\",\n", options->algo ? options->algo : "",
           options->proto ? options->proto : "");
    printf("  \"peer\": \"%s%s\",\n",
           options->peer == PEER_MPI    ? peer_mpi_version()
           : options->peer == PEER_NCCL ? peer_nccl_version()
           : options->peer == PEER_SELF ? "self:"
           : options->peer == PEER_COPY ? "copy"
                                        : "none",
           options->peer == PEER_SELF ? options->peer_algo : "");
    printf("  \"machine\": {\"cpu\": \"%s\", \"cores\": %d, \"cores_a_rank\": %d, \"memory_mb\": %ld, \"system\": "
           "\"%s\"},\n",
           machine.cpu, machine.cores, machine.allowed, machine.memory_mb, machine.system);
    printf("  \"results\": [");
    fflush(stdout);
}

static void print_stats(const char *name, const stats_t *stats, double scale)
{
    printf(", \"%s\": {\"median\": %.6g, \"low\": %.6g, \"high\": %.6g, \"min\": %.6g, \"max\": %.6g}", name,
           stats->median * scale, stats->low * scale, stats->high * scale, stats->min * scale, stats->max * scale);
}

static void percentiles(const char *whose, const side_t *side)
{
    printf(", \"%sp50_us\": %.6g, \"%sp99_us\": %.6g, \"%smax_us\": %.6g", whose, side->p50 * 1e6, whose,
           side->p99 * 1e6, whose, side->slowest * 1e6);
}

static void row(const options_t *options, const row_t *row, const row_t *in)
{
    double algbw = (double)row->moved / row->mine.time.median * 1e-9;

    (void)in;
    printf("%s\n    {\"bytes\": %zu, \"count\": %zu, \"calls_a_turn\": %ld", first ? "" : ",", row->bytes, row->count,
           row->iters);
    first = false;
    print_stats("time_us", &row->mine.time, 1e6);
    printf(", \"algbw\": %.6g, \"busbw\": %.6g", algbw, algbw * op_bus_factor(options->op, world.nranks));
    if (row->has_peer) {
        print_stats("peer_us", &row->peer.time, 1e6);
        print_stats("ratio", &row->ratio, 1);
    }
    if (options->percentiles)
        percentiles("", &row->mine);
    if (options->percentiles && row->has_peer)
        percentiles("peer_", &row->peer);
    if (row->wrong >= 0)
        printf(", \"wrong\": %ld}", row->wrong);
    else
        printf(", \"wrong\": null}");
    fflush(stdout);
}

static void end(const options_t *options, long wrong)
{
    printf("\n  ],\n  \"wrong\": %ld\n}\n", wrong);
    if (options->nops > 1 && options->number == options->nops - 1)
        printf("]\n");
}

const output_t output_json = {begin, row, end};
