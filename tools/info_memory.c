/* rondo-info memory: what a communicator takes of one rank's memory, from the functions that lay it out when one is
 * made. Needs neither the nodes nor their GPUs. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/footprint.h"
#include "info.h"
#include "number.h"

typedef struct wish {
    bool cuda;
    int cores;
} wish_t;

static int wish_read(wish_t *w, int argc, char **argv)
{
    static const struct option options[] = {{"cores", 1, NULL, 'c'}, {"device", 1, NULL, 'd'}, {NULL, 0, NULL, 0}};
    int option;

    argc++; /* getopt_long looks at argv[1] first: argv[-1] is "memory" */
    argv--;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'c' && number_is(optarg, 1, 100000, &w->cores))
            continue;
        w->cuda = option == 'd' && strcmp(optarg, "cuda") == 0;
        if (w->cuda || (option == 'd' && strcmp(optarg, "host") == 0))
            continue;
        if (option != '?')
            fprintf(stderr, "rondo-info memory: \"%s\": wanted is %s\n", optarg,
                    option == 'c' ? "a number of cores from 1 to 100000" : "host or cuda");
        return 2;
    }
    if (!w->cuda || rd_cuda_built())
        return 0;
    fprintf(stderr, "rondo-info memory: this rondo is built without CUDA\n");
    return 2;
}

static int memory(const wish_t *w, const rd_env_t *env, const char *text)
{
    rondo_shape_t shape = RONDO_SHAPE_INIT;
    rondo_memory_t m = {0};
    char title[64];
    int nodes, ranks;

    if (!number_shape(text, 1, &nodes, &ranks)) {
        fprintf(stderr, "rondo-info memory: \"%s\": wanted is NODESxRANKS, as 4x8, of at most 1048576 ranks\n", text);
        return 2;
    }
    shape.nranks = nodes * ranks;
    shape.nnodes = nodes;
    shape.cores = w->cores;
    if (rd_footprint_shape(&shape, &shape) != RONDO_SUCCESS)
        return 1;
    rd_footprint_foresee(env, &shape, w->cuda, &m);
    snprintf(title, sizeof title, "%d node%s of %d", nodes, nodes == 1 ? "" : "s", ranks);
    printf("%-20s %14" PRIu64 " %14" PRIu64 " %14" PRIu64 " %16" PRIu64 "\n", title, m.device, m.pinned, m.shared,
           m.network);
    return 0;
}

int info_memory(const rd_env_t *env, int argc, char **argv)
{
    static const char *const usual[] = {"1x8", "4x8", "64x8"};
    wish_t w = {0};
    int code = wish_read(&w, argc, argv), given = argc + 1 - optind;

    if (code)
        return code;
    printf("%-20s %14s %14s %14s %16s\n", w.cuda ? "bytes a rank, CUDA" : "bytes a rank, host", "device", "pinned",
           "shared", "network");
    for (int i = 0; i < (given ? given : 3) && code == 0; i++)
        code = memory(&w, env, given ? argv[optind - 1 + i] : usual[i]);
    return code;
}
