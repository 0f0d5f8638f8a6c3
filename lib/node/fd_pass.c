/* Passing descriptors. The handshake is the bootstrap's, bound to the socket's name; only then, and only when requested
 * by a sealed record, does the leader send descriptors. Reading ahead would lose them (recv drops what is attached), so
 * the member first sends its request and then reads these messages itself. A pidfd is opened from the socket's
 * credentials while a further message of the member is still to come, so it cannot be that of a later process with the
 * same number. */
#include "node/fd_pass.h"

#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "boot/listener.h"

#define WAIT_MS 10000  /* time for a member that has connected to complete its handshake */
#define AGAIN_MS 10    /* between two attempts to connect */
#define PER_MESSAGE 64 /* descriptors in a message; the kernel's limit is 253 */
#define MEMORY_RANK -1 /* the "rank" of the memory's descriptor */

enum { REC_ASK = 100, REC_GIVE };
enum { REQUESTED = 1, GONE };
/* How a member's connection went: all came; it broke, or is not the leader's; a descriptor was lost; there was no
 * memory; it ended before anything came, so that the leader may have had no place for it. */
enum { TAKEN, BROKEN = -1, LOST = -2, POOR = -3, DROPPED = -4 };

typedef struct parcel {
    int32_t count, last; /* last: nonzero if no more follow */
    /* Whose pidfd it is; plus the number of ranks: the descriptor that the rank has brought. */
    int32_t rank[PER_MESSAGE];
} parcel_t;

#define PARCEL_BYTES (RD_RECORD_HEAD + sizeof(parcel_t) + RD_PROOF)

static socklen_t abstract(const unsigned char name[RD_NODE_NAME], struct sockaddr_un *sa)
{
    memset(sa, 0, sizeof(*sa));
    sa->sun_family = AF_UNIX;
    memcpy(sa->sun_path, "\0rondo-", 7);
    sodium_bin2hex(sa->sun_path + 7, 2 * RD_NODE_NAME + 1, name, RD_NODE_NAME);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 7 + 2 * RD_NODE_NAME);
}

static int unix_socket(void)
{
    rd_fd_fork_lock();
    int fd = rd_fd_keep(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    rd_fd_fork_unlock();
    return fd;
}

int rd_pass_listen(unsigned char name[RD_NODE_NAME])
{
    struct sockaddr_un sa;
    int fd = unix_socket();
    if (fd < 0)
        return -1;
    randombytes_buf(name, RD_NODE_NAME);
    socklen_t bytes = abstract(name, &sa);
    if (bind(fd, (struct sockaddr *)&sa, bytes) == 0 && listen(fd, 4096) == 0)
        return fd;
    int error = errno;
    rd_fd_close(fd);
    errno = error;
    return -1;
}

/* Returns 0, EAGAIN if the queue of the other socket is full, or another errno. */
static int try_connect(int fd, const unsigned char name[RD_NODE_NAME])
{
    struct sockaddr_un sa;
    socklen_t bytes = abstract(name, &sa);
    int tries = 0;
    while (connect(fd, (struct sockaddr *)&sa, bytes) != 0)
        if (!rd_sock_again(errno, &tries))
            return errno;
    return 0;
}

int rd_pass_connect(const unsigned char name[RD_NODE_NAME])
{
    int fd = unix_socket();
    int error = fd < 0 ? errno : try_connect(fd, name);
    if (!error || error == EAGAIN)
        return fd;
    rd_fd_close(fd);
    return -1;
}

static int open_pidfd(int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.pid <= 0)
        return -1;
    rd_fd_fork_lock();
    int pidfd = rd_fd_keep((int)syscall(SYS_pidfd_open, peer.pid, 0)); /* close-on-exec by itself */
    rd_fd_fork_unlock();
    return pidfd;
}

