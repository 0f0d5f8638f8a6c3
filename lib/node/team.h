/* The team of a communicator: its ranks and their places, and what all modules that work for it share. The communicator
 * fills it in while it is made, and passes it to the layers below, for which it does not change. */
#ifndef RD_NODE_TEAM_H
#define RD_NODE_TEAM_H

#include "base/health.h"
#include "node/node.h"

struct rd_control;
struct rd_seat;
struct rd_prices;

typedef struct rd_team {
    int rank, nranks;
    int device;   /* RONDO_DEVICE_HOST, or the number of this rank's GPU */
    uint32_t gpu; /* the PCI address of the GPU whose data a host communicator moves (topo/locality.h); 0: none */
    const rd_node_t *node; /* which ranks share a node */
    const rd_env_t *env;   /* the settings, as they were when the communicator was made */
    rd_boot_t *boot;       /* for exchanges at creation, and to name ranks */
    rd_health_t *health;
    struct rd_seat *seat;           /* monitor/seat.h: what this rank says of its calls; NULL: nothing */
    rd_log_ctx_t *ctx;              /* the name under which messages are logged */
    const struct rd_prices *prices; /* cost/prices.h */
    struct rd_control *const
        *controls;      /* transport/conns.h: the control of each rank on this node, NULL for other ranks */
    const char *tuner;  /* the name of who has a say in choices (plan/tuner.h); NULL: nobody */
    int64_t timeout_ms; /* timeout of an operation; 0: none */
    int spin;           /* polls before the first yield of a wait */
    int spin_us;        /* microseconds before it, if that is sooner; 0: `spin` alone */
    int spin_yield;     /* if `spin` is 0: polls on a rank that runs on another core */
    int cores_each;     /* cores for each rank where they are fewest: the same on all ranks; 0: less than one each */
} rd_team_t;

#endif
