/* A job of a test's own whose ranks do what the parent orders, through shared memory: so the parent knows where each of
 * them is, and can ask rondo-ras. */
#ifndef OBEDIENT_H
#define OBEDIENT_H

#include <rondo.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#define OBEDIENT_MOST 256

typedef struct obedient_rank {
    _Alignas(64) _Atomic int what, number; /* the order, and how many there were */
    _Atomic int done;                      /* orders carried out; the communicator is the first of them */
    _Atomic int failed;                    /* has one failed? */
} obedient_rank_t;

/* Carries out an order, which is not 0. The process ends after OBEDIENT_END. */
#define OBEDIENT_END 1000
typedef rondo_result_t (*obedient_fn)(int what, int rank, rondo_comm_t comm);
/* One that knows two: an allreduce of eight floats, or, by any other, the end of the communicator. */
#define OBEDIENT_REDUCE 1
rondo_result_t obedient_reduce(int what, int rank, rondo_comm_t comm);

extern obedient_rank_t *obedient;          /* of each rank */
extern pid_t obedient_pids[OBEDIENT_MOST]; /* 0: it is waited for by obedient_end no more */
extern int obedient_nodes;                 /* on so many of them, that are played; 0 and 1: all are on one */
extern int obedient_job;                   /* the lowest of them */

void obedient_start(int ranks, const char *name, obedient_fn obey); /* ends the test if it cannot */
void obedient_end(void);                                            /* kills whoever is left */
void obedient_order(int rank, int what);
void obedient_order_all(int what);         /* and waits until all have done it, which must succeed */
int obedient_settled(int rank);            /* waits until all its orders are carried out; 0: they were not */
void obedient_state(int rank, char state); /* waits until /proc says so */
void obedient_await_state(pid_t pid, char state);
void obedient_pause(int ms);
void obedient_stay_on(uint64_t nth); /* of the cores that this thread may use, counted round */

/* Runs rondo-ras with these arguments, and `--job` of this job if it has one. Returns its exit status; its output is in
 * obedient_text. */
extern char obedient_text[65536];
int obedient_ras(const char *command, int job);
/* The same, until it gives that, as a rank says only at its first slow miss that it waits; false: it never did. */
int obedient_ras_until(const char *command, int job, int status, const char *word);

#endif
