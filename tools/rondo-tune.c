/* rondo-tune: measures what messages and bytes take on this machine, and writes it down as prices for RONDO_TUNE.
 *
 * It runs rondo-perf for a choice of operations, algorithms and protocols, each forced in turn, and fits the prices of
 * the cost model to the times (tune_fit.c).
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/conns.h"
#include "plan/choose.h"
#include "topo/topo.h"
#include "number.h"
#include "progress.h"
#include "tune.h"

#define TIMES_MOST 4096

static const char usage[] =
    "NAME\n"
    "    rondo-tune - measure this machine, for the choices that rondo makes\n"
    "\n"
    "SYNOPSIS\n"
    "    rondo-tune [--device host|cuda] [--ranks N,M...] [--rounds N] [--quick] [--output FILE] [--times FILE]\n"
    "               [--perf FILE]\n"
    "    rondo-tune --check [--ranks N,M...] [--rounds N] [--quick] [--times FILE] [--perf FILE]\n"
    "    rondo-tune [--check] --read FILE [--output FILE] [--times FILE]\n"
    "\n"
    "DESCRIPTION\n"
    "    Runs rondo-perf, which must lie beside it, with one algorithm and protocol after the other, fits the prices\n"
    "    of the cost model to the times, and writes them as text. RONDO_TUNE=FILE then makes the choices of a\n"
    "    program by them: it must have the same content on all ranks. Nothing else should run meanwhile; it takes\n"
    "    half a minute on two cores.\n"
    "\n"
    "    With --check the prices that are in use, RONDO_TUNE's or the built-in ones, are compared with the times\n"
    "    instead: for each operation and size, what they choose, what that takes, what was predicted, and what\n"
    "    would have been quicker.\n"
    "\n"
    "    With --device cuda it is the kernels between GPUs, on a machine whose GPUs nobody else uses. What it writes\n"
    "    holds the prices of host memory as well: those of RONDO_TUNE, so that one file may serve both.\n"
    "\n"
    "OPTIONS\n"
    "    --check          compares the prices in use with this machine, and writes none\n"
    "    --device D       host, or cuda (default host)\n"
    "    --ranks N,M...   numbers of ranks to measure (default: 2, twice the cores up to 8, and from 16 cores on as\n"
    "                     many ranks as cores; cuda: 2 and all GPUs)\n"
    "    --perf FILE      another rondo-perf than the one beside this program\n"
    "    --rounds N       measures longer, for a machine that is not quiet (default 1)\n"
    "    --quick          few sizes and one look at each: to see that it works, not for prices to keep\n"
    "    --output FILE    where the prices go (default: standard output)\n"
    "    --times FILE     writes the times too, and what the new prices predict\n"
    "    --read FILE      takes the times that --times has written, here or on another machine, and measures nothing;\n"
    "                     the prices start from RONDO_TUNE's, which may name a built-in table\n"
    "    --version, --help\n"
    "\n"
    "EXIT STATUS\n"
    "    0 good; 1 nothing could be measured or written, or --check found predictions off by more than\n"
    "    1.2 in the mean or 2 in any row, or a choice slower than the best by more than 1.15; 2 usage.\n";

typedef struct tune {
    rd_env_t env;
    char perf[4096];
    int cores, rounds, flat, cuda, ranks[8], nranks;
    bool check;
    const char *read;                /* a file of times, instead of measuring; "": none */
    const char *output, *times_file; /* to be written; "": standard output, and none */
    int runs;                        /* of rondo-perf */
    progress_t progress;
    tune_time_t times[TIMES_MOST];
    int count;
} tune_t;

static int has_blocks(rd_coll_t coll)
{
    return coll == RD_ALLGATHER || coll == RD_GATHER || coll == RD_SCATTER || coll == RD_ALLTOALL;
}

/* The slice that a plan would have with this choice forced; 0: it cannot serve. */
static size_t slice_of(const tune_t *t, int n, rd_coll_t coll, const char *algo, rd_proto_t proto, size_t bytes)
{
    rd_shape_t shape = {n, 1, NULL};
    rd_env_t env = t->env;
    rd_layout_t layout;
    rd_choice_t best;

    snprintf(env.algo, sizeof env.algo, "%s", algo);
    snprintf(env.proto, sizeof env.proto, "%s", rd_proto_name(proto));
    rd_layout_init(&layout, n, 1, &env);
    rd_choose_args_t args = {.coll = coll,
                             .bytes = bytes,
                             .type_size = 4,
                             .shape = &shape,
                             .env = &env,
                             .local = n,
                             .cores = t->cores,
                             .prices = rd_prices_builtin(rd_prices_here()),
                             .slot_bytes = layout.slot_bytes,
                             .slots = (int)layout.slots,
                             .cma = 1};
    return rd_choose(&args, &best, NULL, NULL, NULL) == RONDO_SUCCESS ? best.slice : 0;
}

