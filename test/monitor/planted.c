/* Situations in which two things are wrong at once, or one that is easily taken for another: the rank that is the first
 * cause is decided here before the ranks begin, and it alone is named, by rondo-ras or, where there is a time limit, by
 * the error of every rank that waited.
 *
 *     planted [--seed S] [--count N] */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/obedient.h"
#include "util/check.h"
#include "util/harness.h"

#define LIMIT_MS 1500
#define GO 2
#define APART_MS 100 /* two causes */

typedef enum { STOPPED_AND_SLEEPS, SHARED, LOCK, THREAD, EXITS, KILLED_TWICE, ABORT_AND_KILL, NUM_KINDS } kind_t;

static const struct {
    const char *name, *why; /* what is said behind "rank 1 (host:pid)" */
} kinds[NUM_KINDS] = {{"one is stopped, another one sleeps", " is stopped"},
                      {"ranks of two communicators, one of which is held up", " is late"},
                      {"one waits for a lock of its program's", " is late"},
                      {"one thread waits elsewhere, another one in a collective", " is late"},
                      {"one ends in order, without destroying", NULL},
                      {"two are killed", NULL},
                      {"one aborts, another one is killed", NULL}};

static struct shared {
    kind_t kind;
    int nranks, odd, second, calls, limited;
    _Atomic int acted, over;
    char said[OBEDIENT_MOST][1024]; /* the error of each rank */
} * shared;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static rondo_result_t one_call(rondo_comm_t comm)
{
    float in[8] = {1}, out[8];

    return rondo_allreduce(in, out, 8, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
}

static void until_over(void)
{
    while (!atomic_load(&shared->over))
        obedient_pause(50);
}

static void *holds_lock(void *arg)
{
    pthread_mutex_lock(&lock);
    atomic_store((_Atomic int *)arg, 1);
    until_over();
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *calls_part(void *part)
{
    for (int i = 0; i < 2; i++)
        (void)one_call(part);
    return NULL;
}

static void wait_for_lock(void)
{
    _Atomic int held = 0;
    pthread_t thread;

    if (pthread_create(&thread, NULL, holds_lock, &held))
        return;
    while (!held)
        obedient_pause(1);
    pthread_mutex_lock(&lock);
    pthread_join(thread, NULL);
}

/* What holds up the others, and is over when they are. */
static void act(int rank, rondo_comm_t comm)
{
    while (rank == shared->second && !atomic_load(&shared->acted))
        obedient_pause(1);
    if (rank == shared->second)
        obedient_pause(APART_MS);
    atomic_store(&shared->acted, 1);
    switch (shared->kind) {
    case STOPPED_AND_SLEEPS:
        if (rank == shared->odd)
            raise(SIGSTOP);
        break;
    case LOCK:
        wait_for_lock();
        break;
    case EXITS:
        exit(0);
    case KILLED_TWICE:
        raise(SIGKILL);
        break;
    case ABORT_AND_KILL:
        if (rank == shared->second)
            raise(SIGKILL);
        (void)rondo_comm_abort(comm);
        return;
    default:
        break;
    }
    until_over();
}

/* All ranks have made the same calls, each by one thread; then come the trouble, and the call that waits for it. */
static rondo_result_t go(int rank, rondo_comm_t world)
{
    const bool in_part = shared->kind == THREAD || rank != shared->nranks - 1;
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t part = NULL;
    pthread_t thread;
    rondo_result_t result;

    config.device = RONDO_DEVICE_HOST;
    config.name = "part";
    result = rondo_comm_split(world, in_part ? 0 : -1, rank, &part, &config);
    for (int i = 0; result == RONDO_SUCCESS && i < shared->calls; i++)
        result = one_call(world);
    if (shared->kind == THREAD) { /* its first call all make, and the second one nobody else does */
        if (rank == shared->odd && pthread_create(&thread, NULL, calls_part, part))
            return RONDO_ERR_SYSTEM;
        if (rank != shared->odd)
            result = one_call(part);
    }
    if (result == RONDO_SUCCESS && shared->limited) {
        (void)rondo_timeout_set(world, LIMIT_MS);
        if (part)
            (void)rondo_timeout_set(part, LIMIT_MS);
    }
    if (rank == shared->odd || rank == shared->second) {
        act(rank, world);
        return result;
    }
    rondo_comm_t comm = shared->kind == SHARED && in_part ? part : world;
    if (result == RONDO_SUCCESS) /* else the odd one has aborted before all were through */
        result = one_call(comm);
    snprintf(shared->said[rank], sizeof shared->said[rank], "%s", rondo_last_error(comm));
    return result;
}

static rondo_result_t obey(int what, int rank, rondo_comm_t comm)
{
    return what == GO ? go(rank, comm) : RONDO_SUCCESS;
}

/* Is the odd one the first rank that the sentence names, and for that reason? */
static bool names_odd(const char *text)
{
    char who[64];
    const char *why = kinds[shared->kind].why;
    const char *any = strstr(text, "rank ");

    snprintf(who, sizeof who, "rank %d (", shared->odd);
    if (!any || strncmp(any, who, strlen(who)) != 0)
        return false;
    any = strchr(any, ')');
    return any && (!why || strncmp(any + 1, why, strlen(why)) == 0);
}

/* Ranks of another node see of two that hold them up the one that is on their own. */
static bool names_second(const char *text)
{
    char who[64];

    snprintf(who, sizeof who, ": rank %d (", shared->second);
    return shared->kind == STOPPED_AND_SLEEPS && obedient_nodes > 1 && strstr(text, who) && strstr(text, ") is late");
}

/* Another rank may be named in the communicator in which the odd one's other thread waits, and the sentence leads on.
 */
static bool leads_to_odd(const char *text)
{
    char who[64];

    snprintf(who, sizeof who, "in the end it waits for rank %d (", shared->odd);
    return names_odd(text) || strstr(text, who);
}

/* Does a line of `who` on each communicator that is held up name it? */
static bool who_is_right(int status)
{
    int lines = 0;

    for (char *line = strtok(obedient_text, "\n"); line; line = strtok(NULL, "\n")) {
        const char *colon = line[0] == '\'' ? strstr(line, "': ") : NULL;
        if (!colon)
            continue;
        lines++;
        if (!names_odd(colon) && !(shared->kind == THREAD && strncmp(line, "'part'", 6) == 0 && leads_to_odd(colon)))
            return false;
    }
    return (status == 3 || status == 4) && lines > 0;
}

static void ask_who(void)
{
    char text[sizeof obedient_text];
    bool right = false;
    int status = 0;

    for (int i = 0; i < 8 && !right; i++) { /* the first may be asked before all wait */
        status = obedient_ras("who", obedient_pids[shared->nranks - 1]);
        memcpy(text, obedient_text, sizeof text);
        right = who_is_right(status);
    }
    CHECK(right, "%s, rank %d: exit %d: %s", kinds[shared->kind].name, shared->odd, status, text);
}

static bool waits(int rank)
{
    return rank != shared->odd && rank != shared->second;
}

static void compare_errors(void)
{
    for (int r = 0; r < shared->nranks; r++)
        if (waits(r) && obedient_settled(r))
            CHECK(names_odd(shared->said[r]) || names_second(shared->said[r]), "%s, rank %d: rank %d says: %s",
                  kinds[shared->kind].name, shared->odd, r, shared->said[r]);
}

static void trial(uint64_t seed)
{
    uint64_t random = test_mix(seed);

    memset(shared, 0, sizeof *shared);
    shared->kind = (kind_t)(seed % NUM_KINDS);
    shared->nranks = 3 + (int)test_below(&random, 4);
    shared->odd = (int)test_below(&random, (unsigned)shared->nranks - 1);
    shared->second = -1;
    shared->calls = 1 + (int)test_below(&random, 20);
    shared->limited = (int)test_below(&random, 2);
    if (shared->kind == STOPPED_AND_SLEEPS || shared->kind == KILLED_TWICE || shared->kind == ABORT_AND_KILL)
        shared->second =
            (shared->odd + 1 + (int)test_below(&random, (unsigned)shared->nranks - 2)) % (shared->nranks - 1);
    obedient_nodes = test_below(&random, 3) == 0 && test_has_network() ? 2 : 1;
    const bool fails = shared->limited || shared->kind >= EXITS;
    printf("seed %llu: %s, rank %d (and %d) of %d on %d nodes, after %d calls%s\n", (unsigned long long)seed,
           kinds[shared->kind].name, shared->odd, shared->second, shared->nranks, obedient_nodes, shared->calls,
           shared->limited ? ", limited" : "");
    fflush(stdout);
    obedient_start(shared->nranks, "world", obey);
    for (int r = 0; r < shared->nranks; r++)
        obedient_order(r, GO);
    if (fails)
        compare_errors();
    else
        ask_who();
    obedient_end();
}

int main(int argc, char **argv)
{
    uint64_t seed = NUM_KINDS; /* of which two are not seen at once */
    int count = NUM_KINDS;

    test_begin("monitor/planted", 600);
    if (!test_trials(argc, argv, &seed, &count))
        return 2;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    for (int i = 0; i < count; i++)
        trial(seed + (uint64_t)i);
    printf("%d failures\n", failures);
    return failures != 0;
}
