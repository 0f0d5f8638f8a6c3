/* Windows and what serves them: see rma.h. */
#include "rma/rma_int.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/page.h"
#include "transport/cma/room.h"

#define LINE_WORDS (RD_LINE / sizeof(uint64_t))
_Static_assert(sizeof(rd_room_t) <= RD_LINE, "a room has a line");

/* Each origin has lines of its own, because it alone writes them: one for its room, then its counters. */
static size_t words_of_one(int contexts, int signals)
{
    size_t n = (size_t)contexts * (size_t)signals;

    return LINE_WORDS + (n + LINE_WORDS - 1) / LINE_WORDS * LINE_WORDS;
}

size_t rd_rma_counters_bytes(int nranks, int contexts, int signals)
{
    size_t bytes = (size_t)nranks * words_of_one(contexts, signals) * sizeof(uint64_t);

    return rd_round_up(bytes, RD_PAGE);
}

_Atomic uint64_t *rd_rma_counter(const rd_rma_t *rma, int target, int origin, int context, int signal)
{
    return rma->counters[target] + (size_t)origin * words_of_one(rma->contexts, rma->signals) + LINE_WORDS +
           (size_t)context * (size_t)rma->signals + (size_t)signal;
}

rd_room_t *rd_rma_room(const rd_rma_t *rma, int target, int origin)
{
    return (rd_room_t *)(void *)(rma->counters[target] + (size_t)origin * words_of_one(rma->contexts, rma->signals));
}

void rd_rma_take_back(const rd_rma_t *rma)
{
    for (int r = 0; r < rma->team->nranks; r++)
        if (r != rma->team->rank && rma->counters[r] && rma->conns->recvs[r].read)
            rd_room_close(rd_rma_room(rma, rma->team->rank, r), &rma->conns->recvs[r]);
}

static void free_tables(rd_rma_t *rma)
{
    free(rma->alone);
    free(rma->peers);
    free(rma->mixed);
    free(rma->by_message);
    free(rma->consumed);
    free(rma->counters);
    free(rma);
}

/* ---- the communicator's side ---- */

static rondo_result_t fail_with_net(rd_rma_t *rma)
{
    rd_health_t *net = rma->net.queue->health;
    rondo_result_t code = rd_health_poll(net);

    if (code == RONDO_SUCCESS)
        return code;
    return rd_health_follow(rma->team->health, code, atomic_load(&net->stop.failed_rank), &net->stop, "");
}

static void end(rd_rma_op_t *op, rondo_result_t code)
{
    rd_completion_t *completion = op->completion;

    op->over = true;
    if (!completion)
        return;
    free(op);
    rd_completion_fail(completion, code);
    atomic_fetch_sub(&completion->pending, 1);
}

/* Goes on with an operation. Returns true if something moved. */
static bool go_on(rd_rma_t *rma, rd_rma_op_t *op, rondo_result_t *result)
{
    if (op->kind == RD_RMA_WAIT)
        return op->over = rd_rma_consume(rma, op);
    if (op->tried)
        return rd_rma_post(rma, op, result);
    op->tried = true;
    *result = rd_rma_try(rma, op);
    op->over = *result == RONDO_SUCCESS;
    if (*result == RONDO_IN_PROGRESS)
        *result = RONDO_SUCCESS;
    return true;
}

/* One turn over the list. Operations behind one of their context that is not over wait for it. */
static bool go_on_all(rd_rma_t *rma, rondo_result_t *result)
{
    uint64_t held = 0;
    bool moved = false;
    rd_rma_op_t *before = NULL;

    for (rd_rma_op_t *op = rma->first, *next; op && *result == RONDO_SUCCESS; op = next) {
        uint64_t bit = UINT64_C(1) << op->context;
        next = op->next;
        if (!(held & bit))
            moved |= go_on(rma, op, result);
        if (!op->over || *result != RONDO_SUCCESS) {
            held |= bit;
            before = op;
            continue;
        }
        if (before)
            before->next = next;
        else
            rma->first = next;
        if (rma->last == op)
            rma->last = before;
        end(op, RONDO_SUCCESS);
    }
    return moved;
}

