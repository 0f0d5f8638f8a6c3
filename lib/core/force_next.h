/* What rondo_force_next has said for this thread's next collective. */
#ifndef RD_CORE_FORCE_NEXT_H
#define RD_CORE_FORCE_NEXT_H

#include <stdbool.h>
#include <stdint.h>

/* Takes it, for a collective that is this one: a number of plan/force.h. Returns 0 if that is nothing. */
uint8_t rd_force_take(void);

#endif
