/* The memory model of one-sided operations (rondo.h), by litmus tests: small programs with an outcome that the model
 * forbids, run over and over with seeded delays, by every way. What each test forbids:
 *
 *   mp        rank 0 puts data, then a signal: rank 1 has the signal and not the data. Also with the signal alone
 * behind several puts, and by put_signal. fence     rank 0 puts x, fences, puts y: rank 1 sees y in its memory and not
 * x. Mapped windows, where words are one. sb        ranks 0 and 1 each put a word to rank 2, flush and get the other's:
 * both get the old one. iriw      ranks 0 and 1 put x and y to rank 0; ranks 2 and 3 get them in both orders, with a
 * flush between: one sees x before y, the other y before x. count     many ranks signal many indices of one, which
 * waits for any part of them: a signal is lost, or counted twice, or under another index or rank. local     the buffer
 * of a put is written again when the put has returned: the old data must have gone.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rma/ways.h"

#define SEED UINT64_C(20260415)
#define SIGNALS 8
#define BYTES ((size_t)1 << 20)
#define MOST 90000 /* words of a put: several messages, however it goes */
#define BATCH 256  /* of one iteration: ranks run side by side, and meet at some of them */
#define X ((size_t)100000)
#define Y ((size_t)110000)

typedef struct {
    way_t way;
    int scale; /* iterations */
} arg_t;

typedef struct {
    test_rank_t *t;
    way_t way;
    rondo_comm_t comm;
    rondo_window_t window;
    _Atomic uint64_t *part;
    uint64_t random;
    int n;
} state_t;

/* Now and then, so that ranks meet at all points. */
static void delay(state_t *s)
{
    unsigned k = test_below(&s->random, 16);

    if (k == 0)
        sched_yield();
    for (volatile unsigned i = 0; k < 8 && i < k * 20; i++)
        continue;
}

static void must(state_t *s, rondo_result_t result, const char *what)
{
    if (result != RONDO_SUCCESS)
        test_stop(s->t, "%s: %s: %s", test_noted(s->t), what, rondo_last_error(s->comm));
}

static void signal_to(state_t *s, int peer, int signal)
{
    must(s, rondo_signal(peer, signal, 0, 0, s->comm, NULL), "signal");
}

static void wait_for(state_t *s, int peer, int signal, int count)
{
    const rondo_wait_desc_t wait = {count, peer, signal, 0};

    must(s, rondo_wait_signal(1, &wait, s->comm, NULL), "wait");
}

static void put(state_t *s, const void *from, size_t words, int peer, size_t word)
{
    must(s, rondo_put(from, words, RONDO_UINT64, peer, s->window, word * sizeof(uint64_t), 0, 0, s->comm, NULL), "put");
}

static uint64_t get(state_t *s, int peer, size_t word)
{
    uint64_t value = 0;

    must(s, rondo_get(&value, 1, RONDO_UINT64, peer, s->window, word * sizeof value, 0, 0, s->comm, NULL), "get");
    return value;
}

static void barrier(state_t *s)
{
    must(s, rondo_barrier(s->comm, NULL), "barrier");
}

/* ---- message passing ---- */

static void message_passing(state_t *s, int k)
{
    static const size_t lengths[] = {1, 3, 32, 33, 4000, MOST};
    size_t words = lengths[test_mix(SEED + (uint64_t)k) % 6], at = (size_t)k % 7;
    int one = k % 2, bad = 0;
    static _Thread_local uint64_t data[MOST];

    if (s->t->rank == 0) {
        for (size_t i = 0; i < words; i++)
            data[i] = (uint64_t)k * 100003 + i;
        delay(s);
        size_t half = words / 2;
        if (!one) {
            put(s, data, half, 1, at);
            put(s, data + half, words - half, 1, at + half);
            signal_to(s, 1, k % SIGNALS);
        } else
            must(s, rondo_put_signal(data, words, RONDO_UINT64, 1, s->window, at * 8, k % SIGNALS, 0, 0, s->comm, NULL),
                 "put_signal");
        memset(data, 0xff, sizeof data); /* local completion */
        wait_for(s, 1, 0, 1);
    } else if (s->t->rank == 1) {
        delay(s);
        wait_for(s, 0, k % SIGNALS, 1);
        for (size_t i = 0; i < words; i++)
            bad += atomic_load_explicit(&s->part[at + i], memory_order_relaxed) != (uint64_t)k * 100003 + i;
        if (bad)
            test_fail(s->t, "mp: the signal of %zu words was there, and %d of them were not (k %d)", words, bad, k);
        signal_to(s, 0, 0);
    }
}

/* ---- put, fence, put ---- */

static void fenced(state_t *s, int k)
{
    uint64_t value = (uint64_t)k + 1;

    if (s->t->rank == 0) {
        delay(s);
        put(s, &value, 1, 1, 100);
        must(s, rondo_fence(k % 2 ? 1 : RONDO_PEER_ALL, 0, s->comm, NULL), "fence");
        put(s, &value, 1, 1, 200);
        wait_for(s, 1, 1, 1);
    } else if (s->t->rank == 1) {
        while (atomic_load_explicit(&s->part[200], memory_order_acquire) != value)
            if (s->way != WAY_MAPPED && s->way != WAY_THREADS)
                must(s, rondo_flush(1, 0, s->comm, NULL), "turn");
        if (atomic_load_explicit(&s->part[100], memory_order_relaxed) != value)
            test_fail(s->t, "fence: the second put was there, and the first was not (k %d)", k);
        signal_to(s, 0, 1);
    }
}

