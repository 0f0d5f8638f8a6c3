/* Random collective calls through MPI_, which the interposer serves, and through PMPI_, which is the MPI's own: the
 * buffers of every rank must be equal afterwards, byte for byte, also where nothing was to be written. Ranks describe
 * one signature by different types, in place or not; counts may be zero, displacements in any order.
 *
 *   mpirun -n N random [--seed S] [--count N]
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
} call_t;

#define BOTH(Name, ...) (own_way ? PMPI_##Name(__VA_ARGS__) : MPI_##Name(__VA_ARGS__))
static int make(const call_t *c, int own_way)
{
    static char room[BYTES];
    void *send = c->in_place ? MPI_IN_PLACE : c->send_at, *recv = c->recv_at;

    switch (c->kind) {
    case BARRIER:
        return BOTH(Barrier, MPI_COMM_WORLD);
    case BCAST:
        return BOTH(Bcast, recv, c->recvcount, c->recv.type, c->root, MPI_COMM_WORLD);
    case REDUCE:
        send = c->in_place && rank == c->root ? MPI_IN_PLACE : c->send_at;
        if (own_way && send == MPI_IN_PLACE) /* MPICH 4.0 itself crashes in place */
            send = memcpy(room, recv, sizeof(int) * (size_t)c->recvcount);
        return BOTH(Reduce, send, recv, c->recvcount, c->recv.type, c->op, c->root, MPI_COMM_WORLD);
    case ALLREDUCE:
        return BOTH(Allreduce, send, recv, c->recvcount, c->recv.type, c->op, MPI_COMM_WORLD);
    case RS_BLOCK:
        return BOTH(Reduce_scatter_block, send, recv, c->recvcount, c->recv.type, c->op, MPI_COMM_WORLD);
    case RS:
        return BOTH(Reduce_scatter, send, recv, c->recvcounts, c->recv.type, c->op, MPI_COMM_WORLD);
    case SCAN:
        return BOTH(Scan, send, recv, c->recvcount, c->recv.type, c->op, MPI_COMM_WORLD);
    case EXSCAN:
        return BOTH(Exscan, send, recv, c->recvcount, c->recv.type, c->op, MPI_COMM_WORLD);
    case GATHER:
    case GATHERV:
        send = c->in_place && rank == c->root ? MPI_IN_PLACE : c->send_at;
        if (c->kind == GATHERV)
            return BOTH(Gatherv, send, c->sendcount, c->send.type, recv, c->recvcounts, c->rdispls, c->recv.type,
                        c->root, MPI_COMM_WORLD);
        if (rank != c->root) /* rubbish where it does not count */
            return BOTH(Gather, send, c->sendcount, c->send.type, NULL, -3, MPI_DATATYPE_NULL, c->root, MPI_COMM_WORLD);
        return BOTH(Gather, send, c->sendcount, c->send.type, recv, c->recvcount, c->recv.type, c->root,
                    MPI_COMM_WORLD);
    case SCATTER:
    case SCATTERV:
        recv = c->in_place && rank == c->root ? MPI_IN_PLACE : c->recv_at;
        if (c->kind == SCATTERV)
            return BOTH(Scatterv, c->send_at, c->sendcounts, c->sdispls, c->send.type, recv, c->recvcount, c->recv.type,
                        c->root, MPI_COMM_WORLD);
        return BOTH(Scatter, c->send_at, c->sendcount, c->send.type, recv, c->recvcount, c->recv.type, c->root,
                    MPI_COMM_WORLD);
    case ALLGATHER:
        return BOTH(Allgather, send, c->in_place ? -1 : c->sendcount, c->in_place ? MPI_DATATYPE_NULL : c->send.type,
                    recv, c->recvcount, c->recv.type, MPI_COMM_WORLD);
    case ALLGATHERV:
        return BOTH(Allgatherv, send, c->sendcount, c->send.type, recv, c->recvcounts, c->rdispls, c->recv.type,
                    MPI_COMM_WORLD);
    case ALLTOALL:
        return BOTH(Alltoall, send, c->sendcount, c->send.type, recv, c->recvcount, c->recv.type, MPI_COMM_WORLD);
    default:
        return BOTH(Alltoallv, send, c->sendcounts, c->sdispls, c->send.type, recv, c->recvcounts, c->rdispls,
                    c->recv.type, MPI_COMM_WORLD);
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

static void check(call_t *c, int n, uint64_t seed)
{
    static int buffers[4][BYTES / 4];
    int *send = buffers[0], *results[2] = {buffers[1], buffers[2]}, *before = buffers[3];

    for (int i = 0; i < BYTES / 4; i++) {
        send[i] = (int)(next(&own) % 5);
        before[i] = -1 - (int)(next(&own) % 1000);
    }
    for (int way = 0; way < 2; way++) {
        memcpy(results[way], before, BYTES);
        /* Room for blocks that begin before the buffer. */
        c->send_at = (char *)(c->kind == SCATTERV || c->kind == SCATTER ? results[way] : send) + 64;
        c->recv_at = (char *)results[way] + 64 + (c->kind == SCATTER || c->kind == SCATTERV ? BYTES / 2 : 0);
        if (make(c, way) != MPI_SUCCESS)
            failures++;
    }
    if (memcmp(results[0], results[1], BYTES) != 0) {
        int i = 0;
        while (results[0][i] == results[1][i])
            i++;
        printf("rank %d: seed %llu, call %d, %s%s, root %d, counts %d %d: word %d is %d, the MPI says %d\n", rank,
               (unsigned long long)seed, n, names[c->kind], c->in_place ? " in place" : "", c->root, c->sendcount,
               c->recvcount, i, results[0][i], results[1][i]);
        failures++;
    }
}

int main(int argc, char **argv)
{
    uint64_t seed = 20;
    int count = 400, all = 0;
    int lists[4][64];

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--count") == 0)
            count = atoi(argv[i + 1]);
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    MPI_Op_create(later, 0, &backwards);
    if (!rank)
        printf("random: seed %llu, %d calls, %d ranks\n", (unsigned long long)seed, count, nranks);
    common = seed;
    own = seed * 1000 + (uint64_t)rank;
    for (int n = 0; n < count && failures < 5; n++) {
        call_t c = {.sendcounts = lists[0], .sdispls = lists[1], .recvcounts = lists[2], .rdispls = lists[3]};
        draw(&c);
        check(&c, n, seed);
        drop(&c.send);
        drop(&c.recv);
    }
    MPI_Op_free(&backwards);
    PMPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all != 0;
}
