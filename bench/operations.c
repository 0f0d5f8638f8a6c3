/* The operations that can be measured: for each its layout, its names in other people's tables, and its call. A new
 * operation is one row here, one function below, and one in peer_mpi.c. */
#include <stdlib.h>
#include <string.h>

#include "perf.h"

static int allreduce(const job_t *j)
{
    return rondo_allreduce(j->send, j->recv, j->count, j->type, j->reduction, j->comm, j->stream);
}

static int reduce(const job_t *j)
{
    return rondo_reduce(j->send, j->recv, j->count, j->type, j->reduction, j->root, j->comm, j->stream);
}

static int broadcast(const job_t *j)
{
    return rondo_broadcast(j->send, j->recv, j->count, j->type, j->root, j->comm, j->stream);
}

static int allgather(const job_t *j)
{
    return rondo_allgather(j->send, j->recv, j->count, j->type, j->comm, j->stream);
}

static int allgatherv(const job_t *j)
{
    return rondo_allgatherv(j->send, j->recvcounts[j->rank], j->recv, j->recvcounts, j->rdispls, j->type, j->comm,
                            j->stream);
}

static int reduce_scatter(const job_t *j)
{
    return rondo_reduce_scatter(j->send, j->recv, j->count, j->type, j->reduction, j->comm, j->stream);
}

static int reduce_scatterv(const job_t *j)
{
    return rondo_reduce_scatterv(j->send, j->recv, j->sendcounts, j->type, j->reduction, j->comm, j->stream);
}

static int alltoall(const job_t *j)
{
    return rondo_alltoall(j->send, j->recv, j->count, j->type, j->comm, j->stream);
}

static int alltoallv(const job_t *j)
{
    return rondo_alltoallv(j->send, j->sendcounts, j->sdispls, j->recv, j->recvcounts, j->rdispls, j->type, j->comm,
                           j->stream);
}

static int gather(const job_t *j)
{
    return rondo_gather(j->send, j->recv, j->count, j->type, j->root, j->comm, j->stream);
}

static int gatherv(const job_t *j)
{
    return rondo_gatherv(j->send, j->recvcounts[j->rank], j->recv, j->recvcounts, j->rdispls, j->type, j->root, j->comm,
                         j->stream);
}

static int scatter(const job_t *j)
{
    return rondo_scatter(j->send, j->recv, j->count, j->type, j->root, j->comm, j->stream);
}

static int scatterv(const job_t *j)
{
    return rondo_scatterv(j->send, j->sendcounts, j->sdispls, j->recv, j->sendcounts[j->rank], j->type, j->root,
                          j->comm, j->stream);
}

/* To the next rank and from the one before. */
static int shift(const job_t *j)
{
    int right = (j->rank + 1) % j->nranks, left = (j->rank + j->nranks - 1) % j->nranks;
    int error = rondo_group_start(), end;

    for (int i = 0; i < j->messages && !error; i++) {
        error = rondo_send(j->send, j->count, j->type, right, j->comm, j->stream);
        if (!error)
            error = rondo_recv(j->recv, j->count, j->type, left, j->comm, j->stream);
    }
    end = rondo_group_end();
    return error ? error : end;
}

static int pingpong(const job_t *j)
{
    int error;

    if (j->rank > 1)
        return 0;
    if (j->rank == 0) {
        error = rondo_send(j->send, j->count, j->type, 1, j->comm, j->stream);
        return error ? error : (int)rondo_recv(j->recv, j->count, j->type, 1, j->comm, j->stream);
    }
    error = rondo_recv(j->recv, j->count, j->type, 0, j->comm, j->stream);
    return error ? error : (int)rondo_send(j->send, j->count, j->type, 0, j->comm, j->stream);
}

static int barrier(const job_t *j)
{
    return rondo_barrier(j->comm, j->stream);
}

int job_in_pieces(const job_t *job)
{
    const size_t size = rondo_type_size(job->type);
    job_t piece = *job;
    int error = job->group_start ? job->group_start() : 0, end = 0;

    for (size_t i = 0, at = 0; i < (size_t)job->pieces && !error; i++, at += piece.count) {
        piece.count = job->count * (i + 1) / (size_t)job->pieces - at;
        piece.send = (char *)job->send + at * size;
        piece.recv = (char *)job->recv + at * size;
        error = job->piece(&piece);
    }
    if (job->group_end)
        end = job->group_end();
    return error ? error : end;
}

