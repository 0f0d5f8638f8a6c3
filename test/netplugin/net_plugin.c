/* A net plugin of version VERSION, as others would build it: it includes nothing of rondo's and nothing of NCCL's. It
 * carries messages over TCP sockets of this host, one for each comm, and is as strict as a plugin may be: memory must
 * have been registered with the comm, a send fits into the receive that it meets, and a comm has no more than 32
 * requests. What else it does is said by TEST_NET, words with commas between them:
 *
 *   strict         a send is taken only once its receive is posted, as by cards
 *   lazy           nothing moves but in `test`, and in every other one of those
 *   drained        the process ends if a comm is closed that has requests
 *   never          connect never gives a comm
 *   renamed        it has another name
 *   refuse         init fails
 *   empty          there is no device
 *   empty8         the same, of version 8 alone
 *   fail=CALL/N    the N-th call of listen, connect, accept, reg, send, recv or test fails with a system error
 *   fail=size/N    the N-th receive that is over is said to be a byte shorter than it is
 *   fail=longer/N  and here a byte longer
 *
 * With LACKS a function is missing. Version 11 has a struct of version 8 besides, which serves nobody. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define WORDS "TEST_NET"
#include "netplugin/plugin.h"

#define MOST 32

typedef int (*event_fn)(void **event, int kind, void *parent, int64_t id, void *data);
typedef struct config {
    int traffic_class;
} config_t;

static log_fn say;

/* ---- comms */

typedef struct request {
    struct comm *comm;
    char *data;
    size_t bytes, done; /* of the payload; with the length that precedes it */
    uint64_t length;    /* as it is on the wire */
    int used, over;
} request_t;

typedef struct comm {
    int fd, sends;
    request_t requests[MOST];
    unsigned first, count; /* in their order */
    unsigned granted;      /* strict: receives of the other side that no send has met */
    unsigned turn;
    region_t regions[REGIONS];
} comm_t;

typedef struct handle {
    struct sockaddr_in at;
    comm_t *begun; /* the connecting side's own */
} handle_t;
_Static_assert(sizeof(handle_t) <= HANDLE, "a handle has 128 bytes");

static comm_t *comm_new(int fd, int sends)
{
    comm_t *c = calloc(1, sizeof *c);
    int one = 1;

    if (!c)
        abort();
    c->fd = fd;
    c->sends = sends;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return c;
}

static int listen_on(void *handle, void **out)
{
    handle_t *h = handle;
    socklen_t bytes = sizeof h->at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fails("listen"))
        return SYSTEM;
    memset(h, 0, sizeof *h);
    h->at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0 || bind(fd, (struct sockaddr *)&h->at, sizeof h->at) != 0 || listen(fd, 8) != 0 ||
        getsockname(fd, (struct sockaddr *)&h->at, &bytes) != 0)
        return SYSTEM;
    *out = comm_new(fd, 0);
    return GOOD;
}

static int connect_to(void *handle, void **out)
{
    handle_t *h = handle;

    *out = NULL;
    if (fails("connect"))
        return SYSTEM;
    if (has("never"))
        return GOOD;
    if (!h->begun) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            return SYSTEM;
        h->begun = comm_new(fd, 1);
        if (connect(fd, (struct sockaddr *)&h->at, sizeof h->at) != 0 && errno != EINPROGRESS) {
            close(fd);
            free(h->begun);
            h->begun = NULL;
            return REMOTE;
        }
        return GOOD; /* another call will see it */
    }
    struct pollfd p = {.fd = h->begun->fd, .events = POLLOUT};
    int error = 0;
    socklen_t bytes = sizeof error;
    if (poll(&p, 1, 0) != 1)
        return GOOD;
    if (getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 || error != 0) {
        close(p.fd);
        free(h->begun);
        h->begun = NULL;
        return REMOTE;
    }
    *out = h->begun;
    return GOOD;
}

static __attribute__((unused)) int accept_one(void *listener, void **out, void **offload)
{
    const comm_t *l = listener;
    int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)offload;
    *out = NULL;
    if (fails("accept"))
        return SYSTEM;
    if (fd < 0)
        return errno == EAGAIN ? GOOD : SYSTEM;
    *out = comm_new(fd, 0);
    return GOOD;
}

static int reg(void *comm, void *data, size_t bytes, int memory, void **out)
{
    comm_t *c = comm;

    return region_add(c->regions, data, bytes, memory, out);
}

