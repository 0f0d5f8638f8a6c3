/* The team of a communicator: who its ranks are and where, and what all that works for it shares. The communicator
 * fills it in while it is made, and hands it down to the layers below, for which it does not change.
 */
#ifndef RD_NODE_TEAM_H
#define RD_NODE_TEAM_H

#include "base/health.h"
#include "node/node.h"

struct rd_control;
struct rd_prices;

typedef struct rd_team {
    int rank, nranks;
    int device;            /* RONDO_DEVICE_HOST, or the number of this rank's GPU */
    const rd_node_t *node; /* which ranks share a node */
    const rd_env_t *env;   /* the settings, as they were when the communicator was made */
    rd_boot_t *boot;       /* for exchanges while something is made, and to name ranks */
    rd_health_t *health;
    rd_log_ctx_t *ctx;                  /* in whose name is logged */
    const struct rd_prices *prices;     /* cost/prices.h */
    struct rd_control *const *controls; /* transport/conns.h: of each rank on this node, NULL elsewhere */
    int64_t timeout_ms;                 /* of an operation; 0: none */
    int spin;                           /* polls before the first yield of a wait */
    int spin_yield;                     /* without spin: polls on a rank that runs on another core */
    int cores_each;                     /* for a rank, where they are fewest: the same on all ranks; 0: not one each */
} rd_team_t;

#endif
