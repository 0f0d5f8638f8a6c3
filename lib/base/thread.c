/* Starting a thread with every signal blocked: a new thread inherits the mask of the one that starts it. */
#define _GNU_SOURCE
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

#define LEAVES_MOST 100000    /* looks until a thread that has ended is counted no more */
#define LEAST_STACK (1 << 20) /* bytes that are enough for any thread's start, whatever the libraries keep there */

int rd_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    sigset_t before;
    rd_signals_block(&before);
    int error = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void rd_cond_make(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void *number(void *arg)
{
    *(pid_t *)arg = (pid_t)syscall(SYS_gettid);
    return NULL;
}

/* The kernel still counts the thread for a moment after pthread_join: the next one must not fail because of it. */
int rd_thread_try(void)
{
    pthread_t thread;
    pid_t tid;
    int error = rd_thread_start(&thread, number, &tid);
    if (error != 0)
        return error;
    pthread_join(thread, NULL);
    for (int i = 0; i < LEAVES_MOST && syscall(SYS_tgkill, getpid(), tid, 0) == 0; i++)
        sched_yield();
    return 0;
}

/* Writes that no stack can be had, and which limit is in the way. Returns false if one can be had. */
static bool lacks_stack(char *text, size_t size)
{
    pthread_attr_t attributes;
    struct rlimit limit;
    size_t bytes = 0, guard = 0;
    int resource = RLIMIT_AS;

    if (pthread_getattr_default_np(&attributes) != 0)
        return false;
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_getguardsize(&attributes, &guard);
    pthread_attr_destroy(&attributes);
    void *stack = mmap(NULL, bytes + guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack != MAP_FAILED) { /* there is address space: is there memory? */
        bool lacks = mprotect(stack, bytes, PROT_READ | PROT_WRITE) != 0;
        munmap(stack, bytes + guard);
        if (!lacks)
            return false;
        resource = RLIMIT_DATA;
    } else if (errno == EAGAIN) { /* all new memory is locked: mlockall(MCL_FUTURE) */
        resource = RLIMIT_MEMLOCK;
    }
    int n = bytes < 1 << 20 ? snprintf(text, size, "no memory for a stack of %zu KiB", bytes >> 10)
                            : snprintf(text, size, "no memory for a stack of %zu MiB", bytes >> 20);
    if (getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        snprintf(text + n, size - (size_t)n, " (raise `ulimit -%c` of %llu KiB)",
                 resource == RLIMIT_AS        ? 'v'
                 : resource == RLIMIT_MEMLOCK ? 'l'
                                              : 'd',
                 (unsigned long long)limit.rlim_cur >> 10);
    else
        snprintf(text + n, size - (size_t)n, " (lower `ulimit -s`)");
    return true;
}

/* Returns true, and writes it, if threads get a stack so small that the C library starts none. It takes the size from
 * `ulimit -s` when the program begins, and the program may set another one. */
static bool has_small_stack(char *text, size_t size)
{
    pthread_attr_t attributes;
    size_t bytes = 0;

    if (pthread_getattr_default_np(&attributes) != 0)
        return false;
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_destroy(&attributes);
    snprintf(text, size, "a stack of %zu KiB is too small for a thread (raise `ulimit -s`)", bytes >> 10);
    return bytes < LEAST_STACK;
}

const char *rd_thread_strerror(int error)
{
    if (error == EINVAL && has_small_stack(rd_strerror_room(), RD_STRERROR_BYTES))
        return rd_strerror_room();
    if (error != EAGAIN)
        return rd_fd_strerror(error);
    if (lacks_stack(rd_strerror_room(), RD_STRERROR_BYTES)) /* the C library says EAGAIN of that, too */
        return rd_strerror_room();
    return "no more threads (raise `ulimit -u`, or the cgroup's pids.max)";
}

void rd_signals_block(sigset_t *before)
{
    sigset_t every;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, before);
}
