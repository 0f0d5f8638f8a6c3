/* Counts beyond 2^31 elements: a broadcast and an in-place allreduce of int8 between two ranks. Each element's value is
 * a function of its place, with a period that is no power of two, so that a count or offset cut to 32 bits shows.
 * Needs about 9 GB; skipped where less than 14 GB are free. RONDO_TEST_BIG=0 skips it, =1 insists.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util/harness.h"

#define COUNT (((size_t)1 << 31) + 12345677)
#define PERIOD 8191

static signed char pattern[PERIOD];

static void fill(signed char *buffer)
{
    size_t at;

    for (at = 0; at < COUNT; at += PERIOD) {
        size_t part = COUNT - at < PERIOD ? COUNT - at : PERIOD;

        memcpy(buffer + at, pattern, part);
    }
}

/* Every element is `times` the pattern's. */
static void compare(test_rank_t *t, const signed char *buffer, int times)
{
    signed char should[PERIOD];
    size_t at, i;

    for (i = 0; i < PERIOD; i++)
        should[i] = (signed char)(pattern[i] * times);
    for (at = 0; at < COUNT; at += PERIOD) {
        size_t part = COUNT - at < PERIOD ? COUNT - at : PERIOD;

        if (memcmp(buffer + at, should, part) == 0)
            continue;
        for (i = 0; buffer[at + i] == should[i];)
            i++;
        test_fail(t, "element %zu is %d, should be %d", at + i, buffer[at + i], should[i]);
        return;
    }
    TEST_TRUE(t, buffer[COUNT] == 0);
}

static void body(test_rank_t *t, void *arg)
{
    signed char *buffer = mmap(NULL, COUNT + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    rondo_comm_t comm = test_comm(t, NULL);

    (void)arg;
    if (buffer == MAP_FAILED)
        test_stop(t, "no memory");
    if (t->rank == 0)
        fill(buffer);
    test_note(t, "broadcast of %zu elements", COUNT);
    TEST_OK(t, comm, rondo_broadcast(buffer, buffer, COUNT, RONDO_INT8, 0, comm, NULL));
    compare(t, buffer, 1);
    test_note(t, "allreduce of %zu elements", COUNT);
    TEST_OK(t, comm, rondo_allreduce(buffer, buffer, COUNT, RONDO_INT8, RONDO_SUM, comm, NULL));
    compare(t, buffer, 2);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    munmap(buffer, COUNT + 4096);
}

static long available_mb(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    long kb = 0;

    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %ld kB", &kb) == 1)
            break;
    if (file)
        fclose(file);
    return kb / 1024;
}

int main(void)
{
    const char *asked = getenv("RONDO_TEST_BIG");
    long available = available_mb();
    int i;

    test_begin("counts_big", 120);
    if ((asked && atoi(asked) == 0) || (!asked && available < 14000)) {
        printf("counts_big: skipped: %ld MB free\n", available);
        return TEST_SKIPPED;
    }
    for (i = 0; i < PERIOD; i++)
        pattern[i] = (signed char)(test_mix((uint64_t)i) % 41 - 20);
    return test_run(TEST_PROCESSES, 2, 100, body, NULL) != 0;
}
