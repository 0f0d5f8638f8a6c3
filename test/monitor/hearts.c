/* Threads of the library's own that are stuck. The watch of a rank, which this test holds up, is found by the call that
 * waits in that process, and said once, with where it is; and by nobody in a rank whose watch works, or while all of
 * the process stands still. One that is stuck from its first piece of work on is found likewise. A monitor thread that
 * a hook holds up is found by the watch, and another one writes the status lines in its place.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "monitor/obedient.h"
#include "util/check.h"
#include "util/harness.h"
#include "util/text.h"

#define WAIT_MS 60000
#define WATCH "the thread that watches over other ranks is stuck"
#define MONITOR "the thread that writes dumps and calls hooks is stuck"

static char dir[] = "/tmp/rondo-hearts-XXXXXX";
static char log_of[2][64];
static _Atomic int *held; /* by rank: its watch; and the hook */
static int own;           /* the rank of this process; in the parent how many there are */

static void forked(void)
{
    own++;
}

/* What the watch calls a few times a second. */
bool __real_rd_dumps_core(pid_t pid);
bool __wrap_rd_dumps_core(pid_t pid);
bool __wrap_rd_dumps_core(pid_t pid)
{
    while (atomic_load(&held[own]))
        usleep(1000);
    return __real_rd_dumps_core(pid);
}

typedef struct {
    void *(*run)(void *);
    void *arg;
} late_t;

static void *run_late(void *arg)
{
    const late_t late = *(late_t *)arg;

    free(arg);
    obedient_pause(100);
    return late.run(late.arg);
}

/* As on a busy machine, a thread begins behind what its starter does next: the watch has something to do at once. */
int __real_rd_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);
int __wrap_rd_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);
int __wrap_rd_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    late_t *late = malloc(sizeof *late);

    *late = (late_t){run, arg};
    return __real_rd_thread_start(thread, run_late, late);
}

static void hook(const rondo_event_t *event, void *arg)
{
    (void)event;
    (void)arg;
    while (atomic_load(&held[2]))
        usleep(1000);
}

enum { HOOK = OBEDIENT_REDUCE + 1, SPLIT };

static rondo_result_t obey(int what, int rank, rondo_comm_t comm)
{
    uint64_t handle;
    rondo_comm_t part;

    if (what == HOOK)
        return rank == 0 ? rondo_hook(RONDO_HOOK_COMM_MADE, hook, NULL, &handle) : RONDO_SUCCESS;
    if (what == SPLIT) {
        rondo_result_t result = rondo_comm_split(comm, 0, rank, &part, NULL);
        return result == RONDO_SUCCESS ? rondo_comm_destroy(part) : result;
    }
    return obedient_reduce(what, rank, comm);
}

static int times(int rank, const char *word)
{
    static char text[1 << 20];
    int n = 0;

    text_read(log_of[rank], text, sizeof text);
    for (const char *at = text; (at = strstr(at, word)); at++)
        n++;
    return n;
}

static void await(int rank, const char *word, int least)
{
    for (int ms = 0; ms < WAIT_MS && times(rank, word) < least; ms += 10)
        obedient_pause(10);
    CHECK(times(rank, word) >= least, "rank %d does not say '%s' %d times", rank, word, least);
}

/* Rank 0 waits for rank 1, whose watch is held up from the start. */
static void watch_of_the_one_that_waits(void)
{
    obedient_order_all(OBEDIENT_REDUCE);
    obedient_order(0, OBEDIENT_REDUCE);
    kill(obedient_pids[0], SIGSTOP); /* for longer than it takes to be found */
    obedient_pause(7000);
    kill(obedient_pids[0], SIGCONT);
    CHECK(times(0, WATCH) == 0, "a process that stands still has a watch that is stuck");
    await(1, WATCH, 1);
    atomic_store(&held[1], 0);
    atomic_store(&held[0], 1);
    await(0, WATCH, 1);
    await(0, "it has not come back from one piece of work (thread ", 1);
    obedient_pause(3000);
    CHECK(times(0, WATCH) == 1, "it is said %d times", times(0, WATCH));
    CHECK(times(1, WATCH) == 1, "the other rank says it %d times", times(1, WATCH));
    atomic_store(&held[0], 0);
    obedient_order(1, OBEDIENT_REDUCE);
    for (int r = 0; r < 2; r++)
        CHECK(obedient_settled(r) && !obedient[r].failed, "rank %d did not go on", r);
}

/* A communicator is made, and the hook does not come back. */
static void monitor_in_a_hook(void)
{
    obedient_order_all(HOOK);
    atomic_store(&held[2], 1);
    obedient_order_all(SPLIT);
    await(0, MONITOR, 1);
    await(0, "another thread has taken its place", 1);
    await(0, "collectives,", times(0, "collectives,") + 3);
    CHECK(times(0, MONITOR) == 1 && times(1, MONITOR) == 0, "it is said %d and %d times", times(0, MONITOR),
          times(1, MONITOR));
    atomic_store(&held[2], 0);
    obedient_order_all(OBEDIENT_REDUCE);
}

int main(void)
{
    char line[128];

    test_begin("hearts", 240);
    held = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (held == MAP_FAILED || !mkdtemp(dir)) {
        perror("hearts");
        return 1;
    }
    snprintf(line, sizeof line, "%s/%%p", dir);
    setenv("RONDO_DEBUG_FILE", line, 1);
    setenv("RONDO_DEBUG", "warn", 1);
    setenv("RONDO_STATUS_MS", "500", 1);
    atomic_store(&held[1], 1);
    CHECK(pthread_atfork(NULL, forked, NULL) == 0, "no handler");
    obedient_start(2, "hearts", obey);
    for (int r = 0; r < 2; r++)
        snprintf(log_of[r], sizeof log_of[r], "%s/%d", dir, (int)obedient_pids[r]);
    watch_of_the_one_that_waits();
    monitor_in_a_hook();
    obedient_order_all(OBEDIENT_END);
    obedient_end();
    snprintf(line, sizeof line, "rm -r %s", dir);
    CHECK(system(line) == 0, "%s", line);
    return failures != 0;
}
