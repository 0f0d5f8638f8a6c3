/* The server does not answer, that is, the library's opening of a file takes as long as the test wants: who includes
 * this defines `serve`, which each path passes through. */
#ifndef TEST_UTIL_SLOW_OPEN_H
#define TEST_UTIL_SLOW_OPEN_H

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void serve(const char *path);

/* The library's calls come here. */
__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
    serve(path);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
}

__attribute__((visibility("default"))) int open64(const char *path, int flags, ...)
{
    serve(path);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
}

#endif