/* clang-format off */
const op_t operations[] = {
    {.name = "allreduce", .alias = "all_reduce",
     .osu_title = "Allreduce Latency Test", .nccl_title = "all_reduce_perf",
     .layout = LAYOUT_ALL, .reduces = true, .per_call = 1, .call = allreduce,
     .help = "every rank gets the sum"},
    {.name = "reduce",
     .osu_title = "Reduce Latency Test", .nccl_title = "reduce_perf",
     .layout = LAYOUT_TO_ROOT, .reduces = true, .rooted = true, .per_call = 1, .call = reduce,
     .help = "the root gets the sum"},
    {.name = "broadcast", .alias = "bcast",
     .osu_title = "Broadcast Latency Test", .nccl_title = "broadcast_perf",
     .layout = LAYOUT_BCAST, .rooted = true, .in_place_only = true, .per_call = 1, .call = broadcast,
     .help = "every rank gets the root's (in place, as MPI's)"},
    {.name = "allgather", .alias = "all_gather",
     .osu_title = "Allgather Latency Test", .nccl_title = "all_gather_perf",
     .layout = LAYOUT_COLLECT, .per_call = 1, .call = allgather,
     .help = "every rank gets every rank's"},
    {.name = "allgatherv",
     .osu_title = "Allgatherv Latency Test", .nccl_title = "all_gather_v_perf",
     .layout = LAYOUT_COLLECT, .ragged = true, .per_call = 1, .call = allgatherv,
     .help = "the same, counts by rank"},
    {.name = "reduce_scatter", .alias = "reduce-scatter",
     .osu_title = "Reduce_scatter Latency Test", .nccl_title = "reduce_scatter_perf",
     .layout = LAYOUT_SHARE, .reduces = true, .per_call = 1, .call = reduce_scatter,
     .help = "every rank gets its block of the sum"},
    {.name = "reduce_scatterv",
     .osu_title = "Reduce_scatter Latency Test", .nccl_title = "reduce_scatter_v_perf",
     .layout = LAYOUT_SHARE, .reduces = true, .ragged = true, .per_call = 1, .call = reduce_scatterv,
     .help = "the same, counts by rank"},
    {.name = "alltoall", .alias = "all_to_all",
     .osu_title = "All-to-All Personalized Exchange Latency Test", .nccl_title = "alltoall_perf",
     .layout = LAYOUT_EXCHANGE, .per_call = 1, .call = alltoall,
     .help = "a block from every rank to every rank"},
    {.name = "alltoallv",
     .osu_title = "All-to-Allv Personalized Exchange Latency Test", .nccl_title = "alltoallv_perf",
     .layout = LAYOUT_EXCHANGE, .ragged = true, .per_call = 1, .call = alltoallv,
     .help = "the same, counts by pair"},
    {.name = "gather",
     .osu_title = "Gather Latency Test", .nccl_title = "gather_perf",
     .layout = LAYOUT_GATHER, .rooted = true, .per_call = 1, .call = gather,
     .help = "the root gets every rank's"},
    {.name = "gatherv",
     .osu_title = "Gatherv Latency Test", .nccl_title = "gather_v_perf",
     .layout = LAYOUT_GATHER, .rooted = true, .ragged = true, .per_call = 1, .call = gatherv,
     .help = "the same, counts by rank"},
    {.name = "scatter",
     .osu_title = "Scatter Latency Test", .nccl_title = "scatter_perf",
     .layout = LAYOUT_SCATTER, .rooted = true, .per_call = 1, .call = scatter,
     .help = "every rank gets its block of the root's"},
    {.name = "scatterv",
     .osu_title = "Scatterv Latency Test", .nccl_title = "scatter_v_perf",
     .layout = LAYOUT_SCATTER, .rooted = true, .ragged = true, .per_call = 1, .call = scatterv,
     .help = "the same, counts by rank"},
    {.name = "sendrecv", .alias = "send",
     .osu_title = "Sendrecv Latency Test", .nccl_title = "sendrecv_perf",
     .layout = LAYOUT_RING, .per_call = 1, .call = shift,
     .help = "send to the next rank, receive from the one before, in a group"},
    {.name = "bandwidth", .alias = "bibw",
     .osu_title = "Bi-Directional Bandwidth Test", .nccl_title = "bandwidth_perf",
     .layout = LAYOUT_RING, .windowed = true, .per_call = 1, .call = shift,
     .help = "--window such messages in a group: a message's time"},
    {.name = "pingpong", .alias = "latency",
     .osu_title = "Latency Test", .nccl_title = "pingpong_perf",
     .layout = LAYOUT_PAIR, .per_call = 0.5, .call = pingpong,
     .help = "rank 0 to 1 and back: half of the round trip"},
    {.name = "barrier",
     .osu_title = "Barrier Latency Test", .nccl_title = "barrier_perf",
     .layout = LAYOUT_NONE, .per_call = 1, .call = barrier,
     .help = "no data"},
    {.name = "call",
     .osu_title = "Call Path Test", .nccl_title = "call_perf",
     .layout = LAYOUT_NONE, .per_call = 1, .special = special_call,
     .help = "what the library's own path adds to a bare exchange of 8 bytes; 2 ranks"},
    {.name = "create",
     .osu_title = "Create Test", .nccl_title = "create_perf",
     .layout = LAYOUT_NONE, .per_call = 1, .special = special_create,
     .help = "making a communicator: time, and memory held"},
    {.name = NULL},
};
/* clang-format on */

