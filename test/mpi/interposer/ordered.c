/* With RONDO_MPI_REPRODUCIBLE=1: sums, also by operators of the user's, of nonblocking and persistent calls are in the
 * order of ranks, whoever serves them: the first ones on a communicator, persistent ones that are more than rondo
 * serves, and with MPI_THREAD_MULTIPLE, where none is rondo's. The corners whose names begin with "threads" ask for
 * that level. */
#include <pthread.h>

#include "corner.h"

enum { N = 60 * MOST_RANKS, KINDS = 6, PERSISTENT = 3 * KINDS };

static double in[N];

static double element(int i, int place)
{
    unsigned hash = (unsigned)(i * 64 + place + 1) * 2654435761u;

    return (double)(int)(hash ^ hash >> 15) / 3 / (double)(1 << hash % 23);
}

/* The elements from `first` on, x0 + (x1 + (... + xlast)). */
static int is_ordered(const double *got, int n, int first, int last)
{
    for (int i = 0; i < n; i++) {
        double sum = element(first + i, last);
        for (int r = last - 1; r >= 0; r--)
            sum = element(first + i, r) + sum;
        if (memcmp(&sum, &got[i], sizeof sum) != 0)
            return 0;
    }
    return 1;
}

/* What each kind of call gives at the `place`th rank. */
static void check(int kind, const double *out, int n, int place, int root, const char *when)
{
    static const char *const names[KINDS] = {"allreduce", "reduce", "block", "scatter", "scan", "exscan"};
    int block = n / nranks, first = 0, last = nranks - 1, length = n;

    if ((kind == 1 && place != root) || (kind == 5 && place == 0))
        return;
    if (kind == 2 || kind == 3) {
        first = place * block;
        length = block;
    } else if (kind >= 4) {
        last = place - (kind == 5);
    }
    CHECK(is_ordered(out, length, first, last), "%s %s of %d is in another order", when, names[kind], n);
}

static int counts[MOST_RANKS];

static void start(int kind, double *out, int n, int root, MPI_Comm comm, MPI_Request *request)
{
    const void *send = root % 2 && kind != 1 ? MPI_IN_PLACE : in;

    if (send == MPI_IN_PLACE)
        memcpy(out, in, sizeof *in * (size_t)n);
    switch (kind) {
    case 0:
        MPI_Iallreduce(send, out, n, MPI_DOUBLE, MPI_SUM, comm, request);
        break;
    case 1:
        MPI_Ireduce(in, out, n, MPI_DOUBLE, MPI_SUM, root, comm, request);
        break;
    case 2:
        MPI_Ireduce_scatter_block(send, out, n / nranks, MPI_DOUBLE, MPI_SUM, comm, request);
        break;
    case 3:
        MPI_Ireduce_scatter(send, out, counts, MPI_DOUBLE, MPI_SUM, comm, request);
        break;
    case 4:
        MPI_Iscan(send, out, n, MPI_DOUBLE, MPI_SUM, comm, request);
        break;
    default:
        MPI_Iexscan(send, out, n, MPI_DOUBLE, MPI_SUM, comm, request);
    }
}

/* Returns the rank; counts and elements are for that. */
static int fill(MPI_Comm comm, int n)
{
    int place;

    MPI_Comm_rank(comm, &place);
    for (int i = 0; i < N; i++)
        in[i] = element(i, place);
    for (int r = 0; r < nranks; r++)
        counts[r] = n / nranks;
    return place;
}

/* All kinds at once, waited for in another order on each rank, beside a message. */
static void at_once(MPI_Comm comm, int n, double (*out)[N])
{
    int place = fill(comm, n), root = n / nranks % nranks, token = place, got = -1, at;
    MPI_Request requests[KINDS + 2];

    MPI_Irecv(&got, 1, MPI_INT, (place + nranks - 1) % nranks, 5, comm, &requests[KINDS]);
    for (int k = 0; k < KINDS; k++)
        start(k, out[k], n, root, comm, &requests[k]);
    MPI_Isend(&token, 1, MPI_INT, (place + 1) % nranks, 5, comm, &requests[KINDS + 1]);
    if (place % 2) {
        for (int k = 0; k < KINDS + 2; k++)
            MPI_Waitany(KINDS + 2, requests, &at, MPI_STATUS_IGNORE);
    } else {
        for (int k = KINDS + 1; k >= 0; k--)
            MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
    }
    CHECK(got == (place + nranks - 1) % nranks, "the message is %d", got);
    for (int k = 0; k < KINDS; k++)
        check(k, out[k], n, place, root, "nonblocking");
}

