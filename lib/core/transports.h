/* The transports that this process has, in the order in which they are preferred: the built-in ones, then those that a
 * program has registered. */
#ifndef RD_CORE_TRANSPORTS_H
#define RD_CORE_TRANSPORTS_H

#include "transport/transport.h"

const rd_transport_ops_t *rd_transport_at(int i);               /* returns NULL if there are no more */
const rd_transport_ops_t *rd_transport_named(const char *name); /* returns NULL if there is none */

/* Adds a transport, which must not change until the process ends. To be called alike on every rank, and before the
 * first communicator is made. Returns 0, or -1 if there are too many or one already has that name. */
int rd_transport_register(const rd_transport_ops_t *ops);

/* Checks that RONDO_TRANSPORT, if it is set, names one of them. */
rondo_result_t rd_transport_check(const rd_env_t *env, rd_log_ctx_t *ctx);

/* Returns the transport by which this rank would reach other nodes: the one that RONDO_TRANSPORT names, or the first
 * that can be used. Returns NULL if there is none, and `why` gives the reason. */
#define RD_TRANSPORT_WHY 512
const rd_transport_ops_t *rd_transport_between(const rd_env_t *env, char why[RD_TRANSPORT_WHY]);

/* Collective, for a communicator of several nodes: chooses the transport that all its ranks have. */
rondo_result_t rd_transport_choose(const rd_transport_ops_t **ops, const rd_transport_args_t *args);

#endif
