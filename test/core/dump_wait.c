/* RONDO_DUMP_WAIT_MS: a process that ends while a dump is being written waits for it, in exit and where a failure ends
 * it, and gives up after that time; a forked child does not wait for its parent's. The file server is the test's own:
 * it answers when it is told to. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/check.h"
#include "util/harness.h"
#include "util/slow_open.h"

#define WAITS_MS 200 /* in which one that does not wait has ended */

static char dir[] = "/tmp/rondo-dump_wait-XXXXXX";
static struct {
    _Atomic int held_up; /* the server does not answer */
    _Atomic int asked;   /* files that it was asked for */
    _Atomic int ending;  /* the process is about to end */
} * shared;

static void serve(const char *path)
{
    if (!strstr(path, "/rondo_dump"))
        return;
    atomic_fetch_add(&shared->asked, 1);
    while (atomic_load(&shared->held_up))
        usleep(1000);
}

static rondo_comm_t make(int on_error)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_unique_id_t id;
    rondo_comm_t comm = NULL;

    config.name = "ends";
    config.on_error = on_error;
    if (rondo_unique_id_create(&id) != RONDO_SUCCESS || rondo_comm_create(&comm, 1, &id, 0, &config) != RONDO_SUCCESS)
        _exit(1);
    return comm;
}

static void *ask(void *arg)
{
    (void)rondo_dump(NULL, 0);
    return arg;
}

/* A thread dumps, and is held up. */
static void begin_dump(void)
{
    pthread_t thread;

    make(-1);
    if (pthread_create(&thread, NULL, ask, NULL) != 0)
        _exit(1);
    while (!atomic_load(&shared->asked))
        usleep(1000);
}

static void in_exit(void)
{
    begin_dump();
    atomic_store(&shared->ending, 1);
    exit(3);
}

static void in_child(void)
{
    int status;

    begin_dump();
    pid_t pid = fork();
    if (pid == 0)
        exit(3);
    waitpid(pid, &status, 0); /* the test is out of time if it waits */
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* A communicator that cannot be made ends the process, while a dump is being written. */
static void by_failure(void)
{
    rondo_unique_id_t id = {{0}};
    rondo_comm_t comm;

    begin_dump();
    setenv("RONDO_ON_ERROR", "exit", 1);
    atomic_store(&shared->ending, 1);
    (void)rondo_comm_create(&comm, 1, &id, 0, NULL);
    _exit(1);
}

static int dumps(void)
{
    char line[128];

    snprintf(line, sizeof line, "tail -q -c 4 %s/rondo_dump.*.json 2>/dev/null | grep -q ']}'", dir);
    return system(line) == 0;
}

static void clean(void)
{
    char line[64];

    snprintf(line, sizeof line, "rm -rf %s/*", dir);
    CHECK(system(line) == 0, "cannot remove what is in %s", dir);
}

/* Does the process go on while the server does not answer? One that does not wait is seen as soon as it has ended. */
static int waits(pid_t pid)
{
    struct pollfd ended = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    int n = ended.fd < 0 ? 0 : poll(&ended, 1, WAITS_MS); /* a kernel before 5.3: only by the dump that is left */

    if (ended.fd >= 0)
        close(ended.fd);
    return n == 0;
}

/* `answers`: while the process is ending. */
static void end(const char *name, void (*body)(void), const char *wait_ms, int answers, int code)
{
    int status = 0;

    atomic_store(&shared->held_up, 1);
    atomic_store(&shared->asked, 0);
    atomic_store(&shared->ending, 0);
    setenv("RONDO_DUMP_WAIT_MS", wait_ms, 1);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        body();
    while (answers && !atomic_load(&shared->ending))
        usleep(1000);
    if (answers) {
        CHECK(waits(pid), "%s: it has not waited", name);
        atomic_store(&shared->held_up, 0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == code, "%s: status %x", name,
          (unsigned)status);
    CHECK(dumps() == answers, "%s: there is %s dump", name, answers ? "no" : "a");
    clean();
}

int main(void)
{
    test_begin("dump_wait", 60);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || !mkdtemp(dir))
        return 1;
    setenv("RONDO_DUMP_DIR", dir, 1);
    end("exit", in_exit, "600000", 1, 3);
    end("exit, and the server does not answer", in_exit, "50", 0, 3);
    end("exit, without waiting", in_exit, "0", 0, 3);
    end("a failure", by_failure, "600000", 1, 134);
    end("a failure, and the server does not answer", by_failure, "50", 0, 134);
    end("a forked child", in_child, "600000", 0, 3);
    CHECK(rmdir(dir) == 0, "%s is not empty", dir);
    printf("%d failures\n", failures);
    return failures != 0;
}
