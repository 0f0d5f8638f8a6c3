/* Giving out descriptors of records: see ras_socket.h. */
#include "monitor/ras_socket.h"

#include <errno.h>
#include <grp.h>
#include <linux/sockios.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/wait.h"
#include "boot/sock.h"
#include "monitor/held.h"
#include "monitor/process.h"
#include "monitor/process_int.h"

#define BACKLOG 64
#define TURN 16 /* connections that are looked at in one turn */

#define GROUP_MOST ((size_t)4 << 20)
#define GROUPS 1024 /* that are looked at, of a client's */

static int listener = -1;
static int64_t group = -1; /* whose members may ask; below 0: there is none */
static struct {
    int fd; /* -1: none */
    int64_t since_ms;
} clients[RD_SERVE_CLIENTS] = {{-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}};

socklen_t rd_serve_name(struct sockaddr_un *name, unsigned uid, int pid)
{
    memset(name, 0, sizeof *name);
    name->sun_family = AF_UNIX;
    int n = snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "rondo-ras/%u/%d", uid, pid);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

int64_t rd_serve_group(const char *name)
{
    struct group found, *result = NULL;
    char bytes[16384], *end;

    if (!*name)
        return -1;
    unsigned long number = strtoul(name, &end, 10);
    if (*name >= '0' && *name <= '9' && !*end && number < UINT32_MAX)
        return (int64_t)number;
    int error = getgrnam_r(name, &found, bytes, sizeof bytes, &result);
    char *more = error == ERANGE ? malloc(GROUP_MOST) : NULL; /* one with many members */
    if (more)
        (void)getgrnam_r(name, &found, more, GROUP_MOST, &result);
    int64_t gid = result ? (int64_t)result->gr_gid : -2;
    free(more);
    return gid;
}

void rd_serve_open(int64_t who)
{
    struct sockaddr_un name;
    socklen_t bytes = rd_serve_name(&name, (unsigned)geteuid(), (int)getpid());

    group = who;
    rd_fd_fork_lock();
    listener = rd_fd_keep(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    rd_fd_fork_unlock();
    if (listener >= 0 && bind(listener, (struct sockaddr *)&name, bytes) == 0 && listen(listener, BACKLOG) == 0)
        return;
    rd_fd_close(listener);
    listener = -1;
}

static void end_client(int i)
{
    rd_fd_close(clients[i].fd);
    clients[i].fd = -1;
}

void rd_serve_close(void)
{
    for (int i = 0; i < RD_SERVE_CLIENTS; i++)
        end_client(i);
    rd_fd_close(listener);
    listener = -1;
}

void rd_serve_forget(void)
{
    for (int i = 0; i < RD_SERVE_CLIENTS; i++)
        clients[i].fd = -1;
    listener = -1;
}

void rd_serve_observe(int epoll_fd, uint64_t data)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = data};

    rd_record_lock();
    if (listener >= 0)
        (void)epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event);
    rd_record_unlock();
}

/* Returns a place for a client; -1: all are taken. A client that has taken its answer, or has had its time, is over. */
static int free_client(int64_t now)
{
    int found = -1;

    for (int i = 0; i < RD_SERVE_CLIENTS; i++) {
        int waiting = 0;
        if (clients[i].fd >= 0 && (now - clients[i].since_ms >= RD_SERVE_IDLE_MS ||
                                   ioctl(clients[i].fd, SIOCOUTQ, &waiting) != 0 || waiting == 0))
            end_client(i);
        if (clients[i].fd < 0)
            found = i;
    }
    return found;
}

/* Is that process of the group, by its effective one or by one of the others that it has? */
static bool is_member(int fd, const struct ucred *peer)
{
    gid_t groups[GROUPS];
    socklen_t bytes = sizeof groups;

    if (group < 0)
        return false;
    if ((int64_t)peer->gid == group)
        return true;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) != 0)
        return false;
    for (size_t i = 0; i < bytes / sizeof *groups; i++)
        if ((int64_t)groups[i] == group)
            return true;
    return false;
}

static bool may_ask(int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
           (peer.uid == geteuid() || peer.uid == getuid() || peer.uid == 0 || is_member(fd, &peer));
}

/* Sends one message; what does not fit at once is not sent. */
static bool send_answer(int fd, rd_serve_status_t status, const int *fds, int count, bool last)
{
    rd_serve_answer_t answer = {RD_SERVE_MAGIC, RD_SERVE_VERSION, (uint32_t)status, (uint32_t)count, last};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(RD_SERVE_MOST * sizeof(int))];
    } control;
    struct iovec io = {&answer, sizeof answer};
    struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = &control};

    if (count)
        rd_fd_attach(&message, fds, count);
    return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof answer;
}

static void give_all(int fd)
{
    int fds[RD_SERVE_MOST] = {rd_record_fd()}, from = 0;
    int count = 1 + rd_held_list(from, fds + 1, RD_SERVE_MOST - 1);
    bool more = count == RD_SERVE_MOST;

    while (send_answer(fd, RD_SERVE_GIVEN, fds, count, !more) && more) {
        from += count - (from == 0);
        count = rd_held_list(from, fds, RD_SERVE_MOST);
        more = count == RD_SERVE_MOST;
    }
}

/* Returns false if nobody waits. */
static bool answer_one(void)
{
    rd_fd_fork_lock();
    int fd = rd_fd_keep(accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
    rd_fd_fork_unlock();
    if (fd < 0)
        return errno == EINTR || errno == ECONNABORTED;
    int at = free_client(rd_clock_ms());
    if (!may_ask(fd) || at < 0) {
        send_answer(fd, may_ask(fd) ? RD_SERVE_BUSY : RD_SERVE_REFUSED, NULL, 0, true);
        rd_fd_close(fd);
        return true;
    }
    clients[at].fd = fd;
    clients[at].since_ms = rd_clock_ms();
    give_all(fd);
    return true;
}

void rd_serve_turn(void)
{
    rd_record_lock();
    for (int i = 0; i < TURN && listener >= 0 && rd_record() && answer_one(); i++)
        continue;
    rd_record_unlock();
}
