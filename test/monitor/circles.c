/* Ranks that wait for each other in a circle, in different communicators or in calls of one that do not meet: without a
 * time limit, and long before RONDO_STALL_MS, the log says who waits where. Nothing fails by that: when it has been
 * said, each rank aborts. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/harness.h"

#define RANKS 3 /* at most */

typedef enum { TWO_ORDERS, RING, RECV, ONE_COMM, TWO_NODES, NUM_KINDS } kind_t;

static const struct {
    const char *name, *words;
    int nranks;
} kinds[NUM_KINDS] = {
    {"two communicators in two orders", "in different communicators, which they must call in one order: ", 2},
    {"three communicators in a ring", "in different communicators, which they must call in one order: ", 3},
    {"a collective and a receive in two communicators",
     "in different communicators, which they must call in one order: ", 2},
    {"a collective and a receive", "in calls that do not meet: ", 2},
    {"two communicators in two orders, on two nodes",
     "in different communicators, which they must call in one order: ", 2}};

static char log_name[64];

static void rest(void)
{
    const struct timespec time = {0, 10000000};

    nanosleep(&time, NULL);
}

/* Is there a line with the words, which names the process? A circle may be said in one of its communicators alone, as
 * it is none any more when that has been aborted. On two nodes the answer of the other one may come too late for the
 * early line on a busy machine, and then a later line has it. */
static bool said(kind_t kind, pid_t pid)
{
    char line[4096], who[32];
    bool found = false;
    FILE *f = fopen(log_name, "r");

    snprintf(who, sizeof who, ":%d)", (int)pid);
    while (f && !found && fgets(line, sizeof line, f))
        found = strstr(line, kind == TWO_NODES ? "a call waits for " : "a call waits for 1 s: ") &&
                strstr(line, " s: ranks wait for each other ") && strstr(line, kinds[kind].words) && strstr(line, who);
    if (f)
        fclose(f);
    return found;
}

typedef struct {
    kind_t kind;
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

/* Makes calls that all ranks make, and then one that the others do not. */
static void wait_in(test_rank_t *t, kind_t kind, rondo_comm_t comm, bool receives)
{
    watcher_t watcher = {kind, comm};
    int32_t value = 1, sum = 0;
    pthread_t thread;

    test_barrier(t);
    if (pthread_create(&thread, NULL, watch, &watcher))
        test_stop(t, "no thread");
    rondo_result_t result = receives ? rondo_recv(&sum, 1, RONDO_INT32, 0, comm, NULL)
                                     : rondo_allreduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
    if (result != RONDO_ERR_ABORTED && result != RONDO_ERR_REMOTE)
        test_fail(t, "it ended with %s", rondo_result_string(result));
    pthread_join(thread, NULL);
}

static void circle(test_rank_t *t, void *arg)
{
    const kind_t kind = *(const kind_t *)arg;
    const int place = kind == ONE_COMM ? 0 : t->rank;

    test_play_node(t, kind == TWO_NODES ? 2 : 1);
    rondo_comm_t comms[RANKS + 1] = {named(t, "first"), named(t, "second"), NULL, named(t, "world")};

    test_note(t, "%s", kinds[kind].name);
    for (int i = 0; i < RANKS && kind == RING; i++) {
        if (comms[i])
            rondo_comm_destroy(comms[i]);
        comms[i] = pair(t, comms[RANKS], i);
    }
    wait_in(t, kind, comms[place], t->rank == 1 && (kind == RECV || kind == ONE_COMM));
    test_barrier(t);
    for (int i = 0; i <= RANKS; i++)
        if (comms[i] && i != place)
            rondo_comm_abort(comms[i]);
}

static int part(int i)
{
    kind_t kind = (kind_t)i;

    if (kind == TWO_NODES && !test_has_network())
        return 0;
    snprintf(log_name, sizeof log_name, "circles-%d.log", (int)getpid());
    setenv("RONDO_DEBUG_FILE", log_name, 1);
    setenv("RONDO_DEBUG", "warn", 1);
    setenv("RONDO_STALL_MS", kind == TWO_NODES ? "4000" : "60000", 1);
    int bad = test_run(TEST_PROCESSES, kinds[kind].nranks, 60, circle, &kind);
    unlink(log_name);
    printf("circles: %s: %s\n", kinds[kind].name, bad ? "WRONG" : "named");
    return bad;
}

int main(void)
{
    test_begin("circles", 120);
    return test_at_once(NUM_KINDS, part) != 0;
}
