/* libfabric as a transport: all that the rest of the library needs to know of lib/ofi. */
#ifndef RD_OFI_TRANSPORT_OFI_H
#define RD_OFI_TRANSPORT_OFI_H

#include "transport/transport.h"

extern const rd_transport_ops_t rd_transport_ofi;

#endif
