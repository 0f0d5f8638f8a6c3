/* Channels. Everything is driven by rd_chan_pump, which never waits, so that one thread can serve any number of them,
 * and a slow or silent peer costs a few bytes, never time. Until a peer is authenticated its bytes go into a small
 * fixed buffer; a buffer for records is only allocated once its proof was right. */
#include "boot/session.h"
#include "base/wait.h"

#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define FAREWELL_ROOM 2048 /* bytes of a record with a sentence, and those of a round and two names before it */

static rd_chan_t *chan_create(int fd, int server, const rd_creds_t *creds, const void *endpoint, size_t bytes,
                              const rd_hello_t *mine)
{
    rd_chan_t *c = calloc(1, sizeof(*c));
    if (!c) {
        rd_fd_close(fd);
        return NULL;
    }
    c->fd = fd;
    c->takes = mine->purpose == RD_FOR_NODE;
    c->passed = -1;
    c->in = c->early;
    c->since_ms = rd_clock_ms();
    rd_auth_begin(&c->auth, creds, server, endpoint, bytes, mine);
    return c;
}

rd_chan_t *rd_chan_client(int fd, const rd_creds_t *creds, const void *endpoint, size_t bytes, const rd_hello_t *mine)
{
    rd_chan_t *c = chan_create(fd, 0, creds, endpoint, bytes, mine);
    if (c)
        c->state = RD_CHAN_CONNECTING;
    return c;
}

rd_chan_t *rd_chan_server(int fd, const rd_creds_t *creds, const void *endpoint, size_t bytes, const rd_hello_t *mine)
{
    rd_chan_t *c = chan_create(fd, 1, creds, endpoint, bytes, mine);
    if (c)
        c->state = RD_CHAN_HELLO;
    return c;
}

void rd_chan_free(rd_chan_t *c)
{
    if (!c)
        return;
    rd_sock_close(c->fd);
    rd_fd_close(c->passed);
    if (c->in != c->early)
        free(c->in);
    free(c->out);
    sodium_memzero(c, sizeof(*c));
    free(c);
}

void rd_chan_leave(rd_chan_t *c)
{
    unsigned char unread[4096];
    int most = 64; /* a peer that goes on sending is left all the same */

    while (c && most-- > 0 && recv(c->fd, unread, sizeof unread, MSG_DONTWAIT) > 0)
        continue;
    rd_chan_free(c);
}

static void die(rd_chan_t *c, int error)
{
    c->state = RD_CHAN_DEAD;
    c->error = error;
}

void rd_chan_hang_up(rd_chan_t *c)
{
    rd_sock_close(c->fd);
    c->fd = -1;
    die(c, 0);
}

/* The kernel says once why a connection is over, to a send or to a receive; from then on it says only that nothing more
 * comes, as of one that the peer has closed. */
static bool is_broken(int error)
{
    return error == ECONNRESET || error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
}

static void note(rd_chan_t *c, int error)
{
    if (!is_broken(c->error))
        c->error = error;
}

short rd_chan_events(const rd_chan_t *c)
{
    if (c->state == RD_CHAN_DEAD)
        return 0;
    if (c->state == RD_CHAN_CONNECTING)
        return POLLOUT;
    return (short)((c->ended ? 0 : POLLIN) | (rd_chan_queued(c) ? POLLOUT : 0));
}

size_t rd_chan_queued(const rd_chan_t *c)
{
    return c->out_have - c->out_done;
}

bool rd_chan_over(const rd_chan_t *c)
{
    return c->state == RD_CHAN_DEAD || (c->ended && c->in_have == c->in_taken);
}

