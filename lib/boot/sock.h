/* Sockets of the bootstrap: addresses in wire form, the choice of the interface to listen on, and descriptors that a
 * forked child does not keep. */
#ifndef RD_BOOT_SOCK_H
#define RD_BOOT_SOCK_H

#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/env.h"
#include "base/fd.h"

/* An address and port exactly as it travels in ids and records. */
typedef struct rd_addr {
    unsigned char ip[16]; /* an IPv4 address is in the first four */
    unsigned char port[2];
    unsigned char family; /* 4 or 6; 0: none */
    unsigned char zero;
} rd_addr_t;

#define RD_ADDR_TEXT 64
const char *rd_addr_print(const rd_addr_t *addr, char text[RD_ADDR_TEXT]); /* "10.0.0.1:4567", "[::1]:4567" */
bool rd_addr_same_host(const rd_addr_t *a, const rd_addr_t *b); /* true if they are equal except for the port */
bool rd_addr_is_loopback(const rd_addr_t *addr);
rd_addr_t rd_addr_loopback(int family);
int rd_addr_local(int fd, rd_addr_t *addr); /* of a connected or bound socket; 0 or -1 */
int rd_addr_remote(int fd, rd_addr_t *addr);

/* Chooses the address to listen on: that of RONDO_IFACE if it is set, else the first that is up and neither loopback
 * nor link-local, else loopback. */
rondo_result_t rd_addr_choose(rd_addr_t *addr, const rd_env_t *env);

/* Listens on exactly this address, at a port of RONDO_PORTS, and writes the port into `addr`. */
rondo_result_t rd_sock_listen(int *fd, rd_addr_t *addr, const rd_env_t *env, rd_log_ctx_t *ctx);
/* Begins to connect, without waiting. Returns the descriptor, or -1 with errno set. */
int rd_sock_connect(const rd_addr_t *addr);
int rd_sock_accept(int listener); /* returns a descriptor with O_NONBLOCK, close-on-exec and TCP_NODELAY, or -1 */
/* poll(2), also of more than the process may have descriptors. Returns false if this process may not call it, which
 * stays so: errno says why. */
bool rd_sock_poll(struct pollfd *polls, nfds_t n, int ms);
/* Returns true if what has failed is to be tried again: a signal came, or the kernel had no memory just now. That is no
 * news of the other side; for a fifth of a second it is waited for. *tries is 0 before the first time. */
bool rd_sock_again(int error, int *tries);
/* Returns the error with which a connection, or the attempt to make it, has ended, or 0. A process to which getsockopt
 * is refused learns it by reading. */
int rd_sock_error(int fd);
/* Makes the kernel probe the other host: a connection whose other host has not answered for about five seconds ends
 * with ETIMEDOUT. The hosts answer, not the processes, so a rank that is late, stopped or without a core is not taken
 * for dead. Has no effect on a unix socket. `doubted`: rd_sock_doubt is called for it, and while it is not, because
 * this process has no core, that takes ten seconds. */
void rd_sock_heartbeat(int fd, bool doubted);
/* To be called a few times a second for each of those sockets: if the other host has not answered for a while, sends
 * another probe at once. *doubts, 0 at first, counts how often in a row. */
void rd_sock_doubt(int fd, int *doubts);
/* Makes the kernel probe the other host from time to time, so that no firewall forgets a connection on which nothing is
 * sent. Lost packets do not end it: that takes a minute and a half of silence. */
void rd_sock_keep_open(int fd);

/* To be called before a connection is closed. If the peer has closed its end, the connection ends with a reset: nobody
 * would read what may still be under way, and otherwise the peer's system would keep a port for it for a minute
 * (TIME_WAIT). A program that makes communicators all the time would run out of ports. */
void rd_sock_part(int fd);
void rd_sock_close(int fd); /* rd_sock_part, then rd_fd_close */

/* Attaches `n` descriptors to a message whose control buffer has CMSG_SPACE(n * sizeof(int)) bytes. */
void rd_fd_attach(struct msghdr *message, const int *fds, int n);

/* Descriptors that a forked child must not keep: a copy there would hide this process's end from its peers. They are
 * closed in the child right after fork (exec is covered by CLOEXEC). The caller holds rd_fd_fork_lock from before a
 * descriptor is created until rd_fd_keep, so that no fork comes between. */
void rd_fd_fork_lock(void);
void rd_fd_fork_unlock(void);
int rd_fd_keep(int fd); /* to be called with the lock held; returns rd_fd_high(fd) */
void rd_fd_close(int fd);
/* Gives the calling thread a table of descriptors of its own, with standard error and RONDO_DEBUG_FILE, for what it
 * logs, and the `n` in `own`, which it sorts; the process keeps all that it has. A thread that has to tell others that
 * no descriptor is left finds some there, from 0 on. Returns 0, or -1 if the system refuses. */
int rd_fd_own_table(int *own, int n);

#endif
