/* How a communicator fails: found by this rank, or heard from another. */
#include "base/health.h"

#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* ---- the word ---- */

/* Returns true if this is the first writer, which has to fill and release the word; else *first is the code that
 * stands. */
static bool claim(rd_stop_t *stop, rondo_result_t *first)
{
    int unclaimed = 0;
    if (atomic_compare_exchange_strong(&stop->claimed, &unclaimed, 1))
        return true;
    while ((*first = rd_stop_get(stop)) == RONDO_SUCCESS) /* its writer is between claim and release */
        sched_yield();
    return false;
}

/* ---- the first failure of the node ---- */

/* Returns true if the failure is told in one sentence on all ranks, also on the one that it blames. */
static bool is_for_all(const rd_failure_t *f)
{
    return rd_error_is_common(f->said) || f->said == RONDO_ERR_TIMEOUT;
}

/* Returns true if it may give way to another one: what this rank has done, or has happened to itself, stays its own. */
static bool gives_way(const rd_failure_t *own, int self)
{
    bool found_itself = own->failed_rank == self && own->reporter == self + 1;

    return rd_error_is_common(own->code) ||
           (!found_itself && (own->code == RONDO_ERR_TIMEOUT || own->code == RONDO_ERR_REMOTE));
}

/* Makes another rank's failure this one's; `by`: that rank. */
static void adopt(const rd_health_t *h, int by, const rd_failure_t *its, rd_failure_t *f)
{
    const char *whois = rd_health_whois(h, its->failed_rank);

    f->code = is_for_all(its) ? its->said : RONDO_ERR_REMOTE;
    f->said = its->said;
    f->failed_rank = its->failed_rank;
    f->reporter = its->reporter;
    f->died = its->died;
    if (its->said == RONDO_ERR_ABORTED)
        rd_abort_text(its->failed_rank, whois, f->text, sizeof f->text);
    else if (by == its->failed_rank && its->reporter == by + 1 && !rd_error_is_common(its->said))
        snprintf(f->text, sizeof f->text, "rank %d (%s): %.*s", by, whois, RD_ERROR_BYTES - 100, its->text);
    else
        memcpy(f->text, its->text, sizeof f->text);
}

/* Ranks of a node see the same trouble at the same time, each in its own way. */
static void agree(rd_health_t *h, rd_failure_t *f)
{
    const int self = h->ctx->rank;
    rd_failure_t own = *f, its;

    own.failed_rank = f->failed_rank >= 0 || f->reporter || f->code == RONDO_ERR_TIMEOUT ? f->failed_rank : self;
    own.reporter = rd_reporter(f->reporter, self);
    int by = h->ops->first(h->arg, &own, &its);
    if (by >= 0 && by != self && gives_way(&own, self) && (its.failed_rank != self || is_for_all(&its)))
        adopt(h, by, &its, f);
}

/* ---- what is made meanwhile ---- */

static void lock(rd_stop_t *stop)
{
    while (atomic_exchange_explicit(&stop->passing, 1, memory_order_acquire))
        sched_yield();
}

static void unlock(rd_stop_t *stop)
{
    atomic_store_explicit(&stop->passing, 0, memory_order_release);
}

/* The code is set. Whoever names an heir later finds that. */
static void pass_on(rd_stop_t *stop)
{
    lock(stop);
    if (stop->heir)
        rd_stop_inherit(stop->heir, stop->heir_ctx);
    unlock(stop);
}

void rd_stop_heir(rd_stop_t *stop, rd_stop_t *heir, rd_log_ctx_t *ctx)
{
    lock(stop);
    stop->heir = heir;
    stop->heir_ctx = ctx;
    if (heir)
        rd_stop_inherit(heir, ctx);
    unlock(stop);
}

/* ---- the word is set ---- */

