/* The state of a rendezvous: what rendezvous.c and rendezvous_hear.c share. */
#ifndef RD_BOOT_RENDEZVOUS_INT_H
#define RD_BOOT_RENDEZVOUS_INT_H

#include "boot/listener.h"
#include "boot/registry.h"
#include "boot/rendezvous.h"
#include "boot/roots.h"

typedef struct rd_joiner {
    rd_chan_t *chan;
    rd_join_t join;
    rd_roots_head_t head; /* of a rank that comes with several ids; unlike: with others than this is one of */
    int unlike;
    int joined, ready, notified; /* notified: it has the table (1), or knows of the failure (2) */
    int moving;                  /* it was asked to listen at another address */
} rd_joiner_t;

typedef struct rd_rendezvous {
    rd_served_t served; /* its entry in the registry; first */
    rd_id_t id;
    rd_salt_t salt;
    int listener;
    rd_listener_t incoming;
    int64_t stall_ms; /* after which it is said once who is missing; 0: it has been, or is not to be */
    int64_t timeout_ms, first_ms, ready_ms; /* ready_ms: when the last rank was ready; 0: not yet */
    int64_t failed_ms;
    rd_joiner_t *member;
    int nmembers, room;
    int nranks; /* as the first member says; 0: no member has come yet */
    int most;   /* the greatest count that any member gave */
    int njoined, nready, nnotified, nmoving;
    int tabled;
    int *by_rank; /* the member of each rank; -1: none */
    rd_fail_t fail;
    rd_roots_t roots; /* the others, where there are several */
    rd_contact_t *own;
    struct pollfd *polls;
    int polls_room;
} rd_rendezvous_t;

static inline int rd_joiner_rank(const rd_joiner_t *g)
{
    return g->chan->theirs.rank;
}

/* How many ranks this rendezvous waits for, and whether `rank` is one of them. */
static inline int rd_rendezvous_awaited(const rd_rendezvous_t *m)
{
    return m->roots.known ? m->roots.count : m->nranks;
}

static inline bool rd_rendezvous_expects(const rd_rendezvous_t *m, int rank)
{
    return !m->roots.known || (rank >= m->roots.first && rank < m->roots.first + m->roots.count);
}

/* The first failure stands, and is what all ranks hear; failed_rank: the rank to blame; -1: not known. */
void rd_rendezvous_fail(rd_rendezvous_t *m, rondo_result_t code, int failed_rank, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The first rank has come, or another root knows of `nranks`: from now on the time counts. */
void rd_rendezvous_begin(rd_rendezvous_t *m, int nranks);
/* Hears what a member has to say, and notices its end. */
void rd_rendezvous_hear(rd_rendezvous_t *m, rd_joiner_t *g);
/* A process that comes with an id whose ranks all have the table is told so; it changes nothing for those ranks. */
void rd_rendezvous_refuse(const rd_rendezvous_t *m, const rd_joiner_t *g);

#endif
