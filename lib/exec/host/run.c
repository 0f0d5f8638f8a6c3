/* The interpreter of programs on host memory: see run.h.
 *
 * One step first checks whether every message that it reads has come and every message that it writes has space; only
 * then does it gather the source pointers, reduce or copy into the first destination, copy from there to the others,
 * publish, and return credits. A step that is not ready changes nothing and is tried again. */
#include "exec/host/run.h"

#include "base/fpenv.h"
#include "exec/host/host_copy.h"
#include "transport/shm/ll.h"
#include "exec/host/cma_step.h"
#include "exec/host/run_board.h"
#include "exec/host/run_flat.h"
#include "exec/host/run_message.h"
#include "exec/host/turn.h"
#include "transport/shm/slots.h"
#include "exec/host/nt_store.h"
#include "transport/cma/room.h"
#include "transport/announce.h"
#include "transport/switch.h"

#define STREAM_BLOCK 8192

/* Returns the connection of destination `e` if that is a slot for which nt_store.h chooses how it is written; or NULL.
 */
static inline rd_send_t *streamed(const turn_t *t, rd_end_t e)
{
    rd_send_t *send = e.where == RD_PEER ? t->run->plan->sends[e.index] : NULL;

    return send && rd_nt_store_concerns(t->run->plan, send, t->bytes) ? send : NULL;
}

/* The sum goes only into slots: it is computed in blocks, in a buffer that stays in the first-level cache. */
static void sum_streamed(const turn_t *t, const char *const *src, char *const *dst)
{
    const rd_plan_t *plan = t->run->plan;
    _Alignas(64) char block[STREAM_BLOCK];
    size_t most = STREAM_BLOCK / plan->element / RD_LINE * RD_LINE * plan->element; /* whole lines and elements */
    const void *at[RD_MAX_ENDS];

    for (size_t done = 0, bytes; done < t->bytes; done += bytes) {
        bytes = t->bytes - done < most ? t->bytes - done : most;
        for (int i = 0; i < t->step->nsrc; i++)
            at[i] = src[i] + done;
        plan->reducer.reduce(block, at, t->step->nsrc, bytes / plan->element, plan->reducer.arg);
        for (int i = 0; i < t->step->ndst; i++)
            rd_nt_store_write(plan, plan->sends[t->step->dst[i].index], dst[i] + done, block, bytes);
    }
}

/* Returns the value of the step, computed into `first`, or, if there is just one source, where it already lies. */
static inline const char *value(const turn_t *t, const char *const *src, char *first)
{
    const rd_plan_t *plan = t->run->plan;

    if (t->step->nsrc == 1)
        return src[0];
    plan->reducer.reduce(first, (const void *const *)src, t->step->nsrc, t->bytes / plan->element, plan->reducer.arg);
    return first;
}

/* What is copied to one place of this rank need not pass through a slot: a transport may put it there directly. */
static void expect(const turn_t *t, rd_recv_t *recv)
{
    const rd_step_t *step = t->step;

    if (step->nsrc != 1 || step->dst[0].where == RD_PEER || t->run->plan->halvings)
        return;
    recv->dest = local_destination(t, step->dst[0]);
    recv->dest_bytes = t->bytes;
    recv->dest_sign = (uint32_t)(t->sign >> 32);
}

/* A message of another call that has come from another node is refused at once; on a node it is found who is wrong by
 * looking at what they call (progress/unlike.h). */
static void expect_or_refuse(const turn_t *t, rd_recv_t *recv)
{
    if (recv->seen == recv->received)
        expect(t, recv);
    else
        rd_run_mismatch(t->run, recv, UINT64_MAX, t->bytes);
}

/* What comes from a switch says nothing of the link to a rank. */
static bool by_link(const turn_t *t, const rd_recv_t *recv)
{
    return recv->mirrored && !(t->run->plan->collnet && recv == &t->run->plan->collnet->recv);
}

