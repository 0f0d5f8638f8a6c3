/* The bootstrap: how the ranks of one communicator find each other and exchange small authenticated records.
 *
 * A unique id names one address and carries a secret. The process that made the id serves a rendezvous there (a thread
 * that ends when all ranks have come or the deadline has passed). Each rank listens on a socket of its own, sends its
 * address to the rendezvous, and receives the addresses of its log2(n) dissemination neighbours; from then on rounds of
 * Bruck's allgather run over the connections to them alone. Every connection starts with a mutual handshake; every
 * record after it carries a bounded length, a direction, a counter and a MAC. Bulk data is not protected. See
 * doc/security.md. */
#ifndef RD_BOOT_BOOT_H
#define RD_BOOT_BOOT_H

#include "base/env.h"
#include "base/health.h"
#include "base/wait.h"

typedef struct rd_boot rd_boot_t;

/* If this fails, the id carries the error, and rd_boot_create returns it on every rank. */
rondo_result_t rd_boot_id_create(rondo_unique_id_t *id, const rd_env_t *env);

/* Collective over the ranks that hold the id. Ends early when `stop` is set. Waits env->create_timeout_ms for late
 * ranks, then names them. Wrong inputs (a rank claimed twice, different nranks, a stale id) give every rank an error
 * that names both sides. */
rondo_result_t rd_boot_create(rd_boot_t **boot, const rondo_unique_id_t *id, int rank, int nranks, const rd_env_t *env,
                              rd_log_ctx_t *ctx, rd_stop_t *stop);

/* The same by `nids` ids, at most as many as ranks, the same on all ranks: each is the meeting place of its share of
 * them. */
rondo_result_t rd_boot_create_by(rd_boot_t **boot, const rondo_unique_id_t *ids, int nids, int rank, int nranks,
                                 const rd_env_t *env, rd_log_ctx_t *ctx, rd_stop_t *stop);

/* Called for a rank that will not join by these ids. If this process serves a rendezvous of theirs, the ranks that come
 * there are given the error `code`; otherwise they wait for this rank as for any other that does not come. */
void rd_boot_cancel(const rondo_unique_id_t *ids, int nids, int rank, rondo_result_t code);
/* Called for a rank that will not join, because of something that is no matter of the ranks that wait where the id
 * says: they, and those that still come, are given the error `code` with the thread's sentence. `failed_rank` is the
 * rank to blame, or -1. Takes a moment at most: where the rendezvous does not answer, a thread goes on trying for a
 * while. Cancels the rendezvous if it is in this process. */
void rd_boot_refuse(const rondo_unique_id_t *id, int rank, int nranks, const rd_env_t *env, rondo_result_t code,
                    int failed_rank);

/* Called for a rank that could not even begin to join, and will not: the other ranks hear so, with the thread's
 * sentence. (With several ids only those hear that this process serves.) */
void rd_boot_give_up(const rondo_unique_id_t *ids, int nids, int rank, int nranks, const rd_env_t *env,
                     rondo_result_t code);

/* Collective: gathers a block of `each` bytes (at most 64 KiB) of every rank. On entry the caller's block lies at all +
 * rank * each; on return all blocks are there. Takes O(log n) rounds. */
rondo_result_t rd_boot_allgather(rd_boot_t *boot, void *all, size_t each);
/* Collective: returns when all ranks have come. It takes no memory, nor does the next one. */
rondo_result_t rd_boot_barrier(rd_boot_t *boot);
/* The same, for ranks that tell each other how they have fared. If any has failed, all get the error of the lowest one
 * that has, which says `why`; the others with its number. */
rondo_result_t rd_boot_meet(rd_boot_t *boot, rondo_result_t own, const char *why);
/* The same, where ranks have waited for each other, each by itself and for `ms` at most; 0: without a limit. `own` is
 * RONDO_ERR_TIMEOUT, with the thread's sentence, if that was in vain: ranks find that at the same time, each of another
 * one, and all get the error of the lowest. Where one does not come, as it is caught in the network library, the
 * sentence of who has one stands. */