static bool serve_all(rd_rma_t *rma, rondo_result_t *result)
{
    bool moved = rd_transport_progress(rma->net.queue->net);

    for (int r = 0; r < rma->team->nranks && *result == RONDO_SUCCESS; r++) {
        if (r == rma->team->rank)
            continue;
        moved |= rd_rma_take_answers(rma, r, result);
        if (*result == RONDO_SUCCESS)
            moved |= rd_rma_serve_requests(rma, r, result);
    }
    return moved;
}

static void flush(rd_side_t *side, rondo_result_t code)
{
    rd_rma_t *rma = (rd_rma_t *)(void *)side;

    if (rma->peers)
        rd_transport_cancel(rma->net.queue->net);
    while (rma->first) {
        rd_rma_op_t *op = rma->first;
        rma->first = op->next;
        end(op, code);
    }
    rma->last = NULL;
}

static rondo_result_t turn(rd_side_t *side, int *moved)
{
    rd_rma_t *rma = (rd_rma_t *)(void *)side;
    rondo_result_t result = rma->peers ? fail_with_net(rma) : RONDO_SUCCESS;

    if (rma->peers && result == RONDO_SUCCESS)
        *moved |= serve_all(rma, &result);
    if (rma->first && result == RONDO_SUCCESS)
        *moved |= go_on_all(rma, &result);
    if (result == RONDO_SUCCESS)
        return result;
    if (rd_health_check(rma->team->health) == RONDO_SUCCESS)
        rd_health_fail(rma->team->health, result, -1, "a one-sided operation failed: %s", rd_thread_error());
    return rd_health_check(rma->team->health);
}

static bool busy(const rd_side_t *side)
{
    const rd_rma_t *rma = (const rd_rma_t *)(const void *)side;

    return rma->first || (rma->peers && !rd_transport_idle(rma->net.queue->net));
}

/* The rank that the caller's operation waits for, or else the first one. */
static int waits_for(const rd_side_t *side)
{
    const rd_rma_t *rma = (const rd_rma_t *)(const void *)side;
    const rd_rma_op_t *op = rma->own && !rma->own->over ? rma->own : rma->first;

    if (!op)
        return -1;
    if (op->kind == RD_RMA_WAIT)
        return op->waits[op->at < op->nwaits ? op->at : op->nwaits - 1].peer;
    if (op->peer >= 0)
        return op->peer;
    for (int r = 0; rma->peers && r < rma->team->nranks; r++)
        if (rma->peers[r].due)
            return r;
    return -1;
}

/* ---- from creation to the end ---- */

rondo_result_t rd_rma_create(rd_rma_t **rma, const rd_team_t *team, rd_conns_t *conns, rd_queue_t *queue,
                             const rd_node_t *memory, int contexts, int signals)
{
    size_t n = (size_t)team->nranks, bytes = rd_rma_counters_bytes(team->nranks, contexts, signals);
    rd_rma_t *made = calloc(1, sizeof *made);

    if (!made)
        return rd_error(team->ctx, RONDO_ERR_NO_MEMORY, "no memory for one-sided operations");
    *made = (rd_rma_t){.side = {turn, busy, waits_for, flush, NULL},
                       .team = team,
                       .conns = conns,
                       .queue = queue,
                       .contexts = contexts,
                       .signals = signals,
                       .counters = calloc(n, sizeof *made->counters),
                       .consumed = calloc(1, bytes),
                       .by_message = calloc(n, sizeof *made->by_message),
                       .mixed = calloc(n, sizeof *made->mixed),
                       .alone = memory->base ? NULL : aligned_alloc(RD_PAGE, bytes)};
    if (!made->counters || !made->consumed || !made->by_message || !made->mixed || (!memory->base && !made->alone)) {
        free_tables(made);
        return rd_error(team->ctx, RONDO_ERR_NO_MEMORY, "no memory for the signals of %zu ranks", n);
    }
    if (made->alone)
        memset((void *)made->alone, 0, bytes);
    for (int m = 0; m < memory->nlocal; m++)
        made->counters[memory->local[m]] =
            memory->base ? (_Atomic uint64_t *)(void *)(memory->base + (size_t)m * memory->segment_bytes) : NULL;
    if (made->alone)
        made->counters[team->rank] = made->alone;
    for (size_t r = 0; r < n; r++)
        made->by_message[r] = !made->counters[r];
    made->memory = *memory;
    *rma = made;
    return RONDO_SUCCESS;
}

