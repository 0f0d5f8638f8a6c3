/* MPI 4's persistent collectives: what must hold with librondo_mpi.so as without. A hang ends by the caller's time
 * limit.
 *
 *   mpirun -n N persistent NAME...   (2 to 64 ranks)
 */
#include <stdlib.h>

#include "corner.h"

#ifdef INIT
enum { N = 18, SERVED = 6 }; /* the first ones, on a communicator of theirs; of the others some */
static int in[N][2 * MOST_RANKS], out[N][2 * MOST_RANKS], token[2];
static MPI_Request requests[N + 2]; /* of the collectives, then of the messages */

/* The calls, with an array of ones and the ranks backwards; those that are served with types[0] on comms[0]. */
static void init(const MPI_Comm comms[2], const MPI_Datatype types[2], const int *ones, const int *places)
{
    for (int i = 0; i < N; i++) {
        MPI_Datatype type = types[i >= SERVED];
        MPI_Comm comm = comms[i >= SERVED];
        switch (i % 6) {
        case 0:
            INIT(Allreduce)(in[i], out[i], 4, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[i]);
            break;
        case 1:
            INIT(Bcast)(out[i], 2, rank % 2 ? type : MPI_INT, 0, comm, MPI_INFO_NULL, &requests[i]);
            break;
        case 2:
            INIT(Alltoallv)
            (in[i], ones, places, MPI_INT, out[i], ones, places, type, comm, MPI_INFO_NULL, &requests[i]);
            break;
        case 3:
            INIT(Barrier)(comm, MPI_INFO_NULL, &requests[i]);
            break;
        case 4:
            INIT(Scan)(in[i], out[i], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[i]);
            break;
        default:
            if (i >= SERVED)
                INIT(Barrier)(comm, MPI_INFO_NULL, &requests[i]);
            else
                INIT(Gather)(in[i], 1, type, out[i], 1, MPI_INT, nranks - 1, comm, MPI_INFO_NULL, &requests[i]);
        }
    }
    MPI_Recv_init(&token[0], 1, MPI_INT, (rank + 1) % nranks, 2, MPI_COMM_WORLD, &requests[N]);
    MPI_Send_init(&token[1], 1, MPI_INT, (rank + nranks - 1) % nranks, 2, MPI_COMM_WORLD, &requests[N + 1]);
}

static void start(int round)
{
    token[0] = -1;
    token[1] = 100 * round + rank;
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < 2 * MOST_RANKS; k++) {
            in[i][k] = rank + round + i;
            out[i][k] = i % 6 == 1 && rank == 0 ? 7 * round + k : -1;
        }
    }
    if (round % 3 == 0)
        MPI_Startall(N + 2, requests);
    else
        for (int i = 0; i < N + 2; i++)
            MPI_Start(&requests[(i * 7 + rank + round) % (N + 2)]); /* 7 and 20 have no common divisor */
}

static void check(int i, int round)
{
    int all = nranks * (nranks - 1) / 2 + nranks * (round + i);

    CHECK(requests[i] != MPI_REQUEST_NULL, "request %d is gone", i);
    if (i % 6 == 0)
        CHECK(out[i][0] == all && out[i][3] == all && out[i][4] == -1, "allreduce_init: %d", out[i][0]);
    if (i % 6 == 1)
        CHECK(out[i][0] == 7 * round && (rank % 2 ? out[i][2] : out[i][1]) == 7 * round + 1, "bcast_init: %d %d %d",
              out[i][0], out[i][1], out[i][2]);
    if (i % 6 == 2)
        for (int r = 0; r < nranks; r++)
            CHECK(out[i][2 * (nranks - 1 - r)] == r + round + i && out[i][2 * (nranks - 1 - r) + 1] == -1,
                  "alltoallv_init: of rank %d: %d", r, out[i][2 * (nranks - 1 - r)]);
    if (i % 6 == 4)
        CHECK(out[i][0] == rank * (rank + 1) / 2 + (rank + 1) * (round + i), "scan_init: %d", out[i][0]);
    if (i == 5 && rank == nranks - 1)
        for (int r = 0; r < nranks; r++)
            CHECK(out[i][r] == r + round + i, "gather_init: of rank %d: %d", r, out[i][r]);
}

