/* Memory is touched as the kernel touches it, for ThreadSanitizer's eyes alone: when a store comes out is the machine's
 * affair. See order.h. */
#include "sim/order.h"

/* What the compiler calls of ThreadSanitizer. Reports are to show the kernel's line, and the function that it has
 * called tells nobody where it is; so it is told here. */
extern "C" void enter(void *from) __asm__("__tsan_func_entry");
extern "C" void leave() __asm__("__tsan_func_exit");
extern "C" void read_range(const void *p, size_t bytes) __asm__("__tsan_read_range");

void touch_load(const void *p, size_t bytes, void *from)
{
    enter(from);
    if (bytes == 4)
        (void)__atomic_load_n((const uint32_t *)p, __ATOMIC_RELAXED);
    for (size_t i = 0; i < bytes / 8; i++)
        (void)__atomic_load_n((const uint64_t *)p + i, __ATOMIC_RELAXED);
    leave();
}

void touch_store(void *p, size_t bytes, void *from)
{
    enter(from);
    if (bytes == 4)
        (void)__atomic_fetch_or((uint32_t *)p, 0, __ATOMIC_RELAXED);
    for (size_t i = 0; i < bytes / 8; i++)
        (void)__atomic_fetch_or((uint64_t *)p + i, 0, __ATOMIC_RELAXED);
    leave();
}

void touch_plainly(void *p, size_t bytes, void *from)
{
    enter(from);
    for (size_t i = 0; i < bytes / 8; i++) {
        volatile uint64_t *half = (uint64_t *)p + i;
        *half = *half;
    }
    leave();
}

void touch_all(const void *p, size_t bytes)
{
    if (bytes > 0)
        read_range(p, bytes);
}
