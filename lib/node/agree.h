/* What all ranks must agree on before they plan: one exchange at creation, so that every later choice is the same on
 * every rank by construction.
 */
#ifndef RD_NODE_AGREE_H
#define RD_NODE_AGREE_H

#include "node/team.h"

typedef struct rd_agreed {
    int crowded;   /* more ranks than cores where this rank runs: waits yield at the first miss */
    int cores;     /* that the ranks of one machine may use together: the fewest of any machine */
    int sharing;   /* ranks of the fullest machine, whatever nodes are played on it */
    int processor; /* of the numbers that ranks have given, the lowest: where they differ, all take that one's prices */
} rd_agreed_t;

/* What this rank says of its prices (cost/prices.h). */
typedef struct rd_priced {
    int processor; /* number of the built-in table for its processor */
    uint64_t
        tuned; /* a hash of the prices that RONDO_TUNE puts in its place: the same on all ranks; 0: it is not set */
} rd_priced_t;

uint64_t rd_machine_number(void); /* the same for all processes of a machine, whatever nodes are played on it */

/* Collective. Different versions, devices or settings are an error on every rank, which names both ranks and what
 * differs. */
rondo_result_t rd_agree(rd_agreed_t *agreed, const rd_team_t *team, const rd_priced_t *priced);

#endif
