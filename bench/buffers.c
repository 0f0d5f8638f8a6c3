/* Buffers and their verification. Each rank holds two areas, page aligned (plus --offset), with a guard of 64 bytes at
 * both ends of what an operation may touch. A result is first filled with a byte that no value consists of, then the
 * operation runs once more, and every element and every guard is looked at. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "perf.h"

#define GUARD 64
#define GUARD_BYTE 0x5a
#define POISON_BYTE 0xc3
#define PAGE 4096

/* All ranks have said what they want before any of them takes it. */
static void fit(double mine)
{
    double said[3] = {machine_id(), mine, machine_free()}, *all = calloc((size_t)world.nranks, sizeof said);
    double wanted = 0;
    int ranks = 0;

    if (!all)
        die(NULL, "no memory for %d numbers", 3 * world.nranks);
    world.gather(said, 3, all);
    for (int r = 0; r < world.nranks; r++) {
        const bool here = all[3 * r] == said[0];

        wanted += here ? all[3 * r + 1] : 0;
        ranks += here;
    }
    free(all);
    if (wanted > said[2])
        die(NULL,
            "two buffers of %.0f MB for each of the %d ranks here do not fit the %.0f MB that are free: choose a "
            "smaller -e",
            mine / 2e6, ranks, said[2] / 1e6);
}

void buffers_open(buffers_t *buffers, size_t bytes, size_t offset)
{
    *buffers = (buffers_t){.bytes = bytes, .offset = offset};
    buffers->mapped = (PAGE + offset + bytes + GUARD + PAGE - 1) / PAGE * PAGE;
    fit(2.0 * (double)buffers->mapped);
    for (int i = 0; i < 2; i++) {
        void *area = mmap(NULL, buffers->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (area == MAP_FAILED)
            die(NULL, "cannot have two buffers of %zu bytes a rank: choose a smaller -e", bytes);
        memset(area, 0, buffers->mapped); /* pages there before anything is timed */
        buffers->area[i] = area;
        if (device_number() >= 0)
            buffers->device[i] = peer_nccl_memory(buffers->mapped);
        if (device_number() >= 0 && !buffers->device[i])
            buffers->device[i] = device_allocate(buffers->mapped);
    }
}

void buffers_register(buffers_t *buffers, rondo_comm_t comm)
{
    const int at = buffers->reg[0].comm != NULL;

    buffers->reg[at].comm = comm;
    for (int i = 0; i < 2; i++) {
        void *area = buffers->device[i] ? buffers->device[i] : buffers->area[i];
        rondo_result_t result = rondo_comm_register(comm, area, buffers->mapped, &buffers->reg[at].area[i]);

        if (result != RONDO_SUCCESS)
            die(comm, "--register: rondo_comm_register: %s", rondo_result_string(result));
    }
}

void buffers_close(buffers_t *buffers)
{
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 2 && buffers->reg[k].comm; k++)
            (void)rondo_comm_deregister(buffers->reg[k].comm, buffers->reg[k].area[i]);
        if (buffers->device[i] && !peer_nccl_memory_back(buffers->device[i]))
            device_free(buffers->device[i]);
        munmap(buffers->area[i], buffers->mapped);
    }
}

/* Where the buffers lie, by MPI's rules for in place. */
static void place(const buffers_t *buffers, job_t *job, char *const area[2])
{
    size_t size = rondo_type_size(job->type);
    char *send = area[0] + PAGE + buffers->offset, *recv = area[1] + PAGE + buffers->offset;
    bool root = job->rank == job->root;

    job->send = send;
    job->recv = recv;
    job->spare = send;
    if (!job->in_place)
        return;
    switch (job->op->layout) {
    case LAYOUT_ALL:
    case LAYOUT_TO_ROOT:
    case LAYOUT_BCAST:
    case LAYOUT_SHARE:
        job->send = recv;
        break;
    case LAYOUT_COLLECT:
        job->send = recv + job->rdispls[job->rank] * size;
        break;
    case LAYOUT_GATHER:
        job->send = root ? recv + job->rdispls[job->rank] * size : send;
        break;
    case LAYOUT_SCATTER:
        job->recv = root ? send + job->sdispls[job->rank] * size : recv;
        job->spare = root ? recv : send;
        break;
    default:
        break;
    }
}

void buffers_place(buffers_t *buffers, job_t *job)
{
    place(buffers, job, buffers->area);
    job->buffers = buffers;
    job->host_send = job->send;
    job->host_recv = job->recv;
    if (buffers->device[0])
        place(buffers, job, buffers->device);
}

