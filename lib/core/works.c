/* rondo_work_*: calls by name, what is known of them, and waiting for one. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/comm.h"
#include "core/lifetime.h"
#include "core/living.h"
#include "core/submit.h"
#include "monitor/named.h"

rondo_result_t rondo_work_last(rondo_comm_t comm, rondo_work_t *work)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_work_last");

    if (result != RONDO_SUCCESS)
        return result;
    if (!work)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "rondo_work_last: work is NULL");
    if ((result = rd_comm_query(comm, "rondo_work_last")))
        return result;
    rd_track_t track = rd_monitor_last_track(&comm->seat);
    *work = rd_name_of(&comm->seat, track, atomic_load(&comm->seat.board->calls[track].begun));
    rd_comm_query_leave(comm);
    return RONDO_SUCCESS;
}

static bool is_of(rondo_comm_t comm, const void *arg)
{
    const rondo_work_t *work = arg;

    return rd_named_of(*work, &comm->seat);
}

/* Returns for how long a call of this communicator may wait now; 0: for ever, or there is no such communicator. */
static int64_t limit_of(rondo_work_t work)
{
    rondo_comm_t comm = rd_living_find(is_of, &work);
    int64_t ms = 0;

    if (comm && rd_comm_query_enter(comm)) {
        ms = rd_queue_limit(&comm->queue);
        rd_comm_query_leave(comm);
    }
    if (comm)
        rd_comm_release(comm);
    return ms;
}

rondo_result_t rondo_work_query(rondo_work_t work, rondo_work_info_t *info)
{
    rondo_work_info_t full;

    if (!info || info->size < offsetof(rondo_work_info_t, number))
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "rondo_work_query: info is NULL, or its size is not sizeof(rondo_work_info_t)");
    full.size = info->size;
    rd_named_look(work, &full);
    if (full.state == RONDO_WORK_STARTED || full.state == RONDO_WORK_ENQUEUED)
        full.limit_ms = limit_of(work);
    memcpy(info, &full, info->size < sizeof full ? info->size : sizeof full);
    return RONDO_SUCCESS;
}

/* ---- waiting ---- */

/* Returns true if the operation is over and nothing of it is on its way to other nodes. */
static bool is_over(rondo_comm_t comm, rondo_work_t work)
{
    return !rd_queue_has(&comm->queue, rd_named_track(work), rd_named_number(work)) &&
           rd_transport_idle(comm->queue.net);
}

/* Returns when a wait that begins now ends; INT64_MAX: never. */
static int64_t end_of(int64_t timeout_ms)
{
    int64_t now = rd_clock_ms();

    return timeout_ms < 0 || timeout_ms > INT64_MAX - now ? INT64_MAX : now + timeout_ms;
}

static rondo_result_t progress(rondo_comm_t comm, rondo_work_t work, int64_t timeout_ms)
{
    int64_t until = end_of(timeout_ms);
    rondo_result_t result = RONDO_SUCCESS;

    rd_queue_wait_begin(&comm->queue);
    while (result == RONDO_SUCCESS && !is_over(comm, work)) {
        int moved = 0;
        result = rd_queue_advance(&comm->queue, &moved);
        if (moved)
            rd_queue_moved(&comm->queue);
        else if (result == RONDO_SUCCESS && until < INT64_MAX && rd_clock_ms() >= until)
            return RONDO_IN_PROGRESS;
        else if (result == RONDO_SUCCESS)
            result = rd_queue_backoff(&comm->queue);
    }
    if (result != RONDO_SUCCESS)
        rd_queue_flush(&comm->queue, result);
    return result;
}

/* What has failed since does not matter to a call that was over before. */
static rondo_result_t outcome(rondo_comm_t comm, rondo_work_t work)
{
    rondo_work_info_t info = {.size = sizeof info};

    rd_named_look(work, &info);
    if (info.state == RONDO_WORK_FAILED && info.result == rd_health_check(&comm->health))
        rd_error_again(&comm->ctx, comm->health.stop.text);
    return info.state == RONDO_WORK_FAILED ? info.result : RONDO_SUCCESS;
}

/* That is no failure, so the log says nothing of it. */
static rondo_result_t not_yet(int64_t timeout_ms)
{
    char text[96];

    snprintf(text, sizeof text, "rondo_work_wait: the operation is not complete after %lld ms, and goes on",
             (long long)timeout_ms);
    rd_error_again(NULL, text);
    return RONDO_ERR_TIMEOUT;
}

static rondo_result_t wait_in(rondo_comm_t comm, rondo_work_t work, int64_t timeout_ms)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_work_wait");

    if (result != RONDO_SUCCESS)
        return result;
    if (comm->cuda)
        return rd_error(&comm->ctx, RONDO_ERR_UNSUPPORTED,
                        "rondo_work_wait: the call is on a CUDA communicator: wait for its stream");
    result = rd_comm_enter(comm);
    if (result == RONDO_SUCCESS)
        result = progress(comm, work, timeout_ms);
    (void)rd_comm_leave(comm, result == RONDO_IN_PROGRESS ? RONDO_SUCCESS : result);
    return result == RONDO_IN_PROGRESS ? not_yet(timeout_ms) : outcome(comm, work);
}

rondo_result_t rondo_work_wait(rondo_work_t work, int64_t timeout_ms)
{
    if (timeout_ms < -1)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "rondo_work_wait: timeout_ms is %lld: -1 (the communicator's limit) or milliseconds",
                        (long long)timeout_ms);
    rondo_result_t result = rd_group_refuse(NULL, "rondo_work_wait");
    if (result != RONDO_SUCCESS)
        return result;
    rondo_comm_t comm = rd_living_find(is_of, &work);
    if (!comm)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "rondo_work_wait: the call is of no communicator that this process still has");
    result = wait_in(comm, work, timeout_ms);
    rd_comm_release(comm);
    return result;
}
