/* The stacks of a record (RONDO_STACKS), as text: from where the calls of a process were made.
 *
 * A frame is "function+0x1c (file)", or "file+0x1234" where its function has no name: that needs the file of code,
 * which may be on a file server that does not answer. So functions are named within a time, or not at all. */
#ifndef RD_MONITOR_STACKS_H
#define RD_MONITOR_STACKS_H

#include "monitor/view.h"

#define RD_FRAME_TEXT 176

typedef struct rd_frame {
    int module;  /* of the stacks'; -1: unknown */
    uint64_t at; /* an address in its file, behind the call */
    char text[RD_FRAME_TEXT];
} rd_frame_t;

typedef struct rd_stack {
    uint64_t index; /* as events have it: plus one */
    int nframes;
    rd_frame_t frames[RD_MONITOR_FRAMES]; /* the innermost first */
} rd_stack_t;

typedef struct rd_stacks {
    int nmodules;
    char modules[RD_MONITOR_MODULES][RD_MONITOR_PATH];
    size_t n;
    rd_stack_t stacks[]; /* sorted by index */
} rd_stacks_t;

/* Reads the stacks of all processes of the view that have some, and names functions for `ms` at most; -1: for as long
 * as that takes. What a dump had from the beginning stays as it is. */
void rd_stacks_read(rd_view_t *view, int64_t ms);
/* The same of this process's own record alone. Returns NULL if it has none; else free gives it back. */
rd_stacks_t *rd_stacks_own(int64_t ms);
/* Returns the stack with that index, or NULL; `stacks` may be NULL. */
const rd_stack_t *rd_stacks_find(const rd_stacks_t *stacks, uint64_t index);
/* Returns room for `n` stacks, which free gives back; or NULL. */
rd_stacks_t *rd_stacks_make(size_t n);

#endif
