/* Where all ranks meet: a barrier (Hensgen, Finkel, Manber, 1988), by the rounds of the allgather. In round k a rank
 * hears from rank + 2^k, so after log2(n) rounds it has heard from all, directly or not.
 *
 * What is passed on is the first failure, that of the lowest rank. Failures need not be counted, so it does no harm
 * that a rank hears of one more than once; and each fits into a variable: a rank that has no memory left can say so. */
#include "boot/boot_int.h"

#include <string.h>

#define SPREAD_MS 10000 /* ranks that begin to wait at the same time lose patience within this time */

typedef struct said {
    int32_t rank, code; /* rank: INT32_MAX where nobody has failed */
    char text[RD_ERROR_BYTES];
} said_t;

typedef struct meeting {
    said_t first, came; /* that this rank knows, and that has come in this round */
} meeting_t;

static void merge(meeting_t *m)
{
    if (m->came.rank < m->first.rank)
        m->first = m->came;
}

static size_t pass_on(void *arg, int k, const unsigned char **out, unsigned char **in)
{
    meeting_t *m = arg;

    if (k > 0)
        merge(m);
    *out = (const unsigned char *)&m->first;
    *in = (unsigned char *)&m->came;
    return sizeof(m->first);
}

/* `rank`: this rank, if it has anything to say. */
static rondo_result_t meet(rd_boot_t *b, int32_t rank, rondo_result_t code, const char *why, said_t *first)
{
    meeting_t m;

    memset(&m, 0, sizeof(m));
    m.first = (said_t){.rank = rank, .code = (int32_t)code};
    m.came.rank = INT32_MAX;
    if (why)
        snprintf(m.first.text, sizeof(m.first.text), "%s", why);
    b->exchanges++;
    b->exchanged += sizeof(said_t);
    rondo_result_t result = rd_boot_rounds(b, pass_on, &m);
    merge(&m);
    m.first.text[sizeof(m.first.text) - 1] = 0;
    *first = m.first;
    return result;
}

rondo_result_t rd_boot_barrier(rd_boot_t *b)
{
    said_t first;

    return meet(b, INT32_MAX, RONDO_SUCCESS, NULL, &first);
}

rondo_result_t rd_boot_meet(rd_boot_t *b, rondo_result_t own, const char *why)
{
    said_t first;
    rondo_result_t result = meet(b, own ? b->rank : INT32_MAX, own, own ? why : NULL, &first);

    if (result != RONDO_SUCCESS || first.rank == INT32_MAX)
        return result;
    if (first.rank < 0 || first.rank >= b->nranks || first.code <= RONDO_SUCCESS)
        return rd_error(b->ctx, RONDO_ERR_INTERNAL, "an exchange named rank %d of %d", (int)first.rank, b->nranks);
    if (first.rank != b->rank)
        rd_error(b->ctx, (rondo_result_t)first.code, "rank %d (%s): %s", (int)first.rank,
                 rd_boot_whois(b, (int)first.rank), first.text);
    return (rondo_result_t)first.code;
}

rondo_result_t rd_boot_cause(rd_boot_t *b, int failed, const char *why, char text[RD_ERROR_BYTES])
{
    said_t first;
    rondo_result_t code = meet(b, b->rank == failed ? b->rank : INT32_MAX, RONDO_SUCCESS, why, &first);

    snprintf(text, RD_ERROR_BYTES, "%s", code == RONDO_SUCCESS ? first.text : "its own message says why");
    return code;
}

rd_boot_patience_t rd_boot_patience(rd_boot_t *b, const rd_boot_patience_t *patience)
{
    const rd_boot_patience_t until_now = b->patience;

    b->patience = *patience;
    return until_now;
}

rondo_result_t rd_boot_drop_out(rd_boot_t *b, rondo_result_t code)
{
    rd_failure_t failure = {.code = code, .said = code, .failed_rank = b->rank};

    snprintf(failure.text, sizeof(failure.text), "cannot go on with an exchange: %.300s", rd_thread_error());
    rd_boot_stop(b->stop, b->ctx, &failure, b->call != NULL); /* NULL: there is no communicator yet */
    rd_boot_pass_on(b, &failure);
    return code;
}

rondo_result_t rd_boot_meet_waiters(rd_boot_t *b, rondo_result_t own, int64_t ms)
{
    const int64_t usual_ms = b->patience.ms, spread = ms < SPREAD_MS ? ms : SPREAD_MS;
    char why[RD_ERROR_BYTES];

    snprintf(why, sizeof why, "%s", rd_thread_error());
    b->patience.why = own == RONDO_SUCCESS ? NULL : why;
    b->patience.ms = own == RONDO_SUCCESS ? ms + spread : spread; /* who need not wait is here before the others */
    rondo_result_t result = rd_boot_meet(b, own, why);
    b->patience.ms = usual_ms;
    b->patience.why = NULL;
    if (result == RONDO_ERR_TIMEOUT && rd_stop_get(b->stop) == RONDO_SUCCESS) {
        rd_boot_farewell_alike(b);
        rd_stop_known(b->stop, result, -1, rd_thread_error()); /* what the end of its connections brings is no news */
    }
    return result;
}