static void nonblocking(void)
{
    static double out[KINDS][N];
    MPI_Comm other;

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &other);
    for (int i = 0; i < 3; i++) {
        at_once(other, nranks * (i ? 50 : 1), out);
        at_once(MPI_COMM_WORLD, nranks * (i ? 50 : 1), out);
    }
    warm_all(other);
    at_once(other, 50 * nranks, out);
    MPI_Comm_free(&other);
}

/* Many at a time, started in another order on each rank, three times. */
static void persistent(void)
{
#ifdef INIT
    static double out[PERSISTENT][N];
    MPI_Request requests[PERSISTENT];
    MPI_Comm comm;
    int n = 8 * nranks, place;

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    place = fill(comm, n);
    for (int k = 0; k < PERSISTENT; k += KINDS) {
        if (k == KINDS)
            warm(comm); /* some of the others are rondo's then */
        INIT(Allreduce)(in, out[k], n, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL, &requests[k]);
        INIT(Reduce)(in, out[k + 1], n, MPI_DOUBLE, MPI_SUM, 1, comm, MPI_INFO_NULL, &requests[k + 1]);
        INIT(Reduce_scatter_block)(in, out[k + 2], 8, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL, &requests[k + 2]);
        INIT(Reduce_scatter)(in, out[k + 3], counts, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL, &requests[k + 3]);
        INIT(Scan)(in, out[k + 4], n, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL, &requests[k + 4]);
        INIT(Exscan)(in, out[k + 5], n, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL, &requests[k + 5]);
    }
    for (int turn = 0; turn < 3; turn++) {
        memset(out, 0, sizeof out);
        for (int k = 0; k < PERSISTENT; k++)
            MPI_Start(&requests[(k + place * 5) % PERSISTENT]);
        MPI_Waitall(PERSISTENT, requests, MPI_STATUSES_IGNORE);
        for (int k = 0; k < PERSISTENT; k++)
            check(k % KINDS, out[k], n, place, 1, "persistent");
    }
    for (int k = 0; k < PERSISTENT; k++)
        MPI_Request_free(&requests[k]);
    MPI_Comm_free(&comm);
#endif
}

/* More than the MPI may have communicators for. Those that are in order come first, and there are more of them when
 * some have been freed. */
static void many(void)
{
#ifdef INIT
    enum { LIVE = 2100, LAST = LIVE - 1 };
    static MPI_Request requests[LIVE];
    double out[8];
    MPI_Comm comm;
    int place;

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    place = fill(comm, 8);
    for (int k = 0; k < LIVE; k++)
        INIT(Allreduce)(in, out, 8, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL, &requests[k]);
    for (int k = 0; k < LIVE; k += k == 255 ? LAST - 255 : 255) { /* 0, 255 and the last one */
        out[0] = -1;
        MPI_Start(&requests[k]);
        MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
        if (k < LAST)
            check(0, out, 8, place, 0, "of many");
        else
            CHECK(out[0] != -1, "the last of many did nothing");
    }
    for (int k = 0; k < LIVE; k++)
        MPI_Request_free(&requests[k]);
    MPI_Barrier(comm); /* all ranks have freed theirs */
    INIT(Allreduce)(in, out, 8, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL, &requests[0]);
    MPI_Start(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    check(0, out, 8, place, 0, "behind many");
    MPI_Request_free(&requests[0]);
    MPI_Comm_free(&comm);
#endif
}

/* Sums as well, of elements that are several doubles, and it asks for their type. */
static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
    int size = 0;

    MPI_Type_size(*type, &size);
    for (int i = 0; i < *n * size / (int)sizeof(double); i++)
        ((double *)inout)[i] = ((double *)in)[i] + ((double *)inout)[i];
}

static int types_freed;

static int on_type_freed(MPI_Datatype type, int key, void *value, void *extra)
{
    types_freed++;
    return MPI_SUCCESS;
}

enum { TRIPLE = 3 };

/* An operator and a type with an attribute, both of which are freed before anything is waited for. */
static void make(MPI_Op *op, MPI_Datatype *type)
{
    int key = MPI_KEYVAL_INVALID;

    MPI_Op_create(add, 1, op);
    MPI_Type_contiguous(TRIPLE, MPI_DOUBLE, type);
    MPI_Type_commit(type);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, on_type_freed, &key, NULL);
    MPI_Type_set_attr(*type, key, NULL);
    MPI_Type_free_keyval(&key);
}

static void unmake(MPI_Op *op, MPI_Datatype *type)
{
    MPI_Op_free(op);
    MPI_Type_free(type);
    CHECK(*op == MPI_OP_NULL && *type == MPI_DATATYPE_NULL, "a handle that was freed is not null");
}

