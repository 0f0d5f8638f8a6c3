/* Allreduce and RMSNorm in one kernel, as a transformer's layer has them behind a row-parallel matrix product: every
 * rank has a partial sum of all rows; wanted on every rank are the rows' sums, normalised and scaled.
 *
 *   nvcc -std=c++17 -arch=native allreduce_rmsnorm.cu $(pkg-config --cflags --libs rondo) -o allreduce_rmsnorm
 *   ./allreduce_rmsnorm [RANKS [ROWS [HIDDEN]]]        one process, a thread and a GPU for each rank; 64 rows of 8192
 *
 * Each row has an owner. Its block reads the row from the windows of all ranks, so the sum is there in registers when
 * it is normalised, and it stores the result into the windows of all ranks. Beside it the same by two kernels:
 * rondo_allreduce, and the norm by each rank of all rows. Both are replayed as graphs. Exit: 0 right, 1 wrong, 77 no
 * GPU.
 */
#include <cuda_runtime.h>
#include <rondo.h>
#include <rondo_device.cuh>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#define THREADS 512
#define EACH 8    /* float4 that a thread holds of a row, at most: rows of 16384 */
#define LAYERS 20 /* in a graph */
#define LAUNCHES 20
#define EPSILON 1e-5f

static void must(int bad, const char *what)
{
    if (bad) {
        fprintf(stderr, "allreduce_rmsnorm: %s failed: %d\n", what, bad); /* rondo has said why on standard error */
        exit(1);
    }
}

/* The sum of x over the block's threads. */
static __device__ float block_sum(float x)
{
    __shared__ float part[THREADS / 32];
    float sum = 0;

    for (int lane = 16; lane > 0; lane /= 2)
        x += __shfl_xor_sync(~0u, x, lane);
    __syncthreads(); /* all have read the last one's parts */
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    for (int i = 0; i < THREADS / 32; i++)
        sum += part[i];
    return sum;
}

static __device__ float square(float4 v)
{
    return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
}

static __device__ float4 scaled(float4 v, float4 by, float scale)
{
    return make_float4(v.x * by.x * scale, v.y * by.y * scale, v.z * by.z * scale, v.w * by.w * scale);
}

/* A row of all ranks, in their order, so that its sum is the same whoever owns it. A rank's loads are all under way
 * before the first is used. */
static __device__ void sum_of_all(const rondo_device_window_t &in, int n, size_t begin, int hidden, float4 *sum)
{
#pragma unroll
    for (int k = 0; k < EACH; k++)
        sum[k] = make_float4(0, 0, 0, 0);
    for (int rank = 0; rank < n; rank++) {
        const float4 *row = rondo_dev_pointer<float4>(in, rank) + begin;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int i = k * THREADS + (int)threadIdx.x;
            const float4 v = i < hidden ? row[i] : make_float4(0, 0, 0, 0);
            sum[k] = make_float4(sum[k].x + v.x, sum[k].y + v.y, sum[k].z + v.z, sum[k].w + v.w);
        }
    }
}

/* hidden: in float4. */
__global__ void __launch_bounds__(THREADS)
    fused(const __grid_constant__ rondo_device_t device, const __grid_constant__ rondo_device_window_t in,
          const __grid_constant__ rondo_device_window_t out, const float4 *weight, int rows, int hidden)
{
    const int n = rondo_dev_nranks(device);
    float4 sum[EACH];

    if (!rondo_dev_barrier(rondo_dev_block(), device, blockIdx.x)) /* every rank's partial sums are in its window */
        return;
    for (int row = (int)blockIdx.x * n + rondo_dev_rank(device); row < rows; row += (int)gridDim.x * n) {
        const size_t begin = (size_t)row * hidden;
        float squares = 0;
        sum_of_all(in, n, begin, hidden, sum);
#pragma unroll
        for (int k = 0; k < EACH; k++)
            squares += square(sum[k]);
        const float scale = rsqrtf(block_sum(squares) / (4 * hidden) + EPSILON);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int i = k * THREADS + (int)threadIdx.x;
            if (i < hidden) {
                const float4 v = scaled(sum[k], weight[i], scale);
                for (int rank = 0; rank < n; rank++)
                    *rondo_dev_pointer<float4>(out, rank, (begin + i) * sizeof(float4)) = v;
            }
        }
    }
    /* Behind it this rank's rows are all there, and nobody reads its partial sums any more. */
    (void)rondo_dev_barrier(rondo_dev_block(), device, blockIdx.x);
}