static void keep(tune_t *t, int n, rd_coll_t coll, const char *algo, rd_proto_t proto, size_t size, double us)
{
    tune_time_t *time = &t->times[t->count];
    size_t bytes = has_blocks(coll) ? size * (size_t)n : size;
    rd_work_t work;

    if (t->count == TIMES_MOST || us <= 0)
        return;
    memset(time, 0, sizeof *time);
    time->env = (rd_cost_env_t){n, 1, n, t->cores, n, NULL, 0};
    time->coll = coll;
    snprintf(time->algo, sizeof time->algo, "%s", algo);
    time->proto = proto;
    time->bytes = bytes;
    time->us = us;
    time->slice = slice_of(t, n, coll, algo, proto, bytes);
    if (time->slice && rd_cost_work(&time->env, coll, algo, 0, &work) == 0)
        t->count++;
}

static int measure(tune_t *t, int n, rd_coll_t coll, const char *algo, rd_proto_t proto)
{
    char command[5000], line[512];
    int first = t->count, lines = proto == RD_PROTO_LL || proto == RD_PROTO_BOARD_LL;
    FILE *perf;

    snprintf(command, sizeof command,
             "'%s' %s --ranks %d --algo %s --proto %s -b %s -e %s -f %d -c 0 -w %d --turns %d --turn-ms %d 2>/dev/null",
             t->perf, rd_coll_name(coll), n, algo, rd_proto_name(proto), lines ? "8" : "2K",
             lines     ? "2K"
             : t->flat ? "128K"
                       : "8M",
             t->flat ? 64 : 4, t->flat ? 1 : 10, t->flat ? 1 : 2 * t->rounds + 1, t->flat ? 1 : 2);
    perf = popen(command, "r");
    if (!perf)
        return 0;
    while (fgets(line, sizeof line, perf)) {
        size_t size, elements;
        double us;

        if (sscanf(line, " %zu %zu %lf", &size, &elements, &us) == 3)
            keep(t, n, coll, algo, proto, size, us);
    }
    pclose(perf);
    return t->count > first;
}

/* Measures an operation by every algorithm that a plan may choose for it on one node, and by every protocol that serves
 * it; or only counts these runs. Lines only carry short messages: rondo-perf stops at the first that is too long. */
static void measure_operation(tune_t *t, int n, rd_coll_t coll, bool count_only)
{
    for (const rd_algo_t *const *a = rd_algos; *a; a++) {
        if (!(*a)->work || (*a)->relays || !((*a)->colls >> coll & 1))
            continue;
        for (int p = 0; p < RD_NUM_PROTOS; p++)
            if (RD_PROTOS_HOST >> p & 1 && slice_of(t, n, coll, (*a)->name, (rd_proto_t)p, 2048)) {
                t->runs += count_only;
                if (count_only)
                    continue;
                measure(t, n, coll, (*a)->name, (rd_proto_t)p);
                progress_step(&t->progress);
            }
    }
}

static void measure_all(tune_t *t)
{
    rd_log_set_level(RD_LOG_NONE); /* what cannot serve is refused, and left out */
    for (int count_only = 1; count_only >= 0; count_only--) {
        if (!count_only)
            progress_begin(&t->progress, "rondo-tune", "measurements", t->runs);
        for (int r = 0; r < t->nranks; r++)
            for (int coll = 0; coll < RD_NUM_COLLS; coll++)
                if (coll != RD_BARRIER) /* has no bytes */
                    measure_operation(t, t->ranks[r], (rd_coll_t)coll, count_only);
    }
    progress_clear(&t->progress);
    rd_log_set_level((rd_log_level_t)t->env.debug);
}

