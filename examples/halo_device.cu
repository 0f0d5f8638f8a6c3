/* A halo exchange without a host: one kernel makes all iterations of Jacobi's method, and its blocks put edges into the
 * neighbours' memory, signal and wait by themselves.
 *
 *   nvcc -std=c++17 -arch=native halo_device.cu $(pkg-config --cflags --libs rondo) -o halo_device
 *   ./halo_device [RANKS [ROWS [WIDTH [ITERATIONS]]]]      one process, a thread and a GPU for each rank
 *
 * Each rank has ROWS rows and, above and below them, a row of the neighbour's. Blocks have neighbouring rows: the first
 * and the last exchange an edge with the rank above and below. Two fields are used in turns, so no neighbour writes
 * what is still read: it puts an edge for iteration i + 2 when it has taken the signal of i + 1, which this rank gives
 * when it has read that of i. The kernel is launched twice, as it is and from a graph: signals are counted on the GPU,
 * so a launch holds no number. Exit: 0 right, 1 wrong, 77 no GPU.
 */
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <rondo.h>
#include <rondo_device.cuh>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#define THREADS 512
#define FROM_ABOVE 0 /* signals: an edge has come */
#define FROM_BELOW 1

static void must(int bad, const char *what)
{
    if (bad) {
        fprintf(stderr, "halo_device: %s failed: %d\n", what, bad); /* rondo has said why on standard error */
        exit(1);
    }
}

/* Row 0 and row rows + 1 are the neighbours'. */
struct field_t {
    float *at;
    int rows, width;

    __device__ float *row(int i) const
    {
        return at + (size_t)i * width;
    }
};

static __device__ void relax(const field_t &now, const field_t &next, int row)
{
    const float *up = now.row(row - 1), *here = now.row(row), *down = now.row(row + 1);
    float *to = next.row(row);

    for (int i = (int)threadIdx.x; i < now.width; i += THREADS) {
        const float left = i > 0 ? here[i - 1] : 0, right = i + 1 < now.width ? here[i + 1] : 0;
        to[i] = 0.25f * ((up[i] + down[i]) + (left + right));
    }
}

/* What one iteration needs of the neighbours. A rank at the border has none there: its halo stays as it is. */
struct edges_t {
    const rondo_device_t &device;
    const rondo_device_window_t &window;
    bool above, below; /* this block has an edge with a rank there */

    __device__ bool put(const field_t &next, size_t field) const
    {
        const rondo_dev_block block;
        const int rank = rondo_dev_rank(device);
        const size_t bytes = next.width * sizeof(float);
        bool well = true;

        if (above)
            well = rondo_dev_put_signal(block, device, window, rank - 1, field + (next.rows + 1) * bytes, next.row(1),
                                        bytes, FROM_BELOW);
        if (below)
            well =
                rondo_dev_put_signal(block, device, window, rank + 1, field, next.row(next.rows), bytes, FROM_ABOVE) &&
                well;
        return well;
    }

    __device__ bool wait() const
    {
        const rondo_dev_block block;
        const int rank = rondo_dev_rank(device);

        return (!above || rondo_dev_signal_wait(block, device, rank - 1, FROM_ABOVE)) &&
               (!below || rondo_dev_signal_wait(block, device, rank + 1, FROM_BELOW));
    }
};

/* The window holds two fields. A block that has to leave says so in *stop, because the others wait for it at the grid's
 * barrier. */
