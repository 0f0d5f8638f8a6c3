/* The command line. Every rank parses it and comes to the same end; rank 0 alone speaks. */
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"
#include "tools/canvas.h"
#include "tools/number.h"

#define BYTES_MOST 0x1p43 /* a size, which times FACTOR_MOST is still one */
#define FACTOR_MOST (1 << 20)

static const struct {
    const char *name, *nccl, *alias;
} types[] = {
    [RONDO_INT8] = {"int8", "int8", "char"},
    [RONDO_UINT8] = {"uint8", "uint8", "byte"},
    [RONDO_INT16] = {"int16", "int16", "short"},
    [RONDO_UINT16] = {"uint16", "uint16", NULL},
    [RONDO_INT32] = {"int32", "int32", "int"},
    [RONDO_UINT32] = {"uint32", "uint32", NULL},
    [RONDO_INT64] = {"int64", "int64", "long"},
    [RONDO_UINT64] = {"uint64", "uint64", NULL},
    [RONDO_FLOAT16] = {"float16", "half", "fp16"},
    [RONDO_BFLOAT16] = {"bfloat16", "bfloat16", "bf16"},
    [RONDO_FLOAT32] = {"float32", "float", "fp32"},
    [RONDO_FLOAT64] = {"float64", "double", "fp64"},
    [RONDO_FLOAT8_E4M3] = {"float8_e4m3", "f8e4m3", "fp8_e4m3"},
    [RONDO_FLOAT8_E5M2] = {"float8_e5m2", "f8e5m2", "fp8_e5m2"},
    [RONDO_COMPLEX64] = {"complex64", "complex64", NULL},
    [RONDO_COMPLEX128] = {"complex128", "complex128", NULL},
    [RONDO_BOOL] = {"bool", "bool", NULL},
    [RONDO_FLOAT32_INT32] = {"float32_int32", "float_int", NULL},
    [RONDO_FLOAT64_INT32] = {"float64_int32", "double_int", NULL},
    [RONDO_INT32_INT32] = {"int32_int32", "2int", NULL},
    [RONDO_INT64_INT32] = {"int64_int32", "long_int", NULL},
    [RONDO_FLOAT32_FLOAT32] = {"float32_float32", "2real", NULL},
    [RONDO_FLOAT64_FLOAT64] = {"float64_float64", "2double", NULL},
};
_Static_assert(sizeof types / sizeof types[0] == RONDO_NUM_TYPES, "a row for each type");

static const char *const reductions[RONDO_NUM_OPS] = {
    [RONDO_SUM] = "sum",       [RONDO_PROD] = "prod", [RONDO_MIN] = "min",   [RONDO_MAX] = "max",
    [RONDO_AVG] = "avg",       [RONDO_BAND] = "band", [RONDO_BOR] = "bor",   [RONDO_BXOR] = "bxor",
    [RONDO_LAND] = "land",     [RONDO_LOR] = "lor",   [RONDO_LXOR] = "lxor", [RONDO_MINLOC] = "minloc",
    [RONDO_MAXLOC] = "maxloc",
};

const char *type_name(rondo_type_t type)
{
    return types[type].name;
}

const char *type_nccl_name(rondo_type_t type)
{
    return types[type].nccl;
}

const char *reduction_name(rondo_op_t reduction)
{
    return reductions[reduction];
}

