/* Sizes in whole pages, and other rounding. What is shared between processes is laid out in pages of this size, also
 * where the machine's own are larger. */
#ifndef RD_BASE_PAGE_H
#define RD_BASE_PAGE_H

#include <stddef.h>

#define RD_PAGE ((size_t)4096)

/* Returns the lowest multiple of `to` that is not below `value`. */
static inline size_t rd_round_up(size_t value, size_t to)
{
    return (value + to - 1) / to * to;
}

#endif
