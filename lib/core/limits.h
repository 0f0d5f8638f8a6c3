/* Time limits of calls: rondo_timeout_set, _extend and _next. */
#ifndef RD_CORE_LIMITS_H
#define RD_CORE_LIMITS_H

#include "core/comm.h"

#define RD_LIMIT_MOST_MS (INT64_C(1) << 40) /* 35 years, so that a clock and some limits can be added up */

/* Returns a limit that was given, or the longest that there is: INT64_MAX may be a program's word for "for ever". */
static inline int64_t rd_limit_bounded(int64_t ms)
{
    return ms < RD_LIMIT_MOST_MS ? ms : RD_LIMIT_MOST_MS;
}

/* Takes what rondo_timeout_next has said for this thread's next call, which is this one. Returns -1 if that is nothing.
 */
int64_t rd_limit_take(void);
/* The call is refused, and what rondo_timeout_next has said was for it, unless a group is open. Returns `result`. */
rondo_result_t rd_limit_drop(rondo_result_t result);

#endif
