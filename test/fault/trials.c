/* Trials: ranks run random operations without end, and at a random moment something happens to one of them.
 *
 *   kill   SIGKILL: every other rank's pending or next call returns RONDO_ERR_REMOTE and names the rank
 *   stop   SIGSTOP: RONDO_ERR_TIMEOUT at the set time; the stopped one, let go again, gets an error too
 *   late   it comes late, or is stopped for a moment shorter than the timeout: nothing but time is lost
 *   abort  another thread of it calls rondo_comm_abort: its own call ends with RONDO_ERR_ABORTED, the others' as in
 * kill birth  SIGKILL while the communicator is being made: nobody hangs
 *
 * After kill, stop and abort the others shrink, and the smaller communicator's allreduce is right.
 * Every operation that succeeds is verified. Hangs, wrong results, crashes and leftovers must all be 0; how long it
 * took to notice is printed and not judged.
 *
 *   trials [--count N] [--seed S] [--kinds kill,stop,late,abort,birth] [--nodes N] [--ranks N]
 *          [--verbose]        N nodes are played, ranks take turns on them; 2 to N ranks (6)
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../harness.h"
#include "../operation.h"

#define LIMIT_S 120 /* what counts as a hang, on a machine that does much else */
#define CREATE_MS "60000"
#define BIRTH_MS "4000" /* how long ranks wait for one that was killed before it came */
#define STOP_TIMEOUT_MS 400
#define MOST_TRIALS 100000

typedef enum { KILL, STOP, LATE, ABORT, BIRTH, NUM_KINDS } kind_t;
static const char *const kind_names[NUM_KINDS] = {"kill", "stop", "late", "abort", "birth"};

typedef struct {
    kind_t kind;
    uint64_t seed;
    int nranks, nnodes, victim, delay_us, resume_early, operations;
} plan_t;

/* Between the parent and the ranks. */
typedef struct {
    _Atomic int ready;               /* ranks that have their communicator */
    _Atomic int noticed;             /* ranks that have got their error */
    _Atomic int finished;            /* ranks other than the victim that are through */
    _Atomic int64_t happened;        /* when, us; 0: not yet */
    int64_t took_us[TEST_MAX_RANKS]; /* from then to the error; -1: none */
    int64_t back_us[TEST_MAX_RANKS]; /* from the error to a right result of fewer ranks; -1: none */
} board_t;

typedef struct {
    plan_t plan;
    board_t *board;
    int64_t ready_at;
    int resumed;
} trial_t;

typedef struct {
    test_rank_t *t;
    trial_t *trial;
    rondo_comm_t comm;
    uint64_t random; /* the same on all ranks */
    int descriptors;
    _Atomic int inside, aborting;
} rank_t;

/* ---- what a rank does ---- */

static void draw_case(rank_t *r, do_case_t *c)
{
    uint64_t *random = &r->random;

    memset(c, 0, sizeof *c);
    c->what = (do_what_t)test_below(random, DO_NUM);
    do {
        c->type = (rondo_type_t)test_below(random, RONDO_NUM_TYPES);
        c->op = (rondo_op_t)test_below(random, RONDO_NUM_OPS);
    } while (do_reduces(c->what) && !ref_valid(c->type, c->op));
    c->data = do_reduces(c->what) ? REF_EXACT : REF_BYTES;
    c->count = test_below(random, 6) == 0 ? test_below(random, 100000) : test_below(random, 500);
    c->root = (int)test_below(random, (unsigned)r->t->nranks);
    c->in_place = do_has_in_place(c->what) && test_below(random, 3) == 0;
    c->skew = do_has_counts(c->what) ? (int)test_below(random, 1000) : 0;
    c->seed = test_random(random) >> 32;
}

static rondo_result_t post_group(rank_t *r, do_call_t *call, int ncalls, int submit)
{
    rondo_request_t request = NULL;
    rondo_result_t result = rondo_group_start(), end;
    int i, done = 0;

    for (i = 0; i < ncalls && result == RONDO_SUCCESS; i++)
        result = do_post(&call[i], r->comm);
    if (!submit || result != RONDO_SUCCESS) {
        end = rondo_group_end();
        return result != RONDO_SUCCESS ? result : end;
    }
    result = rondo_group_submit(&request);
    while (result == RONDO_SUCCESS && !done)
        result = rondo_request_test(&request, &done);
    return result;
}

