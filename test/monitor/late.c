/* Who holds a call up is named, with what it does, by every rank that waited, in one sentence: when the time limit is
 * over, and before that in the log. One rank is stopped, computes, sleeps, waits in another communicator, or does not
 * send; which one it is and what it does is written down before it begins, and the process's number is the truth. A
 * process that is stopped does not answer: so where it is alone on its node, and nobody answers for it, that is said.
 * On as many nodes as ranks the waits lead from one to the next along a ring.
 *
 *     late [--seed S] [--count N] [--nodes 1|2] [--alone 1]     1: the N trials alone
 */
#define _GNU_SOURCE
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "util/harness.h"

#define RING 8 /* ranks, so up to seven waits from node to node */

typedef enum { STOPPED, COMPUTES, SLEEPS, ORDER, SILENT, NUM_KINDS } kind_t;

/* `words` are in the sentence, or `other`, on a busy machine. */
static const struct {
    const char *name, *words, *other;
} kinds[NUM_KINDS] = {{"stopped", "is stopped, by a signal or a debugger", NULL},
                      {"computes", "; its process computes", "; its process waits for a core"},
                      {"sleeps", "; its process sleeps", NULL},
                      {"order", "ranks wait for each other in different communicators", NULL},
                      {"silent", "; its process sleeps", NULL}};

typedef struct outcome {
    rondo_result_t result;
    char text[1024];
} outcome_t;

static struct shared {
    kind_t kind;
    int nranks, nodes, odd, calls; /* equal calls before */
    pid_t pid;                     /* of the odd one */
    _Atomic int over;              /* ranks that have got their error */
    sem_t all_over;                /* the odd one sleeps on it */
    outcome_t of[TEST_MAX_RANKS];
} * shared;

static char log_name[64];

/* Trials on several nodes, and those of them with sentences that do not say all, or not the same: on a busy machine an
 * answer, the look of a rank, or the word of the rank of another node that says it for all, may come too late. That
 * must not be the rule. */
static int far, unsure;

