/* What a thread's calls depend on besides their arguments. In a library that has CUDA in it, the dynamic linker is
 * called whenever a thread variable is used; so these are one, and a function that asks for them several times calls
 * once, and what it calls gets them from it. */
#ifndef RD_CORE_CALLER_H
#define RD_CORE_CALLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rondo.h>

struct rd_group;

typedef struct rd_caller {
    int depth;         /* of open groups */
    bool in_hook;      /* the thread is in a hook, which must not call rondo */
    bool differs;      /* the next call cannot be like the last one: rd_caller_note */
    uint8_t forced;    /* the next call's choice of algorithm and protocol: force_next.c; 0: none of its own */
    int8_t cta_policy; /* the next call's budgets: rondo_resources_next; -1: none of its own */
    int16_t blocks;
    rondo_cuda_event_t event; /* recorded when the next call has been launched; NULL: none is */
    int64_t limit_ms;         /* the next call's time limit: limits.c; -1: none of its own */
    uint64_t tag;             /* rondo_tag; 0: none */
    struct rd_group *group;   /* what its groups record, of which one is open at a time; NULL: it has had none yet */
} rd_caller_t;

/* Returns this thread's, always the same. */
rd_caller_t *rd_caller(void) __attribute__((const));

/* To be called when anything above `tag` has changed. */
static inline void rd_caller_note(rd_caller_t *caller)
{
    caller->differs = caller->depth || caller->in_hook || caller->forced || caller->cta_policy >= 0 ||
                      caller->blocks >= 0 || caller->event || caller->limit_ms >= 0;
}

/* Returns the group that is open, where calls are recorded; NULL: there is none, and they run at once. */
static inline struct rd_group *rd_caller_group(const rd_caller_t *caller)
{
    return caller->depth ? caller->group : NULL;
}

#endif
