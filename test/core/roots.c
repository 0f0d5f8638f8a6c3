/* rondo_comm_create_scalable: creation with several ids.
 *
 *   sums    every number of ids, up to the number of ranks, on one node and two, as processes and threads, waiting or
 *           in the background; ids made by drawn ranks, whichever block these are in. The sum is right
 *   wrong   a number claimed twice, another order of ids, another number of ids or ranks: every rank gets
 *           INVALID_ARGUMENT
 *   mixed   some ranks come by one id, others by all: every rank gets INVALID_ARGUMENT
 *   late    a rank that never comes, all of a block that never come: TIMEOUT on all others, of any block
 *   killed  a rank dies at a random moment or at the k-th call of poll: all others end, with REMOTE, or with TIMEOUT
 *           that names it where it died before it came; nobody hangs
 *
 * By --seed S others. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "util/harness.h"

#define LIMIT_S 40
#define MOST 9
#define SEEN_BY_LIBRONDO __attribute__((visibility("default")))

typedef struct plan {
    uint64_t seed;
    int nids, nodes, what, victim, calls;
    unsigned delay_us;
} plan_t;

/* In shared memory: the ids, made by any rank. */
static rondo_unique_id_t *ids;

/* Each id is made by a drawn rank, but not by `never`. */
static void make_ids(test_rank_t *t, int nids, uint64_t *random, int never)
{
    test_barrier(t);
    for (int i = 0; i < nids; i++) {
        int maker;
        do
            maker = (int)test_below(random, (unsigned)t->nranks);
        while (maker == never);
        if (maker == t->rank)
            TEST_OK(t, NULL, rondo_unique_id_create(&ids[i]));
    }
    test_barrier(t);
}

static void must_be_whole(test_rank_t *t, rondo_comm_t comm)
{
    int32_t in = t->rank + 1, sum = 0;
    int rank = -1;
    TEST_OK(t, comm, rondo_comm_rank(comm, &rank));
    TEST_OK(t, comm, rondo_allreduce(&in, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    TEST_TRUE(t, rank == t->rank && sum == t->nranks * (t->nranks + 1) / 2);
    TEST_TRUE(t, test_group(comm, t->rank) == (1u << t->nranks) - 1);
}

static void sums_body(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    uint64_t random = test_mix(p->seed);
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = NULL, half = NULL;
    int late = (int)test_below(&random, (unsigned)t->nranks);
    test_play_node(t, p->nodes);
    make_ids(t, p->nids, &random, -1);
    config.blocking = (int)test_below(&random, 2);
    if (t->rank == late)
        usleep(3000);
    test_note(t, "creation by %d ids", p->nids);
    rondo_result_t result = rondo_comm_create_scalable(&comm, t->nranks, ids, p->nids, t->rank, &config);
    if (!TEST_OK(t, comm, test_settled(comm, result)))
        test_stop(t, "no communicator");
    must_be_whole(t, comm);
    test_note(t, "split");
    config.blocking = 1;
    if (TEST_OK(t, comm, rondo_comm_split(comm, t->rank % 2, 0, &half, &config)))
        TEST_OK(t, half, rondo_comm_destroy(half));
    TEST_OK(t, comm, rondo_comm_destroy(comm));
}

/* ---- wrong ---- */

enum { TWICE, BEYOND, ORDER, FEWER_IDS, ONE_ID, NRANKS, NUM_WRONG };

static const char *const wrong_names[NUM_WRONG] = {"a number claimed twice", "a number out of range",
                                                   "another order",          "one id less",
                                                   "only the first id",      "another nranks"};

/* The last rank is wrong. */
static void wrong_body(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    uint64_t random = test_mix(p->seed);
    rondo_config_t config = test_host_config();
    rondo_unique_id_t mine[MOST];
    int nids = p->nids, nranks = t->nranks, rank = t->rank, last = t->rank == t->nranks - 1;
    rondo_comm_t comm = NULL;
    test_play_node(t, p->nodes);
    make_ids(t, nids, &random, t->nranks - 1); /* whose process ends first */
    memcpy(mine, ids, sizeof mine);
    test_note(t, "%s", wrong_names[p->what]);
    if (last) {
        rank = p->what == TWICE ? rank - 1 : p->what == BEYOND ? rank + 1 : rank;
        nranks += p->what == NRANKS;
        nids = p->what == FEWER_IDS ? nids - 1 : p->what == ONE_ID ? 1 : nids;
    }
    if (last && p->what == ORDER) {
        mine[0] = ids[1];
        mine[1] = ids[0];
    }
    const rondo_result_t result = rondo_comm_create_scalable(&comm, nranks, mine, nids, rank, &config);
    if (last || !test_came_late(result, rondo_last_error(NULL)))
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, result);
    test_barrier(t); /* a rendezvous ends with its process */
    if (t->rank > 0)
        return;
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_create_scalable(&comm, 2, ids, 3, 0, &config));
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_create_scalable(&comm, 2, ids, 0, 0, &config));
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_create_scalable(&comm, 2, NULL, 2, 0, &config));
    mine[1] = mine[0];
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_create_scalable(&comm, 2, mine, 2, 0, &config));
    test_sentence(t, "the same");
    TEST_TRUE(t, comm == NULL);
}

