/* The machine that RONDO_TOPO_FILE names, in whichever form it was recorded. */
#include <string.h>

#include "topo/graph.h"
#include "topo/topo.h"
#include "topo/topo_gpu.h"

static rondo_result_t graph_read(rd_gpu_topo_t *topo, const char *file)
{
    const rd_graph_origin_t origin = {"RONDO_TOPO_FILE", file};
    rd_graph_t graph;
    rondo_result_t result = rd_graph_get(&graph, file, origin.variable);

    if (result != RONDO_SUCCESS)
        return result;
    result = rd_graph_matrix(topo, &graph, &origin);
    rd_graph_free(&graph);
    return result;
}

rondo_result_t rd_gpu_topo_read(rd_gpu_topo_t *topo, const char *file)
{
    rd_gpu_topo_t new;
    rondo_result_t result;

    memset(&new, 0, sizeof new);
    new.nodes = 1;
    if (!*file)
        result = rd_gpu_topo_walk(&new, "/sys");
    else if ((result = rd_topo_file_there(file)) != RONDO_SUCCESS)
        return result;
    else if (rd_gpu_topo_is(file))
        result = rd_gpu_topo_file(&new, file);
    else if (rd_graph_is(file))
        result = graph_read(&new, file);
    else if (rd_graph_is_hwloc(file)) { /* hwloc's machines have no GPUs that rondo reads */
        snprintf(new.source, sizeof new.source, "a recorded machine without GPUs");
        result = RONDO_SUCCESS;
    } else {
        result = rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                          "RONDO_TOPO_FILE=%.200s cannot be read as a machine: it is none of rondo-info topo --save, "
                          "NCCL (NCCL_TOPO_DUMP_FILE) or hwloc (lstopo machine.xml)",
                          file);
    }
    if (result == RONDO_SUCCESS)
        *topo = new;
    return result;
}
