/* The scheduler of the machine of machine.h. A fiber runs until it waits, or gives way at one of its accesses to a
 * window; then it draws the next one itself and switches to that, or lets a store out of a buffer. The machine's own
 * context goes on only when a fiber ends, and when none can go on. A fiber that polls a line which has
 * not changed since it last looked sleeps until a store comes out there: so polling costs little, and "nobody can go
 * on" is seen at once. */
#include "sim/machine_int.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

using namespace machine;

static constexpr uint64_t LONG = 20000; /* steps in which fibers look, and nothing moves */
/* Seconds between looks at all awaited lines, at least: nobody counts the changes by others. */
static constexpr double LOOKS_S = 2e-4;
static constexpr double ASKS_MOST_S = 8e-3; /* it doubles up to this while nothing moves */
static constexpr uint64_t BUSY = 20000000;  /* the same, and it will be so for ever */

static std::atomic<int> beside; /* grids that run in this process */
static std::atomic<uint64_t> grid_seed{1}, grids_run{0};
static std::atomic<int> patience{120};
static __thread uint64_t trace; /* of the last queues */

/* Ranks are favoured in turns, so that some run far ahead of others. */
static grid_t *draw_grid(machine_t *m)
{
    uint32_t n = (uint32_t)m->grids.size();

    if (m->steps++ % 512 == 0) {
        m->favourite = m->draw(n);
        m->lazy = m->draw(3);
    }
    grid_t *g = m->grids[m->draw(8) ? m->favourite : m->draw(n)].get();
    for (uint32_t i = 0; i < n && g->runnable.empty(); i++)
        g = m->grids[(m->steps + i) % n].get();
    return g->runnable.empty() ? nullptr : g;
}

/* All fibers of a machine that is alone have looked for very long, and have seen nothing. */
static bool hopeless(const machine_t *m)
{
    return m->alone && m->stuck > BUSY;
}

static fiber_t *draw_fiber(machine_t *m, grid_t *g)
{
    size_t i = m->draw((uint32_t)g->runnable.size());
    fiber_t *f = g->runnable[i];

    g->runnable[i] = g->runnable.back();
    g->runnable.pop_back();
    m->trace = (m->trace ^ (uint64_t)(f - g->fibers.data())) * 0x9e3779b97f4a7c15ull;
    return f;
}

/* Steps, until one of them is that a fiber goes on: in the others stores come out. */
fiber_t *machine::next_fiber(machine_t *m)
{
    static const uint32_t odds[3] = {2, 8, 64};

    while (!hopeless(m)) {
        m->stuck = m->progress == m->moved ? m->stuck + 1 : 0;
        m->moved = m->progress;
        if (!m->holding.empty() && m->draw(odds[m->lazy]) == 0) {
            out_random(m, m->stuck > LONG);
            continue;
        }
        if (m->draw(256) == 0)
            wake_changed(m);
        grid_t *g = draw_grid(m);
        if (!g) {
            wake_changed(m);
            g = draw_grid(m);
        }
        if (g)
            return draw_fiber(m, g);
        if (m->holding.empty())
            return nullptr;
        out_random(m, true);
    }
    return nullptr;
}

/* Nobody can go on by what this machine knows. If it is alone, all fibers look once more, so that those that count
 * polls or time get on; such a round is a millisecond. Else other threads may have stored something since, which the
 * count of changes shows, and so may other processes and the host, which what the lines hold shows. False: give up. */
static bool idle(machine_t *m)
{
    if (m->progress != m->last_progress) {
        m->last_progress = m->progress;
        m->rounds = 0;
        m->since = m->looked = m->asked = now();
        m->patient = ASKS_S;
    }
    m->rounds++;
    if (m->alone) {
        m->ms++;
        wake_all(m);
        return m->rounds < 400;
    }
    if (m->rounds < 50)
        sched_yield();
    else if (beside.load() > 1)
        usleep(50);
    else
        usleep((useconds_t)(1e6 * LOOKS_S) * std::min(m->rounds - 49, 5u)); /* nothing is counted up meanwhile */
    double t = now();
    if (t - m->asked >= m->patient) {
        m->looked = m->asked = t;
        m->patient = m->patient < ASKS_MOST_S ? 2 * m->patient : m->patient;
        wake_all(m);
    } else if (t - m->looked >= LOOKS_S) {
        m->looked = t;
        wake_differing(m);
    }
    return t - m->since < patience.load();
}

/* From the machine's own context, until a fiber has ended or none can go on. False: give up. */
static bool run(machine_t *m)
{
    fiber_t *f = next_fiber(m);

    if (!f)
        return !hopeless(m) && idle(m);
    context_switch(&m->scheduler, &f->context);
    return true;
}

int rd_sim_queues(const rd_sim_launch_t *launches, int ranks, int depth, uint64_t seed, char *text, size_t size)
{
    machine_t m;
    std::vector<int> next((size_t)ranks, 0);

    m.random = seed * 0x9e3779b97f4a7c15ull + 0x1234567;
    m.alone = true;
    m.outs_seen = lines_changed();
    fault_begin();
    order_begin(ranks);
    for (int r = 0; r < ranks; r++) {
        m.grids.emplace_back(new grid_t);
        m.grids.back()->machine = &m;
        m.grids.back()->launch = nullptr;
        m.grids.back()->order.rank = r;
    }
    for (int left = ranks; left > 0;) {
        for (int r = 0; r < ranks; r++) {
            grid_t *g = m.grids[(size_t)r].get();
            if (g->live > 0 || next[(size_t)r] > depth)
                continue;
            if (g->launch)
                grid_end(g);
            if (next[(size_t)r]++ < depth)
                grid_begin(g, &launches[r * depth + next[(size_t)r] - 1]);
            else
                left--;
        }
        if (left > 0 && !run(&m)) {
            say_who_waits(&m, text, size);
            throw_away(&m);
            order_over();
            trace = m.trace;
            return -1;
        }
    }
    order_over();
    trace = m.trace;
    return 0;
}

uint64_t rd_sim_trace(void)
{
    return trace;
}

void rd_sim_read(int rank, const void *p, size_t bytes)
{
    order_read(rank, p, bytes);
}

int rd_sim_grid(const void *function, unsigned blocks, unsigned threads, size_t shared, const void *work)
{
    rd_sim_launch_t launch = {function, blocks, threads, shared, work, 0};
    machine_t m;
    char text[4096] = "";

    m.random = (grid_seed.load() + grids_run.fetch_add(1)) * 0x9e3779b97f4a7c15ull + 0x1234567;
    m.alone = false;
    m.outs_seen = lines_changed();
    if (order_told()) {
        fprintf(stderr, "the machine: nobody is told what orders grids of several threads\n");
        abort();
    }
    m.grids.emplace_back(new grid_t);
    m.grids[0]->machine = &m;
    grid_begin(m.grids[0].get(), &launch);
    fault_begin();
    beside++;
    while (m.grids[0]->live > 0)
        if (!run(&m)) {
            say_who_waits(&m, text, sizeof text);
            fprintf(stderr, "the machine: nothing moved for %d s\n%s", patience.load(), text);
            abort();
        }
    beside--;
    grid_end(m.grids[0].get());
    return 0;
}

void rd_sim_seed(uint64_t seed)
{
    grid_seed = seed;
}

void rd_sim_patience(int seconds)
{
    patience = seconds;
}
