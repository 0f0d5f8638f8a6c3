/* Ranks that wait for each other in a circle, in different communicators or in calls of one that do not meet, on one to
 * four nodes: without a time limit, and long before RONDO_STALL_MS, the log says who waits where. Nothing fails by
 * that: when it has been said, each rank aborts. One case alone: circles NUMBER. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/harness.h"

#define RANKS 4 /* at most */
#define ORDER "in different communicators, which they must call in one order: "
#define MEET "in calls that do not meet: "

typedef enum { RING = 1, RECV = 2, ONE_COMM = 4, LAST_RECV = 8, BYSTANDER = 16, ALL_AND_PAIR = 32 } what_t;

typedef struct {
    const char *name, *words;
    int nranks, nodes, what;
} kind_t;

static const kind_t kinds[] = {
    {"two communicators in two orders", ORDER, 2, 1, 0},
    {"three communicators in a ring", ORDER, 3, 1, RING},
    {"a collective and a receive in two communicators", ORDER, 2, 1, RECV},
    {"a collective and a receive", MEET, 2, 1, RECV | ONE_COMM},
    {"two communicators in two orders, on two nodes", ORDER, 2, 2, 0},
    {"three communicators in a ring, on three nodes", ORDER, 3, 3, RING},
    {"four communicators in a ring, on two nodes", ORDER, 4, 2, RING},
    {"a ring of four nodes, and a receive", ORDER, 4, 4, RING | LAST_RECV},
    {"a collective and a receive in two communicators, on two nodes", ORDER, 2, 2, RECV},
    {"a collective and a receive, on two nodes", MEET, 2, 2, RECV | ONE_COMM},
    {"two orders, and one that waits for them", ORDER, 3, 1, BYSTANDER},
    {"a collective of four nodes, and one of two of them", ORDER, 4, 4, ALL_AND_PAIR},
};
#define KINDS ((int)(sizeof kinds / sizeof kinds[0]))

static char log_name[64];

static void rest(void)
{
    const struct timespec time = {0, 10000000};

    nanosleep(&time, NULL);
}

/* Is there a line with the words, which names the process? A circle may be said in one of its communicators alone, as
 * it is none any more when that has been aborted. On several nodes what others say may come too late for the early line
 * on a busy machine, and then a later line has it. */
static bool said(const kind_t *kind, pid_t pid)
{
    char line[4096], who[32];
    bool found = false;
    FILE *f = fopen(log_name, "r");

    snprintf(who, sizeof who, ":%d)", (int)pid);
    while (f && !found && fgets(line, sizeof line, f))
        found = strstr(line, kind->nodes > 1 ? "a call waits for " : "a call waits for 1 s: ") &&
                strstr(line, " s: ranks wait for each other ") && strstr(line, kind->words) && strstr(line, who);
    if (f)
        fclose(f);
    return found;
}

typedef struct {
    const kind_t *kind;
    rondo_comm_t comm;
} watcher_t;

static void *watch(void *arg)
{
    watcher_t *w = arg;

    while (!said(w->kind, getpid())) /* or the test is out of time */
        rest();
    rondo_comm_abort(w->comm);
    return NULL;
}

static rondo_comm_t named(test_rank_t *t, const char *name)
{
    rondo_config_t config = test_host_config();

    config.name = name;
    return test_comm(t, &config);
}

/* Returns the communicator of a rank and the next one, on both; NULL on others. */
static rondo_comm_t pair(test_rank_t *t, rondo_comm_t world, int first)
{
    const bool in = t->rank == first || t->rank == (first + 1) % t->nranks;
    rondo_comm_t made = NULL;

    TEST_OK(t, world, rondo_comm_split(world, in ? 0 : -1, t->rank, &made, NULL));
    return made;
}

/* Waits in a call whose other ranks are elsewhere, until that is said; a bystander until another one has said it. */
static void wait_in(test_rank_t *t, const kind_t *kind, rondo_comm_t comm, int from)
{
    watcher_t watcher = {kind, comm};
    const bool watches =
        !(kind->what & (BYSTANDER | ALL_AND_PAIR)) || t->rank == 0 || t->rank == (kind->nodes > 1 ? 3 : 1);
    int32_t value = 1, sum = 0;
    pthread_t thread;

    test_barrier(t);
    if (watches && pthread_create(&thread, NULL, watch, &watcher))
        test_stop(t, "no thread");
    rondo_result_t result = from >= 0 ? rondo_recv(&sum, 1, RONDO_INT32, from, comm, NULL)
                                      : rondo_allreduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
    if (result != RONDO_ERR_ABORTED && result != RONDO_ERR_REMOTE)
        test_fail(t, "it ended with %s", rondo_result_string(result));
    if (watches)
        pthread_join(thread, NULL);
}

/* The rank of `comm` from which this one receives; -1: it is in a collective. */
static int receives_from(const test_rank_t *t, const kind_t *kind)
{
    if (kind->what & LAST_RECV) /* the pair of the last rank and the first one, which is rank 0 there */
        return t->rank == t->nranks - 1 ? 0 : -1;
    return kind->what & RECV && t->rank == 1 ? 0 : -1;
}

static void circle(test_rank_t *t, void *arg)
{
    const kind_t *kind = arg;
    const int world = RANKS;
    int place = kind->what & ONE_COMM ? 0 : t->rank;

    test_play_node(t, kind->nodes);
    rondo_comm_t comms[RANKS + 1] = {named(t, "first"), named(t, "second"), NULL, NULL, named(t, "world")};

    test_note(t, "%s", kind->name);
    for (int i = 0; i < t->nranks && kind->what & RING; i++) {
        if (comms[i])
            rondo_comm_destroy(comms[i]);
        comms[i] = pair(t, comms[world], i);
    }
    if (kind->what & ALL_AND_PAIR) {
        comms[2] = pair(t, comms[world], 3);
        place = t->rank == 3 ? 2 : world;
    }
    if (kind->what & BYSTANDER && t->rank == 2)
        place = 0; /* it waits for rank 1 there, as rank 0 does */
    wait_in(t, kind, comms[place], receives_from(t, kind));
    test_barrier(t);
    for (int i = 0; i <= RANKS; i++)
        if (comms[i] && i != place)
            rondo_comm_abort(comms[i]);
}

static int part(int i)
{
    kind_t kind = kinds[i];

    if (kind.nodes > 1 && !test_has_network())
        return 0;
    snprintf(log_name, sizeof log_name, "circles-%d.log", (int)getpid());
    setenv("RONDO_DEBUG_FILE", log_name, 1);
    setenv("RONDO_DEBUG", "warn", 1);
    setenv("RONDO_STALL_MS", kind.nodes > 1 ? "4000" : "60000", 1);
    int bad = test_run(TEST_PROCESSES, kind.nranks, 60, circle, &kind);
    unlink(log_name);
    printf("circles: %s: %s\n", kind.name, bad ? "WRONG" : "named");
    return bad;
}

int main(int argc, char **argv)
{
    test_begin("circles", 120);
    return argc > 1 ? part(atoi(argv[1])) != 0 : test_at_once(KINDS, part) != 0;
}
