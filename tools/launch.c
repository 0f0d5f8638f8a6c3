/* See launch.h. The launcher's daemons are asked first, because they reach all ranks whatever stands between the nodes.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch_int.h"
#include "launched.h"

#define LIMIT_S 60 /* longer than a pair of nodes may be tried, so that it is not the pair that is named here */

static const launch_ops_t *ops;
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
    snprintf(late, sizeof late,
             "rondo-info: %s, process %d: the launcher has not carried %s between its ranks in %d s. Its MPI cannot "
             "connect these hosts, or a rank is stopped: tell it the interface (Open MPI: --mca "
             "btl_tcp_if_include, MPICH: -iface)\n",
             host, (int)getpid(), what, LIMIT_S);
    signal(SIGALRM, at_limit);
    alarm(LIMIT_S);
}

bool launch_is_rank(void)
{
    return launched_by_mpi() || getenv("SLURM_STEP_NUM_TASKS");
}

bool launch_find(void *library, const char *name, void *pointer)
{
    void *symbol = dlsym(library, name);

    memcpy(pointer, &symbol, sizeof symbol);
    return symbol != NULL;
}

int launch_start(int *rank, int *nranks, char why[LAUNCH_WHY])
{
    limit("the start of MPI or PMIx");
    ops = launch_pmix.start(rank, nranks) ? &launch_pmix : &launch_mpi;
    int result = ops == &launch_pmix ? 0 : launch_mpi_start(rank, nranks, why);
    alarm(0);
    return result;
}

int launch_gather(const void *mine, void *all, size_t bytes, const char *what)
{
    limit(what);
    int result = ops->gather(mine, all, bytes);
    alarm(0);
    return result;
}

int launch_keep(bool stays)
{
    limit("the choice of a rank a node");
    int result = ops->keep(stays);
    alarm(0);
    return result;
}

/* Ranks that do not stay wait here for those that do, and those know their limits. */
void launch_end(void)
{
    ops->end();
}