__global__ void __launch_bounds__(THREADS)
    norm(const float4 *in, float4 *out, const float4 *weight, int rows, int hidden)
{
    for (int row = (int)blockIdx.x; row < rows; row += (int)gridDim.x) {
        const float4 *from = in + (size_t)row * hidden;
        float squares = 0;
        for (int i = (int)threadIdx.x; i < hidden; i += THREADS)
            squares += square(from[i]);
        const float scale = rsqrtf(block_sum(squares) / (4 * hidden) + EPSILON);
        for (int i = (int)threadIdx.x; i < hidden; i += THREADS)
            out[(size_t)row * hidden + i] = scaled(from[i], weight[i], scale);
    }
}

struct rank_t {
    int rank, n, rows, hidden; /* hidden: floats */
    rondo_comm_t comm;
    cudaStream_t stream;
    rondo_device_t device;
    rondo_window_t in, out;
    rondo_device_window_t in_view, out_view;
    float *partial, *result, *weight, *whole;
    double fused_us, apart_us;
    int wrong;
};

/* Small integers, so that sums are exact. */
static float partial_of(int rank, int row, int i)
{
    return (float)((rank * 7 + row * 3 + i) % 11 - 5);
}

static float weight_of(int i)
{
    return 1 + (float)(i % 8) / 8;
}