static int prices_write(const tune_t *t, const rd_prices_t *prices, tune_miss_t miss)
{
    const char *file = t->output;
    FILE *f = *file ? fopen(file, "w") : stdout;
    rd_topo_t topo;
    int bad;

    if (!f)
        return -1;
    if (rd_topo_read(&topo, "") != RONDO_SUCCESS)
        strcpy(topo.cpu, "an unknown processor");
    if (*t->read)
        fprintf(f, "# rondo-tune --read %s; %d times", t->read, t->count);
    else
        fprintf(f, "# rondo-tune on %s, %d cores; %d times", topo.cpu, t->cores, t->count);
    if (miss.time > 0)
        fprintf(f, ", predicted within a factor of %.2f", miss.time);
    fprintf(f, "%s\n", t->cuda ? " between GPUs" : "");
    rd_prices_write(prices, f);
    bad = fflush(f) != 0;
    return (*file && fclose(f) != 0) || bad ? -1 : 0;
}

/* rondo-perf lies beside this program. */
static int perf_find(tune_t *t)
{
    if (t->perf[0])
        return access(t->perf, X_OK);
    ssize_t n = readlink("/proc/self/exe", t->perf, sizeof t->perf - 16);
    char *slash;

    t->perf[n > 0 ? n : 0] = 0;
    slash = strrchr(t->perf, '/');
    if (!slash)
        return -1;
    strcpy(slash, "/rondo-perf");
    return access(t->perf, X_OK);
}

static int ranks_read(tune_t *t, const char *text)
{
    const char *end;
    long n;

    for (t->nranks = 0; t->nranks < 8; text = end + 1) {
        end = number_begins(text, 2, 64, &n);
        if (!end || (*end && *end != ','))
            return -1;
        t->ranks[t->nranks++] = (int)n;
        if (!*end)
            return 0;
    }
    return -1;
}

/* 2 and all GPUs, unless it was said. */
static void cuda_ranks(tune_t *t)
{
    rd_gpu_topo_t topo;

    if (t->nranks || rd_gpu_topo_read(&topo, t->env.topo_file) != RONDO_SUCCESS)
        return;
    t->ranks[t->nranks++] = 2;
    if (topo.count > 2)
        t->ranks[t->nranks++] = topo.count;
}

static int tune_gpus(tune_t *t)
{
    rd_prices_t prices;
    int number, count;

    if (perf_find(t) != 0) {
        fprintf(stderr, "rondo-tune: there is no %s to measure with\n", t->perf);
        return 1;
    }
    if (rd_prices_find(&prices, &number, t->env.tune, NULL) != RONDO_SUCCESS)
        return 1;
    cuda_ranks(t);
    count = tune_cuda(&prices, &(tune_cuda_t){t->perf, t->ranks, t->nranks, t->rounds, t->flat}, &t->env);
    if (count == 0) {
        fprintf(stderr, "rondo-tune: nothing could be measured: what does %s allreduce --device cuda --ranks 2 say?\n",
                t->perf);
        return 1;
    }
    t->count = count;
    if (prices_write(t, &prices, (tune_miss_t){0, 0}) != 0) {
        fprintf(stderr, "rondo-tune: cannot write %s\n", t->output);
        return 1;
    }
    return 0;
}

/* Returns 0, or -1 after saying that the file cannot be written. */
static int times_write(const tune_t *t, const rd_prices_t *prices)
{
    if (!*t->times_file || tune_times_write(t->times_file, t->times, t->count, prices) == 0)
        return 0;
    fprintf(stderr, "rondo-tune: cannot write %s\n", t->times_file);
    return -1;
}

/* The prices in use against what was measured. */
static int check(tune_t *t)
{
    rd_prices_t prices;
    int number;

    if (rd_prices_find(&prices, &number, t->env.tune, NULL) != RONDO_SUCCESS)
        return 1;
    printf("prices of %s\n", number < 0 ? t->env.tune : rd_prices_name(number));
    const bool good = tune_check(&prices, t->times, t->count, stdout);
    return times_write(t, &prices) == 0 && good ? 0 : 1;
}

/* Measures, or reads what was measured. Returns 0, or -1 after saying why there is nothing. */
static int times_get(tune_t *t)
{
    if (*t->read)
        return (t->count = tune_times_read(t->read, t->times, TIMES_MOST)) > 0 ? 0 : -1;
    if (perf_find(t) != 0) {
        fprintf(stderr, "rondo-tune: there is no %s to measure with\n", t->perf);
        return -1;
    }
    measure_all(t);
    if (t->count == 0)
        fprintf(stderr, "rondo-tune: nothing could be measured: what does %s allreduce --ranks 2 say?\n", t->perf);
    return t->count ? 0 : -1;
}