/* ---- mixed ---- */

enum { ODD_BY_FIRST, ODD_BY_OWN, ONLY_FIRST, ALL_BUT_LAST, NUM_MIXED };

static const char *const mixed_names[NUM_MIXED] = {"odd ranks come by the first id alone",
                                                   "odd ranks come by the id of their block alone",
                                                   "rank 0 comes by one id alone", "only the last rank has all ids"};

/* Some ranks call rondo_comm_create, and the others rondo_comm_create_scalable: all are told so. */
static void mixed_body(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    uint64_t random = test_mix(p->seed);
    const rondo_config_t config = test_host_config();
    const int n = t->nranks, last = n - 1;
    const bool alone = p->what == ONLY_FIRST ? t->rank == 0 : p->what == ALL_BUT_LAST ? t->rank < last : t->rank % 2;
    rondo_comm_t comm = NULL;
    rondo_result_t result;

    make_ids(t, p->nids, &random, -1);
    test_note(t, "%s", mixed_names[p->what]);
    if (alone)
        result = rondo_comm_create(&comm, n, &ids[p->what == ODD_BY_OWN ? t->rank * p->nids / n : 0], t->rank, &config);
    else
        result = rondo_comm_create_scalable(&comm, n, ids, p->nids, t->rank, &config);
    if (t->rank == 0 || !test_came_late(result, rondo_last_error(NULL))) {
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, result);
        test_sentence(t, "ids");
    }
    test_barrier(t); /* a rendezvous ends with its process */
}

/* ---- late ---- */

/* `what` ranks, the last ones, do not come. */
static void late_body(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    uint64_t random = test_mix(p->seed);
    const rondo_config_t config = test_host_config();
    rondo_comm_t comm = NULL;
    test_play_node(t, p->nodes);
    make_ids(t, p->nids, &random, -1);
    test_note(t, "%d ranks do not come", p->what);
    if (t->rank < t->nranks - p->what)
        TEST_GIVES(t, NULL, RONDO_ERR_TIMEOUT,
                   rondo_comm_create_scalable(&comm, t->nranks, ids, p->nids, t->rank, &config));
    test_barrier(t);
}

/* ---- killed ---- */

static _Atomic int calls_left = -1;

SEEN_BY_LIBRONDO int poll(struct pollfd *fds, nfds_t nfds, int timeout)
{
    const struct timespec t = {timeout / 1000, timeout % 1000 * 1000000L};
    if (atomic_load(&calls_left) >= 0 && atomic_fetch_sub(&calls_left, 1) == 0)
        kill(getpid(), SIGKILL);
    return ppoll(fds, nfds, timeout < 0 ? NULL : &t, NULL);
}

static void *die_later(void *arg)
{
    usleep(((const plan_t *)arg)->delay_us);
    kill(getpid(), SIGKILL);
    return NULL;
}

