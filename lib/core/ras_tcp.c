/* See ras_tcp.h. */
#define _GNU_SOURCE
#include "core/ras_tcp.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "boot/sock.h"
#include "monitor/dump.h"
#include "monitor/held.h"
#include "monitor/ras_wire.h"
#include "monitor/verdict.h"

#define BACKLOG 4
#define CLIENT_MS 20000 /* for all of an answer */
#define LOOK_MS 300     /* whether it is to end */
#define END_MS 1000

/* Of one thread, which may outlast the wait for its end. */
typedef struct server {
    pthread_t thread;
    int listener;
    rd_wire_secret_t secret;
    _Atomic int stop, users; /* users: of this struct: the thread, and who waits for it */
} server_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static server_t *server;
static pid_t decided; /* the process that has decided whether it listens */
static int users;     /* its communicators */

static void drop(server_t *s)
{
    if (atomic_fetch_sub(&s->users, 1) != 1)
        return;
    rd_fd_close(s->listener);
    rd_wire_forget(&s->secret);
    free(s);
}

/* ---- answers ---- */

/* Returns false if the client has gone. */
static bool send_file(rd_wire_t *wire, int fd, const char *name)
{
    char bytes[RD_WIRE_RECORD];
    bool good = rd_wire_send(wire, RD_WIRE_FILE, name, strlen(name)) && lseek(fd, 0, SEEK_SET) == 0;

    for (ssize_t n = 1; good && n > 0;) {
        n = read(fd, bytes, sizeof bytes);
        good = n == 0 || (n > 0 && rd_wire_send(wire, RD_WIRE_DATA, bytes, (size_t)n));
    }
    return good;
}

static bool send_process(rd_wire_t *wire, const rd_dump_t *dump, int process)
{
    char name[64];
    rd_out_t out;

    rd_fd_fork_lock();
    int fd = rd_fd_keep(memfd_create("rondo-ras", MFD_CLOEXEC));
    rd_fd_fork_unlock();
    if (fd < 0)
        return false;
    snprintf(name, sizeof name, "rondo_dump_%d.json", dump->numbers[process]);
    rd_out_begin(&out, fd);
    rd_dump_json(&out, dump, process);
    bool good = rd_out_end(&out) == 0 && send_file(wire, fd, name);
    rd_fd_close(fd);
    return good;
}

static bool send_all(rd_wire_t *wire, const rd_dump_t *dump)
{
    bool good = true;

    for (int i = 0; i < dump->view->nprocesses && good; i++)
        good = !rd_dump_has(dump, i) || send_process(wire, dump, i);
    return good && rd_wire_send(wire, RD_WIRE_END, NULL, 0);
}

/* Looks twice, as rondo-ras who does. */
static bool look(rd_view_t *view)
{
    const struct timespec between = {0, RD_VERDICT_MS * 1000000};

    if (!rd_held_view(view) || !rd_view_look(view, 0) || !view->nprocesses)
        return false;
    nanosleep(&between, NULL);
    return rd_view_look(view, 0);
}

static void answer(const server_t *s, int fd)
{
    rd_wire_t wire;
    rd_view_t view = {0};
    rd_dump_t dump = {0};
    const char *why = rd_wire_serve(&wire, fd, &s->secret, CLIENT_MS);
    rd_addr_t peer;
    char text[RD_ADDR_TEXT];

    if (why)
        rd_log(NULL, RD_LOG_INFO, "rondo-ras at %s is refused: %s",
               rd_addr_remote(fd, &peer) == 0 ? rd_addr_print(&peer, text) : "an unknown address", why);
    else if (look(&view) && rd_dump_read(&dump, &view, view.processes[0].job))
        (void)send_all(&wire, &dump);
    if (dump.view)
        rd_dump_free(&dump);
    rd_view_free(&view);
    rd_wire_end(&wire);
}

