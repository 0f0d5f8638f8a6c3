/* RONDO_STATUS_MS: while a rank waits in a call, the log says again and again how far it is and for whom it waits, and
 * of each communicator; and nothing is said without the variable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/harness.h"
#include "util/text.h"

static char file[] = "/tmp/rondo-status_lines-XXXXXX";

static int says(const char *word)
{
    static char text[1 << 16];

    text_read(file, text, sizeof text);
    return strstr(text, word) != NULL;
}

static rondo_result_t add_up(rondo_comm_t comm)
{
    int one = 1, sum;

    return rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
}

/* Rank 1 comes when the log says that rank 0 waits for it. */
static void body(test_rank_t *t, void *arg)
{
    const int lines = *(int *)arg;
    rondo_config_t config = RONDO_CONFIG_INIT;

    config.name = "first";
    rondo_comm_t comm = test_comm(t, &config), other;
    config.name = "second";
    TEST_OK(t, comm, rondo_comm_split(comm, 0, 0, &other, &config));
    for (int i = 0; i < 3; i++)
        TEST_OK(t, other, add_up(other));
    if (t->rank == 1 && lines) {
        const char *wait =
            "2 collectives, 0 sends, 0 recvs, 8 bytes; in allreduce, collective number 3 (1 int32, sum), "
            "waits for rank 1";
        TEST_OK(t, comm, add_up(comm));
        test_note(t, "looks at the log");
        int ms = 0;
        while (ms < 20000 && !(says(wait) && says("second: 3 collectives")))
            usleep(10000), ms += 10;
        TEST_TRUE(t, says(wait) && says("second: 3 collectives"));
    } else {
        TEST_OK(t, comm, add_up(comm));
        usleep(lines ? 0 : 200000);
    }
    TEST_OK(t, comm, add_up(comm));
    TEST_OK(t, comm, rondo_comm_destroy(comm));
    TEST_OK(t, other, rondo_comm_destroy(other));
}

int main(void)
{
    int bad = 0, fd = mkstemp(file), lines = 0;

    test_begin("status_lines", 60);
    setenv("RONDO_DEBUG", "warn", 1);
    setenv("RONDO_DEBUG_FILE", file, 1);
    bad |= test_run(TEST_PROCESSES, 2, 30, body, &lines) != 0;
    if (says("collectives")) {
        printf("there are lines without RONDO_STATUS_MS\n");
        bad = 1;
    }
    lines = 1;
    setenv("RONDO_STATUS_MS", "50", 1);
    bad |= test_run(TEST_PROCESSES, 2, 30, body, &lines) != 0;
    bad |= ftruncate(fd, 0) != 0 || test_run(TEST_THREADS, 2, 30, body, &lines) != 0;
    close(fd);
    unlink(file);
    return bad;
}
