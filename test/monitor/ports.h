/* A port of a test's own, clients of it, and communicators of this process, with what their log says. */
#ifndef TEST_PORTS_H
#define TEST_PORTS_H

#include <arpa/inet.h>
#include <poll.h>
#include <rondo.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/check.h"
#include "util/text.h"

static int port;
static char log_file[64]; /* RONDO_DEBUG_FILE */

#define PORTS_FROM 10000
#define PORTS 20000

/* A port that nobody has, and that the kernel gives nobody by itself, as it does from 32768 on: it is free until a job
 * listens there. */
static int free_port(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    for (unsigned i = 0, from = (unsigned)getpid() * 37; i < PORTS; i++) {
        const unsigned number = PORTS_FROM + (from + i) % PORTS;
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        name.sin_port = htons((uint16_t)number);
        bool is_free = fd >= 0 && number != (unsigned)port && bind(fd, (struct sockaddr *)&name, sizeof name) == 0;
        close(fd);
        if (is_free)
            return (int)number;
    }
    CHECK(false, "there is no port");
    return 0;
}

/* Returns a connection, or -1. */
static int call(void)
{
    struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&name, sizeof name) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Returns how many bytes come until the other side ends, at most `most`. */
static size_t drain(int fd, unsigned char *bytes, size_t most)
{
    size_t n = 0;

    while (n < most) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t got = poll(&p, 1, 30000) == 1 ? recv(fd, bytes + n, most - n, 0) : -1;
        if (got <= 0)
            return n;
        n += (size_t)got;
    }
    return n;
}

static int is_open(void)
{
    int fd = call();

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static rondo_comm_t create(void)
{
    rondo_comm_t comm = NULL;
    rondo_unique_id_t id;

    CHECK(rondo_unique_id_create(&id) == RONDO_SUCCESS && rondo_comm_create(&comm, 1, &id, 0, NULL) == RONDO_SUCCESS,
          "%s", rondo_last_error(NULL));
    return comm;
}

static void destroy(rondo_comm_t comm)
{
    CHECK(comm && rondo_comm_destroy(comm) == RONDO_SUCCESS, "it is not ended");
}

/* What the log says so far; "": nothing. */
static const char *logged(void)
{
    static char text[4096];

    text_read(log_file, text, sizeof text);
    return text;
}

#endif
