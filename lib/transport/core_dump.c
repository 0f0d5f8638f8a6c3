/* See core_dump.h. */
#include "transport/core_dump.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/sock.h"

#define TEXT 4096
#define EXITING                                                                                                        \
    0x4 /* PF_EXITING of the kernel's flags of a task, which stay as they are: proc_pid_stat(5) has them               \
         */

/* Reads the beginning of a file of /proc. Returns false if it cannot be read. */
static bool read_text(const char *path, char text[TEXT])
{
    rd_fd_fork_lock();
    int fd = rd_fd_keep(open(path, O_RDONLY | O_CLOEXEC));
    rd_fd_fork_unlock();
    if (fd < 0)
        return false;
    ssize_t bytes = read(fd, text, TEXT - 1);
    rd_fd_close(fd);
    text[bytes > 0 ? bytes : 0] = 0;
    return bytes > 0;
}

/* Reads the number behind `field`, which begins a line of a file of /proc. Returns -1 if it cannot be read. */
static long read_field(const char *path, const char *field)
{
    char text[TEXT];

    if (!read_text(path, text))
        return -1;
    const char *at = strstr(text, field);
    return at && (at == text || at[-1] == '\n') ? strtol(at + strlen(field), NULL, 10) : -1;
}

pid_t rd_pidfd_pid(int pidfd)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    long pid = read_field(path, "Pid:");
    return pid > 0 ? (pid_t)pid : 0;
}

bool rd_dumps_core(pid_t pid)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    return pid > 0 && read_field(path, "CoreDumping:") == 1;
}

/* The name of the program, in parentheses, may have any letter; behind it come a state, five numbers, and the flags. */
bool rd_pidfd_goes_on(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    const pid_t pid = rd_pidfd_pid(pidfd);
    unsigned long flags = EXITING;
    char path[64], text[TEXT];

    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    if (pid == 0 || !read_text(path, text))
        return false;
    const char *behind = strrchr(text, ')');
    if (!behind || sscanf(behind + 1, " %*c %*s %*s %*s %*s %*s %lu", &flags) != 1)
        return false;
    return !(flags & EXITING) && poll(&p, 1, 0) == 0;
}
