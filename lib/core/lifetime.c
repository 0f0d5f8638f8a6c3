/* Entering, leaving and ending a communicator: see lifetime.h. */
#include "core/lifetime.h"

#include <stdlib.h>

#include "base/process_barrier.h"
#include "base/wait.h"
#include "core/dumps.h"
#include "core/failed_call.h"
#include "core/hooks.h"
#include "core/metrics.h"
#include "core/on_error.h"
#include "core/ras_tcp.h"
#include "core/status_lines.h"
#include "core/triggers.h"
#include "core/living.h"
#include "rma/rma.h"
#include "transport/cma/room.h"

#define KEPT 32 /* structs of communicators that were ended */

static void wait_until_gone(rondo_comm_t comm)
{
    int yields = 0;

    while (!rd_comm_gone(comm))
        rd_wait_thread(&yields);
}

rondo_result_t rd_comm_enter_slowly(rondo_comm_t comm)
{
    if (rd_health_check(&comm->health) != RONDO_SUCCESS && atomic_load_explicit(&comm->closed, memory_order_acquire)) {
        atomic_store_explicit(&comm->inside, 0, memory_order_release);
        wait_until_gone(comm);
    }
    rd_comm_resume(comm);
    return rd_health_check(&comm->health);
}

void rd_comm_resume(rondo_comm_t comm)
{
    rd_outstanding_t *entry = &comm->queue.outstanding;

    if (rd_outstanding_listed(entry)) {
        rd_outstanding_take(entry);
        if (!rd_outstanding_listed(
                entry)) /* if nothing is outstanding any more: rd_comm_leave unlocks only what is listed */
            pthread_mutex_unlock(&entry->turning);
    }
    comm->queue.elsewhere = false;
}

/* Between nodes nothing but a message shows what a rank has called. */
static bool may_be_asked(rondo_comm_t comm)
{
    return comm->queue.signing.called && !comm->env.check && rd_health_check(&comm->health) == RONDO_SUCCESS &&
           comm->node.nnodes > 1;
}

void rd_comm_pause(rondo_comm_t comm)
{
    rd_outstanding_t *entry = &comm->queue.outstanding;
    bool asked = may_be_asked(comm);

    if (asked && !rd_outstanding_listed(entry))
        rd_outstanding_list(entry);
    comm->queue.elsewhere = asked;
    if (rd_outstanding_listed(entry))
        pthread_mutex_unlock(&entry->turning);
}

/* If operations are outstanding, lets waits in other communicators make progress for them again. */
static void give_back(rondo_comm_t comm)
{
    rd_outstanding_t *entry = &comm->queue.outstanding;

    if (!rd_outstanding_listed(entry))
        return;
    if (!rd_queue_busy(&comm->queue) && !rd_queue_serves(&comm->queue))
        rd_outstanding_unlist(entry);
    pthread_mutex_unlock(&entry->turning);
}

/* Returns true if the record has not known of it, and has it now. */
static bool note_failure(rondo_comm_t comm, rondo_result_t stop)
{
    const rd_seat_failure_t how = {.result = (int)stop,
                                   .failed_rank = atomic_load(&comm->health.stop.failed_rank),
                                   .heard = atomic_load(&comm->health.stop.reporter) > 0,
                                   .text = comm->health.stop.text};

    return rd_seat_failed(&comm->seat, &how);
}

rondo_result_t rd_comm_leave_slowly(rondo_comm_t comm, rondo_result_t result)
{
    rondo_result_t stop = rd_health_check(&comm->health);

    if (result != RONDO_SUCCESS && stop != RONDO_SUCCESS && !rd_comm_gone(comm)) {
        bool first = note_failure(comm, stop);
        rd_comm_cancel(comm);
        if (first)
            rd_failed_call_say(comm);
        if (first)
            rd_comm_dump(comm);
    }
    if (result != RONDO_SUCCESS && stop != RONDO_SUCCESS && !rd_comm_gone(comm) && !atomic_exchange(&comm->hooked, 1))
        rd_hooks_post(RONDO_HOOK_FAILED, comm, stop, comm->health.stop.text);
    if (result != RONDO_SUCCESS && stop == result)
        rd_error_again(&comm->ctx, comm->health.stop.text);
    give_back(comm);
    atomic_store_explicit(&comm->inside, 0, memory_order_release);
    if (result != RONDO_SUCCESS && stop != RONDO_SUCCESS && stop != RONDO_ERR_ABORTED && !comm->internal)
        rd_on_error_act(comm);
    return result;
}

