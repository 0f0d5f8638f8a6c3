/* Random operations by rondo and by the MPI on equal input: the outputs must be equal byte for byte. Data is exact, so
 * that the order of summing does not show. Where the MPI itself is wrong it is not asked: Debian's Open MPI saturates
 * short integer sums with its AVX operators (switched off here), MPICH 4.0 gets MIN and MAX of unsigned types wrong.
 *
 *   mpirun -n N random_vs_mpi [--seed S] [--count N]
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <mpi.h>
#include <rondo_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../bench/mpi_types.h"
#include "util/harness.h"
#include "util/operation.h"

#define MOST_GROUPED 4

typedef struct {
    int rank, nranks, is_mpich, failures;
    rondo_comm_t comm;
    uint64_t random;
} state_t;

/* Does the MPI do this, and right? */
static int mpi_can(const state_t *s, rondo_type_t type, rondo_op_t op)
{
    int is_unsigned = type == RONDO_UINT8 || type == RONDO_UINT16 || type == RONDO_UINT32;
    int logical = op == RONDO_LAND || op == RONDO_LOR || op == RONDO_LXOR;

    if (!ref_valid(type, op) || mpi_type_of(type) == MPI_DATATYPE_NULL || mpi_op_of(op, type) == MPI_OP_NULL)
        return 0;
    if (type == RONDO_BOOL)
        return logical;
    return !(s->is_mpich && is_unsigned && (op == RONDO_MIN || op == RONDO_MAX));
}

static void draw_case(state_t *s, do_case_t *c)
{
    uint64_t *random = &s->random;

    memset(c, 0, sizeof *c);
    c->what = (do_what_t)test_below(random, DO_NUM);
    do {
        c->type = (rondo_type_t)test_below(random, RONDO_NUM_TYPES);
        c->op = (rondo_op_t)test_below(random, RONDO_NUM_OPS);
    } while (do_reduces(c->what) && !mpi_can(s, c->type, c->op));
    c->data = do_reduces(c->what) ? REF_EXACT : REF_BYTES;
    c->count = test_below(random, 8) == 0   ? test_below(random, 100000)
               : test_below(random, 3) == 0 ? test_below(random, 5000)
                                            : test_below(random, 64);
    c->root = (int)test_below(random, (unsigned)s->nranks);
    c->in_place = do_has_in_place(c->what) && test_below(random, 3) == 0;
    c->recv_shift = test_below(random, 3) ? 0 : (int)test_below(random, 17);
    c->skew = do_has_counts(c->what) && test_below(random, 3) ? (int)test_below(random, 1000) : 0;
    c->seed = test_random(random) >> 32;
}

/* The tables in bytes, as MPI wants them. */
typedef struct {
    int counts[TEST_MAX_RANKS], displs[TEST_MAX_RANKS], counts2[TEST_MAX_RANKS], displs2[TEST_MAX_RANKS];
} tables_t;

static void fill_tables(const do_call_t *call, tables_t *x, int size)
{
    int r;

    for (r = 0; r < call->nranks; r++) {
        x->counts[r] = (int)call->counts[r] * size;
        x->displs[r] = (int)call->displs[r] * size;
        x->counts2[r] = (int)call->counts2[r] * size;
        x->displs2[r] = (int)call->displs2[r] * size;
    }
}

