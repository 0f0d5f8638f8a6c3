/* A communicator is revoked (MPIX_Comm_revoke) while other ranks are in a collective that rondo serves: they come out
 * of it with the MPI's error for that, and other communicators of the same ranks go on.
 *
 *   mpirun --with-ft ulfm -n N revoke NAME...       (Open MPI 5)
 *   MPIR_CVAR_ENABLE_FT=1 mpirun -n N revoke NAME...   (MPICH; played_revoke.c plays what MPICH 4.0's ch4 has not)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "corner.h"
#if defined OPEN_MPI && OMPI_MAJOR_VERSION >= 5
#include <mpi-ext.h>
#endif

static MPI_Comm others;

/* A duplicate of the world whose errors are returned, and which rondo serves. */
static MPI_Comm ready(void)
{
    MPI_Comm comm;
    void (*play)(MPI_Comm) = (void (*)(MPI_Comm))dlsym(RTLD_DEFAULT, "played_revoke_of");

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (play)
        play(comm);
    warm(comm);
    return comm;
}

/* All have come here, so that what the others begin next has not been revoked before they made ready for it. */
static int begins(void)
{
    MPI_Barrier(others);
    return rank != 0;
}

static void is_revoked(int result, const char *what)
{
    int class = result;

    MPI_Error_class(result, &class);
    CHECK(class == MPIX_ERR_REVOKED, "%s returned %d, of class %d", what, result, class);
}

static void others_go_on(void)
{
    for (int i = 0; i < MANY; i++) {
        CHECK(sum_of(1, others) == nranks, "another communicator");
        CHECK(sum_of(1, MPI_COMM_WORLD) == nranks, "the world");
    }
}

static void blocking(void)
{
    MPI_Comm comm = ready();
    int one = 1, sum;

    if (begins())
        is_revoked(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm), "MPI_Allreduce");
    else
        MPIX_Comm_revoke(comm);
    is_revoked(MPI_Barrier(comm), "MPI_Barrier after it");
    others_go_on();
    MPI_Comm_free(&comm);
}

static void nonblocking(void)
{
    MPI_Comm comm = ready();
    MPI_Request request;
    int one = 1, sum;

    warm_all(comm);
    if (begins()) {
        int result = MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
        if (result == MPI_SUCCESS) /* it may have been revoked by now */
            result = MPI_Wait(&request, MPI_STATUS_IGNORE);
        is_revoked(result, "MPI_Wait");
    } else {
        MPIX_Comm_revoke(comm);
    }
    others_go_on();
    MPI_Comm_free(&comm);
}

/* A rank has died: those that wait for it hear of that, and what is left goes on without it. */
static void dies(void)
{
#if defined OPEN_MPI
    MPI_Comm comm = ready(), left;
    int result, class, one = 1, sum;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (begins() && rank == 1)
        _exit(0);
    result = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Error_class(result, &class);
    CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED, "class %d", class);
    MPIX_Comm_revoke(comm);
    MPIX_Comm_shrink(comm, &left);
    for (int i = 0; i < MANY; i++)
        CHECK(sum_of(1, left) == nranks - 1, "the sum of those that are left");
    if (!rank && !failures)
        printf("good\n");
    fflush(stdout);
    MPI_Barrier(left);
    _exit(failures != 0);
#endif
}

static const corner_t corners[] = {{"blocking", blocking}, {"nonblocking", nonblocking}, {"dies", dies}};

int main(int argc, char **argv)
{
    corners_begin(argc, argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &others);
    return corners_run(argc, argv, corners, sizeof corners / sizeof corners[0]);
}
