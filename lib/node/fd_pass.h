/* Passing descriptors between the ranks of a node, over an authenticated unix socket. */
#ifndef RD_NODE_FD_PASS_H
#define RD_NODE_FD_PASS_H

#include "boot/session.h"
#include "node/node.h"

#define RD_NODE_NAME 16 /* random bytes: the abstract name of a rank's socket */

/* Listens under a fresh random name; the descriptor, or -1 with errno. */
int rd_pass_listen(unsigned char name[RD_NODE_NAME]);
/* The descriptor, or -1: nobody of that name can be reached from here. Waits only while the other's queue is full. */
int rd_pass_connect(const unsigned char name[RD_NODE_NAME]);

typedef struct rd_pass {
    rd_creds_t creds;
    int rank, nranks;
    rd_stop_t *stop;
    rd_boot_t *boot; /* asked about deaths while waiting; NULL: nobody to ask */
} rd_pass_t;

/* The leader's side: lets the ranks marked in `expected` in at `listener`, opens a pidfd of each, then gives to each
 * `memory` and all pidfds. pidfd[r] is set for those that came. A rank that does not come in time is left out. */
rondo_result_t rd_pass_lead(const rd_pass_t *p, int listener, const unsigned char name[RD_NODE_NAME],
                            const unsigned char *expected, int memory, int *pidfd, rd_log_ctx_t *ctx);
/* A member's side, on a connected descriptor (taken over). *memory -1 on return: the leader could not be convinced. */
rondo_result_t rd_pass_follow(const rd_pass_t *p, int fd, const unsigned char name[RD_NODE_NAME], int *memory,
                              int *pidfd, rd_log_ctx_t *ctx);

#endif
