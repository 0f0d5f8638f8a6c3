/* Descriptors of 3 and more: see fd.h. What stands here knows no other part of the library, so that libnccl.so.2 has it
 * too. */
#define _GNU_SOURCE
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

int rd_fd_high(int fd)
{
    if (fd < 0 || fd >= RD_FD_FIRST)
        return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, RD_FD_FIRST), saved = errno;
    close(fd);
    errno = saved;
    return high;
}

FILE *rd_file_read(const char *path)
{
    FILE *low = fopen(path, "re"), *f;

    if (!low || fileno(low) >= RD_FD_FIRST)
        return low;
    int fd = fcntl(fileno(low), F_DUPFD_CLOEXEC, RD_FD_FIRST);
    fclose(low);
    f = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!f && fd >= 0)
        close(fd);
    return f;
}

void rd_fd_write(int fd, const char *line, size_t bytes)
{
    sigset_t pipe, pending, before;
    const struct timespec now = {0, 0};

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    while (write(fd, line, bytes) < 0) {
        if (errno == EPIPE && !sigismember(&pending, SIGPIPE)) /* it is pending for this thread: take it back */
            sigtimedwait(&pipe, NULL, &now);
        if (errno != EINTR)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
