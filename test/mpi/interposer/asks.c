/* MPI 4.1's calls that ask for several requests go by the interposer where the MPI makes no progress for rondo, and come to
 * the MPI, played by played_statuses.c, as they were made. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "corner.h"

int MPI_Request_get_status_all(int n, const MPI_Request requests[], int *flag, MPI_Status statuses[]);
int MPI_Request_get_status_any(int n, const MPI_Request requests[], int *index, int *flag, MPI_Status *status);
int MPI_Request_get_status_some(int n, const MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]);
extern int played_calls;

#define LONG (1 << 16)
#define TAG 3

static void goes_by(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    Dl_info where;

    CHECK(found && dladdr(found, &where) && strstr(where.dli_fname, "librondo_mpi.so"), "%s does not go by", name);
}

/* Two long sums, and between them a message that this rank sends itself only when they are over. */
static void asks(void)
{
    static int in[LONG], out[2][LONG];
    int flag = 0, index = -1, n = 0, indices[3] = {-1, -1, -1}, calls = 0, token = 0, mine = 5;
    MPI_Request requests[3];
    MPI_Status statuses[3], status;

    goes_by("MPI_Request_get_status_all");
    goes_by("MPI_Request_get_status_any");
    goes_by("MPI_Request_get_status_some");
    for (int i = 0; i < LONG; i++)
        in[i] = i;
    MPI_Iallreduce(in, out[0], LONG, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&token, 1, MPI_INT, rank, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Iallreduce(in, out[1], LONG, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
    for (; n < 2; calls++)
        MPI_Request_get_status_some(3, requests, &n, indices, statuses);
    CHECK(n == 2 && indices[0] == 0 && indices[1] == 2, "some: %d of them, %d and %d", n, indices[0], indices[1]);
    MPI_Request_get_status_any(3, requests, &index, &flag, &status);
    CHECK(flag && index == 0, "any: %d, %d", flag, index);
    MPI_Request_get_status_any(1, &requests[1], &index, &flag, &status);
    CHECK(!flag && index == MPI_UNDEFINED, "any of none: %d, %d", flag, index);
    MPI_Request_get_status_all(3, requests, &flag, statuses);
    CHECK(!flag, "all, before the message");
    MPI_Send(&mine, 1, MPI_INT, rank, TAG, MPI_COMM_WORLD);
    for (calls += 3; !flag; calls++)
        MPI_Request_get_status_all(3, requests, &flag, statuses);
    CHECK(statuses[1].MPI_TAG == TAG && token == mine, "the message: tag %d, %d", statuses[1].MPI_TAG, token);
    CHECK(played_calls == calls, "%d of %d calls came to the MPI", played_calls, calls);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < LONG; i++)
        CHECK(out[0][i] == i * nranks && out[1][i] == i * nranks, "sums of %d: %d and %d", i, out[0][i], out[1][i]);
}

int main(int argc, char **argv)
{
    static const corner_t corners[] = {{"asks", asks}};

    corners_begin(argc, argv);
    warm_all(MPI_COMM_WORLD);
    return corners_run(argc, argv, corners, 1);
}
