/* RONDO_DUMP_SIGNAL and RONDO_DUMP_PIPE: a signal, and a byte in the pipe, make a dump each, while calls go on; the
 * program's own handler is called, too, once, wherever it was installed; a forked child has neither; and with the last
 * communicator both are gone. A pipe that a killed process has left is in nobody's way. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/harness.h"
#include "util/text.h"

static char dir[64];
static volatile sig_atomic_t signals;

static void own(int signal)
{
    (void)signal;
    signals++;
}

static int has_own(void)
{
    struct sigaction now;

    return sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_handler == own;
}

/* Makes calls until the file is whole, which must be soon, and removes it. */
static void expect_dump(test_rank_t *t, rondo_comm_t comm, int number)
{
    static char text[1 << 20];
    char path[128];
    size_t n = 0;

    snprintf(path, sizeof path, "%s/rondo_dump.%d.%d.json", dir, (int)getpid(), number);
    for (int ms = 0; ms < 20000 && !(n > 3 && strcmp(text + n - 3, "]}\n") == 0); ms++) {
        TEST_OK(t, comm, rondo_barrier(comm, NULL));
        n = text_read(path, text, sizeof text);
        usleep(1000);
    }
    TEST_TRUE(t, strstr(text, "\"name\": \"asked\"") && strstr(text, "\"call\": \"barrier\""));
    TEST_TRUE(t, unlink(path) == 0);
}

static struct sigaction below;
static volatile sig_atomic_t above;

static void over(int signal, siginfo_t *info, void *context)
{
    above++;
    if (below.sa_flags & SA_SIGINFO)
        below.sa_sigaction(signal, info, context);
    else
        below.sa_handler(signal);
}

/* A handler that the program has installed over the library's stays when that goes, and calls it; so it does below the
 * next one of the library, and when that has gone, too. */
static void nested(test_rank_t *t, void *arg)
{
    struct sigaction action = {.sa_handler = own}, now;
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm;

    (void)arg;
    test_note(t, "over the library's");
    config.name = "asked";
    sigaction(SIGUSR1, &action, NULL);
    comm = test_comm(t, &config);
    action = (struct sigaction){.sa_sigaction = over, .sa_flags = SA_SIGINFO};
    TEST_TRUE(t, sigaction(SIGUSR1, &action, &below) == 0);
    TEST_OK(t, comm, rondo_comm_destroy(comm));
    for (int i = 0; i < 2; i++) {
        comm = test_comm(t, &config);
        TEST_TRUE(t, sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_sigaction != over);
        raise(SIGUSR1);
        TEST_TRUE(t, signals == i + 1 && above == i + 1);
        expect_dump(t, comm, i);
        TEST_OK(t, comm, rondo_comm_destroy(comm));
    }
    TEST_TRUE(t, sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_sigaction == over);
    raise(SIGUSR1);
    TEST_TRUE(t, signals == 3 && above == 3);
}

static void body(test_rank_t *t, void *arg)
{
    struct sigaction action = {.sa_handler = own};
    rondo_config_t config = RONDO_CONFIG_INIT;
    char path[128];
    struct stat st;
    int status;

    (void)arg;
    config.name = "asked";
    sigaction(SIGUSR1, &action, NULL);
    rondo_comm_t comm = test_comm(t, &config), alone = NULL;
    TEST_OK(t, comm, rondo_comm_split(comm, t->rank, 0, &alone, &config)); /* whose calls need nobody */
    snprintf(path, sizeof path, "%s/stem%d.pipe", dir, t->rank);
    test_note(t, "by a signal");
    TEST_TRUE(t, !has_own());
    kill(getpid(), SIGUSR1);
    expect_dump(t, alone, 0);
    TEST_TRUE(t, signals == 1);
    test_note(t, "by the pipe");
    TEST_TRUE(t, lstat(path, &st) == 0 && S_ISFIFO(st.st_mode) && (st.st_mode & 0777) == 0600);
    for (int i = 1; i < 3; i++) {
        int fd = open(path, O_WRONLY | O_NONBLOCK);
        TEST_TRUE(t, fd >= 0 && write(fd, "x", 1) == 1);
        close(fd);
        expect_dump(t, alone, i);
    }
    test_note(t, "in a child");
    pid_t pid = fork();
    if (pid == 0)
        _exit(has_own() && kill(getpid(), SIGUSR1) == 0 && signals == 2 ? 0 : 1);
    TEST_TRUE(t, waitpid(pid, &status, 0) == pid && status == 0);
    test_note(t, "the end");
    TEST_OK(t, comm, rondo_comm_destroy(comm));
    TEST_TRUE(t, !has_own() && lstat(path, &st) == 0);
    TEST_OK(t, alone, rondo_comm_destroy(alone));
    TEST_TRUE(t, has_own() && lstat(path, &st) != 0);
}

int main(void)
{
    char path[128];
    int bad = 0;

    test_begin("dump_asked", 90);
    strcpy(dir, "/tmp/rondo-dump_asked-XXXXXX");
    if (!mkdtemp(dir))
        return 1;
    snprintf(path, sizeof path, "%s/stem", dir);
    setenv("RONDO_DUMP_DIR", dir, 1);
    setenv("RONDO_DUMP_SIGNAL", "USR1", 1);
    setenv("RONDO_DUMP_PIPE", path, 1);
    for (char *name = "RANK\0PMIX_RANK\0PMI_RANK\0SLURM_PROCID\0OMPI_COMM_WORLD_RANK\0"; *name;
         name += strlen(name) + 1)
        unsetenv(name);
    snprintf(path, sizeof path, "%s/stem1.pipe", dir);
    if (mkfifo(path, 0600) != 0)
        return 1;
    bad |= test_run(TEST_PROCESSES, 2, 60, body, NULL) != 0;
    bad |= test_run(TEST_PROCESSES, 1, 30, nested, NULL) != 0;
    if (rmdir(dir) != 0) {
        printf("something is left in %s\n", dir);
        bad = 1;
    }
    return bad;
}
