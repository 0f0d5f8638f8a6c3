/* Random collective calls through MPI_, which the interposer serves, and through PMPI_, which is the MPI's own: the
 * buffers of every rank must be equal afterwards, byte for byte, also where nothing was to be written. Ranks describe
 * one signature by different types, in place or not; counts may be zero, displacements in any order.
 *
 * With --nonblocking several are in flight at a time, on two communicators of one group and in between messages and
 * blocking calls; each rank waits for them in an order and by functions of its own. Types are freed at once.
 *
 *   mpirun -n N random [--seed S] [--count N] [--nonblocking 1]
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (1 << 18)
enum { BARRIER, BCAST, REDUCE, ALLREDUCE, RS_BLOCK, RS, SCAN, EXSCAN, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER,
       ALLGATHERV, ALLTOALL, ALLTOALLV, KINDS };
static const char *const names[KINDS] = {"barrier", "bcast", "reduce", "allreduce", "reduce_scatter_block",
    "reduce_scatter", "scan", "exscan", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv",
    "alltoall", "alltoallv"};

static int rank, nranks, failures;
static uint64_t common, own; /* random numbers: alike on all ranks, and this rank's */
static MPI_Op backwards;     /* of the user, does not commute */
static MPI_Comm comms[2];    /* of one group */

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Some ways to say `n` ints; the signature is the same. A used type is freed at once after the calls. */
typedef struct {
    MPI_Datatype type;
    int per; /* ints of one element */
    int derived;
} form_t;

static form_t draw_form(void)
{
    form_t f = {MPI_INT, 1, 1};
    MPI_Datatype t;
    int blocks[2] = {1, 1}, displs[2] = {2, 0};

    switch (next(&own) % 7) {
    case 0:
        MPI_Type_contiguous(2, MPI_INT, &f.type);
        f.per = 2;
        break;
    case 1:
        MPI_Type_vector(2, 1, 3, MPI_INT, &f.type);
        f.per = 2;
        break;
    case 2: /* backwards in memory */
        MPI_Type_indexed(2, blocks, displs, MPI_INT, &f.type);
        f.per = 2;
        break;
    case 3: /* holes between elements */
        MPI_Type_create_resized(MPI_INT, 0, 12, &f.type);
        break;
    case 4: /* the lower bound is not 0 */
        MPI_Type_create_resized(MPI_INT, -4, 8, &f.type);
        break;
    case 5:
        MPI_Type_dup(MPI_INT, &f.type);
        break;
    default:
        f.derived = 0;
    }
    if (f.derived) {
        MPI_Type_commit(&f.type);
        if (next(&own) % 3 == 0) {
            t = f.type;
            MPI_Type_dup(t, &f.type);
            MPI_Type_free(&t);
        }
    }
    return f;
}

static void drop(form_t *f)
{
    if (f->derived)
        MPI_Type_free(&f->type);
}

typedef struct {
    int kind, root, in_place, large;
    form_t send, recv; /* reductions: recv */
    MPI_Op op;
    int sendcount, recvcount, *sendcounts, *sdispls, *recvcounts, *rdispls;
    char *send_at, *recv_at;
    MPI_Comm comm;
    MPI_Request request;
} call_t;

