/* See world.h. */
#include "sched/algo/algos.h"
#include "sim/world_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GUARD 64
#define GUARD_BYTE 0x5c

uint32_t world_draw(world_t *w, uint32_t below)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (uint32_t)((w->random * 0x2545f4914f6cdd1dull >> 32) % below);
}

#define BANKS (4 * (size_t)RD_KALIGN) /* behind control, fifos, slices and streams */

void *world_get(size_t bytes)
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
        w->own[r] = w->host_windows ? world_get(RD_KALIGN) : w->window[r];
        memset(w->window[r] + RD_KALIGN, 0xff, (size_t)n * fifos * RD_KSLOTS * RD_KSLOT);
        memset(w->window[r] + BANKS, 0xff, 2 * (size_t)bank_bytes);
    }
    w->work = world_get(sizeof *w->work * RD_KRANKS * WORLD_OPS);
    w->launch = world_get(sizeof *w->launch * RD_KRANKS * WORLD_OPS);
    w->buffers = world_get(sizeof *w->buffers * RD_KRANKS * WORLD_OPS);
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

/* ---- operations */

static void sizes(const world_t *w, const op_plan_t *p, int rank, size_t *in, size_t *out)
{
    size_t bytes = p->count * world_element(p), all = bytes * (size_t)w->n;
    int root = rank == p->root;

    switch (p->launch.coll) {
    case RD_REDUCE_SCATTER:
        *in = all + (size_t)(w->n - 1) * p->gap * world_element(p), *out = bytes;
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
    size_t element = world_element(p);
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
            b->out += (size_t)rank * (block + p->gap * element);
    } else {
        b->in = area_get(w, b->in_bytes, element, &b->in_area);
        b->out = area_get(w, b->out_bytes, element, &b->out_area);
    }
    world_fill(w, world_type(p), b->in, b->in_bytes);
    if (p->launch.narrow && p->launch.op == RONDO_AVG && world_draw(w, 2))
        world_fill_hard(w, world_type(p), b->in, b->in_bytes);
    b->in_was = world_get(b->in_bytes);
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
        rd_reducer_init(&reducer, world_type(p), RONDO_AVG, w->n, RD_SIMD_PLAIN);
    } else {
        world_fill(w, world_type(p), b->scalar, world_element(p));
        rd_reducer_init_premulsum(&reducer, world_type(p), b->scalar, RD_SIMD_PLAIN);
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
    const void *function = rd_kernel_find(l, p->is_short ? 1 : p->passes);
    uint32_t room = p->is_short ? world_cell(w) : (1 + l->banks) * w->bank_bytes;
    if (!function || rd_kernel_bank(l->algo, l->proto, l->coll, w->n, p->tiles) > room) {
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
        k->reduce.gap = p->gap * rondo_type_size((rondo_type_t)l->type);
        k->reduce.root = p->root;
        k->reduce.coll = l->coll;
        k->reduce.type = l->type;
        k->reduce.narrow = l->narrow;
        k->reduce.op = l->op;
        k->reduce.passes = p->is_short ? world_tiles(w, p) : p->passes;
        k->reduce.tiles = p->tiles;
        k->reduce.slice = p->is_short ? RD_KCELLED(world_cell(w), p->tiles / 2) : p->slice; /* one tile, or two */
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
        char *want = world_get(b->out_bytes);
        rd_sim_read(rank, b->out, b->out_bytes);
        char *same = world_get(b->out_bytes);
        world_expected(w, p, op, rank, want);
        if (!rd_algo_is_program(p->launch.algo) && world_scheduled(w, p, op, rank, same) &&
            memcmp(want, same, b->out_bytes) != 0)
            wrong = "the schedule of this name has another result";
        free(same);
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
             rd_type_name(world_type(p)), rd_op_name((rondo_op_t)p->launch.op), (unsigned long long)p->count,
             (unsigned long long)p->gap, p->root, p->tiles, p->passes, p->launch.blocks, p->launch.threads,
             p->in_place   ? ", in place"
             : p->is_short ? ", short"
                           : "",
             p->scaled ? ", scaled" : "", rank, w->n, wrong, first, b->out_bytes);
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
    rd_sim_launch_t *queue = world_get(sizeof *queue * (size_t)(w->n * w->ops));
    int bad;

    for (int r = 0; r < w->n; r++)
        world_queue(w, r, queue + r * w->ops);
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