/* What is made after others were freed, and may have their handles and their memory. */
static void make_others(MPI_Comm *alone, MPI_Datatype other[4])
{
    MPI_Comm_dup(MPI_COMM_SELF, alone);
    CHECK(sum_of(5, *alone) == 5, "the sum of one");
    for (int i = 0; i < 4; i++) {
        MPI_Type_vector(3, 1, 5 + i, MPI_INT, &other[i]);
        MPI_Type_commit(&other[i]);
    }
}

static void wait_in_many_ways(int round, int served)
{
    int index;

    for (int left = served && round % 2 ? SERVED : 0; left > 0; left--) {
        MPI_Waitany(SERVED, requests, &index, MPI_STATUS_IGNORE);
        CHECK(index >= 0 && index < SERVED, "an active request is not waited for: %d", index);
    }
    MPI_Waitall(N + 2, requests, MPI_STATUSES_IGNORE);
}

/* Made in one order, started in any, with messages and with more of them than rondo makes communicators for; of those
 * that are served the communicator and the types are freed at once. The MPIs' own go wrong then, or when they are
 * waited for without being active, or by MPI_Waitany, so those keep theirs. */
static void persistent(void)
{
    int ones[MOST_RANKS], places[MOST_RANKS], flag, index, served = getenv("LD_PRELOAD") != NULL;
    MPI_Datatype types[2], other[4];
    MPI_Comm comms[2], alone;

    for (int i = 0; i < 2; i++) { /* a duplicate of the type would keep the other one */
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        warm_all(comms[i]);
        MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &types[i]);
        MPI_Type_commit(&types[i]);
    }
    for (int r = 0; r < nranks; r++) {
        ones[r] = 1;
        places[r] = nranks - 1 - r;
    }
    init(comms, types, ones, places);
    if (served) {
        MPI_Type_free(&types[0]);
        MPI_Comm_free(&comms[0]);
    }
    make_others(&alone, other);
#ifdef OPEN_MPI /* MPICH's own read them later, as they may */
    memset(ones, -1, sizeof ones);
#endif
    if (served) { /* of rondo's, none is active */
        MPI_Waitall(SERVED, requests, MPI_STATUSES_IGNORE);
        MPI_Testany(SERVED, requests, &index, &flag, MPI_STATUS_IGNORE);
        CHECK(flag && index == MPI_UNDEFINED, "an inactive request is waited for: %d", index);
    }
    for (int round = 0; round < 12; round++) {
        start(round);
        wait_in_many_ways(round, served);
        CHECK(token[0] == 100 * round + (rank + 1) % nranks, "the message is %d", token[0]);
        for (int i = 0; i < N; i++)
            check(i, round);
    }
    for (int i = 0; i < N + 2; i++) {
        MPI_Request_free(&requests[i]);
        CHECK(requests[i] == MPI_REQUEST_NULL, "request %d was not freed", i);
    }
    for (int i = 0; i < 2; i++) {
        if (i || !served) {
            MPI_Type_free(&types[i]);
            MPI_Comm_free(&comms[i]);
        }
    }
    for (int i = 0; i < 4; i++)
        MPI_Type_free(&other[i]);
    MPI_Comm_free(&alone);
}

/* Pairs are made, used and freed, in another order on every rank: what a request has had serves the next one, so that
 * all 60 are rondo's, as the report says. */
static void again(void)
{
    for (int i = 0; i < 30; i++) {
        int in[2] = {rank, i}, out[2] = {-1, -1};
        MPI_Request pair[2];
        for (int k = 0; k < 2; k++)
            INIT(Reduce)(&in[k], &out[k], 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &pair[k]);
        MPI_Startall(2, pair);
        MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
        if (rank == 0)
            CHECK(out[0] == nranks * (nranks - 1) / 2 && out[1] == nranks * i, "sums %d and %d", out[0], out[1]);
        MPI_Request_free(&pair[(i + rank) % 2]);
        MPI_Request_free(&pair[(i + rank + 1) % 2]);
    }
}

