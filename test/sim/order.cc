/* See order.h. */
#include "sim/order.h"

#include <sanitizer/tsan_interface.h>
#include <stdio.h>

#include <array>
#include <map>
#include <unordered_map>

/* Of dynamic annotations, which ThreadSanitizer understands and no header names. */
extern "C" {
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
}

namespace
{

constexpr unsigned ORDERS_NOTHING = 1; /* a switch to another thread: __tsan_switch_to_fiber_no_sync */

void *machine;
std::vector<void *> hosts;
uint64_t numbers;
std::unordered_map<const char *, void *> threads;           /* of stacks */
std::unordered_map<uintptr_t, std::array<mark_t, 4>> borne; /* by the words of 16 bytes */
typedef std::map<uint64_t, mark_t> lasts_t;       /* each thread's last mark */
std::map<const void *, lasts_t> counted, added; /* where many have counted, and have added to a word */

void go_on(void *thread)
{
    __tsan_switch_to_fiber(thread, ORDERS_NOTHING);
}

mark_t mark_new(uint64_t by)
{
    mark_t m = std::make_shared<stamp_t>();

    m->by = by;
    m->number = ++numbers;
    return m;
}

void see(order_t *o, const mark_t &m)
{
    if (!m || m->by == o->number)
        return;
    for (mark_t &s : o->seen)
        if (s->by == m->by) {
            s = m->number > s->number ? m : s;
            return;
        }
    o->seen.push_back(m);
}

void take(const mark_t &m)
{
    if (m)
        __tsan_acquire(&m->time);
}

/* The machine knows what that thread has done. */
void hear(void *thread)
{
    static uint64_t time;

    go_on(thread);
    __tsan_release(&time);
    go_on(machine);
    __tsan_acquire(&time);
}

} // namespace

bool order_told()
{
    return true;
}

void order_begin(int ranks)
{
    machine = __tsan_get_current_fiber();
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__); /* memcpy and the like are seen, whoever calls them */
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    for (void *h : hosts)
        __tsan_destroy_fiber(h);
    hosts.clear();
    for (int r = 0; r < ranks; r++) {
        char name[32];
        snprintf(name, sizeof name, "host of rank %d", r);
        hosts.push_back(__tsan_create_fiber(0));
        __tsan_set_fiber_name(hosts.back(), name);
    }
}

void order_over()
{
    borne.clear();
    counted.clear();
    added.clear();
    for (void *h : hosts)
        hear(h);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
}

void order_grid_begin(order_grid_t *g)
{
    g->before = g->end;
    g->begin = mark_new(++numbers);
    g->end = mark_new(++numbers);
    __tsan_release(&g->begin->time);
}

void order_grid_over(const order_grid_t &g)
{
    go_on(hosts[(size_t)g.rank]);
    take(g.end);
    go_on(machine);
}

/* To ThreadSanitizer each stack is a thread, which goes on with the rank's next kernel: a new one each time would be
 * cleaner, and ten times as slow. What it knows of the kernel before is little, and known from gpu_begin on anyway. */
void order_thread_begin(order_t *o, const order_grid_t &g, const char *stack, unsigned block, unsigned thread)
{
    void *&known = threads[stack];
    char name[64];

    if (!known)
        known = __tsan_create_fiber(0);
    snprintf(name, sizeof name, "rank %d, block %u, thread %u", g.rank, block, thread);
    __tsan_set_fiber_name(known, name);
    o->thread = known;
    o->number = ++numbers;
}

void order_thread_run(const order_grid_t &g)
{
    __tsan_acquire(&g.begin->time);
}

void order_thread_lost(const order_t &o)
{
    hear(o.thread);
}

void order_machine()
{
    go_on(machine);
}

void order_read(int rank, const void *p, size_t bytes)
{
    go_on(hosts[(size_t)rank]);
    touch_all(p, bytes);
    hear(hosts[(size_t)rank]);
}

void order_stored(const mark_t &mark, const void *p, size_t bytes)
{
    std::array<mark_t, 4> &marks = borne[(uintptr_t)p / 16];

    for (size_t i = (uintptr_t)p % 16 / 4, n = bytes / 4; n > 0; i++, n--)
        marks[i] = mark;
}

void order_added(const mark_t &mark, const void *p)
{
    if (mark)
        added[p][mark->by] = mark;
}

void order_saw(order_t *o, const void *p, size_t bytes)
{
    auto found = borne.find((uintptr_t)p / 16);
    auto sum = added.find(p);

    if (sum != added.end())
        for (auto &m : sum->second)
            see(o, m.second);

    if (found != borne.end())
        for (size_t i = (uintptr_t)p % 16 / 4, n = bytes / 4; n > 0; i++, n--)
            see(o, found->second[i]);
}

void order_count(order_t *o, const void *p)
{
    auto &all = counted[p];

    for (auto &m : all)
        see(o, m.second);
    if (o->last)
        all[o->last->by] = o->last;
}

void order_go_on(const order_t &o)
{
    go_on(o.thread);
}

/* All that the kernel before has written is seen by everybody then, as behind a fence. */
void order_kernel_begin(order_t *o, const order_grid_t &g)
{
    take(g.before);
    o->last = g.before;
}

void order_kernel_end(const order_grid_t &g)
{
    __tsan_release(&g.end->time);
}

void order_take(order_t *o)
{
    for (const mark_t &m : o->seen)
        take(m);
    inside_t inside(*o);
    o->seen.clear();
}

const mark_t &order_mark(order_t *o, bool now)
{
    if (!now)
        return o->last;
    {
        inside_t inside(*o);
        o->now = mark_new(o->number);
    }
    __tsan_release(&o->now->time);
    return o->now;
}

void order_fence(order_t *o)
{
    order_take(o);
    const mark_t &mark = order_mark(o, true);
    inside_t inside(*o);
    o->last = mark;
}

void order_take_word(const void *p)
{
    auto found = borne.find((uintptr_t)p / 16);
    auto sum = added.find(p);

    if (sum != added.end())
        for (auto &m : sum->second)
            take(m.second);

    if (found != borne.end())
        take(found->second[(uintptr_t)p % 16 / 4]);
}

uint64_t *order_arrive(order_meeting_t *m)
{
    uint64_t *time = &m->time[m->turn % 2];

    __tsan_release(time);
    return time;
}

void order_leave(uint64_t *time)
{
    __tsan_acquire(time);
}
