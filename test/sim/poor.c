/* Host memory that runs out: from the k-th request on that this thread makes, it gets none, until it is told so no
 * more. Linked with --wrap. */
#include <errno.h>
#include <stddef.h>

#include "sim/poor.h"

static _Thread_local long left; /* requests until then; 0: there is no end */
static _Thread_local int refused;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t each);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t each);
void *__wrap_realloc(void *memory, size_t bytes);

void sim_poor(long k)
{
    left = k;
    refused = 0;
}

int sim_poor_end(void)
{
    left = 0;
    return refused;
}

long sim_poor_pause(void)
{
    long paused = left;

    left = 0;
    return paused;
}

void sim_poor_go_on(long paused)
{
    left = paused;
}

static int refuses(void)
{
    if (left == 0 || (left > 1 && left--))
        return 0;
    refused++;
    errno = ENOMEM;
    return 1;
}

void *__wrap_malloc(size_t bytes)
{
    return refuses() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t each)
{
    return refuses() ? NULL : __real_calloc(n, each);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return refuses() ? NULL : __real_realloc(memory, bytes);
}
