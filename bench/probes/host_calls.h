/* The collectives of host_bound.c: by plain shared memory, flags and copies alone, in two ways.
 *
 *   lines   up to 1 KB: the sender's data lies in a slot behind its number (up to 56 bytes in the number's own line),
 *           and whoever wants it polls there. Allreduce and reduce also by trees of arity 4 and 8.
 *   copies  a flag says that a buffer may be read, each rank copies or reduces what it needs out of the others' buffers
 *           (reductions: its n-th part), and a dissemination barrier ends the call.
 *
 * Data are new in each call, and are used: who gives them stores into every line before, and a root that others have
 * written for loads every line. Otherwise lines would stay in the cache of the rank that copies them. */
#ifndef RONDO_BENCH_HOST_CALLS_H
#define RONDO_BENCH_HOST_CALLS_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RANKS 128
#define ROUNDS 7  /* of a dissemination barrier of RANKS */
#define SLOT 1024 /* bytes of a slot's data */
#define BANKS 16  /* calls after which slots are used again: a barrier before that */

typedef struct {
    _Alignas(64) _Atomic uint64_t number;
    char data[SLOT + 56];
} slot_t;

typedef struct {
    _Alignas(64) _Atomic uint64_t number;
} flag_t;

typedef struct {
    flag_t round[RANKS][ROUNDS];
    flag_t ready[RANKS];
    double seconds[RANKS];
    long iters, wrong[RANKS];
    slot_t slot[BANKS][RANKS]; /* of each rank */
    slot_t down[BANKS];        /* from the root of a tree to all */
} common_t;

typedef enum {
    BARRIER,
    ALLREDUCE,
    REDUCE,
    BROADCAST,
    ALLGATHER,
    REDUCE_SCATTER,
    ALLTOALL,
    GATHER,
    SCATTER,
    SENDRECV
} op_t;
static const char *const names[] = {"barrier",        "allreduce", "reduce", "broadcast", "allgather",
                                    "reduce_scatter", "alltoall",  "gather", "scatter",   "sendrecv"};
enum { NOPS = sizeof names / sizeof *names };

static common_t *common;
static char *area; /* of each rank: its input, then its result */
static size_t area_bytes, half;
static int n, me;
static uint64_t calls, barriers; /* this rank's, the same on all */

static float *in_of(int rank)
{
    return (float *)(area + (size_t)rank * area_bytes);
}

static float *out_of(int rank)
{
    return (float *)(area + (size_t)rank * area_bytes + half);
}

static void await(_Atomic uint64_t *number, uint64_t least)
{
    for (int spins = 0; atomic_load_explicit(number, memory_order_acquire) < least; spins++)
        if (spins > 20000)
            sched_yield();
}

static void barrier(void)
{
    barriers++;
    for (int k = 0, step = 1; step < n; k++, step *= 2) {
        atomic_store_explicit(&common->round[(me + step) % n][k].number, barriers, memory_order_release);
        await(&common->round[me][k].number, barriers);
    }
}

/* ---- lines ---- */

static slot_t *bank(int rank)
{
    return &common->slot[calls % BANKS][rank];
}

static void put(slot_t *slot, const void *data, size_t bytes)
{
    memcpy(slot->data, data, bytes);
    atomic_store_explicit(&slot->number, calls, memory_order_release);
}

static const void *get(slot_t *slot)
{
    await(&slot->number, calls);
    return slot->data;
}

