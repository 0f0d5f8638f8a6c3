/* Calls of all ranks that wait for sockets and not for memory or a network: split, grow, windows. While one waits, the
 * record says for whom, as it does of other calls, so that `rondo-ras who` follows these waits, too. After
 * RONDO_STALL_MS the waiting rank looks itself: ranks that call communicators in different orders would wait for each
 * other until RONDO_CREATE_TIMEOUT_MS is over, and be told that the other side is late. They get RONDO_ERR_MISMATCH
 * with the order, on all communicators of the circle. Where several threads of one process have called, that is not
 * done, as another one may yet come; the sentence of the limit says it then. */
#ifndef RD_CORE_EXCHANGES_H
#define RD_CORE_EXCHANGES_H

#include <stdint.h>

struct rondo_comm;
struct rd_view;

typedef struct rd_exchanges {
    struct rd_view *view; /* what was seen in this wait; NULL: nothing yet */
    int64_t since_ms;     /* when the wait began */
    int64_t due_ms;       /* when it is judged next */
} rd_exchanges_t;

/* From here on, until the bootstrap ends. The communicator has its seat. */
void rd_exchanges_watch(struct rondo_comm *comm);

#endif
