/* Networks that outlive their communicators: the rank has left in order, and a live peer has yet to take what was sent
 * to it. A thread, which exists as long as there is such a network, polls them with growing pauses, and closes each
 * when everything has been taken or no peer is left to take it.
 *
 * A network comes here with all that its library still uses, and without anything of the communicator's or the user's.
 * At the end of the process the networks here get two more seconds. Each one before the last few gets no more time in
 * any case, lest a process that ends many communicators keeps them all. A forked child has none of them; but the
 * libraries do not work in a child of a process that has a network, so a fork waits for that long as well. */
#ifndef RD_TRANSPORT_LINGER_H
#define RD_TRANSPORT_LINGER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rd_linger {
    struct rd_linger *next;
    void *net;       /* the transport's */
    int64_t left_ms; /* when its farewells were sent */
    /* Called by rd_linger_begin, once it is certain that the network lingers: frees it of the communicator. */
    void (*detach)(struct rd_linger *linger);
    /* These two are called by the thread, one network at a time. `poll` returns true if nothing is left to be taken;
     * `end` closes the network, and may free the struct. */
    bool (*poll)(struct rd_linger *linger);
    void (*end)(struct rd_linger *linger);
} rd_linger_t;

/* Returns true if the network will be closed later; the caller then no longer owns it. */
bool rd_linger_begin(rd_linger_t *linger);

#endif
