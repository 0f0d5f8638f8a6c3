/* Built without an MPI: ranks are forked, and there is no MPI to compare with. In place of launch_mpi.c, peer_mpi.c. */
#include "perf.h"

bool world_mpi_launched(void)
{
    return false;
}

bool world_start_mpi(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return false;
}

bool peer_mpi_open(const options_t *options)
{
    (void)options;
    fprintf(stderr, "rondo-perf: --peer mpi: built without an MPI; configure --with-mpi\n");
    return false;
}

call_t peer_mpi_call(const job_t *job)
{
    (void)job;
    return NULL;
}

void peer_mpi_close(void)
{
}

const char *peer_mpi_version(void)
{
    return "none";
}
