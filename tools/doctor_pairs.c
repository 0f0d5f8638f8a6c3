/* Trying pairs of GPUs: see doctor_pairs.h.
 *
 * A child process makes a copy in every direction and an allreduce by rondo's kernels for every pair, and tells what
 * came of each through a pipe. When it says nothing for too long it is killed, the pair that it was at is the one that
 * hangs, and another child goes on behind it. This process itself never calls CUDA.
 */
#include "doctor_pairs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "base/error.h"
#include "rondo.h"

#define BYTES ((size_t)16 << 20)
#define START_MS 60000 /* a driver that wakes up, contexts on all devices */

/* What comes through the pipe. */
typedef struct news {
    int devices; /* first of all: how many; -1: `pair.text` says why there are none */
    int begins;  /* the pair is about to be tried */
    pair_t pair;
} news_t;

/* ---- the child ---- */

typedef struct probe {
    int pipe;
    pair_t pair;
    unsigned char *sent, *got; /* pinned */
} probe_t;

static void tell(const probe_t *p, int devices, int begins)
{
    news_t news;

    memset(&news, 0, sizeof news);
    news.devices = devices;
    news.begins = begins;
    news.pair = p->pair;
    if (write(p->pipe, &news, sizeof news) != sizeof news)
        _exit(1);
}

static int failed(probe_t *p, cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return 0;
    p->pair.verdict = PAIR_ERROR;
    snprintf(p->pair.text, sizeof p->pair.text, "%s: %s", what, cudaGetErrorString(error));
    (void)cudaGetLastError();
    return 1;
}

/* Lets `device` reach `other`. */
static int reach(probe_t *p, int device, int other)
{
    int can = 0;

    if (failed(p, cudaDeviceCanAccessPeer(&can, device, other), "cudaDeviceCanAccessPeer") ||
        failed(p, cudaSetDevice(device), "cudaSetDevice"))
        return -1;
    if (!can) {
        p->pair.verdict = PAIR_NO_ACCESS;
        return -1;
    }
    cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
        (void)cudaGetLastError();
        return 0;
    }
    return failed(p, error, "cudaDeviceEnablePeerAccess") ? -1 : 0;
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* From device memory to device memory, there and back to where it can be compared. */
static void copy_try(probe_t *p, unsigned char *from, unsigned char *to, cudaStream_t stream)
{
    double began;

    for (size_t i = 0; i < BYTES; i++)
        p->sent[i] = (unsigned char)(i * 2654435761u >> 24 ^ (unsigned)p->pair.from * 16 ^ (unsigned)p->pair.to);
    if (failed(p, cudaMemcpyAsync(from, p->sent, BYTES, cudaMemcpyDefault, stream), "filling a GPU's memory") ||
        failed(p, cudaMemsetAsync(to, 0xa5, BYTES, stream), "cudaMemsetAsync") ||
        failed(p, cudaStreamSynchronize(stream), "filling a GPU's memory"))
        return;
    began = now_us();
    if (failed(p, cudaMemcpyAsync(to, from, BYTES, cudaMemcpyDefault, stream), "a copy from GPU to GPU") ||
        failed(p, cudaStreamSynchronize(stream), "a copy from GPU to GPU"))
        return;
    p->pair.gbps = (double)BYTES / (now_us() - began) * 1e-3;
    if (failed(p, cudaMemcpyAsync(p->got, to, BYTES, cudaMemcpyDefault, stream), "a copy from a GPU") ||
        failed(p, cudaStreamSynchronize(stream), "a copy from a GPU"))
        return;
    for (size_t i = 0; i < BYTES; i++)
        if (p->got[i] != p->sent[i]) {
            p->pair.verdict = PAIR_CORRUPT;
            snprintf(p->pair.text, sizeof p->pair.text, "byte %zu of %zu arrived as 0x%02x, sent was 0x%02x", i, BYTES,
                     p->got[i], p->sent[i]);
            return;
        }
}

