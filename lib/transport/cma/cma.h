/* Reading a peer's memory: the PULL protocol's way of moving bytes, and the question whether it may.
 *
 * A sender posts where its data lies; the receiver copies it straight to where it is wanted, by the kernel
 * (process_vm_readv) or, between threads of one process, by itself. One copy instead of two, and none of the slots'
 * lines go back and forth between caches. The kernel asks for the right to trace the peer: a container or a security
 * module may refuse it, so every rank tries at creation and all agree.
 */
#ifndef RD_PULL_H
#define RD_PULL_H

#include "transport/conns.h"

/* What a sender posts, in one line. */
typedef struct rd_posted {
    uint64_t address, bytes;
} rd_posted_t;

/* Collective: tries to read a word of every rank of the node, and sets conns->pull where all ranks could everywhere. */
rondo_result_t rd_pull_probe(rd_conns_t *conns, rd_boot_t *boot, const rd_node_t *node, int rank, const rd_env_t *env,
                             rd_who_t *who);

/* Copies `bytes` from `address` in the sender's memory; 0, or -1: the sender or its buffer is gone. */
int rd_pull_read(const rd_recv_t *from, void *to, uint64_t address, size_t bytes);

#endif