static void print_help(void)
{
    printf("rondo-perf OPERATION[,OPERATION...] [options]: how fast rondo is here, and whether it is right\n\n"
           "  mpirun -n 4 rondo-perf allreduce -e 64M --peer mpi     beside the MPI's own, in turns\n"
           "  rondo-perf allreduce --ranks 4                         without MPI: starts its ranks itself\n"
           "  rondo-perf allreduce,broadcast --ranks 4 --plot a.svg  several, and a picture of them\n\n"
           "Operations\n");
    for (const op_t *op = operations; op->name; op++)
        printf("  %-16s %s\n", op->name, op->help);
    printf(
        "\nOptions\n"
        "  -b BYTES -e BYTES -f N   first size (8), last (64M; with blocks for every rank 16M), factor (2);\n"
        "                           K, M and G are powers of 1024\n"
        "  -t TYPE                  float32; int8 ... uint64, float16, bfloat16, float64, float8_e4m3, complex64, ...\n"
        "  -o OP                    sum; prod min max avg band bor bxor land lor lxor minloc maxloc\n"
        "  -r ROOT                  0\n"
        "  -n ITERS                 calls a turn (0: as many as take --turn-ms)\n"
        "  -w WARMUP                calls before the first turn (10)\n"
        "  -c [0|1]                 verify the whole result on every rank (1)\n"
        "  --turns N                turns of each side (11)      --turn-ms MS   what one takes (10)\n"
        "  --window N               messages each way in a call of bandwidth (64)\n"
        "  --pieces N               the data divided among N operations of one group (allreduce, reduce, broadcast)\n"
        "  --peer mpi|self:ALGO     measured in turns with rondo: the MPI's own operation, or rondo with "
        "RONDO_ALGO=ALGO\n"
        "  --peer copy              every rank copies its result once: the ratio is the part of memory's bound that is "
        "reached\n"
        "  --algo A --proto P       force rondo's algorithm, protocol (RONDO_ALGO, RONDO_PROTO)\n"
        "  --in-place --offset N --register --skew\n"
        "                           how buffers lie: in place, N bytes past a page, registered, uneven counts (...v)\n"
        "  --percentiles            a further run that times every call, of each side: p50, p99, max\n"
        "  --format table|osu|nccl|json    --full: osu's further columns\n"
        "  --plot FILE.svg|png      a picture: time and bandwidth over size, an operation a column, quartiles as "
        "bands\n"
        "  --bound FILE             what the machine itself gives, beside it: a table of bench/probes/host_bound.c\n"
        "  --ranks N                start N ranks on this machine by fork, without mpirun\n"
        "  --device host|cuda       where buffers lie (host); cuda: rank r on device r modulo their number, and calls\n"
        "                           are in one stream, waited for at the end of a turn\n"
        "  --graph                  with cuda: calls are replayed from a graph of 20\n"
        "  --peer nccl --nccl PATH  with cuda: NCCL, loaded from PATH or where the loader finds libnccl.so.2\n"
        "  --peer nccl:symmetric    the same, buffers in symmetric windows of NCCL's\n\n"
        "A size is one rank's message, as in the OSU benchmarks (reduce_scatter: its whole input); with --format nccl\n"
        "it is what nccl-tests means, the larger of the buffers. Times are a call's, the slowest rank's, the median "
        "of\n"
        "the turns; with --peer the ratio is the median of peer / rondo over the turns: above 1, rondo is faster.\n"
        "Exit: 0 good, 1 wrong result or failure, 2 usage.\n");
}

