/* See intern.h. */
#include "base/intern.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

const void *rd_interned(const rd_intern_t *intern, int number)
{
    return atomic_load_explicit(&intern->table[number], memory_order_acquire);
}

static void *copy_of(const void *value, size_t bytes)
{
    void *copy = malloc(bytes);

    return copy ? memcpy(copy, value, bytes) : NULL;
}

/* A thread that finds its entry taken by another one looks at what that is. */
int rd_intern(const rd_intern_t *intern, const void *value)
{
    void *copy = NULL;

    for (int i = 0; i < intern->most; i++) {
        void *there = atomic_load_explicit(&intern->table[i], memory_order_acquire);

        if (!there && !copy && !(copy = copy_of(value, intern->bytes)))
            return -1;
        if (!there && atomic_compare_exchange_strong(&intern->table[i], &there, copy))
            return i;
        if (intern->same(there, value)) {
            free(copy);
            return i;
        }
    }
    free(copy);
    return -1;
}
