/* Programs in which all ranks call the same, each in its own manner: no signature may differ, and all results are
 * right.
 *
 * Every rank draws the calls from the seed, and how it makes them from a seed of its own: what only moves bytes in
 * types of its own, premulsum with its own scalar and its own number of operators, in place or not, one by one, in
 * groups or in groups that are waited for later, with calls in between that are refused, and splits and messages among
 * them.
 *
 *     alike [--count N] [--seed S]
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"
#include "util/operation.h"

#define BATCHES 12
#define BATCH_MOST 5

typedef enum { MOVE, SCALED, CASE } kind_t;

/* A call, the same on all ranks. */
typedef struct item {
    kind_t kind;
    do_case_t c;  /* CASE; MOVE: what and root */
    size_t bytes; /* MOVE: of a block, a multiple of 8; SCALED: elements */
    uint64_t seed;
} item_t;

/* One that is under way on this rank. */
typedef struct call {
    const item_t *item;
    do_call_t made;
    char *in, *out;
    rondo_op_t op;
    bool has_op;
} call_t;

static uint64_t seed = 52001;
static int nodes = 1;
static const char *proto = "";

/* ---- moves, in a type of the rank's own ---- */

static char byte_of(const item_t *item, int from, int to, size_t at)
{
    return (char)(test_mix(item->seed + (uint64_t)from * 1000003u + (uint64_t)to * 1009u) + at * 31u);
}

static bool to_each(do_what_t what)
{
    return what == DO_ALLTOALL || what == DO_SCATTER;
}

/* The block that `from` has for `to`, or for all. */
static void fill_block(const item_t *item, int from, int to, char *block)
{
    for (size_t i = 0; i < item->bytes; i++)
        block[i] = byte_of(item, from, to_each(item->c.what) ? to : 0, i);
}

static rondo_result_t post_move(test_rank_t *t, call_t *call, rondo_comm_t comm, rondo_type_t type)
{
    const item_t *item = call->item;
    size_t count = item->bytes / ref_size(type);
    int root = item->c.root;

    for (int to = 0; to < (to_each(item->c.what) ? t->nranks : 1); to++)
        fill_block(item, t->rank, to, call->in + (size_t)to * item->bytes);
    switch (item->c.what) {
    case DO_BROADCAST:
        return rondo_broadcast(call->in, call->out, count, type, root, comm, NULL);
    case DO_ALLGATHER:
        return rondo_allgather(call->in, call->out, count, type, comm, NULL);
    case DO_GATHER:
        return rondo_gather(call->in, call->out, count, type, root, comm, NULL);
    case DO_SCATTER:
        return rondo_scatter(call->in, call->out, count, type, root, comm, NULL);
    default:
        return rondo_alltoall(call->in, call->out, count, type, comm, NULL);
    }
}

static void verify_move(test_rank_t *t, const call_t *call)
{
    const item_t *item = call->item;
    do_what_t what = item->c.what;
    bool one = what == DO_BROADCAST || what == DO_SCATTER;

    if (what == DO_GATHER && t->rank != item->c.root)
        return;
    for (int b = 0; b < (one ? 1 : t->nranks); b++)
        for (size_t i = 0; i < item->bytes; i++)
            if (call->out[(size_t)b * item->bytes + i] !=
                byte_of(item, one ? item->c.root : b, to_each(what) ? t->rank : 0, i)) {
                test_fail(t, "%s of %zu bytes: byte %zu of block %d is wrong", do_name(what), item->bytes, i, b);
                return;
            }
}

/* ---- premulsum ---- */

static float scalar_of(const item_t *item, int rank)
{
    return (float)(1 + test_mix(item->seed + (uint64_t)rank) % 4);
}

static rondo_result_t post_scaled(test_rank_t *t, call_t *call, rondo_comm_t comm)
{
    float scalar = scalar_of(call->item, t->rank), *in = (float *)(void *)call->in;

    for (size_t i = 0; i < call->item->bytes; i++)
        in[i] = (float)((i + (size_t)t->rank) % 7);
    TEST_OK(t, comm, rondo_op_create_premulsum(&call->op, &scalar, RONDO_FLOAT32, 0, comm));
    call->has_op = true;
    return rondo_allreduce(in, call->out, call->item->bytes, RONDO_FLOAT32, call->op, comm, NULL);
}

