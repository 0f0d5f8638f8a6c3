// Does a copy that a thread of the host enqueues go through while kernels wait for it, with work queued behind them?
//
//   nvcc -arch=sm_90 -o queues bench/probes/queues.cu -lcuda
//   queues STREAMS BEHIND COPY WHERE
//     STREAMS  of the program, each with a kernel that waits and BEHIND it: none, kernel, device, tohost, todevice
//     COPY     what the kernels wait for: device (within the GPU), peer (from another process's memory), host
//     WHERE    its stream is: plain, high (priority), green (a green context's)
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <time.h>
#include <unistd.h>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        int error = (int)(call);                                                                                       \
        if (error) {                                                                                                   \
            printf("%s: error %d\n", #call, error);                                                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define COPIES 8
#define BYTES ((size_t)16 << 20)
#define BEHIND ((size_t)1 << 20)
#define PATIENCE 0.2 // seconds for a copy that takes less than 2 ms

static __global__ void wait_for(volatile int *flag, long long most)
{
    for (long long from = clock64(); !*flag && clock64() - from < most;)
        continue;
}

static __global__ void nothing()
{
}

static double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Memory of another process, which ends with this one.
static char *of_peer()
{
    cudaIpcMemHandle_t handle;
    int pipes[2];
    char *memory;
    void *mapped;

    MUST(pipe(pipes));
    if (fork() == 0) {
        pid_t parent = getppid();
        MUST(cudaMalloc(&memory, BYTES));
        MUST(cudaIpcGetMemHandle(&handle, memory));
        MUST(write(pipes[1], &handle, sizeof handle) != sizeof handle);
        while (getppid() == parent)
            usleep(10000);
        _exit(0);
    }
    MUST(read(pipes[0], &handle, sizeof handle) != sizeof handle);
    MUST(cudaIpcOpenMemHandle(&mapped, handle, cudaIpcMemLazyEnablePeerAccess));
    return (char *)mapped;
}

static void streams_make(const char *where, cudaStream_t *streams)
{
    CUdevResource all, part, rest;
    CUdevResourceDesc resources;
    unsigned count = 1;
    CUgreenCtx context;
    CUdevice device;
    int least, most;

    MUST(cudaDeviceGetStreamPriorityRange(&least, &most));
    if (strcmp(where, "green") == 0) {
        MUST(cuDeviceGet(&device, 0));
        MUST(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
        MUST(cuDevSmResourceSplitByCount(&part, &count, &all, &rest, 0, 8));
        MUST(cuDevResourceGenerateDesc(&resources, &part, 1));
        MUST(cuGreenCtxCreate(&context, resources, device, CU_GREEN_CTX_DEFAULT_STREAM));
    }
    for (int i = 0; i < COPIES; i++) {
        if (strcmp(where, "green") == 0)
            MUST(cuGreenCtxStreamCreate(&streams[i], context, CU_STREAM_NON_BLOCKING, 0));
        else
            MUST(cudaStreamCreateWithPriority(&streams[i], cudaStreamNonBlocking, *where == 'h' ? most : 0));
    }
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    int nstreams = atoi(argv[1]), *flag, through = 0;
    const char *behind = argv[2], *copy = argv[3];
    char *to, *from, *pinned, *a, *b, *host;
    cudaStream_t own[COPIES], stream[256];

    from = strcmp(copy, "peer") == 0 ? of_peer() : NULL;
    MUST(cudaMalloc(&to, BYTES));
    if (!from)
        MUST(cudaMalloc(&from, BYTES));
    MUST(cudaMalloc(&a, BEHIND));
    MUST(cudaMalloc(&b, BEHIND));
    MUST(cudaMallocHost(&pinned, BYTES));
    MUST(cudaMallocHost(&host, BEHIND));
    MUST(cudaMallocHost(&flag, sizeof *flag));
    streams_make(argv[4], own);
    for (int i = 0; i < nstreams && i < 256; i++)
        MUST(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
    wait_for<<<1, 1>>>(flag, 1);
    nothing<<<1, 1>>>();
    MUST(cudaDeviceSynchronize());
    *flag = 0;
    for (int i = 0; i < nstreams && i < 256; i++) {
        wait_for<<<1, 32, 0, stream[i]>>>(flag, 6000000000LL);
        for (int k = 0; k < 3; k++) {
            if (strcmp(behind, "kernel") == 0)
                nothing<<<1, 1, 0, stream[i]>>>();
            if (strcmp(behind, "device") == 0)
                MUST(cudaMemcpyAsync(a, b, BEHIND, cudaMemcpyDefault, stream[i]));
            if (strcmp(behind, "tohost") == 0)
                MUST(cudaMemcpyAsync(host, b, BEHIND, cudaMemcpyDefault, stream[i]));
            if (strcmp(behind, "todevice") == 0)
                MUST(cudaMemcpyAsync(a, host, BEHIND, cudaMemcpyDefault, stream[i]));
        }
    }
    usleep(20000);
    for (int i = 0; i < COPIES; i++) {
        double begun = now();
        MUST(cudaMemcpyAsync(to, strcmp(copy, "host") == 0 ? pinned : from, BYTES, cudaMemcpyDefault, own[i]));
        while (cudaStreamQuery(own[i]) == cudaErrorNotReady && now() - begun < PATIENCE)
            continue;
        through += now() - begun < PATIENCE;
    }
    *flag = 1;
    MUST(cudaDeviceSynchronize());
    printf("%2d streams, behind each %-8s: copy of %-6s on %-5s: %d of %d through\n", nstreams, behind, copy, argv[4],
           through, COPIES);
    return 0;
}
