/* An error on one rank alone: that rank makes a call wrongly, hears of it, and makes it rightly, as the others do at
 * once. So the wrong one must not count there, neither towards rondo's communicator nor towards what is compared or
 * measured: the ranks would come to these at different calls. What the user hears of may be what the call returns, or
 * what a handler of the user's is called with: an MPI may return success behind that. */
#include <stdlib.h>

#include "corner.h"

#define CALLS 150      /* of a kind, of which the 64th is measured */
#define WRONG_CALLS 21 /* that rondo refuses: before it is measured, because the MPI may take them */

static MPI_Comm comm; /* without rondo's yet */
static int me;        /* the rank in it */
static int refuses;   /* rondo serves here, and refuses buffers that overlap */
static char room[8 * MOST_RANKS + 8];
static int ones[MOST_RANKS], places[MOST_RANKS], out[MOST_RANKS], in[MOST_RANKS], gathered[MOST_RANKS];
static double half = 0.5, sum;
static MPI_Errhandler errors = MPI_ERRORS_RETURN; /* of `comm` */
static int handled, handled_code;                 /* how often the user's was called, and with what */
static int played;                                /* what the MPI refuses returns success behind it: played_success.c */

static void begin(void)
{
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    MPI_Comm_rank(comm, &me);
    MPI_Comm_set_errhandler(comm, errors);
    refuses = getenv("LD_PRELOAD") && !getenv("RONDO_MPI_COMPARE") && !getenv("RONDO_MPI_SERVE");
    for (int r = 0; r < nranks; r++) {
        ones[r] = 1;
        places[r] = r;
    }
}

/* The communicator has kept the handler that it was given. */
static void end(void)
{
    MPI_Errhandler of = MPI_ERRHANDLER_NULL;

    MPI_Comm_get_errhandler(comm, &of);
    CHECK(of == errors, "the communicator has another handler");
    MPI_Errhandler_free(&of);
    CHECK(handled == 0, "the handler was called without an error");
    MPI_Comm_free(&comm);
}

static void handler(MPI_Comm *of, int *code, ...)
{
    CHECK(*of == comm, "the handler of another communicator");
    handled++;
    handled_code = *code;
}

static void refused(const char *call, int code, int wanted)
{
    int class;

    if (errors != MPI_ERRORS_RETURN) {
        CHECK(handled == 1, "%s: %d calls of the handler", call, handled);
        CHECK(code == MPI_SUCCESS || code == handled_code, "%s: it returned %d behind %d", call, code, handled_code);
        CHECK(!played || wanted != MPI_ERR_OP || code == MPI_SUCCESS, "%s: no success is played", call);
        code = handled_code;
        handled = 0;
    }
    MPI_Error_class(code, &class);
    CHECK(class == wanted, "%s: class %d", call, class);
}
#define REFUSED(class, call, ...) refused(#call, MPI_##call(__VA_ARGS__), class)

/* Is it this rank that errs? At some calls none does. */
static int errs(int i)
{
    return me == i % (nranks + 1);
}
static int rondo_refuses(int i)
{
    return refuses && errs(i) && i >= MANY && i < MANY + WRONG_CALLS;
}

static void fill(int i)
{
    for (int r = 0; r < nranks; r++)
        out[r] = 1000 * me + r + i;
    memset(in, -1, sizeof in);
    memset(gathered, -1, sizeof gathered);
    sum = 0;
}

static void look(int i)
{
    CHECK(sum == 0.5 * nranks, "call %d: the sum is %g", i, sum);
    for (int r = 0; r < nranks; r++)
        CHECK(in[r] == 1000 * r + me + i && gathered[r] == 1000 * r + i, "call %d: of rank %d: %d and %d", i, r, in[r],
              gathered[r]);
}

