/* Numbers among the arguments of rondo's programs. They are digits (a real one may have a point and an exponent) and
 * lie in a range: no sign, blank, hexadecimal or word is one, nor what overflows. */
#ifndef RD_NUMBER_H
#define RD_NUMBER_H

#include <stdbool.h>

/* The number with which the text begins. Returns what is behind it, or NULL if there is none of that range. */
const char *number_begins(const char *text, long least, long most, long *value);
const char *number_real_begins(const char *text, double least, double most, double *value);

/* Is the text such a number and nothing more? `value` is set on success alone, here as above. */
bool number_is(const char *text, long least, long most, int *value);
bool number_real_is(const char *text, double least, double most, double *value);

/* "64x8": nodes, each with so many ranks, of at most 2^20 ranks in all. */
bool number_shape(const char *text, int least_nodes, int *nodes, int *ranks);

#endif