const op_t *op_find(const char *name)
{
    for (const op_t *op = operations; op->name; op++)
        if (strcmp(name, op->name) == 0 || (op->alias && strcmp(name, op->alias) == 0))
            return op;
    return NULL;
}

bool op_in_place_possible(const op_t *op)
{
    return op->layout <= LAYOUT_SCATTER && op->layout != LAYOUT_EXCHANGE;
}

double op_bus_factor(const op_t *op, int nranks)
{
    double others = nranks > 1 ? (double)(nranks - 1) / nranks : 1;

    switch (op->layout) {
    case LAYOUT_ALL:
        return 2 * others;
    case LAYOUT_COLLECT:
    case LAYOUT_SHARE:
    case LAYOUT_EXCHANGE:
    case LAYOUT_GATHER:
    case LAYOUT_SCATTER:
        return others;
    default:
        return 1;
    }
}

/* The block from rank `from` to rank `to`. Skewed: even ranks half of the count, odd ones one and a half. */
static size_t block(const job_t *job, int from, int to)
{
    bool by_receiver = job->op->layout == LAYOUT_SHARE || job->op->layout == LAYOUT_SCATTER;
    int key = job->op->layout == LAYOUT_EXCHANGE ? from + to : by_receiver ? to : from;

    if (!job->skew || !job->op->ragged)
        return job->count;
    return key % 2 ? job->count + job->count / 2 : job->count - job->count / 2;
}

static void fill_counts(job_t *job)
{
    size_t sent = 0, received = 0;

    for (int r = 0; r < job->nranks; r++) {
        job->sdispls[r] = sent;
        job->rdispls[r] = received;
        sent += job->sendcounts[r] = block(job, job->rank, r);
        received += job->recvcounts[r] = block(job, r, job->rank);
    }
}

/* Returns the elements of all blocks: skewed, an odd number of them has no more than the even ones leave. */
static size_t total(const job_t *job, bool blocks)
{
    const size_t last = (size_t)job->nranks - 1;

    if (!blocks)
        return job->count;
    if (job->op->layout == LAYOUT_COLLECT || job->op->layout == LAYOUT_GATHER)
        return job->rdispls[last] + job->recvcounts[last];
    if (job->op->layout == LAYOUT_SHARE || job->op->layout == LAYOUT_SCATTER)
        return job->sdispls[last] + job->sendcounts[last];
    return job->count * (size_t)job->nranks;
}

