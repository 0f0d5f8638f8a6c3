/* RONDO_STACKS: from where a call is made. The stack of functions is walked by the C library, which costs a microsecond
 * or some; it is kept in the record as addresses, each stack once. Who reads the record names the functions
 * (stacks.h). */
#ifndef RD_MONITOR_CALLSITE_H
#define RD_MONITOR_CALLSITE_H

#include "monitor/seat.h"

/* Does the record of this seat keep stacks? To be called before the first call is made: the C library loads what it
 * needs. */
bool rd_callsite_begin(const rd_seat_t *seat);
/* Returns the index of the caller's stack in the record, plus one; 0: the record has no room for it. */
uint64_t rd_callsite(const rd_seat_t *seat);

#endif
