/* The agreement of a shrink: the surviving ranks of a failed communicator agree on which ranks are left.
 *
 * The lowest surviving rank leads. Every other rank connects to it, on the listener that every rank has kept, sends its
 * state and waits. A rank that refuses a connection has ended; a rank that lets the connection wait is alive and has
 * yet to come. When every rank has come or is gone, the leader sends the list of those that are left; they make the
 * communicator of that list and report how it went. If one of them died meanwhile, there is another list. If all have
 * made it, it is kept in three steps, like Skeen's commit protocol (SIGMOD 1981): the leader sends PREPARE, hears from
 * each rank that it is READY, and sends KEEP. So when a leader dies, whatever it has sent to whomever, the next leader
 * can find out what to do. If no rank is READY, none has kept anything, and there is another list. If one is READY, all
 * have made the communicator: the ranks that are here become READY, too, and it is kept. A rank that has kept it stops
 * listening and so counts as gone for the others, which then no longer need it.
 *
 * All this relies on two assumptions: a connection is refused only by a rank that has ended, and a host that has not
 * answered for five seconds is gone. A child that knows nothing of rondo (a bare clone) may go on listening for a rank
 * that has died; where a rank has seen the death itself it has told the others, and no connection is needed. If the
 * network falls apart, each part makes a communicator of its own.
 *
 * A rank that has too few descriptors left for another communicator lives, and must be told of and not waited for. So
 * each says how many it has before there is a list. */
#ifndef RD_BOOT_AGREE_SHRINK_H
#define RD_BOOT_AGREE_SHRINK_H

#include <stdbool.h>

#include "boot/listener.h"
#include "boot/boot_int.h"

typedef enum {
    RD_AGREE_SHRINK_LIST, /* make the communicator of `members`, then call rd_agree_shrink_next again */
    RD_AGREE_SHRINK_KEEP  /* all ranks have made it: it is kept */
} rd_agree_shrink_verdict_t;

/* How far a rank has got with the last list that it received. */
typedef enum { RD_STANDS_OUTSIDE, RD_STANDS_FAILED, RD_STANDS_MADE, RD_STANDS_READY } rd_standing_t;

typedef struct rd_member_state { /* RD_REC_STATE */
    int32_t round, standing;
    int32_t code;  /* why making the communicator failed */
    int32_t spare; /* descriptors that the rank has left, up to what a communicator of all ranks takes */
    char why[160]; /* the sentence of `code`, or of what it says if they are too few */
} rd_member_state_t;

#define RD_AGREE_SHRINK_PART 8192 /* bytes of a list in one record */

/* RD_REC_LIST: a part of the list, with one bit for each rank. The record ends after the last byte of bits. */
typedef struct rd_agree_shrink_list {
    int32_t round, offset;
    unsigned char bits[RD_AGREE_SHRINK_PART];
} rd_agree_shrink_list_t;

/* Another rank, as the leader sees it. */
typedef struct rd_member {
    rd_chan_t *chan;
    rd_member_state_t state;
    int came, lost;
    int probe;        /* a connection of ours to a rank that has yet to come; -1: none */
    int64_t since_ms; /* when the probe began */
    int answered;     /* the probe was accepted: the rank is alive */
} rd_member_t;

/* What the agreement asks of the communicator. */
typedef struct rd_agree_shrink_ops {
    const rd_env_t *env;
    const _Atomic int *closed; /* set when another thread is ending the communicator */
    /* Returns true if that rank has certainly died, though somebody may still hold what it listened on. */
    bool (*died)(void *arg, int rank);
    void *arg;
} rd_agree_shrink_ops_t;

typedef struct rd_agree_shrink {
    rd_boot_t *boot; /* outside of rd_agree_shrink_next and _keep it may be gone */
    int rank, nranks;
    rd_agree_shrink_ops_t ops;
    rd_creds_t creds;
    int64_t deadline_ms; /* 0: none */
    int leader;          /* the lowest rank that is not known to be gone */
    rd_member_state_t mine;
    bool no_fd;          /* this process may open no descriptor more for a connection (EMFILE) */
    bool own_table;      /* so it goes on, to hear or say that it fails, on a thread with a table of its own */
    unsigned char *bits; /* the last list */
    size_t have;         /* bytes of it that have arrived */
    int *members;
    int nmembers;
    /* the connection to the leader */
    rd_chan_t *up;
    int state_sent; /* this rank's state has been sent to it */
    int64_t again_ms;
    int dial_error; /* errno of the last attempt, if that says nothing of the leader; 0: none */
    /* used only by the leader */
    rd_listener_t incoming;
    int leads, listed;   /* listed: a list has been sent, and its answers are awaited */
    rd_member_t *member; /* by rank */
    struct pollfd *polls;
    int64_t probe_ms; /* before which no rank is probed */
    pthread_t attendant;
    int attends, wake;
    unsigned char job[16];
} rd_agree_shrink_t;

/* Returns RONDO_ERR_ABORTED, with its sentence, for a shrink of a communicator that another thread has ended. */
rondo_result_t rd_agree_shrink_aborted(rd_log_ctx_t *ctx);

/* Begins an agreement. `round` is the last round that this rank had in an earlier agreement, or 0. `boot` must stay
 * valid while rd_agree_shrink_next and _keep run. */
rondo_result_t rd_agree_shrink_begin(rd_agree_shrink_t **agreement, rd_boot_t *boot, int32_t round,
                                     const rd_agree_shrink_ops_t *ops);
/* Waits for the next verdict; `made` is the result of making the communicator of the last list. Notices `closed`, the
 * deadline and ranks that die. An error is returned on every rank that has come to the leader. One that has not may
 * wait until the leader ends its communicator, or for the deadline: the leader may be unable to accept it. */
rondo_result_t rd_agree_shrink_next(rd_agree_shrink_t *agreement, rondo_result_t made,
                                    rd_agree_shrink_verdict_t *verdict);
/* Called while the communicator of a list is made. If this rank leads, starts a thread that checks whether a rank of
 * the list dies before it has come to the rendezvous that this rank serves, and ends that rendezvous if so. */
void rd_agree_shrink_attend(rd_agree_shrink_t *agreement);
/* The communicator is kept: from now on this rank counts as gone for the agreement. */
void rd_agree_shrink_keep(rd_agree_shrink_t *agreement);
void rd_agree_shrink_end(rd_agree_shrink_t *agreement); /* NULL is fine */

/* ---- between agree_shrink.c and agree_shrink_lead.c ---- */

rondo_result_t rd_agree_shrink_lead(rd_agree_shrink_t *agreement, rd_agree_shrink_verdict_t *verdict);
void rd_agree_shrink_lead_end(rd_agree_shrink_t *agreement);
void rd_agree_shrink_list(rd_agree_shrink_t *agreement); /* fills `members` from `bits` */
rondo_result_t rd_agree_shrink_check(rd_agree_shrink_t *agreement,
                                     const char *awaited); /* fails if `closed` is set or the deadline has passed */
bool rd_agree_shrink_gone(int error); /* true if this errno of a connection means that the rank has ended */

#define RD_AGREE_SHRINK_SILENT_MS 5000

#endif
