/* A communicator's health: whether it has failed, because of which rank, and which ranks have to learn of it.
 *
 * rd_stop_t is the word itself. It is written by whichever thread learns of trouble first (the liveness thread, an
 * aborting thread, a failing operation) and read by every wait and at every call: one load of a word that is nearly
 * always zero.
 *
 * rd_health_t adds the ways by which ranks tell each other. Ranks of one node leave a notice in each other's shared
 * memory, which every wait polls; the bootstrap carries the news to the other nodes. Both belong to higher layers, so
 * the communicator sets them as functions when it is made. */
#ifndef RD_BASE_HEALTH_H
#define RD_BASE_HEALTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* A message whose two ends do not give the same length. It is found where it is received, before a byte is copied. */
typedef struct rd_lengths {
    int32_t from, to; /* the sender and the receiver; alike: there is no such message */
    uint64_t sent, wanted;
} rd_lengths_t;

static inline bool rd_lengths_differ(const rd_lengths_t *lengths)
{
    return lengths->from != lengths->to;
}

/* A failure, as one rank tells it to another. */
typedef struct rd_failure {
    rondo_result_t code; /* with which calls end on the rank that has this */
    rondo_result_t said; /* what it is called where it was found, which `code` may call RONDO_ERR_REMOTE */
    int failed_rank;     /* rank that died, left, failed or is late; -1: this rank */
    int reporter;        /* the rank that found that out, plus one; 0: this rank */
    bool died;           /* the process of failed_rank has ended without a farewell, as the sentence says */
    char text[RD_ERROR_BYTES];
} rd_failure_t;

struct rd_health;

typedef struct rd_stop {
    _Atomic int code;           /* RONDO_SUCCESS while healthy, else the result with which every wait and call ends */
    _Atomic int failed_rank;    /* rank that died, left or failed; -1: none */
    _Atomic int reporter;       /* the rank that found that out, plus one; 0: this rank itself */
    _Atomic int said;           /* what the failure is called where it was found */
    _Atomic bool died;          /* failed_rank has died: see rd_failure_t */
    _Atomic int claimed;        /* the first writer's mark: only that one fills the fields here */
    _Atomic(uint32_t *) mirror; /* a word that is set with `code` for kernels, which cannot read this struct; or NULL */
    char text[RD_ERROR_BYTES];  /* set before `code` is released, once: "rank 3 (host a, pid 17) died" */
    struct rd_stop *parent;     /* while a communicator is made from another one: that one's word; else NULL */
    struct rd_health *health;   /* of the communicator whose word it is; NULL: the word of something else */
    /* Guarded by `passing`, a lock of a moment: the word of what this communicator makes for itself; NULL: nothing. */
    _Atomic int passing;
    struct rd_stop *heir;
    rd_log_ctx_t *heir_ctx;
} rd_stop_t;

/* Sets the stop word. The first writer wins; later ones are ignored. May be called by any thread. The sentence is the
 * communicator's last error, and has been printed, before the code can be seen. Returns the code that stands. Nobody is
 * told: what an operation finds is set by rd_stop_fail.
 *
 * Ranks of a node that find failures at the same time all have the first one, with its sentence, whatever they have
 * found themselves; only what is a rank's own failure stays its own. */
rondo_result_t rd_stop_set(rd_stop_t *stop, rd_log_ctx_t *ctx, rondo_result_t code, int failed_rank, const char *format,
                           ...) __attribute__((format(printf, 5, 6)));
/* The same because a rank has died. All ranks say that in one sentence, however each has learnt of it: from the end of
 * a process, of a connection, or from others; this rank's has advice behind it. */
rondo_result_t rd_stop_died(rd_stop_t *stop, rd_log_ctx_t *ctx, int rank, const char *whois);
/* The same for a failure that another rank has found out and others have passed on. It is called failure->code. */
rondo_result_t rd_stop_heard(rd_stop_t *stop, rd_log_ctx_t *ctx, const rd_failure_t *failure);
/* The same for an error that has been reported already, of the call that this communicator does not survive. */
void rd_stop_known(rd_stop_t *stop, rondo_result_t code, int failed_rank, const char *text);
/* What a user can do about a failure of a communicator, behind the sentence of it. */
#define RD_STOP_ADVICE "; abort this communicator, then shrink it or end"
/* Puts that behind the sentence of a failure. */
void rd_failure_advise(rd_failure_t *failure);
/* Make the sentences for a rank that has died, and, on the others, for one that has aborted the communicator. */
void rd_death_text(int rank, const char *whois, char *text, size_t size);
void rd_abort_text(int rank, const char *whois, char *text, size_t size);
/* Makes the failure that a message of two lengths is, with a sentence that is the same on every rank. */
rd_failure_t rd_lengths_failure(const rd_lengths_t *lengths, const char *from, const char *to);
/* Returns the reporter that `rank` names, plus one as ever: `reporter`, or `rank` itself if there is none. */
static inline int rd_reporter(int reporter, int rank)
{
    return reporter > 0 ? reporter : rank + 1;
}

/* For waits in which ranks are missing that the parent may know to have died: sets the stop word if the parent's is
 * set. Returns the code that stands, or RONDO_SUCCESS. */
rondo_result_t rd_stop_inherit(rd_stop_t *stop, rd_log_ctx_t *ctx);
/* From here on `heir`, one at a time, whose parent is `stop`, is set when `stop` is, by the thread that sets it:
 * whatever it waits for ends. NULL: not any more. */
