/* An iterative solver's inner loop on GPUs, captured once and replayed: each step a kernel of the user's (here a copy)
 * and an allreduce, in one stream, without the host in between.
 *
 *   mpicc graph.c $(pkg-config --cflags --libs rondo) -lcudart -o graph && mpirun -n 4 ./graph
 *
 * Every rank takes device `rank % devices` of its node. Exit: 0 right, 1 wrong, 77 no CUDA device.
 */
#include <cuda_runtime_api.h>
#include <rondo_mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 100000
#define STEPS 8 /* in the graph */
#define REPLAYS 5

static void must(int bad, const char *what)
{
    if (bad) {
        fprintf(stderr, "graph: %s failed\n", what); /* rondo has said why on standard error */
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* x = sum of x over the ranks, divided by their number: a step that must not change a vector that is alike everywhere. */
static cudaGraphExec_t record(float *x, float *y, rondo_comm_t comm, cudaStream_t stream)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    for (int step = 0; step < STEPS; step++) {
        must(rondo_allreduce(x, y, COUNT, RONDO_FLOAT32, RONDO_AVG, comm, stream), "rondo_allreduce");
        must(cudaMemcpyAsync(x, y, COUNT * sizeof *x, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
    }
    must(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    must(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
    must(cudaGraphDestroy(graph), "cudaGraphDestroy");
    return exec;
}

int main(int argc, char **argv)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    int rank, nranks, devices = 0, wrong = 0;
    float *x, *y, *host;
    cudaStream_t stream;
    rondo_comm_t comm;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        if (rank == 0)
            printf("graph: there is no CUDA device here\n");
        MPI_Finalize();
        return 77;
    }
    must(cudaSetDevice(rank % devices), "cudaSetDevice");
    must(cudaMalloc((void **)&x, COUNT * sizeof *x) || cudaMalloc((void **)&y, COUNT * sizeof *y), "cudaMalloc");
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    config.device = rank % devices;
    must(rondo_comm_create_mpi(&comm, MPI_COMM_WORLD, &config), "rondo_comm_create_mpi");

    host = malloc(COUNT * sizeof *host);
    must(!host, "malloc");
    for (int i = 0; i < COUNT; i++)
        host[i] = (float)(rank + i % 7);
    must(cudaMemcpyAsync(x, host, COUNT * sizeof *x, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    cudaGraphExec_t exec = record(x, y, comm, stream);
    for (int i = 0; i < REPLAYS; i++)
        must(cudaGraphLaunch(exec, stream), "cudaGraphLaunch");
    must(cudaMemcpyAsync(host, x, COUNT * sizeof *x, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    for (int i = 0; i < COUNT; i++) {
        double want = (nranks - 1) / 2.0 + i % 7, off = host[i] - want;
        wrong += off > 1e-4 * (1 + want) || off < -1e-4 * (1 + want);
    }
    printf("rank %d of %d: %d steps from a graph, %d wrong elements\n", rank, nranks, STEPS * REPLAYS, wrong);
    must(cudaGraphExecDestroy(exec) || cudaStreamDestroy(stream), "giving back");
    must(rondo_comm_destroy(comm), "rondo_comm_destroy");
    free(host);
    must(cudaFree(x) || cudaFree(y), "cudaFree");
    MPI_Finalize();
    return wrong != 0;
}
