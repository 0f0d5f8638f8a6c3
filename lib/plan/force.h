/* What one call forces (rondo_force_next) or prefers (rondo_prefer_next): RONDO_ALGO and RONDO_PROTO of its own; and
 * its budgets (rondo_resources_next). It is a number of this process that is part of the call's description, and so of
 * what a plan is found by. */
#ifndef RD_PLAN_FORCE_H
#define RD_PLAN_FORCE_H

#include <stdbool.h>

#include "base/env.h"

#define RD_FORCE_MOST 255 /* different texts of a process; a number has 8 bits */

/* Returns the number of a pair of texts, for RONDO_ALGO and RONDO_PROTO; a text that is NULL leaves the variable as it
 * is, and 0 is the number of two of these. Returns -1 if there are RD_FORCE_MOST pairs already, or no memory. The
 * caller has checked that the variables allow the texts. `prefers`: where they cannot serve a call, the choice is
 * rondo's. */
int rd_force_number(const char *algo, const char *proto, bool prefers);
/* Returns the number of the same texts as `number`'s with other budgets: multiprocessors, and RONDO_CTA_POLICY_*; -1
 * leaves the communicator's. Returns -1 for the same reasons as rd_force_number. */
int rd_force_with(unsigned number, int blocks, int cta_policy);
bool rd_force_prefers(unsigned number);
int rd_force_blocks(unsigned number); /* -1: the communicator's */
int rd_force_cta_policy(unsigned number);

/* Returns the settings that hold for a call with this number: `env` itself if it is 0, or *copy, which is filled. */
const rd_env_t *rd_force_env(const rd_env_t *env, unsigned number, rd_env_t *copy);

/* Returns a word of the texts, which is the same on all ranks that force the same, and none of rd_tuner_word's; 0 for
 * number 0. */
uint64_t rd_force_word(unsigned number);

#endif
