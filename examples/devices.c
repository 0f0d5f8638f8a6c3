/* One process that drives all GPUs of the machine from one thread, without MPI: a communicator for each device, made
 * together, and each operation a group, because no rank's part can end before the others' have begun.
 *
 *   cc devices.c $(pkg-config --cflags --libs rondo) -lcudart -o devices && ./devices
 *
 * Each device holds a part of a vector; its norm is summed over the devices, and each part is sent on to the next one.
 * Exit: 0 right, 1 wrong, 77 no CUDA device.
 */
#include <cuda_runtime_api.h>
#include <rondo.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 50000
#define MOST 16

static void must(int bad, const char *what)
{
    if (bad) {
        fprintf(stderr, "devices: %s failed\n", what); /* rondo has said why on standard error */
        exit(1);
    }
}

typedef struct {
    rondo_comm_t comm;
    cudaStream_t stream;
    double *part, *next, *norm; /* on the device */
} device_t;

static void prepare(device_t *d, int device, double *host)
{
    double norm = (double)COUNT * (device + 1) * (device + 1); /* else a kernel would sum the squares */

    must(cudaSetDevice(device), "cudaSetDevice");
    must(cudaMalloc((void **)&d->part, COUNT * sizeof(double)) ||
             cudaMalloc((void **)&d->next, COUNT * sizeof(double)) || cudaMalloc((void **)&d->norm, sizeof(double)),
         "cudaMalloc");
    must(cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking), "cudaStreamCreate");
    for (int i = 0; i < COUNT; i++)
        host[i] = device + 1;
    must(cudaMemcpyAsync(d->part, host, COUNT * sizeof(double), cudaMemcpyHostToDevice, d->stream), "cudaMemcpyAsync");
    must(cudaMemcpyAsync(d->norm, &norm, sizeof norm, cudaMemcpyHostToDevice, d->stream), "cudaMemcpyAsync");
    must(cudaStreamSynchronize(d->stream), "cudaStreamSynchronize"); /* `host` serves the next device */
}

/* Both operations of all devices: enqueued at the group's end, in the order of the calls. */
static void together(device_t *d, int n)
{
    must(rondo_group_start(), "rondo_group_start");
    for (int i = 0; i < n; i++)
        must(rondo_allreduce(d[i].norm, d[i].norm, 1, RONDO_FLOAT64, RONDO_SUM, d[i].comm, d[i].stream),
             "rondo_allreduce");
    must(rondo_group_end(), "rondo_group_end");
    must(rondo_group_start(), "rondo_group_start");
    for (int i = 0; i < n; i++) {
        must(rondo_send(d[i].part, COUNT, RONDO_FLOAT64, (i + 1) % n, d[i].comm, d[i].stream), "rondo_send");
        must(rondo_recv(d[i].next, COUNT, RONDO_FLOAT64, (i + n - 1) % n, d[i].comm, d[i].stream), "rondo_recv");
    }
    must(rondo_group_end(), "rondo_group_end");
}

/* Elements that are not what they should be. */
static int wrong(device_t *d, int device, int n, double *host)
{
    double norm, want = 0;
    int bad = 0;

    must(cudaSetDevice(device), "cudaSetDevice");
    must(cudaMemcpyAsync(&norm, d->norm, sizeof norm, cudaMemcpyDeviceToHost, d->stream), "cudaMemcpyAsync");
    must(cudaMemcpyAsync(host, d->next, COUNT * sizeof *host, cudaMemcpyDeviceToHost, d->stream), "cudaMemcpyAsync");
    must(cudaStreamSynchronize(d->stream), "cudaStreamSynchronize");
    for (int i = 0; i < n; i++)
        want += (double)COUNT * (i + 1) * (i + 1);
    bad += norm != want;
    for (int i = 0; i < COUNT; i++)
        bad += host[i] != (device + n - 1) % n + 1;
    printf("device %d of %d: the norm's square is %g, %d wrong elements\n", device, n, norm, bad);
    return bad;
}

int main(void)
{
    int n = 0, bad = 0, devices[MOST];
    rondo_comm_t comms[MOST];
    device_t d[MOST];
    double *host = malloc(COUNT * sizeof *host);

    must(!host, "malloc");
    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) {
        printf("devices: there is no CUDA device here\n");
        free(host);
        return 77;
    }
    n = n < MOST ? n : MOST;
    for (int i = 0; i < n; i++)
        devices[i] = i;
    must(rondo_comm_create_all(comms, n, devices, NULL), "rondo_comm_create_all");
    for (int i = 0; i < n; i++) {
        d[i].comm = comms[i];
        prepare(&d[i], i, host);
    }
    together(d, n);
    for (int i = 0; i < n; i++)
        bad += wrong(&d[i], i, n, host);
    for (int i = 0; i < n; i++)
        must(rondo_comm_destroy(d[i].comm), "rondo_comm_destroy");
    for (int i = 0; i < n; i++) /* behind all communicators: cudaFree waits for whatever runs on the device */
        must(cudaSetDevice(i) || cudaStreamDestroy(d[i].stream) || cudaFree(d[i].part) || cudaFree(d[i].next) ||
                 cudaFree(d[i].norm),
             "giving back");
    free(host);
    return bad != 0;
}
