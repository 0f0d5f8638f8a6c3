/* MPI 4's persistent collectives: what must hold with librondo_mpi.so as without. A hang ends by the caller's time
 * limit.
 *
 *   mpirun -n N persistent persistent   (2 to 4 ranks)
 */
#include <stdlib.h>

#include "corner.h"

#ifdef INIT
enum { N = 12, SERVED = 6 }; /* the first ones at least */
static int in[N][64], out[N][64], token[2];
static MPI_Request requests[N + 2]; /* of the collectives, then of the messages */

/* The calls, with an array of ones and the ranks backwards. */
static void init(MPI_Comm comm, MPI_Datatype every_other, MPI_Datatype theirs, const int *ones, const int *places)
{
    for (int i = 0; i < N; i++) {
        MPI_Datatype type = i < SERVED ? every_other : theirs;
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
        for (int k = 0; k < 64; k++) {
            in[i][k] = rank + round + i;
            out[i][k] = i % 6 == 1 && rank == 0 ? 7 * round + k : -1;
        }
    }
    if (round % 3 == 0)
        MPI_Startall(N + 2, requests);
    else
        for (int i = 0; i < N + 2; i++)
            MPI_Start(&requests[(i * 5 + rank + round) % (N + 2)]); /* 5 and 14 have no common divisor */
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

/* Made in one order, started in any, with messages and with more of them than rondo makes communicators for; the
 * communicator and the types are freed at once. MPICH's own go wrong with a type that was freed, in a gather, and when
 * they are waited for without being active, or by MPI_Waitany. */
static void persistent(void)
{
    int ones[64], places[64], flag, index, served = getenv("LD_PRELOAD") != NULL;
    MPI_Datatype every_other, theirs;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    warm_all(comm);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_other);
    MPI_Type_commit(&every_other);
    MPI_Type_dup(every_other, &theirs);
    for (int r = 0; r < nranks; r++) {
        ones[r] = 1;
        places[r] = nranks - 1 - r;
    }
    init(comm, every_other, theirs, ones, places);
    MPI_Type_free(&every_other);
    if (!OWN_FAILS)
        MPI_Comm_free(&comm);
    memset(ones, -1, sizeof ones);
    if (served) { /* of rondo's, none is active */
        MPI_Waitall(SERVED, requests, MPI_STATUSES_IGNORE);
        MPI_Testany(SERVED, requests, &index, &flag, MPI_STATUS_IGNORE);
        CHECK(flag && index == MPI_UNDEFINED, "an inactive request is waited for: %d", index);
    }
    for (int round = 0; round < 12; round++) {
        start(round);
        for (int left = served && round % 2 ? SERVED : 0; left > 0; left--) {
            MPI_Waitany(SERVED, requests, &index, MPI_STATUS_IGNORE);
            CHECK(index >= 0 && index < SERVED, "an active request is not waited for: %d", index);
        }
        MPI_Waitall(N + 2, requests, MPI_STATUSES_IGNORE);
        CHECK(token[0] == 100 * round + (rank + 1) % nranks, "the message is %d", token[0]);
        for (int i = 0; i < N; i++)
            check(i, round);
    }
    for (int i = 0; i < N + 2; i++) {
        MPI_Request_free(&requests[i]);
        CHECK(requests[i] == MPI_REQUEST_NULL, "request %d was not freed", i);
    }
    MPI_Type_free(&theirs);
    if (OWN_FAILS)
        MPI_Comm_free(&comm);
}
#else
static void persistent(void)
{
}
#endif

static const corner_t corners[] = {{"persistent", persistent}};

int main(int argc, char **argv)
{
    corners_begin(argc, argv);
    warm_all(MPI_COMM_WORLD);
    return corners_run(argc, argv, corners, sizeof corners / sizeof corners[0]);
}
