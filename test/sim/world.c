/* See world.h. */
#include "sched/algo/algos.h"
#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/schedule.h"

#define GUARD 64
#define GUARD_BYTE 0x5c

struct op_buffers {
    char *in, *out;           /* as the kernel gets them */
    char *in_area, *out_area; /* with guards; out_area may be in_area */
    size_t in_bytes, out_bytes;
    char *in_was; /* what the input was */
    char scalar[16];
    int has_in, has_out;
};

uint32_t world_draw(world_t *w, uint32_t below)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (uint32_t)((w->random * 0x2545f4914f6cdd1dull >> 32) % below);
}

#define BANKS (4 * (size_t)RD_KALIGN) /* behind control, fifos, slices and streams */

static void *get(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);

    if (!p) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    return p;
}

void world_begin(world_t *w, int n, uint64_t seed, uint32_t fifos, uint32_t bank_bytes)
{
    memset(w, 0, sizeof *w);
    w->n = n;
    w->seed = seed;
    w->random = seed * 0x9e3779b97f4a7c15ull + 77;
    w->fifos = fifos;
    w->bank_bytes = bank_bytes;
    w->host_windows = seed % 2 == 0;
    w->fifo_proto = w->host_windows || seed / 2 % 2 ? RD_PROTO_LL : RD_PROTO_LL128;
    w->window_bytes = BANKS + 2 * (size_t)bank_bytes;
    for (int r = 0; r < n; r++) {
        w->window[r] = mmap(NULL, w->window_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (w->window[r] == MAP_FAILED)
            exit(1);
        w->own[r] = w->host_windows ? get(RD_KALIGN) : w->window[r];
        memset(w->window[r] + RD_KALIGN, 0xff, (size_t)n * fifos * RD_KSLOTS * RD_KSLOT);
        memset(w->window[r] + BANKS, 0xff, 2 * (size_t)bank_bytes);
    }
    w->work = get(sizeof *w->work * RD_KRANKS * WORLD_OPS);
    w->launch = get(sizeof *w->launch * RD_KRANKS * WORLD_OPS);
    w->buffers = get(sizeof *w->buffers * RD_KRANKS * WORLD_OPS);
}

static void buffers_free(struct op_buffers *b)
{
    if (b->out_area != b->in_area)
        free(b->out_area);
    free(b->in_area);
    free(b->in_was);
    memset(b, 0, sizeof *b);
}

static void drop_ops(world_t *w)
{
    for (int i = 0; i < RD_KRANKS * WORLD_OPS; i++)
        buffers_free(&w->buffers[i]);
    w->ops = 0;
}

void world_end(world_t *w)
{
    drop_ops(w);
    for (int r = 0; r < w->n; r++) {
        munmap(w->window[r], w->window_bytes);
        if (w->host_windows)
            free(w->own[r]);
    }
    free(w->work);
    free(w->launch);
    free(w->buffers);
}

/* ---- data */

/* A value and its place: few values, so that there are ties. Returns its bytes. */
static size_t draw_pair(world_t *w, uint32_t type, unsigned char *p)
{
    switch (type) {
    case RONDO_FLOAT32_INT32:
    case RONDO_FLOAT32_FLOAT32: {
        float f[2] = {(float)world_draw(w, 4), (float)world_draw(w, 100)};
        int32_t i = (int32_t)f[1];
        memcpy(p, f, 8);
        if (type == RONDO_FLOAT32_INT32)
            memcpy(p + 4, &i, 4);
        return 8;
    }
    case RONDO_FLOAT64_INT32:
    case RONDO_FLOAT64_FLOAT64: {
        double d[2] = {(double)world_draw(w, 4), (double)world_draw(w, 100)};
        int32_t i = (int32_t)d[1];
        memcpy(p, d, type == RONDO_FLOAT64_INT32 ? 8 : 16);
        if (type == RONDO_FLOAT64_INT32)
            memcpy(p + 8, &i, 4);
        return 16;
    }
    case RONDO_INT32_INT32: {
        int32_t i[2] = {(int32_t)world_draw(w, 4) - 2, (int32_t)world_draw(w, 100)};
        memcpy(p, i, 8);
        return 8;
    }
    default: {
        int64_t v = (int64_t)world_draw(w, 4) - 2;
        int32_t i = (int32_t)world_draw(w, 100);
        memcpy(p, &v, 8);
        memcpy(p + 8, &i, 4);
        return 16;
    }
    }
}

/* Bytes that may be anything, but floating values near 1, of either sign and with random mantissas, so that no sum is a
 * NaN and every one rounds. */
static void fill(world_t *w, uint32_t type, void *to, size_t bytes)
{
    unsigned char *p = to;

    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)world_draw(w, 256);
    for (size_t at = 0; at + 1 <= bytes;) {
        uint64_t x = 0;
        switch (type) {
        case RONDO_FLOAT16:
            memcpy(&x, p + at, 2);
            x = (x & 0x87ff) | 0x3800;
            memcpy(p + at, &x, 2);
            at += 2;
            break;
        case RONDO_BFLOAT16:
            memcpy(&x, p + at, 2);
            x = (x & 0x80ff) | 0x3f00;
            memcpy(p + at, &x, 2);
            at += 2;
            break;
        case RONDO_FLOAT8_E4M3:
            p[at] = (unsigned char)((p[at] & 0x8f) | 0x30);
            at++;
            break;
        case RONDO_FLOAT8_E5M2:
            p[at] = (unsigned char)((p[at] & 0x87) | 0x38);
            at++;
            break;
        case RONDO_FLOAT32:
        case RONDO_COMPLEX64:
            memcpy(&x, p + at, 4);
            x = (x & 0x80ffffff) | 0x3f000000;
            memcpy(p + at, &x, 4);
            at += 4;
            break;
        case RONDO_FLOAT64:
        case RONDO_COMPLEX128:
            memcpy(&x, p + at, 8);
            x = (x & 0x801fffffffffffff) | 0x3fe0000000000000;
            memcpy(p + at, &x, 8);
            at += 8;
            break;
        case RONDO_FLOAT32_INT32:
        case RONDO_FLOAT32_FLOAT32:
        case RONDO_FLOAT64_INT32:
        case RONDO_FLOAT64_FLOAT64:
        case RONDO_INT32_INT32:
        case RONDO_INT64_INT32:
            at += draw_pair(w, type, p + at);
            break;
        case RONDO_BOOL:
            p[at] &= 1;
            at++;
            break;
        default:
            return;
        }
    }
}

