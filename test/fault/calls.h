/* The calls by which librondo asks the system for something: counted while they are armed, and one of them fails, or
 * all from one on. The linker hands them over (--wrap, see Makefile.am's kth). */
#ifndef TEST_CALLS_H
#define TEST_CALLS_H

#include <stdatomic.h>

#define CALLS_NAME 32

typedef struct calls {
    int show_where;            /* the stack of the call that fails, for addr2line */
    const char *counted;       /* the only ones; NULL: all */
    _Atomic int armed;         /* in this process, now */
    _Atomic long asked;        /* calls while armed */
    _Atomic long fail_at;      /* 0: none */
    _Atomic int fail_on;       /* all that follow fail too */
    _Atomic long live, mapped; /* allocations and mappings of librondo that exist */
    char *failed;              /* room for its name */
} calls_t;
extern calls_t calls;

#endif