static void copies(probe_t *p)
{
    unsigned char *from = NULL, *to = NULL;
    cudaStream_t stream = NULL;

    if (reach(p, p->pair.to, p->pair.from) != 0 || failed(p, cudaMalloc((void **)&to, BYTES), "cudaMalloc") ||
        reach(p, p->pair.from, p->pair.to) != 0 || failed(p, cudaMalloc((void **)&from, BYTES), "cudaMalloc") ||
        failed(p, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate"))
        goto free;
    copy_try(p, from, to, stream);
    (void)cudaStreamDestroy(stream);
free:
    (void)cudaFree(from);
    (void)cudaFree(to);
}

/* An allreduce between the two, by kernels that store into each other's memory. */
static void kernels(probe_t *p)
{
    int devices[2] = {p->pair.from, p->pair.to}, *numbers[2] = {NULL, NULL};
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comms[2] = {NULL, NULL};
    cudaStream_t streams[2] = {NULL, NULL};
    const size_t count = 1 << 18;
    int *host = (int *)(void *)p->sent;
    rondo_result_t result;

    config.timeout_ms = 5000;
    result = rondo_comm_create_all(comms, 2, devices, &config);
    for (int i = 0; result == RONDO_SUCCESS && i < 2; i++) {
        for (size_t k = 0; k < count; k++)
            host[k] = (int)k + i;
        if (failed(p, cudaSetDevice(devices[i]), "cudaSetDevice") ||
            failed(p, cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), "cudaStreamCreate") ||
            failed(p, cudaMalloc((void **)&numbers[i], count * sizeof(int)), "cudaMalloc") ||
            failed(p, cudaMemcpyAsync(numbers[i], host, count * sizeof(int), cudaMemcpyDefault, streams[i]),
                   "a copy") ||
            failed(p, cudaStreamSynchronize(streams[i]), "a copy"))
            _exit(1);
    }
    (void)rondo_group_start();
    for (int i = 0; result == RONDO_SUCCESS && i < 2; i++)
        result = rondo_allreduce(numbers[i], numbers[i], count, RONDO_INT32, RONDO_SUM, comms[i], streams[i]);
    rondo_result_t ended = rondo_group_end();
    result = result == RONDO_SUCCESS ? ended : result;
    for (int i = 0; result == RONDO_SUCCESS && i < 2; i++) {
        host = (int *)(void *)p->got;
        if (failed(p, cudaMemcpyAsync(host, numbers[i], count * sizeof(int), cudaMemcpyDefault, streams[i]),
                   "a copy") ||
            failed(p, cudaStreamSynchronize(streams[i]), "rondo's kernels"))
            break;
        result = rondo_comm_finalize(comms[i]);
        for (size_t k = 0; result == RONDO_SUCCESS && k < count; k++)
            if (host[k] != 2 * (int)k + 1) {
                p->pair.verdict = PAIR_KERNELS;
                snprintf(p->pair.text, sizeof p->pair.text, "element %zu of a sum is %d, should be %d", k, host[k],
                         2 * (int)k + 1);
                break;
            }
    }
    if (result != RONDO_SUCCESS) {
        p->pair.verdict = PAIR_KERNELS;
        snprintf(p->pair.text, sizeof p->pair.text, "%.150s", rd_thread_error());
    }
    for (int i = 0; i < 2; i++) {
        if (comms[i])
            (void)(p->pair.verdict == PAIR_WELL ? rondo_comm_destroy(comms[i]) : rondo_comm_abort(comms[i]));
        if (streams[i])
            (void)cudaStreamDestroy(streams[i]);
        (void)cudaFree(numbers[i]);
    }
}

/* Both directions of a pair are neighbours in this order: 0>1, 1>0, 0>2, ... */
static int pair_at(int n, int number, pair_t *pair)
{
    int i = number / 2;

    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n; b++)
            if (i-- == 0) {
                memset(pair, 0, sizeof *pair);
                pair->from = number % 2 ? b : a;
                pair->to = number % 2 ? a : b;
                return 0;
            }
    return -1;
}