rondo_result_t rd_rma_serve(rd_rma_t *rma, const rd_rma_net_t *net)
{
    rma->peers = calloc((size_t)rma->team->nranks, sizeof *rma->peers);
    if (!rma->peers)
        return rd_error(rma->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for the messages of %d ranks",
                        rma->team->nranks);
    rma->net = *net;
    rma->side.net = net->queue->net;
    return RONDO_SUCCESS;
}

void rd_rma_free(rd_rma_t *rma)
{
    if (!rma)
        return;
    while (rma->windows)
        rd_rma_window_free(rma, rma->windows);
    rd_node_free(&rma->memory);
    free_tables(rma);
}

/* ---- windows ---- */

/* The ranks of this process have their counters, and so their memory, where this one sees them. The first and the last
 * byte show whether the kernel gives the memory, which it does not of all. */
static rd_rma_way_t way_to(const rd_rma_t *rma, int rank, rd_rma_part_t *part)
{
    const rd_recv_t *from = &rma->conns->recvs[rank];
    char byte;

    if (rank == rma->team->rank || (rma->conns->cma && from->reading)) {
        part->mapped = (char *)(uintptr_t)part->address;
        return rank == rma->team->rank ? RD_RMA_MAPPED : RD_RMA_BESIDE;
    }
    if (!rma->counters[rank] || !rma->conns->cma || !from->read)
        return RD_RMA_MESSAGES;
    if (part->bytes && (from->read(from, &byte, part->address, 1) != 0 ||
                        from->read(from, &byte, part->address + part->bytes - 1, 1) != 0))
        return RD_RMA_MESSAGES;
    return RD_RMA_CMA;
}

rd_rma_window_t *rd_rma_window_make(rd_rma_t *rma, uint32_t number, const rd_node_t *memory, const bool *allocated,
                                    rd_rma_part_t *parts)
{
    rd_rma_window_t *made = calloc(1, sizeof *made);

    if (!made)
        return NULL;
    made->number = number;
    made->parts = parts;
    made->next = rma->windows;
    rma->windows = made;
    for (int m = 0; memory->base && m < memory->nlocal; m++)
        if (allocated[memory->local[m]])
            parts[memory->local[m]].mapped = memory->base + (size_t)m * memory->segment_bytes;
    /* A rank may share the counters, and not this memory: see rd_node_find. */
    for (int r = 0; r < rma->team->nranks; r++)
        parts[r].way = parts[r].mapped && rma->counters[r] ? RD_RMA_MAPPED : way_to(rma, r, &parts[r]);
    made->memory = *memory;
    return made;
}

void rd_rma_window_open(rd_rma_t *rma, const rd_rma_window_t *window)
{
    for (int r = 0; r < rma->team->nranks; r++) {
        bool messages = window->parts[r].way == RD_RMA_MESSAGES;
        rma->by_message[r] |= messages;
        rma->mixed[r] |= rma->by_message[r] && rma->counters[r];
    }
}

bool rd_rma_window_needs_messages(const rd_rma_t *rma, const rd_rma_window_t *window)
{
    bool any = false;

    for (int r = 0; r < rma->team->nranks; r++)
        any |= window->parts[r].way == RD_RMA_MESSAGES;
    return any;
}

bool rd_rma_has(const rd_rma_t *rma, const rd_rma_window_t *window)
{
    const rd_rma_window_t *w = rma->windows;

    while (w && w != window)
        w = w->next;
    return w != NULL;
}

rd_rma_window_t *rd_rma_numbered(const rd_rma_t *rma, uint32_t number)
{
    rd_rma_window_t *w = rma->windows;

    while (w && w->number != number)
        w = w->next;
    return w;
}

void rd_rma_window_free(rd_rma_t *rma, rd_rma_window_t *window)
{
    rd_rma_window_t **at = &rma->windows;

    while (*at && *at != window)
        at = &(*at)->next;
    if (*at)
        *at = window->next;
    rd_node_free(&window->memory);
    if (window->alone)
        munmap(window->alone, window->alone_bytes);
    free(window->parts);
    free(window);
}