static rondo_result_t release(rd_stop_t *stop, rd_log_ctx_t *ctx, rd_failure_t *f)
{
    if (stop->health)
        agree(stop->health, f);
    memcpy(stop->text, f->text, sizeof stop->text);
    rd_error_stays(ctx, f->code,
                   stop->text); /* first: a thread that sees the code may query the sentence, or end the process */
    atomic_store_explicit(&stop->failed_rank, f->failed_rank, memory_order_relaxed);
    atomic_store_explicit(&stop->reporter, f->reporter, memory_order_relaxed);
    atomic_store_explicit(&stop->said, f->said, memory_order_relaxed);
    atomic_store_explicit(&stop->died, f->died, memory_order_relaxed);
    atomic_store_explicit(&stop->code, f->code, memory_order_release); /* publishes all that is above */
    uint32_t *mirror = atomic_load(&stop->mirror);
    if (mirror)
        *(volatile uint32_t *)mirror = 1;
    pass_on(stop);
    return f->code;
}

rondo_result_t rd_stop_set(rd_stop_t *stop, rd_log_ctx_t *ctx, rondo_result_t code, int failed_rank, const char *format,
                           ...)
{
    rd_failure_t failure = {.code = code, .said = code, .failed_rank = failed_rank};
    rondo_result_t first;
    va_list args;

    if (!claim(stop, &first))
        return first;
    va_start(args, format);
    rd_error_format(failure.text, format, args);
    va_end(args);
    return release(stop, ctx, &failure);
}

/* `said`: what it is called where it was found. */
static rondo_result_t heard(rd_stop_t *stop, rd_log_ctx_t *ctx, const rd_failure_t *failure, rondo_result_t said)
{
    rd_failure_t own = *failure;
    rondo_result_t first;

    if (!claim(stop, &first))
        return first;
    own.said = said;
    return release(stop, ctx, &own);
}

rondo_result_t rd_stop_heard(rd_stop_t *stop, rd_log_ctx_t *ctx, const rd_failure_t *failure)
{
    return heard(stop, ctx, failure, failure->code);
}

static void death(rd_failure_t *failure, int rank, const char *whois)
{
    *failure = (rd_failure_t){.code = RONDO_ERR_REMOTE, .said = RONDO_ERR_REMOTE, .failed_rank = rank, .died = true};
    rd_death_text(rank, whois, failure->text, sizeof failure->text);
    rd_failure_advise(failure);
}

rondo_result_t rd_stop_died(rd_stop_t *stop, rd_log_ctx_t *ctx, int rank, const char *whois)
{
    rd_failure_t failure;

    death(&failure, rank, whois);
    return rd_stop_heard(stop, ctx, &failure);
}

/* The code was stored last, with release, and none of the others is stored again. */
rondo_result_t rd_stop_read(rd_stop_t *stop, rd_failure_t *failure)
{
    rondo_result_t code = rd_stop_get(stop);

    if (code == RONDO_SUCCESS)
        return code;
    failure->code = code;
    failure->said = (rondo_result_t)atomic_load_explicit(&stop->said, memory_order_relaxed);
    failure->failed_rank = atomic_load_explicit(&stop->failed_rank, memory_order_relaxed);
    failure->reporter = atomic_load_explicit(&stop->reporter, memory_order_relaxed);
    failure->died = atomic_load_explicit(&stop->died, memory_order_relaxed);
    memcpy(failure->text, stop->text, sizeof failure->text);
    return code;
}

void rd_stop_known(rd_stop_t *stop, rondo_result_t code, int failed_rank, const char *text)
{
    rondo_result_t first;

    if (!claim(stop, &first))
        return;
    snprintf(stop->text, sizeof stop->text, "%s", text);
    atomic_store(&stop->failed_rank, failed_rank);
    atomic_store(&stop->said, code);
    atomic_store_explicit(&stop->code, code, memory_order_release);
    pass_on(stop);
}

rondo_result_t rd_stop_inherit(rd_stop_t *stop, rd_log_ctx_t *ctx)
{
    rondo_result_t code = stop->parent ? rd_stop_get(stop->parent) : RONDO_SUCCESS;

    if (code != RONDO_SUCCESS && rd_stop_get(stop) == RONDO_SUCCESS)
        rd_stop_set(stop, ctx, code, -1, "the communicator that this one is made from has failed: %s",
                    stop->parent->text);
    return rd_stop_get(stop);
}