static void verify_scaled(test_rank_t *t, const call_t *call)
{
    const float *out = (const float *)(const void *)call->out;

    for (size_t i = 0; i < call->item->bytes; i++) {
        float want = 0;
        for (int r = 0; r < t->nranks; r++)
            want += scalar_of(call->item, r) * (float)((i + (size_t)r) % 7);
        if (out[i] != want) {
            test_fail(t, "premulsum of %zu elements: element %zu is wrong", call->item->bytes, i);
            return;
        }
    }
}

/* ---- any call ---- */

static rondo_result_t post(test_rank_t *t, call_t *call, const item_t *item, rondo_comm_t comm, uint64_t *own)
{
    static const rondo_type_t types[] = {RONDO_INT8, RONDO_FLOAT16, RONDO_FLOAT32, RONDO_INT64};
    size_t room = (item->kind == SCALED ? 4 * item->bytes : item->bytes * (size_t)t->nranks) + 64;

    memset(call, 0, sizeof *call);
    call->item = item;
    TEST_OK(t, comm, rondo_tag(item->seed % 3)); /* often the one before, or none */
    if (item->kind == CASE) {
        do_case_t c = item->c;
        c.in_place = do_has_in_place(c.what) && test_below(own, 2);
        if (do_prepare(&call->made, &c, t->rank, t->nranks))
            test_stop(t, "no memory");
        return do_post(&call->made, comm);
    }
    call->in = calloc(1, room);
    call->out = calloc(1, room);
    if (!call->in || !call->out)
        test_stop(t, "no memory");
    return item->kind == MOVE ? post_move(t, call, comm, types[test_below(own, 4)]) : post_scaled(t, call, comm);
}

static void verify(test_rank_t *t, call_t *call, rondo_comm_t comm)
{
    char text[512];

    if (call->item->kind == CASE && do_verify(&call->made, 1, text, sizeof text))
        test_fail(t, "%s", text);
    else if (call->item->kind == MOVE)
        verify_move(t, call);
    else if (call->item->kind == SCALED)
        verify_scaled(t, call);
    if (call->item->kind == CASE)
        do_release(&call->made);
    if (call->has_op)
        TEST_OK(t, comm, rondo_op_destroy(call->op, comm));
    free(call->in);
    free(call->out);
}

static item_t draw(uint64_t *random, int nranks)
{
    static const do_what_t moves[] = {DO_BROADCAST, DO_ALLGATHER, DO_GATHER, DO_SCATTER, DO_ALLTOALL};
    static const size_t most[] = {64, 4096, 100000};
    size_t count = 1 + test_below(random, (unsigned)most[test_below(random, 3)]);
    item_t item = {.kind = (kind_t)test_below(random, 3), .bytes = count, .seed = test_random(random)};

    if (item.kind == MOVE) {
        item.c.what = moves[test_below(random, sizeof moves / sizeof moves[0])];
        item.c.root = (int)test_below(random, (unsigned)nranks);
        item.bytes = (count + 7) / 8 * 8;
    } else if (item.kind == CASE) {
        item.c = (do_case_t){.what = (do_what_t)test_below(random, DO_NUM),
                             .type = RONDO_INT32,
                             .op = RONDO_SUM,
                             .count = count / 4 + 1,
                             .skew = (int)test_below(random, 4),
                             .seed = item.seed};
        item.c.data = do_reduces(item.c.what) ? REF_EXACT : REF_BYTES;
        item.c.root = do_rooted(item.c.what)    ? (int)test_below(random, (unsigned)nranks)
                      : item.c.what == DO_SHIFT ? 1
                                                : 0;
        item.c.skew = do_has_counts(item.c.what) ? item.c.skew : 0;
    }
    return item;
}

