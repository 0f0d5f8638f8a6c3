/* RONDO_METRICS at a process's end: the file is gone where RONDO_ON_ERROR=exit ends it; and a file server on which
 * nothing can be removed holds up neither the end of a communicator nor exit. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <fcntl.h>
#include <unistd.h>

#include "monitor/obedient.h"
#include "util/check.h"
#include "util/harness.h"

#define RANKS 3
#define DEAD 2

enum { FAIL = 2, EXIT };

static char dir[] = "/tmp/rondo-metrics-XXXXXX";
static _Atomic int *held_up; /* shared: 1: the server does not answer */

/* The library's calls come here. */
__attribute__((visibility("default"))) int unlink(const char *path)
{
    while (strstr(path, ".prom") && !strstr(path, ".part") && atomic_load(held_up))
        usleep(1000);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

static rondo_result_t obey(int what, int rank, rondo_comm_t comm)
{
    if (what == EXIT)
        exit(0);
    return obedient_reduce(what == FAIL ? OBEDIENT_REDUCE : what, rank, comm);
}

static int has_file(int rank)
{
    char path[128];

    snprintf(path, sizeof path, "%s/rondo.%d.prom", dir, (int)obedient_pids[rank]);
    return access(path, F_OK) == 0;
}

static void start(void)
{
    obedient_start(RANKS, "job", obey);
    obedient_order_all(OBEDIENT_REDUCE);
    for (int r = 0; r < RANKS; r++) {
        for (int ms = 0; ms < 20000 && !has_file(r); ms++)
            obedient_pause(1);
        CHECK(has_file(r), "rank %d has no file", r);
    }
}

static void on_error(void)
{
    setenv("RONDO_ON_ERROR", "exit", 1);
    start();
    unsetenv("RONDO_ON_ERROR");
    kill(obedient_pids[DEAD], SIGKILL);
    for (int r = 0; r < RANKS; r++)
        if (r != DEAD)
            obedient_order(r, FAIL);
    for (int r = 0; r < RANKS; r++)
        obedient_state(r, 'Z');
    for (int r = 0; r < RANKS; r++)
        CHECK(r == DEAD || !has_file(r), "the file of rank %d is left by RONDO_ON_ERROR=exit", r);
    obedient_end();
}

static void slow(int what, const char *name)
{
    start();
    atomic_store(held_up, 1);
    for (int r = 0; r < RANKS; r++)
        obedient_order(r, what);
    for (int r = 0; r < RANKS; r++)
        obedient_state(r, 'Z');
    CHECK(!failures, "%s waits for a file server", name);
    atomic_store(held_up, 0);
    obedient_end();
}

int main(void)
{
    char path[128];

    test_begin("monitor/metrics_end", 90);
    held_up = mmap(NULL, sizeof *held_up, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (held_up == MAP_FAILED || !mkdtemp(dir))
        return 1;
    snprintf(path, sizeof path, "%s/rondo.%%p.prom", dir);
    setenv("RONDO_METRICS", path, 1);
    setenv("RONDO_METRICS_MS", "1", 1);
    setenv("RONDO_DEBUG", "none", 1);
    on_error();
    slow(OBEDIENT_END, "the end of a communicator");
    slow(EXIT, "exit");
    snprintf(path, sizeof path, "rm -rf %s", dir);
    CHECK(system(path) == 0, "cannot remove %s", dir);
    printf("%d failures\n", failures);
    return failures != 0;
}
