/* What the health of a communicator and the liveness thread call when they hear of a failure, or ask after a rank. */
#include "core/health_ops.h"

#include <stdio.h>
#include <string.h>

#include "core/records.h"

static void tell_node(void *arg, const rd_failure_t *failure)
{
    rondo_comm_t comm = arg;

    rd_conns_notify(&comm->conns, comm->team.rank, failure);
}

static void tell_others(void *arg, const rd_failure_t *failure)
{
    rondo_comm_t comm = arg;

    rd_boot_pass_on(comm->boot, failure);
}

static const char *whois(void *arg, int rank)
{
    rondo_comm_t comm = arg;

    return rd_boot_whois(comm->boot, rank);
}

static bool cause(void *arg, int rank, rd_failure_t *failure)
{
    rondo_comm_t comm = arg;
    int by = rd_conns_cause(&comm->conns, rank, failure);
    char said[RD_ERROR_BYTES];

    if (by >= 0 && by == rank) {
        memcpy(said, failure->text, sizeof said);
        snprintf(failure->text, sizeof failure->text, "rank %d (%s): %.*s", rank, whois(arg, rank),
                 RD_ERROR_BYTES - 100, said);
    }
    return by >= 0;
}

static int first(void *arg, const rd_failure_t *own, rd_failure_t *failure)
{
    rondo_comm_t comm = arg;

    return rd_conns_first(&comm->conns, comm->team.rank, own, failure);
}

const rd_health_ops_t rd_comm_health_ops = {tell_node, tell_others, whois, cause, first};

static bool has_left(void *arg, int rank)
{
    rondo_comm_t comm = arg;
    rd_control_t *control = comm->conns.controls[rank];

    return control && atomic_load_explicit(&control->left, memory_order_acquire);
}

static bool has_failed(void *arg, int rank)
{
    rondo_comm_t comm = arg;
    rd_control_t *control = comm->conns.controls[rank];

    return control && atomic_load_explicit(&control->failed, memory_order_acquire);
}

static void hear(void *arg)
{
    rondo_comm_t comm = arg;

    rd_health_poll(&comm->health);
}

/* A mismatch is found by every rank itself, and comes with a sentence. */
static void tell(void *arg)
{
    rondo_comm_t comm = arg;
    rd_failure_t failure;
    rondo_result_t code = rd_stop_read(&comm->health.stop, &failure);

    if (code == RONDO_SUCCESS || code == RONDO_ERR_MISMATCH || failure.failed_rank < 0)
        return;
    failure.said = code;
    tell_node(comm, &failure);
}

static void answer(void *arg, const rd_boot_question_t *question)
{
    rd_comm_answer(arg, question);
}

static void lose_patience(void *arg, const rd_boot_claim_t *claim)
{
    rondo_comm_t comm = arg;
    rd_failure_t failure = {
        .code = RONDO_ERR_TIMEOUT, .said = RONDO_ERR_TIMEOUT, .failed_rank = claim->late, .reporter = claim->from + 1};

    memcpy(failure.text, claim->text, sizeof failure.text);
    rd_health_heard(&comm->health, &failure);
}

const rd_liveness_ops_t rd_comm_liveness_ops = {has_left, has_failed, hear, tell, answer, lose_patience};
