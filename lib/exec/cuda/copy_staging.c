/* Collectives by copy engines out of buffers that nobody has registered: each rank copies what others need into staging
 * memory in its window, which all ranks have mapped, and they copy it from there.
 *
 * Staging memory is where protocol SIMPLE has its slices, and messages have theirs: plain data, which counters in the
 * control page announce, so that nobody looks there but a kernel that has been told to. Operations of a communicator
 * come one after the other, and a kernel of slices is over when it has taken all that was sent to it. A peer that
 * already runs the next operation may write slices here, but it does not do so before the last meeting of this one,
 * behind which nothing is staged any more.
 *
 * What does not fit is moved in turns, by halves of that memory:
 *
 *     put 0 | meet | take 0, put 1 | meet | take 1, put 2 | meet | take 2 ... | meet
 *
 * A meeting says that what was put before is there, and also that what was taken before has been taken: so put 2 finds
 * the half of turn 0 free. What stands between two meetings is done side by side, because one goes over the links and
 * the other stays within the GPU. Here, too, no rank writes into another one's memory, and a rank that gives up is
 * noticed by those who still read from it (copy_engine.c).
 *
 *   allgather, gather     a rank puts its block, for all or for the root
 *   alltoall, scatter     a block for each peer, which lie one behind the other
 *   broadcast             the root puts a part of the message as long as a half. Among more than two ranks each takes a
 *                         part of that, puts it, and after a further meeting takes the other parts from the ranks that
 *                         have them
 */
#include "exec/cuda/copy_engine.h"

static char *half_of(const rd_copies_t *c, int rank, size_t turn)
{
    return c->cuda->k.window[rank] + rd_window_staging(c->cuda) + turn % 2 * (c->cuda->limits.staging / 2);
}

static void copy(rd_copies_t *c, char *to, const char *from, size_t bytes)
{
    rd_copies_copy(c, to, from, bytes, c->call->stream);
}

static bool moves(const rd_copies_t *c, int from, int to)
{
    const rd_coll_desc_t *desc = &c->call->desc;

    return desc->coll == RD_GATHER ? to == desc->root : desc->coll == RD_SCATTER ? from == desc->root : true;
}

/* Returns which of the sender's blocks is the receiver's. */
static size_t slot_of(const rd_copies_t *c, int from, int to)
{
    const int n = c->cuda->k.nranks;

    return rd_copies_for_each(c->call->desc.coll) ? (size_t)((to - from - 1 + n) % n) : 0;
}

/* ---- blocks ---- */

typedef struct turn {
    size_t number, at, bytes; /* which bytes of each block it moves */
    size_t most;              /* bytes of a turn, which all but the last have */
} turn_t;

static const char *given(const rd_copies_t *c, int to)
{
    return (const char *)c->call->in + (rd_copies_for_each(c->call->desc.coll) ? (size_t)to * c->bytes : 0);
}

static char *taken(const rd_copies_t *c, int from)
{
    return (char *)c->call->out + (c->call->desc.coll == RD_SCATTER ? 0 : (size_t)from * c->bytes);
}

static void put(rd_copies_t *c, turn_t t, cudaStream_t stream)
{
    const int n = c->cuda->k.nranks, rank = c->cuda->k.rank;

    for (int i = 1; i < n; i++) {
        const int to = rd_copies_behind(c, i);

        if (!moves(c, rank, to))
            continue;
        rd_copies_copy(c, half_of(c, rank, t.number) + slot_of(c, rank, to) * t.most, given(c, to) + t.at, t.bytes,
                       stream);
        if (!rd_copies_for_each(c->call->desc.coll)) /* the same for all */
            return;
    }
}

static void take(rd_copies_t *c, turn_t t)
{
    const int n = c->cuda->k.nranks, rank = c->cuda->k.rank;

    for (int i = 1; i < n; i++) {
        const int from = rd_copies_behind(c, i);

        if (moves(c, from, rank))
            copy(c, taken(c, from) + t.at, half_of(c, from, t.number) + slot_of(c, from, rank) * t.most, t.bytes);
    }
}

