/* See ras_server.h. */
#define _GNU_SOURCE
#include "core/ras_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "boot/sock.h"

#define POOR_MS 300 /* until it is tried again, where no descriptor is left */
#define END_S 1

typedef struct client {
    rd_ras_server_t *server;
    pthread_t thread;
    int fd;
    bool started, over; /* has it a thread, and has that one ended? */
} client_t;

/* Of threads, which may outlast the wait for their end. */
struct rd_ras_server {
    pthread_t thread;
    int listener;
    rd_ras_serve_fn serve;
    rd_wire_secret_t secret;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool stop;
    client_t clients[RD_RAS_CLIENTS];
    _Atomic int users; /* of this struct: the thread, and who ends it */
};

static void drop(rd_ras_server_t *s)
{
    if (atomic_fetch_sub(&s->users, 1) != 1)
        return;
    rd_fd_close(s->listener);
    rd_wire_forget(&s->secret);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- clients ---- */

static void *serve_one(void *arg)
{
    client_t *c = arg;
    rd_ras_server_t *s = c->server;

    s->serve(s, c->fd);
    pthread_mutex_lock(&s->lock);
    rd_sock_close(c->fd);
    c->fd = -1;
    c->over = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* With the lock, as what follows. */
static void begin_client(rd_ras_server_t *s, client_t *c, int fd)
{
    *c = (client_t){.server = s, .fd = fd};
    c->started = rd_thread_start(&c->thread, serve_one, c) == 0;
    if (!c->started)
        rd_sock_close(fd);
}

static void reap(client_t *c)
{
    if (!c->started || !c->over)
        return;
    pthread_join(c->thread, NULL); /* it takes no lock any more */
    c->started = false;
}

/* Waits for room for one more. Returns NULL if the server is to end. */
static client_t *wait_for_room(rd_ras_server_t *s)
{
    while (!s->stop) {
        for (int i = 0; i < RD_RAS_CLIENTS; i++) {
            reap(&s->clients[i]);
            if (!s->clients[i].started)
                return &s->clients[i];
        }
        pthread_cond_wait(&s->changed, &s->lock);
    }
    return NULL;
}

static void end_clients(rd_ras_server_t *s)
{
    for (int i = 0; i < RD_RAS_CLIENTS; i++) {
        while (s->clients[i].started && !s->clients[i].over)
            pthread_cond_wait(&s->changed, &s->lock);
        reap(&s->clients[i]);
    }
}

/* ---- the thread that accepts ---- */

/* Waits until the server is to end, or that time is over. Returns whether it goes on. */
static bool wait_for(rd_ras_server_t *s, int ms)
{
    struct timespec until;

    rd_clock_read(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    while (!s->stop && pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT)
        continue;
    return !s->stop;
}

bool rd_ras_server_pause(rd_ras_server_t *s, int ms)
{
    pthread_mutex_lock(&s->lock);
    bool on = wait_for(s, ms);
    pthread_mutex_unlock(&s->lock);
    return on;
}

/* Returns a connection, or -1 with errno; 0: a client has gone again. */
static int next(rd_ras_server_t *s)
{
    struct pollfd p = {.fd = s->listener, .events = POLLIN};

    if (poll(&p, 1, -1) < 0)
        return -1;
    int fd = rd_sock_accept(s->listener);
    if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
        errno = 0;
    return fd;
}

static void *run(void *arg)
{
    rd_ras_server_t *s = arg;
    client_t *room;

    pthread_mutex_lock(&s->lock);
    while ((room = wait_for_room(s))) {
        pthread_mutex_unlock(&s->lock);
        int fd = next(s), error = errno;
        pthread_mutex_lock(&s->lock);
        if (fd >= 0 && s->stop)
            rd_sock_close(fd);
        else if (fd >= 0)
            begin_client(s, room, fd);
        else if (error)
            (void)wait_for(s, POOR_MS); /* no descriptor may be left */
    }
    end_clients(s);
    pthread_mutex_unlock(&s->lock);
    drop(s);
    return NULL;
}

/* ---- beginning and end ---- */

/* Port 0 would be one that nobody knows. */
static bool is_port(const char *text)
{
    size_t n = strspn(text, "0123456789");
    int port = n > 0 && n <= 5 && !text[n] ? atoi(text) : 0;

    return port >= 1 && port <= 65535;
}

static bool is_loopback(const struct sockaddr *at)
{
    const struct sockaddr_in *four = (const void *)at;
    const struct sockaddr_in6 *six = (const void *)at;

    return at->sa_family == AF_INET ? ntohl(four->sin_addr.s_addr) >> 24 == 127
                                    : at->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

static int open_at(const struct addrinfo *at, bool loopback, const char **why)
{
    int on = 1;

    if (loopback && !is_loopback(at->ai_addr)) {
        *why = "the protocol knows no secret, so it is served on loopback alone, as localhost:28028; for other hosts "
               "there are RONDO_RAS_ADDR and RONDO_RAS_KEY";
        return -1;
    }

    rd_fd_fork_lock();
    int fd = rd_fd_keep(socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    rd_fd_fork_unlock();
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* no port is shared by that */
    if (fd >= 0 && bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, RD_RAS_CLIENTS) == 0)
        return fd;
    *why = errno == EADDRINUSE ? "the port is taken, perhaps by another job" : rd_fd_strerror(errno);
    rd_fd_close(fd);
    return -1;
}

int rd_ras_listen(const char *address, bool loopback, const char **why)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    const char *colon = strrchr(address, ':');
    struct addrinfo *found = NULL;
    char host[64];
    int bracket = address[0] == '[';

    *why = "it is not ADDRESS:PORT";
    if (!colon || colon - address <= 2 * bracket || (bracket && colon[-1] != ']'))
        return -1;
    snprintf(host, sizeof host, "%.*s", (int)(colon - address) - 2 * bracket, address + bracket);
    if (!is_port(colon + 1)) {
        *why = "the port is no number from 1 to 65535";
        return -1;
    }
    bool local = loopback && strcmp(host, "localhost") == 0;
    if (getaddrinfo(local ? "127.0.0.1" : host, colon + 1, &hints, &found) != 0)
        return -1;
    int fd = open_at(found, loopback, why);
    freeaddrinfo(found);
    return fd;
}

rd_ras_server_t *rd_ras_server_start(int listener, rd_ras_serve_fn serve, const rd_wire_secret_t *secret,
                                     const char **why)
{
    rd_ras_server_t *s = calloc(1, sizeof *s);

    if (!s) {
        *why = "there is no memory";
        rd_fd_close(listener);
        return NULL;
    }
    s->listener = listener;
    s->serve = serve;
    if (secret)
        s->secret = *secret;
    pthread_mutex_init(&s->lock, NULL);
    rd_cond_make(&s->changed);
    atomic_init(&s->users, 2);
    int error = rd_thread_start(&s->thread, run, s);
    if (!error)
        return s;
    *why = rd_thread_strerror(error);
    atomic_store(&s->users, 1);
    drop(s);
    return NULL;
}

void rd_ras_server_end(rd_ras_server_t *s)
{
    struct timespec until;

    pthread_mutex_lock(&s->lock);
    s->stop = true;
    (void)shutdown(s->listener, SHUT_RDWR); /* which ends the poll, and gives the port back */
    for (int i = 0; i < RD_RAS_CLIENTS; i++)
        if (s->clients[i].started && !s->clients[i].over)
            (void)shutdown(s->clients[i].fd, SHUT_RDWR);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    rd_clock_read(CLOCK_REALTIME, &until);
    until.tv_sec += END_S;
    if (pthread_timedjoin_np(s->thread, NULL, &until) != 0)
        pthread_detach(s->thread);
    drop(s);
}

void rd_ras_server_forget(rd_ras_server_t *s)
{
    rd_wire_forget(&s->secret);
}

const rd_wire_secret_t *rd_ras_server_secret(const rd_ras_server_t *s)
{
    return &s->secret;
}