void job_size(job_t *job, size_t bytes, bool nccl_meaning)
{
    size_t size = rondo_type_size(job->type), elements = bytes / size, n = (size_t)job->nranks;
    bool root = job->rank == job->root, split = job->op->layout == LAYOUT_SHARE;
    bool blocks = job->op->layout >= LAYOUT_COLLECT && job->op->layout <= LAYOUT_SCATTER;

    job->count = (nccl_meaning && blocks) || split ? elements / n : elements;
    if (split && !nccl_meaning && job->count == 0 && elements > 0)
        job->count = 1;
    if (job->op->layout == LAYOUT_NONE)
        job->count = 0;
    fill_counts(job);
    job->moved = total(job, blocks) * size;
    job->bytes = nccl_meaning || split ? job->moved : job->count * size;
    job->nsend = job->nrecv = job->count;
    switch (job->op->layout) {
    case LAYOUT_TO_ROOT:
        job->nrecv = root ? job->count : 0;
        break;
    case LAYOUT_COLLECT:
    case LAYOUT_GATHER:
        job->nsend = job->recvcounts[job->rank];
        job->nrecv = job->op->layout == LAYOUT_COLLECT || root ? job->rdispls[n - 1] + job->recvcounts[n - 1] : 0;
        break;
    case LAYOUT_SHARE:
    case LAYOUT_SCATTER:
        job->nsend = job->op->layout == LAYOUT_SHARE || root ? job->sdispls[n - 1] + job->sendcounts[n - 1] : 0;
        job->nrecv = job->sendcounts[job->rank];
        break;
    case LAYOUT_EXCHANGE:
        job->nsend = job->sdispls[n - 1] + job->sendcounts[n - 1];
        job->nrecv = job->rdispls[n - 1] + job->recvcounts[n - 1];
        break;
    default:
        break;
    }
}

/* Where this rank's block begins in rank `from`'s input of an all-to-all. */
static size_t offset_of_me(const job_t *job, int from)
{
    size_t offset = 0;

    for (int r = 0; r < job->rank; r++)
        offset += block(job, from, r);
    return offset;
}

bool job_segment(const job_t *job, int i, segment_t *segment)
{
    bool root = job->rank == job->root;
    int n = job->nranks;

    *segment = (segment_t){.count = job->count};
    switch (job->op->layout) {
    case LAYOUT_TO_ROOT:
    case LAYOUT_ALL:
        segment->from = FROM_ALL;
        return i == 0 && (root || job->op->layout == LAYOUT_ALL);
    case LAYOUT_BCAST:
        segment->from = job->root;
        return i == 0;
    case LAYOUT_GATHER:
    case LAYOUT_COLLECT:
    case LAYOUT_EXCHANGE:
        if (i == n || (job->op->layout == LAYOUT_GATHER && !root))
            return false;
        *segment = (segment_t){.at = job->rdispls[i], .count = job->recvcounts[i], .from = i};
        segment->first = job->op->layout == LAYOUT_EXCHANGE ? offset_of_me(job, i) : 0;
        return true;
    case LAYOUT_SHARE:
    case LAYOUT_SCATTER:
        *segment = (segment_t){.count = job->sendcounts[job->rank], .first = job->sdispls[job->rank]};
        segment->from = job->op->layout == LAYOUT_SHARE ? FROM_ALL : job->root;
        return i == 0;
    case LAYOUT_RING:
        segment->from = (job->rank + n - 1) % n;
        return i == 0;
    case LAYOUT_PAIR:
        segment->from = 1 - job->rank;
        return i == 0 && job->rank < 2;
    default:
        return false;
    }
}

void job_open(job_t *job, const options_t *options, bool in_place)
{
    size_t n = (size_t)world.nranks;
    size_t *counts = calloc(4 * n, sizeof *counts);

    if (!counts)
        die(NULL, "no memory for %zu counts", 4 * n);
    *job = (job_t){.op = options->op,
                   .type = options->type,
                   .reduction = options->reduction,
                   .root = options->root,
                   .rank = world.rank,
                   .pieces = options->pieces,
                   .messages = options->op->windowed ? options->window : 1,
                   .nranks = world.nranks,
                   .in_place = in_place,
                   .skew = options->skew,
                   .stream = device_stream(),
                   .sendcounts = counts,
                   .sdispls = counts + n,
                   .recvcounts = counts + 2 * n,
                   .rdispls = counts + 3 * n};
}

void job_close(job_t *job)
{
    free(job->sendcounts);
}
