/* Shared memory as a transport. It gives the connections between ranks of a node their inboxes, which lie in the node's
 * memory. The executor's stores into them are the messages (ll.h, slots.h), so the transport has nothing more to do. */
#ifndef RD_TRANSPORT_SHM_SHM_H
#define RD_TRANSPORT_SHM_SHM_H

#include "transport/transport.h"

extern const rd_transport_ops_t rd_transport_shm;

#endif