static void flush(rd_chan_t *c)
{
    int tries = 0;

    while (c->state != RD_CHAN_DEAD && c->out_done < c->out_have) {
        ssize_t n = send(c->fd, c->out + c->out_done, c->out_have - c->out_done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (n < 0 && rd_sock_again(errno, &tries))
            continue;
        if (n < 0) { /* what the peer had sent before it closed may still be read */
            note(c, errno);
            c->out_done = c->out_have;
            if (c->state != RD_CHAN_OPEN)
                c->state = RD_CHAN_DEAD;
            return;
        }
        c->out_done += (size_t)n;
    }
    c->out_done = c->out_have = 0;
}

/* Returns space for `bytes` at the end of the queue. */
static unsigned char *queue(rd_chan_t *c, size_t bytes)
{
    if (c->out_done) {
        memmove(c->out, c->out + c->out_done, rd_chan_queued(c));
        c->out_have -= c->out_done;
        c->out_done = 0;
    }
    if (c->out_have + bytes > c->out_room) {
        size_t room = c->out_have + bytes + 256;
        unsigned char *more = realloc(c->out, room);
        if (!more) {
            die(c, ENOMEM);
            return NULL;
        }
        c->out = more;
        c->out_room = room;
    }
    c->out_have += bytes;
    return c->out + c->out_have - bytes;
}

int rd_chan_send(rd_chan_t *c, int type, const void *data, size_t bytes)
{
    unsigned char *to = c->state == RD_CHAN_OPEN ? queue(c, RD_RECORD_HEAD + bytes + RD_PROOF) : NULL;
    if (!to)
        return -1;
    rd_auth_seal(&c->auth, type, data, bytes, to);
    flush(c);
    return c->state == RD_CHAN_DEAD ? -1 : 0;
}

static void say_hello(rd_chan_t *c)
{
    int server = c->auth.server;
    unsigned char *to = queue(c, RD_HELLO + (server ? RD_PROOF : 0));
    if (!to)
        return;
    memcpy(to, c->auth.hello[server], RD_HELLO);
    if (server)
        rd_auth_prove(&c->auth, to + RD_HELLO);
}

/* Where poll is refused to this process, what is sent finds out. */
static void connected(rd_chan_t *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLOUT};
    bool may = rd_sock_poll(&p, 1, 0);
    if (may && !p.revents)
        return;
    const int error = may ? rd_sock_error(c->fd) : 0;
    if (error) {
        die(c, error);
        return;
    }
    c->state = RD_CHAN_HELLO;
    say_hello(c);
}

/* As recv, but keeps a descriptor that comes along. There is room for one: CMSG_SPACE has it for two, and the kernel
 * would open both. */
static ssize_t receive(rd_chan_t *c, void *to, size_t bytes)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec io = {to, bytes};
    struct msghdr message = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CMSG_LEN(sizeof(int))};

    if (!c->takes)
        return recv(c->fd, to, bytes, MSG_DONTWAIT);
    rd_fd_fork_lock();
    ssize_t n = recvmsg(c->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    int error = errno, got = -1;
    struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof(int))) {
        memcpy(&got, CMSG_DATA(head), sizeof got);
        got = rd_fd_keep(got);
    }
    rd_fd_fork_unlock();
    if (got >= 0) {
        rd_fd_close(c->passed);
        c->passed = got;
    }
    errno = error;
    return n;
}

/* Reads until `want` bytes are there, or no more come now. Returns true if they are there. */
static bool fill(rd_chan_t *c, size_t want)
{
    int tries = 0;

    while (c->in_have < want) {
        ssize_t n = receive(c, c->in + c->in_have, want - c->in_have);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return false;
        if (n < 0 && rd_sock_again(errno, &tries))
            continue;
        if (n <= 0) {
            c->ended = 1;
            note(c, n < 0 ? errno : 0);
            return false;
        }
        c->in_have += (size_t)n;
    }
    return true;
}

/* The farewell of a rank that has no memory left is sent all the same: there is room for one. */
static bool has_room(rd_chan_t *c)
{
    unsigned char *out = c->out_room < FAREWELL_ROOM ? realloc(c->out, FAREWELL_ROOM) : c->out;
    if (!out)
        return false;
    c->out = out;
    c->out_room = c->out_room < FAREWELL_ROOM ? FAREWELL_ROOM : c->out_room;
    return true;
}