static rondo_result_t one_step(rank_t *r)
{
    do_call_t call[3];
    int way = (int)test_below(&r->random, 6), ncalls = way >= 4 ? 3 : 1, i;
    unsigned pause = test_below(&r->random, 8) ? 0 : test_below(&r->random, 500);
    char text[256] = "a group", wrong[256];
    rondo_result_t result;
    do_case_t c;

    for (i = 0; i < ncalls; i++) {
        draw_case(r, &c);
        if (do_prepare(&call[i], &c, r->t->rank, r->t->nranks) != 0)
            test_stop(r->t, "no memory");
    }
    if (ncalls == 1)
        do_text(&c, text, sizeof text);
    test_note(r->t, "%s%s", text, way == 5 ? ", submitted" : "");
    if (pause)
        usleep(pause); /* trouble must be noticed between calls too */
    atomic_store(&r->inside, 1);
    if (atomic_load(&r->aborting))
        result = RONDO_ERR_ABORTED; /* the communicator may be gone */
    else
        result = ncalls == 1 ? do_post(call, r->comm) : post_group(r, call, ncalls, way == 5);
    atomic_store(&r->inside, 0);
    for (i = 0; i < ncalls; i++) {
        if (result == RONDO_SUCCESS && do_verify(&call[i], 1, wrong, sizeof wrong) != 0) {
            do_text(&call[i].c, text, sizeof text);
            test_fail(r->t, "wrong result: %s: %s", text, wrong);
        }
        do_release(&call[i]);
    }
    return result;
}

static void note_time(rank_t *r)
{
    int64_t happened = atomic_load(&r->trial->board->happened);

    r->trial->board->took_us[r->t->rank] = happened ? test_clock_us() - happened : -1;
    atomic_fetch_add(&r->trial->board->noticed, 1);
}

/* Which result the ranks other than the victim must get. */
static rondo_result_t wanted(kind_t kind)
{
    return kind == STOP ? RONDO_ERR_TIMEOUT : kind == LATE ? RONDO_SUCCESS : RONDO_ERR_REMOTE;
}

static void check_error(rank_t *r, rondo_result_t result)
{
    const plan_t *p = &r->trial->plan;
    rondo_result_t error = RONDO_SUCCESS;
    char word[32];

    snprintf(word, sizeof word, "rank %d", p->victim);
    if (!test_result(r->t, r->comm, result, wanted(p->kind), "the pending call"))
        return;
    if (p->kind != STOP && !strstr(rondo_last_error(r->comm), word))
        test_fail(r->t, "the sentence must name %s: \"%s\"", word, rondo_last_error(r->comm));
    if (strcmp(rondo_last_error(r->comm), rondo_last_error(NULL)) != 0)
        test_fail(r->t, "this thread's last error must be the communicator's, \"%s\": \"%s\"",
                  rondo_last_error(r->comm), rondo_last_error(NULL));
    TEST_OK(r->t, r->comm, rondo_comm_get_error(r->comm, &error));
    TEST_TRUE(r->t, error == wanted(p->kind));
    TEST_GIVES(r->t, r->comm, wanted(p->kind), rondo_barrier(r->comm, NULL));
}

/* The others go on without the victim. */
static void go_on(rank_t *r)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    int victim = r->trial->plan.victim, n = r->t->nranks - 1, size = 0, k;
    int32_t in[100], out[100];
    rondo_comm_t small = NULL;

    int64_t began = test_clock_us();

    test_note(r->t, "shrink without rank %d", victim);
    config.device = RONDO_DEVICE_HOST;
    if (!TEST_OK(r->t, r->comm, rondo_comm_shrink(r->comm, &victim, 1, &small, &config)))
        return;
    test_note(r->t, "allreduce after the shrink");
    TEST_OK(r->t, small, rondo_comm_size(small, &size));
    TEST_TRUE(r->t, size == n);
    for (k = 0; k < 100; k++)
        in[k] = k + 1;
    if (TEST_OK(r->t, small, rondo_allreduce(in, out, 100, RONDO_INT32, RONDO_SUM, small, NULL)))
        for (k = 0; k < 100 && out[k] == n * in[k];)
            k++;
    if (k < 100)
        test_fail(r->t, "wrong result after the shrink");
    r->trial->board->back_us[r->t->rank] = test_clock_us() - began;
    test_note(r->t, "destroy after the shrink");
    TEST_OK(r->t, NULL, rondo_comm_destroy(small));
}

