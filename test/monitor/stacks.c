/* rondo-ras stacks: the frames that a debugger prints, with rank, process and call; without one, where none may look,
 * and where it hangs or fails, what the kernel says, and why. Whatever the debugger does, the job goes on, and a
 * process that was stopped stays so. The debuggers are played by scripts, but for one look by gdb where it is
 * installed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/obedient.h"
#include "monitor/record.h"
#include "util/check.h"
#include "util/harness.h"

#define RANKS 3
#define LATE 1
#define SHORT "0.3" /* in seconds: for a tool that hangs */
#define ENOUGH "60" /* and for one that does not */

static char dir[] = "/tmp/rondo-stacks-XXXXXX";

/* What that tool does from now on; NULL: it is not installed. */
static void play_as(const char *tool, const char *script)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", dir, tool);
    (void)unlink(path);
    FILE *f = script ? fopen(path, "w") : NULL;
    if (!f)
        return;
    fprintf(f, "#!/bin/sh\n%s\n", script);
    CHECK(fchmod(fileno(f), 0700) == 0, "cannot change %s", path);
    fclose(f);
}

/* `eu-stack -n 64 -p PID` */
static void play(const char *script)
{
    play_as("eu-stack", script);
}

#define EXPECT(command, status, word) expect(__LINE__, command, status, word)

static void expect(int line, const char *command, int status, const char *word)
{
    int got = obedient_ras(command, obedient_job);

    CHECK(got == status && strstr(obedient_text, word), "line %d: rondo-ras %s: exit %d, want %d and '%s':\n%s", line,
          command, got, status, word, obedient_text);
}

static int is_said(const char *word)
{
    return strstr(obedient_text, word) != NULL;
}

/* Frames, for each rank or for one, and nothing else that the tool says. */
static void frames(void)
{
    char head[128], frame[64];

    play("echo noise; echo \"TID $4:\"; echo \"#0 frame of $1 $2 $3 $4\"; echo more noise >&2");
    EXPECT("stacks --all", 0, "rank 0 of 'stacks', process ");
    for (int r = 0; r < RANKS; r++) {
        snprintf(head, sizeof head, "rank %d of 'stacks', process %d on ", r, obedient_pids[r]);
        snprintf(frame, sizeof frame, "#0 frame of -n 64 -p %d", obedient_pids[r]);
        CHECK(is_said(head) && is_said(frame), "rank %d is not there:\n%s", r, obedient_text);
    }
    CHECK(is_said("in allreduce, collective number 3 (8 float32, sum), waits for rank 1"), "%s", obedient_text);
    CHECK(!is_said("noise"), "%s", obedient_text);
    EXPECT("stacks", 0, "rank 1 of 'stacks', process "); /* who holds the others up */
    CHECK(!is_said("rank 0 of") && !is_said("rank 2 of"), "others are there, too:\n%s", obedient_text);
    EXPECT("stacks 1", 0, "outside, after allreduce, collective number 2");
    CHECK(!is_said("rank 0 of") && !is_said("rank 2 of"), "others are there, too:\n%s", obedient_text);
    EXPECT("stacks 0 2", 0, "rank 2 of");
    CHECK(is_said("rank 0 of") && !is_said("rank 1 of"), "others are there:\n%s", obedient_text);
    play("printf '#0 \\033[31mframe\\n'");
    EXPECT("stacks 1", 0, "#0 ?[31mframe");
    EXPECT("stacks 3", 2, "there is no rank 3 of 'stacks'");
    EXPECT("stacks x", 2, "there is no rank x of 'stacks'");
    EXPECT("stacks --tool lldb", 2, "there are eu-stack, gdb, pstack, py-spy and none");
    play_as("py-spy", "echo 'Thread 7 (idle): \"MainThread\"'; echo \"    load_batch of $1 $2 $3\"");
    snprintf(frame, sizeof frame, "      load_batch of dump --pid %d", obedient_pids[1]);
    EXPECT("stacks 1 --tool py-spy", 0, frame);
    play(NULL);
    EXPECT("stacks 1", 0, ": no debugger");
    play_as("py-spy", NULL);
    EXPECT("stacks --timeout 0", 2, "--timeout needs");
    EXPECT("stacks --host 127.0.0.1:1", 2, "this host alone");
}

