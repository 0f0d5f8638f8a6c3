/* Values of which a process keeps one of each for as long as it lives, so that a number stands for it. There is no
 * lock, which another thread might hold when the process is forked: the table only grows, and an entry stays as it is.
 */
#ifndef RD_BASE_INTERN_H
#define RD_BASE_INTERN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rd_intern {
    bool (*same)(const void *a, const void *b);
    size_t bytes; /* of a value */
    int most;     /* entries */
    _Atomic(void *) *table;
} rd_intern_t;

/* Returns the number, from 0 on, of a value that is the same as this one, of which a copy is kept if it is the first.
 * -1: the table is full, or there is no memory. */
int rd_intern(const rd_intern_t *intern, const void *value);
const void *rd_interned(const rd_intern_t *intern, int number);

#endif