/* How a call is made. */
enum { SERVED, BY_THE_MPI, STARTED };
#define MAKE(Name, name, ...)                                                                                          \
    (way == STARTED ? MPI_I##name(__VA_ARGS__, &c->request)                                                            \
                    : way == BY_THE_MPI ? PMPI_##Name(__VA_ARGS__) : MPI_##Name(__VA_ARGS__))
static int make(call_t *c, int way)
{
    static char room[BYTES];
    void *send = c->in_place ? MPI_IN_PLACE : c->send_at, *recv = c->recv_at;

    switch (c->kind) {
    case BARRIER:
        return MAKE(Barrier, barrier, c->comm);
    case BCAST:
        return MAKE(Bcast, bcast, recv, c->recvcount, c->recv.type, c->root, c->comm);
    case REDUCE:
        send = c->in_place && rank == c->root ? MPI_IN_PLACE : c->send_at;
        if (way == BY_THE_MPI && send == MPI_IN_PLACE) /* MPICH 4.0 itself crashes in place */
            send = memcpy(room, recv, sizeof(int) * (size_t)c->recvcount);
        return MAKE(Reduce, reduce, send, recv, c->recvcount, c->recv.type, c->op, c->root, c->comm);
    case ALLREDUCE:
        return MAKE(Allreduce, allreduce, send, recv, c->recvcount, c->recv.type, c->op, c->comm);
    case RS_BLOCK:
        return MAKE(Reduce_scatter_block, reduce_scatter_block, send, recv, c->recvcount, c->recv.type, c->op, c->comm);
    case RS:
        return MAKE(Reduce_scatter, reduce_scatter, send, recv, c->recvcounts, c->recv.type, c->op, c->comm);
    case SCAN:
        return MAKE(Scan, scan, send, recv, c->recvcount, c->recv.type, c->op, c->comm);
    case EXSCAN:
        return MAKE(Exscan, exscan, send, recv, c->recvcount, c->recv.type, c->op, c->comm);
    case GATHER:
    case GATHERV:
        send = c->in_place && rank == c->root ? MPI_IN_PLACE : c->send_at;
        if (c->kind == GATHERV)
            return MAKE(Gatherv, gatherv, send, c->sendcount, c->send.type, recv, c->recvcounts, c->rdispls, c->recv.type,
                        c->root, c->comm);
        if (rank != c->root) /* rubbish where it does not count */
            return MAKE(Gather, gather, send, c->sendcount, c->send.type, NULL, -3, MPI_DATATYPE_NULL, c->root, c->comm);
        return MAKE(Gather, gather, send, c->sendcount, c->send.type, recv, c->recvcount, c->recv.type, c->root,
                    c->comm);
    case SCATTER:
    case SCATTERV:
        recv = c->in_place && rank == c->root ? MPI_IN_PLACE : c->recv_at;
        if (c->kind == SCATTERV)
            return MAKE(Scatterv, scatterv, c->send_at, c->sendcounts, c->sdispls, c->send.type, recv, c->recvcount, c->recv.type,
                        c->root, c->comm);
        return MAKE(Scatter, scatter, c->send_at, c->sendcount, c->send.type, recv, c->recvcount, c->recv.type, c->root,
                    c->comm);
    case ALLGATHER:
        return MAKE(Allgather, allgather, send, c->in_place ? -1 : c->sendcount, c->in_place ? MPI_DATATYPE_NULL : c->send.type,
                    recv, c->recvcount, c->recv.type, c->comm);
    case ALLGATHERV:
        return MAKE(Allgatherv, allgatherv, send, c->sendcount, c->send.type, recv, c->recvcounts, c->rdispls, c->recv.type,
                    c->comm);
    case ALLTOALL:
        return MAKE(Alltoall, alltoall, send, c->sendcount, c->send.type, recv, c->recvcount, c->recv.type, c->comm);
    default:
        return MAKE(Alltoallv, alltoallv, send, c->sendcounts, c->sdispls, c->send.type, recv, c->recvcounts, c->rdispls,
                    c->recv.type, c->comm);
    }
}

/* Blocks of ints, ints[r] for rank r, in elements of `form`, in an order of this rank's own and with gaps. */
static void lay_out(const int *ints, const form_t *form, int *counts, int *displs)
{
    int at = 1, first = (int)(next(&own) % (unsigned)nranks);

    for (int i = 0; i < nranks; i++) {
        int r = (first + i) % nranks;
        counts[r] = ints[r] / form->per;
        displs[r] = at;
        at += counts[r] + 2 + (int)(next(&own) % 3);
    }
}

static void lengths(call_t *c, int block)
{
    int to_me[64], from_me[64], *ints = malloc(sizeof(int) * (size_t)nranks * (size_t)nranks);

    for (int i = 0; i < nranks * nranks; i++)
        ints[i] = 2 * (int)(next(&common) % (unsigned)(block + 1)) * (next(&common) % 4 != 0);
    for (int r = 0; r < nranks; r++) {
        if (c->kind != ALLTOALLV) /* one length for each rank, alike everywhere */
            from_me[r] = to_me[r] = ints[r];
        else {
            from_me[r] = ints[rank * nranks + r];
            to_me[r] = ints[r * nranks + rank];
            if (c->in_place) /* what goes and what comes are equally long */
                from_me[r] = to_me[r] = rank < r ? ints[rank * nranks + r] : ints[r * nranks + rank];
        }
    }
    lay_out(from_me, &c->send, c->sendcounts, c->sdispls);
    lay_out(to_me, &c->recv, c->recvcounts, c->rdispls);
    if (c->kind == GATHERV || c->kind == ALLGATHERV)
        c->sendcount = ints[rank] / c->send.per;
    if (c->kind == SCATTERV)
        c->recvcount = ints[rank] / c->recv.per;
    if (c->kind == RS) {
        for (int r = 0; r < nranks; r++)
            c->recvcounts[r] = ints[r];
    }
    free(ints);
}

static void later(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++) /* associative, but does not commute: keeps the left one, unless it is 0 */
        ((int *)inout)[i] = ((int *)in)[i] ? ((int *)in)[i] : ((int *)inout)[i];
}

