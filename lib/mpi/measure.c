/* What the MPI takes, and what rondo takes: for RONDO_MPI_TABLE, once for a number of ranks. Both run in turns on the
 * program's MPI_COMM_WORLD, inside of the first collective call on it; all ranks end with the same numbers: of the
 * slowest rank the best turn, for what disturbs one comes from outside. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/interpose.h"

#define LEAST 8
#define MOST (2 << 20)  /* bytes of a block, of the message */
#define ROOM (64 << 20) /* bytes of the blocks of all ranks */
#define TURNS 5
#define TURN 100e-6 /* seconds of one turn, roughly */
#define SECONDS 10  /* when it is given up: what was not measured is as the nearest that was */

/* What all the calls need: two buffers for the blocks of all ranks, and lists of counts and displacements. */
typedef struct {
    rd_mpi_comm_t *c;
    char *send, *recv;
    int *counts, *displs;
    double began;
    rd_mpi_timing_t *timings;
    int num;
} measuring_t;

/* Operations whose bytes are the same on all ranks; others are always rondo's. */
static const rd_mpi_what_t measured[] = {
    RD_MPI_BARRIER_CALL,   RD_MPI_BCAST,      RD_MPI_REDUCE,  RD_MPI_ALLREDUCE, RD_MPI_REDUCE_SCATTER_BLOCK,
    RD_MPI_REDUCE_SCATTER, RD_MPI_SCAN,       RD_MPI_EXSCAN,  RD_MPI_GATHER,    RD_MPI_SCATTER,
    RD_MPI_ALLGATHER,      RD_MPI_ALLGATHERV, RD_MPI_ALLTOALL};

/* A call of about `bytes`, as rd_mpi_allowed counts them; *bytes becomes what they are. */
static rd_mpi_call_t call_of(const measuring_t *m, rd_mpi_what_t what, uint64_t *bytes)
{
    int n = m->c->nranks, count = (int)(*bytes / (rd_mpi_reduces(what) ? sizeof(double) : 1));
    bool shared = what == RD_MPI_REDUCE_SCATTER_BLOCK || what == RD_MPI_REDUCE_SCATTER || what == RD_MPI_ALLGATHERV;

    if (shared) {
        count = count / n ? count / n : 1;
        *bytes = (uint64_t)count * (uint64_t)n * (rd_mpi_reduces(what) ? sizeof(double) : 1);
    }
    for (int r = 0; r < n; r++) {
        m->counts[r] = count;
        m->displs[r] = r * count;
    }
    return (rd_mpi_call_t){.what = what,
                           .send = m->send,
                           .recv = what == RD_MPI_BCAST ? m->send : m->recv,
                           .sendcount = count,
                           .recvcount = count,
                           .recvcounts = m->counts,
                           .rdispls = m->displs,
                           .sendtype = rd_mpi_reduces(what) ? MPI_DOUBLE : MPI_BYTE,
                           .recvtype = rd_mpi_reduces(what) ? MPI_DOUBLE : MPI_BYTE,
                           .op = MPI_SUM,
                           .comm = m->c->comm};
}

/* Seconds of `times` calls, until all ranks are through. Negative: this one is not served. */
static double turn(const measuring_t *m, const rd_mpi_call_t *call, bool rondo, int times)
{
    double began;
    int result = MPI_SUCCESS;

    PMPI_Barrier(m->c->comm);
    began = rd_mpi_clock();
    for (int i = 0; i < times && result == MPI_SUCCESS; i++)
        result = rondo ? rd_mpi_serve(m->c, call) : rd_mpi_pass(call);
    PMPI_Barrier(m->c->comm);
    return result == MPI_SUCCESS ? (rd_mpi_clock() - began) / times : -1;
}

static void measure_one(measuring_t *m, rd_mpi_what_t what, uint64_t bytes)
{
    rd_mpi_call_t call = call_of(m, what, &bytes);
    double took, mine[2], all[2];
    int times;

    mine[0] = turn(m, &call, true, 1); /* makes the plan and the connections */
    mine[1] = mine[0] < 0 ? 0 : turn(m, &call, false, 1);
    if (mine[0] >= 0)
        mine[0] = turn(m, &call, true, 1);
    PMPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, m->c->comm);
    if (all[0] < 0) /* too long for rondo */
        return;
    times = all[0] > TURN ? 1 : all[0] > TURN / 50 ? (int)(TURN / all[0]) : 50;
    for (int i = 0; i < 2 * TURNS; i++) {
        took = turn(m, &call, i % 2 == 0, times);
        if (i < 2 || took < mine[i % 2])
            mine[i % 2] = took;
    }
    PMPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, m->c->comm);
    m->timings[m->num++] = (rd_mpi_timing_t){what, m->c->nranks, bytes, 1e6 * all[0], 1e6 * all[1]};
}

static bool is_late(const measuring_t *m)
{
    int late = rd_mpi_clock() - m->began > SECONDS;

    PMPI_Bcast(&late, 1, MPI_INT, 0, m->c->comm);
    return late;
}

static void measure_all(measuring_t *m)
{
    for (uint64_t bytes = LEAST; bytes <= MOST; bytes *= 4) {
        for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++) {
            rd_mpi_what_t what = measured[i];
            bool blocks =
                what == RD_MPI_GATHER || what == RD_MPI_SCATTER || what == RD_MPI_ALLGATHER || what == RD_MPI_ALLTOALL;
            if ((what == RD_MPI_BARRIER_CALL && bytes > LEAST) || (blocks && bytes * (uint64_t)m->c->nranks > ROOM) ||
                !rd_mpi_allowed(m->c, what, bytes))
                continue;
            if (is_late(m))
                return;
            measure_one(m, what, what == RD_MPI_BARRIER_CALL ? 0 : bytes);
        }
    }
}

void rd_mpi_measure(rd_mpi_comm_t *c, rd_mpi_rules_t *rules, const char *path)
{
    measuring_t m = {.c = c, .began = rd_mpi_clock()};
    size_t n = (size_t)c->nranks, room = n * MOST < ROOM ? n * MOST : ROOM;
    rd_mpi_tally_t before[RD_MPI_NUM];
    int mine, all = 0;

    if (room < 2 * MOST)
        room = 2 * MOST;
    m.send = calloc(1, room);
    m.recv = calloc(1, room);
    m.counts = malloc(2 * n * sizeof *m.counts);
    m.displs = m.counts ? m.counts + n : NULL;
    m.timings = malloc(sizeof measured / sizeof measured[0] * 16 * sizeof *m.timings);
    mine = m.send && m.recv && m.counts && m.timings;
    memcpy(before, rd_mpi_tallies, sizeof before);
    if (PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, c->comm) == MPI_SUCCESS && all) {
        measure_all(&m);
        rd_mpi_table_use(rules, m.timings, m.num);
        if (c->rank == 0) {
            rd_mpi_table_write(path, m.timings, m.num);
            fprintf(
                stderr,
                "rondo: measured the MPI beside rondo for %d ranks in %.1f s, for this run and, in %s, for others\n",
                c->nranks, rd_mpi_clock() - m.began, path);
        }
    }
    memcpy(rd_mpi_tallies, before, sizeof before);
    free(m.send);
    free(m.recv);
    free(m.counts);
    free(m.timings);
}
