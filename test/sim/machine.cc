/* The machine of machine.h. A fiber runs until it waits, or gives way at one of its accesses to a window; then the
 * scheduler draws the next one, or lets a store out of a buffer. A fiber that polls a line which has not changed since
 * it last looked sleeps until a store comes out there: so polling costs little, and "nobody can go on" is seen at once.
 */
#include "sim/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/fiber.h"
#include "gpu.cuh"
#include "sim/order.h"
#include "kernels/work.h"

namespace
{

const size_t STACK = order_told() ? 512 << 10 : 48 << 10; /* reports take room */
constexpr size_t LINE = 128;
constexpr unsigned LANES = 32;
constexpr unsigned WATCHED = 32;    /* lines: no less than a warp polls at once */
constexpr uint64_t LONG = 20000;    /* steps in which nothing has moved, though somebody looks and looks */
constexpr double LOOKS_S = 1e-3;    /* between looks by all: for what is not counted */
constexpr uint64_t BUSY = 20000000; /* the same: for ever */

double now()
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct fiber_t;
struct grid_t;

/* ---- which lines have changed */

/* Counted up when a store comes out: by a hash of the line, so two lines may share a count. */
std::atomic<uint32_t> changes[1 << 16];
std::atomic<uint64_t> outs; /* all of them */
std::atomic<int> beside;    /* grids that run in this process */
/* The last ones: the number of each, from 1 on, above the place in `changes` that was counted up. */
constexpr unsigned RECENT = 512;
std::atomic<uint64_t> recent[RECENT];

uint16_t place_of(const void *p)
{
    uintptr_t line = (uintptr_t)p / LINE;
    return (uint16_t)(line ^ line >> 16);
}

std::atomic<uint32_t> &changes_of(const void *p)
{
    return changes[place_of(p)];
}

/* A set of places, or of more than these: whoever looks for one line among many changes need not go to each. */
struct places_t {
    bool in[4096];

    /* What came out behind number `from`, up to `to`. False: too much, or somebody is just about to write it down. */
    bool gather(uint64_t from, uint64_t to)
    {
        if (to - from > RECENT)
            return false;
        memset(in, 0, sizeof in);
        for (uint64_t n = from + 1; n <= to; n++) {
            uint64_t r = recent[n % RECENT].load(std::memory_order_acquire);
            if (r >> 16 != n)
                return false;
            in[r % sizeof in] = true;
        }
        return true;
    }

    bool has(uint16_t place) const
    {
        return in[place % sizeof in];
    }
};

/* The lines that somebody who polls has looked at last, and how often they had changed by then. `news` counts looks
 * that found something new: who looks at an unchanged line again, with no news since he did so last, has seen all there
 * is. */
struct watch_t {
    struct seen_t {
        const char *at;
        uint32_t changes;
        unsigned news;
    } seen[WATCHED];
    unsigned count = 0, next = 0, news = 0;

    /* Not of what `seen` has beyond the count. */
    watch_t()
    {
    }

    void clear()
    {
        count = next = 0;
        news++;
    }

    /* True: nothing new at `p`, nor anywhere since. */
    bool note(const char *p)
    {
        uint32_t now = changes_of(p).load(std::memory_order_acquire);

        for (unsigned i = 0; i < count; i++) {
            seen_t *s = &seen[i];
            if ((uintptr_t)s->at / LINE != (uintptr_t)p / LINE)
                continue;
            bool idle = s->changes == now && s->news == news;
            news += s->changes != now;
            s->changes = now;
            s->news = news;
            return idle;
        }
        news++;
        seen[next] = {p, now, news};
        next = (next + 1) % WATCHED;
        if (count < WATCHED)
            count++;
        return false;
    }