static bool ready_slots(const turn_t *t)
{
    const rd_step_t *step = t->step;
    const rd_plan_t *plan = t->run->plan;

    for (int i = 0; i < step->nsrc; i++) {
        rd_recv_t *recv = step->src[i].where == RD_PEER ? plan->recvs[step->src[i].index] : NULL;
        if (recv && !rd_slot_arrived(recv, t->sign)) {
            t->run->waits_for = recv->peer;
            if (recv->mirrored) {
                if (by_link(t, recv))
                    rd_pace_missed(t->run->seat && t->run->seat->quiet ? t->run->seat->paces : NULL, recv, t->bytes);
                expect_or_refuse(t, recv);
                t->run->waits_far = recv->peer;
            }
            return false;
        }
    }
    for (int i = 0; i < step->ndst; i++) {
        rd_send_t *send = step->dst[i].where == RD_PEER ? plan->sends[step->dst[i].index] : NULL;
        if (send && !rd_slot_may_send(send, t->bytes)) {
            t->run->waits_for = send->peer;
            if (send->mirrored)
                t->run->waits_far = send->peer;
            return false;
        }
    }
    return true;
}

/* Returns true if the step's value lies in the user's memory and does not change, so that a transport may send it from
 * there. The value is where the one source is, or where the first destination is. */
static bool may_zcopy(const turn_t *t)
{
    const rd_step_t *step = t->step;
    const rd_plan_t *plan = t->run->plan;
    int32_t where = step->nsrc == 1 ? step->src[0].where : step->dst[0].where;

    if (!plan->zcopy || t->bytes <= RD_SHORT) /* copying is faster than tracking */
        return false;
    if (where == RD_IN)
        return !plan->reducer.load && (!t->run->in_place || plan->zcopy[step - plan->program->steps] & RD_ZCOPY_IN);
    return where == RD_OUT && !plan->finish_bytes && plan->zcopy[step - plan->program->steps] & RD_ZCOPY_OUT;
}

static inline bool zcopy_to(const turn_t *t, int i)
{
    rd_end_t end = t->step->dst[i];

    return end.where == RD_PEER && rd_slot_may_zcopy(t->run->plan->sends[end.index]);
}

/* Delivers the step's value to all destinations. It is computed into one that is written plainly, if there is one; the
 * others are copied from there, except those that are sent zero-copy. Returns where the value lies; NULL: only in
 * slots. */
static const char *deliver(const turn_t *t, const char *const *src, char *const *dst, int zcopy)
{
    const rd_plan_t *plan = t->run->plan;
    int first = 0, n = t->step->ndst;
    rd_send_t *send;

    while (first < n && (send = streamed(t, t->step->dst[first])) && !rd_nt_store_plain(plan, send))
        first++;
    if (first == n && t->step->nsrc > 1) {
        sum_streamed(t, src, dst);
        return NULL;
    }
    const char *from = value(t, src, first < n ? dst[first] : NULL);
    for (int i = 0; i < n; i++) {
        if (zcopy && zcopy_to(t, i))
            continue;
        send = streamed(t, t->step->dst[i]);
        if (dst[i] == from && send)
            rd_nt_store_passed(send);
        else if (dst[i] != from && send)
            rd_nt_store_write(plan, send, dst[i], from, t->bytes);
        else if (dst[i] != from)
            rd_copy(dst[i], from, t->bytes);
    }
    return from;
}

/* Returns true if the next step waits for no message and sends one to the same peer as `e`. */
static bool sends_more(const turn_t *t, rd_end_t e)
{
    const rd_step_t *next = t->next;

    if (!next || next->ndst != 1 || next->dst[0].where != RD_PEER || next->dst[0].index != e.index)
        return false;
    for (int i = 0; i < next->nsrc; i++) {
        if (next->src[i].where == RD_PEER)
            return false;
    }
    return true;
}

static rondo_result_t returned(const turn_t *t, rd_recv_t *recv)
{
    if (by_link(t, recv) && t->run->seat)
        rd_pace_took(t->run->seat->paces, t->run->seat->board, recv, recv->peer, t->bytes);
    return rd_slot_return(recv, t->bytes);
}

