/* UCX as a transport: all that the rest of the library needs to know of lib/ucx. */
#ifndef RD_UCX_TRANSPORT_UCX_H
#define RD_UCX_TRANSPORT_UCX_H

#include "transport/transport.h"

extern const rd_transport_ops_t rd_transport_ucx;

#endif