/* The usage error that ends parsing. */
static int refuse(bool loud, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int refuse(bool loud, const char *format, ...)
{
    va_list args;

    if (!loud)
        return 3;
    fflush(stdout);
    fprintf(stderr, "rondo-perf: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, " (rondo-perf --help)\n");
    return 3;
}

static bool parse_bytes(const char *text, size_t *bytes)
{
    static const char suffixes[] = "KMG";
    double value;
    const char *end = number_real_begins(text, 0, BYTES_MOST, &value), *suffix;

    if (!end)
        return false;
    suffix = *end & ~0x20 ? strchr(suffixes, *end & ~0x20) : NULL; /* not of a space */
    if (suffix) {
        value *= (double)(1ull << (10 * (suffix - suffixes + 1)));
        end++;
    }
    if ((*end == 'i' || *end == 'I') && suffix)
        end++;
    if (*end == 'B' || *end == 'b')
        end++;
    if (*end || value > BYTES_MOST)
        return false;
    *bytes = (size_t)value;
    return true;
}

static bool parse_type(const char *text, rondo_type_t *type)
{
    for (int i = 0; i < RONDO_NUM_TYPES; i++)
        if (strcmp(text, types[i].name) == 0 || strcmp(text, types[i].nccl) == 0 ||
            (types[i].alias && strcmp(text, types[i].alias) == 0)) {
            *type = (rondo_type_t)i;
            return true;
        }
    return false;
}

static bool parse_reduction(const char *text, rondo_op_t *reduction)
{
    for (int i = 0; i < RONDO_NUM_OPS; i++)
        if (strcmp(text, reductions[i]) == 0) {
            *reduction = i;
            return true;
        }
    return false;
}

static bool parse_format(const char *text, format_t *format)
{
    static const char *const names[] = {"table", "osu", "nccl", "json"};

    for (int i = 0; i < 4; i++)
        if (strcmp(text, names[i]) == 0) {
            *format = (format_t)i;
            return true;
        }
    return false;
}

enum {
    OPT_DEVICE = 256,
    OPT_GRAPH,
    OPT_IN_PLACE,
    OPT_REGISTER,
    OPT_PEER,
    OPT_NCCL,
    OPT_FORMAT,
    OPT_PLOT,
    OPT_BOUND,
    OPT_ALGO,
    OPT_PROTO,
    OPT_TURNS,
    OPT_TURN_MS,
    OPT_WINDOW,
    OPT_PIECES,
    OPT_OFFSET,
    OPT_FULL,
    OPT_PERCENTILES,
    OPT_RANKS,
    OPT_SKEW,
    OPT_PLANT
};

static const struct option long_options[] = {
    {"minbytes", required_argument, NULL, 'b'},
    {"maxbytes", required_argument, NULL, 'e'},
    {"stepfactor", required_argument, NULL, 'f'},
    {"type", required_argument, NULL, 't'},
    {"op", required_argument, NULL, 'o'},
    {"root", required_argument, NULL, 'r'},
    {"iters", required_argument, NULL, 'n'},
    {"warmup", required_argument, NULL, 'w'},
    {"check", no_argument, NULL, 'c'},
    {"help", no_argument, NULL, 'h'},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"graph", no_argument, NULL, OPT_GRAPH},
    {"in-place", no_argument, NULL, OPT_IN_PLACE},
    {"register", no_argument, NULL, OPT_REGISTER},
    {"peer", required_argument, NULL, OPT_PEER},
    {"nccl", required_argument, NULL, OPT_NCCL},
    {"format", required_argument, NULL, OPT_FORMAT},
    {"plot", required_argument, NULL, OPT_PLOT},
    {"bound", required_argument, NULL, OPT_BOUND},
    {"algo", required_argument, NULL, OPT_ALGO},
    {"proto", required_argument, NULL, OPT_PROTO},
    {"turns", required_argument, NULL, OPT_TURNS},
    {"turn-ms", required_argument, NULL, OPT_TURN_MS},
    {"window", required_argument, NULL, OPT_WINDOW},
    {"pieces", required_argument, NULL, OPT_PIECES},
    {"offset", required_argument, NULL, OPT_OFFSET},
    {"full", no_argument, NULL, OPT_FULL},
    {"percentiles", no_argument, NULL, OPT_PERCENTILES},
    {"ranks", required_argument, NULL, OPT_RANKS},
    {"skew", no_argument, NULL, OPT_SKEW},
    {"plant-error", no_argument, NULL, OPT_PLANT},
    {NULL, 0, NULL, 0},
};

static int set_sizes(options_t *o, int option, const char *text, bool loud)
{
    int number;

    switch (option) {
    case 'b':
        return parse_bytes(text, &o->first) ? 0 : refuse(loud, "-b %s: not a size such as 8, 64K or 1M", text);
    case 'e':
        return parse_bytes(text, &o->last) && o->last ? 0
                                                      : refuse(loud, "-e %s: not a size such as 8, 64K or 1M", text);
    case 'f':
        if (!number_is(text, 2, FACTOR_MOST, &number))
            return refuse(loud, "-f %s: not a factor of at least 2", text);
        o->factor = (size_t)number;
        return 0;
    default:
        return parse_bytes(text, &o->offset) && o->offset < 4096
                   ? 0
                   : refuse(loud, "--offset %s: not a number of bytes from 0 to 4095", text);
    }
}

static int set_counts(options_t *o, int option, const char *text, bool loud)
{
    switch (option) {
    case 'r':
        return number_is(text, 0, 1 << 30, &o->root) ? 0 : refuse(loud, "-r %s: not a rank", text);
    case 'n':
        return number_is(text, 0, 1000000000, &o->iters) ? 0 : refuse(loud, "-n %s: not a number of calls", text);
    case 'w':
        return number_is(text, 0, 1000000000, &o->warmup) ? 0 : refuse(loud, "-w %s: not a number of calls", text);
    case OPT_TURNS:
        return number_is(text, 1, 1000, &o->turns) ? 0 : refuse(loud, "--turns %s: not a number from 1 to 1000", text);
    case OPT_WINDOW:
        return number_is(text, 1, WINDOW_MOST, &o->window)
                   ? 0
                   : refuse(loud, "--window %s: not a number from 1 to %d", text, WINDOW_MOST);
    case OPT_PIECES:
        return number_is(text, 1, 65536, &o->pieces) ? 0
                                                     : refuse(loud, "--pieces %s: not a number from 1 to 65536", text);
    case OPT_RANKS:
        return number_is(text, 1, 1024, &o->ranks) ? 0 : refuse(loud, "--ranks %s: not a number from 1 to 1024", text);
    default:
        return number_real_is(text, 0.001, 10000, &o->turn_ms)
                   ? 0
                   : refuse(loud, "--turn-ms %s: not a number of milliseconds from 0.001 to 10000", text);
    }
}

static int set_peer(options_t *o, const char *text, bool loud)
{
    if (strcmp(text, "nccl") == 0 || strcmp(text, "nccl:symmetric") == 0) {
        o->symmetric = text[4] == ':';
        o->peer = PEER_NCCL;
    } else if (strcmp(text, "mpi") == 0) {
        o->peer = PEER_MPI;
    } else if (strncmp(text, "self:", 5) == 0 && text[5]) {
        o->peer = PEER_SELF;
        o->peer_algo = text + 5;
    } else if (strcmp(text, "copy") == 0) {
        o->peer = PEER_COPY;
    } else if (strcmp(text, "none") == 0) {
        o->peer = PEER_NONE;
    } else {
        return refuse(loud, "--peer %s: not mpi, nccl, nccl:symmetric, self:ALGO, copy or none", text);
    }
    return 0;
}

static int set_words(options_t *o, int option, const char *text, bool loud)
{
    switch (option) {
    case 't':
        return parse_type(text, &o->type) ? 0 : refuse(loud, "-t %s: not a type that rondo knows", text);
    case 'o':
        return parse_reduction(text, &o->reduction) ? 0 : refuse(loud, "-o %s: not an operator that rondo knows", text);
    case OPT_DEVICE:
        o->cuda = strcmp(text, "cuda") == 0;
        if (o->cuda && !device_built())
            return refuse(loud, "--device cuda: this rondo is built without CUDA; only --device host works");
        return o->cuda || strcmp(text, "host") == 0 ? 0 : refuse(loud, "--device %s: not host or cuda", text);
    case OPT_PEER:
        return set_peer(o, text, loud);
    case OPT_FORMAT:
        return parse_format(text, &o->format) ? 0 : refuse(loud, "--format %s: not table, osu, nccl or json", text);
    case OPT_NCCL:
        o->nccl = text;
        return 0;
    case OPT_PLOT:
        o->plot = text;
        return canvas_refuses(text) ? refuse(loud, "--plot %s: %s", text, canvas_refuses(text)) : 0;
    case OPT_BOUND:
        o->bound = text;
        return 0;
    case OPT_ALGO:
        o->algo = text;
        return 0;
    default:
        o->proto = text;
        return 0;
    }
}

/* Options without a word behind them; -c takes one if it is 0 or 1. */
static int set_flag(options_t *o, int option, int argc, char **argv, bool loud)
{
    switch (option) {
    case 'c':
        o->verify = true;
        if (optind < argc && (strcmp(argv[optind], "0") == 0 || strcmp(argv[optind], "1") == 0))
            o->verify = argv[optind++][0] == '1';
        return 0;
    case OPT_GRAPH:
        o->graph = true;
        return 0;
    case OPT_IN_PLACE:
        o->in_place = true;
        return 0;
    case OPT_REGISTER:
        o->registered = true;
        return 0;
    case OPT_FULL:
        o->full = true;
        return 0;
    case OPT_PERCENTILES:
        o->percentiles = true;
        return 0;
    case OPT_SKEW:
        o->skew = true;
        return 0;
    case OPT_PLANT:
        o->plant_error = true;
        return 0;
    default:
        return refuse(loud, "%s: no such option, or its value is missing", argv[optind > 1 ? optind - 1 : optind]);
    }
}

/* What no single option can see. */
static int check_together(const options_t *o, bool loud)
{
    if (o->first > o->last)
        return refuse(loud, "-b %zu is larger than -e %zu", o->first, o->last);
    if (o->in_place && !op_in_place_possible(o->op))
        return refuse(loud, "--in-place: %s has no form in place", o->op->name);
    if (o->skew && !o->op->ragged)
        return refuse(loud, "--skew: %s has one count for all ranks; use %sv", o->op->name, o->op->name);
    if (o->pieces > 1 && (o->op->layout > LAYOUT_BCAST || o->op->special))
        return refuse(loud, "--pieces: only of allreduce, reduce and broadcast; %s moves blocks", o->op->name);
    if (o->op->special && (o->format == FORMAT_OSU || o->format == FORMAT_NCCL))
        return refuse(loud, "--format: OSU and nccl-tests know no '%s'; use table or json", o->op->name);
    if (o->op->special && (o->plot || o->nops > 1))
        return refuse(loud, "'%s' has no sizes: it is measured alone, and without --plot", o->op->name);
    if (o->bound && !o->plot)
        return refuse(loud, "--bound: it is shown in a picture, so it goes with --plot");
    if (o->op->special && o->peer != PEER_NONE)
        return refuse(loud, "--peer: '%s' has no peer", o->op->name);
    if ((o->graph || o->peer == PEER_NCCL) && !o->cuda)
        return refuse(loud, "%s: only with --device cuda", o->graph ? "--graph" : "--peer nccl");
    if (o->cuda && (o->peer == PEER_MPI || o->peer == PEER_COPY))
        return refuse(loud, "--device cuda: not with --peer mpi or copy");
    if (o->graph && o->op->special)
        return refuse(loud, "--graph: '%s' is not replayed", o->op->name);
    if (o->graph && o->percentiles)
        return refuse(loud, "--graph: --percentiles would time replays of %d calls", GRAPH_CALLS);
    if (o->peer == PEER_MPI && o->ranks)
        return refuse(loud, "--peer mpi needs mpirun, in place of --ranks");
    if (o->peer == PEER_COPY && o->op->layout == LAYOUT_NONE)
        return refuse(loud, "--peer copy: %s moves no data", o->op->name);
    return 0;
}

options_t options_for(const options_t *options, int number)
{
    options_t o = *options;
    bool blocks;

    o.number = number;
    o.op = o.ops[number];
    blocks = o.op->layout >= LAYOUT_COLLECT && o.op->layout <= LAYOUT_SCATTER;
    if (o.last == 0)
        o.last = blocks ? (size_t)16 << 20 : (size_t)64 << 20;
    return o;
}

/* "allreduce,broadcast" */
static int set_operations(options_t *o, char *text, bool loud)
{
    for (char *save, *name = strtok_r(text, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
        if (o->nops == OPS_MOST)
            return refuse(loud, "more than %d operations", OPS_MOST);
        o->ops[o->nops] = op_find(name);
        if (!o->ops[o->nops++])
            return refuse(loud, "%s: no such operation", name);
    }
    return o->nops ? 0 : refuse(loud, "no operation given");
}

static void keep_command(options_t *o, int argc, char **argv)
{
    size_t at = (size_t)snprintf(o->command, sizeof o->command, "$ rondo-perf");

    for (int i = 1; i < argc && at < sizeof o->command; i++)
        at += (size_t)snprintf(o->command + at, sizeof o->command - at, " %s", argv[i]);
}

int options_parse(options_t *o, int argc, char **argv, bool loud)
{
    int option, end = 0;

    *o = (options_t){.first = 8,
                     .factor = 2,
                     .type = RONDO_FLOAT32,
                     .reduction = RONDO_SUM,
                     .warmup = 10,
                     .turns = 11,
                     .window = 64,
                     .pieces = 1,
                     .turn_ms = 10,
                     .verify = true};
    keep_command(o, argc, argv);
    opterr = 0;
    while (!end && (option = getopt_long(argc, argv, "b:e:f:t:o:r:n:w:chN:", long_options, NULL)) != -1) {
        if (option == 'h') {
            if (loud)
                print_help();
            return 1;
        }
        if (!optarg)
            end = set_flag(o, option, argc, argv, loud);
        else if (option == 'b' || option == 'e' || option == 'f' || option == OPT_OFFSET)
            end = set_sizes(o, option, optarg, loud);
        else if (option == 't' || option == 'o' || (option >= OPT_DEVICE && option <= OPT_PROTO))
            end = set_words(o, option, optarg, loud);
        else
            end = set_counts(o, option == 'N' ? OPT_RANKS : option, optarg, loud);
    }
    if (end)
        return end;
    if (optind != argc - 1)
        return refuse(loud, optind == argc ? "no operation given" : "more than one operation given: %s", argv[optind]);
    if (o->first == 0)
        o->first = 1;
    end = set_operations(o, argv[optind], loud);
    for (int i = 0; i < o->nops && !end; i++) {
        options_t one = options_for(o, i);

        end = check_together(&one, loud);
    }
    return end;
}