/* ---- operations */

static size_t gap_of(const op_plan_t *p)
{
    return p->gap * rondo_type_size((rondo_type_t)p->launch.type);
}

static void sizes(const world_t *w, const op_plan_t *p, int rank, size_t *in, size_t *out)
{
    size_t bytes = p->count * rondo_type_size((rondo_type_t)p->launch.type), all = bytes * (size_t)w->n;
    int root = rank == p->root;

    switch (p->launch.coll) {
    case RD_REDUCE_SCATTER:
        *in = all + (size_t)(w->n - 1) * gap_of(p), *out = bytes;
        return;
    case RD_ALLGATHER:
        *in = bytes, *out = all;
        return;
    case RD_ALLTOALL:
        *in = *out = all;
        return;
    case RD_GATHER:
        *in = bytes, *out = root ? all : 0;
        return;
    case RD_SCATTER:
        *in = root ? all : 0, *out = bytes;
        return;
    case RD_BROADCAST:
        *in = root ? bytes : 0, *out = bytes;
        return;
    case RD_REDUCE:
        *in = bytes, *out = root ? bytes : 0;
        return;
    default:
        *in = *out = bytes;
    }
}

/* Between guards, aligned to the element and, half of the time, to nothing more. */
static char *area_get(world_t *w, size_t bytes, size_t element, char **area)
{
    size_t at = GUARD + (world_draw(w, 2) ? 0 : element * world_draw(w, 8));

    if (posix_memalign((void **)area, 64, bytes + 2 * GUARD + 8 * 16))
        exit(1);
    memset(*area, GUARD_BYTE, bytes + 2 * GUARD + 8 * 16);
    return *area + at;
}

static void buffers_get(world_t *w, const op_plan_t *p, int rank, struct op_buffers *b)
{
    size_t element = rondo_type_size((rondo_type_t)p->launch.type);
    size_t block = p->count * element;

    sizes(w, p, rank, &b->in_bytes, &b->out_bytes);
    b->has_in = b->in_bytes > 0;
    b->has_out = b->out_bytes > 0;
    if (p->in_place && b->has_in && b->has_out) {
        size_t more = b->in_bytes > b->out_bytes ? b->in_bytes : b->out_bytes;
        b->in = b->out = area_get(w, more, element, &b->in_area);
        b->out_area = b->in_area;
        if (b->in_bytes < b->out_bytes)
            b->in += (size_t)rank * block;
        if (b->out_bytes < b->in_bytes)
            b->out += (size_t)rank * (block + gap_of(p));
    } else {
        b->in = area_get(w, b->in_bytes, element, &b->in_area);
        b->out = area_get(w, b->out_bytes, element, &b->out_area);
    }
    fill(w, p->launch.type, b->in, b->in_bytes);
    b->in_was = get(b->in_bytes);
    memcpy(b->in_was, b->in, b->in_bytes);
}