static int step_slots(const turn_t *t)
{
    const rd_step_t *step = t->step;
    const rd_plan_t *plan = t->run->plan;
    const char *src[RD_MAX_ENDS];
    char *dst[RD_MAX_ENDS] = {NULL};

    if (!ready_slots(t))
        return BLOCKED;
    for (int i = 0; i < step->nsrc; i++) {
        if (step->src[i].where == RD_PEER)
            src[i] = rd_slot_to_read(plan->recvs[step->src[i].index], t->bytes);
        else
            src[i] = local_source(t, step->src[i]);
        if (step->src[i].where == RD_IN && plan->reducer.load)
            src[i] = loaded(t, src[i]);
    }
    for (int i = 0; i < step->ndst; i++)
        dst[i] = step->dst[i].where == RD_PEER ? rd_slot_to_fill(plan->sends[step->dst[i].index], t->bytes)
                                               : local_destination(t, step->dst[i]);
    int zcopy = may_zcopy(t);
    const char *from = deliver(t, src, dst, zcopy);
    if (plan->halvings && from)
        store_narrow(t, from);
    for (int i = 0; i < step->ndst && t->run->result == RONDO_SUCCESS; i++) {
        if (step->dst[i].where != RD_PEER)
            continue;
        rd_send_t *send = plan->sends[step->dst[i].index];
        int more = send->mirrored && sends_more(t, step->dst[i]);
        if (zcopy && zcopy_to(t, i))
            t->run->result = rd_slot_zcopy(send, t->sign, from, t->bytes, more);
        else
            t->run->result = rd_slot_publish(send, t->sign, t->bytes, more);
    }
    for (int i = 0; i < step->nsrc && t->run->result == RONDO_SUCCESS; i++) {
        if (step->src[i].where == RD_PEER)
            t->run->result = returned(t, plan->recvs[step->src[i].index]);
    }
    return STEPPED;
}

/* The message that is expected has not come: perhaps another one has. */
static void missed(const turn_t *t, rd_recv_t *recv)
{
    uint64_t sent;

    t->run->waits_for = recv->peer;
    if (t->tag && rd_announce_other(recv, t->sign, t->tag, &sent))
        rd_run_mismatch(t->run, recv, sent, t->bytes);
}

static int step_lines(const turn_t *t)
{
    const rd_step_t *step = t->step;
    const rd_plan_t *plan = t->run->plan;
    _Alignas(64) char message[RD_MAX_ENDS][RD_LL_MOST];
    _Alignas(64) char sum[RD_LL_MOST];
    const char *src[RD_MAX_ENDS];

    for (int i = 0; i < step->ndst; i++) {
        if (step->dst[i].where == RD_PEER && !rd_ll_may_send(plan->sends[step->dst[i].index], rd_ll_lines(t->bytes))) {
            t->run->waits_for = plan->sends[step->dst[i].index]->peer;
            return BLOCKED;
        }
    }
    for (int i = 0; i < step->nsrc; i++) {
        if (step->src[i].where == RD_PEER) {
            if (!rd_ll_peek(plan->recvs[step->src[i].index], message[i], t->bytes, t->sign + t->tag)) {
                missed(t, plan->recvs[step->src[i].index]);
                return BLOCKED;
            }
            src[i] = message[i];
        } else {
            src[i] = local_source(t, step->src[i]);
            if (step->src[i].where == RD_IN && plan->reducer.load)
                src[i] = loaded(t, src[i]);
        }
    }
    const char *from = value(t, src, sum);
    for (int i = 0; i < step->ndst; i++) {
        if (step->dst[i].where == RD_PEER)
            rd_ll_send(plan->sends[step->dst[i].index], from, t->bytes, t->sign + t->tag);
        else if (local_destination(t, step->dst[i]) != from)
            rd_copy(local_destination(t, step->dst[i]), from, t->bytes);
    }
    if (plan->halvings)
        store_narrow(t, from);
    for (int i = 0; i < step->nsrc; i++) {
        if (step->src[i].where == RD_PEER)
            rd_ll_consume(plan->recvs[step->src[i].index], t->bytes);
    }
    return STEPPED;
}

static int step_posts(const turn_t *t)
{
    rd_cma_step_t s = {.plan = t->run->plan,
                       .step = t->step,
                       .sign = t->sign,
                       .put = t->put,
                       .bytes = t->bytes,
                       .staging = t->run->tmp};

    for (int i = 0; i < t->step->nsrc; i++)
        s.src[i] = t->step->src[i].where == RD_PEER ? NULL : local_source(t, t->step->src[i]);
    for (int i = 0; i < t->step->ndst; i++)
        s.dst[i] = t->step->dst[i].where == RD_PEER ? NULL : local_destination(t, t->step->dst[i]);
    t->run->wanted = t->bytes;
    return rd_cma_step(&s, &t->run->waits_for, &t->run->sent, &t->run->result);
}

