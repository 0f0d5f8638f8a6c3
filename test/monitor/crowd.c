/* The monitor with many: a thousand communicators of a process, and as many ranks on two cores as a machine has memory
 * for. The verdict must come within three seconds, beside the time between its two looks, and each process's record has
 * its bound. Four thousand ranks' records are judged in test/monitor/judged.c.
 *
 *     crowd [--comms N] [--ranks N]     64 communicators of two ranks, 16 ranks; 1000 and 256 are what counts
 *
 * Only with an argument is the time an error: the machine must have nothing else to do. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/obedient.h"
#include "util/check.h"
#include "util/harness.h"

#define LATE_STATUS 3
#define VERDICT_MS 3000
#define LOOKS_MS 700 /* between its two */
#define RECORD ((size_t)512 << 10)

#define MAKE 2 /* the order: the further communicators, each used once */

static int ncomms;
static bool timed; /* of so many as counts, on a machine that does nothing else */
static rondo_comm_t *comms;

static rondo_result_t obey(int what, int rank, rondo_comm_t comm)
{
    rondo_result_t result = RONDO_SUCCESS;
    int in = 1, out;

    if (what == OBEDIENT_REDUCE)
        return obedient_reduce(what, rank, comm);
    for (int i = 0; i < ncomms && result == RONDO_SUCCESS && what == MAKE; i++) {
        result = rondo_comm_split(comm, 0, rank, &comms[i], NULL);
        if (result == RONDO_SUCCESS)
            result = rondo_allreduce(&in, &out, 1, RONDO_INT32, RONDO_SUM, comms[i], NULL);
    }
    for (int i = 0; i < ncomms && result == RONDO_SUCCESS && what == OBEDIENT_END; i++)
        if (comms[i])
            result = rondo_comm_destroy(comms[i]);
    return what == OBEDIENT_END && result == RONDO_SUCCESS ? rondo_comm_destroy(comm) : result;
}

/* The length of a rank's own record, which is the first that it has opened. */
static size_t record_bytes(pid_t pid)
{
    char path[64], link[128];
    struct stat st;

    for (int fd = 0; fd < 4096; fd++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
        ssize_t n = readlink(path, link, sizeof link - 1);
        if (n <= 0)
            continue;
        link[n] = 0;
        if (strstr(link, "memfd:rondo-record") && stat(path, &st) == 0)
            return (size_t)st.st_size;
    }
    return 0;
}

/* Rank 1 is late, and is named; the time of the tool itself counts, too. */
static void verdict(int ranks, const char *of)
{
    int64_t began, ms = 0;
    int status = 0;

    for (int r = 0; r < ranks; r++)
        if (r != 1)
            obedient_order(r, OBEDIENT_REDUCE);
    for (int i = 0; i < 60 && status != LATE_STATUS; i++) { /* a rank says at its first slow miss that it waits */
        began = test_clock_us();
        status = obedient_ras("who", obedient_job);
        ms = (test_clock_us() - began) / 1000;
    }
    CHECK(status == LATE_STATUS && strstr(obedient_text, "rank 1 ("), "%s: exit %d: %.500s", of, status, obedient_text);
    printf("crowd: %s: the verdict took %lld ms, a record has %zu KB\n", of, (long long)ms,
           record_bytes(obedient_pids[0]) >> 10);
    CHECK(!timed || ms <= VERDICT_MS + LOOKS_MS, "%s: the verdict took %lld ms", of, (long long)ms);
    CHECK(record_bytes(obedient_pids[0]) && record_bytes(obedient_pids[0]) <= RECORD, "%s: a record is too long", of);
    obedient_order(1, OBEDIENT_REDUCE);
    for (int r = 0; r < ranks; r++)
        CHECK(obedient_settled(r) && !obedient[r].failed, "rank %d has failed", r);
}

static void many_comms(int n)
{
    char of[64];

    ncomms = n;
    snprintf(of, sizeof of, "%d communicators", n + 1);
    obedient_start(2, "world", obey);
    obedient_order_all(MAKE);
    verdict(2, of);
    obedient_order_all(OBEDIENT_END);
    obedient_end();
}

static void many_ranks(int n)
{
    cpu_set_t may, two;
    char of[64];
    int cpu = 0;

    snprintf(of, sizeof of, "%d ranks", n);
    ncomms = 0;
    if (sched_getaffinity(0, sizeof may, &may) == 0) {
        CPU_ZERO(&two);
        for (; cpu < CPU_SETSIZE && CPU_COUNT(&two) < 2; cpu++)
            if (CPU_ISSET(cpu, &may))
                CPU_SET(cpu, &two);
        (void)sched_setaffinity(0, sizeof two, &two);
    }
    obedient_start(n, "world", obey);
    obedient_order_all(OBEDIENT_REDUCE);
    verdict(n, of);
    obedient_order_all(OBEDIENT_END);
    obedient_end();
}

int main(int argc, char **argv)
{
    int n = 64, ranks = 16;

    timed = argc > 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--comms") == 0)
            n = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--ranks") == 0)
            ranks = atoi(argv[i + 1]);
    }
    if (ranks < 2 || ranks > OBEDIENT_MOST || n < 1)
        return 2;
    test_begin("monitor/crowd", 600);
    comms = calloc((size_t)n, sizeof *comms);
    if (!comms)
        return 1;
    many_comms(n);
    many_ranks(ranks);
    free(comms);
    printf("crowd: %d failures\n", failures);
    return failures != 0;
}