static void operators_behind(MPI_Comm comm, double (*out)[N])
{
    int n = 2 * TRIPLE * nranks, place = fill(comm, n), before = types_freed;
    MPI_Request requests[KINDS];
    MPI_Op op;
    MPI_Datatype type;

    for (int r = 0; r < nranks; r++)
        counts[r] = 2;
    make(&op, &type);
    MPI_Iallreduce(in, out[0], n / TRIPLE, type, op, comm, &requests[0]);
    MPI_Ireduce(in, out[1], n / TRIPLE, type, op, 1, comm, &requests[1]);
    MPI_Ireduce_scatter_block(in, out[2], 2, type, op, comm, &requests[2]);
    MPI_Ireduce_scatter(in, out[3], counts, type, op, comm, &requests[3]);
    MPI_Iscan(in, out[4], n / TRIPLE, type, op, comm, &requests[4]);
    MPI_Iexscan(in, out[5], n / TRIPLE, type, op, comm, &requests[5]);
    unmake(&op, &type);
    MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < KINDS; k++)
        check(k, out[k], n, place, 1, "by an operator");
    CHECK(types_freed == before + 1, "the type was freed %d times", types_freed - before);
}

static void operators_persistent(MPI_Comm comm, double (*out)[N])
{
#ifdef INIT
    int n = 2 * TRIPLE * nranks, place = fill(comm, n), before = types_freed;
    MPI_Request requests[2];
    MPI_Op op;
    MPI_Datatype type;

    make(&op, &type);
    INIT(Allreduce)(in, out[0], n / TRIPLE, type, op, comm, MPI_INFO_NULL, &requests[0]);
    INIT(Scan)(in, out[4], n / TRIPLE, type, op, comm, MPI_INFO_NULL, &requests[1]);
    unmake(&op, &type);
    for (int turn = 0; turn < 3; turn++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check(0, out[0], n, place, 0, "by an operator, persistent");
        check(4, out[4], n, place, 0, "by an operator, persistent");
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    CHECK(types_freed == before + 1, "the type of persistent ones was freed %d times", types_freed - before);
#endif
}

/* Operators of the user's, early ones and such as rondo serves, on one type for all. */
static void operators(void)
{
    static double out[KINDS][N];
    MPI_Comm other;

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &other);
    for (int i = 0; i < 2; i++) {
        operators_behind(other, out);
        operators_persistent(other, out);
        warm_all(other);
    }
    MPI_Comm_free(&other);
}

/* The last call, which the first rank alone makes, and nobody waits for. */
static void left(void)
{
    static double out[N];
    static MPI_Request request;
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    fill(comm, 8);
    if (rank == 0)
        MPI_Iallreduce(in, out, 8, MPI_DOUBLE, MPI_SUM, comm, &request);
}

/* The same on a communicator that rondo serves already. */
static void left_served(void)
{
    static double out[N];
    static MPI_Request request;
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    fill(comm, 8);
    for (int i = 0; i < 20; i++) {
        MPI_Allreduce(in, out, 8, MPI_DOUBLE, MPI_SUM, comm);
        MPI_Iallreduce(in, out, 8, MPI_DOUBLE, MPI_SUM, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (rank == 0)
        MPI_Iallreduce(in, out, 8, MPI_DOUBLE, MPI_SUM, comm, &request);
}

static void *in_thread(void *comm)
{
    double(*out)[N] = malloc(sizeof(double[KINDS][N]));

    for (int i = 0; i < 5; i++)
        at_once(*(MPI_Comm *)comm, 50 * nranks, out);
    free(out);
    return NULL;
}

/* Each thread has a communicator; the ranks come in one order in both, so that the elements are the same. */
static void threads(void)
{
    MPI_Comm comms[2];
    pthread_t thread;

    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    fill(MPI_COMM_WORLD, 50 * nranks);
    pthread_create(&thread, NULL, in_thread, &comms[0]);
    in_thread(&comms[1]);
    pthread_join(thread, NULL);
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[1]);
    persistent();
    operators();
}

int main(int argc, char **argv)
{
    static const corner_t corners[] = {{"nonblocking", nonblocking},
                                       {"persistent", persistent},
                                       {"operators", operators},
                                       {"many", many},
                                       {"left", left},
                                       {"left_served", left_served},
                                       {"threads", threads}};
    int level;

    MPI_Init_thread(&argc, &argv, strcmp(argv[1], "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &level);
    corners_known();
    if (level < MPI_THREAD_MULTIPLE && strcmp(argv[1], "threads") == 0)
        argc = 1; /* this MPI has no such level */
    return corners_run(argc, argv, corners, sizeof corners / sizeof *corners);
}
