/* See launch.h. Two binary interfaces serve nearly all MPIs: in Open MPI's a communicator is a pointer to a symbol of
 * the library, in MPICH's (Intel's, MVAPICH's, Cray's) a number that mpi.h gives. Both are called here by name, so that
 * one rondo-info serves every launcher, and runs where there is no MPI. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"

#define LIMIT_S 60 /* longer than a pair of nodes may be tried, so that it is not the pair that is named here */

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

static char late[400]; /* what the process says at the limit; written before the alarm is set */

static void at_limit(int number)
{
    (void)number;
    if (write(STDERR_FILENO, late, strlen(late)) < 0)
        _exit(1);
    _exit(1);
}

static void limit(const char *what)
{
    char host[65] = "?";

    gethostname(host, sizeof host - 1);
    snprintf(
        late, sizeof late,
        "rondo-info: %s, process %d: the MPI of the launcher has not carried %s between its ranks in %d s. It cannot "
        "connect these hosts itself, or a rank is stopped: tell it the interface (Open MPI: --mca "
        "btl_tcp_if_include, MPICH: -iface)\n",
        host, (int)getpid(), what, LIMIT_S);
    signal(SIGALRM, at_limit);
    alarm(LIMIT_S);
}

static const char *variable(const char *const *names)
{
    for (; *names; names++)
        if (getenv(*names))
            return getenv(*names);
    return NULL;
}

bool launch_is_rank(void)
{
    static const char *const marks[] = {"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "PMI_FD",
                                        "SLURM_STEP_NUM_TASKS", NULL};

    return variable(marks) != NULL;
}

static bool find(void *library, const char *name, void *pointer)
{
    void *symbol = dlsym(library, name);

    memcpy(pointer, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool find_all(void *library)
{
    bool found = find(library, "MPI_Init", &mpi.init) && find(library, "MPI_Finalize", &mpi.finalize);

    mpi.open = find(library, "ompi_mpi_comm_world", &mpi.open_comm) && find(library, "ompi_mpi_byte", &mpi.open_byte);
    mpi.number_comm = MPICH_WORLD;
    if (mpi.open)
        return found && find(library, "MPI_Comm_rank", &mpi.open_rank) &&
               find(library, "MPI_Comm_size", &mpi.open_size) && find(library, "MPI_Allgather", &mpi.open_gather) &&
               find(library, "MPI_Comm_split", &mpi.open_split);
    return found && find(library, "MPI_Comm_rank", &mpi.number_rank) &&
           find(library, "MPI_Comm_size", &mpi.number_size) && find(library, "MPI_Allgather", &mpi.number_gather) &&
           find(library, "MPI_Comm_split", &mpi.number_split);
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

int launch_start(int *rank, int *nranks, char why[LAUNCH_WHY])
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", NULL};
    const char *size = variable(sizes);

    if (load(why) != 0)
        return -1;
    limit("its own start");
    bool good =
        mpi.init(NULL, NULL) == 0 &&
        (mpi.open ? mpi.open_rank(mpi.open_comm, rank) == 0 && mpi.open_size(mpi.open_comm, nranks) == 0
                  : mpi.number_rank(mpi.number_comm, rank) == 0 && mpi.number_size(mpi.number_comm, nranks) == 0);
    alarm(0);
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

int launch_gather(const void *mine, void *all, size_t bytes, const char *what)
{
    limit(what);
    int result = mpi.open
                     ? mpi.open_gather(mine, (int)bytes, mpi.open_byte, all, (int)bytes, mpi.open_byte, mpi.open_comm)
                     : mpi.number_gather(mine, (int)bytes, MPICH_BYTE, all, (int)bytes, MPICH_BYTE, mpi.number_comm);
    alarm(0);
    return result == 0 ? 0 : -1;
}

int launch_keep(bool stays)
{
    limit("the choice of a rank a node");
    int result = mpi.open ? mpi.open_split(mpi.open_comm, stays, 0, &mpi.open_comm)
                          : mpi.number_split(mpi.number_comm, stays, 0, &mpi.number_comm);
    alarm(0);
    return result == 0 ? 0 : -1;
}

/* Ranks that do not stay wait here for those that do, and those know their limits. */
void launch_end(void)
{
    mpi.finalize();
}