/* A member that has died will not come: only the bootstrap's sockets report that yet. */
static rondo_result_t stopped(const rd_pass_t *p)
{
    return p->boot ? rd_boot_check(p->boot) : rd_stop_get(p->stop);
}

/* ---- the leader ---- */

typedef struct lead {
    const rd_pass_t *p;
    rd_listener_t incoming;
    rd_chan_t **chan; /* of each rank */
    unsigned char *requested;
    int awaited; /* expected ranks that have not sent their request yet */
} lead_t;

static void hear(lead_t *l, int rank)
{
    const unsigned char *data;
    size_t bytes;
    int type;
    rd_chan_t *c = l->chan[rank];
    rd_chan_pump(c);
    while (!l->requested[rank] && rd_chan_next(c, &type, &data, &bytes)) {
        l->requested[rank] = type == REC_ASK ? REQUESTED : 0;
        l->awaited -= type == REC_ASK;
    }
    if (!l->requested[rank] && rd_chan_over(c)) {
        l->requested[rank] = GONE;
        l->awaited--;
    }
}

static void lead_turn(lead_t *l, const unsigned char *expected, int *pidfd, struct pollfd *polls)
{
    int n = rd_listener_fill(&l->incoming, polls);
    for (int r = 0; r < l->p->nranks; r++)
        if (l->chan[r] && !l->requested[r])
            polls[n++] = (struct pollfd){.fd = l->chan[r]->fd, .events = rd_chan_events(l->chan[r])};
    poll(polls, (nfds_t)n, 50);
    for (int r = 0; r < l->p->nranks; r++)
        if (l->chan[r] && !l->requested[r])
            hear(l, r);
    rd_listener_pump(&l->incoming);
    for (rd_chan_t *c; (c = rd_listener_next(&l->incoming));) {
        int r = c->theirs.rank;
        if (c->theirs.purpose != RD_FOR_NODE || r < 0 || r >= l->p->nranks || !expected[r] || l->chan[r]) {
            rd_chan_free(c);
            continue;
        }
        l->chan[r] = c;
        pidfd[r] = open_pidfd(c->fd);
        hear(l, r);
    }
}

/* What the ranks have brought along is the leader's from here on. */
static void take_brought(lead_t *l)
{
    for (int r = 0; r < l->p->nranks && l->p->others; r++) {
        if (!l->chan[r] || l->requested[r] != REQUESTED)
            continue;
        l->p->others[r] = l->chan[r]->passed;
        l->chan[r]->passed = -1;
    }
}

/* Sends a sealed record of `bytes` with descriptors attached. A user who may not do everything can have no more of them
 * under way, by all sockets of the host, than a process may open. Returns 0, or -1 with errno set. */
static int send_with(rd_chan_t *c, unsigned char *record, size_t bytes, const int *fds, int nfds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(PER_MESSAGE * sizeof(int))];
    } control;
    struct iovec io = {record, bytes};
    struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = &control};
    int tries = 0, error = ETIMEDOUT;
    rd_fd_attach(&message, fds, nfds);
    for (int64_t until = rd_clock_ms() + WAIT_MS; rd_clock_ms() < until;) {
        ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            if ((size_t)n == io.iov_len)
                return 0;
            io.iov_base = (char *)io.iov_base + n; /* the descriptors went with the first byte */
            io.iov_len -= (size_t)n;
            message.msg_control = NULL;
            message.msg_controllen = 0;
            continue;
        }
        struct pollfd p = {.fd = c->fd, .events = POLLOUT};
        error = errno;
        if (error == EAGAIN)
            poll(&p, 1, 50);
        else if (error == ETOOMANYREFS) /* until others have taken what is under way to them */
            poll(NULL, 0, 1);
        else if (!rd_sock_again(error, &tries))
            break;
    }
    errno = error;
    return -1;
}

static int send_parcel(rd_chan_t *c, const parcel_t *parcel, const int *fds)
{
    unsigned char record[PARCEL_BYTES];
    rd_auth_seal(&c->auth, REC_GIVE, parcel, sizeof(*parcel), record);
    return send_with(c, record, sizeof(record), fds, parcel->count);
}