void rd_stop_heir(rd_stop_t *stop, rd_stop_t *heir, rd_log_ctx_t *ctx);

static inline rondo_result_t rd_stop_get(rd_stop_t *stop)
{
    return (rondo_result_t)atomic_load_explicit(&stop->code, memory_order_acquire);
}

/* Copies the failure that has set the word. Returns its code, or RONDO_SUCCESS, and copies nothing, if none has. */
rondo_result_t rd_stop_read(rd_stop_t *stop, rd_failure_t *failure);

/* The word that one rank of a node leaves with another: a result code, the rank to blame, and the rank that found that
 * out. Both ranks are numbers plus one, with 0 for none. */
#define RD_NOTICE_BITS 28
static inline uint64_t rd_notice(rondo_result_t code, int failed_rank, int reporter)
{
    return (uint64_t)code << 2 * RD_NOTICE_BITS | (uint64_t)reporter << RD_NOTICE_BITS | (uint64_t)failed_rank;
}

static inline rondo_result_t rd_notice_code(uint64_t notice)
{
    return (rondo_result_t)(notice >> 2 * RD_NOTICE_BITS);
}

/* How a communicator reports its failure, which is in the stop word by then. The others are told what failure->said
 * calls it, and a rank to blame, be it this one. What is the error of all ranks (rd_error_is_common) goes along with
 * its sentence: it is the cause of whatever its finder does next, and the others may not be able to find it any more.
 */
typedef struct rd_health_ops {
    void (*tell_node)(void *arg, const rd_failure_t *failure);
    void (*tell_others)(void *arg, const rd_failure_t *failure); /* through the bootstrap */
    const char *(*whois)(void *arg, int rank); /* returns the host and process of a rank, for sentences */
    /* Copies the sentence that a rank of this node has published of the failure of `rank`, which it names: of a
     * mismatch that it has found, or of what has failed on itself or on another node; and whether that is a death. -1:
     * any. Returns false if there is none yet. */
    bool (*cause)(void *arg, int rank, rd_failure_t *failure);
    /* Makes `own` the first failure of this node. Returns -1, or, if there has been one, the rank that had it first,
     * and the failure through *first. */
    int (*first)(void *arg, const rd_failure_t *own, rd_failure_t *first);
} rd_health_ops_t;

typedef struct rd_health {
    rd_stop_t stop;
    rd_log_ctx_t *ctx;
    const _Atomic uint64_t
        *notice; /* the word in which the others of its node notify this rank: rd_notice(), or 0 if all is well */
    const rd_health_ops_t *ops;
    void *arg; /* the argument of the ops */
} rd_health_t;

/* Initialises a health. `notice` may be replaced until the first poll. */
void rd_health_begin(rd_health_t *health, rd_log_ctx_t *ctx, const _Atomic uint64_t *notice, const rd_health_ops_t *ops,
                     void *arg);

/* Fails the communicator: every pending and later call ends with `code`, and the others are told. A failed_rank of -1
 * means that this rank is to blame. Returns the code that stands. */
rondo_result_t rd_health_fail(rd_health_t *health, rondo_result_t code, int failed_rank, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same for what has the word alone, as transports do: if the word is a communicator's, the others are told. */
rondo_result_t rd_stop_fail(rd_stop_t *stop, rd_log_ctx_t *ctx, rondo_result_t code, int failed_rank,
                            const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The same because a rank has died. */
rondo_result_t rd_health_died(rd_health_t *health, int rank);

/* The same because another communicator of this process has failed, with its sentence and `behind` it. `failed_rank`:
 * the number that the rank to blame has here. */
rondo_result_t rd_health_follow(rd_health_t *health, rondo_result_t code, int failed_rank, rd_stop_t *other,
                                const char *behind);

/* The same for a failure that another rank has found and asks this one to pass on. */
rondo_result_t rd_health_heard(rd_health_t *health, const rd_failure_t *failure);

/* The same for a message of two lengths. */
rondo_result_t rd_health_lengths(rd_health_t *health, const rd_lengths_t *lengths);

/* Returns RONDO_SUCCESS, or what every call on a failed communicator returns. */
static inline rondo_result_t rd_health_check(rd_health_t *health)
{
    return rd_stop_get(&health->stop);
}

/* Returns the code in the notice of another rank of the node; RONDO_SUCCESS if there is none. */
static inline rondo_result_t rd_health_noticed(const rd_health_t *health)
{
    return rd_notice_code(atomic_load_explicit(health->notice, memory_order_relaxed));
}

/* Like rd_health_check, for each miss of a wait: also takes in what the others of the node have left in the notice. */
rondo_result_t rd_health_take_in(rd_health_t *health, uint64_t notice);
static inline rondo_result_t rd_health_poll(rd_health_t *health)
{
    uint64_t notice = atomic_load_explicit(health->notice, memory_order_acquire);
    rondo_result_t code = rd_health_check(health);

    if (__builtin_expect(notice == 0 || code != RONDO_SUCCESS, 1))
        return code;
    return rd_health_take_in(health, notice);
}

/* Returns the host and process of a rank, "host:pid"; "?" for a number that is no rank's. */
const char *rd_health_whois(const rd_health_t *health, int rank);

#endif