__global__ void __launch_bounds__(THREADS)
    jacobi(const __grid_constant__ rondo_device_t device, const __grid_constant__ rondo_device_window_t window,
           int rows, int width, int iterations, int *stop)
{
    const int rank = rondo_dev_rank(device), last = rondo_dev_nranks(device) - 1;
    const int each = (rows + (int)gridDim.x - 1) / (int)gridDim.x, first = (int)blockIdx.x * each + 1;
    const int end = first + each <= rows + 1 ? first + each : rows + 1;
    const size_t field = (size_t)(rows + 2) * width * sizeof(float);
    const edges_t edges = {device, window, rank > 0 && first == 1, rank < last && first < end && end == rows + 1};

    for (int i = 0; i < iterations; i++) {
        const size_t from = i % 2 ? field : 0, to = i % 2 ? 0 : field;
        const field_t now = {rondo_dev_pointer<float>(window, rank, from), rows, width};
        const field_t next = {rondo_dev_pointer<float>(window, rank, to), rows, width};
        for (int row = first; row < end; row++)
            relax(now, next, row);
        __syncthreads();
        bool well = edges.put(next, to);
        well = edges.wait() && well;
        if (!well && threadIdx.x == 0)
            atomicCAS(stop, 0, i + 1);
        cooperative_groups::this_grid().sync();
        const int stopped = *(volatile int *)stop; /* a block that is ahead may have to leave in the next iteration */
        if (stopped != 0 && stopped <= i + 1)
            return;
    }
}

struct rank_t {
    int rank, n, rows, width, iterations;
    rondo_comm_t comm;
    cudaStream_t stream;
    rondo_device_t device;
    rondo_window_t window;
    rondo_device_window_t view;
    int *stop;
    std::vector<float> result; /* the rank's rows */
    double us;                 /* of an iteration */
};

/* The first row of all is held at 1. */
static void reset(rank_t *r)
{
    const size_t field = (size_t)(r->rows + 2) * r->width;
    std::vector<float> host(2 * field, 0.f);
    float *here;

    if (r->rank == 0)
        for (int i = 0; i < r->width; i++)
            host[i] = host[field + i] = 1;
    must(rondo_window_buffer(r->comm, r->window, (void **)&here), "rondo_window_buffer");
    must(cudaMemcpyAsync(here, host.data(), 2 * field * sizeof(float), cudaMemcpyHostToDevice, r->stream), "a copy");
    must(cudaMemsetAsync(r->stop, 0, sizeof *r->stop, r->stream), "cudaMemsetAsync");
    must(rondo_barrier(r->comm, r->stream), "rondo_barrier"); /* no neighbour puts before */
    must(cudaStreamSynchronize(r->stream), "a copy");
}

static int blocks_of(const rank_t *r)
{
    int sms = 0, each = 0;

    must(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, r->rank), "cudaDeviceGetAttribute");
    must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, jacobi, THREADS, 0), "cudaOccupancy");
    return sms * each < r->rows ? sms * each : r->rows;
}

static void launch(rank_t *r)
{
    void *args[] = {&r->device, &r->view, &r->rows, &r->width, &r->iterations, &r->stop};

    must(cudaLaunchCooperativeKernel((const void *)jacobi, dim3(blocks_of(r)), dim3(THREADS), args, 0, r->stream),
         "cudaLaunchCooperativeKernel");
}

