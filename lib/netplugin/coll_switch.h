/* NCCL's CollNet plugins as the switch of a communicator: all that the rest of the library needs to know of them. */
#ifndef RD_NETPLUGIN_COLL_SWITCH_H
#define RD_NETPLUGIN_COLL_SWITCH_H

#include "base/health.h"
#include "transport/switch.h"

/* Collective, for a communicator of several nodes: finds a plugin by the names of RONDO_NET_PLUGIN and connects the
 * heads of each rail. `*collnet` is NULL where RONDO_COLLNET asks for none, or, if it does not insist, where a rank has
 * no plugin that serves or connects. `net`: the transport that it is put beside; `slot_bytes`: the longest message, if
 * the plugin takes it. What fails later fails the communicator through `health`. */
rondo_result_t rd_collnet_create(rd_collnet_t **collnet, const rd_transport_args_t *args, rd_transport_t *net,
                                 rd_health_t *health, size_t slot_bytes);

/* Writes what `rondo-info` shows: the plugin, its devices, and what it adds; or why there is none. */
void rd_collnet_report(const rd_env_t *env, char *text, size_t size);

#endif