/* To rank `to`, which has what it has brought itself. Returns 0, or -1 with errno set. */
static int give(const rd_pass_t *p, rd_chan_t *c, int to, int memory, const int *pidfd)
{
    parcel_t parcel = {.count = 1, .rank = {MEMORY_RANK}};
    int fds[PER_MESSAGE] = {memory};
    for (int i = 0; i < 2 * p->nranks; i++) {
        int r = i % p->nranks, own = r == p->rank ? p->brought : p->others ? p->others[r] : -1;
        int fd = i < p->nranks ? pidfd[r] : r == to ? -1 : own;
        if (fd < 0)
            continue;
        if (parcel.count == PER_MESSAGE) {
            if (send_parcel(c, &parcel, fds) != 0)
                return -1;
            parcel.count = 0;
        }
        parcel.rank[parcel.count] = i;
        fds[parcel.count++] = fd;
    }
    parcel.last = 1;
    return parcel.count ? send_parcel(c, &parcel, fds) : 0;
}

/* A member that does not get all reports that itself, but cannot know why. One that has ended reports nothing. */
static void give_all(const lead_t *l, int memory, const int *pidfd, rd_log_ctx_t *ctx)
{
    for (int r = 0; r < l->p->nranks; r++) {
        if (l->requested[r] != REQUESTED || give(l->p, l->chan[r], r, memory, pidfd) == 0)
            continue;
        if (errno != EPIPE && errno != ECONNRESET)
            rd_log(ctx, RD_LOG_WARN, "rank %d cannot be given the descriptors of its node's ranks: %s", r,
                   errno == ETOOMANYREFS ? "too many are under way on this host (raise `ulimit -n`)" : strerror(errno));
    }
}

rondo_result_t rd_pass_lead(const rd_pass_t *p, int listener, const unsigned char name[RD_NODE_NAME],
                            const unsigned char *expected, int memory, int *pidfd, rd_log_ctx_t *ctx)
{
    size_t n = (size_t)p->nranks;
    rd_hello_t mine = {.purpose = RD_FOR_NODE, .rank = p->rank, .nranks = p->nranks};
    lead_t l = {.p = p};
    struct pollfd *polls = calloc(n + RD_LISTENER_POLLS, sizeof(*polls));
    rondo_result_t code = RONDO_SUCCESS;
    l.chan = calloc(n, sizeof(*l.chan));
    l.requested = calloc(n, 1);
    if (!polls || !l.chan || !l.requested) {
        code = rd_error(ctx, RONDO_ERR_NO_MEMORY, "no memory to gather the ranks of a node");
        goto free;
    }
    rd_listener_open(&l.incoming, listener, &p->creds, name, RD_NODE_NAME, &mine);
    for (size_t r = 0; r < n; r++)
        l.awaited += expected[r] != 0;
    rd_fd_fork_lock();
    pidfd[p->rank] = rd_fd_keep((int)syscall(SYS_pidfd_open, getpid(), 0));
    rd_fd_fork_unlock();
    int64_t until = rd_clock_ms() + WAIT_MS;
    while (l.awaited && !l.incoming.poor && rd_clock_ms() < until && !(code = stopped(p)))
        lead_turn(&l, expected, pidfd, polls);
    if (l.incoming.poor && !code)
        code = rd_error(ctx, RONDO_ERR_NO_MEMORY, "no memory to gather the ranks of a node");
    take_brought(&l);
    if (!code)
        give_all(&l, memory, pidfd, ctx);
    rd_listener_close(&l.incoming);
    for (size_t r = 0; r < n; r++)
        rd_chan_free(l.chan[r]);
free:
    free(l.requested);
    free(l.chan);
    free(polls);
    return code;
}

/* ---- a member ---- */