    bool changed() const
    {
        for (unsigned i = 0; i < count; i++)
            if (changes_of(seen[i].at).load(std::memory_order_acquire) != seen[i].changes)
                return true;
        return false;
    }
};

/* ---- who there is */

struct store_t {
    char *at;
    uint32_t bytes; /* 4, 8, or 128: a line */
    bool late;      /* comes out when nothing else can be done, or nothing else has moved for long */
    uint64_t data[LINE / 8];
};

struct meeting_t { /* of the lanes of a warp, or the threads of a barrier */
    unsigned arrived = 0;
    bool all = true, any = false;
    std::vector<fiber_t *> waiting;
    order_meeting_t order;
};

struct warp_t {
    meeting_t meeting;
    watch_t liveness;
    char *at[LANES];
    uint4 value[LANES];
    const mark_t *mark[LANES];
    bool result;
};

struct barrier_t {
    meeting_t meeting;
    bool result;
};

struct block_t {
    barrier_t barrier[16];
    std::unique_ptr<uint4[]> shared;
    std::vector<uint4> fixed;
    std::vector<warp_t> warps;
};

enum state_t { RUNNABLE, MEETING, ASLEEP, ENDED };

struct fiber_t {
    context_t context;
    char *stack;
    grid_t *grid;
    block_t *block;
    warp_t *warp;
    unsigned thread, block_index, lane;
    state_t state;
    const char *what; /* it waits for */
    watch_t liveness;
    watch_t *sleeps_on;
    std::vector<store_t> buffer;
    bool listed; /* among those with a buffer that is not empty */
    unsigned fences = 0;
    order_t order;

    /* grid_begin sets the rest. */
    fiber_t()
    {
    }
};

/* One that is asleep, with the places of the lines for which it waits: most of the time none of them has changed, which
 * is seen without going to the fiber. None: it must be asked. */
struct sleeper_t {
    fiber_t *fiber;
    uint16_t count, places[7];

    explicit sleeper_t(fiber_t *f);
    bool wakes(const places_t *changed) const; /* null: anything may have */
};

struct machine_t;

struct grid_t {
    const rd_sim_launch_t *launch;
    machine_t *machine;
    std::vector<block_t> blocks;
    std::vector<fiber_t> fibers;
    std::vector<fiber_t *> runnable;
    std::vector<sleeper_t> asleep;
    std::vector<char *> stacks; /* that nobody uses */
    unsigned live = 0;
    order_grid_t order;

    ~grid_t();
};

struct machine_t {
    context_t scheduler;
    std::vector<std::unique_ptr<grid_t>> grids; /* one for each rank */
    std::vector<fiber_t *> holding;             /* fibers whose buffers are not empty */
    uint64_t random;
    uint64_t progress = 0; /* anything but looking */
    uint64_t last_progress = 0, outs_seen = 0;
    uint64_t moved = 0, stuck = 0; /* the progress at the last step, the steps since it changed */
    uint32_t clock = 0;
    uint32_t rounds = 0, ms = 1; /* idle ones: since the last progress, in all */
    double since = now(), looked = 0;
    unsigned favourite = 0, steps = 0, lazy = 0;
    bool alone; /* no other thread or process takes part */

    uint32_t draw(uint32_t below)
    {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return (uint32_t)((random * 0x2545f4914f6cdd1dull >> 32) % below);
    }
};

/* For whole programs: SIM_PLANT in the environment. */
rd_sim_fault_t planted()
{
    static const struct {
        const char *name;
        rd_sim_fault_t fault;
    } all[] = {{"fence", RD_SIM_NO_FENCE},
               {"acquire", RD_SIM_NO_ACQUIRE},
               {"barrier", RD_SIM_NO_BARRIER},
               {"begin", RD_SIM_NO_BEGIN},
               {"follow", RD_SIM_NO_FOLLOW}};
    const char *name = getenv("SIM_PLANT");

    for (auto &a : all)
        if (name && !strcmp(name, a.name))
            return a.fault;
    if (!name)
        return RD_SIM_SOUND;
    fprintf(stderr, "SIM_PLANT=%s: there are fence, acquire, barrier, begin and follow\n", name);
    exit(2);
}

thread_local fiber_t *self;
std::mutex stacks_lock; /* one pool: threads come and go */
std::vector<char *> spare;
std::vector<std::vector<fiber_t>> spare_fibers; /* of grids that have ended: megabytes, which are not cleared anew */
thread_local rd_sim_fault_t fault = planted();
thread_local const char *fault_from, *fault_to;
std::atomic<uint64_t> grid_seed{1}, grids_run{0};
std::atomic<int> patience{120};
const bool in_order = order_told() || getenv("SIM_IN_ORDER") != nullptr;

grid_t::~grid_t()
{
    std::lock_guard<std::mutex> lock(stacks_lock);
    spare.insert(spare.end(), stacks.begin(), stacks.end());
}

/* A grid keeps the stacks that its rank has had before: who looks on (order.h) takes them for threads. */
char *stack_get(grid_t *g)
{
    if (g->stacks.empty()) {
        std::lock_guard<std::mutex> lock(stacks_lock);
        if (!spare.empty()) {
            g->stacks.push_back(spare.back());
            spare.pop_back();
        }
    }
    if (!g->stacks.empty()) {
        char *s = g->stacks.back();
        g->stacks.pop_back();
        return s;
    }
    void *p = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        perror("the machine needs a stack for each CUDA thread");
        abort();
    }
    *(uint64_t *)p = 0x5afe5afe5afe5afe;
    return (char *)p;
}

