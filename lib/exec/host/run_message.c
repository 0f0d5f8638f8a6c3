/* Short blocks that go the same way are gathered into one slot, and spread or summed from there: see run_message.h.
 *
 * Both ends add up the lengths of the blocks by their own chunk maps, which agree, so the message says nothing of them.
 * The planner has seen to it that the blocks of a slice each fit into a slot (plan/choose.c). The blocks are short:
 * their copies cost less than to post each of them, or to send them from where they lie. */
#include "exec/host/run_message.h"

#include "exec/host/host_copy.h"
#include "exec/host/turn.h"
#include "transport/shm/slots.h"

/* The lane's step, of which `lane` is a cursor. */
static turn_t turn_at(rd_run_t *run, const rd_lane_run_t *lane)
{
    turn_t t = {.run = run, .step = lane->step, .shift = lane->shift, .start = lane->start, .sign = run->sign};

    t.bytes = slice_bytes(run->plan, lane, shifted(&t, lane->step->chunk));
    return t;
}

/* Moves the cursor behind the last part, or just behind the first block that is not empty. Returns the bytes of the
 * parts that it has passed. */
static size_t pass_over(rd_run_t *run, rd_lane_run_t *cursor, bool first_only)
{
    int32_t part, nchunks = run->plan->program->nchunks;
    size_t bytes = 0;

    do {
        part = cursor->step->part;
        bytes += turn_at(run, cursor).bytes;
        next(cursor, nchunks);
    } while (part == RD_PART_MORE && !(first_only && bytes));
    return bytes;
}

/* Gathers the sources of a step; a message's block lies at `block`. */
static void sources(const turn_t *t, const char *block, const char **src)
{
    for (int i = 0; i < t->step->nsrc; i++) {
        src[i] = t->step->src[i].where == RD_PEER ? block : local_source(t, t->step->src[i]);
        if (t->step->src[i].where == RD_IN && t->run->plan->reducer.load)
            src[i] = loaded(t, src[i]);
    }
}

/* Moves one block into the message, or out of it: it lies at `block`. */
static void move_block(const turn_t *t, char *block)
{
    const rd_plan_t *plan = t->run->plan;
    const char *src[RD_MAX_ENDS] = {NULL}, *from;
    char *first = t->step->dst[0].where == RD_PEER ? block : local_destination(t, t->step->dst[0]);

    sources(t, block, src);
    from = src[0];
    if (t->step->nsrc > 1) {
        plan->reducer.reduce(first, (const void *const *)src, t->step->nsrc, t->bytes / plan->element,
                             plan->reducer.arg);
        from = first;
    }
    for (int i = 0; i < t->step->ndst; i++) {
        char *to = t->step->dst[i].where == RD_PEER ? block : local_destination(t, t->step->dst[i]);
        if (to != from)
            rd_copy(to, from, t->bytes);
    }
    if (plan->halvings)
        store_narrow(t, from);
}

/* Moves all blocks, and the lane behind the last. */
static void move_blocks(rd_run_t *run, rd_lane_run_t *lane, char *block)
{
    int32_t part, nchunks = run->plan->program->nchunks;

    do {
        const turn_t t = turn_at(run, lane);
        part = lane->step->part;
        if (t.bytes)
            move_block(&t, block);
        block += t.bytes;
        next(lane, nchunks);
    } while (part == RD_PART_MORE);
}

static rd_recv_t *receives(const rd_plan_t *plan, const rd_step_t *step)
{
    for (int i = 0; i < step->nsrc; i++)
        if (step->src[i].where == RD_PEER)
            return plan->recvs[step->src[i].index];
    return NULL;
}

static rd_send_t *sends(const rd_plan_t *plan, const rd_step_t *step)
{
    for (int i = 0; i < step->ndst; i++)
        if (step->dst[i].where == RD_PEER)
            return plan->sends[step->dst[i].index];
    return NULL;
}

/* A message of another call that has come from another node is refused at once, as in run.c. */
static bool has_come(rd_run_t *run, rd_recv_t *recv, size_t bytes)
{
    if (rd_slot_arrived(recv, run->sign))
        return true;
    run->waits_for = recv->peer;
    if (recv->mirrored && recv->seen != recv->received)
        rd_run_mismatch(run, recv, UINT64_MAX, bytes);
    return false;
}

bool rd_run_message(rd_run_t *run, rd_lane_run_t *lane)
{
    rd_recv_t *recv = receives(run->plan, lane->step);
    rd_send_t *send = sends(run->plan, lane->step);
    rd_lane_run_t behind = *lane;

    if (pass_over(run, &behind, true) == 0) { /* all blocks are empty: there is no message */
        *lane = behind;
        return true;
    }
    if (recv && !rd_slot_there(recv)) { /* before all blocks are added up, because it is asked often */
        run->waits_for = recv->peer;
        return false;
    }
    behind = *lane;
    const size_t bytes = pass_over(run, &behind, false);
    if (recv) {
        if (!has_come(run, recv, bytes))
            return false;
        move_blocks(run, lane, (char *)rd_slot_to_read(recv, bytes));
        run->result = rd_slot_return(recv, bytes);
        return true;
    }
    if (!rd_slot_may_send(send, bytes)) {
        run->waits_for = send->peer;
        return false;
    }
    move_blocks(run, lane, rd_slot_to_fill(send, bytes));
    run->result = rd_slot_publish(send, run->sign, bytes, 0);
    return true;
}
