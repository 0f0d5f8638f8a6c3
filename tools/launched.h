/* Has a launcher of MPI's or PMI's started this process as a rank of a job? By what such launchers leave in the
 * environment; srun's own variables are also those of a process that is alone in its step. */
#ifndef RD_LAUNCHED_H
#define RD_LAUNCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

static inline bool launched_by_mpi(void)
{
    static const char *const marks[] = {"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "PMI_FD"};

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (getenv(marks[i]))
            return true;
    return false;
}

#endif