static void child(int pipe, int first)
{
    probe_t p = {.pipe = pipe};
    int devices = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);

    rd_log_set_level(RD_LOG_NONE); /* what fails is told by the parent */
    if (error != cudaSuccess || devices == 0) {
        snprintf(p.pair.text, sizeof p.pair.text, "%s", error ? cudaGetErrorString(error) : "no device is visible");
        tell(&p, -1, 0);
        _exit(0);
    }
    tell(&p, devices, 0);
    if (failed(&p, cudaMallocHost((void **)&p.sent, BYTES), "cudaMallocHost") ||
        failed(&p, cudaMallocHost((void **)&p.got, BYTES), "cudaMallocHost"))
        _exit(1);
    for (int i = first; pair_at(devices, i, &p.pair) == 0; i++) {
        (void)cudaDeviceGetPCIBusId(p.pair.bus[0], sizeof p.pair.bus[0], p.pair.from);
        (void)cudaDeviceGetPCIBusId(p.pair.bus[1], sizeof p.pair.bus[1], p.pair.to);
        tell(&p, devices, 1);
        copies(&p);
        if (p.pair.verdict == PAIR_WELL && i % 2)
            kernels(&p);
        tell(&p, devices, 0);
    }
    _exit(0); /* whatever CUDA would still clean up */
}

/* ---- the parent ---- */

/* 1: news; 0: the child has ended; -1: nothing within the limit. */
static int hear(int pipe, int limit_ms, news_t *news)
{
    struct pollfd p = {pipe, POLLIN, 0};
    int ready;

    do
        ready = poll(&p, 1, limit_ms);
    while (ready < 0 && errno == EINTR);
    if (ready == 0)
        return -1;
    return read(pipe, news, sizeof *news) == sizeof *news; /* less than a pipe's page: whole or nothing */
}

/* One child, until it has done all pairs, ends or hangs. *next: the number of the next pair. The number of devices. */
static int one_child(int limit_ms, int *next, pair_t *last, int *trying, void (*tried)(void *, const pair_t *),
                     void *arg)
{
    int ends[2], devices = 0, heard, wait_ms = START_MS;
    news_t news;
    pid_t pid;

    if (pipe(ends) != 0)
        return -1;
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        close(ends[0]);
        child(ends[1], *next);
    }
    close(ends[1]);
    *trying = 0;
    while (pid > 0 && (heard = hear(ends[0], wait_ms, &news)) == 1) {
        devices = news.devices;
        *last = news.pair;
        *trying = news.begins;
        wait_ms = limit_ms;
        if (devices < 0 || (!news.begins && last->from == last->to))
            continue;
        if (!news.begins) {
            (*next)++;
            tried(arg, last);
        }
    }
    close(ends[0]);
    if (pid <= 0)
        return -1;
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (*trying) {
        last->verdict = heard < 0 ? PAIR_HANGS : PAIR_ERROR;
        snprintf(last->text, sizeof last->text, heard < 0 ? "nothing within %d ms" : "the process that tried it ended",
                 limit_ms);
    }
    return devices;
}

int doctor_pairs(int limit_ms, void (*tried)(void *arg, const pair_t *pair), void *arg, char why[160])
{
    int next = 0, devices, trying;
    pair_t last = {.text = "the process that asked CUDA ended"};

    for (;;) {
        pair_t none;
        devices = one_child(limit_ms, &next, &last, &trying, tried, arg);
        if (devices <= 0) {
            snprintf(why, 160, "%s", last.text);
            return -1;
        }
        if (trying) {
            tried(arg, &last);
            next++;
        }
        if (!trying || pair_at(devices, next, &none) != 0)
            return devices;
    }
}
