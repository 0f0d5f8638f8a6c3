/* rondo-ras stacks by a debugger: a program of its own, which may fail or hang without harm. It is given so much time,
 * and is asked to leave before it is killed; a process that it has stopped and left so is made to go on. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/wait.h"
#include "monitor/origin.h"
#include "ras.h"
#include "ras_stacks.h"

#define TEXT_MOST ((size_t)16 << 20)
#define LEAVE_MS 3000 /* for a tool that is asked to end, which has to let the process go */
#define LOOK_MS 20

static bool is_frame(const char *line)
{
    return line[0] == '#' || strncmp(line, "Thread ", 7) == 0;
}

static bool is_frame_or_thread(const char *line)
{
    return line[0] == '#' || strncmp(line, "TID ", 4) == 0;
}

/* Python's own frames are shown by py-spy alone, where it is named: it knows nothing of other programs. */
static const stack_tool_t tools[] = {{.name = "eu-stack", .is_wanted = is_frame_or_thread},
                                     {.name = "gdb", .is_wanted = is_frame},
                                     {.name = "pstack", .is_wanted = is_frame},
                                     {.name = "py-spy", .by_name = true}};

static bool is_installed(const char *name)
{
    const char *path = getenv("PATH");
    char file[4096];

    for (const char *at = path ? path : "/usr/bin:/bin"; *at;) {
        size_t n = strcspn(at, ":");
        snprintf(file, sizeof file, "%.*s/%s", (int)n, at, name);
        if (n && n < 4000 && access(file, X_OK) == 0)
            return true;
        at += n + (at[n] == ':');
    }
    return false;
}

const stack_tool_t *stack_tool_find(const char *name)
{
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++)
        if (name ? strcmp(tools[i].name, name) == 0 : !tools[i].by_name && is_installed(tools[i].name))
            return &tools[i];
    return NULL;
}

/* ---- may one look? ---- */

static int read_number(const char *path, const char *before)
{
    char line[256];
    int number = 0;
    FILE *f = fopen(path, "re");

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, before, strlen(before)) == 0) {
            number = atoi(line + strlen(before));
            break;
        }
    if (f)
        fclose(f);
    return number;
}

/* The user as whom it acts, and so makes files: the second number behind "Uid:". -1: there is no such process. */
static int64_t acting_user(pid_t pid)
{
    char path[64], line[256];
    unsigned user = 0;
    int64_t found = -1;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && found < 0 && fgets(line, sizeof line, f))
        if (sscanf(line, "Uid: %*u %u", &user) == 1)
            found = user;
    if (f)
        fclose(f);
    return found;
}

/* Its link says whether a descriptor may be the record's. Others are not looked at: they may be of a file server that
 * does not answer. */
static bool is_the_record(int dir, const char *name, uint64_t dev, uint64_t ino, int64_t user, bool *hidden)
{
    char link[512];
    struct stat st;
    ssize_t n = readlinkat(dir, name, link, sizeof link - 1);

    *hidden |= n < 0 && (errno == EACCES || errno == EPERM);
    if (n <= 0)
        return false;
    link[n] = 0;
    return ras_is_record(link) && fstatat(dir, name, &st, 0) == 0 && st.st_dev == dev && st.st_ino == ino &&
           st.st_uid == user;
}

stack_owner_t stack_is_of(pid_t pid, uint64_t dev, uint64_t ino)
{
    const int64_t user = acting_user(pid); /* not of /proc/PID, which is root's where no core may be dumped */
    char path[64];
    bool found = false, hidden = false;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    hidden = !d && errno != ENOENT;
    for (struct dirent *e; d && !found && (e = readdir(d));)
        found = is_the_record(dirfd(d), e->d_name, dev, ino, user, &hidden);
    if (d)
        closedir(d);
    return found ? STACK_ITS : acting_user(pid) < 0 ? STACK_ENDED : hidden ? STACK_HIDDEN : STACK_FORGED;
}

const char *stack_refused(pid_t pid)
{
    static char why[200];
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    int tracer = read_number(path, "TracerPid:"), scope = read_number("/proc/sys/kernel/yama/ptrace_scope", "");
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && !tracer)
        return NULL;
    if (tracer)
        snprintf(why, sizeof why, "process %d traces it already, and only one can", tracer);
    else if (errno == ENOENT)
        snprintf(why, sizeof why, "it has ended");
    else if (scope)
        snprintf(why, sizeof why, "kernel.yama.ptrace_scope is %d here: ask as root%s", scope,
                 scope == 1 ? ", or set it to 0 (sysctl kernel.yama.ptrace_scope=0)" : "");
    else
        snprintf(why, sizeof why,
                 "the kernel does not allow it (%s): ask as the process's user, or as root; a container needs "
                 "CAP_SYS_PTRACE (docker run --cap-add SYS_PTRACE)",
                 strerror(errno));
    return why;
}

/* ---- running ---- */

typedef struct run {
    pid_t pid;
    int fd; /* what it prints */
    char *text;
    size_t n;
    const char *why; /* it was ended early; NULL: it was not */
} run_t;

