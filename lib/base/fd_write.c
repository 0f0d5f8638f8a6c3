/* Writing into what the program or its user has opened: a pipe may have no reader any more, and a file may have come to
 * the limit of the process (RLIMIT_FSIZE, `ulimit -f`). Both raise a signal that ends the process by default, where a
 * library is to return an error. The kernel sends it to the thread that writes, so this one blocks it for a moment. */
#include "base/fd.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

void rd_fd_writes_begin(rd_fd_writes_t *w)
{
    int saved = errno;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    sigaddset(&set, SIGXFSZ);
    sigpending(&w->pending);
    pthread_sigmask(SIG_BLOCK, &set, &w->before);
    errno = saved;
}

/* The signal of a write that has failed with `error` is taken back, unless one was there before. */
void rd_fd_writes_end(const rd_fd_writes_t *w, int error)
{
    const int number = error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;
    const struct timespec now = {0, 0};
    int saved = errno;
    sigset_t one;

    sigemptyset(&one);
    if (number && !sigismember(&w->pending, number)) {
        sigaddset(&one, number);
        while (sigtimedwait(&one, NULL, &now) < 0 && errno == EINTR)
            continue;
    }
    pthread_sigmask(SIG_SETMASK, &w->before, NULL);
    errno = saved;
}

int rd_fd_write_all(int fd, const void *bytes, size_t n)
{
    rd_fd_writes_t w;
    int error = 0;

    rd_fd_writes_begin(&w);
    for (const char *at = bytes; n > 0 && !error;) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno != EINTR)
            error = errno;
        at += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    rd_fd_writes_end(&w, error);
    return error;
}

void rd_fd_write(int fd, const char *line, size_t bytes)
{
    rd_fd_writes_t w;
    ssize_t done;

    rd_fd_writes_begin(&w);
    while ((done = write(fd, line, bytes)) < 0 && errno == EINTR)
        continue;
    rd_fd_writes_end(&w, done < 0 ? errno : 0);
}
