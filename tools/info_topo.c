/* rondo-info topo: the GPUs of this machine, or of a recorded one: how they reach each other, and what would be chosen
 * between them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exec/cuda/cuda.h"
#include "canvas.h"
#include "info.h"
#include "info_plot.h"

int info_gpus(rd_gpu_topo_t *topo, const rd_env_t *env)
{
    if (rd_gpu_topo_read(topo, env->topo_file) != RONDO_SUCCESS)
        return 1;
    for (int g = 0; g < topo->count; g++)
        if (topo->gpu[g].sms == 0)
            topo->gpu[g].sms = rd_cuda_multiprocessors(topo->gpu[g].bus);
    return 0;
}

rd_cuda_shape_t info_shape(const rd_gpu_topo_t *topo, int nranks)
{
    rd_cuda_shape_t shape = {nranks, 0, rd_gpu_farthest(topo, nranks < topo->count ? nranks : topo->count)};

    for (int g = 0; g < topo->count && g < nranks; g++)
        if (shape.sms == 0 || topo->gpu[g].sms < shape.sms)
            shape.sms = topo->gpu[g].sms;
    return shape;
}

static int save(const rd_gpu_topo_t *topo, const char *name)
{
    FILE *file = fopen(name, "w");
    int bad;

    if (!file) {
        fprintf(stderr, "rondo-info topo: %s: %s\n", name, strerror(errno));
        return 1;
    }
    rd_gpu_topo_write(topo, file);
    bad = ferror(file);
    if (fclose(file) != 0 || bad) {
        fprintf(stderr, "rondo-info topo: %s cannot be written\n", name);
        return 1;
    }
    return 0;
}

/* A recorded machine is one of hwloc's or one of GPUs; the rest of it is then unknown. */
static int draw(const rd_env_t *env, const char *file)
{
    bool gpus_alone = env->topo_file[0] && (rd_gpu_topo_is(env->topo_file) || rd_graph_is(env->topo_file));
    rd_topo_t host = {0};
    rd_gpu_topo_t gpus = {.source = "no GPUs"};

    if (canvas_refuses(file)) {
        fprintf(stderr, "rondo-info topo: --draw %s: %s\n", file, canvas_refuses(file));
        return 2;
    }
    if (!gpus_alone && rd_topo_read(&host, env->topo_file) != RONDO_SUCCESS)
        return 1;
    if ((gpus_alone || !env->topo_file[0]) && info_gpus(&gpus, env) != 0)
        return 1;
    return info_topo_draw(&host, &gpus, file);
}

/* Files of cloud images give addresses, and leave it to the reader to look there. */
static void unknown_print(const rd_graph_t *graph)
{
    int unknown = 0;

    for (int i = 0; i < graph->nnodes; i++)
        unknown += graph->node[i].kind == RD_GRAPH_PCI && graph->node[i].count == 1; /* nothing is below it */
    if (unknown)
        printf("the file has %d PCIe device%s without a class: what %s is found by a communicator, on the machine that "
               "has %s\n",
               unknown, unknown == 1 ? "" : "s", unknown == 1 ? "it is" : "they are", unknown == 1 ? "it" : "them");
}

static int show(const rd_env_t *env, const rd_graph_t *graph)
{
    rd_gpu_topo_t topo;

    if (graph->ngpus > RD_GPUS_MOST || graph->nnets > RD_NICS_MOST)
        return info_large(graph, env);
    if (info_gpus(&topo, env) != 0)
        return 1;
    rd_gpu_topo_print(&topo, stdout);
    if (env->topo_file[0])
        unknown_print(graph);
    if (topo.count < 2)
        return 0;
    if (info_rings(graph, env) != 0)
        return 1;
    rd_cuda_shape_t shape = info_shape(&topo, topo.count);
    printf("\n");
    if (!rd_cuda_built() || shape.sms == 0) {
        printf("what would be chosen: %s\n",
               !rd_cuda_built()         ? "this rondo is built without CUDA"
               : env->topo_file[0] == 0 ? "not known, for this process does not see these GPUs"
                                        : "not known, for the file does not say how many multiprocessors they have");
        return 0;
    }
    return rd_cuda_choices_print(stdout, &shape, env) != RONDO_SUCCESS;
}

int info_topo(const rd_env_t *env, int argc, char **argv)
{
    rd_gpu_topo_t topo;
    rd_graph_t graph = {0};

    if (argc != 0 && (argc != 2 || (strcmp(argv[0], "--save") != 0 && strcmp(argv[0], "--draw") != 0 &&
                                    strcmp(argv[0], "--xml") != 0 && strcmp(argv[0], "--graph") != 0))) {
        fprintf(stderr, "rondo-info topo: \"%s\" is not wanted; see rondo-info --help\n", argv[0]);
        return 2;
    }
    if (argc == 2 && strcmp(argv[0], "--draw") == 0)
        return draw(env, argv[1]);
    if (argc == 2 && strcmp(argv[0], "--xml") == 0)
        return info_xml(env, argv[1]);
    if (argc == 2 && strcmp(argv[0], "--graph") == 0)
        return info_graph(env, argv[1]);
    if (argc == 2)
        return info_gpus(&topo, env) != 0 || save(&topo, argv[1]) != 0;
    if (rd_graph_get(&graph, env->topo_file, "RONDO_TOPO_FILE") != RONDO_SUCCESS)
        return 1;
    int code = show(env, &graph);
    rd_graph_free(&graph);
    return code;
}
