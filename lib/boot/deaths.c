/* Who is gone: what one rank has seen, all get to know.
 *
 * A rank sees itself how the processes of its node and those of its neighbours end. Who shrinks a communicator, though,
 * has to know of each of its ranks whether it has ended, also where a child of that rank still listens for it, and a
 * farewell names only the first rank that failed. So every death is told to all neighbours, who tell theirs, each of
 * them once: after at most log2(n) hops all know.
 *
 * A rank that leaves says so to its neighbours, which is enough where all leave in the end. But the one that aborts
 * while the others still use the communicator comes to none of its shrinks any more, whose members need not be its
 * neighbours: that the first rank to fail has left is told to all as a death is.
 *
 * A program whose call has failed may end in order. Its rank is then gone for a shrink as a dead one is, but it is no
 * cause: that it had failed before goes along with the news, for a rank that hears of it may not have heard of the
 * rank that died first. */
#include <string.h>

#include "boot/boot_int.h"

/* In the order in which one gives way to the other; what is known is so to the neighbours, too. */
enum { HERE, LEFT, LEFT_KNOWN, DIED, DIED_KNOWN, LOST, LOST_KNOWN };

static unsigned char how_gone(int type)
{
    return type == RD_REC_LOST ? LOST : type == RD_REC_DEATH ? DIED : LEFT;
}

/* Returns true if what is known of the rank was less. During an exchange its thread and liveness may have news of the
 * same rank at once: what comes later in the order above stands. */
static bool note(rd_boot_t *b, int rank, unsigned char how)
{
    unsigned char before = atomic_load(&b->gone[rank]);

    while (before < how)
        if (atomic_compare_exchange_weak(&b->gone[rank], &before, how))
            return true;
    return false;
}

static void tell(rd_boot_t *b, int rank, int type)
{
    const int32_t number = rank;

    if (!note(b, rank, how_gone(type) + 1))
        return;
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
    if (rank >= 0 && rank < b->nranks && rank != b->rank)
        tell(b, rank, type);
}

static void is_gone(rd_boot_t *b, int rank, int type)
{
    const unsigned char how = how_gone(type);

    pthread_mutex_lock(&b->lock);
    if (b->busy)
        note(b, rank, how);
    else if (atomic_load(&b->gone[rank]) < how)
        tell(b, rank, type);
    pthread_mutex_unlock(&b->lock);
}

void rd_boot_died(rd_boot_t *b, int rank)
{
    is_gone(b, rank, RD_REC_DEATH);
}

void rd_boot_lost(rd_boot_t *b, int rank)
{
    is_gone(b, rank, RD_REC_LOST);
}

void rd_boot_say_died(rd_boot_t *b, int rank)
{
    if (atomic_load(&b->gone[rank]) < DIED_KNOWN)
        tell(b, rank, RD_REC_DEATH);
}

void rd_boot_left(rd_boot_t *b, int rank)
{
    is_gone(b, rank, RD_REC_LEFT);
}

void rd_boot_tell_gone(rd_boot_t *b)
{
    for (int r = 0; r < b->nranks; r++) {
        int how = atomic_load(&b->gone[r]);
        if (how == LOST || how == DIED || how == LEFT)
            tell(b, r, how == LOST ? RD_REC_LOST : how == DIED ? RD_REC_DEATH : RD_REC_LEFT);
    }
}

bool rd_boot_is_dead(const rd_boot_t *b, int rank)
{
    return atomic_load(&b->gone[rank]) >= DIED;
}

bool rd_boot_is_lost(const rd_boot_t *b, int rank)
{
    return atomic_load(&b->gone[rank]) >= LOST;
}

bool rd_boot_is_left(const rd_boot_t *b, int rank)
{
    int how = atomic_load(&b->gone[rank]);

    return how == LEFT || how == LEFT_KNOWN;
}
