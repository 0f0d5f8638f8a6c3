/* See cma_step.h. Posts travel in LL lines; the credit for a post is returned as soon as its data has been read. */
#include "exec/host/cma_step.h"

#include "exec/host/host_copy.h"
#include "transport/shm/ll.h"

/* What a sender posts, in one line. */
typedef struct posted {
    uint64_t address, bytes;
} posted_t;

static int read_from(const rd_recv_t *recv, void *to, uint64_t address, size_t bytes)
{
    if (recv->read)
        return recv->read(recv, to, address, bytes);
    memcpy(to, (const void *)(uintptr_t)address, bytes);
    return 0;
}

static bool ready(const rd_cma_step_t *s, posted_t *posted, int *waits_for)
{
    for (int i = 0; i < s->step->ndst; i++) {
        rd_send_t *send = s->dst[i] ? NULL : s->plan->sends[s->step->dst[i].index];
        if (send && !rd_ll_may_send(send, 1)) {
            *waits_for = send->peer;
            return false;
        }
    }
    for (int i = 0; i < s->step->nsrc; i++) {
        rd_recv_t *recv = s->src[i] ? NULL : s->plan->recvs[s->step->src[i].index];
        if (recv && !rd_ll_peek(recv, (char *)&posted[i], sizeof posted[i], 0)) {
            *waits_for = recv->peer;
            return false;
        }
    }
    return true;
}

static rondo_result_t gone(const rd_recv_t *recv, int *waits_for)
{
    *waits_for = recv->peer;
    return RONDO_ERR_REMOTE;
}

/* Returns true if the sender's call had failed before all was read, so that the buffer was the user's again. The fence
 * keeps this check after the reading; the sender's mark is set before its user's next store. */
static bool spoilt(const rd_recv_t *recv)
{
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(recv->failed, memory_order_relaxed);
}

/* Checks that no sender has failed: such a sender is not read from any more. */
static rondo_result_t check_senders(const rd_cma_step_t *s, int *waits_for)
{
    for (int i = 0; i < s->step->nsrc; i++) {
        const rd_recv_t *recv = s->src[i] ? NULL : s->plan->recvs[s->step->src[i].index];
        if (recv && spoilt(recv))
            return gone(recv, waits_for);
    }
    return RONDO_SUCCESS;
}

/* Reads `bytes` of every contribution from `at` on, and sums them: peers' blocks are first copied to `staging`, the
 * rest is local. */
static rondo_result_t sum_block(const rd_cma_step_t *s, const posted_t *posted, char *to, size_t at, size_t bytes,
                                int *waits_for)
{
    const char *src[RD_MAX_ENDS];

    for (int i = 0; i < s->step->nsrc; i++) {
        if (s->src[i]) {
            src[i] = s->src[i] + at;
            continue;
        }
        const rd_recv_t *recv = s->plan->recvs[s->step->src[i].index];
        char *staging = s->staging + (size_t)i * RD_CMA_BLOCK;
        src[i] = recv->read ? staging : (const char *)(uintptr_t)(posted[i].address + at);
        if (recv->read && recv->read(recv, staging, posted[i].address + at, bytes) != 0)
            return gone(recv, waits_for);
    }
    s->plan->reducer.reduce(to + at, (const void *const *)src, s->step->nsrc, bytes / s->plan->element,
                            s->plan->reducer.arg);
    return RONDO_SUCCESS;
}

static rondo_result_t fetch(const rd_cma_step_t *s, const posted_t *posted, char *to, int *waits_for)
{
    rondo_result_t result = RONDO_SUCCESS;

    if (s->step->nsrc == 1) {
        const rd_recv_t *recv = s->plan->recvs[s->step->src[0].index];
        return read_from(recv, to, posted[0].address, s->bytes) == 0 ? result : gone(recv, waits_for);
    }
    for (size_t at = 0; at < s->bytes && result == RONDO_SUCCESS; at += RD_CMA_BLOCK)
        result = sum_block(s, posted, to, at, s->bytes - at < RD_CMA_BLOCK ? s->bytes - at : RD_CMA_BLOCK, waits_for);
    return result;
}

