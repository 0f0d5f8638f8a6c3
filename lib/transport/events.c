/* What liveness's thread sleeps on: epoll, and an eventfd in it. See events.h. */
#include "transport/events.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "boot/sock.h"
#include "base/fd.h"

#define LOOK_MS 10 /* where nothing can be awaited */

static int set = -1, wake = -1;

int rd_events_open(void)
{
    rd_fd_fork_lock();
    set = rd_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    wake = rd_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    rd_fd_fork_unlock();
    if (set >= 0 && wake >= 0 && rd_events_add(wake, EPOLLIN, RD_EVENT_WAKE) == 0)
        return 0;
    rd_events_close();
    return -1;
}

void rd_events_close(void)
{
    rd_fd_close(wake);
    rd_fd_close(set);
    rd_events_forget();
}

void rd_events_forget(void)
{
    set = wake = -1;
}

int rd_events_add(int fd, uint32_t events, uint64_t which)
{
    struct epoll_event event = {.events = events, .data.u64 = which};

    return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

void rd_events_drop(int fd)
{
    epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL);
}

int rd_events_fd(void)
{
    return set;
}

/* A sandbox may refuse one of two calls that do the same. Where it refuses both, the thread can still be woken; where
 * it refuses poll as well, the thread looks now and then whether it was. */
int rd_events_await(struct epoll_event *come, int most, int ms)
{
    const struct timespec moment = {0, LOOK_MS * 1000000};
    struct pollfd woken = {.fd = wake, .events = POLLIN};
    int n = epoll_wait(set, come, most, ms);

    if (n < 0 && rd_fd_refused(errno))
        n = epoll_pwait(set, come, most, ms, NULL);
    if (n >= 0 || !rd_fd_refused(errno))
        return n;
    come[0] = (struct epoll_event){.events = EPOLLIN, .data.u64 = RD_EVENT_WAKE};
    n = poll(&woken, 1, ms);
    if (n >= 0 || !rd_fd_refused(errno))
        return n == 1;
    nanosleep(&moment, NULL);
    return 1;
}

int rd_events_wake(void)
{
    const uint64_t one = 1;

    return write(wake, &one, sizeof one) == sizeof one ? 0 : -1;
}

void rd_events_woken(void)
{
    uint64_t times;

    (void)!read(wake, &times, sizeof times);
}
