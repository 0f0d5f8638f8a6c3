/* rondo-ras --host: dumps of the processes of other hosts, over TCP (lib/monitor/ras_wire.h), read as those of files
 * are. All hosts are asked at once, so that they look in the same moment, and what they say comes together in one view:
 * waits are followed from one to the next. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "load.h"
#include "monitor/ras_wire.h"
#include "ras.h"

#define FILES_MOST 4096 /* of a host */
#define CONNECT_MS 3000
#define ANSWER_MS 30000
#define AT_ONCE 128

/* What one host has said. */
typedef struct host {
    char name[300]; /* "n1:4567" */
    const rd_wire_secret_t *secret;
    load_file_t *files;
    int nfiles, files_room;
    size_t room;   /* of the last one */
    char why[128]; /* it has not answered; "": it has */
} host_t;

typedef struct hosts {
    host_t *all;
    int n;
    _Atomic int next; /* that nobody asks yet */
} hosts_t;

/* Returns a connection, or -1 with *why. */
static int connect_one(const struct addrinfo *to, const char **why)
{
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0;
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    socklen_t size = sizeof error;

    if (fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0)
        return fd;
    error = errno;
    if (fd >= 0 && error == EINPROGRESS) {
        error = poll(&p, 1, CONNECT_MS) == 1 ? 0 : ETIMEDOUT;
        if (!error && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && !error)
            return fd;
    }
    *why = rd_fd_strerror(error);
    if (fd >= 0)
        close(fd);
    return -1;
}

/* "n1:4567" or "[::1]:4567" */
static int connect_to(const char *host, const char **why)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const char *colon = strrchr(host, ':');
    struct addrinfo *all = NULL;
    char name[256];
    int bracket = host[0] == '[', fd = -1;

    *why = "it is not HOST:PORT, the port of RONDO_RAS_ADDR";
    if (!colon || colon - host <= 2 * bracket || (bracket && colon[-1] != ']'))
        return -1;
    snprintf(name, sizeof name, "%.*s", (int)(colon - host) - 2 * bracket, host + bracket);
    int error = getaddrinfo(name, colon + 1, &hints, &all);
    if (error)
        *why = gai_strerror(error);
    for (const struct addrinfo *at = all; at && fd < 0; at = at->ai_next)
        fd = connect_one(at, why);
    if (all)
        freeaddrinfo(all);
    return fd;
}

static bool begin_file(host_t *host)
{
    if (host->nfiles == host->files_room) {
        int room = host->files_room ? 2 * host->files_room : 16;
        load_file_t *more = room <= FILES_MOST ? realloc(host->files, (size_t)room * sizeof *more) : NULL;
        if (!more)
            return false;
        host->files = more;
        host->files_room = room;
    }
    host->files[host->nfiles++] = (load_file_t){.from = host->name};
    host->room = 0;
    return true;
}

static bool add_bytes(host_t *host, const char *bytes, size_t n)
{
    load_file_t *last = host->nfiles ? &host->files[host->nfiles - 1] : NULL;

    if (!last || last->n + n > VALUE_FILE_MOST)
        return false;
    if (last->n + n > host->room) {
        size_t room = 2 * (last->n + n);
        unsigned char *more = realloc(last->bytes, room);
        if (!more)
            return false;
        last->bytes = more;
        host->room = room;
    }
    memcpy(last->bytes + last->n, bytes, n);
    last->n += n;
    return true;
}

/* Returns NULL when all have come, or why they have not. */
static const char *receive(rd_wire_t *wire, host_t *host)
{
    char bytes[RD_WIRE_RECORD];
    size_t n;

    for (;;) {
        int what = rd_wire_receive(wire, bytes, &n);
        if (what == RD_WIRE_END)
            return NULL;
        if (what != RD_WIRE_FILE && what != RD_WIRE_DATA)
            return "its answer has broken off";
        if (what == RD_WIRE_FILE ? !begin_file(host) : !add_bytes(host, bytes, n))
            return "its answer is too long, or there is no memory for it";
    }
}

