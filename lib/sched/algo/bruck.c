/* bruck: an all-to-all in log n rounds, in which ranks pass on each other's blocks.
 *
 *     A block for the rank i ahead goes there by the bits of i: in the round of bit d it moves d ranks, if i has the
 *     bit. So all blocks of a round that a rank has move the same way, and may be one message. Of 6 ranks:
 *
 *         d = 1:  1 3 5   to the next rank          1 has arrived, 3 and 5 are on their way
 *         d = 2:  2 3     to the rank 2 ahead       both have arrived
 *         d = 4:  4 5     to the rank 4 ahead       likewise
 *
 * A block that is on its way waits in the output, in the place of the block that comes the same distance: that one
 * takes its place in the round in which it leaves, or in a later one. So there is no scratch, whatever n is. It works
 * for any n, if all blocks are equally long.
 *
 *                  messages                      bytes sent by a rank      cost
 *     alltoall     log n, if all blocks fit      about log n / 2 N         alpha log n + beta N log n / 2
 *
 * It pays for short blocks, which go together, as many as fit a slot (`together`): then a round takes a message or a
 * few. Where each goes alone there are more messages than `direct` has, and none of the use. In each step a rank sends
 * before it receives, and all ranks are at the same step, so one credit suffices.
 *
 * The blocks of a round are walked in the order that leaves fewer steps when they are folded: all with the same lower
 * bits, or all with the same upper ones. Bruck et al.: "Efficient algorithms for all-to-all communications in
 * multiport message-passing systems", IEEE TPDS 8 (1997).
 */
#include "sched/algo/algos.h"

#define RANKS_MOST 16384 /* of more ranks the steps are too many to be compiled: n log n of them */

typedef struct bruck {
    rd_steps_t *s;
    int n, me;
    int d;        /* of the round */
    int together; /* most blocks of a message */
    int copied;   /* this rank's own block is in OUT: it is copied behind the first send, which nobody waits for then */
} bruck_t;

/* Returns how many distances below n have the bit d. */
static int blocks_of(int n, int d)
{
    int rest = n % (2 * d) - d;

    return n / (2 * d) * d + (rest > 0 ? rest : 0);
}

/* Returns the distance behind i in the round's order. */
static int behind(const bruck_t *b, int i)
{
    int d = b->d;

    if (d < b->n / (2 * d)) {
        i += 2 * d;
        return i < b->n ? i : d + i % d + 1;
    }
    i++;
    return i & d ? i : i + d;
}

static void copy_own(bruck_t *b)
{
    if (!b->copied)
        rd_step_copy(b->s, rd_out(b->me), rd_in(b->me), b->me);
    b->copied = 1;
}

static void give(bruck_t *b, int i)
{
    int to = (b->me + i) % b->n, waits = rd_mod(b->me - i, b->n);

    if (i % b->d == 0)
        rd_step_send(b->s, rd_in(to), to, (b->me + b->d) % b->n);
    else
        rd_step_send(b->s, rd_out(waits), waits, (b->me + b->d) % b->n);
}

static void take(bruck_t *b, int i)
{
    int waits = rd_mod(b->me - i, b->n);

    rd_step_recv(b->s, rd_out(waits), waits, rd_mod(b->me - b->d, b->n));
}

/* Gives or takes the blocks of one message, from the distance i on. Returns the distance behind the last. */
static int move(bruck_t *b, void (*block)(bruck_t *, int), int i, int blocks)
{
    for (int k = 0; k < blocks; k++, i = behind(b, i)) {
        block(b, i);
        if (blocks > 1)
            rd_step_part(b->s, k + 1 < blocks ? RD_PART_MORE : RD_PART_LAST);
    }
    return i;
}

static void run_round(bruck_t *b)
{
    int i = b->d, blocks;

    for (int left = blocks_of(b->n, b->d); left > 0; left -= blocks) {
        blocks = left < b->together ? left : b->together;
        (void)move(b, give, i, blocks);
        copy_own(b);
        i = move(b, take, i, blocks);
    }
}

static rd_steps_t *emit(const rd_sched_args_t *args)
{
    bruck_t b = {NULL, args->shape->nranks, args->rank, 0, args->together > 1 ? args->together : 1, 0};

    b.s = rd_steps_create(b.n);
    if (!b.s)
        return NULL;
    rd_steps_lane(b.s, 0);
    for (b.d = 1; b.d < b.n; b.d *= 2)
        run_round(&b);
    copy_own(&b); /* for a single rank, which sends nothing */
    return b.s;
}

static const char *excluded(const rd_sched_args_t *args)
{
    return args->shape->nranks > RANKS_MOST ? "needs at most 16384 ranks: its steps would be too many" : NULL;
}

/* ---- what it costs ---- */

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* A round's messages wait for those of the round before, and for one another. A node's last d ranks send to others in
 * the round of d, or all of them. */
static int work(const rd_count_t *c, rd_work_t *w)
{
    double n = c->n, sent = 0, messages = 0;
    int together = c->together > 1 ? c->together : 1;

    for (int d = 1; d < c->n; d *= 2) {
        int blocks = blocks_of(c->n, d);
        sent += blocks;
        messages += (blocks + together - 1) / together;
        w->leave += c->nnodes > 1 ? blocks / n * least(c->local, least(d, c->n - d)) : 0;
    }
    w->chunks = c->n;
    w->hops = w->again = messages;
    w->messages = 2 * messages;
    w->blocks = sent / messages;
    w->link = sent / n;
    rd_work_alike(w, c->n, sent / n, (1 + 2 * sent) / n, 0);
    return 0;
}

const rd_algo_t rd_algo_bruck = {
    .name = "bruck",
    .colls = 1u << RD_ALLTOALL,
    .excluded = excluded,
    .emit = emit,
    .joins = true,
    .relays = true,
    .work = work,
    .near = RD_PEERS_AHEAD,
};
