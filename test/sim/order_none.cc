/* Nobody is told of any order: see order.h. */
#include "sim/order.h"

bool order_told()
{
    return false;
}

void order_begin(int)
{
}

void order_over()
{
}

void order_grid_begin(order_grid_t *)
{
}

void order_grid_over(const order_grid_t &)
{
}

void order_thread_begin(order_t *, const order_grid_t &, const char *, unsigned, unsigned)
{
}

void order_thread_lost(const order_t &)
{
}

void order_machine()
{
}

void order_read(int, const void *, size_t)
{
}

void order_stored(const mark_t &, const void *, size_t)
{
}

void order_added(const mark_t &, const void *)
{
}

void order_saw(order_t *, const void *, size_t)
{
}

void order_count(order_t *, const void *)
{
}

void order_go_on(const order_t &)
{
}

void order_thread_run(const order_grid_t &)
{
}

void order_kernel_begin(order_t *, const order_grid_t &)
{
}

void order_kernel_end(const order_grid_t &)
{
}

void order_fence(order_t *)
{
}

const mark_t &order_mark(order_t *o, bool)
{
    return o->last;
}

void order_take(order_t *)
{
}

void order_take_word(const void *)
{
}

uint64_t *order_arrive(order_meeting_t *)
{
    return nullptr;
}

void order_leave(uint64_t *)
{
}

void touch_load(const void *, size_t, void *)
{
}

void touch_store(void *, size_t, void *)
{
}

void touch_plainly(void *, size_t, void *)
{
}

void touch_all(const void *, size_t)
{
}
