/* What liveness.c and meetings.c share: who has gone, and the meetings of those that are left. Everything here is
 * guarded by liveness' lock, which the callers hold. */
#ifndef RD_TRANSPORT_LIVENESS_INT_H
#define RD_TRANSPORT_LIVENESS_INT_H

#include "transport/liveness.h"

/* How a rank has gone. One that has left, in order or by an abort, lives, and will come to no meeting. One that had
 * reported a failure before its connection ended may have left or died. Of one that is absent only a meeting says so:
 * its connection was lost, and nobody listens where it did. */
enum { RD_HERE, RD_LEFT, RD_LOST, RD_FAILED, RD_DEAD, RD_ABSENT };

/* A rank whose connection was lost: see redial.c. */
typedef struct rd_redial {
    int rank, fd;  /* fd: a connection to where it listens; -1: there is none */
    bool answered; /* it has been made */
} rd_redial_t;

#define RD_MOST_REDIALS 32 /* more than the ranks that one dials */

struct rd_liveness {
    rd_boot_t *boot;
    rd_log_ctx_t *ctx;
    rd_stop_t *stop;
    const rd_liveness_ops_t *ops;
    void *arg;                  /* the argument of the ops */
    void (*on_poll)(void *arg); /* NULL: there is no callback */
    struct rd_liveness *next;   /* the next one that has a callback */
    pid_t pid;                  /* of the process that made it: in a forked child it only gets freed */
    int next_slot;              /* used while processes are looked at; -1: none yet */
    unsigned char *gone;        /* how each rank has gone, as far as this process sees it itself */
    rd_redial_t redial[RD_MOST_REDIALS];
    int nredials;
};

/* Others may have left because of the rank that failed first: that one is the cause. */
int rd_how_gone(const rd_liveness_t *w, int rank);

void rd_meetings_add(rd_meeting_t *m);
void rd_meetings_remove(rd_meeting_t *m);       /* also one that was never added */
void rd_meetings_gone(const rd_liveness_t *w);  /* a rank of the communicator has gone */
void rd_meetings_ended(const rd_liveness_t *w); /* this rank has ended the communicator */
void rd_meetings_forget(void);
bool rd_meetings_await(const rd_liveness_t *w, int rank); /* returns true if one has begun that lacks this member */
void rd_meetings_miss(const rd_liveness_t *w, int rank);  /* tells those that this member is absent */
/* To be called once a member has gone, the communicator has been ended here, or a meeting has begun: sets the stop word
 * if there is a reason and somebody to tell. */
void rd_meeting_tell(rd_meeting_t *m);

/* The connection to a rank was lost. Returns 1 if the rank is new to this, and rd_meetings_turn is to be called from
 * time to time from then on; else 0. */
int rd_redial_add(rd_liveness_t *w, int rank);
/* Looks whether such ranks are there, as far as a meeting waits for them. */
void rd_redials_turn(rd_liveness_t *w);
void rd_meetings_turn(void);          /* the same for each that has meetings */
int rd_redials_end(rd_liveness_t *w); /* returns how many there were */

#endif