static void *run(void *arg)
{
    server_t *s = arg;

    while (!atomic_load(&s->stop)) {
        struct pollfd p = {.fd = s->listener, .events = POLLIN};
        if (poll(&p, 1, LOOK_MS) != 1)
            continue;
        int fd = rd_sock_accept(s->listener);
        if (fd < 0) {
            (void)poll(NULL, 0, LOOK_MS); /* no descriptor may be left */
            continue;
        }
        answer(s, fd);
        rd_sock_close(fd);
    }
    drop(s);
    return NULL;
}

/* ---- beginning ---- */

/* Port 0 would be one that nobody knows. */
static bool is_port(const char *text)
{
    size_t n = strspn(text, "0123456789");
    int port = n > 0 && n <= 5 && !text[n] ? atoi(text) : 0;

    return port >= 1 && port <= 65535;
}

/* "10.0.0.1:4567" or "[::1]:4567". Returns a descriptor, or -1 with *why. */
static int open_at(const char *address, const char **why)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    const char *colon = strrchr(address, ':');
    struct addrinfo *found = NULL;
    char host[64];
    int on = 1, bracket = address[0] == '[';

    *why = "it is not ADDRESS:PORT";
    if (!colon || colon - address <= 2 * bracket || (bracket && colon[-1] != ']'))
        return -1;
    snprintf(host, sizeof host, "%.*s", (int)(colon - address) - 2 * bracket, address + bracket);
    if (!is_port(colon + 1)) {
        *why = "the port is no number from 1 to 65535";
        return -1;
    }
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0)
        return -1;
    rd_fd_fork_lock();
    int fd = rd_fd_keep(socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    rd_fd_fork_unlock();
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* no port is shared by that */
    if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        *why = errno == EADDRINUSE ? "the port is taken, perhaps by another job" : rd_fd_strerror(errno);
        rd_fd_close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

static server_t *begin(rondo_comm_t comm)
{
    const char *why = "RONDO_RAS_KEY is not set, and nobody may ask without";
    server_t *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->listener = -1;
    atomic_init(&s->users, 2);
    if (comm->env.ras_key[0])
        why = rd_wire_secret(&s->secret, comm->env.ras_key);
    if (!why)
        s->listener = open_at(comm->env.ras_addr, &why);
    if (s->listener >= 0) {
        int error = rd_thread_start(&s->thread, run, s);
        if (!error)
            return s;
        why = rd_thread_strerror(error);
    }
    rd_log(&comm->ctx, RD_LOG_WARN, "RONDO_RAS_ADDR=%s: nobody can ask there: %s", comm->env.ras_addr, why);
    atomic_store(&s->users, 1);
    drop(s);
    return NULL;
}

static bool is_lowest(const struct rondo_comm *comm)
{
    const int *node_of = comm->node.node_of;

    for (int r = 0; r < comm->team.rank; r++)
        if (node_of[r] == node_of[comm->team.rank])
            return false;
    return true;
}

void rd_ras_tcp_join(rondo_comm_t comm)
{
    if (comm->internal || !comm->env.ras_addr[0] || !comm->seat.record)
        return;
    pthread_mutex_lock(&lock);
    if (decided != getpid()) { /* a forked child has no such thread */
        decided = getpid();
        users = 0;
        server = is_lowest(comm) ? begin(comm) : NULL;
    }
    users++;
    comm->ras_tcp = true;
    pthread_mutex_unlock(&lock);
}

void rd_ras_tcp_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    if (server)
        rd_wire_forget(&server->secret);
    server = NULL;
    users = 0;
    decided = 0;
}

static void end(server_t *s)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_MS / 1000;
    atomic_store(&s->stop, 1);
    if (pthread_timedjoin_np(s->thread, NULL, &until) != 0)
        pthread_detach(s->thread);
    drop(s);
}

void rd_ras_tcp_leave(rondo_comm_t comm)
{
    server_t *last = NULL;

    if (!comm->ras_tcp)
        return;
    comm->ras_tcp = false;
    pthread_mutex_lock(&lock);
    if (--users == 0) {
        last = server;
        server = NULL;
        decided = 0;
    }
    pthread_mutex_unlock(&lock);
    if (last)
        end(last);
}