/* Makes the calls of a batch in this rank's own manner. */
static void batch(test_rank_t *t, rondo_comm_t comm, const item_t *items, int n, uint64_t *own)
{
    call_t calls[BATCH_MOST];
    rondo_request_t request = NULL;
    int how = (int)test_below(own, 3);

    for (int i = 0; how == 0 && i < n; i++) {
        TEST_OK(t, comm, post(t, &calls[i], &items[i], comm, own));
        if (test_below(own, 4) == 0)
            TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, rondo_broadcast(own, own, 1, RONDO_INT8, -1, comm, NULL));
    }
    if (how) {
        TEST_OK(t, comm, rondo_group_start());
        for (int i = 0; i < n; i++)
            TEST_OK(t, comm, post(t, &calls[i], &items[i], comm, own));
        if (how == 1) {
            TEST_OK(t, comm, rondo_group_end());
        } else {
            TEST_OK(t, comm, rondo_group_submit(&request));
            TEST_OK(t, comm, rondo_request_wait(&request));
        }
    }
    for (int i = 0; i < n; i++)
        verify(t, &calls[i], comm);
}

static void split(test_rank_t *t, rondo_comm_t comm)
{
    int32_t one = 1, sum = 0;
    rondo_comm_t half = NULL;
    int size = 0;

    TEST_OK(t, comm, rondo_comm_split(comm, t->rank % 2, 0, &half, NULL));
    if (!half)
        return;
    TEST_OK(t, half, rondo_comm_size(half, &size));
    for (int i = 0; i < 3; i++)
        TEST_OK(t, half, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, half, NULL));
    TEST_TRUE(t, sum == size);
    TEST_OK(t, half, rondo_comm_destroy(half));
}

static void body(test_rank_t *t, void *arg)
{
    uint64_t random = seed, own = seed * 1000 + 1 + (uint64_t)t->rank;
    rondo_comm_t comm = test_comm_on(t, nodes);
    float scalar = 1;
    rondo_op_t op;

    (void)arg;
    if (!comm)
        return;
    for (unsigned i = test_below(&own, 3); i; i--)
        TEST_OK(t, comm, rondo_op_create_premulsum(&op, &scalar, RONDO_FLOAT32, 0, comm));
    for (int b = 0; b < BATCHES; b++) {
        item_t items[BATCH_MOST];
        int n = 1 + (int)test_below(&random, BATCH_MOST);
        for (int i = 0; i < n; i++)
            items[i] = i && test_below(&random, 3) == 0 ? items[i - 1] : draw(&random, t->nranks);
        test_note(t, "batch %d", b);
        batch(t, comm, items, n, &own);
        if (test_below(&random, 6) == 0)
            split(t, comm);
    }
    TEST_OK(t, comm, rondo_comm_destroy(comm));
}

int main(int argc, char **argv)
{
    static const char *const protos[] = {"", "simple"};
    int count = 40, bad = 0;

    test_begin("alike", 600);
    if (!test_trials(argc, argv, &seed, &count))
        return 2;
    printf("alike: %d programs from seed %llu\n", count, (unsigned long long)seed);
    for (int i = 0; i < count; i++, seed++) {
        int nranks = 2 + (int)(test_mix(seed) % 4);
        nodes = 1 + (i % 4 == 0);
        proto = nodes == 1 ? protos[test_mix(seed + 1) % 2] : "";
        setenv("RONDO_PROTO", proto, 1);
        setenv("RONDO_CMA_MIN", "4096", 1);
        unsetenv("RONDO_HOSTID");
        int now = test_run(nodes == 1 && i % 3 == 0 ? TEST_THREADS : TEST_PROCESSES, nranks, 60, body, NULL);
        if (now)
            printf("alike: seed %llu, %d ranks, %d nodes, RONDO_PROTO='%s'\n", (unsigned long long)seed, nranks, nodes,
                   proto);
        bad += now != 0;
    }
    printf("alike: %d of %d programs were wrong\n", bad, count);
    return bad != 0;
}
