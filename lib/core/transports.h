/* The transports that this process has, in the order in which they are preferred: the built-in ones, then those that a
 * program has registered. */
#ifndef RD_CORE_TRANSPORTS_H
#define RD_CORE_TRANSPORTS_H

#include "transport/transport.h"

const rd_transport_ops_t *rd_transport_at(int i);               /* NULL: there are no more */
const rd_transport_ops_t *rd_transport_named(const char *name); /* NULL: there is none */

/* Adds one, which must stay as it is until the process ends: on every rank alike, and before the first communicator is
 * made. 0, or -1: there are too many, or one has that name. */
int rd_transport_register(const rd_transport_ops_t *ops);

/* RONDO_TRANSPORT must name one of them, if it names any. */
rondo_result_t rd_transport_check(const rd_env_t *env, rd_log_ctx_t *ctx);

/* By which one this rank would reach other nodes: the one that RONDO_TRANSPORT names, or the first that can be used.
 * NULL: there is none, and `why` says why not. */
#define RD_TRANSPORT_WHY 320
const rd_transport_ops_t *rd_transport_between(const rd_env_t *env, char why[RD_TRANSPORT_WHY]);

/* Collective, for a communicator of several nodes: the one that all its ranks have. */
rondo_result_t rd_transport_choose(const rd_transport_ops_t **ops, const rd_transport_args_t *args);

#endif
