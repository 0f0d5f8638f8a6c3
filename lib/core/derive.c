/* What split, grow and shrink have in common: see derive.h. */
#include "core/derive.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/lifetime.h"
#include "core/submit.h"
#include "progress/signature.h"

#define NEWS_MS 300      /* in which the news of a death reaches every rank that is alive */
#define LIFELINE_MS 3000 /* the same of a rank on another node, a child of which holds its connections */

/* RONDO_CHECK=1: do all ranks call this, or does one call something else? On GPUs what is called is compared on the
 * stream. */
static rondo_result_t check(rondo_comm_t comm, const char *name)
{
    const rd_call_t call = {.desc = {.coll = RD_BARRIER}, .name = name};

    if (!comm->env.check || comm->team.nranks == 1 || comm->cuda)
        return RONDO_SUCCESS;
    return rd_signature_exchange(&comm->queue, &call, 0, &comm->sequence);
}

/* That nobody serves an id is no misuse here: a rank of `comm` has just made it, and has ended. */
rondo_result_t rd_derive_cause(rondo_comm_t comm, rondo_result_t result)
{
    int waits_ms = result == RONDO_ERR_INVALID_USAGE                          ? LIFELINE_MS
                   : result == RONDO_ERR_REMOTE || result == RONDO_ERR_SYSTEM ? NEWS_MS
                                                                              : 0;
    int64_t until = rd_clock_ms() + waits_ms;
    rondo_result_t stop;

    if (result == RONDO_SUCCESS || result == RONDO_ERR_INVALID_ARGUMENT || result == RONDO_ERR_NO_MEMORY)
        return result;
    while ((stop = rd_health_check(&comm->health)) == RONDO_SUCCESS && rd_clock_ms() < until)
        usleep(1000);
    if (stop == RONDO_SUCCESS)
        return result;
    rd_error_again(&comm->ctx, comm->health.stop.text);
    return stop;
}

static bool is_revoked(rondo_comm_t comm)
{
    return rd_health_check(&comm->health) == RONDO_ERR_ABORTED;
}

/* What the program does upon an error, as to abort `comm` or to end, must come after the others' news of the error. But
 * a thread that aborts either communicator waits for this one, and one that revokes `comm` may be about to: that ends
 * it, and nothing that other ranks do. */
static void stay(rondo_comm_t comm, rondo_comm_t made, int ms)
{
    const int64_t until = rd_clock_ms() + ms;
    const bool before = is_revoked(comm);

    while (!atomic_load(&comm->closed) && !atomic_load(&made->abandoned) && is_revoked(comm) == before &&
           rd_clock_ms() < until)
        usleep(1000);
}

/* The news takes NEWS_MS at most, and who hears of it listens for as long whether the cause lies in `comm`: an error
 * comes so much later. */
rondo_result_t rd_derive_made(rondo_comm_t comm, rondo_comm_t made, rondo_result_t result)
{
    int64_t began = rd_clock_ms();

    result = rd_derive_cause(comm, result);
    if (result != RONDO_SUCCESS && rd_health_check(&comm->health) == RONDO_SUCCESS)
        stay(comm, made, (int)(2 * NEWS_MS - (rd_clock_ms() - began)));
    return result;
}

/* What the members have observed of each other is set in the word before the creation ends, with another rank to blame:
 * it is not told, because each of them sees it. */
void rd_derive_met(rondo_comm_t comm, rondo_comm_t made, rondo_result_t result)
{
    rd_failure_t failure = {.failed_rank = -1};

    (void)rd_stop_read(&made->health.stop, &failure);
    if (result != RONDO_SUCCESS && (failure.failed_rank == made->team.rank || failure.said != RONDO_ERR_REMOTE))
        stay(comm, made, NEWS_MS);
}

rondo_result_t rd_derive_exchange(rondo_comm_t comm, const rd_exchange_t *exchange)
{
    rondo_result_t result = rd_comm_enter(comm);
    bool entered = result == RONDO_SUCCESS;
    uint64_t entry = 0;

    if (result == RONDO_SUCCESS)
        result = check(comm, exchange->name);
    if (entered)
        entry = rd_call_begin_other(comm, exchange->kind, exchange->name);
    rd_comm_pause(comm);
    if (result == RONDO_SUCCESS)
        result = exchange->run(comm, exchange->arg);
    rd_comm_resume(comm);
    result = rd_call_spoiled(comm, rd_derive_cause(comm, result));
    if (entered)
        rd_call_end_other(comm, entry, result);
    if (result != RONDO_SUCCESS && exchange->failed)
        exchange->failed(comm, exchange->arg, result);
    return rd_comm_leave(comm, result);
}

/* A communicator that is made from another stays on its device, unless the config says otherwise. Without a config it
 * is as blocking as the other. */
static rondo_config_t derived_config(rondo_comm_t comm, const rondo_config_t *given)
{
    rondo_config_t config = rd_config_of(given);

    if (config.device == RONDO_DEVICE_AUTO)
        config.device = comm->team.device;
    if (!given)
        config.blocking = comm->blocking;
    if (config.on_error == -1)
        config.on_error = comm->on_error;
    return config;
}

rondo_result_t rd_derive_begin(rd_job_t *job, const rondo_config_t *given, bool makes, rondo_comm_t *newcomm)
{
    const rondo_config_t derived = derived_config(job->used, given);
    rondo_result_t result = RONDO_SUCCESS;

    if (makes)
        result = rd_comm_check(&derived);
    if (result == RONDO_SUCCESS)
        result = rd_call_spoiled(job->used, rd_job_config(job, &derived, makes)); /* the other ranks wait for it */
    if (result == RONDO_SUCCESS)
        return rd_job_begin(job, newcomm);
    free(job->members);
    return result;
}
