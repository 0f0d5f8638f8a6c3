/* rondo-info doctor --network: can each node open a connection to each other one, at the address and in the range of
 * ports where ranks would meet? Whoever connects is sent a number that the node has drawn: an address that several
 * hosts have, such as that of a bridge for containers, leads elsewhere, and somebody may answer there. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/wait.h"
#include "doctor_nodes.h"

#define AT_A_TIME 64 /* connections that a node makes at once: fewer than a listener's queue holds */

struct nodes_listener {
    int fd, end[2]; /* a byte in the pipe ends the thread */
    uint64_t token;
    pthread_t thread;
};

static void *answer(void *arg)
{
    nodes_listener_t *l = arg;
    struct pollfd p[2] = {{.fd = l->fd, .events = POLLIN}, {.fd = l->end[0], .events = POLLIN}};

    while (poll(p, 2, -1) > 0 || errno == EINTR) {
        if (p[1].revents)
            break;
        int fd = p[0].revents ? rd_sock_accept(l->fd) : -1;
        if (fd >= 0)
            (void)send(fd, &l->token, sizeof l->token, MSG_NOSIGNAL); /* who has gone away needs no answer */
        rd_fd_close(fd);
    }
    return NULL;
}

nodes_listener_t *doctor_listen(int fd, uint64_t token)
{
    nodes_listener_t *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->fd = fd;
    l->token = token;
    if (pipe(l->end) == 0) {
        if (pthread_create(&l->thread, NULL, answer, l) == 0)
            return l;
        close(l->end[0]);
        close(l->end[1]);
    }
    free(l);
    return NULL;
}

void doctor_listen_end(nodes_listener_t *l)
{
    if (!l)
        return;
    if (write(l->end[1], "", 1) == 1)
        pthread_join(l->thread, NULL);
    close(l->end[0]);
    close(l->end[1]);
    rd_fd_close(l->fd);
    free(l);
}

/* What came of a connection that poll has called ready. */
static int outcome(int fd, uint64_t token)
{
    uint64_t got = 0;
    int error = 0;
    socklen_t bytes = sizeof error;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 || error != 0)
        return error ? error : errno;
    ssize_t n = read(fd, &got, sizeof got);
    if (n < 0)
        return errno;
    return n == (ssize_t)sizeof got && got == token ? 0 : EBADMSG;
}

/* The nodes of one batch, beginning behind `self`, so that no listener has all others at once. */
static void batch(const nodes_node_t *node, const int *to, int n, int limit_ms, int *error)
{
    struct pollfd p[AT_A_TIME];
    int64_t until = rd_clock_ms() + limit_ms, now;
    int open = 0;

    for (int i = 0; i < n; i++) {
        p[i] = (struct pollfd){.fd = rd_sock_connect(&node[to[i]].at), .events = POLLIN};
        error[to[i]] = p[i].fd < 0 ? errno : ETIMEDOUT;
        open += p[i].fd >= 0;
    }
    while (open > 0 && (now = rd_clock_ms()) < until) {
        if (poll(p, (nfds_t)n, (int)(until - now)) < 0 && errno != EINTR)
            break;
        for (int i = 0; i < n; i++) {
            if (p[i].fd < 0 || !p[i].revents)
                continue;
            error[to[i]] = outcome(p[i].fd, node[to[i]].token);
            rd_fd_close(p[i].fd);
            p[i].fd = -1;
            open--;
        }
    }
    for (int i = 0; i < n; i++)
        rd_fd_close(p[i].fd);
}

void doctor_reach(const nodes_node_t *node, int n, int self, int limit_ms, int *error)
{
    int to[AT_A_TIME], count = 0;

    for (int i = 1; i <= n; i++) {
        int other = (self + i) % n;
        error[other] = 0;
        if (other != self && node[other].at.family != 0)
            to[count++] = other;
        if (count == AT_A_TIME || i == n) {
            batch(node, to, count, limit_ms, error);
            count = 0;
        }
    }
}
