/* Sockets of the bootstrap. All are close-on-exec, do not block, and are recorded in a small table, so that the child
 * of a fork closes them: a child that kept a copy would keep its parent's connections open after the parent's death,
 * and peers would wait for a dead rank. */
#include "boot/sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/wait.h"

#define BACKLOG 1024
#define MOST_FDS 65536
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2U
#endif
#define PART_MS 2 /* for which parts of a list that is too long for poll wait */

static pthread_mutex_t fork_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char *kept; /* kept[fd] != 0: close in the child */
static int kept_size;
static _Thread_local bool own_table; /* this thread has a table of descriptors of its own, which no child inherits */

static void fork_child(void)
{
    for (int fd = 0; fd < kept_size; fd++) {
        if (kept[fd])
            close(fd);
        kept[fd] = 0;
    }
    pthread_mutex_unlock(&fork_lock);
}

void rd_fd_fork_lock(void)
{
    pthread_mutex_lock(&fork_lock);
}

void rd_fd_fork_unlock(void)
{
    pthread_mutex_unlock(&fork_lock);
}

static const rd_fork_handlers_t at_fork = {
    .prepare = rd_fd_fork_lock, .parent = rd_fd_fork_unlock, .child = fork_child};

/* If the table cannot grow, the descriptor merely stays open in children. */
int rd_fd_keep(int fd)
{
    if (own_table)
        return fd;
    fd = rd_fd_high(fd);
    if (fd < 0)
        return -1;
    rd_fork_register(RD_FORK_SOCKETS, &at_fork);
    if (fd >= kept_size) {
        int size = fd + 64;
        unsigned char *more = realloc(kept, (size_t)size);
        if (!more)
            return fd;
        memset(more + kept_size, 0, (size_t)(size - kept_size));
        kept = more;
        kept_size = size;
    }
    kept[fd] = 1;
    return fd;
}

void rd_fd_close(int fd)
{
    if (fd < 0)
        return;
    rd_fd_fork_lock();
    if (fd < kept_size && !own_table)
        kept[fd] = 0;
    close(fd);
    rd_fd_fork_unlock();
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Closes all descriptors from `first` to `last`; on an old kernel one by one, as far as programs usually go. */
static void close_span(unsigned first, unsigned last)
{
#ifdef SYS_close_range
    if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
        return;
#endif
    for (unsigned fd = first; fd <= last && fd < MOST_FDS; fd++)
        close((int)fd);
}

/* The same, but for `log`, which may be -1. */
static void close_all_but(int log, unsigned first, unsigned last)
{
    if (log >= 0 && (unsigned)log >= first && (unsigned)log <= last) {
        close_span(first, (unsigned)log - 1);
        first = (unsigned)log + 1;
    }
    close_span(first, last);
}

/* The usual sandboxes of containers refuse unshare, for all that it can do, and let close_range do this. */
static int unshare_table(void)
{
    if (unshare(CLONE_FILES) == 0)
        return 0;
#ifdef SYS_close_range
    return (int)syscall(SYS_close_range, UINT_MAX, UINT_MAX, CLOSE_RANGE_UNSHARE);
#else
    return -1;
#endif
}

int rd_fd_own_table(int *own, int n)
{
    const int log = rd_log_fd(); /* before there is a table in which no other thread would have it */
    unsigned first = RD_FD_FIRST;

    if (unshare_table() != 0)
        return -1;
    own_table = true;
    close(STDIN_FILENO); /* a process that may have one descriptor has these two and no others */
    close(STDOUT_FILENO);
    if (n > 0)
        qsort(own, (size_t)n, sizeof *own, ascending);
    for (int i = 0; i < n; i++) {
        if (own[i] < RD_FD_FIRST)
            continue;
        close_all_but(log, first, (unsigned)own[i] - 1);
        first = (unsigned)own[i] + 1;
    }
    close_all_but(log, first, UINT_MAX);
    return 0;
}

bool rd_sock_again(int error, int *tries)
{
    const int most = 200; /* of a millisecond each */

    if (error == EINTR)
        return true;
    if ((error != ENOBUFS && error != ENOMEM) || ++*tries > most)
        return false;
    poll(NULL, 0, 1);
    return true;
}

/* As poll, in parts of `part` descriptors. */
static int poll_parts(struct pollfd *polls, nfds_t n, nfds_t part, int ms)
{
    const int64_t until = rd_clock_ms() + ms;

    for (;;) {
        int ready = 0;
        for (nfds_t i = 0; i < n; i += part) {
            int some = poll(polls + i, n - i < part ? n - i : part, 0);
            if (some < 0)
                return -1;
            ready += some;
        }
        if (ready || (ms >= 0 && rd_clock_ms() >= until))
            return ready;
        poll(NULL, 0, PART_MS);
    }
}

/* The kernel takes no list that is longer than RLIMIT_NOFILE, though its descriptors be open: those that were so when
 * the limit was lowered, and places in which there is none. Where it takes none at all, each is taken for ready after a
 * moment: nobody waits in what is done with one that is not. */
static int poll_within_limit(struct pollfd *polls, nfds_t n, int ms)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 0)
        return poll_parts(polls, n, limit.rlim_cur < n ? (nfds_t)limit.rlim_cur : n, ms);
    for (nfds_t i = 0; i < n; i++)
        polls[i].revents = (short)(polls[i].fd < 0 ? 0 : polls[i].events);
    return poll(NULL, 0, ms < 0 || ms > PART_MS ? PART_MS : ms);
}