static void ask(host_t *host)
{
    const char *why;
    rd_wire_t wire;
    int fd = connect_to(host->name, &why);

    if (fd >= 0) {
        why = rd_wire_ask(&wire, fd, host->secret, ANSWER_MS);
        if (!why)
            why = receive(&wire, host);
        rd_wire_end(&wire);
        close(fd);
    }
    snprintf(host->why, sizeof host->why, "%s", why ? why : "");
}

static void *ask_some(void *arg)
{
    hosts_t *hosts = arg;

    for (int i; (i = atomic_fetch_add(&hosts->next, 1)) < hosts->n;)
        ask(&hosts->all[i]);
    return NULL;
}

/* Where no thread can be started, this one asks one after the other. Of a host that does not answer nothing is known,
 * which is said; the others are shown. */
static void ask_all(hosts_t *hosts)
{
    pthread_t threads[AT_ONCE];
    int n = 0;

    while (n < AT_ONCE && n + 1 < hosts->n && pthread_create(&threads[n], NULL, ask_some, hosts) == 0)
        n++;
    ask_some(hosts);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < hosts->n; i++)
        if (hosts->all[i].why[0])
            fprintf(stderr, "rondo-ras: %s: %s\n", hosts->all[i].name, hosts->all[i].why);
}

/* Takes their names, by comma. Returns false if there is no memory. */
static bool list_hosts(hosts_t *hosts, const char *names, const rd_wire_secret_t *secret)
{
    size_t most = 1;

    for (const char *at = names; *at; at++)
        most += *at == ',';
    hosts->all = calloc(most, sizeof *hosts->all);
    while (hosts->all && *names) {
        host_t *host = &hosts->all[hosts->n];
        size_t n = strcspn(names, ",");
        snprintf(host->name, sizeof host->name, "%.*s", (int)(n < sizeof host->name ? n : sizeof host->name), names);
        host->secret = secret;
        hosts->n += n > 0;
        names += n + (names[n] == ',');
    }
    return hosts->all;
}

/* Puts what all have said together. */
static bool load_all(rd_view_t *view, const hosts_t *hosts, int job)
{
    load_file_t *files;
    int n = 0;

    for (int i = 0; i < hosts->n; i++)
        n += hosts->all[i].nfiles;
    files = calloc((size_t)n + 1, sizeof *files);
    n = 0;
    for (int i = 0; files && i < hosts->n; i++)
        for (int k = 0; k < hosts->all[i].nfiles; k++)
            files[n++] = hosts->all[i].files[k];
    bool good = n > 0 && load_files(view, files, n, job);
    free(files);
    return good;
}

static void free_hosts(hosts_t *hosts)
{
    for (int i = 0; hosts->all && i < hosts->n; i++) {
        for (int k = 0; k < hosts->all[i].nfiles; k++)
            free(hosts->all[i].files[k].bytes);
        free(hosts->all[i].files);
    }
    free(hosts->all);
}

bool ras_find_hosts(rd_view_t *view, const ras_options_t *options)
{
    rd_wire_secret_t secret;
    hosts_t hosts = {.n = 0};
    const char *why = options->key ? rd_wire_secret(&secret, options->key) : "--key FILE, or RONDO_RAS_KEY, is needed";

    memset(view, 0, sizeof *view);
    if (why || !list_hosts(&hosts, options->hosts, &secret)) {
        fprintf(stderr, "rondo-ras: the secret of the other hosts%s%s: %s\n", options->key ? ", " : "",
                options->key ? options->key : "", why ? why : "no memory");
        return false;
    }
    ask_all(&hosts);
    rd_wire_forget(&secret);
    bool good = load_all(view, &hosts, options->job);
    free_hosts(&hosts);
    return good;
}