void stack_put(grid_t *g, char *s)
{
    if (*(uint64_t *)s != 0x5afe5afe5afe5afe) {
        fprintf(stderr, "the machine: a fiber's stack of %zu bytes was too small\n", STACK);
        abort();
    }
    g->stacks.push_back(s);
}

/* ---- stores that are under way */

void came_out(machine_t *m, const void *at)
{
    uint16_t place = place_of(at);

    changes[place].fetch_add(1, std::memory_order_release);
    uint64_t number = outs.fetch_add(1, std::memory_order_release) + 1;
    recent[number % RECENT].store(number << 16 | place, std::memory_order_release);
    m->progress++;
}

void out(machine_t *m, const store_t &s)
{
    if (s.bytes == 4) {
        __atomic_store_n((uint32_t *)s.at, (uint32_t)s.data[0], __ATOMIC_RELEASE);
    } else {
        /* A line's flag is its last word: whoever sees it sees the rest. Readers look at it first. */
        for (unsigned i = 0; i < s.bytes / 8; i++)
            __atomic_store_n((uint64_t *)s.at + i, s.data[i], __ATOMIC_RELEASE);
    }
    came_out(m, s.at);
}

void unlist(machine_t *m, fiber_t *f)
{
    for (auto &h : m->holding)
        if (h == f) {
            h = m->holding.back();
            m->holding.pop_back();
            f->listed = false;
            return;
        }
}

bool overlap(const store_t &s, const char *at, size_t bytes)
{
    return s.at < at + bytes && at < s.at + s.bytes;
}

/* Entry i comes out, and before it what the fiber has stored to the same place earlier. */
void out_of_buffer(fiber_t *f, size_t i)
{
    store_t s = f->buffer[i];

    for (size_t j = 0; j < i; j++)
        if (overlap(f->buffer[j], s.at, s.bytes)) {
            s = f->buffer[j];
            i = j;
            break;
        }
    f->buffer.erase(f->buffer.begin() + (long)i);
    out(f->grid->machine, s);
    if (f->buffer.empty())
        unlist(f->grid->machine, f);
}

void out_all(fiber_t *f)
{
    while (!f->buffer.empty())
        out_of_buffer(f, 0);
}

void out_overlapping(fiber_t *f, const char *at, size_t bytes)
{
    for (size_t i = 0; i < f->buffer.size();)
        if (overlap(f->buffer[i], at, bytes)) {
            out_of_buffer(f, i);
            i = 0;
        } else {
            i++;
        }
}

void out_random(machine_t *m, bool forced)
{
    fiber_t *f = nullptr;
    uint32_t i = 0;

    for (int tries = 0; tries < (forced ? 8 : 1); tries++) {
        f = m->holding[m->draw((uint32_t)m->holding.size())];
        i = m->draw((uint32_t)f->buffer.size());
        if (!f->buffer[i].late)
            break;
    }
    if (forced || !f->buffer[i].late)
        out_of_buffer(f, i);
}

void push(fiber_t *f, char *at, uint32_t bytes, const void *data)
{
    store_t s;

    s.at = at;
    s.bytes = bytes;
    s.late = f->grid->machine->draw(8) == 0;
    memcpy(s.data, data, bytes);
    if (in_order) {
        out(f->grid->machine, s);
        return;
    }
    f->buffer.push_back(s);
    if (!f->listed) {
        f->grid->machine->holding.push_back(f);
        f->listed = true;
    }
}

/* ---- going on and giving way */

