/* Sockets that libfabric forgets. Its tcp provider accepts a connection, and waits for a first message, which ofi_rxm
 * then answers. Where the endpoint is closed in between, as when ranks fail or leave while others still connect, nobody
 * closes that socket (1.17 to 2.6; xnet_pep_close has a note that it ought to), and it stays for as long as the process
 * lives. So the sockets that have the address at which the endpoint listens are noted before it is closed, and those
 * that are still there when all of libfabric's objects are closed are closed here. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ofi/ofi.h"

#define MOST 4096 /* sockets of an endpoint */

struct rd_ofi_socket {
    int fd;
    ino_t inode; /* a descriptor may be another one's by then */
};

static bool is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const struct sockaddr_in *x = (const struct sockaddr_in *)a, *y = (const struct sockaddr_in *)b;
    const struct sockaddr_in6 *x6 = (const struct sockaddr_in6 *)a, *y6 = (const struct sockaddr_in6 *)b;

    if (a->ss_family != b->ss_family)
        return false;
    return a->ss_family == AF_INET ? x->sin_port == y->sin_port && x->sin_addr.s_addr == y->sin_addr.s_addr
           : a->ss_family == AF_INET6
               ? x6->sin6_port == y6->sin6_port && memcmp(&x6->sin6_addr, &y6->sin6_addr, sizeof x6->sin6_addr) == 0
               : false;
}

/* Is it a socket, and which? */
static bool inode_of(int fd, ino_t *inode)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || !S_ISSOCK(st.st_mode))
        return false;
    *inode = st.st_ino;
    return true;
}

static bool forgets(const rd_ofi_net_t *net)
{
    const char *has = net->info->fabric_attr->prov_name;

    return strncmp(has, "tcp", 3) == 0 || strncmp(has, "net", 3) == 0;
}

/* The one that listens is among them, and is closed with the endpoint. Without memory nothing is noted. */
void rd_ofi_sockets_note(rd_ofi_net_t *net)
{
    struct sockaddr_storage own = {0}, at;
    size_t bytes = sizeof own;

    net->sockets = forgets(net) ? malloc(MOST * sizeof *net->sockets) : NULL;
    if (!net->sockets)
        return;
    DIR *d = fi_getname(&net->ep->fid, &own, &bytes) == 0 ? opendir("/proc/self/fd") : NULL;
    for (struct dirent *e; d && net->nsockets < MOST && (e = readdir(d));) {
        rd_ofi_socket_t *s = &net->sockets[net->nsockets];
        socklen_t length = sizeof at;
        s->fd = atoi(e->d_name);
        if (e->d_name[0] == '.' || !inode_of(s->fd, &s->inode))
            continue;
        net->nsockets += getsockname(s->fd, (struct sockaddr *)&at, &length) == 0 && is_same(&at, &own);
    }
    if (d)
        closedir(d);
}

void rd_ofi_sockets_close(rd_ofi_net_t *net)
{
    ino_t inode;

    for (int i = 0; i < net->nsockets; i++)
        if (inode_of(net->sockets[i].fd, &inode) && inode == net->sockets[i].inode)
            close(net->sockets[i].fd);
    free(net->sockets);
    net->sockets = NULL;
    net->nsockets = 0;
}