static void check_leftovers(rank_t *r)
{
    int tries, descriptors = 0, threads = 0;

    for (tries = 0; tries < LIMIT_S * 50; tries++) {
        descriptors = test_count_entries("/proc/self/fd");
        threads = test_count_entries("/proc/self/task");
        if (descriptors <= r->descriptors && threads <= 1)
            return;
        usleep(10000);
    }
    test_fail(r->t, "leftovers: %d descriptors, %d at the start, and %d threads", descriptors, r->descriptors, threads);
}

/* An abort frees the communicator: who aborts sees to it that no further call begins. One that runs is ended by it. */
static void *abort_later(void *arg)
{
    rank_t *r = arg;
    board_t *board = r->trial->board;
    rondo_result_t result;
    int64_t began;

    usleep((unsigned)r->trial->plan.delay_us);
    atomic_store(&r->aborting, 1);
    if (atomic_load(&r->inside))
        usleep((unsigned)(r->trial->plan.seed % 300));
    began = test_clock_us();
    atomic_store(&board->happened, began);
    result = rondo_comm_abort(r->comm);
    board->took_us[r->t->rank] = test_clock_us() - began;
    if (result != RONDO_SUCCESS)
        test_fail(r->t, "rondo_comm_abort gave %s", rondo_result_string(result));
    return NULL;
}

static void be_victim(rank_t *r)
{
    const plan_t *p = &r->trial->plan;
    rondo_result_t result;
    pthread_t thread;

    /* Creation is over here; an abort before it is over everywhere is another trial (birth). */
    while (p->kind == ABORT && atomic_load(&r->trial->board->ready) < p->nranks)
        sched_yield();
    if (p->kind == ABORT && pthread_create(&thread, NULL, abort_later, r) != 0)
        test_stop(r->t, "cannot start a thread");
    do
        result = one_step(r);
    while (result == RONDO_SUCCESS);
    if (p->kind == ABORT) {
        if (result != RONDO_ERR_ABORTED) /* that call's communicator, so no more than the code can be said */
            test_fail(r->t, "the aborted call gave %s", rondo_result_string(result));
        pthread_join(thread, NULL); /* the communicator is gone */
        return;
    }
    test_note(r->t, "the victim destroys");
    rondo_comm_destroy(r->comm);
}

static void be_other(rank_t *r)
{
    rondo_result_t result;

    do
        result = one_step(r);
    while (result == RONDO_SUCCESS);
    note_time(r);
    check_error(r, result);
    go_on(r);
    test_note(r->t, "destroy");
    rondo_comm_destroy(r->comm);
}

/* A fixed number of operations; the late one sleeps before one of them, or the parent stops it for a moment. */
static void be_late(rank_t *r)
{
    const plan_t *p = &r->trial->plan;
    int k, when = (int)(p->seed % (unsigned)p->operations);

    for (k = 0; k < p->operations; k++) {
        if (r->t->rank == p->victim && k == when && !p->resume_early)
            usleep((unsigned)p->delay_us);
        if (!TEST_OK(r->t, r->comm, one_step(r)))
            return;
    }
    TEST_OK(r->t, NULL, rondo_comm_destroy(r->comm));
}

/* Whether the communicator was made or not: an end, and no hang, is all that is asked. */
static void be_born(rank_t *r, rondo_result_t result)
{
    if (result != RONDO_SUCCESS)
        return;
    do
        result = one_step(r);
    while (result == RONDO_SUCCESS);
    rondo_comm_destroy(r->comm);
}

