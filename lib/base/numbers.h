/* Numbers in files have a point, also where the program has called setlocale and its LC_NUMERIC says a comma: other
 * programs write those files and read them. */
#ifndef RD_BASE_NUMBERS_H
#define RD_BASE_NUMBERS_H

#include <locale.h>

/* Between the two calls this thread's printf, scanf and strtod are those of the C locale; other threads' are not
 * concerned. Neither allocates: the C locale is the C library's own object. */
static inline locale_t rd_numbers_begin(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

static inline void rd_numbers_end(locale_t before)
{
    uselocale(before);
}

#endif