void give_way()
{
    fiber_t *f = self;

    context_switch(&f->context, &f->grid->machine->scheduler);
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

/* Before `bytes` at `p` are read: sleeps if all that there is to see has been seen. */
void look(watch_t *liveness, const void *p, size_t bytes)
{
    bool idle = true;

    for (size_t i = 0; i < bytes; i += LINE)
        idle = liveness->note((const char *)p + i) && idle;
    if (idle) {
        self->sleeps_on = liveness;
        self->grid->asleep.emplace_back(self);
        pause(ASLEEP, "a line");
        liveness->clear(); /* of what it no longer looks at, too */
        for (size_t i = 0; i < bytes; i += LINE)
            liveness->note((const char *)p + i);
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

/* True for the last one, who does what there is to do and then calls meeting_over. */
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

void run_fiber(void *argument)
{
    fiber_t *f = (fiber_t *)argument;
    typedef void (*kernel_t)(const rd_kwork_t &);

    self = f;
    order_go_on(f->order);
    order_thread_run(f->grid->order);
    ((kernel_t)f->grid->launch->function)(*(const rd_kwork_t *)f->grid->launch->work);
    order_kernel_end(f->grid->order);
    order_machine();
    f->grid->live--;
    f->grid->machine->progress++;
    pause(ENDED, "nothing");
    abort();
}

/* ---- those who sleep */

sleeper_t::sleeper_t(fiber_t *f) : fiber(f), count(0)
{
    const watch_t *w = f->sleeps_on;

    /* What has changed before it sleeps may have been gathered already. */
    if (w->count > sizeof places / sizeof *places || w->changed())
        return;
    for (; count < w->count; count++)
        places[count] = place_of(w->seen[count].at);
}

bool sleeper_t::wakes(const places_t *changed) const
{
    bool may = !changed || count == 0;

    for (unsigned i = 0; i < count && !may; i++)
        may = changed->has(places[i]);
    return may && fiber->sleeps_on->changed();
}

/* ---- grids */

std::vector<fiber_t> fibers_get(unsigned n)
{
    std::vector<fiber_t> fibers;
    {
        std::lock_guard<std::mutex> lock(stacks_lock);
        if (!spare_fibers.empty()) {
            fibers = std::move(spare_fibers.back());
            spare_fibers.pop_back();
        }
    }
    if (fibers.capacity() < n)
        return std::vector<fiber_t>(n);
    fibers.resize(n);
    return fibers;
}

void fibers_put(std::vector<fiber_t> &fibers)
{
    std::lock_guard<std::mutex> lock(stacks_lock);
    spare_fibers.push_back(std::move(fibers));
    fibers.clear();
}

void grid_begin(grid_t *g, const rd_sim_launch_t *launch)
{
    unsigned n = launch->blocks * launch->threads;

    g->launch = launch;
    g->live = n;
    g->blocks = std::vector<block_t>(launch->blocks);
    g->fibers = fibers_get(n);
    for (block_t &b : g->blocks) {
        size_t units = launch->shared / sizeof(uint4) + 1;
        b.shared.reset(new uint4[units]);
        memset((void *)b.shared.get(), 0xa5, units * sizeof(uint4));
        b.warps = std::vector<warp_t>((launch->threads + LANES - 1) / LANES);
    }
    order_grid_begin(&g->order);
    for (unsigned i = 0; i < n; i++) {
        fiber_t *f = &g->fibers[i];
        f->grid = g;
        f->block_index = i / launch->threads;
        f->thread = i % launch->threads;
        f->lane = f->thread % LANES;
        f->block = &g->blocks[f->block_index];
        f->warp = &f->block->warps[f->thread / LANES];
        f->listed = false;
        f->fences = 0;
        f->liveness.count = f->liveness.next = f->liveness.news = 0;
        f->what = "its turn";
        f->sleeps_on = nullptr;
        f->stack = stack_get(g);
        /* Tops at different offsets: at the same one they would all fall into the same few sets of the cache. */
        context_make(&f->context, f->stack, STACK - i % 61 * 64, run_fiber, f);
        order_thread_begin(&f->order, g->order, f->stack, f->block_index, f->thread);
        wake(f);
    }
}

void grid_end(grid_t *g)
{
    for (fiber_t &f : g->fibers) {
        out_all(&f);
        stack_put(g, f.stack);
        f.order = order_t();
    }
    order_grid_over(g->order);
    fibers_put(g->fibers);
    g->blocks.clear();
    g->runnable.clear();
    g->asleep.clear();
    g->launch = nullptr;
}

void wake_sleepers(machine_t *m, bool all)
{
    uint64_t seen = outs.load(std::memory_order_acquire);

    if (!all && seen == m->outs_seen)
        return;
    places_t changed;
    const places_t *of = !all && changed.gather(m->outs_seen, seen) ? &changed : nullptr;
    m->outs_seen = seen;
    for (auto &g : m->grids)
        for (size_t i = 0; i < g->asleep.size();) {
            fiber_t *f = g->asleep[i].fiber;
            if (all || g->asleep[i].wakes(of)) {
                g->asleep[i] = g->asleep.back();
                g->asleep.pop_back();
                wake(f);
            } else {
                i++;
            }
        }
}

/* Ranks are favoured in turns, so that some run far ahead of others. */
grid_t *draw_grid(machine_t *m)
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

/* One step: a store comes out, or a fiber goes on. False: neither can be. */
bool step(machine_t *m)
{
    static const uint32_t odds[3] = {2, 8, 64};

    m->stuck = m->progress == m->moved ? m->stuck + 1 : 0;
    m->moved = m->progress;
    if (!m->holding.empty() && m->draw(odds[m->lazy]) == 0) {
        out_random(m, m->stuck > LONG);
        return true;
    }
    if (m->draw(256) == 0)
        wake_sleepers(m, false);
    grid_t *g = draw_grid(m);
    if (!g) {
        wake_sleepers(m, false);
        g = draw_grid(m);
    }
    if (!g && m->holding.empty())
        return false;
    if (!g) {
        out_random(m, true);
        return true;
    }
    size_t i = m->draw((uint32_t)g->runnable.size());
    fiber_t *f = g->runnable[i];
    g->runnable[i] = g->runnable.back();
    g->runnable.pop_back();
    context_switch(&m->scheduler, &f->context);
    return true;
}

/* ---- telling who waits for what */

struct text_t {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) void say(text_t *t, const char *format, ...)
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

void say_place(text_t *t, const rd_kwork_t *w, const char *p)
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

void say_who_waits(machine_t *m, text_t *t)
{
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

/* Nobody can go on by what this machine knows. Alone: look once more all round, so that who counts polls or time gets
 * on; a round is a millisecond. Else others may have stored something since, which is seen by the count of changes, but
 * for other processes and the host. False: give up. */
bool idle(machine_t *m)
{
    if (m->progress != m->last_progress) {
        m->last_progress = m->progress;
        m->rounds = 0;
        m->since = m->looked = now();
    }
    m->rounds++;
    if (m->alone) {
        m->ms++;
        wake_sleepers(m, true);
        return m->rounds < 400;
    }
    if (m->rounds < 50)
        sched_yield();
    else if (beside.load() > 1)
        usleep(50);
    else
        usleep((useconds_t)(1e6 * LOOKS_S)); /* nothing is counted up meanwhile */
    double t = now();
    if (t - m->looked >= LOOKS_S) {
        m->looked = t;
        wake_sleepers(m, true);
    }
    return t - m->since < patience.load();
}

void throw_away(machine_t *m)
{
    m->holding.clear();
    for (auto &g : m->grids) {
        for (fiber_t &f : g->fibers) {
            f.buffer.clear();
            order_thread_lost(f.order);
            stack_put(g.get(), f.stack);
        }
        g->fibers.clear();
    }
}

} // namespace

/* ---- what kernels call */

uint32_t gpu_thread()
{
    return self->thread;
}

uint32_t gpu_threads()
{
    return self->grid->launch->threads;
}

uint32_t gpu_block()
{
    return self->block_index;
}

uint32_t gpu_blocks()
{
    return self->grid->launch->blocks;
}

uint4 *gpu_shared()
{
    return self->block->shared.get();
}

uint32_t gpu_ms()
{
    machine_t *m = self->grid->machine;

    return m->alone ? m->ms : (uint32_t)(uint64_t)(now() * 1e3);
}

void *gpu_fixed(size_t bytes)
{
    std::vector<uint4> &fixed = self->block->fixed;

    if (fixed.empty())
        fixed.resize((bytes + sizeof(uint4) - 1) / sizeof(uint4));
    return fixed.data();
}

/* Far at each look: who holds something back for some time lets go of it before the machine takes the rest for stuck. */
uint32_t gpu_clock()
{
    return self->grid->machine->clock += 1024;
}

void gpu_begin()
{
    if (fault != RD_SIM_NO_BEGIN)
        order_kernel_begin(&self->order, self->grid->order);
}

/* Together with order_arrive: a barrier orders what was done before it by any, and behind it by any. */
static void barrier_leave(uint64_t *time)
{
    if (fault != RD_SIM_NO_BARRIER)
        order_leave(time);
}

static bool warp_vote(bool x, const char *what)
{
    inside_t inside(self->order);
    warp_t *w = self->warp;

    self->liveness.clear();
    if (barrier(&w->meeting, LANES, x, what)) {
        w->result = w->meeting.all;
        self->grid->machine->progress--; /* a vote is part of looking */
        meeting_over(&w->meeting);
    }
    return w->result;
}

void warp_sync()
{
    uint64_t *time = order_arrive(&self->warp->meeting.order);

    (void)warp_vote(true, "its warp");
    barrier_leave(time);
}

bool warp_all(bool x)
{
    return warp_vote(x, "its warp's vote");
}

bool warp_any(bool x)
{
    return !warp_vote(!x, "its warp's vote");
}

uint32_t warp_from(uint32_t x, uint32_t lane)
{
    {
        inside_t inside(self->order);
        warp_t *w = self->warp;

        self->liveness.clear();
        w->value[self->lane].x = x;
        if (barrier(&w->meeting, LANES, true, "a lane of its warp"))
            meeting_over(&w->meeting);
        x = w->value[lane].x;
    }
    (void)warp_vote(true, "its warp"); /* before that lane may put something else there */
    return x;
}

uint32_t warp_first(uint32_t x)
{
    return warp_from(x, 0);
}

bool group_any(uint32_t id, uint32_t threads, bool x)
{
    barrier_t *b = &self->block->barrier[id];
    uint64_t *time = order_arrive(&b->meeting.order);

    {
        inside_t inside(self->order);
        self->liveness.clear();
        if (barrier(&b->meeting, threads, x, "a barrier")) {
            b->result = b->meeting.any;
            meeting_over(&b->meeting);
        }
        x = b->result;
    }
    barrier_leave(time);
    return x;
}

bool block_any(bool x)
{
    return group_any(0, gpu_threads(), x);
}

static uint4 load_now(const void *p)
{
    uint64_t half[2];
    uint4 v;

    half[1] = __atomic_load_n((const uint64_t *)p + 1, __ATOMIC_ACQUIRE);
    half[0] = __atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE);
    memcpy(&v, half, sizeof v);
    return v;
}

/* What a lane's line bears, and what it takes with one that it has loaded: see rd_sim_launch_t. */
static const mark_t &line_mark()
{
    return order_mark(&self->order, self->grid->launch->depends);
}

static void line_taken()
{
    if (self->grid->launch->depends)
        order_take(&self->order);
}

/* A lane looks at its 16 bytes. */
static uint4 look_at(fiber_t *f, const void *p)
{
    order_saw(&f->order, p, sizeof(uint4));
    return load_now(p);
}

uint4 line_load(const void *p)
{
    uint4 v;

    touch_load(p, sizeof v, __builtin_return_address(0));
    {
        inside_t inside(self->order);
        out_overlapping(self, (const char *)p, sizeof v);
        look(&self->liveness, p, sizeof v);
        v = look_at(self, p);
    }
    line_taken();
    return v;
}

static void store(void *p, uint4 v, size_t bytes, const mark_t &mark)
{
    inside_t inside(self->order);
    uint64_t half[2];

    memcpy(half, &v, sizeof v);
    self->liveness.clear();
    order_stored(mark, p, bytes);
    for (size_t i = 0; i < bytes / 8; i++)
        push(self, (char *)p + 8 * i, 8, &half[i]);
    maybe_give_way();
}

void line_store(void *p, uint4 v)
{
    touch_store(p, sizeof v, __builtin_return_address(0));
    store(p, v, sizeof v, line_mark());
}

void half_store(void *p, uint4 v)
{
    touch_store(p, sizeof v / 2, __builtin_return_address(0));
    store(p, v, sizeof v / 2, self->order.last);
}

/* Plainly: who reads it has not read what was stored behind a fence. */
void far_store(void *p, uint4 v)
{
    touch_plainly(p, sizeof v, __builtin_return_address(0));
    store(p, v, sizeof v, mark_t());
}

/* What it overwrites has been read, which is all the order that there is: an atomic, though a GPU's is plain. */
void line_clean(void *p)
{
    if (fault == RD_SIM_NO_CLEAN && self->grid->machine->draw(64) == 0)
        return;
    touch_store(p, sizeof(uint4), __builtin_return_address(0));
    store(p, uint4{~0u, ~0u, ~0u, ~0u}, sizeof(uint4), mark_t());
}

uint4 warp_lines_load(const void *p)
{
    uint64_t *time = order_arrive(&self->warp->meeting.order);
    uint4 v;

    {
        inside_t inside(self->order);
        warp_t *w = self->warp;
        fiber_t *lanes = self - self->lane;
        out_overlapping(self, (const char *)p, sizeof(uint4));
        w->at[self->lane] = (char *)p;
        if (barrier(&w->meeting, LANES, true, "its warp's load")) {
            look(&w->liveness, w->at[0], LANES * sizeof(uint4));
            for (unsigned i = LANES; i-- > 0;)
                w->value[i] = look_at(&lanes[i], w->at[i]);
            self->grid->machine->progress--;
            meeting_over(&w->meeting);
        }
        v = w->value[self->lane];
    }
    barrier_leave(time);
    line_taken();
    touch_load(p, sizeof v, __builtin_return_address(0));
    return v;
}

static void warp_lines_out(warp_t *w, fiber_t *lanes)
{
    uint64_t line[LINE / 8];

    for (unsigned i = 0; i < LANES; i += 8) {
        for (unsigned j = i; j < i + 8; j++)
            order_stored(*w->mark[j], w->at[j], sizeof(uint4));
        memcpy(line, &w->value[i], sizeof line);
        if (fault != RD_SIM_TORN_LINES) {
            push(&lanes[i + 7], w->at[i], LINE, line);
            continue;
        }
        for (unsigned j = 0; j < LINE / 8; j++)
            push(&lanes[i + 7], w->at[i] + j * 8, 8, &line[j]);
    }
}

void warp_lines_store(void *p, uint4 v)
{
    uint64_t *time = order_arrive(&self->warp->meeting.order);
    const mark_t &mark = line_mark();

    {
        inside_t inside(self->order);
        warp_t *w = self->warp;
        w->mark[self->lane] = &mark;
        self->liveness.clear();
        w->liveness.clear();
        w->at[self->lane] = (char *)p;
        w->value[self->lane] = v;
        if (barrier(&w->meeting, LANES, true, "its warp's store")) {
            warp_lines_out(w, self - self->lane);
            meeting_over(&w->meeting);
        }
    }
    barrier_leave(time);
    touch_store(p, sizeof v, __builtin_return_address(0));
}

uint32_t word_load(const uint32_t *p)
{
    const char *at = (const char *)p;

    touch_load(p, sizeof *p, __builtin_return_address(0));
    inside_t inside(self->order);
    if (fault == RD_SIM_NO_GATE && at >= fault_from && at < fault_to)
        return *p + 1000;
    if (fault == RD_SIM_UNASKED && at >= fault_from && at < fault_to && !__atomic_load_n(p, __ATOMIC_ACQUIRE))
        return RD_KPROMISE(0, 0);
    out_overlapping(self, at, sizeof *p);
    look(&self->liveness, p, sizeof *p);
    order_saw(&self->order, p, sizeof *p);
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

uint32_t word_acquire(const uint32_t *p)
{
    uint32_t v = word_load(p);

    if (fault != RD_SIM_NO_ACQUIRE)
        order_take_word(p); /* what it bore when it was loaded: nobody has come between */
    return v;
}

void word_store(uint32_t *p, uint32_t v)
{
    touch_store(p, sizeof *p, __builtin_return_address(0));
    inside_t inside(self->order);
    uint64_t data = v;

    self->liveness.clear();
    order_stored(self->order.last, p, sizeof *p);
    push(self, (char *)p, 4, &data);
    maybe_give_way();
}

/* Comes out at once, before what the thread has stored elsewhere and not fenced. */
void word_add(uint32_t *p, uint32_t v)
{
    touch_store(p, sizeof *p, __builtin_return_address(0));
    inside_t inside(self->order);
    machine_t *m = self->grid->machine;

    self->liveness.clear();
    out_overlapping(self, (const char *)p, sizeof *p);
    order_added(self->order.last, p);
    __atomic_fetch_add(p, v, __ATOMIC_RELEASE);
    came_out(m, p);
    maybe_give_way();
}

void gpu_settle(const void *p, uint32_t bytes)
{
    inside_t inside(self->order);
    out_overlapping(self, (const char *)p, bytes);
}

void fence_sys()
{
    bool odd = ++self->fences % 2;
    bool works = fault != RD_SIM_NO_FENCE && fault != (odd ? RD_SIM_NO_FENCE_1 : RD_SIM_NO_FENCE_2);

    if (works)
        order_fence(&self->order);
    inside_t inside(self->order);
    self->liveness.clear();
    if (works)
        out_all(self);
    maybe_give_way();
}

void stores_follow()
{
    if (fault != RD_SIM_NO_FOLLOW)
        order_take(&self->order);
}

/* What each of them has stored comes out: together as good as the fence of one behind a barrier. */
static void let_out()
{
    inside_t inside(self->order);

    if (fault != RD_SIM_NO_FENCE)
        out_all(self);
}

void warp_release(uint32_t *p, uint32_t v)
{
    warp_sync();
    let_out();
    warp_sync();
    if (self->lane == 0) {
        if (fault != RD_SIM_NO_FENCE)
            order_fence(&self->order);
        word_store(p, v);
    }
    warp_sync();
}

bool group_release(uint32_t id, uint32_t threads, bool x, bool leads)
{
    let_out();
    x = group_any(id, threads, x);
    if (leads && fault != RD_SIM_NO_FENCE)
        order_fence(&self->order);
    return x;
}

bool lanes_release(bool x, bool leads)
{
    uint64_t *time = order_arrive(&self->warp->meeting.order);

    let_out();
    x = !warp_vote(!x, "its warp");
    barrier_leave(time);
    if (leads && fault != RD_SIM_NO_FENCE)
        order_fence(&self->order);
    return x;
}

bool last_to_arrive(uint32_t *p, uint32_t of)
{
    if (of == 1)
        return true;
    touch_store(p, sizeof *p, __builtin_return_address(0));
    inside_t inside(self->order);
    uint32_t was = __atomic_fetch_add(p, 1, __ATOMIC_ACQ_REL);

    order_count(&self->order, p);
    if (was != of - 1)
        return false;
    __atomic_store_n(p, 0, __ATOMIC_RELEASE);
    return true;
}

/* ---- what tests and the host call */

int rd_sim_queues(const rd_sim_launch_t *launches, int ranks, int depth, uint64_t seed, char *text, size_t size)
{
    machine_t m;
    std::vector<int> next((size_t)ranks, 0);
    text_t t = {text, size};

    m.random = seed * 0x9e3779b97f4a7c15ull + 0x1234567;
    m.alone = true;
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
        if (left > 0 && (m.stuck > BUSY || (!step(&m) && !idle(&m)))) {
            say_who_waits(&m, &t);
            throw_away(&m);
            order_over();
            return -1;
        }
    }
    order_over();
    return 0;
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
    text_t t = {text, sizeof text};

    m.random = (grid_seed.load() + grids_run.fetch_add(1)) * 0x9e3779b97f4a7c15ull + 0x1234567;
    m.alone = false;
    if (order_told()) {
        fprintf(stderr, "the machine: nobody is told what orders grids of several threads\n");
        abort();
    }
    m.grids.emplace_back(new grid_t);
    m.grids[0]->machine = &m;
    grid_begin(m.grids[0].get(), &launch);
    beside++;
    while (m.grids[0]->live > 0)
        if (!step(&m) && !idle(&m)) {
            say_who_waits(&m, &t);
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

void rd_sim_break(rd_sim_fault_t kind, const void *from, const void *to)
{
    fault = kind;
    fault_from = (const char *)from;
    fault_to = (const char *)to;
}
