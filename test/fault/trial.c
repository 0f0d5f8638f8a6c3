/* See trial.h: what a rank does. */
#define _GNU_SOURCE
#include "fault/trial.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/operation.h"

#define CREATE_MS "60000"
#define PATIENCE_MS "1500" /* for one that was killed, or found itself without means, before it came */
#define SLOW_MS "6000"     /* the same, and longer than the slow one is away */
#define STOP_TIMEOUT_MS 150
#define GIVEN_UP_US 1500000 /* longer than a failed creation is kept up for those who still come */
#define STACK (256 << 10)   /* more than any call takes */

typedef struct {
    test_rank_t *t;
    trial_t *trial;
    rondo_comm_t comm; /* of all ranks */
    rondo_comm_t in;   /* in which it is at work: that, or a smaller one */
    int rank, nranks;  /* there */
    uint64_t random;   /* the same on all ranks */
    int steps, descriptors;
    _Atomic int inside, aborting;
} rank_t;

/* ---- one operation ---- */

static rd_coll_t coll_of(do_what_t what)
{
    static const rd_coll_t coll[DO_NUM] = {
        [DO_ALLREDUCE] = RD_ALLREDUCE,
        [DO_REDUCE] = RD_REDUCE,
        [DO_REDUCE_SCATTER] = RD_REDUCE_SCATTER,
        [DO_REDUCE_SCATTERV] = RD_REDUCE_SCATTER,
        [DO_BROADCAST] = RD_BROADCAST,
        [DO_ALLGATHER] = RD_ALLGATHER,
        [DO_ALLGATHERV] = RD_ALLGATHER,
        [DO_GATHER] = RD_GATHER,
        [DO_GATHERV] = RD_GATHER,
        [DO_SCATTER] = RD_SCATTER,
        [DO_SCATTERV] = RD_SCATTER,
        [DO_ALLTOALL] = RD_ALLTOALL,
        [DO_ALLTOALLV] = RD_ALLTOALL,
        [DO_SHIFT] = RD_ALLTOALL,
        [DO_BARRIER] = RD_BARRIER,
    };

    return coll[what];
}

/* The operation in which the victim lacks something. */
static int is_limited_step(const rank_t *r)
{
    const plan_t *p = &r->trial->plan;

    return p->kind == LIMIT && p->stage == IN_OPERATION && r->steps == (int)(p->seed % (unsigned)p->operations);
}

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
    c->count =
        test_below(random, 6) == 0 ? test_below(random, r->nranks > 6 ? 20000 : 100000) : test_below(random, 500);
    if (is_limited_step(r))
        c->count += 20000;
    c->root = (int)test_below(random, (unsigned)r->nranks);
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
        result = do_post(&call[i], r->in);
    if (!submit || result != RONDO_SUCCESS) {
        end = rondo_group_end();
        return result != RONDO_SUCCESS ? result : end;
    }
    result = rondo_group_submit(&request);
    while (result == RONDO_SUCCESS && !done)
        result = rondo_request_test(&request, &done);
    return result;
}

/* What is forced cannot serve every operation; then nothing happens, on any rank. (Or the communicator has failed
 * meanwhile: then that is what it says.) */
static int refused(rank_t *r, rondo_result_t result)
{
    rondo_result_t error = RONDO_SUCCESS;

    if (result != RONDO_ERR_UNSUPPORTED)
        return 0;
    rondo_comm_get_error(r->in, &error);
    return error != RONDO_SUCCESS || strstr(rondo_last_error(r->in), "RONDO_") != NULL;
}

static void count_call(rank_t *r, const do_case_t *c, rondo_result_t result)
{
    const plan_t *p = &r->trial->plan;
    const rd_algo_t *algo = p->algo[coll_of(c->what)];
    board_t *board = r->trial->board;
    int i;

    if (r->t->rank != (p->victim + 1) % p->nranks)
        return;
    for (i = 0; i < TRIAL_MOST_ALGOS - 1 && rd_algos[i] && rd_algos[i] != algo;)
        i++;
    if (result != RONDO_SUCCESS)
        atomic_fetch_add(&board->refused, 1);
    else if (algo && c->what != DO_SHIFT && r->nranks > 1)
        atomic_fetch_add(&board->served[i], 1);
    else
        atomic_fetch_add(&board->chosen, 1);
}

static void limit(rank_t *r, int on);

