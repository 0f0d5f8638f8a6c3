/* A job that is named by one of its processes: rondo-ras monitor waits for its first communicator, or says that none
 * has come; and top and metrics go on with it when its lowest process has ended, by whose number it was known. */
#include <fcntl.h>
#include <pthread.h>
#include <rondo.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/obedient.h"
#include "util/check.h"
#include "util/harness.h"
#include "util/text.h"

static char file[] = "/tmp/rondo-followed-XXXXXX";
static char text[65536];
static _Atomic int *order; /* what the child has to do by now */

#define NOBODY 65534

static pid_t start_as(uid_t user, const char *command, pid_t job)
{
    const char *build = getenv("top_builddir");
    char number[16], program[512];

    snprintf(number, sizeof number, "%d", (int)job);
    snprintf(program, sizeof program, "%s/rondo-ras", build ? build : ".");
    fflush(stdout);
    CHECK(truncate(file, 0) == 0, "%s cannot be emptied", file);
    pid_t ras = fork();
    if (ras == 0) {
        int out = open(file, O_WRONLY | O_APPEND);
        if (out < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
            _exit(126);
        if (user != geteuid() && setuid(user))
            _exit(126);
        execl(program, "rondo-ras", command, "--job", number, "-d", "0.7", (char *)NULL);
        _exit(127);
    }
    return ras;
}

static pid_t start(const char *command, pid_t job)
{
    return start_as(geteuid(), command, job);
}

static const char *said(void)
{
    text_read(file, text, sizeof text);
    return text;
}

/* Waits until it has said that behind what it had said before. */
static size_t await(size_t from, const char *word)
{
    const char *at = NULL;

    for (int i = 0; i < 20000 && !at; i++) {
        at = strlen(said()) >= from ? strstr(text + from, word) : NULL;
        if (!at)
            obedient_pause(1);
    }
    CHECK(at, "'%s' is not said:\n%s", word, text);
    return at ? (size_t)(at - text) + 1 : 0;
}

static void ends(pid_t ras, int status)
{
    int got = 0;

    CHECK(waitpid(ras, &got, 0) == ras && WIFEXITED(got) && WEXITSTATUS(got) == status,
          "it ended with 0x%x, want exit %d:\n%s", got, status, said());
}

static void await_order(int n)
{
    while (atomic_load(order) < n)
        obedient_pause(1);
}

/* ---- before there is a communicator ---- */

static void alone(void)
{
    rondo_unique_id_t id;
    rondo_comm_t comm;

    await_order(1);
    if (rondo_unique_id_create(&id) || rondo_comm_create(&comm, 1, &id, 0, NULL))
        _exit(1);
    await_order(2);
    _exit(rondo_comm_destroy(comm) != RONDO_SUCCESS);
}

static void *rest(void *none)
{
    await_order(2);
    _exit(none != NULL);
}

/* Its first thread ends, and another one goes on: so it looks like a zombie. */
static void without_first_thread(void)
{
    pthread_t other;

    CHECK(pthread_create(&other, NULL, rest, NULL) == 0, "no thread");
    pthread_exit(NULL);
}

enum { NONE, ONE, FIRST_THREAD_ENDS };

static void waits_for_first(int what)
{
    atomic_store(order, 0);
    fflush(stdout);
    pid_t job = fork();
    if (job == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (what == ONE)
            alone();
        if (what == FIRST_THREAD_ENDS)
            without_first_thread();
        await_order(2);
        _exit(0);
    }
    if (what == FIRST_THREAD_ENDS)
        obedient_await_state(job, 'Z');
    pid_t ras = start("monitor", job);
    size_t from = await(0, "has no communicator of rondo that can be seen (none yet, or RONDO_MONITOR=0): waiting");
    atomic_store(order, 1);
    if (what == ONE)
        await(from, "made: 1 rank on 1 node");
    atomic_store(order, 2);
    waitpid(job, NULL, 0);
    ends(ras, what == ONE ? 0 : 1);
    CHECK(strstr(said(), what == ONE ? "has ended: 1 process, of which 0 died" : "has ended without a communicator"),
          "%s", text);
}

/* Another user's process is not waited for: its record could not be had. */
static void others(void)
{
    const uid_t user = geteuid() ? geteuid() : NOBODY;
    struct stat st;
    int got = 0;

    if (stat("/proc/1", &st) || st.st_uid == user)
        return;
    pid_t ras = start_as(user, "monitor", 1);
    waitpid(ras, &got, 0);
    if (WIFEXITED(got) && WEXITSTATUS(got) >= 126) { /* that user may not execute what is built here */
        printf("monitor/followed: another user's process: not tried\n");
        return;
    }
    const bool hidden = strstr(said(), "there is no job 1;"); /* as /proc may be mounted */
    CHECK(WIFEXITED(got) && WEXITSTATUS(got) == 1 && (hidden || strstr(text, "process 1 is another user's")),
          "0x%x: %s", got, text);
}

/* ---- the lowest process ends ---- */

enum { PART = 2, LEAVE };

static rondo_comm_t part;

/* Each has a communicator of its own besides. */
static rondo_result_t obey(int what, int rank, rondo_comm_t comm)
{
    if (what == PART)
        return rondo_comm_split(comm, rank, 0, &part, NULL);
    if (what == LEAVE)
        return rondo_comm_destroy(comm);
    if (what == OBEDIENT_END)
        return rondo_comm_destroy(part);
    return obedient_reduce(what, rank, comm);
}

static void goes_on(const char *command, const char *both, const char *other)
{
    char now[64];

    obedient_start(2, "world", obey);
    obedient_order_all(PART);
    pid_t ras = start(command, obedient_pids[0]);
    size_t from = await(0, both);
    obedient_order_all(LEAVE);
    obedient_order(0, OBEDIENT_END);
    waitpid(obedient_pids[0], NULL, 0);
    obedient_pids[0] = 0;
    from = strlen(said()) > from ? strlen(text) : from;
    snprintf(now, sizeof now, other, (int)obedient_pids[1]);
    await(from, now);
    kill(ras, SIGKILL);
    waitpid(ras, NULL, 0);
    obedient_order(1, OBEDIENT_END);
    obedient_end();
}

int main(void)
{
    test_begin("monitor/followed", 120);
    order = mmap(NULL, sizeof *order, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd = mkstemp(file);
    if (order == MAP_FAILED || fd < 0)
        return 1;
    close(fd);
    waits_for_first(ONE);
    waits_for_first(NONE);
    waits_for_first(FIRST_THREAD_ENDS);
    others();
    goes_on("top", "rondo-ras top: 2 processes", "rondo-ras top: 1 process, 1 communicator");
    goes_on("metrics", "rondo_processes 2", "rondo_up{job=\"%1$d\",pid=\"%1$d\"");
    unlink(file);
    printf("followed: %d failures\n", failures);
    return failures != 0;
}
