/* Descriptors 0, 1 and 2 are the program's, also where it has closed them: what it prints, and rondo's own log lines,
 * must not go into a socket that happened to get such a number. So every descriptor that rondo opens is moved to 3 or
 * more, and while other libraries open theirs, during creation, the three numbers are taken. */
#ifndef RD_BASE_FD_H
#define RD_BASE_FD_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define RD_FD_FIRST 3

/* Two functions are defined here because libnccl uses them, to which librondo shows no internal name. */

/* Returns `fd`, or in its place one of 3 or more that is close-on-exec. -1 with errno, as for -1 itself, if there is
 * none. */
static inline int rd_fd_high(int fd)
{
    if (fd < 0 || fd >= RD_FD_FIRST)
        return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, RD_FD_FIRST), saved = errno;
    close(fd);
    errno = saved;
    return high;
}

/* Opens a file for reading, as fopen does. */
FILE *rd_file_read(const char *path);

/* Writes a line, as write does, but raises no SIGPIPE. Where it cannot be written there is nowhere to report it. */
static inline void rd_fd_write(int fd, const char *line, size_t bytes)
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

/* From begin to end no descriptor below 3 is free. Pairs may overlap, in any threads. */
void rd_fd_guard_begin(void);
void rd_fd_guard_end(void);

/* Some libraries open descriptors that programs started by this one would inherit. Those of a network that have been
 * opened between the two calls are made close-on-exec; the second call frees what the first has noted. Where /proc or
 * memory is missing, nothing is done. */
typedef struct rd_fd_noted {
    unsigned char *open; /* by descriptor */
    int size;
} rd_fd_noted_t;
void rd_fd_note(rd_fd_noted_t *noted);
void rd_fd_close_on_exec(rd_fd_noted_t *noted);

#endif
