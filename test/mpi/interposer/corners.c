/* The corners that make interposers wrong, each by its number in doc/notebook/host.md: what must hold with
 * librondo_mpi.so as without. Everything that a correct program may rely on; a hang ends by the caller's time limit.
 * Here are those of a program's begin and end; the others are in corners_*.h, by subject, as parts of the same program,
 * because what takes time is to start one.
 *
 *   mpirun -n N corners NAME...   (2 to 64 ranks)
 */
#define _GNU_SOURCE
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "corner.h"

/* 3 to 5 in setup.c's manner: nothing but results. */
static void plain(void)
{
    for (int i = 0; i < MANY; i++)
        CHECK(sum_of(rank + i, MPI_COMM_WORLD) == nranks * (nranks - 1) / 2 + nranks * i, "the sum of call %d", i);
}

#include "corners_buffers.h"
#include "corners_chosen.h"
#include "corners_progress.h"
#include "corners_sums.h"

/* 13: handles come back for other groups. */
static void handles(void)
{
    for (int i = 0; i < 8; i++) {
        MPI_Comm part;
        int size, place, color = i % 2 ? rank % 2 : rank < nranks / 2;
        MPI_Comm_split(MPI_COMM_WORLD, color, i % 3 ? -rank : rank, &part);
        MPI_Comm_size(part, &size);
        MPI_Comm_rank(part, &place);
        for (int k = 0; k < MANY; k++) {
            int value = place == size - 1 ? rank : -1;
            MPI_Bcast(&value, 1, MPI_INT, size - 1, part);
            CHECK(value >= 0 && value < nranks, "a broadcast gives %d", value);
            CHECK(sum_of(1, part) == size, "the sum in a part");
        }
        MPI_Comm_free(&part);
    }
}

/* 4: rank 1's environment is another's, from before MPI_Init on. */
static void set_environment(const char *corner)
{
    if (rank_before() != 1)
        return;
    if (strcmp(corner, "environment") == 0) {
        setenv("RONDO_MPI_SERVE", "-allreduce,bcast=0-8", 1);
        setenv("RONDO_MPI_AFTER", "2", 1);
        setenv("RONDO_MPI_REPRODUCIBLE", "1", 1);
        setenv("RONDO_MPI_TABLE", "off", 1);
    } else if (strcmp(corner, "environment_off") == 0 || strcmp(corner, "in_order_without") == 0) {
        setenv("RONDO_MPI_SERVE", "off", 1);
    } else if (strcmp(corner, "in_order_but") == 0) {
        setenv("RONDO_MPI_SERVE", "-reduce", 1);
    }
}

static void environment(void)
{
    CHECK(rank != 1 || getenv("RONDO_MPI_AFTER"), "rank 1 has no environment of its own");
    plain();
    handles();
    choose();
}

static void environment_off(void)
{
    plain();
    handles();
}

/* What is wrong gets an error, where each MPI gives one and does not crash itself. */
static void wrong_sums(void)
{
    double in[MOST_RANKS] = {1}, out[MOST_RANKS];
    int counts[MOST_RANKS] = {1, -1}, code[2], wanted;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code[0] = MPI_Reduce_scatter(in, out, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#ifdef OPEN_MPI
    wanted = MPI_ERR_COUNT;
    code[1] = MPI_Allreduce(in, out, -1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#else
    wanted = MPI_ERR_BUFFER;
    code[1] = MPI_Allreduce(in, NULL, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#endif
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    for (int i = 0; i < 2; i++)
        MPI_Error_class(code[i], &code[i]);
    CHECK(code[0] == MPI_ERR_COUNT && code[1] == wanted, "classes %d and %d", code[0], code[1]);
}

/* 5: one rank cannot make its part. */
static void not_made(void)
{
    double began = seconds();

    if (rank == 1)
        setenv("RONDO_CMA", "banana", 1);
    plain();
    wrong_sums();
    CHECK(seconds() - began < 60, "it took %g s", seconds() - began);
}

/* A child that leaves by exit, without an exec, is nobody's rank. */
static void forks(void)
{
    int status = -1;
    pid_t child;

    plain();
    fflush(stdout);
    child = fork();
    if (child == 0)
        exit(0);
    waitpid(child, &status, 0);
    CHECK(status == 0, "the child ends with %d", status);
    plain();
}

/* 20 */
static void leave(void)
{
    plain();
    fflush(stdout);
    exit(0);
}

static void abort_one(void)
{
    plain();
    fflush(stdout);
    if (rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 3);
    plain();
}

static void die(void)
{
    plain();
    fflush(stdout);
    if (rank == 1)
        raise(9);
    plain();
}

/* One goes while the others wait for it. */
static void leave_one(void)
{
    plain();
    fflush(stdout);
    if (rank == 1)
        exit(0);
    plain();
}

static const corner_t corners[] = {
    {"bottom", bottom},
    {"nothing", nothing},
    {"huge", huge},
    {"large", large},
    {"equal", equal},
    {"choose", choose},
    {"choose_comma", choose_comma},
    {"table", table},
    {"progress", progress},
    {"in_flight", in_flight},
    {"barrier", barrier},
    {"wildcard", wildcard},
    {"mixed", mixed},
    {"matrix", matrix},
    {"characters", characters},
    {"names", names},
    {"ties", ties},
    {"equal_bits", equal_bits},
    {"in_order", in_order},
    {"in_order_without", in_order_without},
    {"in_order_but", in_order_but},
    {"builtin", builtin},
    {"plain", plain},
    {"handles", handles},
    {"environment", environment},
    {"environment_off", environment_off},
    {"not_made", not_made},
    {"forks", forks},
    {"leave", leave},
    {"abort", abort_one},
    {"die", die},
    {"leave_one", leave_one},
};

int main(int argc, char **argv)
{
    if (argc > 1)
        set_environment(argv[1]);
    corners_begin(argc, argv);
    return corners_run(argc, argv, corners, sizeof corners / sizeof corners[0]);
}