static void blocking(void)
{
    begin();
    for (int i = 0; i < CALLS; i++) {
        fill(i);
        if (errs(i))
            REFUSED(MPI_ERR_OP, Allreduce, &half, &sum, 1, MPI_DOUBLE, MPI_BAND, comm);
        MPI_Allreduce(&half, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
        if (rondo_refuses(i)) {
            REFUSED(MPI_ERR_BUFFER, Allgather, room + 2, 4, MPI_BYTE, room, 4, MPI_BYTE, comm);
            REFUSED(MPI_ERR_BUFFER, Alltoallv, room, ones, places, MPI_INT, room, ones, places, MPI_INT, comm);
        }
        MPI_Allgather(out, 1, MPI_INT, gathered, 1, MPI_INT, comm);
        MPI_Alltoallv(out, ones, places, MPI_INT, in, ones, places, MPI_INT, comm);
        look(i);
    }
    end();
}

/* The blocking call between is one at which rondo's communicator may be made, or something is measured. */
static void nonblocking(void)
{
    begin();
    for (int i = 0; i < CALLS; i++) {
        MPI_Request requests[3];
        fill(i);
        if (errs(i))
            REFUSED(MPI_ERR_OP, Iallreduce, &half, &sum, 1, MPI_DOUBLE, MPI_BAND, comm, requests);
        MPI_Iallreduce(&half, &sum, 1, MPI_DOUBLE, MPI_SUM, comm, &requests[0]);
        if (rondo_refuses(i - MANY)) {
            REFUSED(MPI_ERR_BUFFER, Iallgather, room + 2, 4, MPI_BYTE, room, 4, MPI_BYTE, comm, requests + 1);
            REFUSED(MPI_ERR_BUFFER, Ialltoallv, room, ones, places, MPI_INT, room, ones, places, MPI_INT, comm,
                    requests + 2);
        }
        MPI_Iallgather(out, 1, MPI_INT, gathered, 1, MPI_INT, comm, &requests[1]);
        MPI_Ialltoallv(out, ones, places, MPI_INT, in, ones, places, MPI_INT, comm, &requests[2]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        look(i);
        if (i % 2)
            CHECK(sum_of(i, comm) == i * nranks, "call %d: the blocking sum", i);
    }
    end();
}

/* Making a request counts as a call, and the first one of a kind that is served is measured there. */
static void persistent(void)
{
    MPI_Request requests[2];

    begin();
    for (int i = 0; i < MANY; i++) {
        fill(i);
        if (errs(i))
            refused("Allreduce_init",
                    INIT(Allreduce)(&half, &sum, 1, MPI_DOUBLE, MPI_BAND, comm, MPI_INFO_NULL, requests), MPI_ERR_OP);
        INIT(Allreduce)(&half, &sum, 1, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL, requests);
        MPI_Start(requests);
        MPI_Wait(requests, MPI_STATUS_IGNORE);
        MPI_Request_free(requests);
        CHECK(sum == 0.5 * nranks, "call %d: the sum is %g", i, sum);
    }
    if (refuses && me == nranks - 1)
        refused("Allgather_init",
                INIT(Allgather)(room + 2, 4, MPI_BYTE, room, 4, MPI_BYTE, comm, MPI_INFO_NULL, requests),
                MPI_ERR_BUFFER);
    for (int i = 0; i < 4; i++) {
        fill(i);
        INIT(Allgather)(out, 1, MPI_INT, gathered, 1, MPI_INT, comm, MPI_INFO_NULL, &requests[0]);
        INIT(Alltoallv)(out, ones, places, MPI_INT, in, ones, places, MPI_INT, comm, MPI_INFO_NULL, &requests[1]);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Allreduce(&half, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
        look(i);
        for (int k = 0; k < 2; k++)
            MPI_Request_free(&requests[k]);
    }
    end();
}

/* In a process of its own: who is quicker was not measured before, so rondo refuses what the MPI might take. */
static void handlers(void)
{
    played = getenv("RONDO_TEST_PLAYED") && *getenv("RONDO_TEST_PLAYED");
    MPI_Comm_create_errhandler(handler, &errors);
    blocking();
    nonblocking();
    persistent();
    MPI_Errhandler_free(&errors);
    errors = MPI_ERRORS_RETURN;
}

static const corner_t corners[] = {
    {"blocking", blocking}, {"nonblocking", nonblocking}, {"persistent", persistent}, {"handlers", handlers}};

int main(int argc, char **argv)
{
    corners_begin(argc, argv);
    return corners_run(argc, argv, corners, sizeof corners / sizeof corners[0]);
}
