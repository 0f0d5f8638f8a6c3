/* Before the kernels of a device are loaded, each of their files is told the seed and the fault (delays.h). Linked with
 * --wrap=rd_kernel_load. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include <cuda_runtime_api.h>

#include "delays.h"

#define FILES 16
#define DEVICES 64

int __real_rd_kernel_load(uint64_t context);
int __wrap_rd_kernel_load(uint64_t context);

static const void *symbols[FILES];
static int files;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int told[DEVICES];

int rd_delays_register(void *symbol)
{
    if (files < FILES)
        symbols[files] = symbol;
    return ++files;
}

/* Devices draw differently. */
static cudaError_t tell(int device)
{
    rd_delays_t delays;
    cudaError_t error = files <= FILES ? cudaSuccess : cudaErrorInvalidSymbol;

    rd_delays_read(&delays);
    printf("delays of seed %u%s\n", delays.seed, delays.plant ? ", with a planted fault" : "");
    delays.seed += (uint32_t)device << 16;
    for (int i = 0; i < files && error == cudaSuccess; i++)
        error = cudaMemcpyToSymbol(symbols[i], &delays, sizeof delays, 0, cudaMemcpyHostToDevice);
    return error;
}

int __wrap_rd_kernel_load(uint64_t context)
{
    int device;
    cudaError_t error = cudaGetDevice(&device);

    if (error == cudaSuccess && device < DEVICES) {
        pthread_mutex_lock(&lock);
        if (!told[device])
            error = tell(device);
        told[device] = error == cudaSuccess;
        pthread_mutex_unlock(&lock);
    }
    return error == cudaSuccess ? __real_rd_kernel_load(context) : (int)error;
}