static int dereg(void *comm, void *registration)
{
    comm_t *c = comm;

    return region_drop(c->regions, registration);
}

/* ---- messages: a length of eight bytes, then the payload. Back comes a byte for each receive that is posted. */

static int begin(comm_t *c, void *data, size_t bytes, void *registration, void **out)
{
    *out = NULL;
    if (!region_has(c->regions, registration, data, bytes)) {
        say(2, 0, __FILE__, __LINE__, "%zu bytes at %p are not registered", bytes, data);
        return ARGUMENT;
    }
    if (c->count == MOST)
        return GOOD;
    request_t *r = &c->requests[(c->first + c->count) % MOST];
    if (r->used)
        return GOOD;
    c->count++;
    *r = (request_t){.comm = c, .data = data, .bytes = bytes, .length = bytes, .used = 1};
    *out = r;
    return GOOD;
}

static int grants_read(comm_t *c)
{
    char some[64];
    ssize_t n;

    while ((n = recv(c->fd, some, sizeof some, MSG_DONTWAIT)) > 0)
        c->granted += (unsigned)n;
    return n == 0 || (n < 0 && errno != EAGAIN) ? REMOTE : GOOD;
}

static int begin_send(void *comm, void *data, size_t bytes, int tag, void *registration, void **out)
{
    comm_t *c = comm;

    *out = NULL;
    if (fails("send") || tag != 1)
        return SYSTEM;
    if (has("strict")) {
        int error = grants_read(c);
        if (error || c->granted == 0)
            return error;
    }
    int error = begin(c, data, bytes, registration, out);
    c->granted -= *out && has("strict");
    return error;
}

static int begin_recv(void *comm, int n, void **data, size_t bytes, const int *tags, void **registrations, void **out)
{
    comm_t *c = comm;

    *out = NULL;
    if (fails("recv") || n != 1 || tags[0] != 1)
        return SYSTEM;
    int error = begin(c, data[0], bytes, registrations[0], out);
    if (*out && has("strict") && send(c->fd, "g", 1, MSG_NOSIGNAL) != 1 && errno != EPIPE && errno != ECONNRESET)
        return SYSTEM;
    return error;
}

