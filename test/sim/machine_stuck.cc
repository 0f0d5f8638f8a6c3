/* The report when nobody can go on: which lane waits for what. */
#include "sim/machine_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/work.h"

namespace machine
{

struct text_t {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) static void say(text_t *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int n = vsnprintf(t->at, t->left, format, args);
    va_end(args);
    if (n > 0 && (size_t)n < t->left) {
        t->at += n;
        t->left -= (size_t)n;
    }
}

static void say_place(text_t *t, const rd_kwork_t *w, const char *p)
{
    for (int r = 0; r < w->comm.nranks && r < RD_KRANKS; r++) {
        const char *base = w->comm.window[r];
        size_t bank = (size_t)w->comm.bank_offset * RD_KALIGN, fifo = (size_t)w->comm.fifo_offset * RD_KALIGN;
        if (!base || p < base || p >= base + bank + 2 * (size_t)w->comm.bank_bytes)
            continue;
        size_t at = (size_t)(p - base);
        if (at >= bank)
            say(t, " [rank %d bank %zu + %zu = %x %x]", r, (at - bank) / w->comm.bank_bytes,
                (at - bank) % w->comm.bank_bytes, *(const uint32_t *)p, *(const uint32_t *)(p + LINE - 4 - at % LINE));
        else if (at >= fifo)
            say(t, " [rank %d fifos + %zu]", r, at - fifo);
        else
            say(t, " [rank %d control + %zu = %u]", r, at, *(const uint32_t *)p);
        return;
    }
    say(t, " [%p]", (const void *)p);
}

void say_who_waits(machine_t *m, char *text, size_t size)
{
    text_t out = {text, size}, *t = &out;

    for (auto &g : m->grids) {
        const fiber_t *last = nullptr;
        for (fiber_t &f : g->fibers) {
            if (f.state == ENDED || (last && last->warp == f.warp && !strcmp(last->what, f.what)))
                continue; /* one lane speaks for those beside it */
            last = &f;
            const rd_kwork_t *w = (const rd_kwork_t *)g->launch->work;
            say(t, "rank %d, block %u, warp %u, lane %u waits for %s", w->comm.rank, f.block_index, f.thread / LANES,
                f.lane, f.what);
            for (unsigned i = 0; f.sleeps_on && !strcmp(f.what, "a line") && i < f.sleeps_on->count; i++)
                say_place(t, w, f.sleeps_on->seen[i].at);
            say(t, "\n");
        }
    }
}

} // namespace machine
