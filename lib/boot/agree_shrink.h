/* The agreement: which ranks of a failed communicator are left, agreed on by those who are.
 *
 * The lowest rank that lives leads. Everybody connects to it, on the listener that every rank has kept, says where it
 * stands and waits. A rank that refuses a connection has ended; one that lets it wait is alive and has yet to come.
 * When each has come or is gone, the leader sends the list, all make the communicator of that list, and say how it
 * went. If one of them died over it, there is another list. If all made it, it is kept, in three steps as Skeen's
 * commit protocol has them (SIGMOD 1981): the leader says PREPARE, hears from each that it is READY, and says KEEP.
 * So when a leader dies, whatever it has said to whom, the next one finds out what to do: no rank that is READY means
 * that none has kept anything, and there is another list; one that is READY means that all have made it: who is here
 * becomes READY, too, and it is kept. Whoever has kept it stops listening, and so counts as gone to the others, who
 * then need it no more.
 *
 * It stands on this: a connection is refused by a rank that has ended and by no other, and a host that has not answered
 * for five seconds is gone. Where the network falls apart, each part makes a communicator of its own.
 */
#ifndef RD_BOOT_AGREE_SHRINK_H
#define RD_BOOT_AGREE_SHRINK_H

#include <stdbool.h>

#include "boot/listener.h"
#include "boot/boot_int.h"

typedef enum {
    RD_AGREE_SHRINK_LIST, /* make the communicator of rd_agree_shrink_members, and call rd_agree_shrink_next again */
    RD_AGREE_SHRINK_KEEP  /* the one that was made is everybody's */
} rd_agree_shrink_verdict_t;

/* Where a rank stands with the last list that it had. */
typedef enum { RD_STANDS_OUTSIDE, RD_STANDS_FAILED, RD_STANDS_MADE, RD_STANDS_READY } rd_standing_t;

typedef struct rd_member_state { /* RD_REC_STATE */
    int32_t round, standing;
    int32_t code; /* why it failed */
} rd_member_state_t;

#define RD_AGREE_SHRINK_PART 8192 /* bytes of a list in one record */

/* RD_REC_LIST: a part of the list, a bit for each rank. The record ends behind the bits. */
typedef struct rd_agree_shrink_list {
    int32_t round, offset;
    unsigned char bits[RD_AGREE_SHRINK_PART];
} rd_agree_shrink_list_t;

/* Another rank, as the leader sees it. */
typedef struct rd_member {
    rd_chan_t *chan;
    rd_member_state_t state;
    int came, lost;
    int probe;        /* a connection of ours to one that has yet to come; -1: none */
    int64_t since_ms; /* of the knock */
    int answered;     /* the knock was let in: it is alive */
} rd_member_t;

typedef struct rd_agree_shrink {
    rd_boot_t *boot; /* beside rd_agree_shrink_next it may be gone */
    int rank, nranks;
    const _Atomic int *closed; /* the communicator is being ended by another thread */
    rd_creds_t creds;
    int64_t deadline_ms; /* 0: none */
    int leader;          /* the lowest rank that is not known to be gone */
    rd_member_state_t mine;
    unsigned char *bits; /* the last list */
    size_t have;         /* bytes of it that are here */
    int *members;
    int nmembers;
    /* towards the leader */
    rd_chan_t *up;
    int told; /* it has heard where this rank stands */
    int64_t again_ms;
    /* as the leader */
    rd_listener_t incoming;
    int leads, listed;   /* listed: a list is out, and its answers are awaited */
    rd_member_t *member; /* by rank */
    struct pollfd *polls;
    pthread_t attendant;
    int attends, wake;
    unsigned char job[16];
} rd_agree_shrink_t;

/* `round`: the last one that this rank had in an earlier agreement, or 0. `boot` stays while rd_agree_shrink_next and
 * _keep run. */
rondo_result_t rd_agree_shrink_begin(rd_agree_shrink_t **agreement, rd_boot_t *boot, int32_t round,
                                     const _Atomic int *closed);
/* Waits for the next verdict; `made`: how it went with the last list. Sees `closed`, the deadline and whoever dies. An
 * error is everybody's who is left, or a deadline's. */
rondo_result_t rd_agree_shrink_next(rd_agree_shrink_t *agreement, rondo_result_t made,
                                    rd_agree_shrink_verdict_t *verdict);
/* While a list is made: if this rank leads, somebody watches whether one of the list dies before it has come to the
 * rendezvous that this rank serves, and ends that. */
void rd_agree_shrink_attend(rd_agree_shrink_t *agreement);
/* It is kept: this rank is gone for a agreement. */
void rd_agree_shrink_keep(rd_agree_shrink_t *agreement);
void rd_agree_shrink_end(rd_agree_shrink_t *agreement); /* NULL is fine */

/* ---- between agree_shrink.c and agree_shrink_lead.c ---- */

rondo_result_t rd_agree_shrink_lead(rd_agree_shrink_t *agreement, rd_agree_shrink_verdict_t *verdict);
void rd_agree_shrink_lead_end(rd_agree_shrink_t *agreement);
void rd_agree_shrink_list(rd_agree_shrink_t *agreement); /* members from bits */
rondo_result_t rd_agree_shrink_check(rd_agree_shrink_t *agreement,
                                     const char *awaited); /* closed, or beyond the deadline */
bool rd_agree_shrink_gone(int error); /* does this errno of a connection mean that there is nobody? */

#define RD_AGREE_SHRINK_SILENT_MS 5000

#endif