rondo_result_t rd_boot_meet_waiters(rd_boot_t *boot, rondo_result_t own, int64_t ms);
/* For how long a rank is waited for in an exchange. */
typedef struct rd_boot_patience {
    int64_t ms;                  /* 0: without a limit */
    int64_t (*ms_now)(void *of); /* what `ms` has become meanwhile, to be asked when it is over; NULL: it stays */
    void *of;
    const char *by;   /* what the user sets it by; NULL: RONDO_CREATE_TIMEOUT_MS */
    int64_t stall_ms; /* after which the log says who is waited for; 0: never */
    const char *why;  /* what this rank has to tell in the exchange, and says if it cannot; NULL: who is late */
} rd_boot_patience_t;
/* For exchanges that are no part of a creation, from here on. Returns what held until then. */
rd_boot_patience_t rd_boot_patience(rd_boot_t *boot, const rd_boot_patience_t *patience);
/* This rank alone cannot go on, while the others wait for it in an exchange: they hear so, with the thread's sentence.
 * Returns `code`. */
rondo_result_t rd_boot_drop_out(rd_boot_t *boot, rondo_result_t code);
/* Collective, where an exchange has shown all ranks that `failed` gives up, and that all therefore do: copies its
 * sentence, `why` there, to all, or says where it can be read. Returns the result of that exchange. */
rondo_result_t rd_boot_cause(rd_boot_t *boot, int failed, const char *why, char text[RD_ERROR_BYTES]);

/* What the exchanges from here on are for, in a word that stays where it is: "comm_split". NULL, as at first: nothing
 * that one could mistake for another. An exchange with a rank that is in one for something else ends with
 * RONDO_ERR_MISMATCH, on all ranks. */
void rd_boot_exchange_for(rd_boot_t *boot, const char *call);

/* Somebody who cares that such an exchange waits. */
typedef struct rd_boot_wait {
    int peer;                   /* the rank that it waits for; -1: for none any more */
    bool failed;                /* with -1: as the exchange has failed */
    int64_t since_ms, until_ms; /* when it is given up; 0: never */
} rd_boot_wait_t;
typedef struct rd_boot_watcher {
    void (*waits)(void *arg, const rd_boot_wait_t *wait); /* is told every 50 ms, by the waiting thread */
    /* It is given up: adds to the sentence what is known of the reason. */
    void (*explain)(void *arg, char text[RD_ERROR_BYTES]);
    void *arg;
} rd_boot_watcher_t;
void rd_boot_watch(rd_boot_t *boot, const rd_boot_watcher_t *watcher);

/* Reports the number of exchanges so far, and the bytes of one rank's blocks in all of them. */
void rd_boot_exchanged(const rd_boot_t *boot, int *exchanges, size_t *bytes);
/* Reports what a bootstrap of `nranks` ranks permanently costs a rank: sockets to neighbours, and memory. */
void rd_boot_size(int nranks, int *sockets, size_t *bytes);

/* Derives the id under which `members` (ranks of this bootstrap, ascending, without duplicates, with the caller among
 * them) can meet again without a further exchange: it follows from the secret, the members and `epoch`. members[0]
 * serves the rendezvous on the listener that it has kept. Shrink uses this when dead ranks leave no way to exchange
 * anything. The same id may be derived and used again, also by ranks of which some failed the last time. */
rondo_result_t rd_boot_id_derive(rd_boot_t *boot, const int *members, int nmembers, uint64_t epoch,
                                 rondo_unique_id_t *id);

/* Derives a key of 32 bytes for another purpose ("node", "ucx") from the secret. It is the same on all ranks. */
void rd_boot_key(const rd_boot_t *boot, const char *purpose, unsigned char key[32]);
/* An id, as it is sent to other ranks of this bootstrap, who can reveal it and nobody else can. */
typedef struct {
    unsigned char bytes[sizeof(rondo_unique_id_t) + 40];
} rd_concealed_id_t;
void rd_boot_conceal(const rd_boot_t *boot, const rondo_unique_id_t *id, rd_concealed_id_t *concealed);
rondo_result_t rd_boot_reveal(const rd_boot_t *boot, const rd_concealed_id_t *concealed, rondo_unique_id_t *id);
/* An id that the rank `maker` could not make carries why: returns that error, which names the rank. */
rondo_result_t rd_boot_id_check(const rd_boot_t *boot, const rondo_unique_id_t *id, int maker);
int rd_boot_nranks(const rd_boot_t *boot);
/* Returns the host and process of a rank, "host:pid", as learnt at creation. For messages. */
const char *rd_boot_whois(const rd_boot_t *boot, int rank);
/* Writes the IP address on which this rank listens, such as "10.0.0.1" or "::1". Other transports keep to its
 * interface. */
#define RD_BOOT_ADDRESS 46
void rd_boot_address(const rd_boot_t *boot, char text[RD_BOOT_ADDRESS]);

