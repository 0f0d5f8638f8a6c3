/* What the MPI takes, and what rondo takes, for an operation and a number of bytes. Both run in turns on the program's
 * communicator, at the end of a call that all its ranks make; all end with the same numbers: of the slowest rank the
 * best turn, for what disturbs one comes from outside. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/interpose.h"
#include "mpi/waits.h"

#define ROOM (64 << 20) /* bytes of the blocks of all ranks; what is longer stays rondo's */
#define TURN 30e-6      /* seconds of one turn, roughly */
#define MOST 60         /* calls in one turn */
#define TURNS 5         /* of each in a round */
#define ROUNDS 3        /* of TURNS turns each, where the two are close */
#define GLANCE 6        /* before them a glance: this part of the calls, */
#define GLANCES 2       /* in so many turns of each */
#define LONG 5e-3       /* seconds after which no other round begins: the cores are busy with something else */

/* What all the calls need: two buffers for the blocks of all ranks, lists of counts and displacements, and for a
 * persistent one the MPI's request and rondo's. */
typedef struct {
    rd_mpi_comm_t *c;
    char *send, *recv;
    int *counts, *displs;
    MPI_Request requests[2];
} measuring_t;

/* A call of about `bytes`, as rd_mpi_admit counts them. */
static rd_mpi_call_t call_of(const measuring_t *m, int kind, uint64_t bytes)
{
    rd_mpi_what_t what = (rd_mpi_what_t)(kind % RD_MPI_NUM);
    int n = m->c->nranks, count = (int)(bytes / (rd_mpi_reduces(what) ? sizeof(double) : 1));
    MPI_Datatype type = rd_mpi_reduces(what) ? MPI_DOUBLE : MPI_BYTE;

    if (what == RD_MPI_REDUCE_SCATTER_BLOCK || what == RD_MPI_REDUCE_SCATTER || what == RD_MPI_ALLGATHERV)
        count /= n; /* their bytes are those of all blocks */
    if (count == 0 && bytes)
        count = 1;
    for (int r = 0; r < n; r++) {
        m->counts[r] = count;
        m->displs[r] = r * count;
    }
    return (rd_mpi_call_t){.what = what,
                           .form = (rd_mpi_form_t)(kind / RD_MPI_NUM),
                           .send = m->send,
                           .recv = what == RD_MPI_BCAST ? m->send : m->recv,
                           .sendcount = count,
                           .recvcount = count,
                           .sendcounts = m->counts,
                           .sdispls = m->displs,
                           .recvcounts = m->counts,
                           .rdispls = m->displs,
                           .sendtype = type,
                           .recvtype = type,
                           .op = MPI_SUM,
                           .comm = m->c->comm};
}

static int once(measuring_t *m, const rd_mpi_call_t *call, bool rondo)
{
    MPI_Request request;
    int result;

    if (call->form == RD_MPI_PERSISTENT)
        return rd_mpi_start_and_wait(&m->requests[rondo]);
    if (call->form == RD_MPI_BLOCKING)
        return rondo ? rd_mpi_serve(m->c, call) : rd_mpi_pass(call, NULL);
    result = rondo ? rd_mpi_start_own(m->c, call, &request) : rd_mpi_pass(call, &request);
    return result == MPI_SUCCESS ? rd_mpi_wait(&request) : result;
}

/* Seconds of `times` calls, until all ranks are through. Negative: this one is not served. */
static double turn(measuring_t *m, const rd_mpi_call_t *call, bool rondo, int times)
{
    double began;
    int result = MPI_SUCCESS;

    PMPI_Barrier(m->c->comm);
    began = rd_mpi_clock();
    for (int i = 0; i < times && result == MPI_SUCCESS; i++)
        result = once(m, call, rondo);
    PMPI_Barrier(m->c->comm);
    return result == MPI_SUCCESS ? (rd_mpi_clock() - began) / times : -1;
}

/* The first two turns make plans and connections, the third one says how many calls make a turn. All ranks hear the
 * same number. */
static int calls_in_a_turn(measuring_t *m, const rd_mpi_call_t *call)
{
    enum { TOOK, FAILED, WORDS };
    double first = turn(m, call, true, 1), its = turn(m, call, false, 1), mine[WORDS], all[WORDS];

    mine[TOOK] = turn(m, call, true, 1); /* on a rank that has failed, too: its barriers are those of the others */
    mine[FAILED] = first < 0 || its < 0 || mine[TOOK] < 0;
    if (mine[TOOK] < its / 8)
        mine[TOOK] = its / 8; /* nor are the MPI's turns many times as long */
    PMPI_Allreduce(mine, all, WORDS, MPI_DOUBLE, MPI_MAX, m->c->comm);
    if (all[FAILED] > 0)
        return 0;
    return all[TOOK] > TURN ? 1 : all[TOOK] > TURN / MOST ? (int)(TURN / all[TOOK]) : MOST;
}

enum { MPIS, RONDOS, BOTH, ELAPSED = BOTH, WORDS };

static bool is_quicker(double a, double b)
{
    return a * 1.25 <= b;
}

/* Turns of each, of `times` calls; the best ones come to mine[], where there may be times already. */
static void run_round(measuring_t *m, const rd_mpi_call_t *call, int turns, int times, double *mine)
{
    for (int i = 0; i < turns * BOTH; i++) {
        int whose = i % BOTH == 0 ? RONDOS : MPIS;
        double took = turn(m, call, whose == RONDOS, times);
        if (mine[whose] == 0 || took < mine[whose])
            mine[whose] = took;
    }
}

/* The program waits meanwhile, so a glance is enough to leave a call with rondo. To take it away wants more, because a
 * rank may be disturbed in all of so few turns. All ranks make as many rounds, because they look at the times that they
 * agreed on.
 */
