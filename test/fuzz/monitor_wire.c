/* Fuzz target: what a stranger may send to the ports by which a job is asked, and what a stranger's port may answer to
 * rondo-ras. The first byte says which:
 *
 *   0  lines of NCCL's client (monitor/nccl_ras.h)     2  a server's bytes, for who asks (monitor/ras_wire.h)
 *   1  a client's bytes, for the server                3  the same behind a whole handshake: records
 *
 * Without the secret nobody may get in. */
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "monitor/nccl_ras.h"
#include "monitor/ras_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define MS 1000

static const rd_wire_secret_t secret = {{1, 2, 3}};

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
        free(events.gone);
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
    int fds[2];

    if (bytes < 1 || sodium_init() < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0)
        return 0;
    if (write(fds[1], data + 1, bytes - 1) != (ssize_t)(bytes - 1) || shutdown(fds[1], SHUT_WR) != 0)
        abort();
    switch (data[0] % 4) {
    case 0:
        lines(fds[0]);
        break;
    case 1:
        if (!rd_wire_serve(&wire, fds[0], &secret, MS))
            abort();
        break;
    case 2:
        if (!rd_wire_ask(&wire, fds[0], &secret, MS))
            abort();
        break;
    default:
        wire = (rd_wire_t){.fd = fds[0], .until_ms = INT64_MAX, .idle_ms = MS, .key = {4, 5, 6}};
        records(&wire);
    }
    rd_wire_end(&wire);
    close(fds[0]);
    close(fds[1]);
    return 0;
}
