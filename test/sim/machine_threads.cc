/* What kernels call, but for memory (machine_access.cc): which thread they run in, clocks, and how the threads of a
 * warp or a block meet. */
#include "sim/machine_int.h"

using namespace machine;

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

/* Goes far at each look: a thread that holds something back for some time lets go of it before the machine takes the
 * rest for stuck. */
uint32_t gpu_clock()
{
    return self->grid->machine->clock += 1024;
}

void gpu_begin()
{
    if (fault != RD_SIM_NO_BEGIN)
        order_kernel_begin(&self->order, self->grid->order);
}

namespace machine
{

void barrier_leave(uint64_t *time)
{
    if (fault != RD_SIM_NO_BARRIER)
        order_leave(time);
}

bool warp_vote(bool x, const char *what)
{
    inside_t inside(self->order);
    warp_t *w = self->warp;

    self->watch.clear();
    if (barrier(&w->meeting, LANES, x, what)) {
        w->result = w->meeting.all;
        self->grid->machine->progress--; /* a vote is part of looking */
        meeting_over(&w->meeting);
    }
    return w->result;
}

} // namespace machine

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

        self->watch.clear();
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
        self->watch.clear();
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
