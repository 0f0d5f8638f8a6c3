/* Switching between stacks: an own few instructions on x86-64, ucontext elsewhere. */
#ifndef TEST_SIM_FIBER_H
#define TEST_SIM_FIBER_H

#include <stddef.h>

struct context_t;

/* A context that begins with entry(argument) on that stack; `entry` never returns. */
void context_make(context_t *context, char *stack, size_t size, void (*entry)(void *), void *argument);

#if defined(__x86_64__)

struct context_t {
    void *sp;
};

extern "C" void rd_sim_switch(void **from, void *to);
extern "C" void rd_sim_first();

inline void context_switch(context_t *from, context_t *to)
{
    rd_sim_switch(&from->sp, to->sp);
}

#else

#include <ucontext.h>

struct context_t {
    ucontext_t u;
    void (*entry)(void *);
    void *argument;
};

void context_switch(context_t *from, context_t *to);

#endif

#endif
