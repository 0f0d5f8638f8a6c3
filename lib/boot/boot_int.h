/* The bootstrap's internals, shared by boot.c, join.c, allgather.c, meet.c and leave.c. */
#ifndef RD_BOOT_BOOT_INT_H
#define RD_BOOT_BOOT_INT_H

#include <pthread.h>

#include "boot/boot.h"
#include "boot/session.h"
#include "boot/rendezvous.h"
#include "boot/roots.h"

#define RD_BOOT_SLICE_MS 50 /* the longest sleep: limits how late `stop` is noticed */

/* A connection to a neighbour. In round k a rank sends to rank - 2^k, which had connected to it, and receives from rank
 * + 2^k, to which it has connected. */
typedef struct rd_neighbour {
    rd_chan_t *chan;
    int rank;
    int left; /* it has sent an orderly farewell */
} rd_neighbour_t;

/* A connection on which nothing is sent: see lifeline.c. */
typedef struct rd_lifeline {
    int fd, rank;
} rd_lifeline_t;

/* See ask.c. */
#define RD_BOOT_ASKED 64
typedef struct rd_questions {
    pthread_mutex_t lock;      /* guards all of this, also while the bootstrap is `busy`; taken after the bootstrap's */
    rd_boot_question_t *asked; /* that have come, and are to be answered here; at most RD_BOOT_ASKED */
    int nasked, room;
    struct {
        uint32_t number; /* of the newest question; modulo RD_QUESTIONERS it is the questioner */
        bool answered;
        rd_boot_answer_t answer;
    } of[RD_QUESTIONERS];
    bool claimed;
    rd_boot_claim_t claim;                     /* that has come, and is to be said */
    void (*on_letter)(void *arg, bool unread); /* NULL: nobody is told */
    void *arg;
} rd_questions_t;

struct rd_boot {
    rd_id_t id;
    rd_creds_t creds; /* of this communicator alone: each meeting under a derived id has its own */
    rd_id_t *ids;     /* during creation: all of them, `id` being that of this rank's block, */
    int nids;
    unsigned char list[32]; /* and a hash of them */
    int rank, nranks, rounds;
    rd_log_ctx_t *ctx;
    rd_stop_t *stop;
    rd_boot_patience_t patience;
    int64_t stall_ms; /* RONDO_STALL_MS */
    int listener;     /* kept for the rendezvous of a derived id; -1: none */
    rd_addr_t addr;
    rd_neighbour_t from[RD_BOOT_ROUNDS], to[RD_BOOT_ROUNDS];
    rd_lifeline_t lifeline[2 * RD_BOOT_ROUNDS]; /* until they are taken */
    int nlifelines;
    char (*whois)[RD_WHOIS];     /* host and process of each rank */
    rd_addr_t *addrs;            /* where each rank listens */
    pthread_mutex_t lock;        /* guards the neighbours, which operations and the liveness thread use */
    int busy;                    /* an allgather reads from the neighbours: the liveness thread does not */
    int said, parted;            /* a farewell has been sent, and one that says that this rank leaves */
    _Atomic unsigned char *gone; /* of each rank, as deaths.c has it */
    rd_questions_t questions;
    rd_failure_t parting; /* a farewell that was requested during an allgather is sent when that ends */
    int parting_set;
    unsigned char derived[16]; /* the job of the rendezvous that this rank serves on its listener */
    int serving;
    bool (*lives)(const void *arg, int rank); /* NULL: nobody can be asked */
    const void *lives_arg;
    const char *call;          /* what exchanges are for; NULL: it is not said */
    rd_boot_watcher_t watcher; /* of those of which it is; `waits` NULL: nobody */
    int exchanges;
    size_t exchanged;
};

/* Runs the rounds of an exchange. In round k this rank sends bytes to rank - 2^k and receives as many from rank + 2^k:
 * `each` returns how many, and where they lie. What fails it is told to all. Defined in allgather.c. */
typedef size_t (*rd_boot_round_fn)(void *arg, int k, const unsigned char **out, unsigned char **in);
rondo_result_t rd_boot_rounds(rd_boot_t *b, rd_boot_round_fn each, void *arg);

/* Returns how many descriptors a rank needs while a communicator is made. Defined in join.c. */
int rd_boot_fds(int nranks, const rd_env_t *env);
/* Finds the neighbours through the rendezvous. Defined in join.c. */
rondo_result_t rd_boot_join(rd_boot_t *b, const rd_env_t *env);
/* Tells the rendezvous, if it can be reached within a while, that the creation fails, and why, and destroys `b`. The
 * caller waits for that for half a second at most; then a thread goes on. Defined in join_tell.c. */
void rd_boot_turn_away(rd_boot_t *b, const rd_env_t *env, rondo_result_t code, int failed_rank, const char *text);

/* Reads what a neighbour has sent, up to the first part of an allgather. Returns RONDO_ERR_REMOTE when the neighbour is
 * gone or reports a failure; `news` then says which rank is to blame. The caller holds the lock or has set `busy`.
 * Defined in leave.c. */
rondo_result_t rd_boot_hear(rd_boot_t *b, rd_neighbour_t *from, rd_boot_news_t *news);
/* Handles what neighbours say of other ranks, at any time. Returns false if the record is of another type. The caller
 * holds the lock or has set `busy`. Defined in leave.c. */
bool rd_boot_heard_of(rd_boot_t *b, int type, const unsigned char *data, size_t bytes);
/* Handles a farewell record. Defined in leave.c. */
rondo_result_t rd_boot_heard(rd_boot_t *b, rd_neighbour_t *from, const unsigned char *data, size_t bytes,
                             rd_boot_news_t *news);
/* Handles the record of a rank that has died or left, and tells the neighbours. The caller holds the lock or has set
 * `busy`. Defined in deaths.c, as is the next one. */
void rd_boot_heard_gone(rd_boot_t *b, int type, const unsigned char *data, size_t bytes);
/* This process has it from another one that a rank has died: tells the neighbours. The caller holds the lock or has set
 * `busy`. Defined in deaths.c. */
void rd_boot_say_died(rd_boot_t *b, int rank);
/* Says who a rank is, if that is known, and hears it. The caller holds the lock or has set `busy`. Defined in names.c.
 */
void rd_boot_say_name(rd_boot_t *b, rd_chan_t *chan, int rank);
void rd_boot_heard_name(rd_boot_t *b, const unsigned char *data, size_t bytes);
/* Handles a question or an answer, for this rank or another one. The caller holds the lock or has set `busy`. Defined
 * in ask.c. */
void rd_boot_heard_letter(rd_boot_t *b, const unsigned char *data, size_t bytes);
/* Says that there are letters, if there are. The caller holds the lock, or has set `busy`. Likewise. */
void rd_boot_say_letters(rd_boot_t *b);
/* Says, by the same function, that connections are to be read whether or not there is an event. The caller holds the
 * lock. Likewise. */
void rd_boot_say_unread(rd_boot_t *b);
/* Tells the neighbours who became known to be gone during an allgather. The caller holds the lock. */
void rd_boot_tell_gone(rd_boot_t *b);
/* Sends a farewell, as rd_boot_pass_on. The caller holds the lock or has set `busy`. */
void rd_boot_say(rd_boot_t *b, const rd_failure_t *failure);

#endif
