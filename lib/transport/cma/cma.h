/* Reading a peer's memory as a transport (cross-memory attach): the CMA protocol's way of moving bytes, and the
 * question whether it may.
 *
 * A sender posts where its data lies; the receiver copies it straight to where it is wanted, by the kernel
 * (process_vm_readv) or, between threads of one process, by itself. One copy instead of two, and none of the slots'
 * lines go back and forth between caches. The kernel asks for the right to trace the peer: a container or a security
 * module may refuse it, so every rank tries at creation and all agree: then conns->pull is set, and the connections
 * within the node get `read`. The posts themselves go by the lines of these connections.
 */
#ifndef RD_TRANSPORT_CMA_CMA_H
#define RD_TRANSPORT_CMA_CMA_H

#include "transport/transport.h"

extern const rd_transport_ops_t rd_transport_cma;

#endif