static rondo_result_t post(rank_t *r, do_call_t *call, int ncalls, int submit)
{
    int now = is_limited_step(r) && r->t->rank == r->trial->plan.victim;
    rondo_result_t result;

    if (now)
        limit(r, 1);
    result = ncalls == 1 ? do_post(call, r->in) : post_group(r, call, ncalls, submit);
    if (now)
        limit(r, 0);
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
        if (do_prepare(&call[i], &c, r->rank, r->nranks) != 0)
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
        result = post(r, call, ncalls, way == 5);
    atomic_store(&r->inside, 0);
    r->steps++;
    for (i = 0; i < ncalls; i++) {
        if (result == RONDO_SUCCESS && do_verify(&call[i], 1, wrong, sizeof wrong) != 0) {
            do_text(&call[i].c, text, sizeof text);
            test_fail(r->t, "wrong result: %s: %s", text, wrong);
            atomic_fetch_add(&r->trial->board->wrong, 1);
        }
        if (result == RONDO_SUCCESS || (i == 0 && refused(r, result)))
            count_call(r, &call[i].c, result);
        do_release(&call[i]);
    }
    return refused(r, result) ? RONDO_SUCCESS : result;
}

/* ---- what must be so after an error ---- */

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

static void must_name(rank_t *r, rondo_comm_t comm, int rank)
{
    char word[32];

    snprintf(word, sizeof word, "rank %d", rank);
    if (!strstr(rondo_last_error(comm), word))
        test_fail(r->t, "the sentence must name %s: \"%s\"", word, rondo_last_error(comm));
}

static void check_error(rank_t *r, rondo_result_t result)
{
    const plan_t *p = &r->trial->plan;
    rondo_result_t error = RONDO_SUCCESS;

    if (!test_result(r->t, r->comm, result, wanted(p->kind), "the pending call"))
        return;
    if (p->kind != STOP)
        must_name(r, r->comm, p->victim);
    if (strcmp(rondo_last_error(r->comm), rondo_last_error(NULL)) != 0)
        test_fail(r->t, "this thread's last error must be the communicator's, \"%s\": \"%s\"",
                  rondo_last_error(r->comm), rondo_last_error(NULL));
    TEST_OK(r->t, r->comm, rondo_comm_get_error(r->comm, &error));
    TEST_TRUE(r->t, error == wanted(p->kind));
    TEST_GIVES(r->t, r->comm, wanted(p->kind), rondo_barrier(r->comm, NULL));
}

static void check_sentence(rank_t *r, rondo_comm_t comm, rondo_result_t result, const char *what)
{
    if (result != RONDO_SUCCESS && !*rondo_last_error(comm))
        test_fail(r->t, "%s gave %s without a sentence", what, rondo_result_string(result));
}

/* ---- fewer ranks ---- */

static rondo_result_t shrink_of(rank_t *r, rondo_comm_t from, const int *out, int nout, rondo_comm_t *small)
{
    rondo_config_t config = RONDO_CONFIG_INIT;

    config.device = RONDO_DEVICE_HOST;
    unsetenv("RONDO_ALGO"); /* what is asked of the smaller one cannot be served by everything */
    unsetenv("RONDO_PROTO");
    test_note(r->t, "shrink without %d ranks, the first is %d", nout, nout > 0 ? out[0] : -1);
    return rondo_comm_shrink(from, out, nout, small, &config);
}

static rondo_result_t shrink(rank_t *r, const int *out, int nout, rondo_comm_t *small)
{
    return shrink_of(r, r->comm, out, nout, small);
}

/* Size and number are right, all members mean the same group, and the sum is right. */
static void check_group(rank_t *r, rondo_comm_t small, const int *out, int nout)
{
    int32_t in[100], sum[100], me = r->t->rank, member[TEST_MAX_RANKS] = {0};
    int size = 0, rank = -1, n = 0, before = 0, q, k;

    test_note(r->t, "allgather and allreduce after the shrink");
    TEST_OK(r->t, small, rondo_comm_size(small, &size));
    TEST_OK(r->t, small, rondo_comm_rank(small, &rank));
    TEST_OK(r->t, small, rondo_allgather(&me, member, 1, RONDO_INT32, small, NULL));
    for (q = 0; q < r->t->nranks; q++) {
        for (k = 0; k < nout && out[k] != q;)
            k++;
        if (k < nout)
            continue;
        before += q < me;
        if (member[n++] != q)
            test_fail(r->t, "rank %d of the smaller communicator is %d, not %d", n - 1, member[n - 1], q);
    }
    TEST_TRUE(r->t, size == n && rank == before);
    for (k = 0; k < 100; k++)
        in[k] = k + 1;
    if (TEST_OK(r->t, small, rondo_allreduce(in, sum, 100, RONDO_INT32, RONDO_SUM, small, NULL)))
        for (k = 0; k < 100 && sum[k] == n * in[k];)
            k++;
    if (k < 100) {
        test_fail(r->t, "wrong result after the shrink");
        atomic_fetch_add(&r->trial->board->wrong, 1);
    }
}

