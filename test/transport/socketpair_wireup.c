/* How the ranks of different nodes come to a socket each: see socketpair.h. Every rank listens on an abstract name that
 * the kernel gives it; the names go through the bootstrap's allgather as they are. A rank connects to all higher ones
 * on other nodes, and says who it is.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "transport/socketpair.h"

#define HELLO_MS 5000 /* for the first packet of whoever has connected */

/* What goes through the bootstrap. */
typedef struct address {
    struct sockaddr_un name;
    socklen_t bytes;
} address_t;

static rondo_result_t system_error(const sp_t *sp, const char *what)
{
    return rd_error(sp->ctx, RONDO_ERR_SYSTEM, "socketpair: %s: %s", what, strerror(errno));
}

static rondo_result_t listen_own(const sp_t *sp, int *listener, address_t *own)
{
    const struct sockaddr_un any = {.sun_family = AF_UNIX};

    own->bytes = sizeof own->name;
    *listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*listener < 0 || bind(*listener, (const struct sockaddr *)&any, sizeof any.sun_family) != 0 ||
        getsockname(*listener, (struct sockaddr *)&own->name, &own->bytes) != 0 || listen(*listener, sp->nranks) != 0)
        return system_error(sp, "cannot listen");
    return RONDO_SUCCESS;
}

static rondo_result_t connect_to(peer_t *p, const address_t *address)
{
    header_t hello = sp_header(p->sp, HELLO, 0, 0, 0);

    if (address->bytes > sizeof address->name)
        return rd_error(p->sp->ctx, RONDO_ERR_INTERNAL, "socketpair: rank %d has no address", p->rank);
    p->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    p->deaf = p->fd < 0;
    if (p->fd < 0 || connect(p->fd, (const struct sockaddr *)&address->name, address->bytes) != 0 ||
        !sp_packet_send(p, &hello, NULL, 0))
        return system_error(p->sp, "cannot connect");
    return RONDO_SUCCESS;
}

/* The rank that has connected; -1: a stranger, or one that is there already. */
static int hello_from(sp_t *sp, int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    header_t h;

    if (poll(&wait, 1, HELLO_MS) != 1 || recv(fd, &h, sizeof h, MSG_DONTWAIT | MSG_TRUNC) != (ssize_t)sizeof h)
        return -1;
    if (memcmp(h.token, sp->token, sizeof h.token) != 0 || h.kind != HELLO || h.rank >= (uint32_t)sp->rank)
        return -1;
    return sp->peers[h.rank].fd < 0 ? (int)h.rank : -1;
}

/* Until `missing` lower ranks have come. */
static rondo_result_t accept_all(sp_t *sp, int listener, int missing, const rd_env_t *env)
{
    rondo_result_t result = RONDO_SUCCESS;
    rd_wait_t wait;

    rd_wait_begin(&wait, sp->stop, 0, env->create_timeout_ms);
    while (missing > 0 && result == RONDO_SUCCESS) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), rank = fd < 0 ? -1 : hello_from(sp, fd);
        if (rank >= 0) {
            sp->peers[rank].fd = fd;
            sp->peers[rank].deaf = false;
            missing--;
        } else if (fd >= 0) {
            close(fd);
        } else {
            result = rd_wait_backoff(&wait);
            if (result == RONDO_SUCCESS || result == RONDO_IN_PROGRESS)
                result = rd_boot_check(sp->boot); /* the liveness thread does not run yet */
        }
    }
    return result != RONDO_ERR_TIMEOUT
               ? result
               : rd_error(sp->ctx, result, "socketpair: %d ranks have not connected in time", missing);
}

static rondo_result_t connect_all(sp_t *sp, const rd_transport_args_t *args, int listener, const address_t *all)
{
    const int *node_of = args->node->node_of;
    rondo_result_t result = RONDO_SUCCESS;
    int lower = 0;

    for (int r = 0; r < sp->nranks && result == RONDO_SUCCESS; r++) {
        if (node_of[r] == node_of[sp->rank])
            continue;
        lower += r < sp->rank;
        if (r > sp->rank)
            result = connect_to(&sp->peers[r], &all[r]);
    }
    return result == RONDO_SUCCESS ? accept_all(sp, listener, lower, args->env) : result;
}

rondo_result_t sp_wire_up(sp_t *sp, const rd_transport_args_t *args)
{
    address_t *all = calloc((size_t)sp->nranks, sizeof *all);
    int listener = -1;
    rondo_result_t result = all ? listen_own(sp, &listener, &all[sp->rank])
                                : rd_error(sp->ctx, RONDO_ERR_NO_MEMORY, "no memory for %d addresses", sp->nranks);

    if (result == RONDO_SUCCESS)
        result = rd_boot_allgather(sp->boot, all, sizeof *all);
    if (result == RONDO_SUCCESS)
        result = connect_all(sp, args, listener, all);
    if (listener >= 0)
        close(listener);
    free(all);
    return result;
}
