/* RONDO_DUMP_DIR on a file server that does not answer: the calls that have failed return all the same, the process
 * makes other communicators, and the one that has failed can be aborted. When the server answers, the dumps are left.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/obedient.h"
#include "util/check.h"
#include "util/harness.h"
#include "util/slow_open.h"

#define RANKS 3
#define DEAD 2

enum { REDUCE = 1, MAKE, ABORT };

static char dir[] = "/tmp/rondo-slow-XXXXXX";
static _Atomic int *held_up; /* shared: 1: the server does not answer */

static void serve(const char *path)
{
    while (strstr(path, "/rondo_dump_") && atomic_load(held_up))
        usleep(1000);
}

static rondo_result_t make_another(void)
{
    rondo_unique_id_t id;
    rondo_comm_t comm;
    rondo_result_t result = rondo_unique_id_create(&id);

    if (result == RONDO_SUCCESS)
        result = rondo_comm_create(&comm, 1, &id, 0, NULL);
    return result == RONDO_SUCCESS ? rondo_comm_destroy(comm) : result;
}

static rondo_result_t obey(int what, int rank, rondo_comm_t comm)
{
    float in[8] = {1}, out[8];

    (void)rank;
    if (what == REDUCE) /* fails */
        return rondo_allreduce(in, out, 8, RONDO_FLOAT32, RONDO_SUM, comm, NULL) ? RONDO_SUCCESS : RONDO_ERR_INTERNAL;
    return what == MAKE ? make_another() : rondo_comm_abort(comm);
}

static void order(int what, const char *name)
{
    for (int r = 0; r < RANKS && !failures; r++)
        if (r != DEAD)
            obedient_order(r, what);
    for (int r = 0; r < RANKS && !failures; r++)
        CHECK(r == DEAD || (obedient_settled(r) && !obedient[r].failed), "rank %d: %s", r, name);
}

/* Waits until that of the dead rank has come; or the test is out of time. */
static void dumps(void)
{
    char line[256];

    snprintf(line, sizeof line, "test -s \"$(echo %s/a_job-*/rondo_dump_%d.json)\"", dir, DEAD);
    while (system(line) != 0)
        obedient_pause(10);
}

int main(void)
{
    char line[64];

    test_begin("monitor/dump_slow", 60);
    held_up = mmap(NULL, sizeof *held_up, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (held_up == MAP_FAILED || !mkdtemp(dir))
        return 1;
    atomic_store(held_up, 1);
    setenv("RONDO_DUMP_DIR", dir, 1);
    obedient_start(RANKS, "a job", obey);
    kill(obedient_pids[DEAD], SIGKILL);
    order(REDUCE, "the call that fails does not return");
    order(MAKE, "no other communicator can be made");
    order(ABORT, "the communicator cannot be aborted");
    atomic_store(held_up, 0);
    dumps();
    obedient_end();
    snprintf(line, sizeof line, "rm -rf %s", dir);
    CHECK(system(line) == 0, "cannot remove %s", dir);
    printf("%d failures\n", failures);
    return failures != 0;
}
