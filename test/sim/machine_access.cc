/* The loads and stores of kernels to windows, and the fences and releases that order them. */
#include "sim/machine_int.h"

#include <string.h>

#include "kernels/work.h"

using namespace machine;

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
        look(&self->watch, p, sizeof v);
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
    self->watch.clear();
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
            look(&w->watch, w->at[0], LANES * sizeof(uint4));
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
        self->watch.clear();
        w->watch.clear();
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
    look(&self->watch, p, sizeof *p);
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

    self->watch.clear();
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

    self->watch.clear();
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
    self->watch.clear();
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