static int tune(tune_t *t)
{
    rd_prices_t prices = *rd_prices_builtin(rd_prices_here()), before_fit;
    int number = rd_prices_here();
    tune_miss_t before, miss;

    if (times_get(t) != 0)
        return 1;
    if (t->check)
        return check(t);
    if (*t->read && rd_prices_find(&prices, &number, t->env.tune, NULL) != RONDO_SUCCESS)
        return 1;
    before_fit = prices;
    tune_fit(&prices, t->times, t->count);
    before = tune_miss(&before_fit, t->times, t->count);
    miss = tune_miss(&prices, t->times, t->count);
    fprintf(stderr,
            "rondo-tune: %d times, of %d ranks at most. Prices before (%s): predictions off by a factor of %.2f, "
            "choices slower than the best by %.2f; these: %.2f and %.2f\n",
            t->count, t->times[t->count - 1].env.nranks, number < 0 ? t->env.tune : rd_prices_name(number), before.time,
            before.choice, miss.time, miss.choice);
    if (prices_write(t, &prices, miss) != 0) {
        fprintf(stderr, "rondo-tune: cannot write %s\n", t->output);
        return 1;
    }
    return times_write(t, &prices) == 0 ? 0 : 1;
}

/* Returns 0, 1 after printing what was asked for, or 2 after saying what is wrong. */
static int options_read(tune_t *t, int argc, char **argv)
{
    static const struct option options[] = {
        {"ranks", 1, NULL, 'n'}, {"rounds", 1, NULL, 'r'},  {"quick", 0, NULL, 'q'}, {"output", 1, NULL, 'o'},
        {"times", 1, NULL, 't'}, {"version", 0, NULL, 'v'}, {"help", 0, NULL, 'h'},  {"device", 1, NULL, 'd'},
        {"perf", 1, NULL, 'p'},  {"check", 0, NULL, 'c'},   {"read", 1, NULL, 'R'},  {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return 1;
        }
        if (option == 'v') {
            int v = rondo_version();
            printf("rondo-tune %d.%d.%d\n", v / 10000, v / 100 % 100, v % 100);
            return 1;
        }
        if (option == 'd' && (strcmp(optarg, "cuda") == 0 || strcmp(optarg, "host") == 0))
            t->cuda = strcmp(optarg, "cuda") == 0;
        else if (option == 'p')
            snprintf(t->perf, sizeof t->perf, "%s", optarg);
        else if (option == 'R')
            t->read = optarg;
        else if (option == 'c')
            t->check = true;
        else if (option == 'q')
            t->flat = 1;
        else if (option == 'o')
            t->output = optarg;
        else if (option == 't')
            t->times_file = optarg;
        else if (option == 'n' ? ranks_read(t, optarg) != 0 : option != 'r' || !number_is(optarg, 1, 100, &t->rounds)) {
            fprintf(stderr, "rondo-tune: see rondo-tune --help\n");
            return 2;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "rondo-tune: \"%s\" is not wanted; see rondo-tune --help\n", argv[optind]);
        return 2;
    }
    if (t->cuda && (t->check || *t->read)) {
        fprintf(stderr, "rondo-tune: --check and --read are about prices of host memory, not of --device cuda\n");
        return 2;
    }
    return 0;
}

/* 2, twice the cores up to 8, and from 16 cores on as many as cores, unless it was said. */
static void host_ranks(tune_t *t)
{
    if (t->nranks)
        return;
    t->ranks[t->nranks++] = 2;
    if (t->cores > 1)
        t->ranks[t->nranks++] = t->cores > 4 ? 8 : 2 * t->cores;
    if (t->cores >= 16)
        t->ranks[t->nranks++] = t->cores > 64 ? 64 : t->cores;
}

int main(int argc, char **argv)
{
    static tune_t t = {.rounds = 1, .read = "", .output = "", .times_file = ""};
    rd_topo_t topo;
    int said;

    rd_topo_basic(&topo);
    t.cores = topo.usable;
    said = options_read(&t, argc, argv);
    if (said)
        return said == 1 ? 0 : said;
    if (rd_env_read(&t.env) != RONDO_SUCCESS)
        return 1;
    if (t.cuda)
        return tune_gpus(&t);
    host_ranks(&t);
    return tune(&t);
}
