#include "sim/fiber.h"

#include <stdint.h>

#if defined(__x86_64__)

/* The registers that a call keeps, and the stack. The first switch to a context returns into rd_sim_first, which calls
 * rbx with r12. */
asm(".text\n"
    ".globl rd_sim_switch\n"
    ".type rd_sim_switch, @function\n"
    "rd_sim_switch:\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n"
    ".size rd_sim_switch, . - rd_sim_switch\n"
    ".globl rd_sim_first\n"
    ".type rd_sim_first, @function\n"
    "rd_sim_first:\n"
    "    movq %r12, %rdi\n"
    "    callq *%rbx\n"
    "    ud2\n"
    ".size rd_sim_first, . - rd_sim_first\n"
    ".section .note.GNU-stack,\"\",@progbits\n"
    ".text\n");

void context_make(context_t *context, char *stack, size_t size, void (*entry)(void *), void *argument)
{
    void **top = (void **)(stack + size); /* 16-byte aligned; rd_sim_first's call pushes eight bytes more */

    *--top = nullptr;
    *--top = nullptr;
    *--top = (void *)rd_sim_first;
    *--top = nullptr; /* rbp */
    *--top = (void *)entry;
    *--top = argument; /* r12 */
    for (int i = 0; i < 3; i++)
        *--top = nullptr;
    context->sp = top;
}

#else

static void first(unsigned high, unsigned low)
{
    context_t *c = (context_t *)((uintptr_t)high << 16 << 16 | low);

    c->entry(c->argument);
}

void context_make(context_t *context, char *stack, size_t size, void (*entry)(void *), void *argument)
{
    uintptr_t p = (uintptr_t)context;

    getcontext(&context->u);
    context->u.uc_stack.ss_sp = stack;
    context->u.uc_stack.ss_size = size;
    context->u.uc_link = nullptr;
    context->entry = entry;
    context->argument = argument;
    makecontext(&context->u, (void (*)())first, 2, (unsigned)(p >> 16 >> 16), (unsigned)p);
}

void context_switch(context_t *from, context_t *to)
{
    swapcontext(&from->u, &to->u);
}

#endif