static bool measure(measuring_t *m, const rd_mpi_call_t *call, rd_mpi_timing_t *t)
{
    double mine[WORDS] = {0}, all[WORDS] = {0}, began = rd_mpi_clock();
    int times = calls_in_a_turn(m, call);
    bool again = times > 0;

    if (again) {
        double glance[WORDS] = {0};
        run_round(m, call, GLANCES, (times + GLANCE - 1) / GLANCE, glance);
        PMPI_Allreduce(glance, all, WORDS, MPI_DOUBLE, MPI_MAX, m->c->comm);
        again = !is_quicker(all[RONDOS], all[MPIS]);
    }
    for (int round = 0; again && round < ROUNDS; round++) {
        run_round(m, call, TURNS, times, mine);
        mine[ELAPSED] = rd_mpi_clock() - began;
        PMPI_Allreduce(mine, all, WORDS, MPI_DOUBLE, MPI_MAX, m->c->comm);
        again = !is_quicker(all[RONDOS], all[MPIS]) && !is_quicker(all[MPIS], all[RONDOS]) && all[ELAPSED] < LONG;
    }
    t->rondo_us = 1e6 * all[RONDOS];
    t->mpi_us = 1e6 * all[MPIS];
    return times > 0;
}

/* Of calls whose bytes differ by rank, the mean block of all ranks and calls. */
static uint64_t mean_block(rd_mpi_comm_t *c, const rd_mpi_core_t *core, int kind)
{
    enum { BYTES, BLOCKS, WORDS };
    double mine[WORDS] = {(double)core->moved[kind], (double)core->moves[kind]}, all[WORDS] = {0};

    PMPI_Allreduce(mine, all, WORDS, MPI_DOUBLE, MPI_SUM, c->comm);
    if (kind % RD_MPI_NUM == RD_MPI_ALLTOALLV)
        all[BLOCKS] *= c->nranks;
    return all[BYTES] > all[BLOCKS] ? (uint64_t)(all[BYTES] / all[BLOCKS]) : 1;
}

/* All ranks have both requests, or none does, and there is nothing to be measured. */
static bool requests_init(measuring_t *m, const rd_mpi_call_t *call)
{
    int mine, all = 0;

    if (call->form != RD_MPI_PERSISTENT)
        return true;
    mine = rd_mpi_init_own(m->c, call, &m->requests[true]) == MPI_SUCCESS &&
           rd_mpi_pass(call, &m->requests[false]) == MPI_SUCCESS;
    return PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, m->c->comm) == MPI_SUCCESS && all;
}

static void requests_free(measuring_t *m)
{
    for (int i = 0; i < 2; i++) {
        if (m->requests[i] != MPI_REQUEST_NULL)
            rd_mpi_request_free(&m->requests[i]);
    }
}

/* As a program's buffers, it has been written: memory that never was is one page of zeros, read from the cache. */
static char *written(size_t bytes)
{
    char *memory = malloc(bytes);

    return memory ? memset(memory, 1, bytes) : NULL;
}

/* On one rank without memory for it, it stays as it is; so do nonblocking calls where a rank has used device memory,
 * which the MPI may not know. And what does not block is not measured where the program has had the communicator
 * duplicated behind its call: as long as that goes on, on any rank, Open MPI starts nonblocking collectives of its own
 * on the communicator when it makes progress, on each rank at another time, and so those of here would meet them. */
static bool measure_in(rd_mpi_comm_t *c, rd_mpi_timing_t *t)
{
    measuring_t m = {.c = c, .requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}};
    size_t n = (size_t)c->nranks, room = n * t->bytes + n * sizeof(double);
    int mine, all = 0;

    m.send = written(room);
    m.recv = written(room);
    m.counts = malloc(2 * n * sizeof *m.counts);
    m.displs = m.counts ? m.counts + n : NULL;
    mine = m.send && m.recv && m.counts;
    if (t->kind / RD_MPI_NUM == RD_MPI_NONBLOCKING)
        mine = mine && !rd_mpi_device_used();
    if (t->kind / RD_MPI_NUM != RD_MPI_BLOCKING)
        mine = mine && !c->duplicates;
    if (PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, c->comm) == MPI_SUCCESS && all) {
        rd_mpi_call_t call = call_of(&m, t->kind, t->bytes);
        all = requests_init(&m, &call) && measure(&m, &call, t);
        requests_free(&m);
    }
    free(m.send);
    free(m.recv);
    free(m.counts);
    return all;
}

void rd_mpi_measure(rd_mpi_comm_t *c, rd_mpi_core_t *core)
{
    rd_mpi_timing_t t = {.kind = core->due_kind, .nranks = c->nranks, .bytes = core->due_bytes};
    rd_mpi_tally_t before = rd_mpi_tallies[t.kind];
    double began = rd_mpi_clock();

    if (rd_mpi_unequal(t.kind))
        t.bytes = mean_block(c, core, t.kind);
    if (t.bytes > ROOM / (uint64_t)c->nranks || !measure_in(c, &t))
        t.rondo_us = t.mpi_us = 0;
    rd_mpi_tallies[t.kind] = before;
    core->due = false; /* those calls were counted, too */
    rd_mpi_table_add(&core->rules, &t, c->rank == 0 && t.rondo_us > 0);
    if (rd_mpi_settings.log && c->rank == 0)
        fprintf(stderr,
                "rondo: measured %s of %llu bytes for %d ranks: %.2f us by rondo, %.2f by the MPI (in %.1f ms)\n",
                rd_mpi_names[t.kind], (unsigned long long)t.bytes, c->nranks, t.rondo_us, t.mpi_us,
                1e3 * (rd_mpi_clock() - began));
}
