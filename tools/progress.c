/* The line is written over itself. The time left supposes that the rest takes as long, each, as what is done has. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_begin(progress_t *p, const char *program, const char *unit, int total)
{
    *p = (progress_t){.program = program, .unit = unit, .total = isatty(STDERR_FILENO) ? total : 0, .began = seconds()};
    progress_show(p);
}

void progress_show(progress_t *p)
{
    if (p->done >= p->total)
        return;
    fprintf(stderr, "\r%s: %d of %d %s", p->program, p->done, p->total, p->unit);
    if (p->done)
        fprintf(stderr, ", %d s left", (int)((seconds() - p->began) * (p->total - p->done) / p->done) + 1);
    fprintf(stderr, "\033[K");
    p->visible = true;
}

void progress_step(progress_t *p)
{
    p->done++;
    if (p->done < p->total)
        progress_show(p);
    else
        progress_clear(p);
}

void progress_clear(progress_t *p)
{
    if (p->visible)
        fprintf(stderr, "\r\033[K");
    p->visible = false;
}
