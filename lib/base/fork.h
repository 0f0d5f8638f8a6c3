/* What the library does around a fork: one table of handlers, in an order that does not depend on which subsystem was
 * initialised first.
 *
 * Before the fork the handlers' `prepare` run from the last to the first; after it `parent` or `child` run from the
 * first to the last. A prepare takes its subsystem's locks, so the order is that of the locks: a thread that holds a
 * lock of an entry may take those of the entries above it, but never those of the entries below it. */
#ifndef RD_BASE_FORK_H
#define RD_BASE_FORK_H

#include <pthread.h>

typedef enum rd_fork_order {
    RD_FORK_ERROR,          /* it is the first in the child, so that every other handler may report an error */
    RD_FORK_SETTINGS,       /* values that programs set; like the next two it is held for a moment, and takes nothing */
    RD_FORK_TOKEN,          /* the number of this process */
    RD_FORK_PLAIN,          /* memory that ranks of one process share */
    RD_FORK_ENVIRON,        /* an empty environment for a program that has none */
    RD_FORK_GUARD,          /* the places of closed descriptors */
    RD_FORK_SOCKETS,        /* its lock is taken while a descriptor is opened or closed, by every entry below */
    RD_FORK_MONITOR,        /* the record of this process; opens descriptors while it holds its lock */
    RD_FORK_RENDEZVOUS,     /* the threads that serve ids */
    RD_FORK_COMM,           /* the list of communicators; makes the parent's unusable in the child */
    RD_FORK_MONITOR_THREAD, /* starts its thread while it holds its lock */
    RD_FORK_OUTSTANDING,    /* forgets the parent's work in the child; its lock is not taken */
    RD_FORK_DEADLOCK,       /* the same for the waits that RONDO_CHECK=1 follows */
    RD_FORK_NETWORKS,       /* notes which libraries of networks are in use, once RD_FORK_LINGER has waited; no lock */
    RD_FORK_LIVENESS,       /* starts its thread, and so opens descriptors, while it holds its lock */
    RD_FORK_PROXIES,        /* waits for the end of each proxy's turn, in which an operation may fail */
    RD_FORK_LINGER, /* waits up to two seconds for networks to close, before any other subsystem is locked out */
    RD_FORK_ORDERS
} rd_fork_order_t;

typedef struct rd_fork_handlers {
    void (*prepare)(void); /* each may be NULL */
    void (*parent)(void);
    void (*child)(void);
    pthread_mutex_t *lock; /* is held while the process forks, and free in both; NULL: none */
} rd_fork_handlers_t;

/* Registers handlers. May be called again, with the same handlers and from any thread, and takes no lock: its caller
 * may hold the locks that some `prepare` waits for. The handlers apply to forks that begin later. */
void rd_fork_register(rd_fork_order_t order, const rd_fork_handlers_t *handlers);

#endif
