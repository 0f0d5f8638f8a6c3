/* Ranks that do not call the same are found by the signature that goes along with every message, without RONDO_CHECK.
 *
 * A trial makes some equal calls, then one rank does something else: another collective, operator, type, count or root,
 * a call too few, one too many, or two in the other order. What it is and at which number is written down before
 * anybody acts. Every rank must get RONDO_ERR_MISMATCH and one and the same sentence, with this number, the field, both
 * calls, and the rank that is to blame; no call may succeed with a wrong result.
 *
 *     differ [--count N] [--seed S] [--way NAME] [--ranks N]
 *
 * Of 2 to 5 ranks, and one trial in ten of up to 16.
 *
 * Where a rank comes so late that nobody can know the larger part, both sides are named in place of the blame. That
 * must stay rare, or it was no busy machine. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util/harness.h"
#include "util/operation.h"

#define CALLS_MOST 24
#define TAIL 8

typedef enum { COLLECTIVE, OPERATOR, TYPE, COUNT, ROOT, SKIPPED, EXTRA, ORDER, NUM_FIELDS } field_t;

static const char *const field_names[NUM_FIELDS] = {"collective", "operator", "type",  "count",
                                                    "root",       "skipped",  "extra", "order"};

static const struct {
    const char *name, *proto;
    size_t most; /* elements */
    int nodes;
} ways[] = {
    {"ll", "ll", 100, 1},      {"short", "", 16, 1},      {"board", "board", 30000, 1}, {"slots", "simple", 30000, 1},
    {"pull", "cma", 60000, 1}, {"chosen", "", 200000, 1}, {"nodes", "", 3000, 2},
};
#define WAYS ((int)(sizeof ways / sizeof ways[0]))
#define SLOTS 3

/* What a trial is; written before any rank acts. */
typedef struct trial {
    uint64_t seed;
    int way, nranks, odd, group;
    field_t field;
    int prefix;                     /* equal calls */
    do_case_t calls[2][CALLS_MOST]; /* of the others, of the odd one */
    int ncalls[2];
    uint64_t number; /* of the first call that differs */
    const char *in;  /* the field of it that the sentence must name */
    char said[2][160];
} trial_t;

/* What became of it; each rank writes its own. */
typedef struct outcome {
    rondo_result_t result;
    int came;
    char text[1024];
} outcome_t;

static struct shared {
    trial_t trial;
    outcome_t of[TEST_MAX_RANKS];
} * shared;

static int undecided;

/* ---- drawing ---- */

static int serves(int way, do_what_t what)
{
    static const unsigned by_boards =
        1u << DO_ALLREDUCE | 1u << DO_REDUCE_SCATTER | 1u << DO_BROADCAST | 1u << DO_ALLGATHER | 1u << DO_SCATTER;

    return strcmp(ways[way].proto, "board") != 0 || by_boards >> what & 1;
}

static do_case_t draw(uint64_t *random, const trial_t *t, int reduces, int rooted)
{
    static const do_what_t all[] = {DO_ALLREDUCE, DO_REDUCE,  DO_REDUCE_SCATTER, DO_BROADCAST, DO_ALLGATHER,
                                    DO_GATHER,    DO_SCATTER, DO_ALLTOALL,       DO_BARRIER};
    do_case_t c = {.seed = test_random(random)};

    do
        c.what = all[test_below(random, sizeof all / sizeof all[0])];
    while ((reduces && !do_reduces(c.what)) || (rooted && !do_rooted(c.what)) || !serves(t->way, c.what));
    if (c.what == DO_BARRIER)
        return (do_case_t){.what = DO_BARRIER, .type = RONDO_UINT8};
    c.type = test_below(random, 2) ? RONDO_INT32 : RONDO_FLOAT32;
    c.op = do_reduces(c.what) && test_below(random, 2) ? RONDO_MAX : RONDO_SUM;
    c.data = do_reduces(c.what) ? REF_EXACT : REF_BYTES;
    c.count = 1 + test_below(random, (unsigned)ways[t->way].most);
    c.root = do_rooted(c.what) ? (int)test_below(random, (unsigned)t->nranks) : 0;
    return c;
}