/* Waits for the socket. Returns false to give up. */
static bool wait_for(const rd_pass_t *p, int fd, short events, int64_t until)
{
    struct pollfd one = {.fd = fd, .events = events};
    return (poll(&one, 1, 50) != 0 || stopped(p) == RONDO_SUCCESS) && rd_clock_ms() <= until;
}

static bool is_connected(int fd)
{
    struct sockaddr_un sa;
    socklen_t bytes = sizeof(sa);
    return getpeername(fd, (struct sockaddr *)&sa, &bytes) == 0;
}

/* Where the leader's queue was full, it empties it now. Returns true once the descriptor is connected. */
static bool reach(const rd_pass_t *p, int fd, const unsigned char name[RD_NODE_NAME], int64_t until)
{
    while (!is_connected(fd)) {
        int error = try_connect(fd, name);
        if (!error)
            return true;
        if (error != EAGAIN || stopped(p) != RONDO_SUCCESS || rd_clock_ms() > until)
            return false;
        poll(NULL, 0, AGAIN_MS);
    }
    return true;
}

static int shake_hands(const rd_pass_t *p, rd_chan_t *c, int64_t until)
{
    for (;;) {
        rd_chan_pump(c);
        if (c->state == RD_CHAN_OPEN && !rd_chan_queued(c))
            return 0;
        if (c->state == RD_CHAN_DEAD || !wait_for(p, c->fd, rd_chan_events(c), until))
            return -1;
    }
}

