/* One-sided operations that are a matter of memory: copies and counters. The order of stores is argued here.
 *
 *   put, then signal    The counter is incremented with release, behind the stores of the put; a wait loads it with
 *                       acquire. A put by the kernel (process_vm_writev) has stored when the call returns, on this
 *                       core, so the same release orders it.
 *   put, fence, put     A release fence: who sees the second put, by a load with acquire, sees the first.
 *   put, flush, get     A full fence: the put is seen by all before the get loads. So of two ranks that each put, flush
 *                       and get what the other puts, one sees the other's.
 *   get, then anything  An acquire fence behind the loads of a get.
 *   copy, failure       Memory of a user's may be something else after the target has failed. The kernel's copies are
 *                       argued in transport/cma/room.c. A copy of this process's is announced by a plain store before
 *                       the target's mark is loaded; the target stores the mark, issues the barrier for both sides, and
 *                       then waits for who has announced one (rd_comm_cancel).
 */
#include "rma/rma_int.h"

#include <errno.h>
#include <string.h>

#include "transport/cma/room.h"

void rd_rma_count(const rd_rma_t *rma, int target, int context, int signal)
{
    atomic_fetch_add_explicit(rd_rma_counter(rma, target, rma->team->rank, context, signal), 1, memory_order_release);
}

bool rd_rma_consume(rd_rma_t *rma, rd_rma_op_t *op)
{
    const _Atomic uint64_t *own = rma->counters[rma->team->rank];

    for (; op->at < op->nwaits; op->at++) {
        const rondo_wait_desc_t *w = &op->waits[op->at];
        _Atomic uint64_t *counter = rd_rma_counter(rma, rma->team->rank, w->peer, w->context, w->signal);
        uint64_t *consumed = &rma->consumed[counter - own];

        if (atomic_load_explicit(counter, memory_order_acquire) - *consumed < (uint64_t)w->count)
            return false;
        *consumed += (uint64_t)w->count;
    }
    return true;
}

#define WORD(bits)                                                                                                     \
    case bits / 8:                                                                                                     \
        atomic_store_explicit(                                                                                         \
            (_Atomic uint##bits##_t *)(void *)to,                                                                      \
            atomic_load_explicit((const _Atomic uint##bits##_t *)(const void *)from, memory_order_relaxed),            \
            memory_order_relaxed);                                                                                     \
        return

void rd_rma_words(char *to, const char *from, size_t bytes)
{
    if (bytes <= sizeof(uint64_t) && bytes && !(((uintptr_t)to | (uintptr_t)from) % bytes))
        switch (bytes) {
            WORD(8);
            WORD(16);
            WORD(32);
            WORD(64);
        default:
            break;
        }
    if (bytes)
        memmove(to, from, bytes);
}

/* The rank that owns the memory may have died, and the news of it may be on its way. */
static rondo_result_t refused(rd_rma_t *rma, const rd_rma_op_t *op, int error)
{
    const char *whois = rd_health_whois(rma->team->health, op->peer);

    if (rd_queue_news(rma->queue, RD_QUEUE_NEWS_MS))
        return rd_health_check(rma->team->health);
    if (error == ESRCH) /* its process is no more */
        return rd_health_died(rma->team->health, op->peer);
    return rd_health_fail(rma->team->health, RONDO_ERR_SYSTEM, -1,
                          "the kernel does not %s %zu bytes of rank %d's window (%s): %s; a window's memory must stay "
                          "mapped%s until rondo_window_destroy. RONDO_CMA=0 does without the kernel",
                          op->kind == RD_RMA_GET ? "read" : "write", op->bytes, op->peer, whois, strerror(error),
                          op->kind == RD_RMA_GET ? "" : " and writable");
}

/* The rank that owns the memory has failed, which it told before it took the memory back. */
static rondo_result_t taken_back(rd_rma_t *rma, const rd_rma_op_t *op)
{
    if (rd_queue_news(rma->queue, RD_QUEUE_NEWS_MS))
        return rd_health_check(rma->team->health);
    return rd_health_fail(rma->team->health, RONDO_ERR_REMOTE, op->peer,
                          "rank %d (%s) has failed and taken the memory of its window back", op->peer,
                          rd_health_whois(rma->team->health, op->peer));
}

static rondo_result_t by_kernel(rd_rma_t *rma, const rd_rma_op_t *op)
{
    const rd_rma_part_t *part = &op->window->parts[op->peer];
    rd_room_t *room = rd_rma_room(rma, op->peer, rma->team->rank);

    for (size_t done = 0; done < op->bytes;) {
        struct iovec here = {op->local + done, op->bytes - done};
        ssize_t n = rd_room_copy(room, &rma->conns->recvs[op->peer], part->address + op->offset + done, &here,
                                 op->kind != RD_RMA_GET);
        if (n < 0)
            return refused(rma, op, errno);
        if (n == 0)
            return taken_back(rma, op);
        done += (size_t)n;
    }
    return RONDO_SUCCESS;
}

static void by_this_thread(const rd_rma_op_t *op)
{
    char *there = op->window->parts[op->peer].mapped + op->offset;

    if (op->kind == RD_RMA_GET)
        rd_rma_words(op->local, there, op->bytes);
    else
        rd_rma_words(there, op->local, op->bytes);
}

/* A plain store is enough: see the top. */
static rondo_result_t in_memory_beside(rd_rma_t *rma, const rd_rma_op_t *op)
{
    const rd_recv_t *peer = &rma->conns->recvs[op->peer];
    uint32_t count = atomic_load_explicit(peer->reading, memory_order_relaxed);

    atomic_store_explicit(peer->reading, count + 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    bool there = !atomic_load_explicit(peer->failed, memory_order_relaxed);
    if (there)
        by_this_thread(op);
    atomic_store_explicit(peer->reading, count + 2, memory_order_release);
    return there ? RONDO_SUCCESS : taken_back(rma, op);
}

rondo_result_t rd_rma_copy(rd_rma_t *rma, const rd_rma_op_t *op)
{
    const rd_rma_way_t way = op->window->parts[op->peer].way;
    rondo_result_t result = RONDO_SUCCESS;

    if (way == RD_RMA_CMA)
        result = by_kernel(rma, op);
    else if (way == RD_RMA_BESIDE)
        result = in_memory_beside(rma, op);
    else
        by_this_thread(op);
    if (op->kind == RD_RMA_GET)
        atomic_thread_fence(memory_order_acquire);
    return result;
}
