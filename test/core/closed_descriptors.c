/* A program that has closed descriptors 0, 1 and 2 before it makes a communicator: what rondo and its libraries open
 * has numbers of 3 and more and does not survive exec, whoever connects meanwhile, the three are free again at the end,
 * and rondo's sentence about a wrong argument on rank 1 goes nowhere, above all not into a socket that has the number
 * of standard error: the next allreduce is right. Where standard error is a pipe that nobody reads any more, no SIGPIPE
 * is raised. Of a rank that closes all its descriptors behind a creation the others do not hear that it has died. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/harness.h"

static volatile sig_atomic_t pipes;

static void on_pipe(int signal)
{
    (void)signal;
    pipes++;
}

/* Writes the first descriptor that should not be, other than `ours`, into `text`. `exec`: all are close-on-exec. */
static void look_once(int ours, bool exec, char text[128])
{
    DIR *d = opendir("/proc/self/fd");
    *text = 0;
    for (struct dirent *e; d && (e = readdir(d)) && !*text;) {
        int fd = atoi(e->d_name);
        char link[40], to[64] = "";
        if (e->d_name[0] == '.' || fd == dirfd(d) || fd == ours)
            continue;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, to, sizeof to - 1) < 0)
            continue;
        if (fd < 3 && strncmp(to, "/memfd:rondo-closed", 19) == 0) /* a placeholder, as long as there is a network */
            continue;
        if (fd < 3 || (exec && !(fcntl(fd, F_GETFD) & FD_CLOEXEC)))
            snprintf(text, 128, "descriptor %d, %s: %s", fd, to, fd < 3 ? "below 3" : "not close-on-exec");
    }
    if (d)
        closedir(d);
}

/* What rondo's own thread has just opened has a low number until it is moved, and that thread may have no core. */
static void look(int ours, bool exec, char text[128])
{
    look_once(ours, exec, text);
    for (int ms = 0; ms < 2000 && *text; ms++) {
        usleep(1000);
        look_once(ours, exec, text);
    }
}

typedef struct outcome {
    rondo_result_t wrong, right, split;
    float sum;
    char bad[128];
} outcome_t;

/* Strangers connect to every port on which this process listens, from a process of their own, until rondo and UCX have
 * accepted some. Returns that process, which keeps its connections until it is killed. */
static pid_t strangers_come(void)
{
    int before = test_count_entries("/proc/self/fd");
    pid_t child = fork();
    if (child == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int fd = 3; fd < 200 && child == 0; fd++) {
        struct sockaddr_in at;
        socklen_t bytes = sizeof at, each = sizeof(int);
        int listens = 0;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &each) == 0 && listens &&
            getsockname(fd, (struct sockaddr *)&at, &bytes) == 0 && at.sin_family == AF_INET)
            for (int i = 0; i < 4; i++)
                connect(fcntl(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), F_DUPFD_CLOEXEC, 300),
                        (struct sockaddr *)&at, bytes);
    }
    while (child == 0)
        pause();
    for (int i = 0; i < 100 && test_count_entries("/proc/self/fd") <= before; i++)
        usleep(1000);
    return child;
}

static void use(test_rank_t *t, rondo_comm_t comm, int saved, outcome_t *o)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t part = NULL;
    float one = 1;
    config.device = RONDO_DEVICE_HOST;
    o->wrong = RONDO_ERR_INVALID_ARGUMENT;
    for (int i = 0; i < 3 && t->rank == 1 && o->wrong == RONDO_ERR_INVALID_ARGUMENT; i++)
        o->wrong = rondo_allreduce(&one, &o->sum, 1, (rondo_type_t)99, RONDO_SUM, comm, NULL);
    o->right = rondo_allreduce(&one, &o->sum, 1, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    o->split = rondo_comm_split(comm, t->rank / 2, 0, &part, &config);
    look(saved, true, o->bad);
    pid_t strangers = strangers_come();
    if (!*o->bad)
        look(saved, false, o->bad); /* UCX does not make close-on-exec what it accepts */
    if (strangers > 0 && kill(strangers, SIGKILL) == 0)
        waitpid(strangers, NULL, 0);
    if (part)
        rondo_comm_destroy(part);
}

