/* What must come out of an operation, worked out on the host. A rank's contribution is what the kernel's load makes of
 * its input, in elements of the type that the kernel computes with; what comes out is what its store makes of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/algo/algos.h"
#include "sim/schedule.h"
#include "sim/world_int.h"

static size_t element_of(const op_plan_t *p)
{
    return rondo_type_size((rondo_type_t)p->launch.type);
}

static size_t gap_of(const op_plan_t *p)
{
    return p->gap * element_of(p);
}

static void reducer_of(const world_t *w, const op_plan_t *p, const struct op_buffers *b, rd_reducer_t *r)
{
    if (p->scaled != RD_KSCALE_NONE && p->launch.op != RONDO_AVG)
        rd_reducer_init_premulsum(r, world_type(p), b->scalar, RD_SIMD_PLAIN);
    else
        rd_reducer_init(r, world_type(p), (rondo_op_t)p->launch.op, w->n, RD_SIMD_PLAIN);
}

/* Every rank has a scalar of its own. To be freed. */
static char *contribution(const world_t *w, const op_plan_t *p, int op, int rank)
{
    const struct op_buffers *b = &w->buffers[rank * WORLD_OPS + op];
    size_t count = b->in_bytes / world_element(p);
    char *to = world_get(count * element_of(p));
    rd_reducer_t r = {.load = NULL};

    if (rd_coll_reduces((rd_coll_t)p->launch.coll))
        reducer_of(w, p, b, &r);
    if (r.load)
        r.load(to, b->in_was, count, r.arg);
    else
        memcpy(to, b->in_was, b->in_bytes);
    return to;
}

/* Elements [at, at + bytes) of the contributions, summed from rank `first` on; at once, or rounded after each. */
static void reduce_part(const world_t *w, const op_plan_t *p, int op, size_t at, size_t bytes, int first, int at_once,
                        char *to)
{
    size_t count = bytes / element_of(p);
    char *part[RD_KRANKS];
    const void *src[RD_KRANKS];
    rd_reducer_t r;

    for (int i = 0; i < w->n; i++) {
        part[i] = contribution(w, p, op, (first + i) % w->n);
        src[i] = part[i] + at;
    }
    reducer_of(w, p, &w->buffers[op], &r);
    if (at_once && w->n <= 8) {
        r.reduce(to, src, w->n, count, r.arg);
    } else {
        memcpy(to, src[0], bytes);
        for (int i = 1; i < w->n; i++) {
            const void *two[2] = {to, src[i]};
            r.reduce(to, two, 2, count, r.arg);
        }
    }
    if (r.finish)
        r.finish(to, count, r.arg);
    for (int i = 0; i < w->n; i++)
        free(part[i]);
}

/* What a rank has in the end is rounded to the user's type, if that is narrower. */
static void store(const world_t *w, const op_plan_t *p, int op, int rank, const char *from, char *to)
{
    const struct op_buffers *b = &w->buffers[rank * WORLD_OPS + op];
    rd_reducer_t r = {.store = NULL};

    if (rd_coll_reduces((rd_coll_t)p->launch.coll))
        reducer_of(w, p, b, &r);
    if (r.store)
        r.store(to, from, b->out_bytes / world_element(p));
    else
        memcpy(to, from, b->out_bytes);
}

/* The schedule whose steps a kernel's results are those of: the program that it runs, or, of a kernel written by hand,
 * the one of the same name where both sum in one order. NULL: there is none. */
static const rd_algo_t *schedule_of(const world_t *w, const op_plan_t *p)
{
    rd_coll_t coll = (rd_coll_t)p->launch.coll;

    switch (p->launch.algo->device.kernel) {
    case RD_KERNEL_ONESHOT: /* more ranks than a step has ends: it would round in between */
    case RD_KERNEL_TWOSHOT:
        return w->n > RD_MAX_ENDS ? NULL : coll == RD_ALLREDUCE ? p->launch.algo : &rd_algo_direct;
    case RD_KERNEL_RING:
    case RD_KERNEL_CHAIN: /* sums go the other way round there */
        return coll == RD_ALLGATHER || coll == RD_BROADCAST ? &rd_algo_ring : NULL;
    default:
        return p->launch.algo;
    }
}

