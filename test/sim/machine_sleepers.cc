/* Fibers that sleep until a line changes. A table has those who wait for a place (machine_lines.h), so that a change
 * costs as much as it has waiters, and a store that nobody waits for costs nothing. */
#include "sim/machine_int.h"

namespace machine
{

static void link(machine_t *m, link_t *l, uint16_t place)
{
    l->place = place;
    l->from = &m->awaited[place % AWAITED];
    l->next = *l->from;
    if (l->next)
        l->next->from = &l->next;
    *l->from = l;
}

static void unlink(link_t *l)
{
    *l->from = l->next;
    if (l->next)
        l->next->from = l->from;
}

/* Until one of the lines of `watch` changes. One that has changed since `watch` noted it may have been counted before
 * the fiber stands in the table, so then it does not sleep. */
void sleep_on(watch_t *watch)
{
    fiber_t *f = self;

    if (watch->changed()) {
        maybe_give_way();
        return;
    }
    for (unsigned i = 0; i < watch->count; i++) {
        watch->links[i].fiber = f;
        link(f->grid->machine, &watch->links[i], place_of(watch->seen[i].at));
    }
    f->sleeps_on = watch;
    f->sleeper = (unsigned)f->grid->asleep.size();
    f->grid->asleep.push_back(f);
    pause(ASLEEP, "a line");
}

static void wake_sleeper(fiber_t *f)
{
    std::vector<fiber_t *> &asleep = f->grid->asleep;

    for (unsigned i = 0; i < f->sleeps_on->count; i++)
        unlink(&f->sleeps_on->links[i]);
    asleep[f->sleeper] = asleep.back();
    asleep[f->sleeper]->sleeper = f->sleeper;
    asleep.pop_back();
    wake(f);
}

/* Those of `place` whose lines have changed are called, and wake later: their links stay as they are meanwhile. Others
 * that stand in the same part of the table have a change of their own to come: which ones those are depends on
 * addresses, and the order in which fibers wake must not. */
static void call(machine_t *m, uint16_t place)
{
    for (link_t *l = m->awaited[place % AWAITED]; l; l = l->next)
        if (l->place == place && l->fiber->state == ASLEEP && l->fiber->sleeps_on->changed()) {
            l->fiber->state = CALLED;
            m->called.push_back(l->fiber);
        }
}

static void call_all(machine_t *m)
{
    for (auto &g : m->grids)
        for (fiber_t *f : g->asleep)
            if (f->sleeps_on->changed())
                m->called.push_back(f);
}

void wake_changed(machine_t *m)
{
    uint64_t seen = lines_changed();
    uint16_t place;

    for (; m->outs_seen < seen && change_of(m->outs_seen + 1, &place); m->outs_seen++)
        call(m, place);
    if (m->outs_seen < seen) {
        for (fiber_t *f : m->called)
            f->state = ASLEEP;
        m->called.clear();
        m->outs_seen = seen;
        call_all(m);
    }
    for (fiber_t *f : m->called)
        wake_sleeper(f);
    m->called.clear();
}

void wake_differing(machine_t *m)
{
    for (auto &g : m->grids)
        for (fiber_t *f : g->asleep)
            if (f->sleeps_on->differs())
                m->called.push_back(f);
    for (fiber_t *f : m->called)
        wake_sleeper(f);
    m->called.clear();
}

void wake_all(machine_t *m)
{
    for (auto &g : m->grids)
        while (!g->asleep.empty())
            wake_sleeper(g->asleep.back());
}

} // namespace machine
