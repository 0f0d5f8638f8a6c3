/* A grid's fibers and their stacks, from its launch to its end. The next grid takes both: a grid has megabytes of them,
 * and a test launches thousands of grids. */
#include "sim/machine_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <mutex>

#include "kernels/work.h"

namespace machine
{

static const size_t STACK = order_told() ? 512 << 10 : 48 << 10; /* reports take room */

static std::mutex spare_lock; /* one pool for the process: threads come and go */
static std::vector<char *> spare_stacks;
static std::vector<std::vector<fiber_t>> spare_fibers; /* those of ended grids, which are not cleared anew */

grid_t::~grid_t()
{
    std::lock_guard<std::mutex> lock(spare_lock);
    spare_stacks.insert(spare_stacks.end(), stacks.begin(), stacks.end());
}

/* A grid keeps the stacks that its rank has had before: who looks on (order.h) takes them for threads. */
static char *stack_get(grid_t *g)
{
    if (g->stacks.empty()) {
        std::lock_guard<std::mutex> lock(spare_lock);
        if (!spare_stacks.empty()) {
            g->stacks.push_back(spare_stacks.back());
            spare_stacks.pop_back();
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

static void stack_put(grid_t *g, char *s)
{
    if (*(uint64_t *)s != 0x5afe5afe5afe5afe) {
        fprintf(stderr, "the machine: a fiber's stack of %zu bytes was too small\n", STACK);
        abort();
    }
    g->stacks.push_back(s);
}

static std::vector<fiber_t> fibers_get(unsigned n)
{
    std::vector<fiber_t> fibers;
    {
        std::lock_guard<std::mutex> lock(spare_lock);
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

static void fibers_put(std::vector<fiber_t> &fibers)
{
    std::lock_guard<std::mutex> lock(spare_lock);
    spare_fibers.push_back(std::move(fibers));
    fibers.clear();
}

static void run_fiber(void *argument)
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
        f->watch.count = f->watch.next = f->watch.news = 0;
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

} // namespace machine
