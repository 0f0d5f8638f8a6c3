/* A process that may write no files (`ulimit -f 0`), whose standard error is a file: what rondo would write there or
 * leave behind is refused by an error or a log line that names the limit, and SIGXFSZ, which would end the process, is
 * never raised. One that the program keeps blocked stays pending. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/harness.h"

static char dir[] = "/tmp/rondo-file_limit-XXXXXX";

static void limit_files(test_rank_t *t, rlim_t bytes)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
        test_stop(t, "no limit");
    limit.rlim_cur = bytes;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        test_stop(t, "the limit cannot be set");
}

static void dump(test_rank_t *t, rondo_comm_t comm, int fd)
{
    char path[128];

    snprintf(path, sizeof path, "%s/dump", dir);
    TEST_GIVES(t, comm, RONDO_ERR_SYSTEM, rondo_dump(path, 0));
    test_sentence(t, "ulimit -f");
    TEST_TRUE(t, access(path, F_OK) != 0);
    TEST_GIVES(t, comm, RONDO_ERR_SYSTEM, rondo_dump_fd(fd, RONDO_DUMP_JSON));
    TEST_GIVES(t, comm, RONDO_ERR_SYSTEM, rondo_dump_fd(fd, RONDO_DUMP_RECORD));
}

/* A file that is asked for at creation, and one that a thread writes. */
static void make_another(test_rank_t *t)
{
    rondo_config_t config = test_host_config();
    char path[128];

    snprintf(path, sizeof path, "%s/topology", dir);
    setenv("RONDO_TOPO_DUMP_FILE", path, 1);
    snprintf(path, sizeof path, "%s/metrics", dir);
    setenv("RONDO_METRICS", path, 1);
    TEST_OK(t, NULL, rondo_comm_destroy(test_comm(t, &config)));
}

static int count_pending(void)
{
    sigset_t pending;

    sigpending(&pending);
    return sigismember(&pending, SIGXFSZ);
}

static void body(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    char path[128];
    sigset_t set;
    float one = 1;

    (void)arg;
    setenv("RONDO_DEBUG", "warn", 1);
    signal(SIGXFSZ, SIG_DFL);
    snprintf(path, sizeof path, "%s/file", dir);
    rondo_comm_t comm = test_comm(t, &config);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), errors = fcntl(2, F_DUPFD_CLOEXEC, 3);
    limit_files(t, 0);
    dup2(fd, 2);
    rondo_result_t wrong = rondo_allreduce(&one, &one, 1, (rondo_type_t)99, RONDO_SUM, comm, NULL);
    dump(t, comm, fd);
    make_another(t);
    bool none = count_pending() == 0;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    raise(SIGXFSZ);
    (void)rondo_allreduce(&one, &one, 1, (rondo_type_t)99, RONDO_SUM, comm, NULL);
    bool one_left = count_pending() == 1;
    dup2(errors, 2);
    TEST_TRUE(t, wrong == RONDO_ERR_INVALID_ARGUMENT);
    TEST_TRUE(t, none);
    TEST_TRUE(t, one_left);
    TEST_TRUE(t, lseek(fd, 0, SEEK_END) == 0);
    rondo_comm_destroy(comm);
    unlink(path);
}

int main(void)
{
    test_begin("file_limit", 60);
    if (!mkdtemp(dir))
        return TEST_SKIPPED;
    int bad = test_run(TEST_PROCESSES, 1, 40, body, NULL) != 0;
    if (rmdir(dir) != 0) {
        printf("something is left in %s\n", dir);
        bad = 1;
    }
    return bad;
}
