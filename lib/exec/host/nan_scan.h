/* Looks for values that are not a number (RONDO_NAN_CHECK). */
#ifndef RD_EXEC_HOST_NAN_SCAN_H
#define RD_EXEC_HOST_NAN_SCAN_H

#include <rondo.h>

/* Returns how many of `count` elements are NaN, or have a part that is, and sets *first to the index of the first one.
 * 0 for types that have none. Touches no floating-point flag. */
size_t rd_nan_count(const void *data, size_t count, rondo_type_t type, size_t *first);

#endif