rd_failure_t rd_lengths_failure(const rd_lengths_t *l, const char *from, const char *to)
{
    rd_failure_t failure = {
        .code = RONDO_ERR_MISMATCH, .said = RONDO_ERR_MISMATCH, .failed_rank = l->from, .reporter = l->to + 1};

    snprintf(failure.text, sizeof failure.text,
             "rank %d (%s) sends a message of %llu bytes to rank %d (%s), which expects %llu: both must give the same "
             "length",
             l->from, from, (unsigned long long)l->sent, l->to, to, (unsigned long long)l->wanted);
    return failure;
}

void rd_death_text(int rank, const char *whois, char *text, size_t size)
{
    snprintf(text, size, "rank %d (%s) died: its process has ended without a farewell", rank, whois);
}

void rd_abort_text(int rank, const char *whois, char *text, size_t size)
{
    snprintf(text, size, "rank %d (%s) has aborted the communicator", rank, whois);
}

static void put_behind(rd_failure_t *failure, const char *what)
{
    size_t used = strlen(failure->text);

    snprintf(failure->text + used, sizeof failure->text - used, "%s", what);
}

void rd_failure_advise(rd_failure_t *failure)
{
    if (!strstr(failure->text, RD_STOP_ADVICE)) /* one that others have passed on may have it */
        put_behind(failure, RD_STOP_ADVICE);
}

/* ---- the communicator's health ---- */

void rd_health_begin(rd_health_t *health, rd_log_ctx_t *ctx, const _Atomic uint64_t *notice, const rd_health_ops_t *ops,
                     void *arg)
{
    memset(health, 0, sizeof *health);
    atomic_store(&health->stop.failed_rank, -1);
    health->stop.health = health;
    health->ctx = ctx;
    health->notice = notice;
    health->ops = ops;
    health->arg = arg;
}

const char *rd_health_whois(const rd_health_t *health, int rank)
{
    return rank >= 0 && rank < health->ctx->nranks ? health->ops->whois(health->arg, rank) : "?";
}

/* With what is called otherwise where it was found, and REMOTE here, the sentence goes along to the others. They are
 * told the failure that stands, which may be another one. */
static rondo_result_t fail_heard(rd_health_t *h, const rd_failure_t *failure)
{
    rd_failure_t stands;
    rondo_result_t code = heard(&h->stop, h->ctx, failure, failure->said);

    rd_stop_read(&h->stop, &stands);
    if (code != RONDO_ERR_REMOTE || stands.said == RONDO_ERR_ABORTED)
        stands.said = code;
    if (stands.failed_rank < 0)
        stands.failed_rank = h->ctx->rank;
    h->ops->tell_node(h->arg, &stands);
    /* That its own device is late is no word for ranks of other nodes, which find what they wait for. */
    if (code != RONDO_ERR_TIMEOUT || stands.failed_rank != rd_reporter(stands.reporter, h->ctx->rank) - 1)
        h->ops->tell_others(h->arg, &stands);
    return code;
}

rondo_result_t rd_health_fail(rd_health_t *h, rondo_result_t code, int failed_rank, const char *format, ...)
{
    rd_failure_t failure = {.code = code, .said = code, .failed_rank = failed_rank};
    va_list args;

    if (rd_health_check(h) != RONDO_SUCCESS)
        return rd_health_check(h);
    va_start(args, format);
    vsnprintf(failure.text, sizeof failure.text, format, args);
    va_end(args);
    return fail_heard(h, &failure);
}

rondo_result_t rd_stop_fail(rd_stop_t *stop, rd_log_ctx_t *ctx, rondo_result_t code, int failed_rank,
                            const char *format, ...)
{
    char text[RD_ERROR_BYTES];
    va_list args;

    va_start(args, format);
    rd_error_format(text, format, args);
    va_end(args);
    return stop->health ? rd_health_fail(stop->health, code, failed_rank, "%s", text)
                        : rd_stop_set(stop, ctx, code, failed_rank, "%s", text);
}

