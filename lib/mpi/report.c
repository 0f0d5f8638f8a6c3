/* What was served and what was handed on, and why: at the end of the program, on rank 0, for its own calls. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "mpi/interpose.h"

rd_mpi_tally_t rd_mpi_tallies[RD_MPI_KINDS];

static const char *const reasons[RD_MPI_REASONS] = {
    "served",
    "switched off by RONDO_MPI_SERVE",
    "outside of the bytes of RONDO_MPI_SERVE",
    "for which the MPI was measured to be quicker (RONDO_MPI_TABLE)",
    "on a communicator of one rank",
    "on an intercommunicator",
    "with ranks that were spawned or connected",
    "among the first on its communicator (RONDO_MPI_AFTER)",
    "on a communicator that rondo could not make",
    "with an operator, a type or a length that rondo does not serve",
    "with an argument that the MPI must judge",
    "to compare (RONDO_MPI_COMPARE)",
    "persistent, while too many others have their communicators",
    "nonblocking, with MPI_THREAD_MULTIPLE, in an MPI that goes on after failures, or where a tool before rondo or the "
    "MPI hides the progress from it",
};

double rd_mpi_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void rd_mpi_say_handed_on(int kind, rd_mpi_reason_t reason)
{
    static _Atomic uint32_t said[RD_MPI_KINDS];

    if (!(atomic_fetch_or(&said[kind], 1u << reason) >> reason & 1))
        fprintf(stderr, "rondo: MPI %s is handed on: %s\n", rd_mpi_names[kind], reasons[reason]);
}

static uint64_t handed_on(const rd_mpi_tally_t *t)
{
    uint64_t all = 0;

    for (int reason = 1; reason < RD_MPI_REASONS; reason++)
        all += t->handed_on[reason];
    return all;
}

static void print_row(FILE *out, const char *name, const rd_mpi_tally_t *t)
{
    uint64_t others = handed_on(t), compared = t->handed_on[RD_MPI_COMPARED];

    if (!t->served && !others)
        return;
    fprintf(out, "  %-20s %10llu %10llu %6.1f%% %14llu %9.3f", name, (unsigned long long)(t->served + others),
            (unsigned long long)t->served, 100.0 * (double)t->served / (double)(t->served + others),
            (unsigned long long)t->bytes, t->served_s);
    if (t->served)
        fprintf(out, " %9.2f", 1e6 * t->served_s / (double)t->served);
    else
        fprintf(out, " %9s", "-");
    if (compared && t->compared_s > 0) /* not of all: that mean is one over other calls */
        fprintf(out, " %9.2f", 1e6 * t->compared_s / (double)compared);
    fprintf(out, "\n");
}

static void write_report(FILE *out)
{
    rd_mpi_tally_t all = {0};

    for (int kind = 0; kind < RD_MPI_KINDS; kind++) {
        all.served += rd_mpi_tallies[kind].served;
        all.bytes += rd_mpi_tallies[kind].bytes;
        all.served_s += rd_mpi_tallies[kind].served_s;
        for (int reason = 1; reason < RD_MPI_REASONS; reason++)
            all.handed_on[reason] += rd_mpi_tallies[kind].handed_on[reason];
    }
    if (!all.served && !handed_on(&all)) {
        fprintf(out, "rondo: rank 0 made no collective call\n");
        return;
    }
    fprintf(out,
            "rondo: collective calls of rank 0: all, those that rondo served, their bytes and seconds, the "
            "mean microseconds of one%s\n",
            all.handed_on[RD_MPI_COMPARED] ? " and of one by the MPI" : "");
    for (int kind = 0; kind < RD_MPI_KINDS; kind++)
        print_row(out, rd_mpi_names[kind], &rd_mpi_tallies[kind]);
    print_row(out, "all", &all);
    for (int reason = 1; reason < RD_MPI_REASONS; reason++) {
        if (all.handed_on[reason])
            fprintf(out, "  the MPI served %llu %s\n", (unsigned long long)all.handed_on[reason], reasons[reason]);
    }
}

static pid_t process; /* that reports; not one that it has forked */

/* In one piece, or what other ranks and the program say would get between its numbers. */
static void report(void)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = getpid() == process ? open_memstream(&text, &length) : NULL;

    if (!out)
        return;
    write_report(out);
    if (fclose(out) == 0)
        fputs(text, stderr);
    free(text);
}

void rd_mpi_report_start(void)
{
    int rank = -1;

    if (rd_mpi_settings.report && PMPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS && rank == 0) {
        process = getpid();
        atexit(report);
    }
}
