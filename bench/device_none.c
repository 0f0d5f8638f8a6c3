/* Built without CUDA: only host memory is measured. In place of device_cuda.c. */
#include "perf.h"

bool device_built(void)
{
    return false;
}

const char *device_open(void)
{
    return "built without CUDA";
}

int device_number(void)
{
    return RONDO_DEVICE_HOST;
}

rondo_stream_t device_stream(void)
{
    return NULL;
}

void *device_allocate(size_t bytes)
{
    (void)bytes;
    return NULL;
}

void device_free(void *memory)
{
    (void)memory;
}

void device_copy(void *to, const void *from, size_t bytes)
{
    (void)to, (void)from, (void)bytes;
}

void device_wait(void)
{
}

void device_launch(void)
{
}

double device_held(void)
{
    return 0;
}

void *device_record(call_t call, const job_t *job, int calls)
{
    (void)call, (void)job, (void)calls;
    return NULL;
}

void device_replay(void *graph)
{
    (void)graph;
}

void device_forget(void *graph)
{
    (void)graph;
}
