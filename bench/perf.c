/* rondo-perf: measures rondo's operations, verifies them, and sets them beside a peer in the same run.
 * This file only starts: options, then ranks (mpirun's, or forked here), then the run. */
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "perf.h"

world_t world;

double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void die(rondo_comm_t comm, const char *format, ...)
{
    const char *why = rondo_last_error(comm);
    va_list args;

    fflush(stdout);
    fprintf(stderr, "rondo-perf: rank %d of %d: ", world.rank, world.nranks);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    if (why && why[0])
        fprintf(stderr, ": %s", why);
    fprintf(stderr, "\n");
    world.abort(1);
    abort();
}

/* Before MPI is started only the environment says which rank this is. */
static bool is_first(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *rank = getenv(names[i]);

        if (rank)
            return atoi(rank) == 0;
    }
    return true;
}

static void tell_pids(void)
{
    double mine = (double)getpid(), all[world.nranks];

    world.pids = calloc((size_t)world.nranks, sizeof *world.pids);
    if (!world.pids)
        die(NULL, "no memory for %d ranks", world.nranks);
    world.gather(&mine, 1, all);
    for (int r = 0; r < world.nranks; r++)
        world.pids[r] = (int)all[r];
}

static bool start(options_t *options, int *argc, char ***argv)
{
    if (options->ranks && world_mpi_launched()) {
        if (is_first())
            fprintf(stderr, "rondo-perf: --ranks starts ranks without mpirun: leave one of the two away\n");
        return false;
    }
    if (options->ranks || !world_start_mpi(argc, argv))
        world_start_fork(options->ranks ? options->ranks : 2);
    tell_pids();
    if (world.nranks == 1 && world.rank == 0 && !options->ranks)
        fprintf(stderr, "rondo-perf: one rank alone: start it by mpirun -n N, or with --ranks N\n");
    return true;
}

int main(int argc, char **argv)
{
    options_t options;
    int end = options_parse(&options, argc, argv, is_first());

    if (end)
        return end - 1;
    if (!start(&options, &argc, &argv))
        return 2;
    end = run(&options);
    if ((fflush(stdout) != 0 || ferror(stdout)) && end == 0) {
        fprintf(stderr, "rondo-perf: what was measured could not be written\n");
        end = 1;
    }
    free(world.pids);
    world.end();
    return end;
}
