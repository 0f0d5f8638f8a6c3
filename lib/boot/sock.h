/* Sockets of the bootstrap: addresses in wire form, which interface to listen on, and descriptors that a forked child
 * does not keep. */
#ifndef RD_BOOT_SOCK_H
#define RD_BOOT_SOCK_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/env.h"

/* An address and port exactly as it travels in ids and records. */
typedef struct rd_addr {
    unsigned char ip[16]; /* IPv4 in the first four */
    unsigned char port[2];
    unsigned char family; /* 4 or 6; 0: none */
    unsigned char zero;
} rd_addr_t;

#define RD_ADDR_TEXT 64
const char *rd_addr_print(const rd_addr_t *addr, char text[RD_ADDR_TEXT]); /* "10.0.0.1:4567", "[::1]:4567" */
bool rd_addr_same_host(const rd_addr_t *a, const rd_addr_t *b);            /* equal but for the port */
bool rd_addr_is_loopback(const rd_addr_t *addr);
rd_addr_t rd_addr_loopback(int family);
int rd_addr_local(int fd, rd_addr_t *addr); /* of a connected or bound socket; 0 or -1 */
int rd_addr_remote(int fd, rd_addr_t *addr);

/* The address to listen on: RONDO_IFACE's, else the first that is up, not loopback and not link-local, else loopback.
 */
rondo_result_t rd_addr_choose(rd_addr_t *addr, const rd_env_t *env);

/* Listens on exactly this address, at a port of RONDO_PORTS, and writes the port into it. */
rondo_result_t rd_sock_listen(int *fd, rd_addr_t *addr, const rd_env_t *env, rd_log_ctx_t *ctx);
/* Begins to connect without waiting; the descriptor, or -1 with errno set. */
int rd_sock_connect(const rd_addr_t *addr);
int rd_sock_accept(int listener); /* not blocking, close on exec, no delay */
/* Has the kernels of both ends ask for each other: a connection whose other host has not answered for about five
 * seconds ends with ETIMEDOUT. It is the hosts that answer, so a rank that is late, stopped or without a core is not
 * taken for gone. Without effect on a unix socket. */
void rd_sock_heartbeat(int fd);
/* To be called a few times a second for each of those: where the other host has not answered for a while, it is asked
 * once more at once. */
void rd_sock_doubt(int fd);

/* Descriptors that a forked child must not keep: a copy there would hide this process's end from its peers. They are
 * closed in the child right after fork (exec is covered by CLOEXEC). rd_fd_fork_lock is held over the creation of a
 * descriptor until rd_fd_keep, so that no fork comes between. */
void rd_fd_fork_lock(void);
void rd_fd_fork_unlock(void);
void rd_fd_keep(int fd); /* with the lock held */
void rd_fd_close(int fd);

#endif