static void run(rank_t *r)
{
    const size_t field = (size_t)(r->rows + 2) * r->width;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaEvent_t begin, end;
    float ms = 0, *here;

    must(cudaSetDevice(r->rank), "cudaSetDevice");
    must(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking), "cudaStreamCreate");
    must(cudaMalloc(&r->stop, sizeof *r->stop), "cudaMalloc");
    must(cudaEventCreate(&begin) || cudaEventCreate(&end), "cudaEventCreate");
    must(rondo_window_create(r->comm, NULL, 2 * field * sizeof(float), &r->window, 0), "rondo_window_create");
    r->device.size = sizeof r->device;
    r->view.size = sizeof r->view;
    must(rondo_device_create(r->comm, NULL, &r->device), "rondo_device_create");
    must(rondo_device_window(r->comm, r->window, &r->view), "rondo_device_window");
    reset(r);
    launch(r);
    must(cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeThreadLocal), "a capture");
    launch(r);
    must(cudaStreamEndCapture(r->stream, &graph), "a capture");
    must(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
    must(cudaStreamSynchronize(r->stream), "the kernel");
    reset(r);
    must(cudaEventRecord(begin, r->stream), "cudaEventRecord");
    must(cudaGraphLaunch(exec, r->stream), "cudaGraphLaunch");
    must(cudaEventRecord(end, r->stream), "cudaEventRecord");
    must(cudaStreamSynchronize(r->stream), "the kernel");
    rondo_result_t error = RONDO_SUCCESS;
    must(rondo_comm_get_error(r->comm, &error) || error, "a kernel of another rank");
    must(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    r->us = ms * 1e3 / r->iterations;
    must(rondo_window_buffer(r->comm, r->window, (void **)&here), "rondo_window_buffer");
    r->result.resize((size_t)r->rows * r->width);
    must(cudaMemcpy(r->result.data(), here + (r->iterations % 2 ? field : 0) + r->width,
                    r->result.size() * sizeof(float), cudaMemcpyDeviceToHost),
         "cudaMemcpy");
    must(cudaGraphExecDestroy(exec) || cudaGraphDestroy(graph), "giving back");
    must(rondo_device_destroy(r->comm, &r->device), "rondo_device_destroy");
    must(rondo_window_destroy(r->comm, r->window), "rondo_window_destroy");
    must(cudaFree(r->stop) || cudaStreamDestroy(r->stream) || cudaEventDestroy(begin) || cudaEventDestroy(end),
         "giving back");
    must(rondo_comm_destroy(r->comm), "rondo_comm_destroy");
}

/* The same by one CPU; sums in the same order, so they are the same numbers. */
static std::vector<float> reference(int rows, int width, int iterations)
{
    std::vector<float> now((size_t)(rows + 2) * width, 0.f);

    for (int i = 0; i < width; i++)
        now[i] = 1;
    std::vector<float> next = now;
    for (int it = 0; it < iterations; it++) {
        for (int row = 1; row <= rows; row++) {
            const float *here = &now[(size_t)row * width], *up = here - width, *down = here + width;
            for (int i = 0; i < width; i++) {
                const float left = i > 0 ? here[i - 1] : 0, right = i + 1 < width ? here[i + 1] : 0;
                next[(size_t)row * width + i] = 0.25f * ((up[i] + down[i]) + (left + right));
            }
        }
        now.swap(next);
    }
    return now;
}

int main(int argc, char **argv)
{
    int gpus = 0, wrong = 0, devices[RONDO_DEVICE_RANKS];
    rondo_comm_t comms[RONDO_DEVICE_RANKS];

    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        printf("halo_device: there is no CUDA device here\n");
        return 77;
    }
    const int n = argc > 1 ? atoi(argv[1]) : gpus < RONDO_DEVICE_RANKS ? gpus : RONDO_DEVICE_RANKS;
    const int rows = argc > 2 ? atoi(argv[2]) : 256, width = argc > 3 ? atoi(argv[3]) : 2048;
    const int iterations = argc > 4 ? atoi(argv[4]) : 200;
    if (n < 1 || n > gpus || n > RONDO_DEVICE_RANKS || rows < 1 || width < 1 || iterations < 1) {
        fprintf(stderr, "halo_device [RANKS [ROWS [WIDTH [ITERATIONS]]]]: up to %d ranks\n", gpus);
        return 2;
    }
    for (int i = 0; i < n; i++)
        devices[i] = i;
    must(rondo_comm_create_all(comms, n, devices, NULL), "rondo_comm_create_all");
    std::vector<rank_t> ranks(n);
    std::vector<std::thread> threads;
    for (int i = 0; i < n; i++) {
        ranks[i].rank = i;
        ranks[i].n = n;
        ranks[i].rows = rows;
        ranks[i].width = width;
        ranks[i].iterations = iterations;
        ranks[i].comm = comms[i];
        threads.emplace_back(run, &ranks[i]);
    }
    for (std::thread &t : threads)
        t.join();
    const std::vector<float> all = reference(n * rows, width, iterations);
    for (const rank_t &r : ranks)
        for (size_t i = 0; i < r.result.size(); i++)
            wrong += r.result[i] != all[((size_t)r.rank * rows + 1) * width + i];
    printf("%d ranks, %d x %d each, %d iterations in one kernel: %.2f us each; %d wrong elements\n", n, rows, width,
           iterations, ranks[0].us, wrong);
    return wrong != 0;
}
