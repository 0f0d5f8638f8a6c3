/* Time is taken in turns: rondo, the peer, rondo, the peer, ... each turn a loop of calls that takes some milliseconds,
 * begun together after a barrier and a few calls that are not counted (they bring the other side's caches and waiting
 * habits out of the way). A turn's time is the slowest rank's, a call. Both sides see the same minute of the same
 * machine, so that their ratio is steadier than either time. */
#include <stdlib.h>

#include "perf.h"

#define MAX_ITERS 1000000
#define MAX_CALIBRATED 65536

static double loop(const side_t *side, long calls)
{
    double start = now();

    if (side->graph) {
        long replays = (calls + GRAPH_CALLS - 1) / GRAPH_CALLS;
        for (long i = 0; i < replays; i++)
            device_replay(side->graph);
        device_wait();
        return (now() - start) * (double)calls / (double)(replays * GRAPH_CALLS);
    }
    for (long i = 0; i < calls; i++) {
        int error = side->call(side->job);

        if (error)
            die(side->job->comm, "%s of %zu bytes failed: %s", side->job->op->name, side->job->bytes,
                rondo_result_string((rondo_result_t)error));
    }
    device_wait();
    return now() - start;
}

/* How many calls make a turn. Every rank decides by the slowest one's time, so all decide alike. */
static long calibrate(const side_t *side, double seconds)
{
    long calls = 1;
    double taken;

    for (;;) {
        world.barrier();
        taken = most_of_ranks(loop(side, calls));
        if (taken > seconds / 4 || calls >= MAX_CALIBRATED)
            break;
        calls *= taken > seconds / 64 ? 4 : 8;
    }
    calls = (long)(seconds / (taken / (double)calls));
    return calls < 1 ? 1 : calls > MAX_ITERS ? MAX_ITERS : calls;
}

/* Of the calls that took so long, what is shown of one. */
static double shown(const side_t *side, double seconds, long calls)
{
    return seconds / (double)calls * side->job->op->per_call / side->job->messages;
}

static void turn(side_t *side, int number)
{
    long unseen = side->iters / 16;

    world.barrier();
    loop(side, unseen < 1 ? 1 : unseen);
    side->turns[number] = shown(side, loop(side, side->iters), side->iters);
}

/* From this rank's turns to everybody's: turns becomes each turn's slowest rank. */
static void collect(side_t *side, int turns)
{
    double *all = calloc((size_t)world.nranks * (size_t)turns, sizeof *all), sum = 0;
    stats_t rank;

    if (!all)
        die(NULL, "no memory for %d turns of %d ranks", turns, world.nranks);
    world.gather(side->turns, turns, all);
    const int ranks = side->job->op->layout == LAYOUT_PAIR ? 2 : world.nranks; /* the others have nothing to do */
    for (int r = 0; r < ranks; r++) {
        const double *theirs = all + (size_t)r * (size_t)turns;

        stats_of(&rank, theirs, turns);
        sum += rank.median;
        side->rank_min = r == 0 || rank.median < side->rank_min ? rank.median : side->rank_min;
        side->rank_max = r == 0 || rank.median > side->rank_max ? rank.median : side->rank_max;
        for (int t = 0; t < turns; t++)
            side->turns[t] = r > 0 && side->turns[t] > theirs[t] ? side->turns[t] : theirs[t];
    }
    free(all);
    side->rank_mean = sum / ranks;
    stats_of(&side->time, side->turns, turns);
}

static void prepare(side_t *side, const options_t *options)
{
    side->turns = calloc((size_t)options->turns, sizeof *side->turns);
    if (!side->turns)
        die(NULL, "no memory for %d turns", options->turns);
    loop(side, options->warmup);
    if (options->graph)
        side->graph = device_record(side->call, side->job, GRAPH_CALLS);
    side->iters = options->iters ? options->iters : calibrate(side, options->turn_ms * 1e-3);
}

/* Both sides make the same number of calls a turn: what a library puts off while calls follow each other weighs the
 * same on both. The slower side's turn has the time that was asked for, unless the faster one's were less than a
 * quarter. */
static void same_calls(side_t *mine, side_t *peer)
{
    long few = mine->iters < peer->iters ? mine->iters : peer->iters;
    long many = mine->iters < peer->iters ? peer->iters : mine->iters;

    mine->iters = peer->iters = few > many / 4 ? few : many / 4;
}

void timing_run(side_t *mine, side_t *peer, const options_t *options)
{
    prepare(mine, options);
    if (peer->call) {
        prepare(peer, options);
        same_calls(mine, peer);
    }
    for (int t = 0; t < options->turns; t++) {
        turn(mine, t);
        if (peer->call)
            turn(peer, t);
    }
    collect(mine, options->turns);
    if (peer->call)
        collect(peer, options->turns);
}

/* Each call between two looks at the clock (20 to 50 ns, not subtracted); a call's time is the slowest rank's. */
void timing_percentiles(side_t *side)
{
    int calls = side->iters < 100 ? 100 : side->iters > 20000 ? 20000 : (int)side->iters;
    double *mine = calloc((size_t)calls, sizeof *mine);
    double *all = calloc((size_t)calls * (size_t)world.nranks, sizeof *all);

    if (!mine || !all)
        die(NULL, "no memory for the times of %d calls", calls);
    world.barrier();
    for (int i = 0; i < calls; i++)
        mine[i] = shown(side, loop(side, 1), 1);
    world.gather(mine, calls, all);
    for (int r = 0; r < world.nranks; r++)
        for (int i = 0; i < calls; i++)
            mine[i] = r > 0 && mine[i] > all[(size_t)r * (size_t)calls + (size_t)i]
                          ? mine[i]
                          : all[(size_t)r * (size_t)calls + (size_t)i];
    side->p50 = percentile(mine, calls, 0.5);
    side->p99 = percentile(mine, calls, 0.99);
    side->slowest = mine[calls - 1];
    free(all);
    free(mine);
}

void timing_ratio(stats_t *ratio, const side_t *mine, const side_t *peer, int turns)
{
    double ratios[turns];

    for (int t = 0; t < turns; t++)
        ratios[t] = peer->turns[t] / mine->turns[t];
    stats_of(ratio, ratios, turns);
}