/* The victim makes none of the ids, or, if `what`, all of them. */
static void killed_body(test_rank_t *t, void *arg)
{
    plan_t *p = arg;
    uint64_t random = test_mix(p->seed);
    const rondo_config_t config = test_host_config();
    rondo_comm_t comm = NULL;
    pthread_t thread;
    char missing[24], rank[24];
    test_play_node(t, p->nodes);
    make_ids(t, p->nids, &random, p->what ? -1 : p->victim);
    if (t->rank == p->victim && p->calls >= 0)
        atomic_store(&calls_left, p->calls);
    else if (t->rank == p->victim && pthread_create(&thread, NULL, die_later, p) != 0)
        test_stop(t, "cannot start a thread");
    test_note(t, "creation");
    rondo_result_t result = rondo_comm_create_scalable(&comm, t->nranks, ids, p->nids, t->rank, &config);
    if (result == RONDO_SUCCESS && t->rank == p->victim && p->calls >= 0)
        kill(getpid(), SIGKILL); /* it has made fewer calls */
    test_note(t, "barriers until the death");
    while (result == RONDO_SUCCESS)
        result = rondo_barrier(comm, NULL);
    snprintf(missing, sizeof missing, "missing: %d ", p->victim);
    snprintf(rank, sizeof rank, "rank %d ", p->victim);
    if (!(result == RONDO_ERR_TIMEOUT && strstr(rondo_last_error(NULL), missing)) &&
        !(result == RONDO_ERR_INVALID_USAGE && p->what) && result != RONDO_ERR_REMOTE)
        test_fail(t, "%s: %s", rondo_result_string(result), rondo_last_error(NULL));
    else if (result == RONDO_ERR_REMOTE && !p->what && !strstr(rondo_last_error(NULL), rank))
        test_fail(t, "rank %d must be named: \"%s\"", p->victim, rondo_last_error(NULL));
    if (comm)
        rondo_comm_destroy(comm);
}

static void step(test_director_t *d, const pid_t *pid)
{
    (void)d;
    (void)pid;
}

static int killed(uint64_t seed)
{
    uint64_t s = seed;
    plan_t p = {.seed = seed};
    int n = 3 + (int)test_below(&s, MOST - 2);
    p.nids = 2 + (int)test_below(&s, (unsigned)n - 1);
    p.nodes = test_below(&s, 4) ? 1 : 2;
    p.victim = (int)test_below(&s, (unsigned)n);
    p.what = test_below(&s, 4) == 0;
    p.calls = test_below(&s, 3) ? (int)test_below(&s, 30) : -1;
    p.delay_us = test_below(&s, 12000);
    printf("roots: killed: %d ranks, %d ids, %d nodes, rank %d after %d %s, seed %#llx\n", n, p.nids, p.nodes, p.victim,
           p.calls >= 0 ? p.calls : (int)p.delay_us, p.calls >= 0 ? "polls" : "us", (unsigned long long)seed);
    test_director_t d = {.step = step, .victims = 1u << p.victim};
    return test_run_directed(&d, n, LIMIT_S, killed_body, &p);
}

static int run(test_kind_t kind, const char *name, int nranks, int nids, int nodes, int what, uint64_t seed,
               test_body_fn body)
{
    plan_t p = {.nids = nids, .nodes = nodes, .what = what, .seed = seed};
    printf("roots: %s: %s, %d ranks, %d ids, %d nodes, case %d, seed %#llx\n", name, test_kind_name(kind), nranks, nids,
           nodes, what, (unsigned long long)seed);
    return test_run(kind, nranks, LIMIT_S, body, &p);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {1, 2, 3, 5, MOST};
    uint64_t seed = argc > 2 && strcmp(argv[1], "--seed") == 0 ? strtoull(argv[2], NULL, 0) : 1;
    int bad = 0;
    test_begin("roots", 400);
    ids = mmap(NULL, MOST * sizeof *ids, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ids == MAP_FAILED)
        return 1;
    setenv("RONDO_CREATE_TIMEOUT_MS", "30000", 1);
    for (int i = 0; i < 5; i++)
        for (int nids = 1; nids <= sizes[i]; nids++)
            for (int way = 0; way < 3; way++)
                bad += run(way == 2 ? TEST_THREADS : TEST_PROCESSES, "sums", sizes[i], nids, 1 + (way == 1), 0,
                           test_mix(seed++), sums_body);
    for (int what = 0; what < NUM_WRONG; what++)
        for (int nids = 2; nids <= 4; nids++)
            bad += run(TEST_PROCESSES, "wrong", 6, nids, 1, what, test_mix(seed++), wrong_body);
    for (int what = 0; what < NUM_MIXED; what++)
        for (int nids = 2; nids <= 4; nids++)
            bad += run(TEST_PROCESSES, "mixed", 6, nids, 1, what, test_mix(seed++), mixed_body);
    setenv("RONDO_CREATE_TIMEOUT_MS", "1000", 1);
    for (int what = 1; what <= 3; what++)
        bad += run(TEST_PROCESSES, "late", 7, 3, 1, what, test_mix(seed++), late_body);
    setenv("RONDO_CREATE_TIMEOUT_MS", "4000", 1);
    for (int i = 0; i < 24 && !bad; i++)
        bad += killed(test_mix(seed++));
    return bad != 0;
}
