/* How a communicator fails: found by this rank, or heard from another. */
#include <stdarg.h>
#include <stdio.h>

#include "core/comm.h"

/* `witness`: who found it out, plus one; 0: this rank. */
static rondo_result_t fail_heard(rondo_comm_t comm, rondo_result_t code, int culprit, int witness, const char *text)
{
    int blamed = culprit >= 0 ? culprit : comm->rank;

    code = rd_stop_heard(&comm->stop, &comm->who, code, culprit, witness, text);
    rd_conns_notify(&comm->conns, code, blamed + 1, rd_witness(witness, comm->rank));
    /* A mismatch or a missed deadline is no death: ranks of other nodes find it as this one did. */
    if (code != RONDO_ERR_TIMEOUT && code != RONDO_ERR_MISMATCH)
        rd_boot_pass_on(comm->boot, code, blamed, witness);
    return code;
}

rondo_result_t rd_comm_fail(rondo_comm_t comm, rondo_result_t code, int culprit, const char *format, ...)
{
    char text[RD_ERROR_BYTES];
    va_list args;

    if (rd_stop_get(&comm->stop) != RONDO_SUCCESS)
        return rd_stop_get(&comm->stop);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fail_heard(comm, code, culprit, 0, text);
}

rondo_result_t rd_comm_check(rondo_comm_t comm)
{
    return rd_stop_get(&comm->stop);
}

/* Another rank of this node has said it, or has passed it on. */
static void notice_text(rondo_comm_t comm, rondo_result_t said, int culprit, int witness, char *text, size_t size)
{
    const char *who = culprit >= 0 && culprit < comm->nranks ? rd_boot_whois(comm->boot, culprit) : "?";
    char by[200] = "another rank";

    if (witness >= 0 && witness < comm->nranks && witness != culprit)
        snprintf(by, sizeof by, "rank %d (%s)", witness, rd_boot_whois(comm->boot, witness));
    if (said == RONDO_ERR_ABORTED)
        snprintf(text, size, "rank %d (%s) has aborted the communicator", culprit, who);
    else if (said == RONDO_ERR_REMOTE && culprit == comm->rank)
        snprintf(text, size, "%s reports that this rank, %d (%s), was lost: nothing of it arrives any more", by,
                 culprit, who);
    else if (said == RONDO_ERR_REMOTE)
        snprintf(text, size, "rank %d (%s) died or left, %s reports", culprit, who, by);
    else if (said == RONDO_ERR_TIMEOUT)
        snprintf(text, size, "rank %d (%s) did not come in time, %s reports", culprit, who, by);
    else
        snprintf(text, size, "rank %d (%s) failed: %s", culprit, who, rondo_result_string(said));
}

rondo_result_t rd_comm_notice(rondo_comm_t comm)
{
    const uint64_t mask = (UINT64_C(1) << RD_NOTICE_BITS) - 1;
    uint64_t notice = atomic_load_explicit(&comm->conns.self->notice, memory_order_acquire);
    rondo_result_t code = rd_stop_get(&comm->stop), said = rd_notice_code(notice);
    char text[RD_ERROR_BYTES];

    if (__builtin_expect(notice == 0 || code != RONDO_SUCCESS, 1))
        return code;
    if (said == RONDO_ERR_MISMATCH)
        return RONDO_SUCCESS; /* this rank finds it for itself, in the same words: rd_queue_miss if it cannot */
    int culprit = (int)(notice & mask) - 1, witness = (int)(notice >> RD_NOTICE_BITS & mask);
    notice_text(comm, said, culprit, witness - 1, text, sizeof text);
    return fail_heard(comm, said == RONDO_ERR_TIMEOUT ? said : RONDO_ERR_REMOTE, culprit, witness, text);
}
