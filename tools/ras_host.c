/* rondo-ras --host: dumps of the processes of other hosts, over TCP (lib/monitor/ras_wire.h), read as those of files
 * are. Of several hosts they come together in one view, so that waits are followed from one to the next. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load.h"
#include "monitor/ras_wire.h"
#include "ras.h"

#define FILES_MOST 4096
#define CONNECT_MS 3000
#define ANSWER_MS 30000

typedef struct files {
    load_file_t all[FILES_MOST];
    int n;
    size_t room; /* of the last one */
} files_t;

static bool say(const char *host, const char *why)
{
    fprintf(stderr, "rondo-ras: %s: %s\n", host, why);
    return false;
}

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
    *why = strerror(error);
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

static bool begin_file(files_t *files)
{
    if (files->n == FILES_MOST)
        return false;
    files->all[files->n++] = (load_file_t){0};
    files->room = 0;
    return true;
}

static bool add_bytes(files_t *files, const char *bytes, size_t n)
{
    load_file_t *last = files->n ? &files->all[files->n - 1] : NULL;

    if (!last || last->n + n > VALUE_FILE_MOST)
        return false;
    if (last->n + n > files->room) {
        size_t room = 2 * (last->n + n);
        unsigned char *more = realloc(last->bytes, room);
        if (!more)
            return false;
        last->bytes = more;
        files->room = room;
    }
    memcpy(last->bytes + last->n, bytes, n);
    last->n += n;
    return true;
}

/* Returns NULL when all have come, or why they have not. */
static const char *receive(rd_wire_t *wire, files_t *files)
{
    char bytes[RD_WIRE_RECORD];
    size_t n;

    for (;;) {
        int what = rd_wire_receive(wire, bytes, &n);
        if (what == RD_WIRE_END)
            return NULL;
        if (what != RD_WIRE_FILE && what != RD_WIRE_DATA)
            return "its answer has broken off";
        if (what == RD_WIRE_FILE ? !begin_file(files) : !add_bytes(files, bytes, n))
            return "its answer is too long, or there is no memory for it";
    }
}

static bool ask(const char *host, const rd_wire_secret_t *secret, files_t *files)
{
    const char *why;
    rd_wire_t wire;
    int fd = connect_to(host, &why);

    if (fd < 0)
        return say(host, why);
    why = rd_wire_ask(&wire, fd, secret, ANSWER_MS);
    if (!why)
        why = receive(&wire, files);
    rd_wire_end(&wire);
    close(fd);
    return !why || say(host, why);
}

/* Of a host that does not answer nothing is known, which is said; the others are shown. */
static void ask_all(const char *hosts, const rd_wire_secret_t *secret, files_t *files)
{
    char host[300];

    while (*hosts) {
        size_t n = strcspn(hosts, ",");
        if (n > 0 && n < sizeof host) {
            memcpy(host, hosts, n);
            host[n] = 0;
            (void)ask(host, secret, files);
        }
        hosts += n + (hosts[n] == ',');
    }
}

bool ras_find_hosts(rd_view_t *view, const ras_options_t *options)
{
    rd_wire_secret_t secret;
    const char *why = options->key ? rd_wire_secret(&secret, options->key) : "--key FILE, or RONDO_RAS_KEY, is needed";
    files_t *files = calloc(1, sizeof *files);

    memset(view, 0, sizeof *view);
    if (why || !files) {
        fprintf(stderr, "rondo-ras: the secret of the other hosts%s%s: %s\n", options->key ? ", " : "",
                options->key ? options->key : "", why ? why : "no memory");
        free(files);
        return false;
    }
    ask_all(options->hosts, &secret, files);
    rd_wire_forget(&secret);
    bool good = files->n > 0 && load_files(view, options->hosts, files->all, files->n, options->job);
    for (int i = 0; i < files->n; i++)
        free(files->all[i].bytes);
    free(files);
    return good;
}
