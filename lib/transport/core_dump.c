/* See core_dump.h. */
#include "transport/core_dump.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/sock.h"

/* Reads the number behind `field`, which begins a line of a file of /proc. Returns -1 if it cannot be read. */
static long read_field(const char *path, const char *field)
{
    char text[4096];
    rd_fd_fork_lock();
    int fd = rd_fd_keep(open(path, O_RDONLY | O_CLOEXEC));
    rd_fd_fork_unlock();
    if (fd < 0)
        return -1;
    ssize_t bytes = read(fd, text, sizeof text - 1);
    rd_fd_close(fd);
    text[bytes > 0 ? bytes : 0] = 0;
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
