/* The handlers of fork, see fork.h. */
#include "base/fork.h"

#include <stdatomic.h>

static _Atomic(const rd_fork_handlers_t *) table[RD_FORK_ORDERS];

/* The handlers whose prepare this thread's fork has called: another thread may add one while the fork is under way, and
 * the parent handler of that one would release locks that were not taken. The child's only thread is a copy of this
 * one. */
static _Thread_local const rd_fork_handlers_t *prepared[RD_FORK_ORDERS];

static void prepare(void)
{
    for (int i = RD_FORK_ORDERS - 1; i >= 0; i--) {
        prepared[i] = atomic_load_explicit(&table[i], memory_order_acquire);
        if (prepared[i] && prepared[i]->prepare)
            prepared[i]->prepare();
        if (prepared[i] && prepared[i]->lock)
            pthread_mutex_lock(prepared[i]->lock);
    }
}

static void let_go(const rd_fork_handlers_t *handlers)
{
    if (handlers && handlers->lock)
        pthread_mutex_unlock(handlers->lock);
}

static void parent(void)
{
    for (int i = 0; i < RD_FORK_ORDERS; i++) {
        let_go(prepared[i]);
        if (prepared[i] && prepared[i]->parent)
            prepared[i]->parent();
    }
}

static void child(void)
{
    for (int i = 0; i < RD_FORK_ORDERS; i++) {
        let_go(prepared[i]);
        if (prepared[i] && prepared[i]->child)
            prepared[i]->child();
    }
}

static void install(void)
{
    pthread_atfork(prepare, parent, child);
}

void rd_fork_register(rd_fork_order_t order, const rd_fork_handlers_t *handlers)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, install);
    atomic_store_explicit(&table[order], handlers, memory_order_release);
}
