/* How many graphs hold operations of a communicator: their nodes have its addresses, which are others after a
 * suspension (suspend.c). Each capture of operations gives its graph an object of the user's, as CUDA calls it, which
 * is destroyed with the last of the graph, its copies and what was instantiated of it. That may be after the
 * communicator's end, and on a thread of CUDA's, so what counts has memory of its own. */
#include <stdlib.h>

#include "exec/cuda/cuda_int.h"

struct rd_graphs {
    _Atomic int alive; /* captures whose graph, or a copy of it, is there */
    _Atomic int users; /* these, and the communicator */
};

static void drop(struct rd_graphs *g)
{
    if (atomic_fetch_sub_explicit(&g->users, 1, memory_order_acq_rel) == 1)
        free(g);
}

static void CUDART_CB gone(void *data)
{
    struct rd_graphs *g = data;

    atomic_fetch_sub(&g->alive, 1);
    drop(g);
}

cudaError_t rd_graphs_hold(rd_cuda_t *cuda, cudaGraph_t graph)
{
    cudaUserObject_t object;
    cudaError_t error;

    if (!cuda->graphs) {
        if (!(cuda->graphs = malloc(sizeof *cuda->graphs)))
            return cudaErrorMemoryAllocation;
        atomic_init(&cuda->graphs->alive, 0);
        atomic_init(&cuda->graphs->users, 1);
    }
    error = cudaUserObjectCreate(&object, cuda->graphs, gone, 1, cudaUserObjectNoDestructorSync);
    if (error != cudaSuccess)
        return error;
    atomic_fetch_add(&cuda->graphs->users, 1);
    atomic_fetch_add(&cuda->graphs->alive, 1);
    error = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
    if (error != cudaSuccess)
        (void)cudaUserObjectRelease(object, 1); /* undoes all of it */
    return error;
}

int rd_graphs_alive(const rd_cuda_t *cuda)
{
    return cuda->graphs ? atomic_load(&cuda->graphs->alive) : 0;
}

void rd_graphs_free(rd_cuda_t *cuda)
{
    if (cuda->graphs)
        drop(cuda->graphs);
    cuda->graphs = NULL;
}
