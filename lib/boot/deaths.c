/* Deaths: what one rank has seen, all get to know.
 *
 * A rank sees itself how the processes of its node and those of its neighbours end. Who shrinks a communicator, though,
 * has to know of each of its ranks whether it has ended, also where a child of that rank still listens for it, and a
 * farewell names only the first rank that failed. So every death is told to all neighbours, who tell theirs, each of
 * them once: after at most log2(n) hops all know. */
#include <string.h>

#include "boot/boot_int.h"

enum { ALIVE, DIED, ANNOUNCED };

static void tell(rd_boot_t *b, int rank)
{
    const int32_t number = rank;

    atomic_store(&b->deaths[rank], ANNOUNCED);
    for (int k = 0; k < 2 * b->rounds; k++) {
        rd_neighbour_t *one = k % 2 ? &b->to[k / 2] : &b->from[k / 2];
        if (one->chan && !one->left && !rd_chan_over(one->chan))
            rd_chan_send(one->chan, RD_REC_DEATH, &number, sizeof number);
    }
}

void rd_boot_heard_death(rd_boot_t *b, const unsigned char *data, size_t bytes)
{
    int32_t rank;

    if (bytes != sizeof rank)
        return;
    memcpy(&rank, data, sizeof rank);
    if (rank >= 0 && rank < b->nranks && rank != b->rank && atomic_load(&b->deaths[rank]) != ANNOUNCED)
        tell(b, rank);
}

void rd_boot_died(rd_boot_t *b, int rank)
{
    pthread_mutex_lock(&b->lock);
    if (atomic_load(&b->deaths[rank]) == ALIVE && b->busy)
        atomic_store(&b->deaths[rank], DIED);
    else if (atomic_load(&b->deaths[rank]) == ALIVE)
        tell(b, rank);
    pthread_mutex_unlock(&b->lock);
}

void rd_boot_tell_deaths(rd_boot_t *b)
{
    for (int r = 0; r < b->nranks; r++)
        if (atomic_load(&b->deaths[r]) == DIED)
            tell(b, r);
}

bool rd_boot_is_dead(const rd_boot_t *b, int rank)
{
    return atomic_load(&b->deaths[rank]) != ALIVE;
}
