/* The cards by name, for files that refer to one of them, and what schedules share. The Makefile generates cards.h,
 * which has a line RD_CARD(x) for each card x that a file of local.mk defines.
 */
#ifndef RD_SCHED_ALGO_ALGOS_H
#define RD_SCHED_ALGO_ALGOS_H

#include "sched/algo.h"
#include "sched/list.h"

#define RD_CARD(card) extern const rd_algo_t card;
#include "sched/algo/cards.h"
#undef RD_CARD

const char *rd_sched_any(const rd_sched_args_t *args); /* `excluded` of an algorithm that always serves */

#endif