static void prepare(rank_t *r)
{
    const size_t count = (size_t)r->rows * r->hidden, bytes = count * sizeof(float);
    std::vector<float> host(count), weight(r->hidden);

    must(cudaSetDevice(r->rank), "cudaSetDevice");
    must(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking), "cudaStreamCreate");
    must(rondo_window_create(r->comm, NULL, bytes, &r->in, 0), "rondo_window_create");
    must(rondo_window_create(r->comm, NULL, bytes, &r->out, 0), "rondo_window_create");
    must(rondo_window_buffer(r->comm, r->in, (void **)&r->partial), "rondo_window_buffer");
    must(rondo_window_buffer(r->comm, r->out, (void **)&r->result), "rondo_window_buffer");
    r->device.size = sizeof r->device;
    r->in_view.size = r->out_view.size = sizeof r->in_view;
    must(rondo_device_create(r->comm, NULL, &r->device), "rondo_device_create");
    must(rondo_device_window(r->comm, r->in, &r->in_view), "rondo_device_window");
    must(rondo_device_window(r->comm, r->out, &r->out_view), "rondo_device_window");
    must(cudaMalloc(&r->weight, r->hidden * sizeof(float)), "cudaMalloc");
    must(cudaMalloc(&r->whole, bytes), "cudaMalloc");
    for (size_t i = 0; i < count; i++)
        host[i] = partial_of(r->rank, (int)(i / r->hidden), (int)(i % r->hidden));
    for (int i = 0; i < r->hidden; i++)
        weight[i] = weight_of(i);
    must(cudaMemcpy(r->partial, host.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    must(cudaMemcpy(r->weight, weight.data(), r->hidden * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
}

static void enqueue(rank_t *r, bool together)
{
    const int own = (r->rows + r->n - 1) / r->n, blocks = own < 64 ? own : 64, all = r->rows < 132 ? r->rows : 132;

    if (together) {
        fused<<<blocks, THREADS, 0, r->stream>>>(r->device, r->in_view, r->out_view, (const float4 *)r->weight, r->rows,
                                                 r->hidden / 4);
    } else {
        must(rondo_allreduce(r->partial, r->whole, (size_t)r->rows * r->hidden, RONDO_FLOAT32, RONDO_SUM, r->comm,
                             r->stream),
             "rondo_allreduce");
        norm<<<all, THREADS, 0, r->stream>>>((const float4 *)r->whole, (float4 *)r->result, (const float4 *)r->weight,
                                             r->rows, r->hidden / 4);
    }
    must(cudaGetLastError(), "a launch");
}

/* Microseconds of a layer, of which a graph has LAYERS. The first replay is not counted. */
static double replay(rank_t *r, bool together)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaEvent_t begin, end;
    float ms = 0;

    must(cudaEventCreate(&begin) || cudaEventCreate(&end), "cudaEventCreate");
    must(cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeThreadLocal), "a capture");
    for (int i = 0; i < LAYERS; i++)
        enqueue(r, together);
    must(cudaStreamEndCapture(r->stream, &graph), "a capture");
    must(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
    must(cudaGraphLaunch(exec, r->stream), "cudaGraphLaunch");
    must(cudaEventRecord(begin, r->stream), "cudaEventRecord");
    for (int i = 0; i < LAUNCHES; i++)
        must(cudaGraphLaunch(exec, r->stream), "cudaGraphLaunch");
    must(cudaEventRecord(end, r->stream), "cudaEventRecord");
    must(cudaStreamSynchronize(r->stream), "the kernels");
    must(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    rondo_result_t error = RONDO_SUCCESS;
    must(rondo_comm_get_error(r->comm, &error) || error, "a kernel of another rank");
    must(cudaGraphExecDestroy(exec) || cudaGraphDestroy(graph) || cudaEventDestroy(begin) || cudaEventDestroy(end),
         "giving back");
    return ms * 1e3 / (LAYERS * LAUNCHES);
}

static int verify(rank_t *r)
{
    const size_t count = (size_t)r->rows * r->hidden;
    std::vector<float> host(count);
    std::vector<double> sum(r->hidden);
    int wrong = 0;

    must(cudaMemcpy(host.data(), r->result, count * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (int row = 0; row < r->rows; row++) {
        double squares = 0;
        for (int i = 0; i < r->hidden; i++) {
            sum[i] = 0;
            for (int rank = 0; rank < r->n; rank++)
                sum[i] += partial_of(rank, row, i);
            squares += sum[i] * sum[i];
        }
        const double scale = 1 / std::sqrt(squares / r->hidden + EPSILON);
        for (int i = 0; i < r->hidden; i++) {
            const double want = sum[i] * weight_of(i) * scale;
            wrong += !(std::fabs(host[(size_t)row * r->hidden + i] - want) <= 1e-5 * (1 + std::fabs(want)));
        }
    }
    return wrong;
}

static void run(rank_t *r)
{
    prepare(r);
    r->apart_us = replay(r, false);
    r->wrong = verify(r);
    must(cudaMemset(r->result, 0, (size_t)r->rows * r->hidden * sizeof(float)), "cudaMemset");
    must(cudaDeviceSynchronize(), "cudaMemset");
    must(rondo_barrier(r->comm, r->stream), "rondo_barrier"); /* nobody stores there before */
    r->fused_us = replay(r, true);
    r->wrong += verify(r);
    must(rondo_device_destroy(r->comm, &r->device), "rondo_device_destroy");
    must(rondo_window_destroy(r->comm, r->in), "rondo_window_destroy");
    must(rondo_window_destroy(r->comm, r->out), "rondo_window_destroy");
    must(cudaFree(r->weight) || cudaFree(r->whole) || cudaStreamDestroy(r->stream), "giving back");
    must(rondo_comm_destroy(r->comm), "rondo_comm_destroy");
}

int main(int argc, char **argv)
{
    int gpus = 0, wrong = 0, devices[RONDO_DEVICE_RANKS];
    rondo_comm_t comms[RONDO_DEVICE_RANKS];

    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        printf("allreduce_rmsnorm: there is no CUDA device here\n");
        return 77;
    }
    const int n = argc > 1 ? atoi(argv[1]) : gpus < RONDO_DEVICE_RANKS ? gpus : RONDO_DEVICE_RANKS;
    const int rows = argc > 2 ? atoi(argv[2]) : 64, hidden = argc > 3 ? atoi(argv[3]) : 8192;
    if (n < 1 || n > gpus || n > RONDO_DEVICE_RANKS || rows < 1 || hidden < 4 || hidden % 4 ||
        hidden > 4 * EACH * THREADS) {
        fprintf(stderr, "allreduce_rmsnorm [RANKS [ROWS [HIDDEN]]]: up to %d ranks, hidden a multiple of 4 up to %d\n",
                gpus, 4 * EACH * THREADS);
        return 2;
    }
    for (int i = 0; i < n; i++)
        devices[i] = i;
    must(rondo_comm_create_all(comms, n, devices, NULL), "rondo_comm_create_all");
    std::vector<rank_t> ranks(n);
    std::vector<std::thread> threads;
    for (int i = 0; i < n; i++) {
        ranks[i] = rank_t();
        ranks[i].rank = i;
        ranks[i].n = n;
        ranks[i].rows = rows;
        ranks[i].hidden = hidden;
        ranks[i].comm = comms[i];
        threads.emplace_back(run, &ranks[i]);
    }
    for (std::thread &t : threads)
        t.join();
    for (const rank_t &r : ranks)
        wrong += r.wrong;
    printf("%d ranks, %d rows of %d floats: %.2f us fused, %.2f us by rondo_allreduce and a norm; %d wrong elements\n",
           n, rows, hidden, ranks[0].fused_us, ranks[0].apart_us, wrong);
    return wrong != 0;
}