static void body(test_rank_t *t, void *arg)
{
    trial_t *trial = arg;
    const plan_t *p = &trial->plan;
    rank_t r = {t, trial, NULL, p->seed, test_count_entries("/proc/self/fd"), 0, 0};
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_unique_id_t id;
    rondo_result_t result;

    if (p->nnodes > 1) {
        char host[32];
        snprintf(host, sizeof host, "node%d", t->rank % p->nnodes);
        setenv("RONDO_HOSTID", host, 1);
    }
    setenv("RONDO_CREATE_TIMEOUT_MS", p->kind == BIRTH ? BIRTH_MS : CREATE_MS, 0);
    trial->board->took_us[t->rank] = trial->board->back_us[t->rank] = -1;
    config.device = RONDO_DEVICE_HOST;
    config.timeout_ms = p->kind == STOP ? STOP_TIMEOUT_MS : 0;
    test_note(t, "create");
    if (p->kind == LATE && t->rank == p->victim)
        usleep((unsigned)p->delay_us / 2);
    if (!test_id_unless_ended(t, &id))
        return; /* killed before it made one */
    result = rondo_comm_create(&r.comm, t->nranks, &id, t->rank, &config);
    if (p->kind != BIRTH && !TEST_OK(t, NULL, result))
        return;
    atomic_fetch_add(&trial->board->ready, 1);
    if (p->kind == BIRTH)
        be_born(&r, result);
    else if (p->kind == LATE)
        be_late(&r);
    else if (t->rank == p->victim)
        be_victim(&r);
    else
        be_other(&r);
    if (t->rank != p->victim)
        atomic_fetch_add(&trial->board->finished, 1);
    test_note(t, "counts what is left");
    check_leftovers(&r);
}

/* ---- what the parent does ---- */

static void happen(trial_t *trial, pid_t pid, int signal)
{
    atomic_store(&trial->board->happened, test_clock_us());
    kill(pid, signal);
}

static void step(test_director_t *d, const pid_t *pid)
{
    trial_t *trial = d->arg;
    const plan_t *p = &trial->plan;
    board_t *board = trial->board;
    int others = p->nranks - 1;
    pid_t victim = pid[p->victim];
    int64_t now = test_clock_us(), pause = p->kind == LATE ? p->delay_us : 0;

    if (victim == 0 || p->kind == ABORT || (p->kind == LATE && !p->resume_early))
        return;
    if (p->kind != BIRTH && atomic_load(&board->ready) < p->nranks)
        return;
    if (trial->ready_at == 0)
        trial->ready_at = now;
    if (atomic_load(&board->happened) == 0) {
        if (now >= trial->ready_at + p->delay_us)
            happen(trial, victim, p->kind == STOP || p->kind == LATE ? SIGSTOP : SIGKILL);
        return;
    }
    if (trial->resumed || p->kind == KILL || p->kind == BIRTH)
        return;
    if (p->kind == LATE ? now >= atomic_load(&board->happened) + pause
                        : atomic_load(p->resume_early ? &board->noticed : &board->finished) == others) {
        kill(victim, SIGCONT);
        trial->resumed = 1;
    }
}

static void draw_plan(plan_t *p, uint64_t seed, unsigned kinds, int most)
{
    uint64_t random = seed;

    p->seed = test_random(&random);
    do
        p->kind = (kind_t)test_below(&random, NUM_KINDS);
    while (!(kinds & 1u << p->kind));
    p->nranks = 2 + (int)test_below(&random, (unsigned)most - 1);
    p->victim = (int)test_below(&random, (unsigned)p->nranks);
    p->delay_us = (int)test_below(&random, test_below(&random, 3) ? 20000 : 2000);
    if (p->kind == LATE)
        p->delay_us *= 5;
    p->resume_early = (int)test_below(&random, 2);
    p->operations = 20 + (int)test_below(&random, 60);
}

typedef struct {
    int trials, bad, hung, crashed, leftovers;
    int64_t *took[NUM_KINDS], *back;
    int ntook[NUM_KINDS], nback;
} tally_t;

