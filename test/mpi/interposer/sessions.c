/* Sessions of MPI 4: communicators that are there before MPI_Init and after MPI_Finalize, or without either. The first
 * collective call of the process is on one of them.
 *
 *   mpirun -n N sessions [world]   (2 to 64 ranks; world: with MPI_Init and MPI_Finalize in between)
 */
#include "corner.h"

#if MPI_VERSION >= 4
enum { CALLS = 20 };

static MPI_Comm comm_of(MPI_Session session, const char *tag)
{
    MPI_Group group;
    MPI_Comm comm;

    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    return comm;
}

static void use(MPI_Comm comm)
{
    for (int i = 0; i < CALLS; i++) {
        int root = i % nranks, value = rank == root ? i : -1, one = 1, sum = 0;
        MPI_Request request;
        MPI_Bcast(&value, 1, MPI_INT, root, comm);
        CHECK(value == i, "broadcast %d: %d", i, value);
        CHECK(sum_of(rank, comm) == nranks * (nranks - 1) / 2, "sum %d", i);
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(sum == nranks, "nonblocking sum %d: %d", i, sum);
        MPI_Barrier(comm);
    }
}

/* The world, and a communicator of another session that is made meanwhile. */
static void use_world(MPI_Comm before)
{
    MPI_Session session;
    MPI_Comm meanwhile;

    MPI_Init(NULL, NULL);
    now = "with MPI_Init";
    use(MPI_COMM_WORLD);
    use(before);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    meanwhile = comm_of(session, "meanwhile");
    use(meanwhile);
    MPI_Finalize();
    now = "after MPI_Finalize";
    use(meanwhile);
    MPI_Comm_free(&meanwhile);
    MPI_Session_finalize(&session);
}

int main(int argc, char **argv)
{
    MPI_Session session;
    MPI_Comm comm;
    int all = 0;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    comm = comm_of(session, "first");
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &nranks);
    now = "before MPI_Init";
    use(comm);
    if (argc > 1 && strcmp(argv[1], "world") == 0)
        use_world(comm);
    use(comm);
    PMPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    if (!rank && !all && !failures)
        printf("good\n");
    return all != 0 || failures != 0;
}
#else
int main(void)
{
    printf("good\n");
    return 0;
}
#endif
