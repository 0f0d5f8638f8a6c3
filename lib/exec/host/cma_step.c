/* See cma_step.h. Posts travel in LL lines; the credit for a post is returned as soon as its data has been read.
 *
 * Where the kernel refuses to read, the receiver stores the post's number, and from which byte on, beside the count of
 * lines that it has consumed (`asked`). The sender finds that whenever it advances, for its run is not over before its
 * posts were read; it takes the address out of its own post, and copies the rest into the connection's slots, a block
 * in each. No other message can use the slots meanwhile, because messages of a connection are in order. A step then
 * takes a block at a time: all that can fail is done before a block is summed, so it can stop and go on between blocks.
 */
#include "exec/host/cma_step.h"

#include "exec/host/host_copy.h"
#include "transport/cma/room.h"
#include "transport/shm/ll.h"
#include "transport/shm/slots.h"

/* What a sender posts, in one line. Where it puts messages, no address: this one is where it belongs. */
typedef struct posted {
    uint64_t address, bytes;
} posted_t;

static bool ready(const rd_cma_step_t *s, posted_t *posted, int *waits_for)
{
    for (int i = 0; i < s->step->ndst; i++) {
        rd_send_t *send = s->dst[i] ? NULL : s->plan->sends[s->step->dst[i].index];
        if (send && (!rd_ll_may_send(send, 1) || (s->put && !rd_room_is_open(send, s->sign)))) {
            *waits_for = send->peer;
            return false;
        }
    }
    for (int i = 0; i < s->step->nsrc; i++) {
        rd_recv_t *recv = s->src[i] ? NULL : s->plan->recvs[s->step->src[i].index];
        if (recv && !rd_ll_peek(recv, (char *)&posted[i], sizeof posted[i], s->sign)) {
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

typedef enum { TAKEN, REFUSED, GONE, NOT_YET } taken_t;

/* The connection of source `i`; NULL: it is local. */
static rd_recv_t *source(const rd_cma_step_t *s, int i)
{
    return s->src[i] ? NULL : s->plan->recvs[s->step->src[i].index];
}

/* Makes the sender answer by slots from byte `at` on. */
static void ask(rd_recv_t *recv, uint64_t sign, size_t at)
{
    recv->refused = true;
    recv->refused_at = at;
    recv->ll_head->asked_at = at;
    atomic_store_explicit(&recv->ll_head->asked, rd_ll_sequence(sign, recv->ll_received), memory_order_release);
}

/* A post whose receiver has been refused before is asked for without another try. */
static void ask_first(rd_recv_t *recv, uint64_t sign)
{
    if (recv->refused &&
        atomic_load_explicit(&recv->ll_head->asked, memory_order_relaxed) != rd_ll_sequence(sign, recv->ll_received))
        ask(recv, sign, 0);
}

/* Sets *data to `bytes` of the buffer that `recv`'s sender has posted, from `at` on. They lie in the sender's memory,
 * in a slot, or, if they were read from another process, in `room`. */
static taken_t take(rd_recv_t *recv, uint64_t sign, const posted_t *posted, size_t at, size_t bytes, char *room,
                    const char **data)
{
    *data = room;
    if (!recv->read) {
        *data = (const char *)(uintptr_t)(posted->address + at);
        return TAKEN;
    }
    if (recv->refused) {
        *data = rd_slot_to_read(recv, bytes);
        return rd_slot_arrived(recv, sign) ? TAKEN : NOT_YET;
    }
    int failed = recv->read(recv, room, posted->address + at, bytes);
    if (failed > 0)
        ask(recv, sign, at);
    return failed > 0 ? NOT_YET : failed < 0 ? GONE : TAKEN;
}

/* Returns the slots from which a block has been taken. */
static void give_back(const rd_cma_step_t *s, size_t bytes)
{
    for (int i = 0; i < s->step->nsrc; i++) {
        rd_recv_t *recv = source(s, i);
        if (!recv || !recv->refused)
            continue;
        recv->refused_at += bytes;
        rd_slot_return(recv, bytes);
    }
}

/* Sums `bytes` of every contribution from `at` on: peers' blocks are first copied to `staging`, the rest is local. */
static taken_t sum_block(const rd_cma_step_t *s, const posted_t *posted, char *to, size_t at, size_t bytes,
                         int *waits_for)
{
    const char *src[RD_MAX_ENDS];

    for (int i = 0; i < s->step->nsrc; i++) {
        rd_recv_t *recv = source(s, i);
        src[i] = s->src[i] ? s->src[i] + at : NULL;
        taken_t now =
            recv ? take(recv, s->sign, &posted[i], at, bytes, s->staging + (size_t)i * RD_CMA_BLOCK, &src[i]) : TAKEN;
        if (now != TAKEN) {
            *waits_for = recv->peer;
            return now;
        }
    }
    if (s->step->nsrc == 1)
        rd_copy(to + at, src[0], bytes);
    else
        s->plan->reducer.reduce(to + at, (const void *const *)src, s->step->nsrc, bytes / s->plan->element,
                                s->plan->reducer.arg);
    give_back(s, bytes);
    return TAKEN;
}

/* The bytes of a block: both ends of a connection must find the same, and they have the same slots. */
static size_t block_of(size_t slot_bytes)
{
    return slot_bytes < RD_CMA_BLOCK ? slot_bytes : RD_CMA_BLOCK;
}

/* Returns from which byte on the step has to go on, and the length of its blocks. */
static size_t resumed(const rd_cma_step_t *s, size_t *block)
{
    size_t at = 0;

    *block = RD_CMA_BLOCK;
    for (int i = 0; i < s->step->nsrc; i++) {
        rd_recv_t *recv = source(s, i);
        if (!recv)
            continue;
        ask_first(recv, s->sign);
        if (!recv->refused)
            continue;
        *block = block_of(recv->slot_bytes);
        at = recv->refused_at;
    }
    return at;
}

static taken_t fetch(const rd_cma_step_t *s, const posted_t *posted, char *to, int *waits_for)
{
    rd_recv_t *only = s->step->nsrc == 1 ? source(s, 0) : NULL;
    taken_t now = TAKEN;
    const char *data;
    size_t block, at = resumed(s, &block);

    if (only && !only->read) {
        memcpy(to, (const char *)(uintptr_t)posted[0].address, s->bytes);
        return TAKEN;
    }
    if (only && !only->refused) {
        *waits_for = only->peer;
        return take(only, s->sign, posted, 0, s->bytes, to, &data);
    }
    for (size_t bytes; at < s->bytes && now == TAKEN; at += bytes) {
        bytes = s->bytes - at < block ? s->bytes - at : block;
        now = sum_block(s, posted, to, at, bytes, waits_for);
    }
    return now;
}

/* Another process's memory may vanish at any time, which the kernel reports. Memory of this process must not: the
 * sender waits for the mark before its user gets the buffer back. The sender issues the barrier for both sides, so a
 * plain store is enough here. */
static taken_t read_all(const rd_cma_step_t *s, const posted_t *posted, char *to, int *waits_for)
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
    taken_t now = check_senders(s, waits_for) == RONDO_SUCCESS ? fetch(s, posted, to, waits_for) : GONE;
    atomic_store_explicit(reading, count + 2, memory_order_release);
    return now;
}

/* Returns a local destination. A step has one, or has one local source: there is no other place for its value. */
static char *local_dest(const rd_cma_step_t *s)
{
    for (int i = 0; i < s->step->ndst; i++) {
        if (s->dst[i])
            return s->dst[i];
    }
    return NULL;
}

/* Puts the message of a step that only sends. Returns false if the peer has to read it. */
static bool put(const rd_cma_step_t *s, int *waits_for, rondo_result_t *result)
{
    const posted_t done = {0, s->bytes};
    rd_send_t *send = s->plan->sends[s->step->dst[0].index];
    int failed = send->put(send, s->src[0], s->bytes);

    if (failed < 0) {
        *waits_for = send->peer;
        *result = RONDO_ERR_REMOTE;
    }
    if (failed == 0)
        rd_ll_send(send, (const char *)&done, sizeof done, s->sign);
    return failed <= 0;
}

static void hand_on(const rd_cma_step_t *s, const char *value)
{
    const posted_t post = {(uint64_t)(uintptr_t)value, s->bytes};

    for (int i = 0; i < s->step->ndst; i++) {
        if (!s->dst[i]) {
            rd_send_t *send = s->plan->sends[s->step->dst[i].index];
            rd_ll_send(send, (const char *)&post, sizeof post, s->sign);
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
    if (s->put && value && !s->dst[0] && put(s, waits_for, result))
        return true;
    if (s->put && !value && !posted[0].address) {
        rd_ll_consume(s->plan->recvs[s->step->src[0].index], sizeof(posted_t));
        return true;
    }
    if (!value) {
        char *to = local_dest(s);
        taken_t now = read_all(s, posted, to, waits_for);
        if (now == GONE)
            *result = RONDO_ERR_REMOTE;
        if (now != TAKEN)
            return now == GONE;
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

/* Copies what was asked for into slots, as far as there are any. Returns true if something was copied. */
static bool answer(rd_send_t *send, uint64_t asked)
{
    const char *line = send->lines + ((asked - 1) & send->lines_mask) * RD_LINE;
    size_t block = block_of(send->slot_bytes), bytes;
    bool moved = false;
    posted_t post;

    if (send->answering != asked) {
        send->answering = asked;
        send->answer_at = send->ll_head->asked_at;
    }
    if (!rd_ll_line_load(line, asked, (char *)&post,
                         sizeof post)) /* this rank has stored it: its reader waits for it */
        return false;
    for (; send->answer_at < post.bytes && rd_slot_may_send(send, block); send->answer_at += bytes) {
        bytes = post.bytes - send->answer_at < block ? post.bytes - send->answer_at : block;
        memcpy(rd_slot_to_fill(send, bytes), (const char *)(uintptr_t)(post.address + send->answer_at), bytes);
        rd_slot_publish(send, asked & RD_SIGN, bytes, 0);
        moved = true;
    }
    if (send->answer_at == post.bytes)
        send->answered = asked;
    return moved;
}

bool rd_cma_answer(const rd_plan_t *plan)
{
    bool moved = false;

    for (int i = 0; i < plan->program->nsends; i++) {
        rd_send_t *send = plan->sends[i];
        uint64_t asked = atomic_load_explicit(&send->ll_head->asked, memory_order_acquire);
        if (asked != send->answered)
            moved |= answer(send, asked);
    }
    return moved;
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
