/* A peer's memory as a transport (cross-memory attach): how the CMA protocol moves bytes, and the check whether
 * it may.
 *
 * A sender posts where its data lies; the receiver copies it directly to its destination, by the kernel
 * (process_vm_readv) or, between threads of one process, by itself. That is one copy instead of two, and no lines of
 * slots go back and forth between caches. The kernel requires the right to trace the peer, which a container or a
 * security module may refuse. So every rank tries it at creation, and all agree: if every rank may, conns->cma is set,
 * and the connections within the node get `read`. The posts themselves use the LL lines of these connections.
 *
 * Where one rank takes messages from all others, their senders write them into its memory instead, all at once:
 * cma/room.h.
 *
 * Some memory cannot be read all the same, or not any more. Then the receiver asks the sender, which waits until what
 * it has posted was read, to copy it into the slots of the connection (exec/host/cma_step.h). */
#ifndef RD_TRANSPORT_CMA_CMA_H
#define RD_TRANSPORT_CMA_CMA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "transport/transport.h"

extern const rd_transport_ops_t rd_transport_cma;

/* Copies from `here` to `there`, in the process `pid`, or the other way round, as process_vm_writev and
 * process_vm_readv do. To the kernel that number is the process's first thread, and no memory is found by it when that
 * thread has ended, which it may (pthread_exit in main) while the others go on; then another one's number serves. ESRCH
 * is that there is none: the process is gone. */
ssize_t rd_cma_copy(int32_t pid, const struct iovec *here, const struct iovec *there, bool write);

/* Returns false if the peer's process, which is another one, executes another program by now. */
bool rd_cma_same_program(const rd_recv_t *recv);

#endif
