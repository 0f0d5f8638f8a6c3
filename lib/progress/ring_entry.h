/* An entry of a ring in shared memory, which one rank writes and others read without a lock: a sequence lock whose
 * counter is the number of what the entry holds, from 1 on; 0: nothing yet, or it is being written. A reader takes the
 * contents between rd_entry_find and rd_entry_kept, and drops them if the writer has come round the ring meanwhile.
 * (Boehm: "Can seqlocks get along with programming language memory models?", MSPC 2012.) */
#ifndef RD_PROGRESS_RING_ENTRY_H
#define RD_PROGRESS_RING_ENTRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

static inline void rd_entry_begin(_Atomic uint64_t *number)
{
    atomic_store_explicit(number, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* readers that see the new contents see 0, or what follows it */
}

static inline void rd_entry_end(_Atomic uint64_t *number, uint64_t n)
{
    atomic_store_explicit(number, n, memory_order_release);
}

/* Returns 1 if the entry holds number n, 0 if its rank has not come so far, -1 if it has been overwritten since. */
static inline int rd_entry_find(const _Atomic uint64_t *number, uint64_t n)
{
    uint64_t there = atomic_load_explicit(number, memory_order_acquire);

    return there == n ? 1 : there > n ? -1 : 0;
}

/* Returns true if what was read since rd_entry_find is whole. */
static inline bool rd_entry_kept(const _Atomic uint64_t *number, uint64_t n)
{
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(number, memory_order_relaxed) == n;
}

#endif
