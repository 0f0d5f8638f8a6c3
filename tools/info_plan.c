/* rondo-info plan: asks rd_choose what a communicator of this shape would choose, and prints all that it weighed. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/conns.h"
#include "cost/model.h"
#include "canvas.h"
#include "exec/cuda/cuda.h"
#include "info.h"
#include "info_plot.h"
#include "number.h"
#include "plan/choose.h"
#include "topo/topo.h"
#include "base/types.h"

#define BYTES_MOST ((uint64_t)1 << 63) /* of the whole operation: what is rounded up is a size_t still */

typedef struct wish {
    rd_coll_t coll;
    uint64_t size; /* one rank's message */
    int ranks, nodes, cores, root, steps, rank, played, cuda, sms;
    rondo_type_t type;
    rd_shape_t shape;
    int *node;
    const char *plot, *record; /* files, or NULL */
} wish_t;

static int refuse(const char *what, const char *text, const char *allowed)
{
    fprintf(stderr, "rondo-info plan: %s \"%s\": %s\n", what, text, allowed);
    return 2;
}

static int number(const char *option, const char *text, int least, int most, int *value)
{
    char allowed[64];

    if (number_is(text, least, most, value))
        return 0;
    snprintf(allowed, sizeof allowed, "a number from %d to %d is wanted", least, most);
    return refuse(option, text, allowed);
}

static int option_read(wish_t *w, int option, const char *text)
{
    switch (option) {
    case 'n':
        return number("--ranks", text, 1, 100000, &w->ranks);
    case 'm':
        return number("--nodes", text, 1, 100000, &w->nodes);
    case 'c':
        return number("--cores", text, 1, 100000, &w->cores);
    case 'r':
        return number("--root", text, 0, 99999, &w->root);
    case 'k':
        w->steps = 1;
        return number("--rank", text, 0, 99999, &w->rank);
    case 's':
        w->steps = 1;
        return 0;
    case 'p':
        w->played = 1;
        return 0;
    case 'd':
        w->cuda = strcmp(text, "cuda") == 0;
        return w->cuda || strcmp(text, "host") == 0 ? 0 : refuse("--device", text, "host or cuda is wanted");
    case 'g':
        return number("--multiprocessors", text, 1, 10000, &w->sms);
    case 'f':
        w->plot = text;
        return canvas_refuses(text) ? refuse("--plot", text, canvas_refuses(text)) : 0;
    case 'x':
        w->record = text;
        return 0;
    case 't':
        return rd_type_parse(text, &w->type) == 0 ? 0 : refuse("--type", text, "no such type");
    default:
        fprintf(stderr, "rondo-info plan: see rondo-info --help\n");
        return 2;
    }
}

/* Messages of one rank's size that the whole operation is made of. */
static size_t blocks(const wish_t *w)
{
    bool each = w->coll == RD_ALLGATHER || w->coll == RD_GATHER || w->coll == RD_SCATTER || w->coll == RD_ALLTOALL;

    return each ? (size_t)w->ranks : 1;
}

static int wish_check(const wish_t *w)
{
    if (w->nodes > w->ranks)
        fprintf(stderr, "rondo-info plan: %d ranks cannot be spread over %d nodes\n", w->ranks, w->nodes);
    else if (w->root >= w->ranks)
        fprintf(stderr, "rondo-info plan: --root %d of %d ranks\n", w->root, w->ranks);
    else if (w->rank >= w->ranks)
        fprintf(stderr, "rondo-info plan: --rank %d of %d ranks\n", w->rank, w->ranks);
    else if (w->size > BYTES_MOST / blocks(w))
        fprintf(stderr, "rondo-info plan: %zu times %" PRIu64 " bytes are more than 2^63\n", blocks(w), w->size);
    else
        return 0;
    return 2;
}

static int wish_read(wish_t *w, int argc, char **argv)
{
    static const struct option options[] = {{"ranks", 1, NULL, 'n'},  {"nodes", 1, NULL, 'm'},
                                            {"cores", 1, NULL, 'c'},  {"type", 1, NULL, 't'},
                                            {"root", 1, NULL, 'r'},   {"steps", 0, NULL, 's'},
                                            {"rank", 1, NULL, 'k'},   {"played", 0, NULL, 'p'},
                                            {"device", 1, NULL, 'd'}, {"multiprocessors", 1, NULL, 'g'},
                                            {"plot", 1, NULL, 'f'},   {"measured", 1, NULL, 'x'},
                                            {NULL, 0, NULL, 0}};
    int option, result, words;

    argc++; /* getopt_long looks at argv[1] first: argv[-1] is "plan" */
    argv--;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        if ((result = option_read(w, option, optarg)) != 0)
            return result;
    words = argc - optind;
    if (words < 1 || words > 2) {
        fprintf(stderr, "rondo-info plan: OPERATION and SIZE are wanted; see rondo-info --help\n");
        return 2;
    }
    if (rd_coll_parse(argv[optind], &w->coll) != 0)
        return refuse("OPERATION", argv[optind],
                      "wanted is allreduce, reduce, broadcast, allgather, reduce_scatter, alltoall, gather, scatter or "
                      "barrier");
    if (w->record && !w->plot)
        return refuse("--measured", w->record, "it is shown in a picture, so it goes with --plot");
    if (w->plot && (w->cuda || w->coll == RD_BARRIER))
        return refuse("--plot", w->plot, "it shows operations with sizes on host memory");
    if (words == 1 && w->coll != RD_BARRIER && !w->plot)
        return refuse("OPERATION", argv[optind], "a SIZE is wanted after it");
    if (words == 2 && rd_bytes_parse(argv[optind + 1], &w->size) != 0)
        return refuse("SIZE", argv[optind + 1], "wanted is a number of bytes with an optional K, M or G");
    return 0;
}