static void draw(call_t *c)
{
    static const MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_BXOR, MPI_LAND, MPI_PROD};
    int block = next(&common) % 5 ? (int)(next(&common) % 40) : (int)(next(&common) % 2000);

    c->kind = (int)(next(&common) % KINDS);
    c->root = (int)(next(&common) % (unsigned)nranks);
    c->in_place = next(&common) % 3 == 0;
    c->op = next(&common) % 5 ? ops[next(&common) % 6] : backwards;
    c->send = draw_form();
    c->recv = draw_form();
    if (c->kind >= REDUCE && c->kind <= EXSCAN) { /* the same type everywhere */
        drop(&c->recv);
        c->recv = (form_t){MPI_INT, 1, 0};
    }
    c->sendcount = 2 * block / c->send.per;
    c->recvcount = 2 * block / c->recv.per;
    lengths(c, block / 4);
}

static int differ(const call_t *c, int n, uint64_t seed, const int *served, const int *by_the_mpi, int words)
{
    int i = 0;

    if (memcmp(served, by_the_mpi, sizeof(int) * (size_t)words) == 0)
        return 0;
    while (served[i] == by_the_mpi[i])
        i++;
    printf("rank %d: seed %llu, call %d, %s%s, root %d, counts %d %d: word %d is %d, the MPI says %d\n", rank,
           (unsigned long long)seed, n, names[c->kind], c->in_place ? " in place" : "", c->root, c->sendcount,
           c->recvcount, i, served[i], by_the_mpi[i]);
    failures++;
    return 1;
}

/* Fills the buffers, and places the call's in those of a way. */
static void fill(int *send, int *before, int words)
{
    for (int i = 0; i < words; i++) {
        send[i] = (int)(next(&own) % 5);
        before[i] = -1 - (int)(next(&own) % 1000);
    }
}
static void place(call_t *c, int *send, int *result, int words)
{
    int scatters = c->kind == SCATTERV || c->kind == SCATTER;

    c->send_at = (char *)(scatters ? result : send) + 64; /* room for blocks that begin before the buffer */
    c->recv_at = (char *)(result + (scatters ? words / 2 : 0)) + 64;
}

static void check(call_t *c, int n, uint64_t seed)
{
    static int buffers[4][BYTES / 4];
    int *send = buffers[0], *results[2] = {buffers[1], buffers[2]}, *before = buffers[3];

    fill(send, before, BYTES / 4);
    for (int way = SERVED; way <= BY_THE_MPI; way++) {
        memcpy(results[way], before, BYTES);
        place(c, send, results[way], BYTES / 4);
        if (make(c, way) != MPI_SUCCESS)
            failures++;
    }
    differ(c, n, seed, results[0], results[1], BYTES / 4);
}

/* ---- several at a time ---- */

#define MOST 6

static void forget(MPI_Request *requests, int n, int *left)
{
    *left = 0;
    for (int i = 0; i < n; i++)
        *left += requests[i] != MPI_REQUEST_NULL;
}

/* Waits for all, each time by another function. */
static void complete(MPI_Request *requests, int n)
{
    int left = 1, flag, index, count, indices[2 * MOST];
    MPI_Status statuses[2 * MOST];

    for (forget(requests, n, &left); left; forget(requests, n, &left)) {
        int i = (int)(next(&own) % (unsigned)n);
        switch (next(&own) % 9) {
        case 0:
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            break;
        case 1:
            MPI_Test(&requests[i], &flag, &statuses[0]);
            break;
        case 2:
            MPI_Waitany(n, requests, &index, &statuses[0]);
            break;
        case 3:
            MPI_Testany(n, requests, &index, &flag, MPI_STATUS_IGNORE);
            break;
        case 4:
            MPI_Waitsome(n, requests, &count, indices, statuses);
            break;
        case 5:
            MPI_Testsome(n, requests, &count, indices, MPI_STATUSES_IGNORE);
            break;
        case 6:
            MPI_Testall(n, requests, &flag, statuses);
            break;
        case 7:
            if (requests[i] != MPI_REQUEST_NULL)
                MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
            break;
        default:
            if (next(&own) % 3 == 0)
                MPI_Waitall(n, requests, statuses);
        }
    }
}