static void goes_on(int rank)
{
    for (int i = 0; i < 3; i++) {
        char path[64], line[512] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", obedient_pids[rank]);
        FILE *f = fopen(path, "r");
        if (f && fgets(line, sizeof line, f) && strrchr(line, ')'))
            CHECK(strchr("RSD", strrchr(line, ')')[2]), "rank %d is left in state %c", rank, strrchr(line, ')')[2]);
        if (f)
            fclose(f);
        obedient_pause(20);
    }
}

/* `limit`: for the tool, in seconds. */
static void by_kernel(const char *limit, const char *why)
{
    char thread[64], command[64];

    snprintf(thread, sizeof thread, "thread %d \"", obedient_pids[LATE]);
    snprintf(command, sizeof command, "stacks 1 --timeout %s", limit);
    EXPECT(command, 0, thread);
    CHECK(!why || is_said(why), "it does not say '%s':\n%s", why, obedient_text);
    goes_on(LATE);
}

static void without_frames(void)
{
    play(NULL);
    by_kernel(ENOUGH, "no debugger is installed");
    play("echo 'cannot attach: not permitted' >&2; exit 1");
    by_kernel(ENOUGH, "eu-stack says nothing of the threads of process");
    CHECK(is_said("cannot attach: not permitted"), "%s", obedient_text);
    play("exec /bin/sleep 1000");
    by_kernel(SHORT, "was not done with process");
    play("trap '' TERM; kill -STOP $4; /bin/sleep 1000 & while :; do wait; done");
    by_kernel(SHORT, "was not done with process");
    play("kill -STOP $4; kill -KILL $$"); /* it dies of itself, and leaves the process stopped */
    by_kernel(ENOUGH, "says nothing of the threads");
    play("echo '#0 frame'");
    EXPECT("stacks 1 --tool none", 0, " \"?[31mname\": state ");
    CHECK(!is_said("#0 frame"), "%s", obedient_text);
}

/* Only one may trace a process. */
static void traced(void)
{
    play("echo '#0 frame'");
    if (ptrace(PTRACE_SEIZE, obedient_pids[LATE], NULL, NULL) != 0) {
        printf("tracing is not allowed here: that is not tried\n");
        return;
    }
    by_kernel(ENOUGH, "traces it already");
    CHECK(!is_said("#0 frame"), "%s", obedient_text);
    kill(obedient_pids[LATE], SIGSTOP); /* it stops for its tracer, who lets it go */
    waitpid(obedient_pids[LATE], NULL, __WALL);
    ptrace(PTRACE_DETACH, obedient_pids[LATE], NULL, NULL);
    kill(obedient_pids[LATE], SIGCONT);
}

/* SIGINT ends the tool, too, and the process goes on. */
static void interrupted(void)
{
    char script[256], mark[128], number[16];
    const char *build = getenv("top_builddir");
    int status = 0;

    snprintf(mark, sizeof mark, "%s/mark", dir);
    snprintf(script, sizeof script, "kill -STOP $4; echo $$ >%s; exec /bin/sleep 1000", mark);
    snprintf(number, sizeof number, "%d", obedient_job);
    play(script);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char program[512];
        int nothing = open("/dev/null", O_WRONLY);
        dup2(nothing, STDOUT_FILENO);
        snprintf(program, sizeof program, "%s/rondo-ras", build ? build : ".");
        execl(program, "rondo-ras", "stacks", "1", "--job", number, (char *)NULL);
        _exit(127);
    }
    int tool = 0;
    for (int i = 0; i < 20000 && !tool; i++) {
        FILE *f = fopen(mark, "r");
        if (f && fscanf(f, "%d", &tool) != 1)
            tool = 0;
        if (f)
            fclose(f);
        obedient_pause(1);
    }
    kill(child, SIGINT);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGINT,
          "it ended with 0x%x", status);
    CHECK(tool && kill(tool, 0) != 0, "the tool goes on");
    goes_on(LATE);
}

/* ---- a record that states another process's number ---- */

/* Copies the record of a rank; -1: it is not found. */
static int copy_record(pid_t pid, char *bytes, size_t room)
{
    char path[64];
    int n = -1;

    for (int i = 0; i < 256 && n < 0; i++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, i);
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        n = fd < 0 ? -1 : (int)pread(fd, bytes, room, 0);
        const rd_monitor_head_t *head = (const void *)bytes;
        if (n < RD_MONITOR_PAGE || head->magic != RD_MONITOR_MAGIC || head->pid != pid)
            n = -1;
        if (fd >= 0)
            close(fd);
    }
    return n;
}