static void run_trial(tally_t *tally, uint64_t seed, unsigned kinds, int most, int nnodes, int verbose)
{
    board_t *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    trial_t trial = {.board = board};
    test_director_t d = {step, &trial, -1, 0, 0};
    int files = test_count_files(), bad, r;

    if (board == MAP_FAILED)
        exit(1);
    draw_plan(&trial.plan, seed, kinds, most);
    trial.plan.nnodes = nnodes;
    if (trial.plan.kind == KILL || trial.plan.kind == BIRTH)
        d.victim = trial.plan.victim;
    bad = test_run_directed(&d, trial.plan.nranks, LIMIT_S, body, &trial);
    if (test_count_files() > files) {
        tally->leftovers++;
        bad++;
    }
    tally->trials++;
    tally->bad += bad != 0;
    tally->hung += d.hung;
    tally->crashed += d.crashed;
    if (bad || verbose)
        printf("trials: seed %llu: %s of rank %d of %d after %d us: %s\n", (unsigned long long)seed,
               kind_names[trial.plan.kind], trial.plan.victim, trial.plan.nranks, trial.plan.delay_us,
               bad ? "WRONG" : "right");
    for (r = 0; r < trial.plan.nranks && trial.plan.kind != BIRTH && trial.plan.kind != LATE; r++)
        if (board->took_us[r] >= 0)
            tally->took[trial.plan.kind][tally->ntook[trial.plan.kind]++] = board->took_us[r];
    for (r = 0; r < trial.plan.nranks && trial.plan.kind != BIRTH && trial.plan.kind != LATE; r++)
        if (board->back_us[r] > 0)
            tally->back[tally->nback++] = board->back_us[r];
    munmap(board, sizeof *board);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static void report_times(const char *name, const char *what, int64_t *us, int n)
{
    if (n == 0)
        return;
    qsort(us, (size_t)n, sizeof *us, by_value);
    printf("trials: %s: %s, ms: median %.2f, p99 %.2f, max %.2f (%d ranks)\n", name, what, (double)us[n / 2] * 1e-3,
           (double)us[(int)(n * 0.99)] * 1e-3, (double)us[n - 1] * 1e-3, n);
}

static void report(tally_t *tally)
{
    int k;

    printf("trials: %d trials: %d wrong (%d hangs, %d crashes, %d with files left)\n", tally->trials, tally->bad,
           tally->hung, tally->crashed, tally->leftovers);
    for (k = 0; k < NUM_KINDS; k++)
        report_times(kind_names[k], "noticed after", tally->took[k], tally->ntook[k]);
    report_times("recovery", "shrunk, with a right result, after", tally->back, tally->nback);
}

static unsigned parse_kinds(const char *text)
{
    unsigned kinds = 0;
    int k;

    for (k = 0; k < NUM_KINDS; k++)
        if (strstr(text, kind_names[k]))
            kinds |= 1u << k;
    return kinds;
}

int main(int argc, char **argv)
{
    static const struct option table[] = {{"count", 1, NULL, 'c'}, {"seed", 1, NULL, 's'},    {"kinds", 1, NULL, 'k'},
                                          {"nodes", 1, NULL, 'n'}, {"verbose", 0, NULL, 'v'}, {"ranks", 1, NULL, 'r'},
                                          {NULL, 0, NULL, 0}};
    int option, count = 200, nnodes = 1, most = 6, verbose = 0, i, k;
    unsigned kinds = (1u << NUM_KINDS) - 1;
    uint64_t seed = 1;
    tally_t tally = {0};

    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (option == 'c')
            count = atoi(optarg);
        else if (option == 's')
            seed = strtoull(optarg, NULL, 0);
        else if (option == 'k')
            kinds = parse_kinds(optarg);
        else if (option == 'n')
            nnodes = atoi(optarg);
        else if (option == 'r')
            most = atoi(optarg);
        else if (option == 'v')
            verbose = 1;
        else
            return 2;
    }
    if (count < 1 || count > MOST_TRIALS || kinds == 0 || most < 2 || most > TEST_MAX_RANKS)
        return 2;
    test_begin("trials", 2 * LIMIT_S + 5 * count);
    for (k = 0; k < NUM_KINDS; k++)
        tally.took[k] = calloc((size_t)count * TEST_MAX_RANKS, sizeof *tally.took[k]);
    tally.back = calloc((size_t)count * TEST_MAX_RANKS, sizeof *tally.back);
    for (i = 0; i < count && tally.bad < 10; i++) {
        run_trial(&tally, seed + (uint64_t)i, kinds, most, nnodes, verbose);
        if ((i + 1) % 50 == 0)
            printf("trials: %d done, %d wrong\n", i + 1, tally.bad);
    }
    report(&tally);
    for (k = 0; k < NUM_KINDS; k++)
        free(tally.took[k]);
    free(tally.back);
    return tally.bad != 0;
}
