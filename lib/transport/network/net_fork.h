/* Libraries that do not work in a child that is forked while its parent uses them: their threads are not there, or what
 * the parent's registers and pinned memory are mapped to. A child that calls exec is none. */
#ifndef RD_TRANSPORT_NETWORK_NET_FORK_H
#define RD_TRANSPORT_NETWORK_NET_FORK_H

#include <stdatomic.h>
#include <stdbool.h>

/* One for each library: static, and never freed. */
typedef struct rd_net_fork {
    const char *why; /* the sentence for such a child */
    atomic_int users;
    bool orphaned;            /* this process is one */
    atomic_flag known;        /* clear at first */
    struct rd_net_fork *next; /* net_fork.c's list */
} rd_net_fork_t;

#define RD_NET_FORKED(library)                                                                                         \
    "this process was forked while its parent had a communicator between nodes, and " library " does not work "        \
    "in such a child: fork before that is made, or when it is destroyed; or let the child call exec"

void rd_net_fork_begin(rd_net_fork_t *fork); /* from here on the library is used, */
void rd_net_fork_end(rd_net_fork_t *fork);   /* up to here */
/* Returns why the library cannot be used in this process, or NULL. To be called before it is used. */
const char *rd_net_fork_orphaned(rd_net_fork_t *fork);

#endif
