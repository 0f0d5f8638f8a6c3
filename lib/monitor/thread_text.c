/* See thread_text.h. */
#include "monitor/thread_text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "monitor/out.h"

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

bool rd_thread_file(pid_t pid, const char *thread, const char *name, char *text, size_t bytes)
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

/* Appends to a text that has room for `bytes`. */
__attribute__((format(printf, 3, 4))) static void add(char *text, size_t bytes, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + used, bytes - used, format, args);
    va_end(args);
}

/* "in futex"; the file's first word is a number, "running", or -1 outside of calls. */
static void add_call(pid_t pid, const char *thread, char *text, size_t bytes)
{
    char call[256];

    if (!rd_thread_file(pid, thread, "syscall", call, sizeof call))
        return;
    if (!isdigit((unsigned char)call[0])) {
        add(text, bytes, call[0] == 'r' ? ", runs" : ", in no system call");
        return;
    }
    const long number = strtol(call, NULL, 10);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].number == number) {
            add(text, bytes, ", in %s", calls[i].name);
            return;
        }
    add(text, bytes, ", in system call %ld", number);
}

bool rd_thread_text(pid_t pid, const char *thread, char *text, size_t bytes)
{
    char name[64], stat[1024], where[128];

    if (!rd_thread_file(pid, thread, "comm", name, sizeof name) ||
        !rd_thread_file(pid, thread, "stat", stat, sizeof stat))
        return false;
    name[strcspn(name, "\n")] = 0;
    rd_out_plain_text(name, sizeof name); /* the process chooses it */
    const char *state = strrchr(stat, ')');
    snprintf(text, bytes, "thread %s \"%s\": state %c", thread, name, state && state[1] ? state[2] : '?');
    add_call(pid, thread, text, bytes);
    if (rd_thread_file(pid, thread, "wchan", where, sizeof where) && strcmp(where, "0") != 0)
        add(text, bytes, ", where the kernel is in %s", where);
    return true;
}
