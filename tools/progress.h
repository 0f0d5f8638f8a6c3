/* How much of a long run is done and how long the rest will take: a line on standard error if that is a terminal, and
 * nothing in a pipe or a file. rondo-perf, rondo-tune and rondo-info doctor show it. */
#ifndef RD_PROGRESS_H
#define RD_PROGRESS_H

#include <stdbool.h>

typedef struct progress {
    const char *program, *unit; /* "rondo-tune", "measurements" */
    int total, done;
    double began; /* seconds */
    bool visible; /* the line stands on the terminal now */
} progress_t;

void progress_begin(progress_t *p, const char *program, const char *unit, int total);
void progress_show(progress_t *p);
/* One more is done; the line goes away behind the last one. */
void progress_step(progress_t *p);
/* Takes the line away: before anything else is printed. */
void progress_clear(progress_t *p);

#endif
