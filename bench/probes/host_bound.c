/* What the machine itself gives: the collectives of rondo-perf by plain shared memory, flags and copies alone, without
 * a library. Every rank's buffers are mapped by all, so nothing is copied that need not be; every rank has a core,
 * where there are enough. For each size the quicker of the two ways of host_calls.h counts.
 *
 *   cc -O3 -march=native -o host_bound bench/probes/host_bound.c && ./host_bound -n 16 [-b 8] [-e 64M] [-f 2]
 *       [-t TURNS] [-m MS a turn] [OPERATION...]
 *
 * It prints tables in rondo-perf's form, which bench/record.py and rondo-perf --bound read, and first what a line takes
 * from core to core. x86 and Arm (the flags are C11 atomics). Exit: 0 good, 1 a wrong result or no memory, 2 usage. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host_calls.h"

#define TURNS_MOST 64

/* ---- measuring ---- */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef enum { COPIES, FLAT, TREE4 = 4, TREE8 = 8 } way_t;

static void call(op_t op, size_t bytes, way_t way)
{
    if (op == BARRIER)
        barrier();
    else if (way == COPIES)
        by_copies(op, bytes);
    else
        by_lines(op, bytes, way == FLAT ? 0 : (int)way);
}

static double slowest(double mine)
{
    double most = 0;

    common->seconds[me] = mine;
    barrier();
    for (int r = 0; r < n; r++)
        most = common->seconds[r] > most ? common->seconds[r] : most;
    barrier();
    return most;
}

static double loop(op_t op, size_t bytes, way_t way, long iters)
{
    double began;

    barrier();
    began = now();
    for (long i = 0; i < iters; i++)
        call(op, bytes, way);
    return slowest(now() - began);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorted times of a call, in seconds. */
static void measure(op_t op, size_t bytes, way_t way, int turns, double turn_s, double *times)
{
    long iters = 1;
    double taken;

    while ((taken = loop(op, bytes, way, iters)) < turn_s / 4 && iters < 1 << 20)
        iters *= 4;
    iters = (long)(turn_s * (double)iters / taken);
    iters = iters < 1 ? 1 : iters;
    for (int t = 0; t < turns; t++)
        times[t] = loop(op, bytes, way, iters) / (double)iters;
    qsort(times, (size_t)turns, sizeof *times, by_size);
}

/* An element of rank r's input for rank d: both can be told from it, and sums are exact. */
static float value(int r, int d)
{
    return (float)(r + 1 + 256 * (d + 1));
}

static void fill(op_t op, size_t bytes)
{
    size_t count = input_count(op, bytes);
    bool parts = op == ALLTOALL || op == SCATTER || op == REDUCE_SCATTER;

    for (size_t i = 0; i < count; i++)
        in_of(me)[i] = value(me, parts ? (int)(i * (size_t)n / count) : 0);
    memset(out_of(me), 0, op == ALLGATHER || op == ALLTOALL || op == GATHER ? bytes * (size_t)n : bytes);
    barrier();
}

static float sum_for(int d)
{
    float sum = 0;

    for (int r = 0; r < n; r++)
        sum += value(r, d);
    return sum;
}

static long wrong(op_t op, size_t bytes)
{
    const float *out = out_of(me);
    size_t block = bytes / sizeof *out, count = op == REDUCE_SCATTER ? block / (size_t)n : block;
    long bad = 0;

    if (op == BARRIER || ((op == REDUCE || op == GATHER) && me != 0) || (op == BROADCAST && me == 0))
        return 0;
    if (op == ALLGATHER || op == ALLTOALL || op == GATHER)
        count *= (size_t)n;
    for (size_t i = 0; i < count; i++) {
        int from = (int)(i / block);
        float want = op == ALLREDUCE || op == REDUCE ? sum_for(0)
                     : op == REDUCE_SCATTER          ? sum_for(me)
                     : op == BROADCAST               ? value(0, 0)
                     : op == SCATTER                 ? value(0, me)
                     : op == SENDRECV                ? value((me + n - 1) % n, 0)
                     : op == ALLTOALL                ? value(from, me)
                                                     : value(from, 0);

        bad += out[i] != want;
        if (i == 4096 && count > 16384)
            i = count - 4096; /* both ends: this is a probe, not a test */
    }
    return bad;
}

static void row(op_t op, size_t bytes, int turns, double turn_s)
{
    static const way_t ways[] = {COPIES, FLAT, TREE4, TREE8};
    double best[TURNS_MOST] = {0}, times[TURNS_MOST];
    long bad = 0;

    for (int w = 0; w < (op == BARRIER ? 1 : 4); w++) {
        if (ways[w] != COPIES && slot_bytes(op, bytes) == 0)
            continue;
        if (ways[w] > FLAT && op != ALLREDUCE && op != REDUCE)
            continue;
        fill(op, bytes);
        call(op, bytes, ways[w]);
        barrier();
        common->wrong[me] = wrong(op, bytes);
        barrier();
        for (int r = 0; r < n; r++)
            bad += common->wrong[r];
        measure(op, bytes, ways[w], turns, turn_s, times);
        if (best[0] == 0 || times[turns / 2] < best[turns / 2])
            memcpy(best, times, sizeof best);
    }
    if (bad && me == 0)
        fprintf(stderr, "host_bound: %ld wrong elements of %s, %zu bytes\n", bad, names[op], bytes);
    if (me == 0)
        printf("%12zu %11zu %10.3f %10.3f %10.3f %8.3f %8.3f %6ld\n", bytes, bytes / 4, best[turns / 2] * 1e6,
               best[0] * 1e6, best[turns - 1] * 1e6, (double)bytes / best[turns / 2] * 1e-9,
               (double)bytes / best[turns / 2] * 1e-9, bad);
    fflush(stdout);
    if (bad)
        exit(1);
}

/* Half of a round trip of one line between ranks 0 and 1. */
static void print_line(void)
{
    const long trips = 20000;
    double began = now();

    barriers++; /* the others wait in the barrier below */
    for (long i = 0; me < 2 && i < trips; i++) {
        uint64_t number = (uint64_t)i + 1;

        if (me == 1)
            await(&common->slot[0][0].number, number);
        atomic_store_explicit(&common->slot[0][me].number, number, memory_order_release);
        if (me == 0)
            await(&common->slot[0][1].number, number);
    }
    if (me == 0)
        printf("# a line from core to core: %.3f us\n", (now() - began) / trips / 2 * 1e6);
    barriers--;
    barrier();
    if (me < 2)
        atomic_store(&common->slot[0][me].number, 0);
    barrier();
}

static void bind_to_core(void)
{
    cpu_set_t allowed, one;
    int seen = 0;

    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < n)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && seen++ == me) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            (void)sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