static const char *field_of(const do_case_t *a, const do_case_t *b)
{
    if (a->what != b->what)
        return "operation";
    if (a->count != b->count)
        return do_reduces(a->what) || a->type == b->type                      ? "count"
               : a->count * ref_size(a->type) != b->count * ref_size(b->type) ? "bytes"
                                                                              : NULL;
    if (do_reduces(a->what) && a->type != b->type)
        return "type";
    if (do_reduces(a->what) && a->op != b->op)
        return "op";
    return a->root != b->root ? "root" : NULL;
}

static do_case_t draw_unlike(uint64_t *random, const trial_t *t, const do_case_t *other)
{
    do_case_t c;

    do
        c = draw(random, t, 0, 0);
    while (!field_of(&c, other));
    return c;
}

/* The odd rank's call in place of `c`. */
static do_case_t change(uint64_t *random, const trial_t *t, const do_case_t *c)
{
    do_case_t odd = *c;

    if (t->field == COLLECTIVE) {
        do
            odd = draw(random, t, 0, 0);
        while (odd.what == c->what);
        if (odd.what != DO_BARRIER && c->what != DO_BARRIER && ref_size(c->type) == ref_size(odd.type))
            odd.count = c->count;
    } else if (t->field == OPERATOR) {
        odd.op = c->op == RONDO_MAX ? RONDO_SUM : RONDO_MAX;
    } else if (t->field == TYPE) {
        odd.type = c->type == RONDO_INT32 ? RONDO_FLOAT32 : RONDO_INT32;
    } else if (t->field == COUNT) {
        odd.count += test_below(random, 2) ? 1 : c->count;
    } else {
        odd.root = (c->root + 1) % t->nranks;
    }
    return odd;
}

static void say(char *text, size_t size, const do_case_t *c, uint64_t number)
{
    int n = snprintf(text, size, "%s number %llu", do_name(c->what), (unsigned long long)number);

    if (c->what != DO_BARRIER)
        n += snprintf(text + n, size - (size_t)n, ": count %zu, type %s", c->count, ref_type_name(c->type));
    if (do_reduces(c->what))
        n += snprintf(text + n, size - (size_t)n, ", op %s", ref_op_name(c->op));
    if (do_rooted(c->what))
        snprintf(text + n, size - (size_t)n, ", root %d", c->root);
}

static void plant(uint64_t *random, trial_t *t)
{
    do_case_t *others = t->calls[0] + t->prefix, *odd = t->calls[1] + t->prefix;
    int n[2] = {1, 1};

    do
        others[0] = draw(random, t, t->field == OPERATOR || t->field == TYPE, t->field == ROOT);
    while (t->field == COUNT && others[0].what == DO_BARRIER);
    do_case_t next = draw_unlike(random, t, &others[0]);
    if (t->field == SKIPPED) {
        odd[0] = others[1] = next;
        n[0] = 2;
    } else if (t->field == EXTRA) {
        odd[0] = next;
        odd[1] = others[0];
        n[1] = 2;
    } else if (t->field == ORDER) {
        odd[1] = others[0];
        odd[0] = others[1] = next;
        n[0] = n[1] = 2;
    } else {
        odd[0] = change(random, t, &others[0]);
    }
    t->number = (uint64_t)t->prefix + 1;
    t->in = field_of(&others[0], &odd[0]);
    say(t->said[0], sizeof t->said[0], &others[0], t->number);
    say(t->said[1], sizeof t->said[1], &odd[0], t->number);
    for (int side = 0; side < 2; side++)
        t->ncalls[side] = t->prefix + n[side];
}