static void run_move(const do_call_t *call)
{
    const do_case_t *c = &call->c;
    int n = call->nranks, me = call->rank, bytes = (int)(c->count * ref_size(c->type));
    tables_t x;

    fill_tables(call, &x, (int)ref_size(c->type));
    switch (c->what) {
    case DO_BROADCAST:
        if (me == c->root)
            memcpy(call->recv, call->send, (size_t)bytes);
        MPI_Bcast(call->recv, bytes, MPI_BYTE, c->root, MPI_COMM_WORLD);
        break;
    case DO_ALLGATHER:
        MPI_Allgather(call->send, bytes, MPI_BYTE, call->recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
        break;
    case DO_ALLGATHERV:
        MPI_Allgatherv(call->send, x.counts[me], MPI_BYTE, call->recv, x.counts, x.displs, MPI_BYTE, MPI_COMM_WORLD);
        break;
    case DO_GATHER:
        MPI_Gather(call->send, bytes, MPI_BYTE, call->recv, bytes, MPI_BYTE, c->root, MPI_COMM_WORLD);
        break;
    case DO_GATHERV:
        MPI_Gatherv(call->send, x.counts[me], MPI_BYTE, call->recv, x.counts, x.displs, MPI_BYTE, c->root,
                    MPI_COMM_WORLD);
        break;
    case DO_SCATTER:
        MPI_Scatter(call->send, bytes, MPI_BYTE, call->recv, bytes, MPI_BYTE, c->root, MPI_COMM_WORLD);
        break;
    case DO_SCATTERV:
        MPI_Scatterv(call->send, x.counts, x.displs, MPI_BYTE, call->recv, x.counts[me], MPI_BYTE, c->root,
                     MPI_COMM_WORLD);
        break;
    case DO_ALLTOALL:
        MPI_Alltoall(call->send, bytes, MPI_BYTE, call->recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
        break;
    case DO_ALLTOALLV:
        MPI_Alltoallv(call->send, x.counts, x.displs, MPI_BYTE, call->recv, x.counts2, x.displs2, MPI_BYTE,
                      MPI_COMM_WORLD);
        break;
    case DO_SHIFT:
        MPI_Sendrecv(call->send, bytes, MPI_BYTE, (me + c->root) % n, 0, call->recv, bytes, MPI_BYTE,
                     ((me - c->root) % n + n) % n, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        break;
    default:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    }
}

static void run_reduction(const do_call_t *call)
{
    const do_case_t *c = &call->c;
    MPI_Datatype type = mpi_type_of(c->type);
    MPI_Op op = mpi_op_of(c->op, c->type);
    tables_t x;

    fill_tables(call, &x, 1);
    switch (c->what) {
    case DO_ALLREDUCE:
        MPI_Allreduce(call->send, call->recv, (int)c->count, type, op, MPI_COMM_WORLD);
        break;
    case DO_REDUCE:
        MPI_Reduce(call->send, call->recv, (int)c->count, type, op, c->root, MPI_COMM_WORLD);
        break;
    case DO_REDUCE_SCATTER:
        MPI_Reduce_scatter_block(call->send, call->recv, (int)c->count, type, op, MPI_COMM_WORLD);
        break;
    default:
        MPI_Reduce_scatter(call->send, call->recv, x.counts, type, op, MPI_COMM_WORLD);
        break;
    }
}

static void fail(state_t *s, const do_case_t *c, const char *what)
{
    char text[256];

    do_text(c, text, sizeof text);
    if (s->failures++ < 5)
        printf("random_vs_mpi: FAILED rank %d/%d: %s: %s\n", s->rank, s->nranks, text, what);
}

/* The sign of a zero in a complex product depends on the order of the factors. */
static void unsign_zeros(const do_call_t *call)
{
    size_t i;

    if (!do_reduces(call->c.what))
        return;
    for (i = 0; call->c.type == RONDO_COMPLEX64 && i < call->recv_bytes; i += 4)
        if (memcmp(call->recv + i, "\0\0\0\x80", 4) == 0)
            call->recv[i + 3] = 0;
    for (i = 0; call->c.type == RONDO_COMPLEX128 && i < call->recv_bytes; i += 8)
        if (memcmp(call->recv + i, "\0\0\0\0\0\0\0\x80", 8) == 0)
            call->recv[i + 7] = 0;
}

/* MPI runs the same case on buffers of its own, never in place. */
static void compare_with_mpi(state_t *s, const do_call_t *call)
{
    do_case_t c = call->c;
    do_call_t other;
    size_t size = ref_size(c.type), count = call->recv_bytes / size;

    c.in_place = c.recv_shift = c.send_shift = 0;
    if (do_prepare(&other, &c, s->rank, s->nranks) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (do_reduces(c.what))
        run_reduction(&other);
    else
        run_move(&other);
    unsign_zeros(call);
    unsign_zeros(&other);
    if (ref_hash(c.type, call->recv, count) != ref_hash(c.type, other.recv, count))
        fail(s, &call->c, "differs from MPI");
    do_release(&other);
}

static void run_step(state_t *s)
{
    int grouped = test_below(&s->random, 3) == 0, n = grouped ? 1 + (int)test_below(&s->random, MOST_GROUPED) : 1, i;
    do_call_t call[MOST_GROUPED];
    rondo_result_t result = RONDO_SUCCESS;
    do_case_t c;

    for (i = 0; i < n; i++) {
        draw_case(s, &c);
        if (do_prepare(&call[i], &c, s->rank, s->nranks) != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (grouped)
        result = rondo_group_start();
    for (i = 0; i < n && result == RONDO_SUCCESS; i++)
        result = do_post(&call[i], s->comm);
    if (grouped && result == RONDO_SUCCESS)
        result = rondo_group_end();
    if (result != RONDO_SUCCESS) {
        fail(s, &call[0].c, rondo_last_error(s->comm));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (i = 0; i < n; i++) {
        compare_with_mpi(s, &call[i]);
        do_release(&call[i]);
    }
}

static int is_mpich(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;

    MPI_Get_library_version(text, &length);
    return strstr(text, "MPICH") != NULL;
}

int main(int argc, char **argv)
{
    static const struct option table[] = {{"seed", 1, NULL, 's'}, {"count", 1, NULL, 'c'}, {NULL, 0, NULL, 0}};
    int option, count = 300, i, all = 0;
    uint64_t seed = 1;
    state_t s = {0};

    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (option == 's')
            seed = strtoull(optarg, NULL, 0);
        else if (option == 'c')
            count = atoi(optarg);
        else
            return 2;
    }
    setenv("OMPI_MCA_op", "^avx", 1);
    test_begin("random_vs_mpi", 60 + count / 10);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.nranks);
    s.is_mpich = is_mpich();
    s.random = seed * 16 + (uint64_t)s.nranks;
    if (s.nranks > TEST_MAX_RANKS)
        return TEST_SKIPPED;
    if (rondo_comm_create_mpi(&s.comm, MPI_COMM_WORLD, NULL) != RONDO_SUCCESS) {
        printf("random_vs_mpi: FAILED: %s\n", rondo_last_error(NULL));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (i = 0; i < count; i++)
        run_step(&s);
    rondo_comm_destroy(s.comm);
    MPI_Allreduce(&s.failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (s.rank == 0)
        printf("random_vs_mpi: %d steps, seed %llu, %d ranks: %s\n", i, (unsigned long long)seed, s.nranks,
               all ? "WRONG" : "right");
    MPI_Finalize();
    return all != 0;
}
