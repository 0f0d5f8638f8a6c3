/* Descriptors of 3 and more: see fd.h. What stands here knows no other part of the library, so that libnccl.so.2 has it
 * too. */
#define _GNU_SOURCE
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
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

bool rd_fd_none_left(int error)
{
    return error == EMFILE || error == ENFILE;
}

bool rd_fd_refused(int error)
{
    return error == ENOSYS || error == EPERM || error == EACCES;
}

char *rd_strerror_room(void)
{
    static _Thread_local char text[RD_STRERROR_BYTES];

    return text;
}

const char *rd_fd_strerror(int error)
{
    struct rlimit limit;

    if (error == ENFILE)
        return "too many open files on this host (raise fs.file-max)";
    if ((error != EMFILE && error != EFBIG) || getrlimit(error == EMFILE ? RLIMIT_NOFILE : RLIMIT_FSIZE, &limit) != 0 ||
        limit.rlim_cur == RLIM_INFINITY)
        return strerror(error);
    char *text = rd_strerror_room();
    if (error == EFBIG)
        snprintf(text, RD_STRERROR_BYTES, "this process may write files of %llu bytes only (raise `ulimit -f`)",
                 (unsigned long long)limit.rlim_cur);
    else
        snprintf(text, RD_STRERROR_BYTES, "too many open files: this process may have %llu (raise `ulimit -n`)",
                 (unsigned long long)limit.rlim_cur);
    return text;
}

int rd_fd_free(int most)
{
    struct rlimit limit;
    int n = 0, saved = errno;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return most;
    for (int fd = RD_FD_FIRST; n < most && (rlim_t)fd < limit.rlim_cur; fd++)
        n += fcntl(fd, F_GETFD) < 0;
    errno = saved;
    return n;
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