/* The scalar: in the argument, or one element in memory. */
static void scale_set(world_t *w, const op_plan_t *p, struct op_buffers *b, rd_kreduce_t *r)
{
    rd_reducer_t reducer;

    r->scaled = p->scaled;
    if (p->scaled == RD_KSCALE_NONE)
        return;
    if (p->launch.op == RONDO_AVG) {
        rd_reducer_init(&reducer, (rondo_type_t)p->launch.type, RONDO_AVG, w->n, RD_SIMD_PLAIN);
    } else {
        fill(w, p->launch.type, b->scalar, rondo_type_size((rondo_type_t)p->launch.type));
        rd_reducer_init_premulsum(&reducer, (rondo_type_t)p->launch.type, b->scalar, RD_SIMD_PLAIN);
    }
    memcpy(r->scale, reducer.arg, sizeof r->scale);
    if (p->device_scale)
        r->device_scale = b->scalar;
}

rd_kcomm_t world_comm(world_t *w, int rank)
{
    rd_kcomm_t comm;

    memset(&comm, 0, sizeof comm);
    for (int r = 0; r < w->n; r++)
        comm.window[r] = w->window[r];
    comm.own = w->own[rank];
    comm.host = &w->host[rank];
    comm.rank = rank;
    comm.nranks = w->n;
    comm.fifos = comm.spread = w->fifos;
    comm.fifo_offset = 1;
    comm.slice_offset = 2;
    comm.stream_offset = 3;
    comm.slice_bytes = RD_KSLICE;
    comm.slice_least = WORLD_LEAST;
    comm.bank_offset = BANKS / RD_KALIGN;
    comm.bank_bytes = w->bank_bytes;
    return comm;
}

static void program_set(const world_t *w, const op_plan_t *p, int rank, rd_kprogram_t *program)
{
    const char *why = rd_kernel_program(p->launch.algo, p->launch.coll, w->n, rank, p->root, program);

    if (!why)
        return;
    fprintf(stderr, "%s of %d ranks, root %d: %s\n", p->launch.algo->name, w->n, p->root, why);
    exit(1);
}

void world_add(world_t *w, const op_plan_t *plan)
{
    op_plan_t *p = &w->plan[w->ops];
    const rd_klaunch_t *l = &p->launch;

    *p = *plan;
    uint32_t warps = rd_kernel_warps(l->algo, w->n),
             most = rd_kernel_threads(l->algo->device.kernel, l->proto) / 32 / warps;
    p->launch.threads = 32 * warps * (1 + world_draw(w, most < 3 ? most : 3));
    p->launch.blocks = rd_kernel_blocks(l->algo, w->n, p->tiles, l->threads) + (world_draw(w, 4) == 0);
    if (l->proto == RD_PROTO_SIMPLE) {
        p->launch.threads = 32 + (p->slice == WORLD_SLICE ? 32u << world_draw(w, 2) : 256);
        p->launch.blocks = p->tiles;
    }
    const void *function = rd_kernel_find(l, p->passes);
    if (!function || rd_kernel_bank(l->algo, l->proto, l->coll, w->n, p->tiles) > (1 + l->banks) * w->bank_bytes) {
        fprintf(stderr, "the test asks for what there is not: %s, %s, coll %u\n", l->algo->name,
                rd_proto_name(l->proto), l->coll);
        exit(1);
    }
    for (int r = 0; r < w->n; r++) {
        size_t i = (size_t)(r * WORLD_OPS + w->ops);
        struct op_buffers *b = &w->buffers[i];
        rd_kwork_t *k = &w->work[i];
        buffers_get(w, p, r, b);
        memset(k, 0, sizeof *k);
        k->comm = world_comm(w, r);
        k->reduce.in = b->has_in ? b->in : NULL;
        k->reduce.out = b->has_out ? b->out : NULL;
        k->reduce.count = p->count;
        k->reduce.gap = gap_of(p);
        k->reduce.root = p->root;
        k->reduce.coll = l->coll;
        k->reduce.type = l->type;
        k->reduce.op = l->op;
        k->reduce.passes = p->passes;
        k->reduce.tiles = p->tiles;
        k->reduce.slice = p->slice;
        scale_set(w, p, b, &k->reduce);
        if (rd_algo_is_program(l->algo))
            program_set(w, p, r, &k->programmed.program);
        rd_klaunch_t part = *l; /* ranks need not have equally many warps */
        if (!w->alike && world_draw(w, 2) == 0)
            rd_kernel_narrow(&part, w->n, 1 + world_draw(w, l->blocks), 1 + world_draw(w, 16));
        w->launch[i] = (rd_sim_launch_t){function,
                                         part.blocks,
                                         part.threads,
                                         rd_kernel_shared(&part),
                                         k,
                                         p->in_place && rd_algo_is_program(l->algo)};
    }
    w->ops++;
}