/* Another process's memory may vanish at any time, which the kernel reports. Memory of this process must not: the
 * sender waits for the mark before its user gets the buffer back. The sender issues the barrier for both sides, so a
 * plain store is enough here. */
static rondo_result_t read_all(const rd_cma_step_t *s, const posted_t *posted, char *to, int *waits_for)
{
    _Atomic uint32_t *reading = NULL;

    for (int i = 0; i < s->step->nsrc; i++) {
        if (!s->src[i] && s->plan->recvs[s->step->src[i].index]->reading)
            reading = s->plan->recvs[s->step->src[i].index]->reading;
    }
    if (!reading)
        return fetch(s, posted, to, waits_for);
    uint32_t count = atomic_load_explicit(reading, memory_order_relaxed);
    atomic_store_explicit(reading, count + 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    rondo_result_t result = check_senders(s, waits_for);
    if (result == RONDO_SUCCESS)
        result = fetch(s, posted, to, waits_for);
    atomic_store_explicit(reading, count + 2, memory_order_release);
    return result;
}

/* Returns a local destination. A step has one, or has one local source: there is no other place for its value. */
static char *local_place(const rd_cma_step_t *s)
{
    for (int i = 0; i < s->step->ndst; i++) {
        if (s->dst[i])
            return s->dst[i];
    }
    return NULL;
}

static void hand_on(const rd_cma_step_t *s, const char *value)
{
    const posted_t post = {(uint64_t)(uintptr_t)value, s->bytes};

    for (int i = 0; i < s->step->ndst; i++) {
        if (!s->dst[i]) {
            rd_send_t *send = s->plan->sends[s->step->dst[i].index];
            rd_ll_send(send, (const char *)&post, sizeof post, 0);
            send->ll_posted = send->ll_sent;
        } else if (s->dst[i] != value) {
            rd_copy(s->dst[i], value, s->bytes);
        }
    }
}

bool rd_cma_step(const rd_cma_step_t *s, int *waits_for, uint64_t *sent, rondo_result_t *result)
{
    posted_t posted[RD_MAX_ENDS];
    const char *value = s->step->nsrc == 1 ? s->src[0] : NULL;

    if (!ready(s, posted, waits_for))
        return false;
    for (int i = 0; i < s->step->nsrc; i++) {
        if (!s->src[i] && posted[i].bytes != s->bytes) {
            *waits_for = s->plan->recvs[s->step->src[i].index]->peer;
            *sent = posted[i].bytes;
            *result = RONDO_ERR_MISMATCH;
            return true;
        }
    }
    if (!value) {
        char *to = local_place(s);
        *result = read_all(s, posted, to, waits_for);
        if (*result != RONDO_SUCCESS)
            return true;
        value = to;
    }
    *result = check_senders(s, waits_for);
    if (*result != RONDO_SUCCESS)
        return true;
    hand_on(s, value);
    for (int i = 0; i < s->step->nsrc; i++) {
        if (!s->src[i])
            rd_ll_consume_now(s->plan->recvs[s->step->src[i].index], sizeof(posted_t));
    }
    return true;
}

bool rd_cma_settled(const rd_plan_t *plan, int *waits_for)
{
    for (int i = 0; i < plan->program->nsends; i++) {
        rd_send_t *send = plan->sends[i];
        /* Lines of other messages need not be settled, and their credits may be held back for long. */
        if (send->ll_credit >= send->ll_posted)
            continue;
        send->ll_credit = atomic_load_explicit(&send->ll_head->value, memory_order_acquire);
        if (send->ll_credit < send->ll_posted) {
            *waits_for = send->peer;
            return false;
        }
    }
    return true;
}
