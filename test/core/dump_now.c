/* rondo_dump and rondo_dump_fd: what a program asks for is there, of this process or of all of the node, is read by
 * rondo-ras, and nothing is written over; the record itself is written in a signal handler, again and again while calls
 * go on. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/harness.h"
#include "util/text.h"

#define SIGNALS 40

static char dir[64];
static char record[128]; /* the file that the handler writes */
static _Atomic int handled;

static void handler(int signal)
{
    int fd = open(record, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    (void)signal;
    if (fd >= 0 && rondo_dump_fd(fd, RONDO_DUMP_RECORD) == RONDO_SUCCESS)
        atomic_fetch_add(&handled, 1);
    if (fd >= 0)
        close(fd);
}

static rondo_result_t add_up(rondo_comm_t comm, size_t count)
{
    static int in[64], out[64];

    return rondo_allreduce(in, out, count, RONDO_INT32, RONDO_SUM, comm, NULL);
}

static int has(const char *path, const char *word)
{
    static char text[1 << 20];

    text_read(path, text, sizeof text);
    return strstr(text, word) != NULL;
}

/* Runs rondo-ras, and looks for the word in what it says. */
static int ras(const char *command, const char *word)
{
    const char *build = getenv("top_builddir");
    char line[512], text[8192];

    snprintf(line, sizeof line, "%s/rondo-ras %s 2>&1", build ? build : ".", command);
    FILE *f = popen(line, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    if (f)
        pclose(f);
    if (!strstr(text, word))
        printf("%s: %s\n", line, text);
    return strstr(text, word) != NULL;
}

static void files(test_rank_t *t, rondo_comm_t comm)
{
    char path[128], command[512];

    snprintf(path, sizeof path, "%s/own", dir);
    TEST_OK(t, comm, rondo_dump(path, 0));
    TEST_TRUE(t, has(path, "\"call\": \"allreduce\", \"number\": 1, \"calls\": 5"));
    TEST_GIVES(t, NULL, RONDO_ERR_SYSTEM, rondo_dump(path, 0));
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    TEST_OK(t, comm, rondo_dump_fd(fd, RONDO_DUMP_JSON));
    close(fd);
    TEST_TRUE(t, has(path, "\"call\": \"allreduce\", \"number\": 1, \"calls\": 5"));
    unlink(path);
    snprintf(path, sizeof path, "%s/all", dir);
    TEST_OK(t, comm, rondo_dump(path, RONDO_DUMP_NODE));
    snprintf(command, sizeof command, "analyse %s", path);
    TEST_TRUE(t, ras(command, "nothing is found"));
    for (int r = 0; r < 2; r++) {
        snprintf(path, sizeof path, "%s/all/rondo_dump_%d.json", dir, r);
        TEST_TRUE(t, has(path, "\"call\": \"allreduce\", \"number\": 1, \"calls\": 5") && unlink(path) == 0);
    }
    snprintf(path, sizeof path, "%s/all", dir);
    TEST_TRUE(t, rmdir(path) == 0);
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_USAGE, rondo_dump(NULL, 0));
    setenv("RONDO_DUMP_DIR", dir, 1);
    TEST_OK(t, comm, rondo_dump(NULL, 0));
    snprintf(path, sizeof path, "%s/rondo_dump.%d.0.json", dir, (int)getpid());
    TEST_TRUE(t, unlink(path) == 0);
    test_note(t, "in several formats");
    setenv("RONDO_DUMP_FORMAT", "chrome,fr", 1);
    TEST_OK(t, comm, rondo_dump(NULL, 0));
    snprintf(path, sizeof path, "%s/rondo_dump.%d.1.trace", dir, (int)getpid());
    TEST_TRUE(t, has(path, "traceEvents") && unlink(path) == 0);
    snprintf(command, sizeof command, "test $(ls %s | wc -l) = 1 && rm %s/rondo_trace_*_1_0", dir, dir);
    TEST_TRUE(t, system(command) == 0);
    TEST_OK(t, comm, rondo_dump(NULL, RONDO_DUMP_NODE));
    snprintf(path, sizeof path, "%s/rondo_dump.%d.2", dir, (int)getpid());
    snprintf(command, sizeof command, "cd %s && rm rondo_trace_0 rondo_trace_1 rondo_dump_0.trace && cd .. && rmdir %s",
             path, path);
    TEST_TRUE(t, system(command) == 0);
    setenv("RONDO_DUMP_FORMAT", "pickle", 1);
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_dump(NULL, 0));
    unsetenv("RONDO_DUMP_FORMAT");
    unsetenv("RONDO_DUMP_DIR");
}

/* Rank 1 sends the signals while both make calls that differ, so the ring goes round. */
static void signals(test_rank_t *t, rondo_comm_t comm, pid_t pid)
{
    struct sigaction action = {.sa_handler = handler};
    char command[160];

    sigaction(SIGUSR2, &action, NULL);
    test_barrier(t);
    for (int i = 0; i < 100 * SIGNALS; i++) {
        if (t->rank == 1 && i % 100 == 0)
            kill(pid, SIGUSR2);
        TEST_OK(t, comm, add_up(comm, 1 + (size_t)i % 64));
    }
    test_barrier(t);
    if (t->rank == 0) {
        TEST_TRUE(t, atomic_load(&handled) > 0);
        raise(SIGUSR2); /* the last one, of which all is known */
        snprintf(command, sizeof command, "status --dir %s", dir);
        TEST_TRUE(t, ras(command, "allreduce, collective number 4005 (32 int32, sum)"));
        unlink(record);
    }
}

static void body(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL);
    _Atomic pid_t *pid = arg;

    if (t->rank == 0)
        atomic_store(pid, getpid());
    for (int i = 0; i < 5; i++)
        TEST_OK(t, comm, add_up(comm, 3));
    test_note(t, "files");
    test_barrier(t);
    if (t->rank == 0)
        files(t, comm);
    test_note(t, "signals");
    signals(t, comm, atomic_load(pid));
    test_barrier(t);
    rondo_comm_destroy(comm);
}

static void without_record(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL);

    (void)arg;
    TEST_GIVES(t, NULL, RONDO_ERR_UNSUPPORTED, rondo_dump("/nowhere/at all", 0));
    TEST_TRUE(t, rondo_dump_fd(1, RONDO_DUMP_RECORD) == RONDO_ERR_UNSUPPORTED);
    TEST_TRUE(t, rondo_dump_fd(1, 7) == RONDO_ERR_INVALID_ARGUMENT);
    rondo_comm_destroy(comm);
}

int main(void)
{
    int bad = 0;

    test_begin("dump_now", 60);
    strcpy(dir, "/tmp/rondo-dump_now-XXXXXX");
    if (!mkdtemp(dir))
        return 1;
    snprintf(record, sizeof record, "%s/one.rondo-record", dir);
    _Atomic pid_t *pid = mmap(NULL, sizeof *pid, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pid == MAP_FAILED)
        return 1;
    bad |= test_run(TEST_PROCESSES, 2, 30, body, pid) != 0;
    setenv("RONDO_MONITOR", "0", 1);
    bad |= test_run(TEST_PROCESSES, 1, 30, without_record, NULL) != 0;
    if (rmdir(dir) != 0) {
        printf("something is left in %s\n", dir);
        bad = 1;
    }
    return bad;
}
