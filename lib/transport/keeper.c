/* See keeper.h. Orders and descriptors reach the thread by a socket, of which it has one end. */
#define _GNU_SOURCE
#include "transport/keeper.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "boot/sock.h"

enum { HOLD, DROP, END };

typedef struct {
    int what, number;
} order_t;

/* Room for one descriptor beside an order. */
typedef union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
} control_t;

static int ends[2] = {-1, -1}; /* this process's, and the keeper's until it has a table of its own */
static bool refused;           /* by the system: it is not tried again */
static pthread_t thread;

/* ---- the thread ---- */

static bool next_order(int from, order_t *order, int *fd)
{
    control_t control;
    struct iovec part = {order, sizeof *order};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *with;

    *fd = -1;
    if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) != sizeof *order)
        return false;
    with = CMSG_FIRSTHDR(&message);
    if (with && with->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(with), sizeof *fd);
    return order->what != END;
}

/* A descriptor for which there is no memory stays open until the thread ends: to close it would be taken for this
 * process's death. */
static void put(int **held, int *room, int number, int fd)
{
    if (number >= *room) {
        int more = 2 * number + 16, *grown = realloc(*held, (size_t)more * sizeof *grown);
        if (!grown)
            return;
        for (int i = *room; i < more; i++)
            grown[i] = -1;
        *held = grown;
        *room = more;
    }
    (*held)[number] = fd;
}

static void *run(void *arg)
{
    int own = ends[1], fd, *held = NULL, room = 0;
    char ready = rd_fd_own_table(&own, 1) == 0;
    order_t order;

    (void)arg;
    if (send(own, &ready, 1, MSG_NOSIGNAL) != 1 || !ready)
        return NULL;
    while (next_order(own, &order, &fd)) {
        if (order.what == HOLD)
            put(&held, &room, order.number, fd);
        if (order.what == HOLD || order.number >= room || held[order.number] < 0)
            continue;
        rd_sock_part(held[order.number]);
        close(held[order.number]);
        held[order.number] = -1;
    }
    free(held);
    return NULL; /* the table goes with the thread */
}

/* ---- the callers ---- */

static void close_ends(void)
{
    rd_fd_close(ends[0]);
    rd_fd_close(ends[1]);
    ends[0] = ends[1] = -1;
}

/* Waits for the thread's word that it has a table. The caller is the user's thread, which may get signals. */
static bool is_ready(void)
{
    char ready = 0;
    ssize_t n;

    do
        n = recv(ends[0], &ready, 1, 0);
    while (n < 0 && errno == EINTR);
    return n == 1 && ready;
}

static bool start(void)
{
    rd_fd_fork_lock();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0) {
        ends[0] = rd_fd_keep(ends[0]);
        ends[1] = rd_fd_keep(ends[1]);
    }
    rd_fd_fork_unlock();
    if (ends[0] < 0 || ends[1] < 0 || rd_thread_start(&thread, run, NULL) != 0) {
        close_ends();
        return false;
    }
    if (is_ready()) {
        rd_fd_close(ends[1]); /* the thread has a copy of its own */
        ends[1] = -1;
        return true;
    }
    refused = true;
    rd_fd_close(ends[0]); /* a thread that waits for orders all the same ends by that */
    ends[0] = -1;
    pthread_join(thread, NULL);
    close_ends();
    return false;
}

static bool give(order_t order, int fd)
{
    control_t control;
    struct iovec part = {&order, sizeof order};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t n;

    if (fd >= 0) {
        message.msg_control = control.bytes;
        rd_fd_attach(&message, &fd, 1);
    }
    do
        n = sendmsg(ends[0], &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == sizeof order;
}

bool rd_keeper_hold(int number, int fd)
{
    if (ends[0] < 0 && (refused || !start()))
        return false;
    if (!give((order_t){HOLD, number}, fd))
        return false;
    rd_fd_close(fd);
    return true;
}

void rd_keeper_drop(int number)
{
    if (ends[0] >= 0)
        (void)give((order_t){DROP, number}, -1);
}

void rd_keeper_end(void)
{
    if (ends[0] < 0)
        return;
    if (give((order_t){END, 0}, -1))
        pthread_join(thread, NULL);
    close_ends();
}

void rd_keeper_forget(void)
{
    ends[0] = ends[1] = -1; /* closed by their own fork handler */
}