/* Moves what it can of the oldest request. Returns 1 if something moved, 0, or -error. */
static int move(comm_t *c, request_t *r)
{
    const size_t head = sizeof r->length;
    char *at = r->done < head ? (char *)&r->length + r->done : r->data + (r->done - head);
    size_t left = r->done < head ? head - r->done : (size_t)r->length + head - r->done;

    if (left != 0) {
        ssize_t n = c->sends ? send(c->fd, at, left, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(c->fd, at, left, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return -REMOTE;
        if (n < 0)
            return 0;
        r->done += (size_t)n;
    }
    if (r->done >= head && r->length > r->bytes) {
        say(2, 0, __FILE__, __LINE__, "%llu bytes come for a receive of %zu", (unsigned long long)r->length, r->bytes);
        return -INTERNAL;
    }
    if (r->done == r->length + head) {
        r->over = 1;
        c->first = (c->first + 1) % MOST;
        c->count--;
    }
    return 1;
}

static int test(void *request, int *done, int *size)
{
    request_t *asked = request;
    comm_t *c = asked->comm;

    *done = 0;
    if (fails("test") || !asked->used)
        return SYSTEM;
    if (!asked->over && !(has("lazy") && c->turn++ % 2)) {
        int moved = 1;
        while (c->count != 0 && moved > 0)
            moved = move(c, &c->requests[c->first]);
        if (moved < 0 && !asked->over)
            return -moved;
    }
    if (!asked->over)
        return GOOD;
    *done = 1;
    if (size)
        *size = (int)asked->length - (!c->sends && fails("size")) + (!c->sends && fails("longer"));
    asked->used = 0;
    return GOOD;
}

static int close_one(void *comm)
{
    comm_t *c = comm;

    for (int i = 0; i < MOST; i++)
        if (c->requests[i].used && has("drained"))
            abort();
    close(c->fd);
    free(c);
    return GOOD;
}

static int devices(int *count)
{
    *count = has("empty") || (VERSION == 8 && has("empty8")) ? 0 : 2;
    return say ? GOOD : INTERNAL; /* NULL: init was not called */
}

static int properties(int device, void *out)
{
    static char names[2][8] = {"test0", "test1"}, folders[2][64];
    const char *below = getenv("TEST_NET_FOLDER"); /* of folders "0" and "1", where /sys would have them */
    properties_t p = {
        .name = names[device], .path = folders[device], .memory = 1, .mbps = 10000, .comms = 65536, .receives = 1};

    snprintf(folders[device], sizeof folders[device], "%s/%d", below ? below : "", device);
    p.path = below ? p.path : NULL;
#if VERSION > 10
    if (contexts == 0) /* as aws-ofi-nccl, it has no devices then */
        return INTERNAL;
#endif
#if VERSION > 8
    p.most = p.most_collective = (size_t)1 << 40;
#endif
    memcpy(out, &p, sizeof p);
    return GOOD;
}

static int start(log_fn log)
{
    say = log;
    say(3, 0, __FILE__, __LINE__, "the test's plugin of version %d\n", VERSION);
    return has("refuse") ? INTERNAL : GOOD;
}

/* ---- the calls of this version */

#if VERSION > 10
static int init(void **context, uint64_t id, config_t *config, log_fn log, event_fn event)
{
    (void)id;
    context_new(context);
    return config->traffic_class == -1 && event ? start(log) : ARGUMENT;
}

#else
static int init(log_fn log
#if VERSION == 10
                ,
                event_fn event
#endif
)
{
#if VERSION == 10
    if (!event)
        return ARGUMENT;
#endif
    return start(log);
}
#endif

static int listen_v(CONTEXT int device, void *handle, void **out)
{
    return IS_CONTEXT && device < 2 ? listen_on(handle, out) : ARGUMENT;
}

static int connect_v(CONTEXT int device,
#if VERSION == 10
                     config_t *config,
#endif
                     void *handle, void **out, void **offload)
{
#if VERSION == 10
    if (config->traffic_class != -1)
        return ARGUMENT;
#endif
    return IS_CONTEXT && device < 2 && offload ? connect_to(handle, out) : ARGUMENT;
}

#if VERSION == 8
typedef int size_type;
#else
typedef size_t size_type;
#endif
#if VERSION > 9
#define EVENT void *event,
#define EVENTS void **events,
#else
#define EVENT
#define EVENTS
#endif

static int send_v(void *comm, void *data, size_type bytes, int tag, void *registration, EVENT void **out)
{
#if VERSION > 9
    if (event)
        return ARGUMENT;
#endif
    return begin_send(comm, data, (size_t)bytes, tag, registration, out);
}

static int recv_v(void *comm, int n, void **data, size_type *bytes, int *tags, void **registrations, EVENTS void **out)
{
#if VERSION > 9
    if (!events)
        return ARGUMENT;
#endif
    return begin_recv(comm, n, data, (size_t)bytes[0], tags, registrations, out);
}

typedef void (*any_fn)(void);
typedef struct table {
    const char *name;
    any_fn init, devices, properties, listen, connect, accept, reg, reg_dmabuf, dereg, send, recv, flush, test,
        close_send, close_recv, close_listen, device_reg, consumed;
#if VERSION > 8
    any_fn make_device;
#endif
#if VERSION > 10
    any_fn finalize, attributes;
#endif
} table_t;

#define EXPORT_(version) ncclNetPlugin_v##version
#define EXPORT(version) EXPORT_(version)

extern SHOWN table_t EXPORT(VERSION);
table_t EXPORT(VERSION) = {
    .name = "test",
    .init = (any_fn)init,
    .devices = (any_fn)devices,
    .properties = (any_fn)properties,
    .listen = (any_fn)listen_v,
    .connect = (any_fn)connect_v,
#ifndef LACKS
    .accept = (any_fn)accept_one,
#endif
    .reg = (any_fn)reg,
    .dereg = (any_fn)dereg,
    .send = (any_fn)send_v,
    .recv = (any_fn)recv_v,
    .test = (any_fn)test,
    .close_send = (any_fn)close_one,
    .close_recv = (any_fn)close_one,
    .close_listen = (any_fn)close_one,
#if VERSION > 10
    .finalize = (any_fn)finalize,
#endif
};

__attribute__((constructor)) static void name_it(void)
{
    if (has("renamed"))
        EXPORT(VERSION).name = "another";
}

#if VERSION == 11
extern SHOWN const table_t ncclNetPlugin_v8;
const table_t ncclNetPlugin_v8 = {.name = "nobody's"};
#endif
