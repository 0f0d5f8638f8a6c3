/* A gate: forked ranks wait behind it for the id, which is made when all of them have been forked. A process that has
 * made one has a rendezvous thread, and the allocators of sanitizers do not survive a fork while another thread
 * allocates. */
#ifndef GATE_H
#define GATE_H

#include <stdlib.h>
#include <unistd.h>

#include "rondo.h"

typedef struct gate {
    int ends[2];
} gate_t;

static inline gate_t gate_make(void)
{
    gate_t g;
    if (pipe(g.ends) != 0)
        exit(1);
    return g;
}

/* In a child. */
static inline rondo_unique_id_t gate_wait(gate_t *g)
{
    rondo_unique_id_t id;
    close(g->ends[1]);
    if (read(g->ends[0], &id, sizeof(id)) != sizeof(id))
        exit(1);
    close(g->ends[0]);
    return id;
}

/* In the parent, for n children. */
static inline void gate_open(gate_t *g, const rondo_unique_id_t *id, int n)
{
    for (int i = 0; i < n; i++)
        if (write(g->ends[1], id, sizeof(*id)) != sizeof(*id))
            exit(1);
    close(g->ends[0]);
    close(g->ends[1]);
}

#endif
