/* NCCL's net plugins as a transport: all that the rest of the library needs to know of lib/netplugin. */
#ifndef RD_NETPLUGIN_TRANSPORT_PLUGIN_H
#define RD_NETPLUGIN_TRANSPORT_PLUGIN_H

#include "transport/transport.h"

extern const rd_transport_ops_t rd_transport_plugin;

#endif
