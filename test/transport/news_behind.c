/* A rank that hears of a mismatch may leave at once. Its farewell over the network says nothing of the reason, which
 * comes by the bootstrap, and may come later: whoever needs that rank meanwhile is told the mismatch, with both
 * lengths, and not that a rank has left. Here rank 1 reads nothing from the bootstrap for a moment. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util/harness.h"

#define OURS __attribute__((visibility("default"))) /* in place of the C library's, for rondo, too */
#define RANKS 3
#define DEAF_MS 100 /* less than what a rank grants the bootstrap */

static _Atomic int64_t deaf_until;

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Whoever calls for the networks hears: their libraries call this, too. */
static bool is_deaf(const void *caller)
{
    Dl_info info;

    return now_ms() < atomic_load(&deaf_until) && dladdr(caller, &info) && strstr(info.dli_fname, "librondo.so");
}

OURS int epoll_wait(int fd, struct epoll_event *events, int most, int ms)
{
    int n = epoll_pwait(fd, events, most, ms, NULL);

    while (is_deaf(__builtin_return_address(0)))
        usleep(1000);
    return n;
}

OURS ssize_t recv(int fd, void *to, size_t bytes, int flags)
{
    if (!is_deaf(__builtin_return_address(0)))
        return recvfrom(fd, to, bytes, flags, NULL, NULL);
    errno = EAGAIN;
    return -1;
}

OURS ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    if (!is_deaf(__builtin_return_address(0)))
        return syscall(SYS_recvmsg, fd, message, flags);
    errno = EAGAIN;
    return -1;
}

static void body(test_rank_t *t, void *arg)
{
    setenv("RONDO_SLOTS", "1", 1);          /* so that rank 1 looks at the network between its messages */
    rondo_comm_t comm = test_comm_on(t, 2); /* ranks 0 and 2, and rank 1 */
    char bytes[100] = {0};
    rondo_result_t result = RONDO_SUCCESS;

    (void)arg;
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_barrier(t);
    test_note(t, "100 bytes for 50, and a rank that leaves");
    if (t->rank == 0)
        TEST_GIVES(t, comm, RONDO_ERR_MISMATCH, rondo_recv(bytes, 50, RONDO_UINT8, 1, comm, NULL));
    if (t->rank == 2)
        TEST_GIVES(t, comm, RONDO_ERR_MISMATCH, rondo_recv(bytes, 1, RONDO_UINT8, 0, comm, NULL));
    if (t->rank == 1) {
        atomic_store(&deaf_until, now_ms() + DEAF_MS);
        result = rondo_send(bytes, 100, RONDO_UINT8, 0, comm, NULL);
        usleep(30000); /* ranks 0 and 2 leave */
        if (result == RONDO_SUCCESS)
            result = rondo_send(bytes, 1, RONDO_UINT8, 0, comm, NULL);
        while (result == RONDO_SUCCESS)
            result = rondo_barrier(comm, NULL);
        test_result(t, comm, result, RONDO_ERR_MISMATCH, test_noted(t));
    }
    const char *said = rondo_last_error(comm);
    if (!strstr(said, " 100 bytes") || !strstr(said, "expects 50"))
        test_fail(t, "the sentence must name both lengths: \"%s\"", said);
    rondo_comm_destroy(comm);
}

int main(void)
{
    test_begin("news_behind", 60);
    if (!test_has_network())
        return TEST_SKIPPED;
    return test_run(TEST_PROCESSES, RANKS, 30, body, NULL) != 0;
}