/* After creation the sockets between neighbours show who is alive: if a neighbour's socket ends without a farewell,
 * that rank is dead. rd_boot_sockets lists these sockets. rd_boot_farewell tells the neighbours that this rank leaves
 * in order (destroy) or has failed (with `code`, because of `failed_rank`); they pass a failure on. Neither blocks. */
int rd_boot_sockets(const rd_boot_t *boot, int *fds, int *ranks, int most); /* returns their number */
void rd_boot_farewell(rd_boot_t *boot, rondo_result_t code, int failed_rank);
/* The same for a failure that another rank may have found out: they are told what failure->said calls it. The error of
 * all ranks (rd_error_is_common) goes along with its sentence; "": it has none. */
void rd_boot_pass_on(rd_boot_t *boot, const rd_failure_t *failure);
/* Returns true if a farewell of this code means something only with its sentence, which the bootstrap alone takes to
 * the others. */
bool rd_boot_says_why(int code);
/* The farewell of a rank that gives up because of what the last exchange has brought, as all ranks will: it names no
 * failure, so that each rank finds the error for itself, in the same words. */
void rd_boot_farewell_alike(rd_boot_t *boot);
/* For waits during creation, when the liveness thread does not run yet: checks whether a neighbour has died or has
 * reported a failure; if so, sets `stop` and passes the failure on. Never blocks. */
rondo_result_t rd_boot_check(rd_boot_t *boot);

/* Collective: makes a second connection to each neighbour that is `far`, that is on another node. No child of its
 * process will hold it (lifeline.c), so it ends with the process. `far` has an entry for each rank. */
rondo_result_t rd_boot_lifelines(rd_boot_t *boot, const bool *far);
/* Hands them out, with the ranks at their other ends. They are the caller's. Returns their number. */
int rd_boot_take_lifelines(rd_boot_t *boot, int *fds, int *ranks, int most);
/* Returns true if this rank has dialled that one at its creation: no firewall was in the way. */
bool rd_boot_has_dialled(const rd_boot_t *boot, int rank);
/* Begins a connection to where a rank listens, with a heartbeat: that it is made, or refused, says whether the rank is
 * still there. Returns its descriptor, which is the caller's, or -1 with errno set. */
int rd_boot_dial(const rd_boot_t *boot, int rank);
/* Returns true if the neighbour has sent an orderly farewell. */
bool rd_boot_has_left(rd_boot_t *boot, int rank);

/* This process has seen that a rank's process has ended: passes that on. */
void rd_boot_died(rd_boot_t *boot, int rank);
/* Likewise, of a rank that had failed before, so that its program may have ended in order for that, or is cut off. */
void rd_boot_lost(rd_boot_t *boot, int rank);
/* The rank that failed first has said that it leaves: passes that on. */
void rd_boot_left(rd_boot_t *boot, int rank);
/* Returns true if the one or the other, or a neighbour's word of it, is known here. One that is lost is dead, too. */
bool rd_boot_is_dead(const rd_boot_t *boot, int rank);
bool rd_boot_is_lost(const rd_boot_t *boot, int rank);
bool rd_boot_is_left(const rd_boot_t *boot, int rank);

#define RD_BOOT_PROBE 640

/* A question to any rank: what holds `about` up, or what has it called? The liveness thread of its process answers,
 * whatever the rank itself does; and that of another rank of its node, because a process that is stopped does not
 * answer. */
typedef struct rd_boot_question {
    int from, about;
    uint32_t number; /* of the questioner's questions */
    uint64_t call;   /* the collective in which the questioner waits; 0: it waits in a message */
    size_t nprobe;   /* bytes of a probe (monitor/probe.h), which is no question: it is passed on, or comes back */
    unsigned char probe[RD_BOOT_PROBE];
} rd_boot_question_t;

#define RD_BOOT_MORE 3072
typedef struct rd_boot_answer {
    int status, rank, next; /* of a verdict (monitor/verdict.h) */
    char text[RD_ERROR_BYTES];
    size_t nmore; /* bytes of what else the two have agreed upon (progress/unlike.h) */
    unsigned char more[RD_BOOT_MORE];
} rd_boot_answer_t;

/* Sends a question to one rank. Questions with the same number are one question: the first answer counts. */
void rd_boot_ask(rd_boot_t *boot, int rank, const rd_boot_question_t *question);
/* These may ask at the same time, each one question: a call that waits, the user, and a call that suspects that others
 * call something else, and asks for that alone. The first two send a probe besides. */
