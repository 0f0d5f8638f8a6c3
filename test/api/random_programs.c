/* Random programs: operations one by one and in groups, on two communicators whose ranks run in opposite order, with
 * messages in any order between them, ended by the group's end or by a request; all against the reference.
 *
 *   random_programs [--seed S] [--count N] [--ranks N]     N programs from seeds S, S+1, ...
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"
#include "util/messages.h"
#include "util/operation.h"

#define STEPS 30
#define MOST_CALLS 5
#define MOST_MESSAGES 24

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm[2];
    int rank[2];     /* this rank's number in each */
    uint64_t random; /* the same on all ranks */
} state_t;

typedef enum { ALONE, GROUP, NESTED, SUBMIT_WAIT, SUBMIT_TEST, NUM_WAYS } path_t;

static size_t draw_count(uint64_t *random)
{
    switch (test_below(random, 8)) {
    case 0:
        return 0;
    case 1:
        return test_below(random, 60000);
    case 2:
    case 3:
        return test_below(random, 5000);
    default:
        return test_below(random, 64);
    }
}

static void draw_case(state_t *s, do_case_t *c)
{
    uint64_t *random = &s->random;
    unsigned n = (unsigned)s->t->nranks;

    memset(c, 0, sizeof *c);
    c->what = (do_what_t)test_below(random, DO_NUM);
    do {
        c->type = (rondo_type_t)test_below(random, RONDO_NUM_TYPES);
        c->op = (rondo_op_t)test_below(random, RONDO_NUM_OPS);
    } while (do_reduces(c->what) && !ref_valid(c->type, c->op));
    c->data = !do_reduces(c->what) ? REF_BYTES : test_below(random, 2) ? REF_EXACT : REF_ROUNDING;
    if (c->data == REF_ROUNDING && (!ref_is_float(c->type) || c->op == RONDO_MIN || c->op == RONDO_MAX))
        c->data = ref_is_float(c->type) ? REF_SPECIAL : REF_EXACT;
    c->count = draw_count(random);
    c->root = (int)test_below(random, n);
    c->in_place = do_has_in_place(c->what) && test_below(random, 3) == 0;
    c->send_shift = test_below(random, 3) ? 0 : (int)test_below(random, 17);
    c->recv_shift = test_below(random, 3) ? 0 : (int)test_below(random, 17);
    c->skew = do_has_counts(c->what) && test_below(random, 3) ? (int)test_below(random, 1000) : 0;
    c->seed = test_random(random) >> 32;
}

/* Work of the user's own between submitting and asking: the operation must not depend on being asked at once. */
static void compute(uint64_t amount)
{
    volatile uint64_t x = amount;
    int i;

    for (i = 0; i < 2000; i++)
        x = test_mix(x);
}

static rondo_result_t finish_group(state_t *s, path_t way, uint64_t mine)
{
    rondo_request_t request = NULL;
    rondo_result_t result;
    int done = 0;

    if (way == GROUP || way == NESTED)
        return rondo_group_end();
    result = rondo_group_submit(&request);
    if (result != RONDO_SUCCESS && result != RONDO_IN_PROGRESS)
        return result;
    test_note(s->t, "a group, submitted");
    compute(mine);
    if (way == SUBMIT_WAIT)
        return rondo_request_wait(&request);
    while (!done) {
        result = rondo_request_test(&request, &done);
        if (result != RONDO_SUCCESS && result != RONDO_IN_PROGRESS)
            return result;
        if (!done)
            compute(mine);
    }
    return RONDO_SUCCESS;
}

static void post_calls(state_t *s, do_call_t *call, const int *on, int ncalls, path_t way)
{
    int i;

    for (i = 0; i < ncalls; i++) {
        if (way == NESTED)
            TEST_OK(s->t, NULL, rondo_group_start());
        TEST_OK(s->t, s->comm[on[i]], do_post(&call[i], s->comm[on[i]]));
        if (way == NESTED)
            TEST_OK(s->t, NULL, rondo_group_end());
    }
}

static void run_group(state_t *s, path_t way, int step)
{
    test_rank_t *t = s->t;
    do_call_t call[MOST_CALLS];
    int on[MOST_CALLS], ncalls = (int)test_below(&s->random, MOST_CALLS + 1), i;
    int nmessages = test_below(&s->random, 2) ? (int)test_below(&s->random, MOST_MESSAGES) : 0;
    int messages_on = (int)test_below(&s->random, 2), messages_first = (int)test_below(&s->random, 2);
    uint64_t mine = test_mix(s->random + (uint64_t)t->rank);
    msg_t list[MOST_MESSAGES];
    msg_set_t set;
    char text[256];
    do_case_t c;

    for (i = 0; i < ncalls; i++) {
        draw_case(s, &c);
        on[i] = (int)test_below(&s->random, 2);
        if (do_prepare(&call[i], &c, s->rank[on[i]], t->nranks) != 0)
            test_stop(t, "no memory");
    }
    msg_draw(list, nmessages, t->nranks, 20000, &s->random);
    if (msg_prepare(&set, list, nmessages, s->rank[messages_on], t->nranks) != 0)
        test_stop(t, "no memory");
    test_note(t, "step %d, way %d, group of %d calls, %d messages", step, (int)way, ncalls, nmessages);
    TEST_OK(t, NULL, rondo_group_start());
    if (messages_first)
        TEST_OK(t, s->comm[messages_on], msg_post(&set, s->comm[messages_on], mine));
    post_calls(s, call, on, ncalls, way);
    if (!messages_first)
        TEST_OK(t, s->comm[messages_on], msg_post(&set, s->comm[messages_on], mine));
    if (!TEST_OK(t, s->comm[0], finish_group(s, way, mine)))
        test_stop(t, "cannot go on");
    for (i = 0; i < ncalls; i++) {
        if (do_verify(&call[i], 1, text, sizeof text) != 0) {
            char what[200];

            do_text(&call[i].c, what, sizeof what);
            test_fail(t, "call %d on communicator %d, %s: %s", i, on[i], what, text);
        }
        do_release(&call[i]);
    }
    if (msg_verify(&set, text, sizeof text) != 0)
        test_fail(t, "%s", text);
    msg_release(&set);
}