static void add(float *restrict to, const float *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* Up by a tree, where rank r's children are r * arity + 1 and so on; down, if all want it, by one slot. */
static void tree(float *out, const float *in, size_t bytes, int arity, bool all)
{
    float sum[SLOT / sizeof(float)];

    memcpy(sum, in, bytes);
    for (int c = me * arity + 1; c <= me * arity + arity && c < n; c++)
        add(sum, get(bank(c)), bytes / sizeof *sum);
    if (me > 0)
        put(bank(me), sum, bytes);
    else
        memcpy(out, sum, bytes);
    if (!all)
        return;
    if (me == 0)
        put(&common->down[calls % BANKS], sum, bytes);
    else
        memcpy(out, get(&common->down[calls % BANKS]), bytes);
}

static void flat_reduce(float *out, size_t bytes)
{
    memcpy(out, in_of(me), bytes);
    for (int r = 0; r < n; r++)
        if (r != me)
            add(out, get(bank(r)), bytes / sizeof *out);
}

/* Bytes that a rank puts into its slot, or 0: it has no room for them. */
static size_t slot_bytes(op_t op, size_t bytes)
{
    size_t whole = op == ALLTOALL || op == SCATTER ? bytes * (size_t)n : bytes;

    return op != BARRIER && whole <= SLOT ? whole : 0;
}

static void by_lines(op_t op, size_t bytes, int arity)
{
    float *in = in_of(me), *out = out_of(me);
    size_t block = bytes / sizeof *in, part = block / (size_t)n;
    bool gives = (op != BROADCAST && op != SCATTER) || me == 0;

    calls++;
    if (calls % BANKS == 0)
        barrier();
    if (arity) {
        tree(out, in, bytes, arity, op == ALLREDUCE);
        return;
    }
    if (gives)
        put(bank(me), in, slot_bytes(op, bytes));
    if (op == ALLREDUCE || (op == REDUCE && me == 0))
        flat_reduce(out, bytes);
    else if (op == BROADCAST)
        memcpy(out, get(bank(0)), bytes);
    else if (op == SCATTER)
        memcpy(out, (const float *)get(bank(0)) + (size_t)me * block, bytes);
    else if (op == SENDRECV)
        memcpy(out, get(bank((me + n - 1) % n)), bytes);
    if (op == REDUCE_SCATTER)
        memset(out, 0, part * sizeof *out);
    for (int i = 0; i < n; i++) {
        int r = (me + i) % n;

        if (op == ALLGATHER || (op == GATHER && me == 0))
            memcpy(out + (size_t)r * block, get(bank(r)), bytes);
        else if (op == ALLTOALL)
            memcpy(out + (size_t)r * block, (const float *)get(bank(r)) + (size_t)me * block, bytes);
        else if (op == REDUCE_SCATTER)
            add(out, (const float *)get(bank(r)) + (size_t)me * part, part);
    }
}

/* ---- copies ---- */

static const float *read_from(int rank)
{
    await(&common->ready[rank].number, calls);
    return in_of(rank);
}

/* Elements first..end of all inputs, added up into `out`, a piece at a time that stays in the first cache. */
static void reduce_part(float *out, size_t first, size_t end)
{
    const size_t piece = 2048;

    for (size_t at = first; at < end; at += piece) {
        size_t count = end - at < piece ? end - at : piece;

        memcpy(out + (at - first), read_from(me) + at, count * sizeof *out);
        for (int i = 1; i < n; i++)
            add(out + (at - first), read_from((me + i) % n) + at, count);
    }
}

static size_t input_count(op_t op, size_t bytes)
{
    return bytes / sizeof(float) * (op == ALLTOALL || op == SCATTER ? (size_t)n : 1);
}

/* Stores into each line of this rank's input, as whoever computed it did. */
static void renew(op_t op, size_t bytes)
{
    volatile float *in = in_of(me);

    if ((op == BROADCAST || op == SCATTER) && me != 0)
        return;
    for (size_t i = 0; i < input_count(op, bytes); i += 64 / sizeof *in)
        in[i] = in[i];
}

/* Loads each line of what others have stored into the root's result. */
static void use(op_t op, size_t bytes)
{
    const volatile float *out = out_of(0);

    if (me != 0 || (op != GATHER && op != REDUCE))
        return;
    for (size_t i = 0; i < bytes / sizeof *out * (op == GATHER ? (size_t)n : 1); i += 64 / sizeof *out)
        (void)out[i];
}

static void by_copies(op_t op, size_t bytes)
{
    float *out = out_of(me);
    size_t count = bytes / sizeof *out, first = count * (size_t)me / (size_t)n;
    size_t end = count * (size_t)(me + 1) / (size_t)n;

    calls++;
    renew(op, bytes);
    atomic_store_explicit(&common->ready[me].number, calls, memory_order_release);
    if (op == ALLREDUCE)
        reduce_part(out + first, first, end);
    else if (op == REDUCE)
        reduce_part(out_of(0) + first, first, end);
    else if (op == REDUCE_SCATTER)
        reduce_part(out, count / (size_t)n * (size_t)me, count / (size_t)n * (size_t)(me + 1));
    else if (op == BROADCAST && me != 0)
        memcpy(out, read_from(0), bytes);
    else if (op == SCATTER)
        memcpy(out, read_from(0) + count * (size_t)me, bytes);
    else if (op == GATHER)
        memcpy(out_of(0) + count * (size_t)me, in_of(me), bytes);
    else if (op == SENDRECV)
        memcpy(out, read_from((me + n - 1) % n), bytes);
    for (int i = 0; i < n && (op == ALLGATHER || op == ALLTOALL); i++) {
        int r = (me + i) % n;

        memcpy(out + count * (size_t)r, read_from(r) + (op == ALLTOALL ? count * (size_t)me : 0), bytes);
    }
    barrier();
    use(op, bytes);
    if (op != ALLREDUCE)
        return;
    for (int i = 1; i < n; i++) {
        int r = (me + i) % n;
        size_t from = count * (size_t)r / (size_t)n;

        memcpy(out + from, out_of(r) + from, (count * (size_t)(r + 1) / (size_t)n - from) * sizeof *out);
    }
    barrier();
}

#endif
