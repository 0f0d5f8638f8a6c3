/* See die_at.h. librondo finds these calls here, and not in the C library. */
#define _GNU_SOURCE
#include "core/die_at.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SEEN_BY_LIBRONDO __attribute__((visibility("default")))

static _Atomic int calls_left = -1;
static _Atomic int64_t *when;
static unsigned delay;

void die_now(void)
{
    atomic_store(when, test_clock_us());
    kill(getpid(), SIGKILL);
}

static void count_call(void)
{
    if (atomic_load(&calls_left) >= 0 && atomic_fetch_sub(&calls_left, 1) == 0)
        die_now();
}

SEEN_BY_LIBRONDO int poll(struct pollfd *fds, nfds_t nfds, int timeout)
{
    const struct timespec t = {timeout / 1000, timeout % 1000 * 1000000L};

    count_call();
    return ppoll(fds, nfds, timeout < 0 ? NULL : &t, NULL);
}

SEEN_BY_LIBRONDO ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    ssize_t sent = sendto(fd, data, bytes, flags, NULL, 0);

    count_call();
    return sent;
}

SEEN_BY_LIBRONDO ssize_t recv(int fd, void *data, size_t bytes, int flags)
{
    count_call();
    return recvfrom(fd, data, bytes, flags, NULL, NULL);
}

static void *die_later(void *arg)
{
    (void)arg;
    usleep(delay);
    die_now();
    return NULL;
}

void die_at(test_rank_t *t, int calls, unsigned delay_us, _Atomic int64_t *died_us)
{
    pthread_t thread;

    when = died_us;
    delay = delay_us;
    if (calls >= 0)
        atomic_store(&calls_left, calls);
    else if (pthread_create(&thread, NULL, die_later, NULL) != 0)
        test_stop(t, "cannot start a thread");
}
