/* Nobody is told of any order: see order.h, which ends with this where ORDER_NONE is defined. Inline, since every access
 * to a window comes here several times. */
#ifndef TEST_SIM_ORDER_NONE_H
#define TEST_SIM_ORDER_NONE_H

inline bool order_told()
{
    return false;
}

inline void order_begin(int)
{
}

inline void order_over()
{
}

inline void order_grid_begin(order_grid_t *)
{
}

inline void order_grid_over(const order_grid_t &)
{
}

inline void order_thread_begin(order_t *, const order_grid_t &, const char *, unsigned, unsigned)
{
}

inline void order_thread_lost(const order_t &)
{
}

inline void order_machine()
{
}

inline void order_read(int, const void *, size_t)
{
}

inline void order_stored(const mark_t &, const void *, size_t)
{
}

inline void order_added(const mark_t &, const void *)
{
}

inline void order_saw(order_t *, const void *, size_t)
{
}

inline void order_count(order_t *, const void *)
{
}

inline void order_go_on(const order_t &)
{
}

inline void order_thread_run(const order_grid_t &)
{
}

inline void order_kernel_begin(order_t *, const order_grid_t &)
{
}

inline void order_kernel_end(const order_grid_t &)
{
}

inline void order_fence(order_t *)
{
}

inline const mark_t &order_mark(order_t *o, bool)
{
    return o->last;
}

inline void order_take(order_t *)
{
}

inline void order_take_word(const void *)
{
}

inline uint64_t *order_arrive(order_meeting_t *)
{
    return nullptr;
}

inline void order_leave(uint64_t *)
{
}

inline void touch_load(const void *, size_t, void *)
{
}

inline void touch_store(void *, size_t, void *)
{
}

inline void touch_plainly(void *, size_t, void *)
{
}

inline void touch_all(const void *, size_t)
{
}

#endif
