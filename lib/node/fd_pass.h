/* Passing descriptors between the ranks of a node, over an authenticated unix socket. */
#ifndef RD_NODE_FD_PASS_H
#define RD_NODE_FD_PASS_H

#include "boot/session.h"
#include "node/node.h"

#define RD_NODE_NAME 16 /* random bytes, the abstract name of a rank's socket */

/* Listens under a fresh random name. Returns the descriptor, or -1 with errno set. */
int rd_pass_listen(unsigned char name[RD_NODE_NAME]);
/* Connects to the socket of that name. Returns the descriptor, or -1 if no such socket can be reached from here. Does
 * not wait: while the queue of that socket is full, it is reached, and rd_pass_follow connects the descriptor. */
int rd_pass_connect(const unsigned char name[RD_NODE_NAME]);

typedef struct rd_pass {
    rd_creds_t creds;
    int rank, nranks;
    rd_stop_t *stop;
    rd_boot_t *boot; /* checked for deaths while waiting; NULL: there is none to check */
    /* A descriptor of its process that each rank may bring along, for all others. */
    int brought; /* this rank's, which stays its own; -1: none */
    int *others; /* [nranks] of the other ranks, -1 where none came; filled as pidfd is. NULL: they are not wanted */
} rd_pass_t;

/* The leader's side: accepts the ranks marked in `expected` at `listener`, opens a pidfd of each, then passes `memory`,
 * all pidfds and what the ranks have brought to each. Sets pidfd[r] for the ranks that came. A rank that does not come
 * in time is left out. */
rondo_result_t rd_pass_lead(const rd_pass_t *p, int listener, const unsigned char name[RD_NODE_NAME],
                            const unsigned char *expected, int memory, int *pidfd, rd_log_ctx_t *ctx);
/* A member's side, on a descriptor of rd_pass_connect, which it takes over. If the leader drops that, for too many have
 * come at once, it connects again, until the leader's socket is closed. *memory is -1 on return if the handshake with
 * the leader failed. */
rondo_result_t rd_pass_follow(const rd_pass_t *p, int fd, const unsigned char name[RD_NODE_NAME], int *memory,
                              int *pidfd, rd_log_ctx_t *ctx);

#endif
