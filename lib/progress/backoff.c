/* A turn in which nothing has moved: who is waited for, whether he has left, and who it is that is late. */
#include "core/comm.h"

#define SEEK_MS 1000           /* a rank that is waited for as long should know it */
#define MISMATCH_MISSES 100000 /* in a row, until a rank gives up finding for itself what another has found */

/* The rank that the first active task waits for, or to which a task that is over has lent something; -1: nobody in
 * particular. */
static int waited_for(rondo_comm_t comm)
{
    for (rd_task_t *t = comm->queue.active; t; t = t->next) {
        if (t->run.open && t->run.waits_for >= 0)
            return t->run.waits_for;
    }
    if (comm->queue.run.open)
        return comm->queue.run.waits_for;
    if (!comm->net)
        return -1;
    int peer = rd_net_waits_for(comm->net);
    return peer >= 0 ? peer : rd_net_taker(comm->net);
}

/* How a rank has left: RONDO_SUCCESS, in order, or RONDO_ERR_MISMATCH; RONDO_IN_PROGRESS: it has not. */
static rondo_result_t farewell(rondo_comm_t comm, int peer)
{
    rd_control_t *control = peer < 0 ? NULL : comm->conns.controls[peer];

    if (control)
        return atomic_load_explicit(&control->left, memory_order_acquire) ? RONDO_SUCCESS : RONDO_IN_PROGRESS;
    return peer >= 0 && comm->net ? rd_net_farewell(comm->net, peer) : RONDO_IN_PROGRESS;
}

/* What a rank that has left had sent was there before it left: so one more look is owed. */
rondo_result_t rd_queue_deserted(rondo_comm_t comm)
{
    int peer = waited_for(comm);
    rondo_result_t left = farewell(comm, peer);
    int mismatch =
        left == RONDO_ERR_MISMATCH || rd_health_noticed(&comm->health) == RONDO_ERR_MISMATCH;

    if (!mismatch && left != RONDO_SUCCESS) {
        comm->queue.deserted = 0;
        return RONDO_SUCCESS;
    }
    if (++comm->queue.deserted < (mismatch ? MISMATCH_MISSES : 3))
        return RONDO_SUCCESS;
    if (mismatch)
        return rd_health_fail(&comm->health, RONDO_ERR_MISMATCH, peer,
                            "another rank has found that ranks do not call the same operations, and says which");
    return rd_health_fail(&comm->health, RONDO_ERR_REMOTE, peer,
                        "rank %d (%s) has destroyed its communicator, but this rank still waits for it: all ranks must "
                        "call the same operations",
                        peer, rd_boot_whois(comm->boot, peer));
}

static void say_wait(rondo_comm_t comm, int64_t now)
{
    int peer = waited_for(comm);
    uint64_t waits = (uint64_t)(uint32_t)now << 32 | (uint32_t)(peer + 1);

    atomic_store_explicit(&comm->conns.self->waits, waits, memory_order_relaxed);
    if (peer >= 0 && comm->net && now - comm->queue.wait.began_ms >= SEEK_MS)
        rd_net_seek(comm->net, peer);
}

/* The rank that this one has lately waited for; -1: it does not wait, or is on another node and nobody knows. */
static int waits_itself(rondo_comm_t comm, int rank, uint32_t now, uint32_t lately)
{
    rd_control_t *control = rank < 0 ? NULL : comm->conns.controls[rank];
    uint64_t waits = control ? atomic_load_explicit(&control->waits, memory_order_relaxed) : 0;

    return waits && now - (uint32_t)(waits >> 32) <= lately ? (int)(uint32_t)waits - 1 : -1;
}

/* Who is late: at the end of the chain of those who wait for each other. Lanes wait for several, and each rank names
 * one of them: where that goes round in circles, a rank of this node that does not wait. */
static int late_one(rondo_comm_t comm, int peer)
{
    int64_t patience = comm->timeout_ms > 0 ? comm->timeout_ms : RD_LATE_MS;
    uint32_t now = (uint32_t)rd_clock_ms(), lately = patience < INT32_MAX ? (uint32_t)patience / 2 : INT32_MAX;
    int late = peer;

    for (int hops = 0; hops < comm->nranks && late != comm->rank; hops++) {
        int next = waits_itself(comm, late, now, lately);
        if (next < 0)
            return late;
        late = next;
    }
    for (int r = 0; r < comm->nranks; r++) {
        if (r != comm->rank && comm->conns.controls[r] && waits_itself(comm, r, now, lately) < 0)
            return r;
    }
    return peer;
}

static rondo_result_t too_late(rondo_comm_t comm)
{
    int peer = waited_for(comm), late = late_one(comm, peer);
    const char *whois = late < 0 ? "?" : rd_boot_whois(comm->boot, late);
    const char *perhaps = late >= 0 && !comm->conns.controls[late] ? ", or waits for another one itself" : "";

    if (late == peer)
        return rd_health_fail(&comm->health, RONDO_ERR_TIMEOUT, peer,
                            "waited longer than %lld ms for rank %d (%s): it is alive but late or stopped%s; see "
                            "RONDO_TIMEOUT_MS",
                            (long long)comm->timeout_ms, peer, whois, perhaps);
    return rd_health_fail(&comm->health, RONDO_ERR_TIMEOUT, late,
        "waited longer than %lld ms: rank %d (%s) is alive but late or stopped%s, and rank %d (%s), which "
        "this rank waits for, waits as well; see RONDO_TIMEOUT_MS",
        (long long)comm->timeout_ms, late, whois, perhaps, peer, rd_boot_whois(comm->boot, peer));
}

rondo_result_t rd_queue_miss(rondo_comm_t comm)
{
    rondo_result_t result = rd_health_poll(&comm->health);

    if (result == RONDO_SUCCESS)
        result = rd_queue_deserted(comm);
    if (result != RONDO_SUCCESS)
        return result;
    result = rd_wait_miss(&comm->queue.wait);
    if (comm->queue.wait.looked_ms) {
        say_wait(comm, comm->queue.wait.looked_ms);
        comm->queue.wait.looked_ms = 0;
    }
    if (result == RONDO_SUCCESS)
        return result;
    if (result == RONDO_IN_PROGRESS) {
        int late = late_one(comm, waited_for(comm));
        rd_log(&comm->who, RD_LOG_WARN, "still waiting for rank %d (%s), which has not come or is slow", late,
               late < 0 ? "?" : rd_boot_whois(comm->boot, late));
        return RONDO_SUCCESS;
    }
    return result == RONDO_ERR_TIMEOUT ? too_late(comm) : rd_health_check(&comm->health);
}