static void rest(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

static rondo_result_t allreduce(rondo_comm_t comm)
{
    int in = 1, out;

    return rondo_allreduce(&in, &out, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
}

static int waiters(void)
{
    return shared->kind == SILENT ? 1 : shared->nranks - 1;
}

static void hold_up(test_rank_t *t, rondo_comm_t other)
{
    switch (shared->kind) {
    case STOPPED:
        raise(SIGSTOP);
        return;
    case COMPUTES:
        while (atomic_load(&shared->over) < waiters())
            continue;
        return;
    case ORDER:
        test_result(t, other, allreduce(other), RONDO_ERR_TIMEOUT, "the other communicator");
        return;
    default: /* a process that wakes up now and then is seen at it on a busy machine */
        while (sem_wait(&shared->all_over) != 0)
            continue;
    }
}

static void wait_for_it(test_rank_t *t, rondo_comm_t comm)
{
    outcome_t *out = &shared->of[t->rank];
    int value;

    out->result =
        shared->kind != SILENT ? allreduce(comm) : rondo_recv(&value, 1, RONDO_INT32, shared->odd, comm, NULL);
    snprintf(out->text, sizeof out->text, "%s", rondo_last_error(comm));
    if (atomic_fetch_add(&shared->over, 1) < waiters() - 1)
        return;
    sem_post(&shared->all_over);
    if (shared->kind == STOPPED)
        kill(shared->pid, SIGCONT);
}

static void body(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm_on(t, shared->nodes), other;
    rondo_config_t config = test_host_config();

    (void)arg;
    if (!comm)
        return;
    config.timeout_ms = 4000; /* who waits there still does when the others look who holds them up */
    TEST_OK(t, comm, rondo_comm_split(comm, 0, t->rank, &other, &config));
    for (int i = 0; i < shared->calls; i++)
        TEST_OK(t, comm, allreduce(comm));
    TEST_OK(t, comm, rondo_timeout_set(comm, 1500));
    if (t->rank == shared->odd)
        shared->pid = getpid();
    test_barrier(t);
    test_note(t, "rank %d %s", shared->odd, kinds[shared->kind].name);
    if (t->rank == shared->odd)
        hold_up(t, other);
    else if (shared->kind != SILENT || t->rank == (shared->odd + 1) % t->nranks)
        wait_for_it(t, comm);
    test_barrier(t);
    rondo_comm_destroy(other);
    rondo_comm_destroy(comm);
}

static bool alone(void)
{
    return shared->nodes > 2 ||
           (shared->nodes == 2 && (shared->nranks == 2 || (shared->nranks == 3 && shared->odd == 1)));
}

static const char *words(void)
{
    return alone() && shared->kind == STOPPED ? "was asked, and does not answer" : kinds[shared->kind].words;
}

static int wrong(int rank, const char *why)
{
    printf("late: WRONG: rank %d: %s; rank %d of process %d is to be named: \"%s\"\n    it got %s: \"%s\"\n", rank, why,
           shared->odd, (int)shared->pid, words(), rondo_result_string(shared->of[rank].result), shared->of[rank].text);
    return 1;
}

/* On a busy machine a rank that lives may not have answered in time, or the one that says it for all has not looked. */
static bool is_unsure(const char *text, const char *who)
{
    return shared->nodes > 1 &&
           (strstr(text, "was asked, and does not answer") || strstr(text, "and why is unknown")) &&
           !(strstr(text, words()) && strstr(text, who));
}

static int judge(void)
{
    const char *first = NULL;
    bool doubt = false;
    char who[40];

    snprintf(who, sizeof who, ":%d)", (int)shared->pid);
    for (int r = 0; r < shared->nranks; r++) {
        const char *text = shared->of[r].text, *named;
        if (r == shared->odd || (shared->kind == SILENT && r != (shared->odd + 1) % shared->nranks))
            continue;
        if (shared->of[r].result != RONDO_ERR_TIMEOUT)
            return wrong(r, "not RONDO_ERR_TIMEOUT");
        if (first && strcmp(first, text) != 0 && shared->nodes == 1)
            return wrong(r, "not the sentence of the others");
        doubt |= (first && strcmp(first, text) != 0) || is_unsure(text, who);
        first = text;
        if (is_unsure(text, who))
            continue;
        if (!strstr(text, words()) && !(kinds[shared->kind].other && strstr(text, kinds[shared->kind].other)))
            return wrong(r, "another verdict");
        if (!(named = strstr(text, who)) || (shared->kind != ORDER && strchr(text, ')') != named + strlen(who) - 1))
            return wrong(r, "another rank is named");
    }
    far += shared->nodes > 1;
    unsure += doubt;
    return 0;
}

/* ---- when the user asks ---- */

/* Is one of the two ranks that are late named? For which of them the others wait is the algorithm's choice; and by how
 * many calls it is late its own node does not always know. */
static bool names_late(const char *text)
{
    return (strncmp(text, "rank 1 (", 8) == 0 || strncmp(text, "rank 2 (", 8) == 0) && strstr(text, ") is late");
}

/* A rank that holds the others up asks, and is named, or the other one is that does. */
static void asks(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm_on(t, 2);
    char text[512] = "", cut[16] = "";

    (void)arg;
    if (!comm)
        return;
    TEST_OK(t, comm, rondo_explain(comm, cut, sizeof cut));
    if (strcmp(cut, "nobody is wa...") != 0)
        test_fail(t, "nobody has called: %s", cut);
    test_barrier(t);
    while (t->rank == 2 && !names_late(text)) /* or the test is out of time */
        TEST_OK(t, comm, rondo_explain(comm, text, sizeof text));
    if (t->rank == 2)
        atomic_store(&shared->over, 1);
    while (t->rank == 1 && !atomic_load(&shared->over)) /* a rank of the other node, which is late as well */
        rest(20);
    TEST_OK(t, comm, allreduce(comm));
    rondo_comm_destroy(comm);
}

static int user_asks(void)
{
    memset(shared, 0, sizeof *shared);
    return test_run(TEST_PROCESSES, 4, 60, asks, NULL);
}

static int run(uint64_t seed, kind_t kind, int nranks, int nodes)
{
    uint64_t random = seed;

    memset(shared, 0, sizeof *shared);
    sem_init(&shared->all_over, 1, 0);
    shared->kind = kind;
    shared->nodes = nodes;
    shared->nranks = nranks ? nranks : 2 + (int)test_below(&random, 3);
    shared->odd = (int)test_below(&random, (unsigned)shared->nranks);
    shared->calls = (int)test_below(&random, 4);
    int before = unsure, bad = test_run(TEST_PROCESSES, shared->nranks, 60, body, NULL) || judge();
    printf("blamed: %s: %s\n", kinds[kind].name, bad ? "wrong" : unsure > before ? "unknown" : kinds[kind].name);
    if (bad)
        printf("late: seed %llu: %s, %d ranks on %d nodes, odd %d, after %d calls\n", (unsigned long long)seed,
               kinds[shared->kind].name, shared->nranks, shared->nodes, shared->odd, shared->calls);
    return bad;
}

static int one(uint64_t seed, int nodes)
{
    kind_t kind = (kind_t)(seed % NUM_KINDS);

    return run(seed, kind, 0, kind != ORDER && nodes ? 2 : 1);
}

/* Each rank is alone on its node. */
static int along_a_ring(uint64_t seed)
{
    setenv("RONDO_ALGO", "allreduce=ring", 1);
    int bad = run(seed, STOPPED, RING, RING) + run(seed + 1, SLEEPS, RING, RING);
    unsetenv("RONDO_ALGO");
    return bad;
}

/* ---- in the log ---- */

/* Those that begin in this way; `named`: and that name rank 1. */
static int lines(const char *words, bool named)
{
    char line[2048];
    FILE *f = fopen(log_name, "r");
    int n = 0;

    while (f && fgets(line, sizeof line, f))
        n += strstr(line, words) && (!named || (strstr(line, "rank 1 (") && strstr(line, ") is late, by 1 call")));
    if (f)
        fclose(f);
    return n;
}

/* On a busy machine the two looks of a rank may be too near to each other to tell anything, and the next line tells. */
static bool said_all(void)
{
    return lines("a call waits for ", true) &&
           lines("a call waits for ", false) >
               lines("a call waits for 0.4 s", false) + lines("a call waits for 0.8 s", false);
}

static void logged(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm_on(t, 1);

    (void)arg;
    TEST_OK(t, comm, allreduce(comm));
    test_barrier(t);
    while (t->rank == 1 && !said_all()) /* or the test is out of time */
        rest(20);
    TEST_OK(t, comm, allreduce(comm));
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    rondo_comm_destroy(comm);
}

/* One rank of the node says it, and not all that wait: those whose turn passes while they lack a core may say it, too,
 * but hardly both times. */
static int in_the_log(void)
{
    const int waiting = 3;

    setenv("RONDO_STALL_MS", "400", 1);
    setenv("RONDO_DEBUG_FILE", log_name, 1);
    setenv("RONDO_DEBUG", "warn", 1);
    int bad = test_run(TEST_PROCESSES, 1 + waiting, 60, logged, NULL);
    int first = lines("a call waits for 0.4 s", false), second = lines("a call waits for 0.8 s", false);
    if (first < 1 || second < 1 || (first >= waiting && second >= waiting)) {
        printf("late: %d lines of the log say it in the first place, %d in the second\n", first, second);
        bad = 1;
    }
    setenv("RONDO_STALL_MS", "0", 1);
    unsetenv("RONDO_DEBUG_FILE");
    unlink(log_name);
    return bad;
}

int main(int argc, char **argv)
{
    uint64_t seed = 32100;
    int count = 2 * NUM_KINDS, nodes = 0, trials_alone = 0, bad = 0;

    test_begin("late", 600);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--count") == 0)
            count = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--nodes") == 0)
            nodes = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--alone") == 0)
            trials_alone = atoi(argv[i + 1]);
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    snprintf(log_name, sizeof log_name, "late-%d.log", (int)getpid());
    if (shared == MAP_FAILED)
        return 1;
    printf("late: %d trials from seed %llu\n", count, (unsigned long long)seed);
    if (!trials_alone)
        bad += in_the_log() + user_asks() + along_a_ring(seed);
    for (int i = 0; i < count; i++)
        bad += one(seed + (uint64_t)i, nodes == 2 || (nodes == 0 && i / NUM_KINDS % 2));
    printf("late: %d wrong, %d trials without all of it\n", bad, unsure);
    return bad != 0 || unsure > 1 + far / 3;
}
