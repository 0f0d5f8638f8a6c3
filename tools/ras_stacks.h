/* What rondo-ras stacks needs of a process: what a debugger prints of its threads, and what the kernel says. */
#ifndef RAS_STACKS_H
#define RAS_STACKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A program that prints stacks. */
typedef struct stack_tool {
    const char *name;
    bool (*is_wanted)(const char *line); /* which lines of its output are shown; NULL: all */
    bool by_name;                        /* it is taken only where it is named */
} stack_tool_t;

/* Returns the tool of that name, or, of NULL, the first one that is installed; NULL: there is none. */
const stack_tool_t *stack_tool_find(const char *name);
/* All names, by commas. */
#define STACK_TOOLS "eu-stack, gdb, pstack, py-spy"

/* Has the process, whose number a record states, that record open, a file of its own user? A forged record may state
 * any number, also of a process that only root may look at. */
typedef enum stack_owner {
    STACK_ITS,
    STACK_ENDED,  /* there is no such process any more */
    STACK_HIDDEN, /* the kernel does not show what it has open, as of one that may not be dumped */
    STACK_FORGED  /* it has not: the record is another process's */
} stack_owner_t;
stack_owner_t stack_is_of(pid_t pid, uint64_t dev, uint64_t ino);

/* Why no debugger may look at a process, and what can be done; NULL: one may. */
const char *stack_refused(pid_t pid);

/* Prints what the tool says of a process, which stands still as long as the tool needs, and goes on in any case.
 * Returns false, and says why, if that has no frames. */
bool stack_by_tool(const stack_tool_t *tool, pid_t pid, double seconds);

/* Prints what /proc says of each thread. Returns false if it says nothing. */
bool stack_by_proc(pid_t pid);

#endif
