/* Who is gone: what one rank has seen, all get to know.
 *
 * A rank sees itself how the processes of its node and those of its neighbours end. Who shrinks a communicator, though,
 * has to know of each of its ranks whether it has ended, also where a child of that rank still listens for it, and a
 * farewell names only the first rank that failed. So every death is told to all neighbours, who tell theirs, each of
 * them once: after at most log2(n) hops all know.
 *
 * A rank that leaves says so to its neighbours, which is enough where all leave in the end. But the one that aborts
 * while the others still use the communicator comes to none of its shrinks any more, whose members need not be its
 * neighbours: that the first rank to fail has left is told to all as a death is. */
#include <string.h>

#include "boot/boot_int.h"

/* In the order in which one gives way to the other. */
enum { HERE, LEFT, LEFT_KNOWN, DIED, DIED_KNOWN };

static void tell(rd_boot_t *b, int rank, int type)
{
    const int32_t number = rank;

    atomic_store(&b->gone[rank], type == RD_REC_DEATH ? DIED_KNOWN : LEFT_KNOWN);
    for (int k = 0; k < 2 * b->rounds; k++) {
        rd_neighbour_t *one = k % 2 ? &b->to[k / 2] : &b->from[k / 2];
        if (one->chan && !one->left && !rd_chan_over(one->chan))
            rd_chan_send(one->chan, type, &number, sizeof number);
    }
}

void rd_boot_heard_gone(rd_boot_t *b, int type, const unsigned char *data, size_t bytes)
{
    int32_t rank;

    if (bytes != sizeof rank)
        return;
    memcpy(&rank, data, sizeof rank);
    if (rank >= 0 && rank < b->nranks && rank != b->rank &&
        atomic_load(&b->gone[rank]) < (type == RD_REC_DEATH ? DIED_KNOWN : LEFT_KNOWN))
        tell(b, rank, type);
}

static void is_gone(rd_boot_t *b, int rank, int type)
{
    const int how = type == RD_REC_DEATH ? DIED : LEFT;

    pthread_mutex_lock(&b->lock);
    if (atomic_load(&b->gone[rank]) < how && b->busy)
        atomic_store(&b->gone[rank], (unsigned char)how);
    else if (atomic_load(&b->gone[rank]) < how)
        tell(b, rank, type);
    pthread_mutex_unlock(&b->lock);
}

void rd_boot_died(rd_boot_t *b, int rank)
{
    is_gone(b, rank, RD_REC_DEATH);
}

void rd_boot_left(rd_boot_t *b, int rank)
{
    is_gone(b, rank, RD_REC_LEFT);
}

void rd_boot_tell_gone(rd_boot_t *b)
{
    for (int r = 0; r < b->nranks; r++) {
        int how = atomic_load(&b->gone[r]);
        if (how == DIED || how == LEFT)
            tell(b, r, how == DIED ? RD_REC_DEATH : RD_REC_LEFT);
    }
}

bool rd_boot_is_dead(const rd_boot_t *b, int rank)
{
    return atomic_load(&b->gone[rank]) >= DIED;
}

bool rd_boot_is_left(const rd_boot_t *b, int rank)
{
    int how = atomic_load(&b->gone[rank]);

    return how == LEFT || how == LEFT_KNOWN;
}
