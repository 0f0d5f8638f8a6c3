/* RONDO_RAS_ADDR: rondo-ras of another host asks over TCP, and is given dumps of all processes of this node that share
 * communicators with this one (monitor/ras_wire.h). RONDO_RAS_NCCL: NCCL's own client asks on this host
 * (monitor/nccl_ras.h). One process of a node listens, that of the lowest rank in its first communicator, with threads
 * of their own, since clients take their time; no call takes part. Without the variables no port is open. */
#ifndef RD_CORE_RAS_TCP_H
#define RD_CORE_RAS_TCP_H

#include "core/comm.h"

/* To be called when a communicator is published, and when it has ended. */
void rd_ras_tcp_join(rondo_comm_t comm);
void rd_ras_tcp_leave(rondo_comm_t comm);
void rd_ras_tcp_forget(void); /* in a forked child */

#endif