/* The message of a step lies at the same place on every board. */
static int step_board(const turn_t *t)
{
    const rd_step_t *step = t->step;
    const rd_plan_t *plan = t->run->plan;
    rd_board_t *b = plan->board.board;
    const rd_board_slot_t slot = rd_board_slot(&plan->board, t->start, shifted(t, step->chunk));
    const char *src[RD_MAX_ENDS];
    char *dst[RD_MAX_ENDS] = {NULL};

    if (!rd_board_ready(t->run, step, slot))
        return BLOCKED;
    for (int i = 0; i < step->nsrc; i++) {
        if (step->src[i].where == RD_PEER)
            src[i] = b->of[plan->recvs[step->src[i].index]->peer] + slot.at;
        else
            src[i] = local_source(t, step->src[i]);
        if (step->src[i].where == RD_IN && plan->reducer.load)
            src[i] = loaded(t, src[i]);
    }
    for (int i = 0; i < step->ndst; i++)
        dst[i] = step->dst[i].where == RD_PEER ? b->of[b->self] + slot.at : local_destination(t, step->dst[i]);
    const char *from = value(t, src, dst[0]);
    for (int i = 0; i < step->ndst; i++) {
        if (dst[i] != from)
            rd_copy(dst[i], from, t->bytes);
        if (step->dst[i].where == RD_PEER)
            rd_board_publish(b, t->sign, slot);
    }
    return STEPPED;
}

static inline int step_by(rd_proto_t proto, const turn_t *t)
{
    switch (proto) {
    case RD_PROTO_LL:
        return step_lines(t);
    case RD_PROTO_CMA:
        return step_posts(t);
    case RD_PROTO_BOARD:
        return step_board(t);
    default:
        return step_slots(t);
    }
}

/* Returns the step after this repetition; NULL: there is none in this pass. */
static inline const rd_step_t *upcoming(const rd_lane_run_t *lane)
{
    if (lane->repetition + 1 < lane->step->repeat)
        return lane->step;
    return lane->step + 1 < lane->end ? lane->step + 1 : NULL;
}

void rd_run_mismatch(rd_run_t *run, const rd_recv_t *recv, uint64_t sent, uint64_t wanted)
{
    run->waits_for = recv->peer;
    run->sent = sent;
    run->wanted = wanted;
    run->result = RONDO_ERR_MISMATCH;
}

/* Sends the length of the lane's message, or takes it and compares. Returns true if that is done. */
static bool announce(rd_run_t *run, const rd_lane_run_t *lane)
{
    const rd_step_t *step = lane->first;
    uint64_t wanted = lane->plan->whole, sent = wanted;
    bool in_slot = lane->plan->announced == RD_ANNOUNCED_IN_SLOT;

    if (step->dst[0].where == RD_PEER) {
        rd_send_t *send = run->plan->sends[step->dst[0].index];
        run->waits_for = send->peer;
        return in_slot ? rd_announce_in_slot(send, wanted) : rd_announce(send, run->sign, wanted, &run->result);
    }
    rd_recv_t *recv = run->plan->recvs[step->src[0].index];
    run->waits_for = recv->peer;
    if (!(in_slot ? rd_announce_slot_take(recv, run->sign, &sent)
                  : rd_announce_take(recv, run->sign, &sent, &run->result)))
        return false;
    if (sent != wanted && run->result == RONDO_SUCCESS)
        rd_run_mismatch(run, recv, sent, wanted);
    return true;
}

/* Gives room for all messages that the lane receives: their senders write at once. */
static void open_rooms(rd_run_t *run, const rd_lane_run_t *lane)
{
    const rd_plan_t *plan = run->plan;

    for (const rd_step_t *step = lane->first; step < lane->end; step++) {
        const turn_t t = {.run = run, .step = step};
        size_t bytes = rd_chunk_bytes(&plan->out, step->chunk);
        if (step->src[0].where == RD_PEER && bytes)
            rd_room_open(plan->recvs[step->src[0].index], run->sign, local_destination(&t, step->dst[0]), bytes);
    }
}