bool rd_sock_poll(struct pollfd *polls, nfds_t n, int ms)
{
    int ready = poll(polls, n, ms);

    if (ready < 0 && errno == EINVAL)
        ready = poll_within_limit(polls, n, ms);
    return ready >= 0 || !rd_fd_refused(errno);
}

void rd_fd_attach(struct msghdr *message, const int *fds, int n)
{
    size_t bytes = (size_t)n * sizeof(int);
    struct cmsghdr *head = message->msg_control;

    message->msg_controllen = CMSG_SPACE(bytes);
    memset(head, 0, message->msg_controllen);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(head), fds, bytes);
}

static socklen_t to_sockaddr(const rd_addr_t *addr, struct sockaddr_storage *sa)
{
    memset(sa, 0, sizeof(*sa));
    if (addr->family == 4) {
        struct sockaddr_in *in = (struct sockaddr_in *)sa;
        in->sin_family = AF_INET;
        memcpy(&in->sin_port, addr->port, 2);
        memcpy(&in->sin_addr, addr->ip, 4);
        return sizeof(*in);
    }
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)sa;
    in6->sin6_family = AF_INET6;
    memcpy(&in6->sin6_port, addr->port, 2);
    memcpy(&in6->sin6_addr, addr->ip, 16);
    return sizeof(*in6);
}

static int from_sockaddr(const struct sockaddr *sa, rd_addr_t *addr)
{
    memset(addr, 0, sizeof(*addr));
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
        addr->family = 4;
        memcpy(addr->port, &in->sin_port, 2);
        memcpy(addr->ip, &in->sin_addr, 4);
        return 0;
    }
    if (sa->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
        addr->family = 6;
        memcpy(addr->port, &in6->sin6_port, 2);
        memcpy(addr->ip, &in6->sin6_addr, 16);
        return 0;
    }
    return -1;
}

const char *rd_addr_print(const rd_addr_t *addr, char text[RD_ADDR_TEXT])
{
    char ip[INET6_ADDRSTRLEN] = "?";
    inet_ntop(addr->family == 6 ? AF_INET6 : AF_INET, addr->ip, ip, sizeof(ip));
    snprintf(text, RD_ADDR_TEXT, addr->family == 6 ? "[%s]:%d" : "%s:%d", ip, addr->port[0] << 8 | addr->port[1]);
    return text;
}

