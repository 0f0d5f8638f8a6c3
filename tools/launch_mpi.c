/* The ranks of a job by MPI. Two binary interfaces serve nearly all MPIs: in Open MPI's a communicator is a pointer to
 * a symbol of the library, in MPICH's (Intel's, MVAPICH's, Cray's) a number that mpi.h gives. Both are called here by
 * name, so that one rondo-info serves every launcher, and runs where there is no MPI. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch_int.h"

/* MPICH's values; they are the same in all libraries of its interface. */
#define MPICH_WORLD 0x44000000
#define MPICH_BYTE 0x4c00010d

static struct {
    bool open; /* Open MPI's interface */
    int (*init)(int *, char ***);
    int (*finalize)(void);
    int (*open_rank)(void *, int *), (*open_size)(void *, int *);
    int (*open_gather)(const void *, int, void *, void *, int, void *, void *);
    int (*open_split)(void *, int, int, void **);
    int (*number_rank)(int, int *), (*number_size)(int, int *);
    int (*number_gather)(const void *, int, int, void *, int, int, int);
    int (*number_split)(int, int, int, int *);
    void *open_comm, *open_byte;
    int number_comm;
} mpi;

static bool find_all(void *library)
{
    bool found = launch_find(library, "MPI_Init", &mpi.init) && launch_find(library, "MPI_Finalize", &mpi.finalize);

    mpi.open = launch_find(library, "ompi_mpi_comm_world", &mpi.open_comm) &&
               launch_find(library, "ompi_mpi_byte", &mpi.open_byte);
    mpi.number_comm = MPICH_WORLD;
    if (mpi.open)
        return found && launch_find(library, "MPI_Comm_rank", &mpi.open_rank) &&
               launch_find(library, "MPI_Comm_size", &mpi.open_size) &&
               launch_find(library, "MPI_Allgather", &mpi.open_gather) &&
               launch_find(library, "MPI_Comm_split", &mpi.open_split);
    return found && launch_find(library, "MPI_Comm_rank", &mpi.number_rank) &&
           launch_find(library, "MPI_Comm_size", &mpi.number_size) &&
           launch_find(library, "MPI_Allgather", &mpi.number_gather) &&
           launch_find(library, "MPI_Comm_split", &mpi.number_split);
}

/* Of several MPIs on a host only that of the launcher makes one job of its ranks. */
static int load(char why[LAUNCH_WHY])
{
    static const char *const open[] = {"libmpi.so.40", "libmpi.so.80", "libmpi.so.20", "libmpi.so", NULL};
    static const char *const mpich[] = {"libmpich.so.12", "libmpi.so.12", "libmpi.so", NULL};
    static const char *const any[] = {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi.so", NULL};
    bool by_open = getenv("OMPI_COMM_WORLD_SIZE") != NULL, by_hydra = !by_open && getenv("PMI_FD") != NULL;
    const char *const *names = by_open ? open : by_hydra ? mpich : any;

    for (; *names; names++) {
        /* Open MPI's plugins look for its symbols among the global ones. */
        void *library = dlopen(*names, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
        if (library && find_all(library) && !(by_open && !mpi.open) && !(by_hydra && mpi.open))
            return 0;
    }
    snprintf(why, LAUNCH_WHY,
             "the library of the %s that has started this process cannot be loaded (%s): its folder must be in "
             "LD_LIBRARY_PATH on all nodes (module load; mpirun -x LD_LIBRARY_PATH)",
             by_open    ? "Open MPI"
             : by_hydra ? "MPICH"
                        : "launcher",
             by_open    ? "libmpi.so.40"
             : by_hydra ? "libmpich.so.12 or libmpi.so.12"
                        : "libmpi.so.40, libmpi.so.12");
    return -1;
}

int launch_mpi_start(int *rank, int *nranks, char why[LAUNCH_WHY])
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    const char *size = NULL;

    for (int i = 0; i < 3 && !size; i++)
        size = getenv(sizes[i]);
    if (load(why) != 0)
        return -1;
    bool good =
        mpi.init(NULL, NULL) == 0 &&
        (mpi.open ? mpi.open_rank(mpi.open_comm, rank) == 0 && mpi.open_size(mpi.open_comm, nranks) == 0
                  : mpi.number_rank(mpi.number_comm, rank) == 0 && mpi.number_size(mpi.number_comm, nranks) == 0);
    if (!good)
        snprintf(why, LAUNCH_WHY, "MPI_Init has failed");
    else if (size && atoi(size) != *nranks)
        snprintf(
            why, LAUNCH_WHY,
            "the launcher has started %s ranks, but the MPI that was loaded knows of %d: it is another one than the "
            "launcher's (LD_LIBRARY_PATH), or was not told (srun --mpi=list)",
            size, *nranks);
    else
        return 0;
    return -1;
}

static int gather(const void *mine, void *all, size_t bytes)
{
    int n = (int)bytes, result = mpi.open
                                     ? mpi.open_gather(mine, n, mpi.open_byte, all, n, mpi.open_byte, mpi.open_comm)
                                     : mpi.number_gather(mine, n, MPICH_BYTE, all, n, MPICH_BYTE, mpi.number_comm);
    return result == 0 ? 0 : -1;
}

static int keep(bool stays)
{
    int result = mpi.open ? mpi.open_split(mpi.open_comm, stays, 0, &mpi.open_comm)
                          : mpi.number_split(mpi.number_comm, stays, 0, &mpi.number_comm);
    return result == 0 ? 0 : -1;
}

static void end(void)
{
    mpi.finalize();
}

const launch_ops_t launch_mpi = {NULL, gather, keep, end};
