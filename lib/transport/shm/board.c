/* See board.h. */
#include "transport/shm/board.h"

/* The rank that was late before is asked first: until it has read on, the others need not be. Acquire: what a rank has
 * read is overwritten only after this. */
bool rd_board_poll(rd_board_t *b, rd_board_read_t what, uint64_t end, uint64_t ring, int *waits_for)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0, r = b->late[what]; i < b->nranks; i++, r = r + 1 < b->nranks ? r + 1 : 0) {
        if (r == b->self)
            continue;
        uint64_t read = atomic_load_explicit(&rd_board_read(b, r, what)->value, memory_order_acquire);
        if (!rd_board_over(end, read, ring)) {
            b->late[what] = *waits_for = r;
            return false;
        }
        least = read < least ? read : least;
    }
    b->read[what] = least;
    return true;
}
