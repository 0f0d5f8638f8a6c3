/* A signal comes while the keeper is started, and with every order: a handler without SA_RESTART, as an interpreter's
 * are, ends the call (EINTR). The keeper holds and drops all the same, and ends. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/keeper.h"
#include "boot/sock.h"
#include "util/check.h"

#define TIMES 3 /* in a row */

static int received, sent, interrupted;

/* Returns true for the first calls of a series. */
static bool interrupt(int *calls)
{
    if ((*calls)++ % (TIMES + 1) == TIMES)
        return false;
    interrupted++;
    errno = EINTR;
    return true;
}

ssize_t __real_recv(int fd, void *to, size_t bytes, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t bytes, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t bytes, int flags)
{
    return interrupt(&received) ? -1 : __real_recv(fd, to, bytes, flags);
}

ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return interrupt(&sent) ? -1 : __real_sendmsg(fd, message, flags);
}

/* Returns true if nobody holds the other end any more: now, or, `waits`, soon. */
static bool is_ended(int fd, bool waits)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, waits ? 10000 : 0) == 1 && p.revents & POLLHUP;
}

int main(void)
{
    int ends[2][2];

    alarm(30);
    for (int i = 0; i < 2; i++) {
        if (pipe(ends[i]) != 0)
            return 1;
        check_now = "hold";
        rd_fd_fork_lock();
        int fd = rd_fd_keep(ends[i][1]);
        rd_fd_fork_unlock();
        CHECK(rd_keeper_hold(i, fd));
        CHECK(!is_ended(ends[i][0], false));
    }
    CHECK(interrupted == 3 * TIMES); /* one word of the thread, two orders */
    check_now = "drop";
    rd_keeper_drop(0);
    CHECK(is_ended(ends[0][0], true));
    CHECK(!is_ended(ends[1][0], false));
    check_now = "end";
    rd_keeper_end();
    CHECK(is_ended(ends[1][0], true)); /* a thread's table may go a moment after it has been joined */
    close(ends[0][0]);
    close(ends[1][0]);
    printf("keeper: %d calls interrupted, %d failures\n", interrupted, failures);
    return failures != 0;
}