static unsigned long long started(pid_t pid)
{
    char path[64], line[1024] = "";
    unsigned long long since = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    if (f && fgets(line, sizeof line, f) && strrchr(line, ')'))
        (void)sscanf(strrchr(line, ')'),
                     ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &since);
    if (f)
        fclose(f);
    return since;
}

/* A copy of a good record that says it were of a process that has none: no debugger looks at that one. */
static void forged(void)
{
    static _Alignas(64) char bytes[2 << 20];
    rd_monitor_head_t *head = (void *)bytes;
    pid_t child = fork(); /* before there is a record that it would have from here */

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    int fd = memfd_create(RD_MONITOR_MEMFD, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int n = copy_record(obedient_pids[LATE], bytes, sizeof bytes);
    head->pid = child;
    head->started = started(child);
    CHECK(n > 0 && head->started && fd >= 0, "no record to forge");
    for (unsigned i = 0; n > 0 && i < head->ncomms; i++)
        ((rd_monitor_comm_t *)(void *)(bytes + head->comms_at))[i].id += 1;
    CHECK(n > 0 && write(fd, bytes, (size_t)n) == n, "the forged record is not written");
    CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0, "it is not sealed");
    play("echo '#0 frame'");
    obedient_ras("stacks", child);
    CHECK(is_said("it does not have this record open"), "a forged record is believed:\n%s", obedient_text);
    CHECK(!is_said("#0 frame"), "a debugger looked at a process that has no record:\n%s", obedient_text);
    close(fd);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* The real one, where it is there and may look. */
static void by_gdb(const char *path)
{
    setenv("PATH", path, 1);
    if (system("gdb --version >/dev/null 2>&1") == 0) {
        int got = obedient_ras("stacks --tool gdb --timeout 300 0", obedient_job);
        if (is_said("no debugger may look"))
            printf("tracing is not allowed here: gdb is not tried\n");
        else
            CHECK(got == 0 && is_said("#0 ") && is_said("obedient_reduce"), "exit %d:\n%s", got, obedient_text);
        const char *first = strstr(obedient_text, "Thread 1 "), *second = strstr(obedient_text, "Thread 2 ");
        CHECK(!second || (first && first < second), "the first thread does not come first:\n%s", obedient_text);
        kill(obedient_pids[LATE], SIGSTOP);
        obedient_state(LATE, 'T');
        EXPECT("stacks --tool gdb --timeout 300 1", 0, "stopped: stopped, outside");
        obedient_state(LATE, 'T');
        kill(obedient_pids[LATE], SIGCONT);
    } else {
        printf("gdb is not installed: it is not tried\n");
    }
    setenv("PATH", dir, 1);
}

int main(void)
{
    char line[128], *path = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");

    test_begin("monitor/stacks", 180);
    if (!mkdtemp(dir) || !path)
        return 1;
    setenv("RONDO_DEBUG", "none", 1);
    (void)prctl(PR_SET_NAME, "\033[31mname"); /* the ranks have it, too */
    obedient_start(RANKS, "stacks", obedient_reduce);
    setenv("PATH", dir, 1);
    for (int i = 0; i < 2; i++)
        obedient_order_all(OBEDIENT_REDUCE);
    for (int r = 0; r < RANKS; r++)
        if (r != LATE)
            obedient_order(r, OBEDIENT_REDUCE);
    CHECK(obedient_ras_until("who", obedient_job, 3, "rank 1"), "rank 1 is not waited for:\n%s", obedient_text);
    frames();
    without_frames();
    traced();
    interrupted();
    forged();
    by_gdb(path);
    obedient_order(LATE, OBEDIENT_REDUCE);
    for (int r = 0; r < RANKS; r++)
        CHECK(obedient_settled(r) && !obedient[r].failed, "rank %d does not go on", r);
    kill(obedient_pids[LATE], SIGKILL);
    waitpid(obedient_pids[LATE], NULL, 0);
    play("echo '#0 frame'");
    EXPECT("stacks 1", 0, "it has ended, and has no threads");
    obedient_pids[LATE] = 0;
    obedient_end();
    setenv("PATH", path, 1);
    free(path);
    snprintf(line, sizeof line, "rm -r %s", dir);
    CHECK(system(line) == 0, "cannot remove %s", dir);
    printf("%d failures\n", failures);
    return failures != 0;
}
