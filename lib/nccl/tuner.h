/* Tuner plugins that were made for NCCL (tuner_abi.h), as a tuner of rondo's (plan/tuner.h). */
#ifndef RD_NCCL_TUNER_H
#define RD_NCCL_TUNER_H

#include "core/binding.h"
#include "nccl/tuner_abi.h"

/* Loads the plugin that `given`, the value of NCCL_TUNER_PLUGIN, names; NULL: that is not set. Returns NULL if there is
 * none, which has been said. */
const nc_tuner_export_t *nc_tuner_load(const char *given, int *version);

/* Loads the plugin and makes it the tuner of this process. */
void nc_tuner(const char *given);

/* The table of times. It lies between numbers that nobody has reason to change. */
#define NC_TUNER_FENCE 16
typedef struct nc_tuner_table {
    float before[NC_TUNER_FENCE], cell[NC_TUNER_CELLS], behind[NC_TUNER_FENCE];
    int best[NC_TUNER_CELLS]; /* the cheapest candidate of each cell; -1: there is none */
} nc_tuner_table_t;

void nc_tuner_fill(nc_tuner_table_t *table, const rd_tuner_candidate_t *candidates, int count);
/* Finds the cell that the plugin has made the cheapest: `was` is the table as it was filled. Returns -1 if it has
 * changed nothing, or has left nothing to be chosen. *why is then NULL, or says what is wrong with the answer. */
int nc_tuner_read(const nc_tuner_table_t *was, const nc_tuner_table_t *is, const char **why);
/* Returns the candidate of the cell whose slices are the longest that are not longer than `chunk`. */
int nc_tuner_slice(const rd_tuner_candidate_t *candidates, int count, int cell, size_t chunk);

#endif