/* Advances the lane as far as it goes. Returns true if it moved. */
static bool advance(rd_run_t *run, rd_lane_run_t *lane)
{
    const rd_plan_t *plan = run->plan;
    bool moved = false;

    if (lane->announces) {
        if (!announce(run, lane) || run->result != RONDO_SUCCESS)
            return false;
        lane->announces = false;
        moved = true;
    }
    if (lane->opens) {
        open_rooms(run, lane);
        lane->opens = false;
    }
    while (lane->passes) {
        if (lane->step->part != RD_ALONE) {
            if (rd_run_message(run, lane) == BLOCKED || run->result != RONDO_SUCCESS)
                return moved;
            moved = true;
            continue;
        }
        turn_t t = {run, lane->step,      upcoming(lane), lane->shift,    lane->start,
                    0,   lane->plan->tag, run->sign,      lane->plan->put};
        t.bytes = slice_bytes(plan, lane, shifted(&t, lane->step->chunk));
        if (t.bytes) {
            if (step_by(lane->plan->proto, &t) == BLOCKED || run->result != RONDO_SUCCESS)
                return moved;
        }
        moved = true;
        next(lane, plan->program->nchunks);
        if (plan->board.board && lane->step == lane->first && lane->repetition == 0)
            rd_board_passed(&plan->board, lane->start);
    }
    run->open--;
    return true;
}

static bool is_open(const rd_lane_run_t *lane)
{
    return lane->passes || lane->announces;
}

void rd_run_begin(rd_run_t *run, const rd_plan_t *plan, const void *in, void *out, char *tmp, uint64_t sign)
{
    const rd_program_t *program = plan->program;

    run->plan = plan;
    /* A buffer that holds one chunk only starts there: the shift may point outside of it, where nothing is read. */
    run->in = (const char *)((uintptr_t)in + (uintptr_t)plan->in.shift);
    run->out = (char *)((uintptr_t)out + (uintptr_t)plan->out.shift);
    run->tmp = tmp;
    run->waits_for = run->waits_far = -1;
    run->sign = sign;
    run->result = RONDO_SUCCESS;
    run->open = 0;
    if (plan->collnet) {
        plan->collnet->coll = plan->desc.coll;
        plan->collnet->root = plan->switch_root;
        plan->collnet->type = plan->switch_type;
        plan->collnet->op = plan->switch_op;
    }
    if (plan->flat) {
        run->flat = 0;
        run->open = plan->nflat != 0 || plan->board.board;
        return;
    }
    run->in_place = plan->zcopy && rd_zcopy_overlap(plan, run->in, run->out);
    for (int i = 0; i < program->nlanes; i++) {
        rd_lane_run_t *lane = &run->lanes[i];
        lane->plan = &plan->lanes[i];
        lane->first = lane->step = program->steps + program->lanes[i].first;
        lane->end = lane->first + program->lanes[i].count;
        lane->repetition = lane->shift = 0;
        lane->start = 0;
        lane->passes = plan->lanes[i].passes;
        lane->opens = lane->plan->put;
        lane->announces = lane->plan->announced;
        run->open += is_open(lane);
    }
    run->open += (run->open && plan->posts) || plan->board.board;
}

static inline bool advance_all(rd_run_t *run)
{
    bool moved = false;

    if (run->plan->flat) {
        moved = rd_flat_advance(run);
        if (!moved)
            rd_flat_check(run);
        return moved;
    }
    int first = -1; /* the rank that the first blocked lane waits for: later lanes may depend on that one */

    run->waits_far = -1;
    /* Stops at a lane that has failed: the next lane's step would overwrite the failure, or be made twice. */
    for (int i = 0; i < run->plan->program->nlanes && run->result == RONDO_SUCCESS; i++) {
        if (!is_open(&run->lanes[i]))
            continue;
        moved |= advance(run, &run->lanes[i]);
        if (first < 0 && is_open(&run->lanes[i]))
            first = run->waits_for;
    }
    if (first >= 0 && run->result == RONDO_SUCCESS)
        run->waits_for = first;
    if (run->open && run->plan->posts && run->result == RONDO_SUCCESS)
        moved |= rd_cma_answer(run->plan);
    if (run->open == 1 && run->plan->posts && run->result == RONDO_SUCCESS) {
        run->open = !rd_cma_settled(run->plan, &run->waits_for);
        moved |= !run->open;
    }
    if (run->open == 1 && run->plan->board.board && run->result == RONDO_SUCCESS) {
        rd_board_end(&run->plan->board);
        run->open = 0;
        moved = true;
    }
    if (run->open == 0 && run->plan->finish_bytes)
        run->plan->reducer.finish(run->out + run->plan->finish_offset, run->plan->finish_bytes / run->plan->element,
                                  run->plan->reducer.arg);
    return moved;
}

bool rd_run_advance(rd_run_t *run)
{
    uint64_t program = rd_rounding_begin();
    bool moved = advance_all(run);
    rd_rounding_end(program);
    return moved;
}