rondo_result_t rd_health_died(rd_health_t *h, int rank)
{
    rd_failure_t failure;

    if (rd_health_check(h) != RONDO_SUCCESS)
        return rd_health_check(h);
    death(&failure, rank, rd_health_whois(h, rank));
    return fail_heard(h, &failure);
}

/* Where ranks have other numbers, the sentence does not say that the one with this number has died. */
rondo_result_t rd_health_follow(rd_health_t *h, rondo_result_t code, int failed_rank, rd_stop_t *other,
                                const char *behind)
{
    rd_failure_t failure = {.failed_rank = -1};

    if (rd_health_check(h) != RONDO_SUCCESS)
        return rd_health_check(h);
    if (rd_stop_read(other, &failure) == RONDO_SUCCESS)
        return RONDO_SUCCESS;
    failure.code = failure.said = code;
    failure.died = failure.died && failure.failed_rank == failed_rank;
    failure.failed_rank = failed_rank;
    failure.reporter = 0;
    put_behind(&failure, behind);
    return fail_heard(h, &failure);
}

rondo_result_t rd_health_heard(rd_health_t *h, const rd_failure_t *failure)
{
    return fail_heard(h, failure);
}

rondo_result_t rd_health_lengths(rd_health_t *h, const rd_lengths_t *lengths)
{
    if (rd_health_check(h) != RONDO_SUCCESS)
        return rd_health_check(h);
    const rd_failure_t failure =
        rd_lengths_failure(lengths, rd_health_whois(h, lengths->from), rd_health_whois(h, lengths->to));
    return fail_heard(h, &failure);
}

/* Makes the sentence for a failure that another rank of this node has reported or passed on. */
static void notice_text(const rd_health_t *h, rd_failure_t *f)
{
    const char *ctx = rd_health_whois(h, f->failed_rank);
    const int reporter = f->reporter - 1;
    const size_t size = sizeof f->text;
    char by[200] = "another rank";

    if (reporter >= 0 && reporter < h->ctx->nranks && reporter != f->failed_rank)
        snprintf(by, sizeof by, "rank %d (%s)", reporter, rd_health_whois(h, reporter));
    if (f->said == RONDO_ERR_ABORTED)
        rd_abort_text(f->failed_rank, ctx, f->text, size);
    else if (f->said == RONDO_ERR_REMOTE && f->failed_rank == h->ctx->rank)
        snprintf(f->text, size, "%s reports that rank %d (%s) was lost: nothing of it arrives any more", by,
                 f->failed_rank, ctx);
    else if (h->ops->cause(h->arg, f->failed_rank, f))
        return;
    else if (f->said == RONDO_ERR_TIMEOUT)
        snprintf(f->text, size, "rank %d (%s) did not come in time, %s reports", f->failed_rank, ctx, by);
    else if (f->said == RONDO_ERR_REMOTE)
        snprintf(f->text, size, "rank %d (%s) failed or left, or the connection to it was lost, %s reports",
                 f->failed_rank, ctx, by);
    else
        snprintf(f->text, size, "rank %d (%s) failed: %s", f->failed_rank, ctx, rondo_result_string(f->said));
}

rondo_result_t rd_health_take_in(rd_health_t *h, uint64_t notice)
{
    const uint64_t mask = (UINT64_C(1) << RD_NOTICE_BITS) - 1;
    rondo_result_t said = rd_notice_code(notice);
    rd_failure_t f = {.code = said,
                      .said = said,
                      .failed_rank = (int)(notice & mask) - 1,
                      .reporter = (int)(notice >> RD_NOTICE_BITS & mask)};

    if (rd_error_is_common(said)) {
        if (!h->ops->cause(h->arg, -1, &f))
            return RONDO_SUCCESS; /* without a sentence: it is being written, and this is called again */
        f.died = false;           /* which may have been said of another failure */
        return fail_heard(h, &f);
    }
    notice_text(h, &f);
    f.code = said == RONDO_ERR_TIMEOUT ? said : RONDO_ERR_REMOTE;
    return fail_heard(h, &f);
}