static void draw_trial(trial_t *t, uint64_t seed, int way, int ranks)
{
    uint64_t random = seed;

    memset(t, 0, sizeof *t);
    t->seed = seed;
    t->way = way >= 0 ? way : (int)test_below(&random, WAYS);
    t->nranks = 2 + (int)test_below(&random, 4);
    if (ranks > 0)
        t->nranks = ranks;
    else if (test_below(&random, 10) == 0)
        t->nranks = 6 + (int)test_below(&random, 11);
    if (t->nranks > 5 &&
        ways[t->way].most > ways[SLOTS].most) /* long messages of so many take long on few cores, and */
        t->way = SLOTS;                       /* cma cannot serve all operations of them */
    t->odd = (int)test_below(&random, (unsigned)t->nranks);
    t->group = (int)test_below(&random, 3) == 0;
    t->field = (field_t)test_below(&random, NUM_FIELDS);
    t->prefix = (int)test_below(&random, 10);
    for (int i = 0; i < t->prefix; i++)
        t->calls[0][i] = t->calls[1][i] =
            i && test_below(&random, 3) ? t->calls[0][i - 1] : draw(&random, t, 0, 0); /* repetitions, too */
    plant(&random, t);
}

/* ---- acting ---- */

static rondo_result_t act(test_rank_t *rank, rondo_comm_t comm, const do_case_t *c)
{
    char text[512];
    do_call_t call;

    if (do_prepare(&call, c, rank->rank, rank->nranks))
        test_stop(rank, "no memory");
    rondo_result_t result = do_post(&call, comm);
    if (result == RONDO_SUCCESS && do_verify(&call, 1, text, sizeof text))
        test_fail(rank, "a wrong result was delivered: %s", text);
    do_release(&call);
    return result;
}

/* All that differs in one group. */
static rondo_result_t act_grouped(test_rank_t *rank, rondo_comm_t comm, const do_case_t *c, int n)
{
    do_call_t calls[CALLS_MOST];
    char text[512];

    for (int i = 0; i < n; i++)
        if (do_prepare(&calls[i], &c[i], rank->rank, rank->nranks))
            test_stop(rank, "no memory");
    TEST_OK(rank, comm, rondo_group_start());
    rondo_result_t result = RONDO_SUCCESS; /* another rank may have found it already */
    for (int i = 0; i < n && result == RONDO_SUCCESS; i++)
        result = do_post(&calls[i], comm);
    result = rondo_group_end();
    for (int i = 0; i < n; i++) {
        if (result == RONDO_SUCCESS && do_verify(&calls[i], 1, text, sizeof text))
            test_fail(rank, "a wrong result was delivered: %s", text);
        do_release(&calls[i]);
    }
    return result;
}

static void body(test_rank_t *rank, void *arg)
{
    const trial_t *t = &shared->trial;
    int side = rank->rank == t->odd;
    const do_case_t tail = {.what = DO_ALLREDUCE, .type = RONDO_INT32, .op = RONDO_SUM, .count = 1};
    outcome_t *out = &shared->of[rank->rank];
    rondo_comm_t comm = test_comm_on(rank, ways[t->way].nodes);
    rondo_result_t result = RONDO_SUCCESS;

    (void)arg;
    if (!comm)
        return;
    for (int i = 0; i < t->prefix; i++) {
        test_note(rank, "equal call %d", i + 1);
        TEST_OK(rank, comm, act(rank, comm, &t->calls[side][i]));
    }
    test_barrier(rank);
    test_note(rank, "what differs");
    if (t->group)
        result = act_grouped(rank, comm, t->calls[side] + t->prefix, t->ncalls[side] - t->prefix);
    for (int i = t->prefix; !t->group && i < t->ncalls[side] && result == RONDO_SUCCESS; i++)
        result = act(rank, comm, &t->calls[side][i]);
    for (int i = 0; i < TAIL && result == RONDO_SUCCESS; i++) { /* who only sends may hear of it later */
        test_note(rank, "call %d after what differs", i);
        result = act(rank, comm, &tail);
    }
    out->came = 1;
    out->result = result;
    snprintf(out->text, sizeof out->text, "%s", rondo_last_error(comm));
    test_barrier(rank); /* nobody ends before all have said it */
    rondo_comm_destroy(comm);
}