/* Of the whole operation, as the cost model wants it. */
static size_t whole(const wish_t *w)
{
    size_t element = rondo_type_size(w->type), n = (size_t)w->ranks, bytes = w->size / element * element;

    switch (w->coll) {
    case RD_ALLREDUCE:
    case RD_REDUCE:
    case RD_BROADCAST:
        return bytes;
    case RD_REDUCE_SCATTER:
        return bytes / (n * element) * (n * element);
    case RD_BARRIER:
        return 1;
    default:
        return bytes * n;
    }
}

static void head(const wish_t *w, const rd_choose_args_t *a, const char *prices)
{
    char size[24], total[24], slot[24];

    printf("%s", rd_coll_name(w->coll));
    if (w->coll != RD_BARRIER)
        printf(" of %s bytes a rank (%s in all), %s", rd_bytes_print(w->size, size), rd_bytes_print(a->bytes, total),
               rd_type_name(w->type));
    printf(", %d ranks on %d %s, %d %s a node, %d slots of %s bytes, prices of %s\n\n", w->ranks, w->nodes,
           w->nodes == 1 ? "node" : "nodes", w->cores, w->cores == 1 ? "core" : "cores", a->slots,
           rd_bytes_print(a->slot_bytes, slot), prices);
}

static void table(const rd_choice_t *all, int n)
{
    int excluded = 0;

    if (n > 0 && !all[0].excluded)
        printf("    %-15s %-8s %10s %14s\n", "algorithm", "protocol", "message", "predicted us");
    for (int i = 0; i < n; i++) {
        char slice[24], name[24];

        if (all[i].excluded) {
            excluded++;
            continue;
        }
        snprintf(name, sizeof name, all[i].param ? "%s:%d" : "%s", all[i].algo->name, all[i].param);
        printf("%s %-15s %-8s %10s %14.2f\n", i == 0 ? "-->" : "   ", name, rd_proto_name(all[i].proto),
               rd_bytes_print(all[i].slice, slice), all[i].us);
    }
    if (excluded)
        printf("%sexcluded:\n", all[0].excluded ? "" : "\n");
    for (int i = 0; i < n; i++) {
        const rd_choice_t *c = &all[i];
        int both = i + 1 < n && all[i + 1].algo == c->algo && all[i + 1].excluded == c->excluded;

        if (!c->excluded)
            continue;
        printf("    %-15s %-8s   %s\n", c->algo->name, both ? "" : rd_proto_name(c->proto), c->excluded);
        i += both;
    }
}

static void line_print(void *arg, const char *text)
{
    (void)arg;
    printf("%s\n", text);
}

static int steps(const wish_t *w, const rd_choice_t *best, int fuse)
{
    int first = w->rank < 0 ? 0 : w->rank, last = w->rank < 0 ? w->ranks - 1 : w->rank;

    printf("\n");
    for (int r = first; r <= last; r++) {
        rd_sched_args_t args = {&w->shape, w->coll, r, w->root, best->param, best->together};
        rd_steps_t *s = best->algo->emit(&args);
        const char *why = "no memory";
        rd_program_t *program;

        if (!s || rd_compile(s, fuse, &program, &why) != 0) {
            fprintf(stderr, "rondo-info plan: %s does not compile: %s\n", best->algo->name, why);
            rd_steps_free(s);
            return 1;
        }
        rd_steps_free(s);
        rd_program_print(program, r, line_print, NULL);
        rd_program_free(program);
    }
    return 0;
}

