/* Does anybody listen at a peer's address? A provider that cannot connect says FI_EAGAIN for ever, whether the peer
 * does not poll just now or has left or died (tcp and ofi_rxm, also where the connection is refused); and where nothing
 * is being sent, nothing is said at all. So if a peer is waited for by a message, or by a network that lingers, this
 * rank connects to the address by itself, where that is a TCP socket's, and closes the connection at once: who polls
 * late listens all the same. It does so more and more rarely, because who does not poll does not take that from its
 * queue of connections either. Another provider is given a message, which may fail. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "boot/sock.h"
#include "ofi/ofi.h"

#define FIRST_MS 300 /* after the first message had to wait */
#define RARELY_MS 60000

static void begin(rd_ofi_peer_t *peer)
{
    const struct sockaddr *to = (const struct sockaddr *)&peer->at;
    socklen_t bytes = to->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    int fd = rd_fd_high(socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0)
        return;
    if (connect(fd, to, bytes) == 0 || errno != EINPROGRESS) {
        int error = errno == ECONNREFUSED ? errno : 0;
        close(fd);
        if (error)
            rd_ofi_peer_lost(peer, strerror(error));
        return;
    }
    peer->dialled = fd;
}

static void look(rd_ofi_peer_t *peer)
{
    struct pollfd asked = {.fd = peer->dialled, .events = POLLOUT};
    if (poll(&asked, 1, 0) != 1)
        return;
    const int error = rd_sock_error(peer->dialled);
    rd_ofi_dial_end(peer);
    if (error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == ETIMEDOUT)
        rd_ofi_peer_lost(peer, strerror(error));
}

void rd_ofi_dial(rd_ofi_peer_t *peer, int64_t now_ms)
{
    if (peer->base.lost_ms != 0)
        return;
    if (peer->dialled >= 0) {
        look(peer);
    } else if (peer->dial_ms == 0) {
        peer->dial_pause_ms = FIRST_MS;
        peer->dial_ms = now_ms + FIRST_MS;
    } else if (now_ms >= peer->dial_ms) {
        peer->dial_pause_ms = peer->dial_pause_ms < RARELY_MS ? 2 * peer->dial_pause_ms : RARELY_MS;
        peer->dial_ms = now_ms + peer->dial_pause_ms;
        if (rd_ofi_listens(rd_ofi_net_of(&peer->base)->info))
            begin(peer);
        else if (peer->base.pending == 0)
            rd_net_say(&peer->base, RD_NET_HELLO, 1);
    }
}

void rd_ofi_dial_end(rd_ofi_peer_t *peer)
{
    if (peer->dialled >= 0)
        close(peer->dialled);
    peer->dialled = -1;
}