/* Of a connection that has already been reset the kernel no longer says where it led. */
static bool is_far(int fd)
{
    rd_addr_t here, there;

    return rd_addr_local(fd, &here) == 0 && (rd_addr_remote(fd, &there) != 0 || !rd_addr_same_host(&here, &there));
}

static void open_up(rd_chan_t *c)
{
    unsigned char *in = has_room(c) ? malloc(RD_RECORD_MOST) : NULL;
    if (!in) {
        c->poor = 1;
        die(c, ENOMEM);
        return;
    }
    rd_auth_keys(&c->auth);
    c->far = is_far(c->fd);
    c->in = in;
    c->in_have = 0;
    c->state = RD_CHAN_OPEN;
}

static void client_hello(rd_chan_t *c)
{
    if (!fill(c, RD_HELLO + RD_PROOF))
        return;
    if (rd_auth_hello(&c->auth, c->in, &c->theirs) != 0 || rd_auth_check(&c->auth, c->in + RD_HELLO) != 0) {
        die(c, EPROTO);
        return;
    }
    unsigned char *to = queue(c, RD_PROOF);
    if (to)
        rd_auth_prove(&c->auth, to);
    if (to)
        open_up(c);
}

static void server_hello(rd_chan_t *c)
{
    int whole = fill(c, RD_HELLO);
    if (!rd_auth_plausible(&c->auth, c->in, c->in_have) || (whole && rd_auth_hello(&c->auth, c->in, &c->theirs) != 0)) {
        die(c, EPROTO);
        return;
    }
    if (!whole)
        return;
    c->in_have = 0;
    c->state = RD_CHAN_PROOF;
    say_hello(c);
}

static void server_proof(rd_chan_t *c)
{
    if (!fill(c, RD_PROOF))
        return;
    if (rd_auth_check(&c->auth, c->in) != 0)
        die(c, EPROTO);
    else
        open_up(c);
}

void rd_chan_pump(rd_chan_t *c)
{
    if (c->state == RD_CHAN_CONNECTING)
        connected(c);
    if (c->state == RD_CHAN_HELLO && c->auth.server)
        server_hello(c);
    else if (c->state == RD_CHAN_HELLO)
        client_hello(c);
    flush(c);
    if (c->state == RD_CHAN_PROOF)
        server_proof(c);
    if (c->state == RD_CHAN_OPEN && !c->ended)
        fill(c, RD_RECORD_MOST);
    flush(c);
    if (c->state != RD_CHAN_OPEN && c->state != RD_CHAN_DEAD && c->ended)
        die(c, c->error ? c->error : ECONNRESET);
}

bool rd_chan_next(rd_chan_t *c, int *type, const unsigned char **data, size_t *bytes)
{
    if (c->state != RD_CHAN_OPEN)
        return false;
    c->in_have -= c->in_taken;
    memmove(c->in, c->in + c->in_taken, c->in_have);
    c->in_taken = 0;
    if (!c->ended)
        fill(c, RD_RECORD_MOST);
    size_t length = c->in_have >= RD_RECORD_HEAD ? rd_auth_length(c->in) : RD_RECORD_HEAD;
    if (length == 0) {
        die(c, EPROTO);
        return false;
    }
    if (c->in_have < length) {
        if (c->ended) /* an incomplete record will never be completed */
            c->in_have = 0;
        return false;
    }
    if (rd_auth_open(&c->auth, c->in, type) != 0) {
        die(c, EPROTO);
        return false;
    }
    c->in_taken = length;
    *data = c->in + RD_RECORD_HEAD;
    *bytes = length - RD_RECORD_HEAD - RD_PROOF;
    return true;
}

void rd_chan_put_back(rd_chan_t *c)
{
    c->in_taken = 0;
    c->auth.count_in--; /* its MAC is checked again */
}
