/* Plays an MPI in which communicators can be revoked: of the one that the program names, all ranks hear of it.
 * Preloaded behind the interposer. RONDO_TEST_PLAYED names a file that the ranks share. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static MPI_Comm played = MPI_COMM_NULL;
static _Atomic int *revoked;

void played_revoke_of(MPI_Comm comm)
{
    int file = open(getenv("RONDO_TEST_PLAYED"), O_RDWR | O_CREAT, 0600);

    if (file < 0 || ftruncate(file, sizeof *revoked) != 0)
        abort();
    revoked = mmap(NULL, sizeof *revoked, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (revoked == MAP_FAILED)
        abort();
    played = comm;
    atomic_store(revoked, 0);
}

int MPIX_Comm_revoke(MPI_Comm comm)
{
    if (comm == played)
        atomic_store(revoked, 1);
    return MPI_SUCCESS;
}

int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    int (*probe)(int, int, MPI_Comm, int *, MPI_Status *) =
        (int (*)(int, int, MPI_Comm, int *, MPI_Status *))dlsym(RTLD_NEXT, "PMPI_Iprobe");

    return comm == played && atomic_load(revoked) ? MPIX_ERR_REVOKED : probe(source, tag, comm, flag, status);
}
