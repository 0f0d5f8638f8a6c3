/* The calls of librondo that fail: see calls.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <ifaddrs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fault/calls.h"

calls_t calls;

static int refused(const char *name)
{
    long n, at = atomic_load(&calls.fail_at);

    if (!atomic_load(&calls.armed) || (calls.counted && strcmp(name, calls.counted) != 0))
        return 0;
    n = atomic_fetch_add(&calls.asked, 1) + 1;
    if (at == 0 || n < at || (n > at && !atomic_load(&calls.fail_on)))
        return 0;
    if (n == at)
        strncpy(calls.failed, name, CALLS_NAME - 1);
    if (n == at && calls.show_where) {
        void *frame[24];
        backtrace_symbols_fd(frame, backtrace(frame, 24), STDOUT_FILENO);
    }
    return 1;
}

#define FAIL(type, name, error, failure, params, args)                                                                 \
    type __real_##name params;                                                                                         \
    type __wrap_##name params;                                                                                         \
    type __wrap_##name params                                                                                          \
    {                                                                                                                  \
        if (refused(#name)) {                                                                                          \
            errno = error;                                                                                             \
            return failure;                                                                                            \
        }                                                                                                              \
        return __real_##name args;                                                                                     \
    }

/* The same for what makes something that must be given back. */
#define FAIL_COUNTED(type, name, error, failure, counter, params, args)                                                \
    type __real_##name params;                                                                                         \
    type __wrap_##name params;                                                                                         \
    type __wrap_##name params                                                                                          \
    {                                                                                                                  \
        type made = failure;                                                                                           \
        if (refused(#name))                                                                                            \
            errno = error;                                                                                             \
        else                                                                                                           \
            made = __real_##name args;                                                                                 \
        if (made != failure)                                                                                           \
            atomic_fetch_add(&calls.counter, 1);                                                                       \
        return made;                                                                                                   \
    }

FAIL_COUNTED(void *, malloc, ENOMEM, NULL, live, (size_t bytes), (bytes))
FAIL_COUNTED(void *, calloc, ENOMEM, NULL, live, (size_t n, size_t bytes), (n, bytes))
FAIL_COUNTED(void *, aligned_alloc, ENOMEM, NULL, live, (size_t to, size_t bytes), (to, bytes))
FAIL_COUNTED(void *, mmap, ENOMEM, MAP_FAILED, mapped,
             (void *at, size_t bytes, int protection, int flags, int fd, off_t offset),
             (at, bytes, protection, flags, fd, offset))
FAIL(int, socket, EMFILE, -1, (int domain, int type, int protocol), (domain, type, protocol))
FAIL(int, connect, ENETUNREACH, -1, (int fd, const struct sockaddr *to, socklen_t bytes), (fd, to, bytes))
FAIL(int, bind, EADDRNOTAVAIL, -1, (int fd, const struct sockaddr *to, socklen_t bytes), (fd, to, bytes))
FAIL(int, listen, EADDRINUSE, -1, (int fd, int backlog), (fd, backlog))
FAIL(int, accept4, EMFILE, -1, (int fd, struct sockaddr *from, socklen_t *bytes, int flags), (fd, from, bytes, flags))
FAIL(int, getsockname, ENOBUFS, -1, (int fd, struct sockaddr *name, socklen_t *bytes), (fd, name, bytes))
FAIL(int, getpeername, ENOBUFS, -1, (int fd, struct sockaddr *name, socklen_t *bytes), (fd, name, bytes))
FAIL(int, setsockopt, ENOBUFS, -1, (int fd, int level, int name, const void *value, socklen_t bytes),
     (fd, level, name, value, bytes))
FAIL(ssize_t, sendmsg, ENOBUFS, -1, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
FAIL(ssize_t, recvmsg, ENOBUFS, -1, (int fd, struct msghdr *message, int flags), (fd, message, flags))
FAIL(int, getifaddrs, EMFILE, -1, (struct ifaddrs * *all), (all))
FAIL(int, memfd_create, EMFILE, -1, (const char *name, unsigned flags), (name, flags))
FAIL(int, ftruncate, ENOSPC, -1, (int fd, off_t bytes), (fd, bytes))
FAIL(int, fallocate, ENOSPC, -1, (int fd, int mode, off_t from, off_t bytes), (fd, mode, from, bytes))
FAIL(int, eventfd, EMFILE, -1, (unsigned value, int flags), (value, flags))
FAIL(int, epoll_create1, EMFILE, -1, (int flags), (flags))
FAIL(FILE *, fopen, EMFILE, NULL, (const char *name, const char *mode), (name, mode))
FAIL(ssize_t, process_vm_readv, EPERM, -1,
     (pid_t pid, const struct iovec *here, unsigned long nhere, const struct iovec *there, unsigned long nthere,
      unsigned long flags),
     (pid, here, nhere, there, nthere, flags))
FAIL(int, pthread_create, EAGAIN, EAGAIN,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg),
     (thread, attributes, run, arg))

/* Taking a thing away from a set is never refused. */
int __real_epoll_ctl(int fd, int what, int which, struct epoll_event *event);
int __wrap_epoll_ctl(int fd, int what, int which, struct epoll_event *event);
int __wrap_epoll_ctl(int fd, int what, int which, struct epoll_event *event)
{
    if (what == EPOLL_CTL_ADD && refused("epoll_ctl")) {
        errno = ENOSPC;
        return -1;
    }
    return __real_epoll_ctl(fd, what, which, event);
}

int __real_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...)
{
    va_list args;
    long arg;

    va_start(args, what);
    arg = va_arg(args, long);
    va_end(args);
    if (refused("fcntl")) {
        errno = EMFILE;
        return -1;
    }
    return __real_fcntl(fd, what, arg);
}

/* pidfd_open and membarrier. */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    va_list args;
    long arg[6];
    int i;

    va_start(args, number);
    for (i = 0; i < 6; i++)
        arg[i] = va_arg(args, long);
    va_end(args);
    if (refused("syscall")) {
        errno = number == SYS_membarrier ? ENOSYS : EMFILE;
        return -1;
    }
    return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

int __real_posix_memalign(void **made, size_t to, size_t bytes);
int __wrap_posix_memalign(void **made, size_t to, size_t bytes);
int __wrap_posix_memalign(void **made, size_t to, size_t bytes)
{
    int error = refused("posix_memalign") ? ENOMEM : __real_posix_memalign(made, to, bytes);

    if (error == 0)
        atomic_fetch_add(&calls.live, 1);
    return error;
}

void *__real_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes)
{
    void *made;

    if (refused("realloc")) {
        errno = ENOMEM;
        return NULL;
    }
    made = __real_realloc(old, bytes);
    if (made && !old)
        atomic_fetch_add(&calls.live, 1);
    return made;
}

void __real_free(void *old);
void __wrap_free(void *old);
void __wrap_free(void *old)
{
    if (old)
        atomic_fetch_sub(&calls.live, 1);
    __real_free(old);
}

int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes)
{
    atomic_fetch_sub(&calls.mapped, 1);
    return __real_munmap(at, bytes);
}
