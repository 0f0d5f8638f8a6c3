/* What all ranks must agree on before they plan: one exchange at creation, so that every later choice is the same on
 * every rank by construction. */
#ifndef RD_NODE_AGREE_H
#define RD_NODE_AGREE_H

#include "node/team.h"
#include "topo/locality.h"

typedef struct rd_agreed {
    int oversubscribed;        /* this rank's machine has more ranks than cores: waits yield at the first miss */
    int cores;                 /* cores that the ranks of one machine may use together: the fewest of any machine */
    int sharing;               /* ranks on the fullest machine, whatever nodes are simulated on it */
    rd_locality_t *localities; /* of each rank on its machine; the caller frees them */
    int processor;             /* the lowest of the ranks' numbers: where they differ, all use its prices */
} rd_agreed_t;

/* What this rank tells the others of its prices (cost/prices.h). */
typedef struct rd_priced {
    int processor;  /* the number of the built-in table for its processor */
    uint64_t tuned; /* a hash of the prices of RONDO_TUNE, which replace them; the same on all ranks; 0: not set */
} rd_priced_t;

uint64_t rd_machine_number(void); /* the same for all processes of a machine, whatever nodes are simulated on it */

/* Collective. Different versions, devices or settings are an error on every rank, which names two ranks and what
 * differs. */
rondo_result_t rd_agree(rd_agreed_t *agreed, const rd_team_t *team, const rd_priced_t *priced);

#endif
