/* Plans of calls that come in turns are kept: each is made once, also where two of them have one hash. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/harness.h"

#define SUMS 16
#define ROUNDS 3
#define KINDS (SUMS + 3)

static rondo_result_t call(int kind, rondo_comm_t comm)
{
    static char in[64 * TEST_MAX_RANKS], out[64 * TEST_MAX_RANKS];

    switch (kind) {
    case SUMS: /* this one and the next had one hash of seven bits */
        return rondo_scatter(in, out, 64, RONDO_UINT8, 0, comm, NULL);
    case SUMS + 1:
        return rondo_barrier(comm, NULL);
    case SUMS + 2:
        return rondo_broadcast(in, out, 8, RONDO_UINT8, 0, comm, NULL);
    default:
        return rondo_allreduce(in, out, (size_t)kind + 1, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    }
}

/* Returns how many plans rank 0 has chosen, by its lines of the log. */
static int plans_made(const char *file)
{
    char line[512];
    int made = 0;
    FILE *log = fopen(file, "r");

    while (log && fgets(line, sizeof line, log))
        made += strstr(line, " 0/2 ") && strstr(line, ", root 0: ");
    if (log)
        fclose(log);
    return made;
}

static void body(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL);

    for (int round = 0; round < ROUNDS; round++)
        for (int kind = 0; kind < KINDS; kind++)
            TEST_OK(t, comm, call(kind, comm));
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    if (t->rank == 0 && plans_made(arg) != KINDS)
        test_fail(t, "%d plans were made for %d calls that came in turns", plans_made(arg), KINDS);
}

int main(void)
{
    char file[] = "/tmp/rondo-kept-XXXXXX";
    int fd = mkstemp(file), bad = 1;

    test_begin("plans_kept", 60);
    if (fd < 0)
        return 1;
    setenv("RONDO_DEBUG", "plan", 1);
    setenv("RONDO_DEBUG_FILE", file, 1);
    bad = test_run(TEST_PROCESSES, 2, 30, body, file) != 0;
    close(fd);
    unlink(file);
    return bad;
}