/* ---- judging ---- */

static int wrong(const trial_t *t, int rank, const char *why)
{
    printf("differ: WRONG: rank %d: %s\n    want: they differ in %s, %s of rank %d; %s of the others\n    got %s: %s\n",
           rank, why, t->in, t->said[1], t->odd, t->said[0], rondo_result_string(shared->of[rank].result),
           shared->of[rank].text);
    return 1;
}

static int judge_rank(const trial_t *t, int rank)
{
    const char *text = shared->of[rank].text, *second;
    char in[64], both[2][200];

    snprintf(in, sizeof in, "they differ in %s. rank ", t->in);
    if (shared->of[rank].result != RONDO_ERR_MISMATCH)
        return wrong(t, rank, "not RONDO_ERR_MISMATCH");
    if (strcmp(text, shared->of[0].text) != 0)
        return wrong(t, rank, "not what rank 0 says");
    if (!strstr(text, in))
        return wrong(t, rank, "another field");
    if (!(second = strstr(text, "; rank ")))
        return wrong(t, rank, "one rank");
    snprintf(both[0], sizeof both[0], "calls %s", t->said[0]);
    snprintf(both[1], sizeof both[1], "calls %s", t->said[1]);
    if (!strstr(text, both[0]) || !strstr(text, both[1]))
        return wrong(t, rank, "other values");
    snprintf(in, sizeof in, "rank %d (", t->odd);
    if (!strstr(text, in))
        return wrong(t, rank, "the odd one is not named");
    bool blames = strstr(text, ", as ") != NULL;
    if (t->nranks == 2 || !blames)
        return blames ? wrong(t, rank, "blame of one of two") : 0;
    if (!strstr(second, in) || !strstr(second, both[1]))
        return wrong(t, rank, "blames another rank");
    return 0;
}

static int judge(const trial_t *t)
{
    int bad = 0;

    for (int r = 0; r < t->nranks; r++)
        bad |= judge_rank(t, r);
    undecided += !bad && t->nranks > 2 && !strstr(shared->of[0].text, ", as ");
    return bad;
}

static int one(uint64_t seed, int way, int ranks)
{
    trial_t *t = &shared->trial;

    memset(shared, 0, sizeof *shared);
    draw_trial(t, seed, way, ranks);
    setenv("RONDO_PROTO", ways[t->way].proto, 1);
    unsetenv("RONDO_HOSTID");
    test_kind_t kind = ways[t->way].nodes == 1 && seed % 4 == 0 ? TEST_THREADS : TEST_PROCESSES;
    int bad = test_run(kind, t->nranks, 60, body, NULL);
    if (!bad && shared->of[0].came)
        bad = judge(t);
    if (bad)
        printf("differ: seed %llu: %s by %s, %d ranks, odd %d, prefix %d%s%s\n", (unsigned long long)seed,
               field_names[t->field], ways[t->way].name, t->nranks, t->odd, t->prefix, t->group ? ", in a group" : "",
               kind == TEST_THREADS ? ", threads" : "");
    return bad;
}

int main(int argc, char **argv)
{
    uint64_t seed = 32001;
    int count = 60, way = -1, ranks = 0, bad = 0;

    test_begin("differ", 600);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--count") == 0)
            count = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--ranks") == 0)
            ranks = atoi(argv[i + 1]);
        for (int w = 0; w < WAYS && strcmp(argv[i], "--way") == 0; w++)
            if (strcmp(ways[w].name, argv[i + 1]) == 0)
                way = w;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    printf("differ: %d trials from seed %llu\n", count, (unsigned long long)seed);
    for (int i = 0; i < count; i++)
        bad += one(seed + (uint64_t)i, way, ranks) != 0;
    printf("differ: %d of %d wrong; %d named both sides of more than two ranks\n", bad, count, undecided);
    return bad != 0 || undecided > 2 + count / 20;
}
