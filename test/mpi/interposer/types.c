/* Nonblocking and blocking calls in which ranks describe one signature by types of different sizes: with
 * librondo_mpi.so who serves them is looked up in a table, and the results hold as without. A hang ends by the caller's
 * time limit.
 *
 *   mpirun -n N types types   (2 to 64 ranks)
 */
#include <stdio.h>
#include <string.h>

#include "corner.h"

/* Who serves a call follows from its bytes, whichever types a rank says them by, and whichever its calls before had: by
 * the script's table ints are the MPI's and as many doubles are rondo's. Ranks say ints in three ways, of which the one
 * with a name has a short way to the MPI. */
enum { PLAIN, PAIRS, GAPS, FORMS }; /* int; two in a row; two with a hole between */
#define TYPED_TURNS 48
#define TYPED_MOST 128 /* elements of a block */

static MPI_Datatype forms[FORMS];

static int place_of(int form, int i)
{
    return form == GAPS ? i / 2 * 3 + i % 2 * 2 : i;
}

static int elements(int form, int ints)
{
    return form == PLAIN ? ints : ints / 2;
}

static int value_of(int turn, int from, int to, int i)
{
    return ((turn * MOST_RANKS + from) * MOST_RANKS + to) * TYPED_MOST + i;
}

/* All that is to be equal in the buffers of a turn, in ints or in doubles. */
typedef struct {
    int turn, n, doubles, send_form, recv_form;
    MPI_Datatype send_type, recv_type;
    int sendcount, recvcount;
    double sent[3][MOST_RANKS * TYPED_MOST], got[3][MOST_RANKS * TYPED_MOST];
} typed_t;

static void put(const typed_t *t, double *at, int form, int i, int value)
{
    if (t->doubles)
        at[i] = value;
    else
        ((int *)at)[place_of(form, i)] = value;
}

static int get(const typed_t *t, const double *at, int form, int i)
{
    return t->doubles ? (int)at[i] : ((const int *)at)[place_of(form, i)];
}

static void typed_fill(typed_t *t, int root)
{
    memset(t->got, -1, sizeof t->got);
    for (int i = 0; i < t->n; i++) {
        put(t, t->got[0], t->recv_form, i, rank == root ? value_of(t->turn, root, 0, i) : -1);
        put(t, t->sent[1], t->send_form, i, value_of(t->turn, rank, 0, i));
        for (int r = 0; r < nranks; r++)
            put(t, t->sent[2], t->send_form, r * t->n + i, value_of(t->turn, rank, r, i));
    }
}

static void typed_look(const typed_t *t, int root, const char *how)
{
    int wrong[3] = {0, 0, 0};

    for (int i = 0; i < t->n; i++) {
        wrong[0] += get(t, t->got[0], t->recv_form, i) != value_of(t->turn, root, 0, i);
        for (int r = 0; r < nranks; r++) {
            wrong[1] += get(t, t->got[1], t->recv_form, r * t->n + i) != value_of(t->turn, r, 0, i);
            wrong[2] += get(t, t->got[2], t->recv_form, r * t->n + i) != value_of(t->turn, r, rank, i);
        }
    }
    CHECK(!wrong[0] && !wrong[1] && !wrong[2],
          "turn %d, %d %s, %s: wrong of a broadcast %d, an allgather %d, an alltoall %d", t->turn, t->n,
          t->doubles ? "doubles" : "ints", how, wrong[0], wrong[1], wrong[2]);
}

static void typed_turn(typed_t *t, MPI_Comm comm)
{
    MPI_Request requests[3];
    int root = t->turn % nranks;

    typed_fill(t, root);
    MPI_Ibcast(t->got[0], t->recvcount, t->recv_type, root, comm, &requests[0]);
    MPI_Iallgather(t->sent[1], t->sendcount, t->send_type, t->got[1], t->recvcount, t->recv_type, comm, &requests[1]);
    MPI_Ialltoall(t->sent[2], t->sendcount, t->send_type, t->got[2], t->recvcount, t->recv_type, comm, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    typed_look(t, root, "nonblocking");
    typed_fill(t, root);
    MPI_Bcast(t->got[0], t->recvcount, t->recv_type, root, comm);
    MPI_Allgather(t->sent[1], t->sendcount, t->send_type, t->got[1], t->recvcount, t->recv_type, comm);
    MPI_Alltoall(t->sent[2], t->sendcount, t->send_type, t->got[2], t->recvcount, t->recv_type, comm);
    typed_look(t, root, "blocking");
}

/* Two turns of ints and two of doubles, as many, and then another way to say ints, and another number. */
static void types(void)
{
    static const int numbers[] = {2, 16, TYPED_MOST};
    static typed_t t;
    MPI_Comm comm;

    forms[PLAIN] = MPI_INT;
    MPI_Type_contiguous(2, MPI_INT, &forms[PAIRS]);
    MPI_Type_vector(2, 1, 2, MPI_INT, &forms[GAPS]);
    MPI_Type_commit(&forms[PAIRS]);
    MPI_Type_commit(&forms[GAPS]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    warm_all(comm);
    for (t.turn = 0; t.turn < TYPED_TURNS; t.turn++) {
        t.doubles = t.turn % 4 >= 2;
        t.n = numbers[t.turn / 16 % 3];
        t.send_form = (t.turn / 4 + rank) % FORMS;
        t.recv_form = (t.turn / 4 + 2 * rank) % FORMS;
        t.send_type = t.doubles ? MPI_DOUBLE : forms[t.send_form];
        t.recv_type = t.doubles ? MPI_DOUBLE : forms[t.recv_form];
        t.sendcount = t.doubles ? t.n : elements(t.send_form, t.n);
        t.recvcount = t.doubles ? t.n : elements(t.recv_form, t.n);
        typed_turn(&t, comm);
    }
    MPI_Comm_free(&comm);
    MPI_Type_free(&forms[PAIRS]);
    MPI_Type_free(&forms[GAPS]);
}

static const corner_t corners[] = {{"types", types}};

int main(int argc, char **argv)
{
    corners_begin(argc, argv);
    warm_all(MPI_COMM_WORLD);
    return corners_run(argc, argv, corners, sizeof corners / sizeof corners[0]);
}
