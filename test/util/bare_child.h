/* A child made by a bare clone, which no fork handler sees: it holds a copy of every descriptor that its parent had. */
#ifndef TEST_BARE_CHILD_H
#define TEST_BARE_CHILD_H

#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* The child runs no handlers: only system calls are safe in it. It ends when the other end of the pipe `alive` has been
 * closed, at the latest by the death of the test's main process. Returns its number, or -1. */
static inline pid_t bare_child(int alive)
{
    pid_t child = (pid_t)syscall(SYS_clone, (long)SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) {
        char byte;
        syscall(SYS_setpgid, 0, 0);
        while (syscall(SYS_read, alive, &byte, 1) != 0)
            continue;
        syscall(SYS_exit_group, 0);
    }
    return child;
}

#endif