/* ---- what must come out */

static void reducer_of(const world_t *w, const op_plan_t *p, const struct op_buffers *b, rd_reducer_t *r)
{
    if (p->scaled != RD_KSCALE_NONE && p->launch.op != RONDO_AVG)
        rd_reducer_init_premulsum(r, (rondo_type_t)p->launch.type, b->scalar, RD_SIMD_PLAIN);
    else
        rd_reducer_init(r, (rondo_type_t)p->launch.type, p->launch.op, w->n, RD_SIMD_PLAIN);
}

/* Elements [at, at + bytes) of the contributions, summed from rank `first` on; at once, or rounded after each. */
static void reduce_part(const world_t *w, const op_plan_t *p, int op, size_t at, size_t bytes, int first, int at_once,
                        char *to)
{
    size_t element = rondo_type_size((rondo_type_t)p->launch.type), count = bytes / element;
    char *part[RD_KRANKS];
    const void *src[RD_KRANKS];
    rd_reducer_t r;

    for (int i = 0; i < w->n; i++) {
        int rank = (first + i) % w->n;
        const struct op_buffers *b = &w->buffers[rank * WORLD_OPS + op];
        part[i] = get(bytes);
        memcpy(part[i], b->in_was + at, bytes);
        reducer_of(w, p, b, &r);
        if (r.load)
            r.load(part[i], part[i], count, r.arg);
        src[i] = part[i];
    }
    if (at_once && w->n <= 8) {
        r.reduce(to, src, w->n, count, r.arg);
    } else {
        memcpy(to, part[0], bytes);
        for (int i = 1; i < w->n; i++) {
            const void *two[2] = {to, part[i]};
            r.reduce(to, two, 2, count, r.arg);
        }
    }
    if (r.finish)
        r.finish(to, count, r.arg);
    for (int i = 0; i < w->n; i++)
        free(part[i]);
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

/* By the steps of that schedule. */
static void scheduled(const world_t *w, const op_plan_t *p, int op, int rank, char *to)
{
    rd_coll_t coll = (rd_coll_t)p->launch.coll;
    int sums = coll == RD_ALLREDUCE || coll == RD_REDUCE || coll == RD_REDUCE_SCATTER;
    size_t element = rondo_type_size((rondo_type_t)p->launch.type);
    schedule_t s = {.algo = schedule_of(w, p),
                    .coll = coll,
                    .n = w->n,
                    .root = p->root,
                    .param = p->launch.algo->device.param,
                    .bytes = p->count * element,
                    .element = element,
                    .at_once = !rd_algo_is_program(p->launch.algo)};
    rd_reducer_t reducer;

    for (int r = 0; r < w->n; r++) {
        const struct op_buffers *b = &w->buffers[r * WORLD_OPS + op];
        size_t gap = gap_of(p), block = p->count * element;
        s.in[r] = get(b->in_bytes);
        s.out[r] = get(b->out_bytes);
        for (size_t k = 0, n = gap ? (size_t)w->n : 1; k < n; k++)
            memcpy(s.in[r] + k * block, b->in_was + k * (block + gap), gap ? block : b->in_bytes);
        reducer_of(w, p, b, &reducer); /* every rank has a scalar of its own */
        if (sums && reducer.load)
            reducer.load(s.in[r], s.in[r], b->in_bytes / element, reducer.arg);
    }
    s.reducer = sums ? &reducer : NULL;
    if (schedule_run(&s) != 0) {
        fprintf(stderr, "%s comes to no end\n", s.algo->name);
        exit(1);
    }
    memcpy(to, s.out[rank], w->buffers[rank * WORLD_OPS + op].out_bytes);
    for (int r = 0; r < w->n; r++) {
        free(s.in[r]);
        free(s.out[r]);
    }
}

static void expected(const world_t *w, const op_plan_t *p, int op, int rank, char *to)
{
    size_t bytes = p->count * rondo_type_size((rondo_type_t)p->launch.type), n = (size_t)w->n;
    int ring = p->launch.algo == &rd_algo_ring, chain = p->launch.algo == &rd_algo_chain;
    size_t chunk = rd_kernel_chunk(p->launch.algo, p->launch.coll, w->n, bytes);

    if (rd_algo_is_program(p->launch.algo)) {
        scheduled(w, p, op, rank, to);
        return;
    }
    switch (p->launch.coll) {
    case RD_ALLREDUCE:
        for (size_t c = 0, at = 0; at < bytes; c++, at += chunk)
            reduce_part(w, p, op, at, at + chunk < bytes ? chunk : bytes - at, ring ? (int)c + 1 : 0, !ring, to + at);
        return;
    case RD_REDUCE:
        reduce_part(w, p, op, 0, bytes, chain ? p->root + 1 : 0, !chain, to);
        return;
    case RD_REDUCE_SCATTER:
        reduce_part(w, p, op, (size_t)rank * (bytes + gap_of(p)), bytes, ring ? rank + 1 : 0, !ring, to);
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

static int guards_ok(const char *area, const char *at, size_t bytes)
{
    const char *end = at + bytes + GUARD;

    for (const char *p = area; p < at; p++)
        if (*p != GUARD_BYTE)
            return 0;
    for (const char *p = at + bytes; p < end; p++)
        if (*p != GUARD_BYTE)
            return 0;
    return 1;
}

static int check_op(const world_t *w, int op, int rank, char *text, size_t size)
{
    const op_plan_t *p = &w->plan[op];
    const struct op_buffers *b = &w->buffers[rank * WORLD_OPS + op];
    const char *low = b->in, *wrong = NULL;
    size_t bytes = b->in_bytes, first = 0;

    if (b->out_area == b->in_area) {
        low = b->out < b->in ? b->out : b->in;
        bytes = b->out_bytes > b->in_bytes ? b->out_bytes : b->in_bytes;
    } else if (memcmp(b->in, b->in_was, b->in_bytes) != 0) {
        wrong = "the input was written";
    } else if (!guards_ok(b->out_area, b->out, b->out_bytes)) {
        wrong = "something beside the output was written";
    }
    if (!wrong && !guards_ok(b->in_area, low, bytes))
        wrong = "something beside the input was written";
    if (!wrong && b->out_bytes > 0) {
        char *want = get(b->out_bytes);
        rd_sim_read(rank, b->out, b->out_bytes);
        expected(w, p, op, rank, want);
        if (!rd_algo_is_program(p->launch.algo) && schedule_of(w, p)) {
            char *same = get(b->out_bytes);
            scheduled(w, p, op, rank, same);
            if (memcmp(want, same, b->out_bytes) != 0)
                wrong = "the schedule of this name has another result";
            free(same);
        }
        while (first < b->out_bytes && b->out[first] == want[first])
            first++;
        if (first < b->out_bytes)
            wrong = "the result is wrong";
        free(want);
    }
    if (!wrong)
        return 0;
    snprintf(text, size,
             "op %d: %s of %s by %s, type %s, op %s, count %llu, %llu apart, root %d, %u tiles, %u passes, %u x %u "
             "threads%s%s: rank %d of %d: %s (byte %zu of %zu)\n",
             op, rd_coll_name((rd_coll_t)p->launch.coll), p->launch.algo->name, rd_proto_name(p->launch.proto),
             rd_type_name((rondo_type_t)p->launch.type), rd_op_name((rondo_op_t)p->launch.op),
             (unsigned long long)p->count, (unsigned long long)p->gap, p->root, p->tiles, p->passes, p->launch.blocks,
             p->launch.threads, p->in_place ? ", in place" : "", p->scaled ? ", scaled" : "", rank, w->n, wrong, first,
             b->out_bytes);
    return -1;
}

static int at_rest(const world_t *w, char *text, size_t size)
{
    for (int r = 0; r < w->n; r++)
        for (size_t i = BANKS; i < w->window_bytes; i++) {
            if (w->window[r][i] != (char)0xff) {
                snprintf(text, size, "rank %d's banks are not at rest: byte %zu\n", r, i);
                return -1;
            }
        }
    return 0;
}

int world_run(world_t *w, char *text, size_t size)
{
    rd_sim_launch_t *queue = get(sizeof *queue * (size_t)(w->n * w->ops));
    int bad;

    for (int r = 0; r < w->n; r++)
        for (int i = 0; i < w->ops; i++)
            queue[r * w->ops + i] = w->launch[r * WORLD_OPS + i];
    bad = rd_sim_queues(queue, w->n, w->ops, w->random, text, size);
    free(queue);
    for (int i = 0; i < w->ops && !bad; i++)
        for (int r = 0; r < w->n && !bad; r++)
            bad = check_op(w, i, r, text, size);
    if (!bad)
        bad = at_rest(w, text, size);
    drop_ops(w);
    return bad;
}
