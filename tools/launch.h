/* The ranks of a job, for a tool that is no MPI program: whatever MPI the launcher belongs to is loaded when it is
 * needed and carries a few bytes. Every call that waits for other ranks has a limit, at which the process says what it
 * waited for and ends with status 1; the launcher then ends the others. */
#ifndef RD_LAUNCH_H
#define RD_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#define LAUNCH_WHY 512

/* A launcher has started this process as a rank of a job. */
bool launch_is_rank(void);
/* 0, or -1 and the reason. */
int launch_start(int *rank, int *nranks, char why[LAUNCH_WHY]);
/* Collective: gathers `bytes` of each rank, in the order of ranks. `what` is said at the limit. 0, or -1. */
int launch_gather(const void *mine, void *all, size_t bytes, const char *what);
/* Collective: from here on only those that have said true gather, and the others may do nothing but end. 0, or -1. */
int launch_keep(bool stays);
/* Collective over all that have started. */
void launch_end(void);

#endif