/* Standard input, output and error are free, at the latest when a network that lingers for peers that poll late has
 * ended. */
static bool are_free_again(void)
{
    for (int ms = 0; ms < 10000; ms++) {
        if (fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0 && fcntl(2, F_GETFD) < 0)
            return true;
        usleep(1000);
    }
    return false;
}

/* Harness and results are printed through `saved`, once standard output is in its place again. */
static void closed_body(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    outcome_t o = {0};
    char host[32];
    int nodes = *(int *)arg, saved = fcntl(1, F_DUPFD_CLOEXEC, 100);
    config.device = RONDO_DEVICE_HOST;
    signal(SIGPIPE, on_pipe);
    setenv("RONDO_DEBUG", "warn", 1);
    snprintf(host, sizeof host, "node%d", t->rank % nodes);
    if (nodes > 1)
        setenv("RONDO_HOSTID", host, 1);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    close_range(3, (unsigned)saved - 1, 0); /* what the test was started with */
    close_range((unsigned)saved + 1, ~0u, 0);
    rondo_comm_t comm = test_comm(t, &config);
    use(t, comm, saved, &o);
    rondo_comm_destroy(comm);
    bool free_again = are_free_again();
    open("/dev/null", O_RDWR);
    dup2(saved, 1);
    dup2(saved, 2);
    TEST_TRUE(t, free_again);
    TEST_TRUE(t, o.wrong == RONDO_ERR_INVALID_ARGUMENT);
    TEST_GIVES(t, NULL, RONDO_SUCCESS, o.right);
    TEST_GIVES(t, NULL, RONDO_SUCCESS, o.split);
    TEST_TRUE(t, o.sum == (float)t->nranks);
    TEST_TRUE(t, pipes == 0);
    if (*o.bad)
        test_fail(t, "on %d nodes: %s", nodes, o.bad);
}

static void broken_pipe_body(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    int ends[2];
    float one = 1;
    (void)arg;
    config.device = RONDO_DEVICE_HOST;
    setenv("RONDO_DEBUG", "warn", 1);
    rondo_comm_t comm = test_comm(t, &config);
    if (pipe(ends) != 0)
        test_stop(t, "no pipe");
    close(ends[0]);
    signal(SIGPIPE, on_pipe);
    dup2(ends[1], 2);
    close(ends[1]);
    TEST_TRUE(t, rondo_allreduce(&one, &one, 1, (rondo_type_t)99, RONDO_SUM, comm, NULL) == RONDO_ERR_INVALID_ARGUMENT);
    TEST_TRUE(t, pipes == 0);
    rondo_comm_destroy(comm);
}

static void all_closed_body(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = test_comm(t, &config);
    (void)arg;
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_barrier(t);
    if (t->rank == 1) {
        close_range(3, ~0u, 0);
    } else {
        TEST_GIVES(t, comm, RONDO_ERR_REMOTE, rondo_barrier(comm, NULL));
        test_sentence(t, "rank 1 (");
        test_sentence(t, "has closed its connections, though its process goes on");
    }
    test_barrier(t);
    rondo_comm_abort(comm);
}

int main(void)
{
    int bad = 0;
    test_begin("closed_descriptors", 120);
    for (int nodes = 1; nodes <= 2; nodes++)
        bad += test_run(TEST_PROCESSES, 3, 30, closed_body, &nodes);
    bad += test_run(TEST_PROCESSES, 1, 30, broken_pipe_body, NULL);
    bad += test_run(TEST_PROCESSES, 3, 30, all_closed_body, NULL);
    return bad != 0;
}