/* "1.5", or "64K" where units go; 0: it is no number, or more than `most`. */
static double number(const char *text, const char *units, double most)
{
    char *end;
    double value = *text >= '0' && *text <= '9' && (text[1] | 0x20) != 'x' ? strtod(text, &end) : 0;
    const char *unit = value > 0 && *end ? strchr(units, *end) : NULL;

    if (!(value > 0) || (*end && (!unit || end[1])))
        return 0;
    value *= unit ? (double)(1 << (10 * (unit - units + 1))) : 1;
    return value <= most ? value : 0;
}

static int count(const char *text, int most)
{
    const double value = number(text, "", most);

    return value == (int)value ? (int)value : 0;
}

typedef struct {
    size_t first, last, factor;
    int turns;
    double turn_s;
    unsigned ops; /* bits */
} wish_t;

static void one_rank(const wish_t *w)
{
    bind_to_core();
    memset(in_of(me), 0, area_bytes); /* its pages come from the memory near it */
    barrier();
    if (n > 1)
        print_line();
    for (int op = 0; op < NOPS; op++) {
        size_t blocks = op == ALLGATHER || op == ALLTOALL || op == GATHER || op == SCATTER ? (size_t)n : 1;

        if (!(w->ops >> op & 1))
            continue;
        if (me == 0)
            printf("# host_bound 1.0: %s, float32%s, %d ranks, bare\n", names[op],
                   op == ALLREDUCE || op == REDUCE || op == REDUCE_SCATTER ? " sum" : "", n);
        for (size_t bytes = w->first; bytes <= w->last && bytes * blocks <= half; bytes *= w->factor) {
            size_t least = op == REDUCE_SCATTER ? 4 * (size_t)n : 4;
            size_t size = op == BARRIER ? 0 : bytes / least * least;

            if (size || op == BARRIER)
                row((op_t)op, size, w->turns, w->turn_s);
            if (op == BARRIER)
                break;
        }
    }
}

static int start(const wish_t *w)
{
    size_t total = sizeof *common + area_bytes * (size_t)n;
    pid_t parent = getpid(), children[RANKS], one;
    int status, bad = 0;

    common = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (common == MAP_FAILED) {
        fprintf(stderr, "host_bound: no memory for %d ranks of %zu bytes\n", n, area_bytes);
        return 1;
    }
    area = (char *)common + (sizeof *common + 4095) / 4096 * 4096;
    fflush(stdout);
    for (me = 0; me < n; me++)
        if ((children[me] = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* no rank outlives the command */
            if (getppid() == parent)
                one_rank(w);
            exit(0);
        }
    while ((one = wait(&status)) > 0)
        for (int r = 0; r < n; r++) {
            if (children[r] == one)
                children[r] = 0;
            else if (status && children[r] > 0)
                kill(children[r], SIGKILL); /* it would wait for the one that failed */
            bad |= status != 0;
        }
    return bad;
}

int main(int argc, char **argv)
{
    wish_t w = {.first = 8, .last = 64 << 20, .factor = 2, .turns = 5, .turn_s = 0.002};
    int option;

    n = 2;
    while ((option = getopt(argc, argv, "n:b:e:f:t:m:")) != -1)
        switch (option) {
        case 'n':
            n = count(optarg, RANKS);
            break;
        case 'b':
            w.first = (size_t)number(optarg, "KMG", 1e12);
            break;
        case 'e':
            w.last = (size_t)number(optarg, "KMG", 1e12);
            break;
        case 'f':
            w.factor = (size_t)count(optarg, 1 << 20);
            break;
        case 't':
            w.turns = count(optarg, TURNS_MOST);
            break;
        case 'm':
            w.turn_s = number(optarg, "", 1e4) * 1e-3;
            break;
        default:
            n = 0;
        }
    for (; optind < argc; optind++) {
        int op = 0;

        while (op < NOPS && strcmp(argv[optind], names[op]) != 0)
            op++;
        if (op == NOPS) {
            fprintf(stderr, "host_bound: %s is not measured here\n", argv[optind]);
            return 2;
        }
        w.ops |= 1u << op;
    }
    if (w.ops == 0)
        w.ops = (1u << NOPS) - 1;
    if (n < 2 || n > RANKS || w.first < 4 || w.last < w.first || w.factor < 2 || w.turns < 1 || w.turns > TURNS_MOST ||
        w.turn_s <= 0) {
        fprintf(stderr, "host_bound: see the head of bench/probes/host_bound.c\n");
        return 2;
    }
    half = (w.last > 64u << 20 ? w.last : 64u << 20) / 4096 * 4096; /* results of n blocks: as many as fit */
    area_bytes = 2 * half;
    return start(&w);
}