/* The others go on without the victim, and without the second one. `began`: when that was needed. */
static void go_on(rank_t *r, int64_t began)
{
    const plan_t *p = &r->trial->plan;
    int out[2] = {p->victim, p->second}, nout = p->kind == SECOND ? 2 : 1;
    rondo_comm_t small = NULL;

    setenv("RONDO_CREATE_TIMEOUT_MS", CREATE_MS, 1); /* nobody dies any more, but some may still wait in vain */
    if (!TEST_OK(r->t, r->comm, shrink(r, out, nout, &small)))
        return;
    check_group(r, small, out, nout);
    r->trial->board->back_us[r->t->rank] = test_clock_us() - began;
    test_note(r->t, "destroy after the shrink");
    TEST_OK(r->t, NULL, rondo_comm_destroy(small));
}

/* The communicator without the victim, of which the second one is or was a rank. */
static void use_until_failed(rank_t *r, rondo_comm_t small)
{
    const plan_t *p = &r->trial->plan;
    rondo_result_t result;

    r->in = small;
    r->rank -= r->t->rank > p->victim;
    r->nranks--;
    r->random = p->seed + 1;
    do
        result = one_step(r);
    while (result == RONDO_SUCCESS);
    if (test_result(r->t, r->in, result, RONDO_ERR_REMOTE, "the smaller communicator's call"))
        must_name(r, r->in, p->second - (p->second > p->victim));
    r->in = r->comm;
}

/* Another rank dies while this is under way: the shrink fails, or what it has made does. */
static void shrink_in_vain(rank_t *r)
{
    const plan_t *p = &r->trial->plan;
    board_t *board = r->trial->board;
    rondo_comm_t small = NULL;
    rondo_result_t result;

    if (r->t->rank == p->slow)
        usleep(GIVEN_UP_US);
    atomic_fetch_add(&board->shrinking, 1);
    result = shrink(r, &p->victim, 1, &small);
    check_sentence(r, NULL, result, "rondo_comm_shrink");
    if (result != RONDO_SUCCESS) {
        atomic_fetch_add(&board->failed_shrink, 1);
        return;
    }
    atomic_fetch_add(&board->failed_later, 1);
    use_until_failed(r, small);
    TEST_OK(r->t, NULL, rondo_comm_destroy(small));
}

/* Nobody is told who is gone. All have the same group; if the second one is still in that, it fails, and is shrunk in
 * its turn. */
static void survive(rank_t *r)
{
    const plan_t *p = &r->trial->plan;
    int out[2] = {p->victim, p->second}, nout = p->kind == SECOND ? 2 : 1, size = 0;
    int64_t began = test_clock_us();
    rondo_comm_t small = NULL;

    if (p->kind == SECOND && r->t->rank == p->slow)
        usleep(GIVEN_UP_US);
    atomic_fetch_add(&r->trial->board->shrinking, 1);
    while (size != p->nranks - nout) {
        rondo_comm_t from = small ? small : r->comm;
        rondo_result_t result = shrink_of(r, from, NULL, RONDO_SURVIVORS, &small);
        if (from != r->comm)
            TEST_OK(r->t, NULL, rondo_comm_destroy(from));
        if (!TEST_OK(r->t, NULL, result))
            return;
        TEST_OK(r->t, small, rondo_comm_size(small, &size));
        if (size != p->nranks - nout && (p->kind != SECOND || size != p->nranks - 1 || from != r->comm))
            test_stop(r->t, "%d ranks are left of %d", size, p->nranks);
        if (size != p->nranks - nout)
            use_until_failed(r, small);
    }
    check_group(r, small, out, nout);
    if (atomic_load(&r->trial->board->again))
        began = atomic_load(&r->trial->board->again);
    r->trial->board->back_us[r->t->rank] = test_clock_us() - began;
    TEST_OK(r->t, NULL, rondo_comm_destroy(small));
}

/* ---- limits ---- */

