/* Calls of all ranks that wait for sockets and not for memory or a network: split, grow, windows. While one waits, the
 * record says for whom, as it does of other calls, so that `rondo-ras who` follows these waits, too. When its time
 * limit is over, the sentence has the verdict of two looks at the records behind it: who is late or stopped, or that
 * ranks wait for each other in different communicators. Nothing fails sooner by that, as a thread that has called
 * nothing yet may come: with RONDO_CHECK=1 such circles are found by what is called (progress/deadlock.h). */
#ifndef RD_CORE_EXCHANGES_H
#define RD_CORE_EXCHANGES_H

#include <stdint.h>

struct rondo_comm;
struct rd_view;

typedef struct rd_exchanges {
    struct rd_view *view; /* what was seen in this wait; NULL: nothing yet */
    int64_t since_ms;     /* when the wait began */
} rd_exchanges_t;

/* From here on, until the bootstrap ends. The communicator has its seat. */
void rd_exchanges_watch(struct rondo_comm *comm);

#endif
