/* How a fiber gives way, sleeps until a line changes, or waits for others at a meeting, and how it is woken. */
#include "sim/machine_int.h"

namespace machine
{

__thread fiber_t *self;

/* To the next fiber, which may be this one. One that has ended goes to the machine, where there may be a next grid. */
static void give_way()
{
    fiber_t *f = self;
    machine_t *m = f->grid->machine;
    fiber_t *next = f->state == ENDED ? nullptr : next_fiber(m);

    if (next == f)
        return;
    context_switch(&f->context, next ? &next->context : &m->scheduler);
    self = f;
}

void wake(fiber_t *f)
{
    f->state = RUNNABLE;
    f->grid->runnable.push_back(f);
}

void pause(state_t state, const char *what)
{
    self->state = state;
    self->what = what;
    give_way();
}

void maybe_give_way()
{
    if (self->grid->machine->draw(4) == 0) {
        wake(self);
        give_way();
    }
}

void look(watch_t *watch, const void *p, size_t bytes)
{
    bool idle = true, alone = self->grid->machine->alone;

    for (size_t i = 0; i < bytes; i += LINE)
        idle = watch->note((const char *)p + i, alone) && idle;
    if (idle) {
        sleep_on(watch);
        watch->clear(); /* of what it no longer looks at, too */
        for (size_t i = 0; i < bytes; i += LINE)
            watch->note((const char *)p + i, alone);
    } else {
        maybe_give_way();
    }
}

void meeting_over(meeting_t *m)
{
    m->arrived = 0;
    m->all = true;
    m->any = false;
    m->order.turn++;
    for (fiber_t *f : m->waiting)
        wake(f);
    m->waiting.clear();
    self->grid->machine->progress++;
}

bool barrier(meeting_t *m, unsigned members, bool x, const char *what)
{
    m->all = m->all && x;
    m->any = m->any || x;
    if (++m->arrived == members)
        return true;
    m->waiting.push_back(self);
    pause(MEETING, what);
    return false;
}

} // namespace machine
