/* See net_fork.h. */
#include "transport/network/net_fork.h"

#include <stddef.h>

#include "base/fork.h"

static _Atomic(rd_net_fork_t *) list; /* only grows */

static void child(void)
{
    for (rd_net_fork_t *f = atomic_load(&list); f; f = f->next)
        f->orphaned |= atomic_load(&f->users) != 0;
}

static const rd_fork_handlers_t at_fork = {.child = child};

const char *rd_net_fork_orphaned(rd_net_fork_t *fork)
{
    if (!atomic_flag_test_and_set(&fork->known)) {
        fork->next = atomic_load(&list);
        while (!atomic_compare_exchange_weak(&list, &fork->next, fork))
            continue;
    }
    rd_fork_register(RD_FORK_NETWORKS, &at_fork);
    return fork->orphaned ? fork->why : NULL;
}

void rd_net_fork_begin(rd_net_fork_t *fork)
{
    atomic_fetch_add(&fork->users, 1);
}

void rd_net_fork_end(rd_net_fork_t *fork)
{
    atomic_fetch_sub(&fork->users, 1);
}