bool rd_addr_same_host(const rd_addr_t *a, const rd_addr_t *b)
{
    return a->family == b->family && memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

rd_addr_t rd_addr_loopback(int family)
{
    rd_addr_t addr = {.family = (unsigned char)family};
    addr.ip[family == 4 ? 0 : 15] = family == 4 ? 127 : 1;
    if (family == 4)
        addr.ip[3] = 1;
    return addr;
}

bool rd_addr_is_loopback(const rd_addr_t *addr)
{
    rd_addr_t six = rd_addr_loopback(6);
    return addr->family == 4 ? addr->ip[0] == 127 : rd_addr_same_host(addr, &six);
}

int rd_addr_local(int fd, rd_addr_t *addr)
{
    struct sockaddr_storage sa;
    socklen_t bytes = sizeof(sa);
    return getsockname(fd, (struct sockaddr *)&sa, &bytes) == 0 ? from_sockaddr((struct sockaddr *)&sa, addr) : -1;
}

int rd_addr_remote(int fd, rd_addr_t *addr)
{
    struct sockaddr_storage sa;
    socklen_t bytes = sizeof(sa);
    return getpeername(fd, (struct sockaddr *)&sa, &bytes) == 0 ? from_sockaddr((struct sockaddr *)&sa, addr) : -1;
}

static bool is_link_local(const rd_addr_t *addr)
{
    return addr->family == 6 ? addr->ip[0] == 0xfe && (addr->ip[1] & 0xc0) == 0x80
                             : addr->ip[0] == 169 && addr->ip[1] == 254;
}

/* Rates how well an interface's address fits: 0 means not at all. IPv4 is preferred to IPv6 because every site routes
 * it. */
static int fitness(const struct ifaddrs *i, const rd_addr_t *addr, const char *wanted)
{
    char ip[INET6_ADDRSTRLEN] = "";
    unsigned up = IFF_UP | IFF_RUNNING;
    if ((i->ifa_flags & up) != up)
        return 0;
    inet_ntop(i->ifa_addr->sa_family, addr->ip, ip, sizeof(ip));
    if (*wanted && strcmp(wanted, i->ifa_name) != 0 && strcmp(wanted, ip) != 0)
        return 0;
    if (is_link_local(addr))
        return 0;
    if (!*wanted && (i->ifa_flags & IFF_LOOPBACK))
        return 0;
    return addr->family == 4 ? 2 : 1;
}

rondo_result_t rd_addr_choose(rd_addr_t *addr, const rd_env_t *env)
{
    struct ifaddrs *all;
    int best = 0, tries = 0, asked;
    while ((asked = getifaddrs(&all)) != 0 && rd_sock_again(errno, &tries))
        continue;
    if (asked != 0)
        return rd_error(NULL, RONDO_ERR_SYSTEM, "cannot list network interfaces: %s", rd_fd_strerror(errno));
    for (struct ifaddrs *i = all; i; i = i->ifa_next) {
        rd_addr_t one;
        if (!i->ifa_addr || from_sockaddr(i->ifa_addr, &one) != 0)
            continue;
        int fit = fitness(i, &one, env->iface);
        if (fit > best) {
            best = fit;
            *addr = one;
        }
    }
    freeifaddrs(all);
    if (!best && *env->iface)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "RONDO_IFACE=%s: no interface of that name or address is up here with an IPv4 or a global IPv6 "
                        "address (see `ip addr`)",
                        env->iface);
    if (!best)
        *addr = rd_addr_loopback(4);
    addr->port[0] = addr->port[1] = 0;
    return RONDO_SUCCESS;
}

/* Returns a socket that is in the table, or -1. SO_REUSEADDR lets a port of RONDO_PORTS be taken again while old
 * connections of it linger. */
static int kept_socket(int family)
{
    rd_fd_fork_lock();
    int fd = rd_fd_keep(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    rd_fd_fork_unlock();
    return fd;
}

static int try_port(int fd, const rd_addr_t *addr, int port)
{
    struct sockaddr_storage sa;
    rd_addr_t at = *addr;
    at.port[0] = (unsigned char)(port >> 8);
    at.port[1] = (unsigned char)port;
    socklen_t bytes = to_sockaddr(&at, &sa);
    return bind(fd, (struct sockaddr *)&sa, bytes) == 0 && listen(fd, BACKLOG) == 0 ? 0 : -1;
}

rondo_result_t rd_sock_listen(int *fd, rd_addr_t *addr, const rd_env_t *env, rd_log_ctx_t *ctx)
{
    char text[RD_ADDR_TEXT];
    int one = 1, bound = -1, port = env->port_first, s = -1;
    do { /* a new socket each time: one that was bound cannot be bound again when listen found the port taken */
        rd_fd_close(s);
        s = kept_socket(addr->family == 4 ? AF_INET : AF_INET6);
        if (s < 0)
            return rd_error(ctx, RONDO_ERR_SYSTEM, "cannot make a socket: %s", rd_fd_strerror(errno));
        setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (addr->family == 6)
            setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
        bound = try_port(s, addr, port);
    } while (bound != 0 && errno == EADDRINUSE && ++port <= env->port_last);
    if (bound == 0 && rd_addr_local(s, addr) == 0) {
        *fd = s;
        return RONDO_SUCCESS;
    }
    int error = errno;
    rd_fd_close(s);
    return rd_error(ctx, RONDO_ERR_SYSTEM, "cannot listen on %s, ports %d to %d: %s (see RONDO_IFACE, RONDO_PORTS)",
                    rd_addr_print(addr, text), env->port_first, env->port_last, strerror(error));
}

int rd_sock_connect(const rd_addr_t *addr)
{
    struct sockaddr_storage sa;
    int one = 1;
    int fd = kept_socket(addr->family == 4 ? AF_INET : AF_INET6);
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    socklen_t bytes = to_sockaddr(addr, &sa);
    if (connect(fd, (struct sockaddr *)&sa, bytes) == 0 || errno == EINPROGRESS)
        return fd;
    int error = errno;
    rd_fd_close(fd);
    errno = error;
    return -1;
}

int rd_sock_error(int fd)
{
    int error = 0;
    socklen_t bytes = sizeof error;
    char byte;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0)
        return error;
    if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno == EAGAIN || errno == EINTR || errno == ENOBUFS ||
        errno == ENOMEM || rd_fd_refused(errno))
        return 0;
    return errno;
}

