/* See number.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

#define RANKS_MOST (1 << 20)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

const char *number_begins(const char *text, long least, long most, long *value)
{
    char *end;

    if (!is_digit(*text))
        return NULL;
    errno = 0;
    const long n = strtol(text, &end, 10);
    if (errno || n < least || n > most)
        return NULL;
    *value = n;
    return end;
}

const char *number_real_begins(const char *text, double least, double most, double *value)
{
    const char *first = text + (*text == '.');
    char *end;

    if (!is_digit(*first) || (first[0] == '0' && (first[1] | 0x20) == 'x'))
        return NULL;
    const double x = strtod(text, &end);
    if (!(x >= least && x <= most))
        return NULL;
    *value = x;
    return end;
}

bool number_is(const char *text, long least, long most, int *value)
{
    long n;
    const char *end = number_begins(text, least, most, &n);

    if (!end || *end)
        return false;
    *value = (int)n;
    return true;
}

bool number_real_is(const char *text, double least, double most, double *value)
{
    double x;
    const char *end = number_real_begins(text, least, most, &x);

    if (!end || *end)
        return false;
    *value = x;
    return true;
}

bool number_shape(const char *text, int least_nodes, int *nodes, int *ranks)
{
    long n;
    const char *times = number_begins(text, least_nodes, RANKS_MOST, &n);

    if (!times || *times != 'x' || !number_is(times + 1, 1, RANKS_MOST / n, ranks))
        return false;
    *nodes = (int)n;
    return true;
}