typedef enum {
    RD_QUESTIONER_CALL,
    RD_QUESTIONER_USER,
    RD_QUESTIONER_UNLIKE,
    RD_QUESTIONER_CALL_PROBE,
    RD_QUESTIONER_USER_PROBE,
    RD_QUESTIONERS
} rd_questioner_t;
static inline rd_questioner_t rd_questioner(const rd_boot_question_t *question)
{
    return (rd_questioner_t)(question->number % RD_QUESTIONERS);
}
/* Returns a number for a new question, which is the one that answers are waited for. */
uint32_t rd_boot_ask_new(rd_boot_t *boot, rd_questioner_t by);
/* Returns true if the questioner's newest question has been answered. */
bool rd_boot_answered(rd_boot_t *boot, rd_questioner_t by, rd_boot_answer_t *answer);
/* Takes a question that has come. Returns false if there is none, or if an exchange is going on, in which it
 * could not be answered. */
bool rd_boot_asked(rd_boot_t *boot, rd_boot_question_t *question);
void rd_boot_answer(rd_boot_t *boot, const rd_boot_question_t *question, const rd_boot_answer_t *answer);
/* The probe of that number has come back to this rank, which had sent it: that is its answer, with no word in it but
 * `text`. */
void rd_boot_came_back(rd_boot_t *boot, uint32_t number, const char *text);

/* A wait has lasted longer than rank `from` allows. */
typedef struct rd_boot_claim {
    int from, late; /* late: the rank that it is due to; -1: no particular one */
    char text[RD_ERROR_BYTES];
} rd_boot_claim_t;

/* Asks rank `to`, which is not this one, to fail with RONDO_ERR_TIMEOUT and this sentence, and to tell all, if it has
 * not failed by then. Nothing comes back but the news, and none if that rank's process is stopped. */
void rd_boot_claim(rd_boot_t *boot, int to, const rd_boot_claim_t *claim);
/* Takes what another rank has asked this one to say. Returns false if there is nothing. */
bool rd_boot_claimed(rd_boot_t *boot, rd_boot_claim_t *claim);
/* A claim or a question may be read by any thread, in an exchange or a check. Sets what is called then: at once for a
 * claim, and for questions when an exchange, in which they cannot be answered, is over; also if there is one by now. It
 * is called as well when an exchange has failed: it has read no further, and for what neighbours had sent by then there
 * is no edge any more, so that all sockets are to be read: `unread`. It is called with locks of the bootstrap held.
 * NULL: nothing is called once this has returned. */
void rd_boot_on_letter(rd_boot_t *boot, void (*on_letter)(void *arg, bool unread), void *arg);

/* What it means that a neighbour's socket has ended without a farewell. */
typedef enum {
    RD_SILENCE_NONE,  /* it has not */
    RD_SILENCE_DEATH, /* its process has ended */
    RD_SILENCE_CUT,   /* nothing comes through; its process may go on */
    RD_SILENCE_BREAK  /* this connection is lost, and others may still reach the process, if that goes on */
} rd_silence_t;

/* Whether the process of a rank of this node goes on, as who knows its processes can see: false where it cannot be
 * told. NULL: nobody knows. It is asked where a connection has ended without a farewell. */
void rd_boot_ask_who_lives(rd_boot_t *boot, bool (*lives)(const void *arg, int rank), const void *arg);

typedef struct rd_boot_news {
    int left; /* the neighbour has sent an orderly farewell */
    rd_silence_t silent;
    rd_failure_t failure; /* with an error: as it is to be passed on; a failed rank of -1: only the sentence says so */
} rd_boot_news_t;

/* Turns the report of rank `from`, that it stopped with failure->said because of failure->failed_rank, into an error of
 * this rank, which is then its code and what is said, and a sentence. failure->reporter is the rank that found it out,
 * plus one; 0, or a number of no rank, stands for `from` itself. */
void rd_boot_report(const rd_boot_t *boot, int from, rd_failure_t *failure);

/* Sets the stop word to what the news say; `advised`: with what the user can do, unless all ranks say the same. */
void rd_boot_stop(rd_stop_t *stop, rd_log_ctx_t *ctx, const rd_failure_t *news, bool advised);

/* Reads what has arrived on the socket. Returns RONDO_SUCCESS (nothing of note, or an orderly farewell),
 * RONDO_ERR_REMOTE, _TIMEOUT, _MISMATCH or _NAN. Never blocks. Does nothing during an allgather, which checks the
 * sockets itself: so callers must wait for edges (EPOLLET), not for levels. */
rondo_result_t rd_boot_socket_ready(rd_boot_t *boot, int fd, rd_boot_news_t *news);

void rd_boot_destroy(rd_boot_t *boot);

#endif