/* ---- store buffering ---- */

static void store_buffering(state_t *s, int k)
{
    uint64_t value = (uint64_t)k + 1, old[BATCH] = {0}, both[BATCH];
    int target = s->n - 1, r = s->t->rank;

    barrier(s);
    delay(s);
    for (size_t i = 0; r < 2 && i < BATCH; i++) {
        put(s, &value, 1, target, (r ? Y : X) + 8 * i);
        must(s, rondo_flush(target, 0, s->comm, NULL), "flush");
        old[i] = get(s, target, (r ? X : Y) + 8 * i) != value;
    }
    must(s, rondo_allreduce(old, both, BATCH, RONDO_UINT64, RONDO_SUM, s->comm, NULL), "allreduce");
    for (size_t i = 0; r == 0 && i < BATCH; i++)
        if (both[i] == 2) {
            test_fail(s->t, "sb: both ranks have put and flushed, and neither has got the other's (k %d, %zu)", k, i);
            return;
        }
}

/* ---- independent reads of independent writes ---- */

static void iriw(state_t *s, int k)
{
    uint64_t value = (uint64_t)k + 1, split[BATCH] = {0}, all[BATCH];
    int r = s->t->rank;

    barrier(s);
    delay(s);
    for (size_t i = 0; i < BATCH; i++) {
        if (r < 2) {
            put(s, &value, 1, 0, (r ? Y : X) + 8 * i);
            must(s, rondo_flush(0, 0, s->comm, NULL), "flush");
        } else if (r < 4) {
            uint64_t first = get(s, 0, (r == 2 ? X : Y) + 8 * i);
            must(s, rondo_flush(0, 0, s->comm, NULL), "flush");
            split[i] = first == value && get(s, 0, (r == 2 ? Y : X) + 8 * i) != value;
        }
    }
    must(s, rondo_allreduce(split, all, BATCH, RONDO_UINT64, RONDO_SUM, s->comm, NULL), "allreduce");
    for (size_t i = 0; r == 0 && i < BATCH; i++)
        if (all[i] == 2) {
            test_fail(s->t, "iriw: two ranks have seen two puts in different orders (k %d, %zu)", k, i);
            return;
        }
}

/* ---- counting ---- */

/* All signal all, as often as a number that both ends draw alike; each waits in pieces. */
static void counting(state_t *s, int k)
{
    int self = s->t->rank;

    for (int i = 0; i < SIGNALS; i++)
        for (int r = 0; r < s->n; r++) {
            int times = (int)(test_mix(SEED + (uint64_t)(k * 64 + i) * 64 + (uint64_t)(self * 8 + r)) % 5);
            for (int m = 0; m < times; m++)
                signal_to(s, r, i);
        }
    for (int i = SIGNALS - 1; i >= 0; i--) {
        rondo_wait_desc_t waits[16];
        for (int r = 0; r < s->n; r++) {
            int times = (int)(test_mix(SEED + (uint64_t)(k * 64 + i) * 64 + (uint64_t)(r * 8 + self)) % 5);
            int part = times ? (int)test_below(&s->random, (unsigned)times + 1) : 0;
            waits[2 * r] = (rondo_wait_desc_t){part, r, i, 0};
            waits[2 * r + 1] = (rondo_wait_desc_t){times - part, r, i, 0};
        }
        must(s, rondo_wait_signal(2 * s->n, waits, s->comm, NULL), "wait for all");
    }
}

static void body(test_rank_t *t, void *arg)
{
    const arg_t *a = arg;
    state_t s = {.t = t, .way = a->way, .n = t->nranks, .random = SEED + (uint64_t)t->rank};
    void *part, *own;

    s.comm = way_comm(t, a->way, SIGNALS, 1);
    if (!s.comm)
        return;
    s.window = way_window(t, s.comm, a->way, BYTES, &part, &own);
    s.part = part;
    static const struct {
        const char *name;
        void (*run)(state_t *s, int k);
        int least, times; /* ranks, iterations */
    } tests[] = {{"mp", message_passing, 2, 1000},
                 {"fence", fenced, 2, 2000},
                 {"sb", store_buffering, 2, 60},
                 {"iriw", iriw, 4, 20},
                 {"count", counting, 1, 60}};
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        test_note(t, "%s, %s", way_name(a->way), tests[i].name);
        barrier(&s);
        if (a->way == WAY_CMA && tests[i].run == fenced)
            continue; /* words are not one there, and nobody may look at them without a signal */
        for (int k = 0; s.n >= tests[i].least && k < tests[i].times / a->scale && !test_failures(t); k++)
            tests[i].run(&s, k);
        barrier(&s);
    }
    TEST_OK(t, s.comm, rondo_window_destroy(s.comm, s.window));
    TEST_OK(t, s.comm, rondo_comm_destroy(s.comm));
    free(own);
}

int main(void)
{
    int bad = 0;

    test_begin("litmus", 300);
    printf("seed %llu\n", (unsigned long long)SEED);
    for (way_t way = 0; way < WAYS; way++)
        for (int n = 2; n <= 4; n += 2) {
            const arg_t arg = {way, way == WAY_NODES ? 10 : way == WAY_MESSAGES ? 4 : 1};
            way_begin(way);
            printf("%s, %d ranks\n", way_name(way), n);
            bad += test_run(way_kind(way), n, 100, body, (void *)(uintptr_t)&arg);
        }
    return bad != 0;
}
