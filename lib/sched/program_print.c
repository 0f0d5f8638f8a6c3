/* Prints a program as text, for RONDO_DEBUG=plan and rondo-info. Each step is a line, with its destinations first:
 *
 *     out 3, peer 1 <- in 3 + peer 2      x 6, stride 7
 */
#include <stdarg.h>
#include <stdio.h>

#include "sched/list.h"

typedef struct text {
    char bytes[512];
    size_t length;
} text_t;

static void add(text_t *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(text_t *t, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(t->bytes + t->length, sizeof(t->bytes) - t->length, format, args);
    va_end(args);
    if (n > 0)
        t->length += (size_t)n;
    if (t->length >= sizeof(t->bytes))
        t->length = sizeof(t->bytes) - 1;
}

static void add_end(text_t *t, const rd_link_t *links, rd_end_t end)
{
    static const char *const names[] = {[RD_IN] = "in", [RD_OUT] = "out", [RD_TMP] = "tmp"};

    if (end.where == RD_PEER)
        add(t, "peer %d", links[end.index].peer);
    else
        add(t, "%s %d", names[end.where], end.index);
}

static void add_step(text_t *t, const rd_program_t *p, const rd_step_t *step)
{
    for (int k = 0; k < step->ndst; k++) {
        add(t, k > 0 ? ", " : "    ");
        add_end(t, p->sends, step->dst[k]);
    }
    for (int k = 0; k < step->nsrc; k++) {
        add(t, k > 0 ? " + " : " <- ");
        add_end(t, p->recvs, step->src[k]);
    }
    if (step->repeat > 1)
        add(t, "      x %d, stride %d", step->repeat, step->stride);
}

void rd_program_print(const rd_program_t *p, int rank, void (*line)(void *arg, const char *text), void *arg)
{
    text_t t;

    t.length = 0;
    add(&t, "rank %d: chunks %d, scratch %d, lanes %d, steps %d, sends to %d, receives from %d", rank, p->nchunks,
        p->ntmp, p->nlanes, p->nsteps, p->nsends, p->nrecvs);
    line(arg, t.bytes);
    for (int l = 0; l < p->nlanes; l++) {
        t.length = 0;
        add(&t, "  lane %d, channel %d", l, p->lanes[l].channel);
        line(arg, t.bytes);
        for (int i = p->lanes[l].first; i < p->lanes[l].first + p->lanes[l].count; i++) {
            t.length = 0;
            add_step(&t, p, &p->steps[i]);
            line(arg, t.bytes);
        }
    }
}
