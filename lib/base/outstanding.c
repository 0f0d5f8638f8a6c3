/* The list of what is outstanding in this process: see outstanding.h. */
#include "base/outstanding.h"

#include <sched.h>

#include "base/fork.h"

static _Atomic(rd_outstanding_t *) first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list; held during turns, so no entry goes away */

/* The parent's work is not the child's. Another thread may have held the lock. */
static void fork_child(void)
{
    atomic_store_explicit(&first, NULL, memory_order_relaxed);
    pthread_mutex_init(&lock, NULL);
}

static const rd_fork_handlers_t at_fork = {.child = fork_child};

void rd_outstanding_init(rd_outstanding_t *entry, bool (*turn)(rd_outstanding_t *entry))
{
    rd_fork_register(RD_FORK_OUTSTANDING, &at_fork);
    entry->next = NULL;
    entry->turn = turn;
    pthread_mutex_init(&entry->turning, NULL);
    atomic_store_explicit(&entry->listed, 0, memory_order_relaxed);
}

void rd_outstanding_take(rd_outstanding_t *entry)
{
    while (pthread_mutex_trylock(&entry->turning) != 0)
        sched_yield();
}

void rd_outstanding_list(rd_outstanding_t *entry)
{
    rd_outstanding_take(entry);
    atomic_store_explicit(&entry->listed, 1, memory_order_relaxed);
    pthread_mutex_lock(&lock);
    entry->next = atomic_load_explicit(&first, memory_order_relaxed);
    atomic_store_explicit(&first, entry, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
}

void rd_outstanding_unlist(rd_outstanding_t *entry)
{
    if (!rd_outstanding_listed(entry))
        return;
    pthread_mutex_lock(&lock);
    rd_outstanding_t *before = NULL, *e = atomic_load_explicit(&first, memory_order_relaxed);
    for (; e && e != entry; e = e->next)
        before = e;
    if (e && before)
        before->next = entry->next;
    else if (e)
        atomic_store_explicit(&first, entry->next, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    atomic_store_explicit(&entry->listed, 0, memory_order_relaxed);
}

void rd_outstanding_settle(void)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

bool rd_outstanding_any(void)
{
    return atomic_load_explicit(&first, memory_order_relaxed) != NULL;
}

bool rd_outstanding_turn(void)
{
    bool moved = false;

    if (__builtin_expect(!rd_outstanding_any(), 1) || pthread_mutex_trylock(&lock) != 0)
        return false;
    for (rd_outstanding_t *e = atomic_load_explicit(&first, memory_order_relaxed); e; e = e->next) {
        if (pthread_mutex_trylock(&e->turning) != 0) /* a thread is in a call on it, perhaps this one */
            continue;
        moved |= e->turn(e);
        pthread_mutex_unlock(&e->turning);
    }
    pthread_mutex_unlock(&lock);
    return moved;
}