static void run_alone(state_t *s, int step)
{
    test_rank_t *t = s->t;
    int on = (int)test_below(&s->random, 2);
    char text[256];
    do_call_t call;
    do_case_t c;

    draw_case(s, &c);
    do_text(&c, text, sizeof text);
    test_note(t, "step %d, communicator %d: %s", step, on, text);
    if (do_prepare(&call, &c, s->rank[on], t->nranks) != 0)
        test_stop(t, "no memory");
    if (!TEST_OK(t, s->comm[on], do_post(&call, s->comm[on])))
        test_stop(t, "cannot go on");
    do_check(t, &call, text);
    do_release(&call);
}

static void body(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    state_t s = {t, {NULL, NULL}, {t->rank, t->nranks - 1 - t->rank}, *(uint64_t *)arg};
    rondo_unique_id_t id;
    int step;

    config.device = RONDO_DEVICE_HOST;
    s.comm[0] = test_comm(t, &config);
    test_id(t, &id);
    if (!TEST_OK(t, NULL, rondo_comm_create(&s.comm[1], t->nranks, &id, s.rank[1], &config)))
        test_stop(t, "cannot go on");
    for (step = 0; step < STEPS && test_failures(t) < 20; step++) {
        path_t way = test_below(&s.random, 2) ? ALONE : (path_t)(1 + test_below(&s.random, NUM_WAYS - 1));

        if (way == ALONE)
            run_alone(&s, step);
        else
            run_group(&s, way, step);
    }
    test_note(t, "destroy");
    TEST_OK(t, NULL, rondo_comm_destroy(s.comm[1]));
    TEST_OK(t, NULL, rondo_comm_destroy(s.comm[0]));
}

/* Half of the programs run with connections of odd sizes, so that slots, slices and protocols meet in ways that the
 * defaults of this machine do not show. */
static void draw_tunables(uint64_t random, char *text, size_t size)
{
    static const char *const names[] = {"RONDO_SLOTS",   "RONDO_SLOT_BYTES", "RONDO_SLICE_BYTES", "RONDO_LL_MAX",
                                        "RONDO_CMA_MIN", "RONDO_CMA",        "RONDO_SPIN"};
    static const char *const stream[] = {"never", "always", "adapt"};
    int values[7], usual = (int)test_below(&random, 2), i;

    values[0] = 1 << test_below(&random, 4);
    values[1] = 512 << test_below(&random, 6);
    values[2] = 192 << test_below(&random, 3);
    values[3] = 64 << test_below(&random, 5);
    values[4] = 2048 << test_below(&random, 6);
    values[5] = (int)test_below(&random, 2);
    values[6] = test_below(&random, 2) ? 0 : 1000;
    setenv("RONDO_NT_STORE", stream[test_below(&random, 3)], 1);
    snprintf(text, size, "RONDO_NT_STORE=%s ", getenv("RONDO_NT_STORE"));
    for (i = 0; i < 7; i++) {
        char value[16];

        snprintf(value, sizeof value, "%d", values[i]);
        unsetenv(names[i]);
        if (usual || test_below(&random, 3) == 0)
            continue;
        setenv(names[i], value, 1);
        snprintf(text + strlen(text), size - strlen(text), "%s=%s ", names[i], value);
    }
}

int main(int argc, char **argv)
{
    static const struct option table[] = {
        {"seed", 1, NULL, 's'}, {"count", 1, NULL, 'c'}, {"ranks", 1, NULL, 'n'}, {NULL, 0, NULL, 0}};
    int option, count = 64, ranks = 0, i, bad = 0;
    uint64_t seed = 1;
    char tunables[256];

    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (option == 's')
            seed = strtoull(optarg, NULL, 0);
        else if (option == 'c')
            count = atoi(optarg);
        else if (option == 'n')
            ranks = atoi(optarg);
        else
            return 2;
    }
    test_begin("random_programs", 60 + count);
    for (i = 0; i < count && bad == 0; i++) {
        uint64_t program = seed + (uint64_t)i, random = test_mix(program);
        test_kind_t kind = random & 1 ? TEST_PROCESSES : TEST_THREADS;
        int nranks = ranks ? ranks : 1 + (int)(random >> 8 & 7);

        draw_tunables(test_mix(random), tunables, sizeof tunables);
        bad = test_run(kind, nranks, 40, body, &random);
        if (bad)
            printf("random_programs: WRONG: --seed %llu --count 1: %d %s %s\n", (unsigned long long)program, nranks,
                   test_kind_name(kind), tunables);
    }
    if (!bad)
        printf("random_programs: %d programs from seed %llu: right\n", count, (unsigned long long)seed);
    return bad != 0;
}