/* Between the areas and the device's. */
static void push(const buffers_t *buffers)
{
    for (int i = 0; i < 2 && buffers->device[0]; i++)
        device_copy(buffers->device[i], buffers->area[i], buffers->mapped);
}

void buffers_fetch(const job_t *job)
{
    const buffers_t *buffers = job->buffers;

    for (int i = 0; i < 2 && buffers->device[0]; i++)
        device_copy(buffers->area[i], buffers->device[i], buffers->mapped);
}

/* What no library can undercut on memory of its own: every rank reads its input and writes its result once. */
int buffers_copy(const job_t *job)
{
    size_t elements = job->nrecv ? job->nrecv : job->nsend;

    memcpy(job->recv, job->spare, elements * rondo_type_size(job->type));
    return 0;
}

static void guard(char *data, size_t bytes)
{
    memset(data - GUARD, GUARD_BYTE, GUARD);
    memset(data + bytes, GUARD_BYTE, GUARD);
}

static size_t guard_wrong(const char *data, size_t bytes)
{
    size_t wrong = 0;

    for (size_t i = 0; i < GUARD; i++)
        wrong += (data[i - GUARD] != GUARD_BYTE) + (data[bytes + i] != GUARD_BYTE);
    return wrong;
}

/* The extent of what lies at an in-place pair's base. */
static size_t extent(const job_t *job, bool recv)
{
    size_t size = rondo_type_size(job->type);
    size_t elements = recv ? job->nrecv : job->nsend;

    if (job->in_place && job->op->layout == LAYOUT_SHARE)
        elements = job->nsend;
    if (job->in_place && job->op->layout == LAYOUT_TO_ROOT)
        elements = job->count;
    return elements * size;
}

/* All of one period's elements, as bytes. */
static void period(const job_t *job, char *bytes, value_t *values, int from, size_t first)
{
    size_t size = rondo_type_size(job->type);

    for (size_t i = 0; i < VALUE_PERIOD; i++) {
        values[i] = from == FROM_ALL ? value_reduced(job, first + i) : value_of(job, from, first + i);
        value_store(job->type, bytes + i * size, values[i]);
    }
}

void buffers_fill(job_t *job)
{
    size_t size = rondo_type_size(job->type), total = job->nsend * size, step;
    char bytes[VALUE_PERIOD * 16];
    value_t values[VALUE_PERIOD];
    char *send = job->host_send;

    guard(job->host_recv, extent(job, true));
    memset(job->host_recv, POISON_BYTE, extent(job, true));
    if (!job->in_place)
        guard(job->host_send, total);
    if (job->in_place && job->op->layout == LAYOUT_SCATTER && job->rank == job->root)
        guard(job->host_send, total);
    /* a broadcast's other ranks put in nothing, but in place their input is where the result comes */
    if (job->op->layout == LAYOUT_BCAST && job->rank != job->root) {
        push(job->buffers);
        return;
    }
    period(job, bytes, values, job->rank, 0);
    for (size_t at = 0; at < total; at += step) {
        step = total - at < VALUE_PERIOD * size ? total - at : VALUE_PERIOD * size;
        memcpy(send + at, bytes, step);
    }
    push(job->buffers);
}

void buffers_clear(job_t *job)
{
    memset(job->host_send, 0, extent(job, false));
    memset(job->host_recv, 0, extent(job, true));
    push(job->buffers);
}

static size_t segment_wrong(const job_t *job, const segment_t *segment)
{
    size_t size = rondo_type_size(job->type), wrong = 0, n;
    const char *got = job->host_recv + segment->at * size;
    char bytes[VALUE_PERIOD * 16];
    value_t values[VALUE_PERIOD];

    period(job, bytes, values, segment->from, segment->first);
    for (size_t i = 0; i < segment->count; i += n) {
        n = segment->count - i < VALUE_PERIOD ? segment->count - i : VALUE_PERIOD;
        if (memcmp(got + i * size, bytes, n * size) == 0)
            continue;
        for (size_t k = 0; k < n; k++)
            wrong += !value_equal(job, got + (i + k) * size, values[k]);
    }
    return wrong;
}

size_t buffers_wrong(const job_t *job)
{
    size_t wrong = guard_wrong(job->host_recv, extent(job, true));
    segment_t segment;

    if (job->in_place && job->op->layout == LAYOUT_SCATTER && job->rank == job->root)
        wrong = guard_wrong(job->host_send, extent(job, false));
    for (int i = 0; job_segment(job, i, &segment); i++)
        wrong += segment_wrong(job, &segment);
    return wrong;
}