int world_scheduled(const world_t *w, const op_plan_t *p, int op, int rank, char *to)
{
    size_t element = element_of(p), gap = gap_of(p), block = p->count * element;
    schedule_t s = {.algo = schedule_of(w, p),
                    .coll = (rd_coll_t)p->launch.coll,
                    .n = w->n,
                    .root = p->root,
                    .param = p->launch.algo->device.param,
                    .bytes = p->count * element,
                    .element = element,
                    .at_once = !rd_algo_is_program(p->launch.algo)};
    rd_reducer_t reducer;

    if (!s.algo)
        return 0;
    for (int r = 0; r < w->n; r++) {
        const struct op_buffers *b = &w->buffers[r * WORLD_OPS + op];
        s.in[r] = contribution(w, p, op, r);
        s.out[r] = world_get(b->out_bytes / world_element(p) * element);
        for (size_t k = 1; k < (size_t)w->n && gap; k++)
            memmove(s.in[r] + k * block, s.in[r] + k * (block + gap), block);
    }
    reducer_of(w, p, &w->buffers[op], &reducer);
    s.reducer = rd_coll_reduces((rd_coll_t)p->launch.coll) ? &reducer : NULL;
    if (schedule_run(&s) != 0) {
        fprintf(stderr, "%s comes to no end\n", s.algo->name);
        exit(1);
    }
    store(w, p, op, rank, s.out[rank], to);
    for (int r = 0; r < w->n; r++) {
        free(s.in[r]);
        free(s.out[r]);
    }
    return 1;
}

static void reduced(const world_t *w, const op_plan_t *p, int op, int rank, char *to)
{
    size_t bytes = p->count * element_of(p);
    int ring = p->launch.algo == &rd_algo_ring, chain = p->launch.algo == &rd_algo_chain;
    size_t chunk = rd_kernel_chunk(p->launch.algo, p->launch.coll, w->n, bytes);
    char *sum = world_get(bytes);

    if (p->launch.coll == RD_REDUCE)
        reduce_part(w, p, op, 0, bytes, chain ? p->root + 1 : 0, !chain, sum);
    else if (p->launch.coll == RD_REDUCE_SCATTER)
        reduce_part(w, p, op, (size_t)rank * (bytes + gap_of(p)), bytes, ring ? rank + 1 : 0, !ring, sum);
    for (size_t c = 0, at = 0; at < bytes && p->launch.coll == RD_ALLREDUCE; c++, at += chunk)
        reduce_part(w, p, op, at, at + chunk < bytes ? chunk : bytes - at, ring ? (int)c + 1 : 0, !ring, sum + at);
    store(w, p, op, rank, sum, to);
    free(sum);
}

void world_expected(const world_t *w, const op_plan_t *p, int op, int rank, char *to)
{
    size_t bytes = p->count * world_element(p), n = (size_t)w->n;

    if (rd_algo_is_program(p->launch.algo)) {
        (void)world_scheduled(w, p, op, rank, to);
        return;
    }
    switch (p->launch.coll) {
    case RD_ALLREDUCE:
    case RD_REDUCE:
    case RD_REDUCE_SCATTER:
        reduced(w, p, op, rank, to);
        return;
    case RD_BROADCAST:
    case RD_SCATTER:
        memcpy(to,
               w->buffers[p->root * WORLD_OPS + op].in_was + (p->launch.coll == RD_SCATTER ? (size_t)rank * bytes : 0),
               bytes);
        return;
    case RD_ALLTOALL:
        for (size_t r = 0; r < n; r++)
            memcpy(to + r * bytes, w->buffers[r * WORLD_OPS + (size_t)op].in_was + (size_t)rank * bytes, bytes);
        return;
    default: /* RD_ALLGATHER, RD_GATHER */
        for (size_t r = 0; r < n; r++)
            memcpy(to + r * bytes, w->buffers[r * WORLD_OPS + (size_t)op].in_was, bytes);
    }
}
