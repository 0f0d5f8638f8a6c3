/* rondo-ras stacks without a debugger: what /proc says of each thread. It stops nothing. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "ras_stacks.h"

#define FRAMES 16 /* of the kernel's stack */

/* Those in which threads stand for long. */
static const struct {
    long number;
    const char *name;
} calls[] = {
    {SYS_accept4, "accept4"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_connect, "connect"},
    {SYS_epoll_pwait, "epoll_pwait"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_fsync, "fsync"},
    {SYS_futex, "futex"},
    {SYS_ioctl, "ioctl"},
    {SYS_mmap, "mmap"},
    {SYS_munmap, "munmap"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_openat, "openat"},
    {SYS_ppoll, "ppoll"},
    {SYS_pselect6, "pselect6"},
    {SYS_read, "read"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_restart_syscall, "restart_syscall"},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    {SYS_sched_yield, "sched_yield"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_sendto, "sendto"},
    {SYS_wait4, "wait4"},
    {SYS_waitid, "waitid"},
    {SYS_write, "write"},
#ifdef SYS_poll /* older names, which newer architectures do not have */
    {SYS_epoll_wait, "epoll_wait"},
    {SYS_open, "open"},
    {SYS_pause, "pause"},
    {SYS_poll, "poll"},
    {SYS_select, "select"},
#endif
};

/* Reads a small file of a thread, as one line. Returns false if there is none, or it says nothing. */
static bool read_file(pid_t pid, const char *thread, const char *name, char *text, size_t bytes)
{
    char path[96];

    snprintf(path, sizeof path, "/proc/%d/task/%s/%s", (int)pid, thread, name);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, bytes - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    return n > 0;
}

/* "in futex (system call 202)"; the file's first word is a number, "running", or -1 outside of calls. */
static void print_call(pid_t pid, const char *thread)
{
    char text[256];

    if (!read_file(pid, thread, "syscall", text, sizeof text))
        return;
    if (!isdigit((unsigned char)text[0])) {
        printf(text[0] == 'r' ? ", runs" : ", in no system call");
        return;
    }
    long number = strtol(text, NULL, 10);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].number == number) {
            printf(", in %s", calls[i].name);
            return;
        }
    printf(", in system call %ld", number);
}

/* "[<0>] futex_wait+0x10/0x20" */
static void print_kernel(pid_t pid, const char *thread)
{
    char text[4096], *rest = NULL;
    int n = 0;

    if (!read_file(pid, thread, "stack", text, sizeof text)) /* root alone may read it */
        return;
    for (char *line = strtok_r(text, "\n", &rest); line && n < FRAMES; line = strtok_r(NULL, "\n", &rest), n++) {
        const char *name = strstr(line, "] ") ? strstr(line, "] ") + 2 : line;
        printf("    kernel: %.*s\n", (int)strcspn(name, "+"), name);
    }
}

static bool print_thread(pid_t pid, const char *thread)
{
    char name[64], stat[1024], where[128];

    if (!read_file(pid, thread, "comm", name, sizeof name) || !read_file(pid, thread, "stat", stat, sizeof stat))
        return false;
    name[strcspn(name, "\n")] = 0;
    const char *state = strrchr(stat, ')');
    printf("  thread %s \"%s\": state %c", thread, name, state && state[1] ? state[2] : '?');
    print_call(pid, thread);
    if (read_file(pid, thread, "wchan", where, sizeof where) && strcmp(where, "0") != 0)
        printf(", where the kernel is in %s", where);
    printf("\n");
    print_kernel(pid, thread);
    return true;
}

bool stack_by_proc(pid_t pid)
{
    struct dirent **all = NULL;
    char path[64];
    int shown = 0;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    int n = scandir(path, &all, NULL, versionsort);
    for (int i = 0; i < n; i++) {
        if (isdigit((unsigned char)all[i]->d_name[0]))
            shown += print_thread(pid, all[i]->d_name);
        free(all[i]);
    }
    free(all);
    return shown > 0;
}
