/* Fuzz target: whatever a stranger, or one who holds the secret, may send over a bootstrap connection.
 *
 * The first byte says which side is tried and how far the honest part goes: nothing at all, a right hello, or a whole
 * handshake. The rest is what the other side then sends, in pieces whose length each begins with a byte. Without the
 * secret nobody may get in. */
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const rd_creds_t creds = {{1, 2, 3}, {4, 5, 6}};
static const unsigned char endpoint[RD_ENDPOINT] = {7};

static int read_all(rd_chan_t *c)
{
    const unsigned char *got;
    size_t length;
    int type, n = 0;

    while (rd_chan_next(c, &type, &got, &length)) {
        if (length > RD_RECORD_DATA)
            abort();
        n++;
    }
    return n;
}

/* Sends it in pieces; the side under test looks after each. */
static void send_pieces(rd_chan_t *tried, int to, const uint8_t *data, size_t bytes)
{
    while (bytes) {
        size_t piece = 1 + data[0];
        data++;
        bytes--;
        piece = piece < bytes ? piece : bytes;
        if (piece && send(to, data, piece, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            return;
        data += piece;
        bytes -= piece;
        rd_chan_pump(tried);
        read_all(tried);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static int ready;
    rd_hello_t mine = {.purpose = RD_FOR_MEETING, .rank = 1, .nranks = 4}, its = mine;
    int pair[2], server, honest;
    rd_chan_t *tried, *other = NULL;

    if (!ready && rd_crypto_init(NULL) != RONDO_SUCCESS)
        abort();
    ready = 1;
    if (bytes < 1 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
        return 0;
    server = data[0] & 1;
    honest = data[0] >> 1 & 3;
    tried = server ? rd_chan_server(pair[0], &creds, endpoint, sizeof endpoint, &its)
                   : rd_chan_client(pair[0], &creds, endpoint, sizeof endpoint, &mine);
    if (!tried)
        abort();
    if (honest == 1 && server) { /* a right hello of one who does not hold the secret */
        rd_auth_t a;
        rd_auth_begin(&a, &creds, 0, endpoint, sizeof endpoint, &mine);
        if (send(pair[1], a.hello[0], RD_HELLO, MSG_NOSIGNAL) < 0)
            abort();
    }
    if (honest >= 2) {
        int fd = dup(pair[1]);
        other = server ? rd_chan_client(fd, &creds, endpoint, sizeof endpoint, &mine)
                       : rd_chan_server(fd, &creds, endpoint, sizeof endpoint, &its);
        if (!other)
            abort();
        for (int i = 0; i < 8; i++) {
            rd_chan_pump(tried);
            rd_chan_pump(other);
        }
        if (tried->state != RD_CHAN_OPEN)
            abort();
        if (honest == 3) /* what it sends comes first, sealed */
            rd_chan_send(other, bytes > 1 ? data[1] : 0, data + 1, bytes - 1 < RD_RECORD_DATA ? bytes - 1 : 0);
    }
    rd_chan_pump(tried);
    if (read_all(tried) != (honest == 3))
        abort();
    send_pieces(tried, pair[1], data + 1, bytes - 1);
    if (tried->state == RD_CHAN_OPEN && honest < 2)
        abort(); /* who lacks the secret got in */
    close(pair[1]);
    rd_chan_pump(tried);
    read_all(tried);
    rd_chan_free(tried);
    rd_chan_free(other);
    return 0;
}
