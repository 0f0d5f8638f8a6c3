/* A communicator's health: whether it has failed, because of whom, and who has to learn of it.
 *
 * rd_stop_t is the word itself, written by whoever learns of trouble first (the watch, an aborting thread, a failing
 * operation) and read by every wait and at every call: one load of a word that is nearly always zero.
 *
 * rd_health_t adds the ways by which ranks tell each other. Ranks of one node leave a notice in each other's shared
 * memory, which every wait polls; the bootstrap carries the news to the other nodes. Both belong to higher layers, so
 * the communicator sets them as functions when it is made.
 */
#ifndef RD_BASE_HEALTH_H
#define RD_BASE_HEALTH_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"

typedef struct rd_stop {
    _Atomic int code;           /* RONDO_SUCCESS while healthy, else the result with which every wait and call ends */
    _Atomic int failed_rank;    /* rank that died, left or failed; -1: none */
    _Atomic int reporter;       /* who found that out, plus one; 0: this rank itself */
    _Atomic int claimed;        /* the first writer's mark: only it fills the fields here */
    _Atomic(uint32_t *) mirror; /* a word that is set with `code`, for who cannot read this: kernels; or NULL */
    char text[RD_ERROR_BYTES];  /* set before `code` is released, once: "rank 3 (host a, pid 17) died" */
} rd_stop_t;

/* First writer wins; later ones are ignored. Any thread. The sentence is the communicator's last error, and has been
 * printed, before the code can be seen. Returns the code that stands. */
rondo_result_t rd_stop_set(rd_stop_t *stop, rd_log_ctx_t *ctx, rondo_result_t code, int failed_rank, const char *format,
                           ...) __attribute__((format(printf, 5, 6)));
/* The same of what a rank has found out whose number, plus one, is `reporter`, and others have passed on. */
rondo_result_t rd_stop_heard(rd_stop_t *stop, rd_log_ctx_t *ctx, rondo_result_t code, int failed_rank, int reporter,
                             const char *text);
/* Who is to be named as the reporter by `rank`: itself, where nobody else was. Plus one, as ever. */
static inline int rd_reporter(int reporter, int rank)
{
    return reporter > 0 ? reporter : rank + 1;
}

static inline rondo_result_t rd_stop_get(rd_stop_t *stop)
{
    return (rondo_result_t)atomic_load_explicit(&stop->code, memory_order_acquire);
}

/* What one rank of a node leaves with another in one word: a result code, who is to blame, and who found that out. Both
 * are rank numbers plus one, 0 for nobody. */
#define RD_NOTICE_BITS 28
static inline uint64_t rd_notice(rondo_result_t code, int failed_rank, int reporter)
{
    return (uint64_t)code << 2 * RD_NOTICE_BITS | (uint64_t)reporter << RD_NOTICE_BITS | (uint64_t)failed_rank;
}

static inline rondo_result_t rd_notice_code(uint64_t notice)
{
    return (rondo_result_t)(notice >> 2 * RD_NOTICE_BITS);
}

/* How a communicator tells of its failure. `reporter` is the rank that found it out, plus one; 0: this rank. */
typedef struct rd_health_ops {
    void (*tell_node)(void *arg, rondo_result_t code, int failed_rank, int reporter);
    void (*tell_others)(void *arg, rondo_result_t code, int failed_rank, int reporter); /* by the bootstrap */
    const char *(*whois)(void *arg, int rank); /* the host and process of a rank, for sentences */
} rd_health_ops_t;

typedef struct rd_health {
    rd_stop_t stop;
    rd_log_ctx_t *ctx;
    const _Atomic uint64_t *notice; /* this rank's word for the others of its node: rd_notice(), or 0: all is well */
    const rd_health_ops_t *ops;
    void *arg; /* of the ops */
} rd_health_t;

/* `notice` may be set anew until the first poll. */
void rd_health_begin(rd_health_t *health, rd_log_ctx_t *ctx, const _Atomic uint64_t *notice, const rd_health_ops_t *ops,
                     void *arg);

/* Fails the communicator: every pending and later call ends with `code`; the others are told. Returns the code that
 * stands. failed_rank -1: this rank is to blame. */
rondo_result_t rd_health_fail(rd_health_t *health, rondo_result_t code, int failed_rank, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* RONDO_SUCCESS, or what every call on a failed communicator returns. */
static inline rondo_result_t rd_health_check(rd_health_t *health)
{
    return rd_stop_get(&health->stop);
}

/* What another rank of the node has said about it; RONDO_SUCCESS: nothing. */
static inline rondo_result_t rd_health_noticed(const rd_health_t *health)
{
    return rd_notice_code(atomic_load_explicit(health->notice, memory_order_relaxed));
}

/* As rd_health_check, at each miss of a wait: takes in what the others of the node have left in the notice. */
rondo_result_t rd_health_take_in(rd_health_t *health, uint64_t notice);
static inline rondo_result_t rd_health_poll(rd_health_t *health)
{
    uint64_t notice = atomic_load_explicit(health->notice, memory_order_acquire);
    rondo_result_t code = rd_health_check(health);

    if (__builtin_expect(notice == 0 || code != RONDO_SUCCESS, 1))
        return code;
    return rd_health_take_in(health, notice);
}

/* Who a rank is, "host:pid"; "?" for a number that is no rank's. */
const char *rd_health_whois(const rd_health_t *health, int rank);

#endif