/* Stores the descriptors that came. Returns -1 if some did not fit. */
static int take_descriptors(struct msghdr *message, int *fds, int *nfds)
{
    int lost = message->msg_flags & MSG_CTRUNC;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head; head = CMSG_NXTHDR(message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        int n = (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (int i = 0; i < n && *nfds < PER_MESSAGE; i++) {
            memcpy(&fds[*nfds], CMSG_DATA(head) + (size_t)i * sizeof(int), sizeof(int));
            fds[*nfds] = rd_fd_keep(fds[*nfds]);
            lost |= fds[*nfds] < 0;
            *nfds += fds[*nfds] >= 0;
        }
    }
    return lost ? -1 : 0;
}

/* Receives one record with its descriptors. Returns TAKEN, BROKEN or LOST. */
static int recv_parcel(const rd_pass_t *p, rd_chan_t *c, int64_t until, parcel_t *parcel, int *fds, int *nfds)
{
    unsigned char record[PARCEL_BYTES] = {0};
    size_t have = 0;
    int type, lost = 0, tries = 0;
    *nfds = 0;
    while (have < sizeof(record)) {
        char control[CMSG_SPACE(PER_MESSAGE * sizeof(int))];
        struct iovec io = {record + have, sizeof(record) - have};
        struct msghdr message = {
            .msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
        rd_fd_fork_lock();
        ssize_t n = recvmsg(c->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n > 0)
            lost |= take_descriptors(&message, fds, nfds);
        rd_fd_fork_unlock();
        if (n > 0)
            have += (size_t)n;
        else if (n == 0 || (errno != EAGAIN && !rd_sock_again(errno, &tries)) || !wait_for(p, c->fd, POLLIN, until))
            return BROKEN;
    }
    if (lost)
        return LOST;
    if (rd_auth_length(record) != sizeof(record) || rd_auth_open(&c->auth, record, &type) != 0 || type != REC_GIVE)
        return BROKEN;
    memcpy(parcel, record + RD_RECORD_HEAD, sizeof(*parcel));
    return parcel->count == *nfds ? TAKEN : BROKEN;
}

static void drop_all(int *fds, int n)
{
    for (int i = 0; fds && i < n; i++) {
        rd_fd_close(fds[i]);
        fds[i] = -1;
    }
}

static void sort_parcel(const rd_pass_t *p, const parcel_t *parcel, const int *fds, int *memory, int *pidfd)
{
    int n = p->nranks;
    for (int i = 0; i < parcel->count; i++) {
        int r = parcel->rank[i];
        if (r == MEMORY_RANK && *memory < 0)
            *memory = fds[i];
        else if (r >= 0 && r < n && pidfd[r] < 0)
            pidfd[r] = fds[i];
        else if (r >= n && r - n < n && p->others && p->others[r - n] < 0)
            p->others[r - n] = fds[i];
        else
            rd_fd_close(fds[i]);
    }
}

/* Requests the descriptors, and brings this rank's along. Returns 0 or -1. */
static int request(const rd_pass_t *p, rd_chan_t *c)
{
    unsigned char record[RD_RECORD_HEAD + RD_PROOF];
    if (p->brought < 0)
        return rd_chan_send(c, REC_ASK, NULL, 0);
    rd_auth_seal(&c->auth, REC_ASK, NULL, 0, record);
    return send_with(c, record, sizeof(record), &p->brought, 1);
}

/* On one connection to the leader, which it takes over. */
static int ask(const rd_pass_t *p, int fd, const unsigned char name[RD_NODE_NAME], int64_t until, int *memory,
               int *pidfd)
{
    rd_hello_t mine = {.purpose = RD_FOR_NODE, .rank = p->rank, .nranks = p->nranks};
    parcel_t parcel = {.last = 0};
    int fds[PER_MESSAGE], nfds = 0, parcels = 0;
    if (!reach(p, fd, name, until)) {
        rd_fd_close(fd);
        return BROKEN;
    }
    rd_chan_t *c = rd_chan_client(fd, &p->creds, name, RD_NODE_NAME, &mine);
    if (!c)
        return POOR;
    int got = shake_hands(p, c, until) == 0 ? request(p, c) : BROKEN;
    while (got == TAKEN && !parcel.last) {
        got = recv_parcel(p, c, until, &parcel, fds, &nfds);
        for (int i = 0; i < nfds && got != TAKEN; i++)
            rd_fd_close(fds[i]);
        if (got == TAKEN)
            sort_parcel(p, &parcel, fds, memory, pidfd);
        parcels += got == TAKEN;
    }
    int error = c->state == RD_CHAN_DEAD ? c->error : 0;
    rd_chan_free(c);
    if (got == BROKEN && error == ENOMEM)
        return POOR;
    return got == BROKEN && !parcels && error != EPROTO ? DROPPED : got;
}

/* Where many ranks come at once, the leader's listener drops the oldest. Who is dropped dials again, until the leader
 * has closed its socket. Returns the descriptor, or -1. */
static int dial_again(const rd_pass_t *p, const unsigned char name[RD_NODE_NAME], int64_t until)
{
    poll(NULL, 0, AGAIN_MS);
    return stopped(p) == RONDO_SUCCESS && rd_clock_ms() <= until ? rd_pass_connect(name) : -1;
}

rondo_result_t rd_pass_follow(const rd_pass_t *p, int fd, const unsigned char name[RD_NODE_NAME], int *memory,
                              int *pidfd, rd_log_ctx_t *ctx)
{
    int64_t until = rd_clock_ms() + 2 * WAIT_MS; /* the leader waits for the slowest member */
    int got;
    *memory = -1;
    do
        got = ask(p, fd, name, until, memory, pidfd);
    while (got == DROPPED && (fd = dial_again(p, name, until)) >= 0);
    if (got != TAKEN) {
        drop_all(memory, 1);
        drop_all(pidfd, p->nranks);
        drop_all(p->others, p->nranks);
    }
    if (got == LOST)
        return rd_error(ctx, RONDO_ERR_SYSTEM, "cannot take the descriptors of this node's ranks: %s",
                        rd_fd_strerror(EMFILE));
    if (got == POOR)
        return rd_error(ctx, RONDO_ERR_NO_MEMORY, "no memory to reach the first rank of this node");
    return rd_stop_get(p->stop);
}
