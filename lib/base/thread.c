/* Starting a thread with every signal blocked: a new thread inherits the mask of the one that starts it. */
#define _GNU_SOURCE
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#define LEAVES_MOST 100000 /* looks until a thread that has ended is counted no more */

int rd_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    sigset_t before;
    rd_signals_block(&before);
    int error = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
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

const char *rd_thread_strerror(int error)
{
    return error == EAGAIN ? "no more threads (raise the limit on processes and threads: `ulimit -u`, or the cgroup's "
                             "pids.max)"
                           : rd_fd_strerror(error);
}

void rd_signals_block(sigset_t *before)
{
    sigset_t every;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, before);
}