static turn_t turn_of(const rd_copies_t *c, size_t number)
{
    turn_t t = {.number = number, .most = rd_copies_turn(&c->cuda->limits, c->call->desc.coll)};

    t.at = number * t.most;
    t.bytes = t.at >= c->bytes ? 0 : c->bytes - t.at < t.most ? c->bytes - t.at : t.most;
    return t;
}

/* Between two meetings. A rank of a gather or scatter has but one of the two to do. */
static void take_and_put(rd_copies_t *c, turn_t t, turn_t next)
{
    const rd_coll_t coll = c->call->desc.coll;
    const bool both = next.bytes && (coll == RD_ALLGATHER || coll == RD_ALLTOALL);
    rd_fork_t fork;

    if (!both || !c->cuda->put_stream || c->result != RONDO_SUCCESS) {
        take(c, t);
        put(c, next, c->call->stream);
        return;
    }
    if (!rd_copies_fork(c, c->cuda->put_stream, &fork))
        return;
    put(c, next, fork.beside);
    rd_copies_forked(c, &fork);
    take(c, t);
    rd_copies_joined(c, &fork);
}

static void blocks(rd_copies_t *c)
{
    const int rank = c->cuda->k.rank;

    put(c, turn_of(c, 0), c->call->stream);
    for (size_t i = 0; turn_of(c, i).bytes; i++) {
        rd_copies_barrier(c, i > 0);
        take_and_put(c, turn_of(c, i), turn_of(c, i + 1));
    }
    rd_copies_barrier(c, true);
    if (moves(c, rank, rank)) /* now that nobody waits for this rank */
        copy(c, taken(c, rank), given(c, rank), c->bytes);
}

/* ---- broadcast ---- */

/* Returns the number of this rank's part: the root has none. */
static int part_number(const rd_copies_t *c, int rank)
{
    const int n = c->cuda->k.nranks;

    return (rank - c->call->desc.root - 1 + n) % n;
}

/* The parts of a turn, by way of the ranks that are not the root. */
static void spread(rd_copies_t *c, turn_t t)
{
    const int n = c->cuda->k.nranks, rank = c->cuda->k.rank, root = c->call->desc.root;
    size_t at, bytes;

    if (rank != root) {
        rd_copies_part(t.bytes, n - 1, part_number(c, rank), &at, &bytes);
        copy(c, half_of(c, rank, t.number) + at, half_of(c, root, t.number) + at, bytes);
    }
    rd_copies_barrier(c, true);
    for (int i = 0; i < n && rank != root; i++) {
        const int from = rd_copies_behind(c, i);

        if (from == root)
            continue;
        rd_copies_part(t.bytes, n - 1, part_number(c, from), &at, &bytes);
        copy(c, (char *)c->call->out + t.at + at, half_of(c, from, t.number) + at, bytes);
    }
}

static void broadcast(rd_copies_t *c)
{
    const int n = c->cuda->k.nranks, rank = c->cuda->k.rank, root = c->call->desc.root;

    for (size_t i = 0; turn_of(c, i).bytes; i++) {
        const turn_t t = turn_of(c, i);

        if (rank == root)
            copy(c, half_of(c, root, i), (const char *)c->call->in + t.at, t.bytes);
        rd_copies_barrier(c, i > 0);
        if (n > 2)
            spread(c, t);
        else if (rank != root)
            copy(c, (char *)c->call->out + t.at, half_of(c, root, i), t.bytes);
    }
    rd_copies_barrier(c, true);
    if (rank == root)
        copy(c, c->call->out, c->call->in, c->bytes);
}

void rd_copies_staging(rd_copies_t *c)
{
    if (c->call->desc.coll == RD_BROADCAST)
        broadcast(c);
    else
        blocks(c);
}