#define PROBED_S 1       /* silence after which the kernel sends a probe, and time between probes */
#define RTO_MAX_MS 44    /* TCP_RTO_MAX_MS of Linux 6.15: an older kernel refuses it, which does no harm */
#define SILENT_MS 4500   /* after which the other host is given up; checked at the next probe */
#define STARVED_MS 10000 /* the same while this process has no core to ask often */
#define DOUBTFUL_MS 1400 /* silence after which the answer to the first probe is overdue */
#define DOUBTS 5         /* that must be in vain before SILENT_MS count */

/* Makes the kernel probe the other host after that many seconds of silence, and as often from then on. */
static void probe_every(int fd, int seconds)
{
    int on = 1;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
}

static void give_up_after(int fd, int silent_ms)
{
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof silent_ms); /* limits unacknowledged data, too */
}

void rd_sock_heartbeat(int fd, bool doubted)
{
    int on = 1;
    int resent_ms = 1000; /* at least so often: an answer that comes late can make Linux wait for five seconds */

    probe_every(fd, PROBED_S);
    give_up_after(fd, doubted ? STARVED_MS : SILENT_MS);
    setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof(on)); /* data is resent more often */
    setsockopt(fd, IPPROTO_TCP, RTO_MAX_MS, &resent_ms, sizeof(resent_ms));
}

void rd_sock_keep_open(int fd)
{
    int most = 9; /* probes in a row without an answer */

    probe_every(fd, 10);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &most, sizeof(most));
}

/* Where packets are lost, four probes in a row may be lost, so a doubtful peer is probed more often: when the idle time
 * is set and has already passed, Linux sends a probe at once (tcp_sock_set_keepidle_locked, then tcp_keepalive_timer).
 * A host whose cores are crowded handles packets late, too: then its own clock would end a connection whose answers are
 * waiting in it. So the silence counts from then on when this process has got to ask some times. */
void rd_sock_doubt(int fd, int *doubts)
{
    int idle_s = PROBED_S;
    struct tcp_info info;
    socklen_t bytes = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 || info.tcpi_state != TCP_ESTABLISHED)
        return;
    if (info.tcpi_last_ack_recv <= DOUBTFUL_MS || info.tcpi_last_data_recv <= DOUBTFUL_MS) {
        if (*doubts >= DOUBTS)
            give_up_after(fd, STARVED_MS);
        *doubts = 0;
        return;
    }
    if (++*doubts == DOUBTS)
        give_up_after(fd, SILENT_MS);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
}

int rd_sock_accept(int listener)
{
    int one = 1;
    rd_fd_fork_lock();
    int fd = rd_fd_keep(accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
    rd_fd_fork_unlock();
    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* fails harmlessly on a unix socket */
    return fd;
}

void rd_sock_part(int fd)
{
    const struct linger at_once = {.l_onoff = 1};
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};

    if (fd >= 0 && poll(&p, 1, 0) == 1 && p.revents & (POLLRDHUP | POLLHUP))
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once); /* fails harmlessly on a pidfd */
}

void rd_sock_close(int fd)
{
    rd_sock_part(fd);
    rd_fd_close(fd);
}