static int handled, class_handled;
static MPI_Comm handled_comm, beside = MPI_COMM_NULL;
static void handler(MPI_Comm *comm, int *code, ...)
{
    MPI_Request request;
    int one = 1, sum = 0;

    if (beside != MPI_COMM_NULL) { /* it calls the MPI again */
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, beside, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(sum == nranks - 1, "the sum in the handler is %d", sum);
    }
    handled++;
    handled_comm = *comm;
    MPI_Error_class(*code, &class_handled);
}

/* A wrong argument: the class is the MPI's, and the handler is called once, when the request is made. */
static void wrong_arguments(MPI_Comm dup)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int value = 1, sum = 0;
#define WRONG(call, ...)                                                                                               \
    do {                                                                                                               \
        int class, by_mpi, times, code = INIT(call)(__VA_ARGS__);                                                      \
        times = handled;                                                                                               \
        handled = 0;                                                                                                   \
        MPI_Error_class(code, &class);                                                                                 \
        code = PINIT(call)(__VA_ARGS__);                                                                               \
        MPI_Error_class(code, &by_mpi);                                                                                \
        CHECK(class == by_mpi && (class != MPI_SUCCESS || HANDLED_IS_SUCCESS),                                         \
              #call "_init: class %d, the MPI's is %d", class, by_mpi);                                                \
        CHECK(times == 1 && handled == 1, #call "_init: handled %d times, by the MPI %d", times, handled);             \
        handled = 0;                                                                                                   \
    } while (0)
    if (!NO_TYPE_CRASHES)
        WRONG(Allreduce, &value, &sum, 1, MPI_DATATYPE_NULL, MPI_SUM, dup, MPI_INFO_NULL, &request);
    WRONG(Allreduce, &value, &sum, 1, MPI_INT, MPI_OP_NULL, dup, MPI_INFO_NULL, &request);
    WRONG(Bcast, &value, 1, MPI_INT, nranks, dup, MPI_INFO_NULL, &request);
}

/* Rank 0 does not start its part, and the others wait longer than they may: their handlers are called, and add numbers.
 * The next request works. */
static void too_late(MPI_Comm dup)
{
    MPI_Request request;
    int value = 1, sum = 0, code, class;

    MPI_Comm_split(MPI_COMM_WORLD, rank ? 1 : MPI_UNDEFINED, rank, &beside);
    if (rank)
        warm_all(beside);
    setenv("RONDO_TIMEOUT_MS", "400", 1); /* for the communicator that the request gets */
    INIT(Allreduce)(&value, &sum, 1, MPI_INT, MPI_SUM, dup, MPI_INFO_NULL, &request);
    unsetenv("RONDO_TIMEOUT_MS");
    if (rank) {
        MPI_Start(&request);
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Error_class(code, &class);
        CHECK(class == MPI_ERR_TRUNCATE, "the wait returns class %d", class);
        CHECK(handled == 1 && class_handled == MPI_ERR_OTHER && handled_comm == dup, "handled %d times, class %d",
              handled, class_handled);
        handled = 0;
        MPI_Comm_free(&beside);
    }
    PMPI_Barrier(dup);
    if (request != MPI_REQUEST_NULL) /* Open MPI has freed it, as it does with any that has failed */
        MPI_Request_free(&request);
    for (int i = 0; i < 2; i++) {
        INIT(Allreduce)(&value, &sum, 1, MPI_INT, MPI_SUM, dup, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(sum == nranks && handled == 0, "the sum after a failure is %d, handled %d times", sum, handled);
        MPI_Request_free(&request);
    }
}

/* A number of requests that is none, while one of rondo's is there. */
static void start_none(MPI_Request *request)
{
    const MPI_Comm comms[2] = {MPI_COMM_WORLD, MPI_COMM_SELF}; /* one of these hears of it */
    int class, by_mpi;

    for (int i = 0; i < 2; i++)
        MPI_Comm_set_errhandler(comms[i], MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Startall(-1, request), &class);
    MPI_Error_class(PMPI_Startall(-1, request), &by_mpi);
    CHECK(class == by_mpi && class != MPI_SUCCESS, "-1 requests: class %d, the MPI's is %d", class, by_mpi);
    for (int i = 0; i < 2; i++)
        MPI_Comm_set_errhandler(comms[i], MPI_ERRORS_ARE_FATAL);
}

static void errors(void)
{
    MPI_Errhandler mine;
    MPI_Comm dup;
    MPI_Request request = MPI_REQUEST_NULL;
    int value = 1, sum = 0;

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &dup);
    warm_all(dup);
    MPI_Comm_create_errhandler(handler, &mine);
    MPI_Comm_set_errhandler(dup, mine);
    wrong_arguments(dup);
    if (getenv("LD_PRELOAD")) { /* errors that rondo finds */
        char room[32] = {0};
        int class, code = INIT(Allreduce)(room, room + 4, 4, MPI_INT, MPI_SUM, dup, MPI_INFO_NULL, &request);
        MPI_Error_class(code, &class);
        CHECK(class == MPI_ERR_BUFFER && handled == 1, "buffers that overlap: class %d, handled %d times", class,
              handled);
        handled = 0;
        too_late(dup);
    }
    INIT(Allreduce)(&value, &sum, 1, MPI_INT, MPI_SUM, dup, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum == nranks, "the sum after errors");
    start_none(&request);
    MPI_Request_free(&request);
    MPI_Errhandler_free(&mine);
    MPI_Comm_free(&dup);
}

/* Requests for which there is no memory ten times (played_recv.c), and then there is. */
static void refused(void)
{
    MPI_Comm comm;
    int one = 1, sum = 0, got, class;

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    warm_all(comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < 11; i++) {
        got = INIT(Allreduce)(&one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[0]);
        MPI_Error_class(got, &class);
        CHECK(class == (i < 10 ? MPI_ERR_NO_MEM : MPI_SUCCESS), "request %d: class %d", i, class);
    }
    MPI_Start(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    CHECK(sum == nranks, "the sum is %d", sum);
    MPI_Request_free(&requests[0]);
    MPI_Comm_free(&comm);
}
#else
static void refused(void)
{
}
static void persistent(void)
{
}
static void again(void)
{
}
static void errors(void)
{
}
#endif

/* Who is quicker is found out when a request is made, once for each length, and the result is right with either. */
static void choose(void)
{
    static const int bytes[] = {8, 65536};
    static int data[16384], counts[MOST_RANKS], displs[MOST_RANKS], from[MOST_RANKS], to[MOST_RANKS];

    for (int i = 0; i < nranks; i++) {
        counts[i] = 1;
        displs[i] = i;
    }
    sum_of(1, MPI_COMM_WORLD); /* rondo's communicator is made */
    for (int turn = 0; turn < 6; turn++) {
        int count = bytes[turn % 2] / (int)sizeof(int), one = 1, sum = 0;
        MPI_Request requests[3];
        INIT(Bcast)(data, count, MPI_INT, turn % nranks, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
        INIT(Alltoallv)
        (from, counts, displs, MPI_INT, to, counts, displs, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
        INIT(Allreduce)(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
        for (int again = 0; again < 2; again++) {
            for (int i = 0; i < count; i++)
                data[i] = rank == turn % nranks ? turn + again + i : -1;
            for (int i = 0; i < nranks; i++)
                from[i] = 100 * rank + i + again;
            MPI_Startall(3, requests);
            MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
            for (int i = 0; i < count; i++)
                CHECK(data[i] == turn + again + i, "turn %d: data[%d] is %d", turn, i, data[i]);
            for (int i = 0; i < nranks; i++)
                CHECK(to[i] == 100 * i + rank + again, "turn %d: to[%d] is %d", turn, i, to[i]);
            CHECK(sum == nranks, "turn %d: the sum is %d", turn, sum);
        }
        for (int i = 0; i < 3; i++)
            MPI_Request_free(&requests[i]);
    }
}

static const corner_t corners[] = {
    {"choose", choose}, {"persistent", persistent}, {"again", again}, {"errors", errors}, {"refused", refused}};

int main(int argc, char **argv)
{
    corners_begin(argc, argv);
    warm_all(MPI_COMM_WORLD);
    return corners_run(argc, argv, corners, sizeof corners / sizeof corners[0]);
}
