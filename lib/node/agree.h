/* What all ranks must agree on before they plan: one exchange at creation, so that every later choice is the same on
 * every rank by construction.
 */
#ifndef RD_NODE_AGREE_H
#define RD_NODE_AGREE_H

#include "boot/boot.h"
#include "cost/prices.h"

typedef struct rd_agreed {
    int crowded; /* more ranks than cores where this rank runs: waits yield at the first miss */
    int cores;   /* that the ranks of one machine may use together: the fewest of any machine */
    int sharing; /* ranks of the fullest machine, whatever nodes are played on it */
    rd_prices_t prices;
} rd_agreed_t;

uint64_t rd_machine_number(void); /* the same for all processes of a machine, whatever nodes are played on it */

/* Collective. Different versions, devices or settings are an error on every rank, which names both ranks and what
 * differs. */
rondo_result_t rd_agree(rd_agreed_t *agreed, rd_boot_t *boot, int rank, int nranks, int device, const rd_env_t *env,
                        rd_who_t *who);

#endif