static long mapped_bytes(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (!file || fscanf(file, "%ld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* A limit ends a process that needs more stack than is there; that is nobody's but the process's own. */
static __attribute__((noinline)) void touch_stack(void)
{
    volatile char stack[STACK];

    for (size_t i = 0; i < sizeof stack; i += 1024)
        stack[i] = 1;
}

static void limit(rank_t *r, int on)
{
    static const int resource[NUM_LIMITS] = {RLIMIT_AS, RLIMIT_FSIZE, RLIMIT_NOFILE};
    const plan_t *p = &r->trial->plan;
    long used = !on                       ? 0
                : p->limit == SPACE       ? mapped_bytes()
                : p->limit == DESCRIPTORS ? test_count_entries("/proc/self/fd") - 1
                                          : 0;
    struct rlimit all;

    touch_stack();
    if (getrlimit(resource[p->limit], &all) != 0)
        test_stop(r->t, "no limit to set");
    all.rlim_cur = on ? (rlim_t)(used + p->room) : all.rlim_max;
    if (setrlimit(resource[p->limit], &all) != 0)
        test_stop(r->t, "cannot set a limit");
}

static void note_failure(rank_t *r, rondo_comm_t comm, rondo_result_t result, const char *what)
{
    check_sentence(r, comm, result, what);
    if (result != RONDO_SUCCESS)
        atomic_fetch_add(&r->trial->board->failed, 1);
}

/* All but one shrink; when it has failed for lack of something, once more. */
static void shrink_twice(rank_t *r)
{
    const plan_t *p = &r->trial->plan;
    int out = (p->victim + 1) % p->nranks, nout = p->nranks > 2, mine = nout == 0 || r->t->rank != out;
    rondo_comm_t small = NULL;
    rondo_result_t result;

    setenv("RONDO_CREATE_TIMEOUT_MS", PATIENCE_MS, 1);
    if (mine) {
        if (r->t->rank == p->victim)
            limit(r, 1);
        result = shrink(r, &out, nout, &small);
        if (r->t->rank == p->victim)
            limit(r, 0);
        note_failure(r, NULL, result, "rondo_comm_shrink");
    }
    setenv("RONDO_CREATE_TIMEOUT_MS", CREATE_MS, 1);
    test_note(r->t, "waits for the others to have shrunk");
    test_barrier(r->t);
    if (mine && atomic_load(&r->trial->board->failed)) {
        if (small)
            TEST_OK(r->t, NULL, rondo_comm_destroy(small));
        small = NULL;
        TEST_OK(r->t, r->comm, shrink(r, &out, nout, &small));
    }
    if (small) {
        check_group(r, small, &out, nout);
        TEST_OK(r->t, NULL, rondo_comm_destroy(small));
    }
}

static void be_limited(rank_t *r, rondo_result_t result)
{
    const plan_t *p = &r->trial->plan;
    board_t *board = r->trial->board;
    int k;

    note_failure(r, NULL, result, "rondo_comm_create");
    while (p->stage == IN_OPERATION && atomic_load(&board->ready) < p->nranks)
        sched_yield(); /* a failure before creation is over everywhere is a failure of that */
    for (k = 0; k < p->operations && result == RONDO_SUCCESS; k++)
        result = one_step(r);
    if (r->comm && p->stage == IN_SHRINK) {
        TEST_OK(r->t, r->comm, result); /* nothing is lacking yet */
    } else if (r->comm && result != RONDO_SUCCESS) {
        note_failure(r, r->comm, result, "an operation");
        if (p->stage == IN_OPERATION && r->t->rank != p->victim)
            check_error(r, result);
    }
    test_note(r->t, "waits for the others to be through");
    test_barrier(r->t);
    if (p->stage == IN_OPERATION && atomic_load(&board->failed) && r->t->rank != p->victim)
        go_on(r, test_clock_us());
    else if (p->stage == IN_SHRINK)
        shrink_twice(r);
    test_note(r->t, "destroy");
    if (r->comm)
        TEST_OK(r->t, NULL, rondo_comm_destroy(r->comm));
}

/* ---- the other kinds ---- */

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
    board->abort_us = test_clock_us() - began;
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
    int64_t began;

    do
        result = one_step(r);
    while (result == RONDO_SUCCESS);
    note_time(r);
    check_error(r, result);
    if (r->trial->plan.unnamed) {
        survive(r);
    } else {
        if (r->trial->plan.kind == SECOND)
            shrink_in_vain(r);
        began = atomic_load(&r->trial->board->again);
        go_on(r, began ? began : test_clock_us());
    }
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
    check_sentence(r, NULL, result, "rondo_comm_create");
    if (result != RONDO_SUCCESS)
        return;
    do
        result = one_step(r);
    while (result == RONDO_SUCCESS);
    rondo_comm_destroy(r->comm);
}

/* ---- a rank ---- */

static void check_leftovers(rank_t *r)
{
    int tries, descriptors = 0, threads = 0;

    for (tries = 0; tries < TRIAL_LIMIT_S * 50; tries++) {
        descriptors = test_count_entries("/proc/self/fd");
        threads = test_count_entries("/proc/self/task");
        if (descriptors <= r->descriptors && threads <= 1)
            return;
        usleep(10000);
    }
    test_fail(r->t, "leftovers: %d descriptors, %d at the start, and %d threads", descriptors, r->descriptors, threads);
    atomic_fetch_add(&r->trial->board->leftovers, 1);
}

/* Nobody waits for a deadline in vain: where a death can be seen, there is none. */
static const char *create_ms(const plan_t *p)
{
    if (p->kind == SECOND && p->nnodes > 1 && p->slow >= 0)
        return SLOW_MS;
    if (p->kind == BIRTH || (p->kind == LIMIT && p->stage == IN_CREATION) || (p->kind == SECOND && p->nnodes > 1))
        return PATIENCE_MS;
    return p->kind == SECOND ? "3600000" : CREATE_MS;
}

static void set_environment(const plan_t *p, int rank)
{
    char text[512] = "", host[32];
    int coll, n = 0;

    snprintf(host, sizeof host, "node%d", rank % p->nnodes);
    if (p->nnodes > 1)
        setenv("RONDO_HOSTID", host, 1);
    setenv("RONDO_CREATE_TIMEOUT_MS", create_ms(p), 1);
    for (coll = 0; coll < RD_NUM_COLLS; coll++)
        if (p->algo[coll])
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%s=%s", n ? "," : "", rd_coll_name((rd_coll_t)coll),
                          p->algo[coll]->name);
    if (n)
        setenv("RONDO_ALGO", text, 1);
    if (p->proto)
        setenv("RONDO_PROTO", p->proto, 1);
    if (p->narrow) {
        setenv("RONDO_SLOTS", "1", 1);
        setenv("RONDO_SLOT_BYTES", "512", 1);
        setenv("RONDO_SLICE_BYTES", "192", 1);
    }
}

static rondo_result_t create(rank_t *r, const rondo_unique_id_t *id)
{
    const plan_t *p = &r->trial->plan;
    rondo_config_t config = RONDO_CONFIG_INIT;
    int now = p->kind == LIMIT && p->stage == IN_CREATION && r->t->rank == p->victim;
    rondo_result_t result;

    config.device = RONDO_DEVICE_HOST;
    config.timeout_ms = p->kind == STOP ? STOP_TIMEOUT_MS : 0;
    if (now)
        limit(r, 1);
    result = rondo_comm_create(&r->comm, r->t->nranks, id, r->t->rank, &config);
    if (now)
        limit(r, 0);
    r->in = r->comm;
    return result;
}

void trial_body(test_rank_t *t, void *arg)
{
    trial_t *trial = arg;
    const plan_t *p = &trial->plan;
    board_t *board = trial->board;
    rank_t r = {.t = t, .trial = trial, .rank = t->rank, .nranks = t->nranks, .random = p->seed};
    rondo_unique_id_t id;
    rondo_result_t result;

    r.descriptors = test_count_entries("/proc/self/fd");
    set_environment(p, t->rank);
    test_note(t, "create");
    if (p->kind == LATE && t->rank == p->victim)
        usleep((unsigned)p->delay_us / 2);
    if (!test_id_unless_ended(t, &id))
        return; /* killed before it made one */
    result = create(&r, &id);
    if (p->kind != BIRTH && (p->kind != LIMIT || p->stage != IN_CREATION) && !TEST_OK(t, NULL, result))
        return;
    atomic_fetch_add(&board->ready, 1);
    if (p->kind == BIRTH)
        be_born(&r, result);
    else if (p->kind == LATE)
        be_late(&r);
    else if (p->kind == LIMIT)
        be_limited(&r, result);
    else if (t->rank == p->victim)
        be_victim(&r);
    else
        be_other(&r);
    if (t->rank != p->victim)
        atomic_fetch_add(&board->finished, 1);
    test_note(t, "counts what is left");
    check_leftovers(&r);
}