void rd_comm_cancel(rondo_comm_t comm)
{
    rd_failure_t failure = {.failed_rank = -1};
    int nobody = 0, yields = 0;

    if (!atomic_compare_exchange_strong(&comm->cancelled, &nobody, 1)) {
        /* A revocation from another thread is doing it, and has only readers to wait for. */
        while (atomic_load_explicit(&comm->cancelled, memory_order_acquire) != 2)
            rd_wait_thread(&yields);
        return;
    }
    /* Before the mark: a rank that finds that what was posted here is void knows by then which rank is to blame. */
    failure.said = rd_stop_read(&comm->health.stop, &failure);
    failure.failed_rank = failure.failed_rank >= 0 ? failure.failed_rank : comm->team.rank;
    rd_conns_notify(&comm->conns, comm->team.rank, &failure);
    atomic_store_explicit(&comm->conns.self->failed, 1, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst); /* before the user's next store into a buffer that was posted */
    if (rd_conns_shared(&comm->conns)) {
        rd_process_barrier();
        rd_conns_wait_unread(&comm->conns);
    }
    rd_rooms_close(&comm->conns);
    if (comm->rma)
        rd_rma_take_back(comm->rma);
    atomic_store_explicit(&comm->cancelled, 2, memory_order_release);
}

bool rd_comm_query_enter(rondo_comm_t comm)
{
    atomic_fetch_add(&comm->queries, 1);
    if (!atomic_load(&comm->closed))
        return true;
    rd_comm_query_leave(comm);
    return false;
}

void rd_comm_query_leave(rondo_comm_t comm)
{
    atomic_fetch_sub(&comm->queries, 1);
}

rondo_result_t rd_comm_query(rondo_comm_t comm, const char *call)
{
    if (rd_comm_query_enter(comm))
        return RONDO_SUCCESS;
    return rd_error(NULL, RONDO_ERR_ABORTED, "%s: comm has been aborted", call);
}

void rd_comm_empty(rondo_comm_t comm)
{
    int yields = 0;

    rd_process_barrier();
    while (atomic_load_explicit(&comm->inside, memory_order_acquire))
        rd_wait_thread(&yields);
    rd_outstanding_settle();
}

bool rd_comm_close(rondo_comm_t comm)
{
    int yields = 0;

    if (atomic_exchange(&comm->closed, 1)) {
        wait_until_gone(comm);
        return false;
    }
    rd_living_remove(comm);
    if (rd_health_check(&comm->health) !=
        RONDO_SUCCESS) /* else no thread can be inside: an orderly end is not called concurrently with a call */
        rd_process_barrier();
    while (atomic_load_explicit(&comm->inside, memory_order_acquire) || atomic_load(&comm->queries))
        rd_wait_thread(&yields);
    rd_outstanding_unlist(&comm->queue.outstanding);
    return true;
}

static _Atomic rondo_comm_t kept[KEPT];
static _Atomic unsigned nkept;

void rd_comm_closed(rondo_comm_t comm)
{
    if (comm->published)
        rd_hooks_post(RONDO_HOOK_COMM_ENDED, comm, rd_health_check(&comm->health), "");
    rd_triggers_leave(comm);
    rd_status_lines_leave(comm);
    rd_metrics_leave(comm);
    rd_ras_tcp_leave(comm);
    atomic_store_explicit(&comm->gone, 1, memory_order_release);
    rondo_comm_t out = atomic_exchange(&kept[atomic_fetch_add(&nkept, 1) % KEPT], comm);
    if (out)
        rd_comm_release(out);
}

void rd_comm_retain(rondo_comm_t comm)
{
    atomic_fetch_add_explicit(&comm->references, 1, memory_order_relaxed);
}

void rd_comm_release(rondo_comm_t comm)
{
    if (atomic_fetch_sub_explicit(&comm->references, 1, memory_order_acq_rel) == 1)
        free(comm);
}