static int show(const wish_t *w, const rd_env_t *env)
{
    static rd_choice_t all[RD_CHOICES_MOST];
    int nall = RD_CHOICES_MOST, local = (w->ranks + w->nodes - 1) / w->nodes;
    rd_layout_t layout;
    rd_prices_t prices;
    rd_choice_t best;
    int number;

    if (rd_prices_find(&prices, &number, env->tune, NULL) != RONDO_SUCCESS)
        return 1;
    rd_layout_init(&layout, local, w->nodes, env);
    rd_choose_args_t args = {.coll = w->coll,
                             .bytes = whole(w),
                             .type_size = rondo_type_size(w->type),
                             .root = w->root,
                             .shape = &w->shape,
                             .env = env,
                             .local = local,
                             .cores = w->cores,
                             .sharing = w->played ? w->ranks : local,
                             .prices = &prices,
                             .slot_bytes = layout.slot_bytes,
                             .long_bytes = layout.long_bytes,
                             .slots = (int)layout.slots,
                             .cma = env->cma && w->nodes == 1};
    if (w->plot)
        return info_plan_plot(&(info_plot_t){.args = args,
                                             .blocks = blocks(w),
                                             .prices = number < 0 ? env->tune : rd_prices_name(number),
                                             .file = w->plot,
                                             .record = w->record});
    rondo_result_t result = rd_choose(&args, &best, all, &nall, NULL);
    if (nall == 0) /* what is forced names nothing that serves here */
        return 1;
    head(w, &args, number < 0 ? env->tune : rd_prices_name(number));
    table(all, nall);
    if (result != RONDO_SUCCESS)
        return 1;
    return w->steps ? steps(w, &best, layout.slots > 1) : 0;
}

/* Between GPUs: as many as were asked for, of the machine that there is, or of one that is not described. */
static int cuda_plan(wish_t *w, const rd_env_t *env)
{
    rd_gpu_topo_t topo;
    rd_cuda_shape_t shape;
    uint64_t bytes;

    if (info_gpus(&topo, env) != 0)
        return 1;
    if (w->ranks == 0)
        w->ranks = topo.count ? topo.count * topo.nodes : 2;
    if (topo.count && w->ranks > topo.count) {
        fprintf(stderr,
                "rondo-info plan: %d ranks, but a node of this machine has %d GPUs: on CUDA there are plans "
                "within one node\n",
                w->ranks, topo.count);
        return 1;
    }
    if (wish_check(w) != 0)
        return 2;
    if (w->ranks == 1) {
        printf("%s on one GPU: a copy within it, by CUDA\n", rd_coll_name(w->coll));
        return 0;
    }
    shape = info_shape(&topo, w->ranks);
    if (w->sms || shape.sms == 0)
        shape.sms = w->sms ? w->sms : 132;
    bytes = w->coll == RD_REDUCE_SCATTER ? w->size / (uint64_t)w->ranks : w->size;
    return rd_cuda_plan_print(stdout, w->coll, w->type, (size_t)(bytes / rondo_type_size(w->type)), &shape, env) !=
           RONDO_SUCCESS;
}

/* GPUs on several nodes: what remains is a round's plan on host memory, by the net communicator of all ranks or of a
 * rail. */
static void proxied(wish_t *w, rd_env_t *env)
{
    int parts = w->ranks % w->nodes == 0 ? w->ranks / w->nodes : 1;
    uint64_t slot = env->proxy_bytes ? env->proxy_bytes : (uint64_t)512 << 10;
    char text[24];

    env->algo[0] = env->proto[0] = '\0';
    printf("GPUs on %d nodes: through pinned memory, in rounds of at most %s\n", w->nodes, rd_bytes_print(slot, text));
    if (parts > 1 && (w->coll == RD_ALLREDUCE || w->coll == RD_BROADCAST || w->coll == RD_ALLGATHER)) {
        printf(
            "inside a node by its kernels (rondo-info plan ... --device cuda --ranks %d), between nodes on %d rails\n",
            parts, parts);
        w->root /= parts;
        w->ranks = w->nodes;
        w->size = w->coll == RD_ALLGATHER ? w->size : (w->size + (uint64_t)parts - 1) / (uint64_t)parts;
    }
    w->size = w->size < slot ? w->size : slot;
    printf("a round between the host's memories:\n\n");
}

int info_plan(const rd_env_t *env, int argc, char **argv)
{
    wish_t w = {.nodes = 1, .type = RONDO_FLOAT32, .rank = -1};
    rd_env_t net_comm;
    rd_topo_t topo;
    int result;

    rd_topo_basic(&topo);
    w.cores = topo.usable;
    result = wish_read(&w, argc, argv);
    if (result == 0 && w.cuda && (w.nodes == 1 || !rd_cuda_built()))
        return cuda_plan(&w, env);
    if (w.ranks == 0)
        w.ranks = topo.usable < 2 ? 2 : topo.usable;
    if (result == 0)
        result = wish_check(&w);
    if (result != 0)
        return result;
    if (w.cuda) {
        net_comm = *env;
        proxied(&w, &net_comm);
        env = &net_comm;
    }
    w.node = malloc((size_t)w.ranks * sizeof *w.node);
    if (!w.node)
        return 1;
    for (int r = 0; r < w.ranks; r++)
        w.node[r] = (int)((long)r * w.nodes / w.ranks);
    w.shape = (rd_shape_t){w.ranks, w.nodes, w.nodes > 1 ? w.node : NULL};
    result = show(&w, env);
    free(w.node);
    return result;
}