static void become(const stack_tool_t *tool, pid_t of, int out)
{
    char number[16];
    int nothing = open("/dev/null", O_RDONLY);

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* on which it lets the process go */
    (void)setsid();                         /* a key that interrupts rondo-ras must not kill it half way */
    snprintf(number, sizeof number, "%d", (int)of);
    (void)dup2(nothing, STDIN_FILENO);
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(out, STDERR_FILENO);
    (void)unsetenv("DEBUGINFOD_URLS"); /* the process would stand still while symbols are loaded from the network */
    (void)setenv("LC_ALL", "C", 1);
    if (strcmp(tool->name, "gdb") == 0)
        (void)execlp("gdb", "gdb", "-q", "-nx", "-batch", "-ex", "set width 0", "-ex", "set print frame-arguments none",
                     "-ex", "thread apply all -ascending backtrace 64", "-p", number, (char *)NULL);
    else if (strcmp(tool->name, "eu-stack") == 0)
        (void)execlp("eu-stack", "eu-stack", "-n", "64", "-p", number, (char *)NULL);
    else if (strcmp(tool->name, "py-spy") == 0)
        (void)execlp("py-spy", "py-spy", "dump", "--pid", number, (char *)NULL);
    else
        (void)execlp(tool->name, tool->name, number, (char *)NULL);
    fprintf(stderr, "%s: %s\n", tool->name, strerror(errno));
    _exit(127);
}

static bool start(run_t *run, const stack_tool_t *tool, pid_t of)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    run->pid = fork();
    if (run->pid == 0)
        become(tool, of, ends[1]);
    close(ends[1]);
    run->fd = ends[0];
    return run->pid > 0;
}

/* Returns false when all has come. What is too long is not kept. */
static bool take(run_t *run)
{
    char bytes[4096];
    ssize_t n = read(run->fd, bytes, sizeof bytes);

    if (n <= 0)
        return n < 0 && errno == EINTR;
    char *more = run->n + (size_t)n < TEXT_MOST ? realloc(run->text, run->n + (size_t)n + 1) : NULL;
    if (!more)
        return true;
    memcpy(more + run->n, bytes, (size_t)n);
    run->text = more;
    run->n += (size_t)n;
    run->text[run->n] = 0;
    return true;
}

/* Takes what comes until it ends, or the time is over. */
static bool take_until(run_t *run, int64_t until_ms, bool interruptible)
{
    struct pollfd p = {.fd = run->fd, .events = POLLIN};

    while (!(interruptible && ras_interrupted())) {
        int64_t left = until_ms - rd_clock_ms();
        if (left <= 0)
            return false;
        if (poll(&p, 1, left < 200 ? (int)left : 200) == 1 && !take(run))
            return true;
    }
    return false;
}

static void end(run_t *run)
{
    (void)kill(-run->pid, SIGTERM);
    (void)kill(run->pid, SIGTERM); /* it may not have come to its own session yet */
    if (!take_until(run, rd_clock_ms() + LEAVE_MS, false)) {
        (void)kill(-run->pid, SIGKILL);
        (void)kill(run->pid, SIGKILL);
    }
}

static char state_of(pid_t pid)
{
    rd_process_stat_t now;
    char number[16];

    snprintf(number, sizeof number, "%d", (int)pid);
    return rd_process_stat(number, &now) ? now.state : 0;
}

/* A debugger attaches with a stop signal; where it ended before it took that, the process would stay stopped, from some
 * moment soon after on. */
static void let_go(pid_t pid, bool failed)
{
    for (int i = 0; i < (failed ? 25 : 1); i++) {
        if (state_of(pid) == 'T')
            (void)kill(pid, SIGCONT);
        if (failed)
            ras_pause(LOOK_MS / 1000.0);
    }
}

/* Names of threads and of functions are the process's, and may be meant for a terminal. */
static void clean(char *text)
{
    for (char *at = text; at && *at; at++) {
        const unsigned char c = (unsigned char)*at;
        bool c1 = c >= 0x80 && c < 0xa0 && at > text && (unsigned char)at[-1] == 0xc2; /* in UTF-8 */
        if ((c < ' ' && c != '\n' && c != '\t') || c == 0x7f || c1)
            *at = '?';
    }
}

/* Prints the lines that are wanted. Returns how many there were. */
static int print_lines(const stack_tool_t *tool, char *text)
{
    int n = 0;
    char *rest = NULL;

    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
        if (!tool->is_wanted || tool->is_wanted(line)) {
            printf("%s%s\n", line[0] == '#' ? "    " : "  ", line);
            n++;
        }
    return n;
}

bool stack_by_tool(const stack_tool_t *tool, pid_t pid, double seconds)
{
    char before = state_of(pid);
    run_t run = {.fd = -1};
    char first[200] = "it has said nothing";

    if (!start(&run, tool, pid)) {
        fprintf(stderr, "rondo-ras: %s cannot be started: %s\n", tool->name, strerror(errno));
        return false;
    }
    bool whole = take_until(&run, rd_clock_ms() + (int64_t)(seconds * 1000), true);
    if (!whole)
        end(&run);
    close(run.fd);
    while (waitpid(run.pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    clean(run.text);
    if (run.n)
        snprintf(first, sizeof first, "%.*s", (int)strcspn(run.text, "\n"), run.text);
    int n = print_lines(tool, run.text);
    free(run.text);
    if (before != 'T' && before != 't')
        let_go(pid, !whole || !n);
    if (ras_interrupted())
        return n > 0;
    if (!whole)
        fprintf(stderr, "rondo-ras: %s was not done with process %d in %.3g s, and was ended (--timeout)\n", tool->name,
                (int)pid, seconds);
    else if (!n)
        fprintf(stderr, "rondo-ras: %s says nothing of the threads of process %d: %s\n", tool->name, (int)pid, first);
    return n > 0;
}