/* The order of calls is the same on each of the two communicators, but not that between them. */
static void start_all(call_t *calls, int n)
{
    int first = (int)(next(&own) % 2);

    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < n; i++) {
            if (calls[i].comm == comms[turn ^ first] && make(&calls[i], STARTED) != MPI_SUCCESS)
                failures++;
        }
    }
}

/* Calls after which rondo serves nonblocking ones, too: Open MPI's own go wrong where ranks describe one signature by
 * different types. */
static void warm(void)
{
    int one = 1, sum;
    MPI_Request request;

    for (int i = 0; i < 24; i++) {
        MPI_Ibarrier(comms[i % 2], &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[i % 2]);
    }
}

static void batch(int at, uint64_t seed)
{
    static int send[MOST][BYTES / 4], before[BYTES / 4], results[2][MOST][BYTES / 4];
    static int lists[MOST][4][64];
    int n = 1 + (int)(next(&common) % MOST), blocking = next(&common) % 3 == 0, got = -1, one = 1, sum = 0;
    MPI_Request requests[MOST + 2];
    call_t calls[MOST];

    for (int i = 0; i < n; i++) {
        calls[i] = (call_t){.sendcounts = lists[i][0], .sdispls = lists[i][1], .recvcounts = lists[i][2],
                            .rdispls = lists[i][3]};
        draw(&calls[i]);
        calls[i].comm = comms[next(&common) % 2];
        fill(send[i], before, BYTES / 4);
        memcpy(results[SERVED][i], before, BYTES);
        memcpy(results[BY_THE_MPI][i], before, BYTES);
        place(&calls[i], send[i], results[BY_THE_MPI][i], BYTES / 4);
        if (make(&calls[i], BY_THE_MPI) != MPI_SUCCESS)
            failures++;
        place(&calls[i], send[i], results[SERVED][i], BYTES / 4);
    }
    MPI_Irecv(&got, 1, MPI_INT, (rank + 1) % nranks, 3, MPI_COMM_WORLD, &requests[n]);
    start_all(calls, n);
    for (int i = 0; i < n; i++) {
        requests[i] = calls[i].request;
        drop(&calls[i].send);
        drop(&calls[i].recv);
    }
    if (blocking)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[0]);
    MPI_Isend(&rank, 1, MPI_INT, (rank + nranks - 1) % nranks, 3, MPI_COMM_WORLD, &requests[n + 1]);
    complete(requests, n + 2);
    if (got != (rank + 1) % nranks || (blocking && sum != nranks)) {
        printf("rank %d: seed %llu, call %d: message %d, sum %d\n", rank, (unsigned long long)seed, at, got, sum);
        failures++;
    }
    for (int i = 0; i < n; i++)
        differ(&calls[i], at + i, seed, results[SERVED][i], results[BY_THE_MPI][i], BYTES / 4);
}

int main(int argc, char **argv)
{
    uint64_t seed = 20;
    int count = 400, all = 0, nonblocking = 0;
    int lists[4][64];

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--count") == 0)
            count = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--nonblocking") == 0)
            nonblocking = atoi(argv[i + 1]);
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    MPI_Op_create(later, 0, &backwards);
    comms[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    if (!rank)
        printf("random: seed %llu, %d calls, %d ranks\n", (unsigned long long)seed, count, nranks);
    common = seed;
    own = seed * 1000 + (uint64_t)rank;
    if (nonblocking)
        warm();
    for (int n = 0; n < count && failures < 5; n++) {
        if (nonblocking) {
            batch(n, seed);
            continue;
        }
        call_t c = {.comm = MPI_COMM_WORLD, .sendcounts = lists[0], .sdispls = lists[1], .recvcounts = lists[2], .rdispls = lists[3]};
        draw(&c);
        check(&c, n, seed);
        drop(&c.send);
        drop(&c.recv);
    }
    MPI_Op_free(&backwards);
    MPI_Comm_free(&comms[1]);
    PMPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all != 0;
}
