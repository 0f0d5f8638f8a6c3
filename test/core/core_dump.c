/* A rank that dumps core is dead for the others while it still does so: the victim holds much memory, and the parent
 * sees whether the others had their errors before its process was gone. Needs a kernel that writes cores to files. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/harness.h"

#define HELD ((size_t)800 << 20)
#define LONG_US 1500000 /* a dump that takes longer than this must be noticed before it ends */

typedef struct {
    int victim;
    volatile int heard; /* survivors that have their error */
    volatile int ended; /* the victim's process is gone */
    volatile int after; /* errors that came only then */
    volatile int64_t crashed_us, ended_us;
} job_t;

static void crash(test_rank_t *t, job_t *j)
{
    char *held = mmap(NULL, HELD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (held == MAP_FAILED)
        test_stop(t, "no memory");
    memset(held, 1, HELD);
    signal(SIGSEGV, SIG_DFL);
    j->crashed_us = test_clock_us();
    raise(SIGSEGV);
}

static void body(test_rank_t *t, void *arg)
{
    job_t *j = arg;
    rondo_comm_t comm = test_comm(t, NULL);
    rondo_result_t result = RONDO_SUCCESS;
    char named[32];

    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_barrier(t); /* a rank that is still in that one would hear of the end there */
    test_note(t, "rank %d dumps core", j->victim);
    if (t->rank == j->victim)
        crash(t, j);
    while (result == RONDO_SUCCESS)
        result = rondo_barrier(comm, NULL);
    __atomic_add_fetch(j->ended ? &j->after : &j->heard, 1, __ATOMIC_SEQ_CST);
    snprintf(named, sizeof named, "rank %d ", j->victim);
    if (result != RONDO_ERR_REMOTE || !strstr(rondo_last_error(comm), named))
        test_fail(t, "%s, %s", rondo_result_string(result), rondo_last_error(comm));
    TEST_OK(t, comm, rondo_comm_abort(comm));
}

static void watch(test_director_t *d, const pid_t *pid)
{
    job_t *j = d->arg;

    if (pid[j->victim] == 0 && !j->ended) {
        j->ended_us = test_clock_us();
        j->ended = 1;
    }
}

int main(void)
{
    const struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
    job_t *j = mmap(NULL, sizeof *j, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char folder[] = "/tmp/rondo-core-XXXXXX", pattern[256] = "", path[320];
    FILE *f = fopen("/proc/sys/kernel/core_pattern", "r");

    test_begin("core_dump", 120);
    if (j == MAP_FAILED || !f || !fgets(pattern, sizeof pattern, f) || pattern[0] == '|' || pattern[0] == '/' ||
        setrlimit(RLIMIT_CORE, &most) != 0 || !mkdtemp(folder) || chdir(folder) != 0)
        return TEST_SKIPPED;
    fclose(f);
    test_director_t d = {.step = watch, .arg = j, .victims = 2, .signal = SIGSEGV};
    j->victim = 1;
    int bad = test_run_directed(&d, 3, 100, body, j);
    int64_t lasted = (j->ended ? j->ended_us : test_clock_us()) - j->crashed_us;
    printf("the dump took %lld ms; %d survivors heard of it before it was over, %d after\n", (long long)lasted / 1000,
           j->heard, j->after);
    bad |= j->after != 0 && lasted > LONG_US;
    snprintf(path, sizeof path, "rm -rf %s", folder);
    return system(path) != 0 || bad;
}
