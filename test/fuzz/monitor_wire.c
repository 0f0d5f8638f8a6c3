/* Fuzz target: what a stranger may send to the ports by which a job is asked, and what a stranger's port may answer to
 * rondo-ras. The first byte says which:
 *
 *   0  lines of NCCL's client (monitor/nccl_ras.h)     2  a server's bytes, for who asks (monitor/ras_wire.h)
 *   1  a client's bytes, for the server                3  the same behind a whole handshake: records
 *
 * Without the secret nobody may get in. There is no socket: the calls of one are defined here, the stranger's bytes lie
 * in memory, and what is sent is forgotten, so that as many inputs as possible are tried in a second. For the same
 * reason the key pair, which nothing that comes has a say in, is made once. */
#include <poll.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "monitor/nccl_ras.h"
#include "monitor/ras_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define MS 1000
#define STRANGER 1000000 /* its descriptor, which is none */

static const rd_wire_secret_t secret = {{1, 2, 3}};

/* ---- the stranger ---- */

static const uint8_t *said; /* what it has yet to send; then it is gone */
static size_t left;

static void know(int fd)
{
    if (fd != STRANGER)
        abort();
}

ssize_t recv(int fd, void *bytes, size_t n, int flags)
{
    size_t part = n < left ? n : left;

    (void)flags;
    know(fd);
    memcpy(bytes, said, part);
    said += part;
    left -= part;
    return (ssize_t)part;
}

ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
    (void)flags;
    know(fd);
    return bytes ? (ssize_t)n : -1;
}

int shutdown(int fd, int how)
{
    (void)how;
    know(fd);
    return 0;
}

int poll(struct pollfd *fds, nfds_t n, int ms)
{
    (void)ms;
    for (nfds_t i = 0; i < n; i++) {
        know(fds[i].fd);
        fds[i].revents = fds[i].events;
    }
    return (int)n;
}

int crypto_box_keypair(unsigned char *public, unsigned char *secret_key)
{
    static unsigned char pair[2][32];
    static bool made;

    if (!made) {
        randombytes_buf(pair[1], sizeof pair[1]);
        made = crypto_scalarmult_base(pair[0], pair[1]) == 0;
    }
    memcpy(public, pair[0], sizeof pair[0]);
    memcpy(secret_key, pair[1], sizeof pair[1]);
    return made ? 0 : -1;
}

/* ---- what it is asked by, or asks ---- */

static void lines(int fd)
{
    static rd_view_t nothing;
    rd_nccl_ras_events_t events = {0};
    rd_nccl_ras_t client;

    switch (rd_nccl_ras_asked(&client, fd)) {
    case RD_NCCL_RAS_STATUS:
        rd_nccl_ras_answer(&client, &nothing, 0.1);
        break;
    case RD_NCCL_RAS_MONITOR:
        (void)rd_nccl_ras_tell(&client, &events, &nothing);
        free(events.processes);
        break;
    default:
        break;
    }
    if (client.have < 0 || client.have > RD_NCCL_RAS_LINE || client.lines > RD_NCCL_RAS_LINES + 1)
        abort();
}

static void records(rd_wire_t *wire)
{
    char bytes[RD_WIRE_RECORD];
    size_t n = 0;

    /* Only the server could have sealed one, and what it has sealed is not replayed here. */
    if (rd_wire_receive(wire, bytes, &n))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    rd_wire_t wire = {0};

    if (bytes < 1 || sodium_init() < 0)
        return 0;
    said = data + 1;
    left = bytes - 1;
    switch (data[0] % 4) {
    case 0:
        lines(STRANGER);
        break;
    case 1:
        if (!rd_wire_serve(&wire, STRANGER, &secret, MS))
            abort();
        break;
    case 2:
        if (!rd_wire_ask(&wire, STRANGER, &secret, MS))
            abort();
        break;
    default:
        wire = (rd_wire_t){.fd = STRANGER, .until_ms = INT64_MAX, .idle_ms = MS, .key = {4, 5, 6}};
        records(&wire);
    }
    rd_wire_end(&wire);
    return 0;
}
