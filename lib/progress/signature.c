/* Signatures of calls: the record, its comparison, and the three ways of exchange. See signature.h. */
#include "progress/signature.h"
#include "progress/ring_entry.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/force.h"

uint64_t rd_signature_counts(const rd_call_t *call, int nranks, size_t factor)
{
    const rd_tables_t *tables = call->desc.coll == RD_ALLTOALL ? NULL : call->tables;
    uint64_t hash = 1;

    if (!tables)
        return 0;
    const size_t *counts = tables->out_counts ? tables->out_counts : tables->in_counts;
    for (int r = 0; counts && r < nranks; r++)
        hash = rd_sign_mix(hash, counts[r] * factor);
    return hash;
}

/* Returns true if `count` is of the whole message, and not of one block. */
static bool is_vector(rd_coll_t coll)
{
    return coll == RD_ALLREDUCE || coll == RD_REDUCE || coll == RD_BROADCAST;
}

static void fill(rd_signature_t *s, const rd_call_t *call, const rd_team_t *team, uint64_t sequence)
{
    const rd_coll_desc_t *desc = &call->desc;

    memset(s, 0, sizeof *s);
    s->sequence = sequence;
    s->count = desc->count;
    s->counts = rd_signature_counts(call, team->nranks, 1);
    s->tag = call->tag;
    s->bytes = desc->count * rondo_type_size(desc->type) * (is_vector(desc->coll) ? 1 : (size_t)team->nranks);
    s->type = (int32_t)desc->type;
    s->op = desc->op < RONDO_NUM_OPS ? (int32_t)desc->op : RONDO_NUM_OPS; /* each rank numbers its user ops itself */
    s->root = call->name ? call->root : desc->root;
    s->tuned = rd_force_word(desc->forced);
    snprintf(s->name, sizeof s->name, "%s", call->name ? call->name : rd_coll_name(desc->coll));
}

/* Returns the first field in which they differ, or NULL. */
static const char *differs(const rd_signature_t *a, const rd_signature_t *b)
{
    if (a->sequence != b->sequence)
        return "sequence number";
    if (memcmp(a->name, b->name, sizeof a->name) != 0)
        return "operation";
    if (a->count != b->count)
        return "count";
    if (a->counts != b->counts)
        return "counts (each rank's must be the same everywhere)";
    if (a->type != b->type)
        return "type";
    if (a->op != b->op)
        return "op";
    if (a->root != b->root)
        return "root";
    if (a->tag != b->tag)
        return "tag";
    return a->tuned != b->tuned ? RD_UNLIKE_TUNED : NULL;
}

static rondo_result_t compare(const rd_team_t *team, int rank, const rd_signature_t *its, int other,
                              const rd_signature_t *others)
{
    const char *field = differs(its, others);
    const rd_unlike_t found = {field, {rank, other}, {*its, *others}, 0};

    return field ? rd_unlike_say(team, &found) : RONDO_SUCCESS;
}

static rondo_result_t no_memory(const rd_team_t *team)
{
    return rd_error(team->ctx, RONDO_ERR_NO_MEMORY, "no memory for RONDO_CHECK");
}

/* ---- a task ---- */

static rondo_result_t compare_all(rd_queue_t *q, const rd_signature_t *records)
{
    rondo_result_t result = RONDO_SUCCESS;

    for (int r = 1; r < q->team->nranks && result == RONDO_SUCCESS; r++)
        result = compare(q->team, 0, &records[0], r, &records[r]);
    return result;
}

/* *records: one for each rank; that of this rank is filled in except for its sequence number. */
static rondo_result_t prepare(rd_queue_t *q, const rd_signature_t *own, rd_signature_t **records, rd_plan_t **plan)
{
    rd_coll_desc_t exchange;
    rondo_result_t result;

    *records = calloc((size_t)q->team->nranks, sizeof **records);
    if (!*records)
        return no_memory(q->team);
    (*records)[q->team->rank] = *own;
    memset(&exchange, 0, sizeof exchange);
    exchange.coll = RD_ALLGATHER;
    exchange.type = RONDO_UINT8;
    exchange.count = sizeof **records;
    exchange.own = 1;
    result = rd_plan_get(q->planner, &exchange, NULL, NULL, plan);
    if (result != RONDO_SUCCESS)
        free(*records);
    return result;
}

rondo_result_t rd_signature_exchange(rd_queue_t *q, const rd_call_t *call, uint64_t tuned, uint64_t *sequence)
{
    rd_signature_t own, *records;
    rd_plan_t *plan;
    rondo_result_t result;

    fill(&own, call, q->team, 0);
    own.tuned = tuned;
    result = prepare(q, &own, &records, &plan);
    if (result != RONDO_SUCCESS)
        return result;
    rd_deadlock_call(q, own.name, (int64_t)*sequence);
    records[q->team->rank].sequence = (*sequence)++;
    result = rd_queue_run(q, plan, RD_CHAIN_COLLECTIVE, &records[q->team->rank], records);
    if (result == RONDO_SUCCESS)
        result = compare_all(q, records);
    free(records);
    return result;
}

static rondo_result_t exchanged(rd_task_t *task)
{
    return compare_all(task->queue, task->more.record);
}

static rondo_result_t make_task(rd_queue_t *q, const rd_signature_t *own, rd_task_t **task)
{
    rd_signature_t *records;
    rd_plan_t *plan;
    rondo_result_t result = prepare(q, own, &records, &plan);

    if (result != RONDO_SUCCESS)
        return result;
    result = rd_task_create(q, plan, RD_CHAIN_COLLECTIVE, &records[q->team->rank], records, task);
    if (result != RONDO_SUCCESS) {
        free(records);
        return result;
    }
    rd_task_more(*task)->on_done = exchanged;
    rd_task_more(*task)->record = records;
    return RONDO_SUCCESS;
}

rondo_result_t rd_signature_task(rd_queue_t *q, const rd_call_t *call, uint64_t tuned, rd_task_t **task)
{
    rd_signature_t own;

    fill(&own, call, q->team, 0);
    own.tuned = tuned;
    return make_task(q, &own, task);
}

void rd_signature_number(rd_task_t *task, uint64_t *sequence)
{
    rd_signature_t *records = task->has_more ? task->more.record : NULL;

    if (!task->has_more || task->more.on_done != exchanged)
        return;
    task->sign = rd_sign_now(&task->queue->signing); /* of the call before */
    rd_deadlock_call(task->queue, records[task->queue->team->rank].name, (int64_t)*sequence);
    records[task->queue->team->rank].sequence = (*sequence)++;
}

/* ---- a ring
 *
 * A call on a stream waits for nobody, so the comparison does not wait either: each rank writes its signature into a
 * ring in the node's shared memory, then compares it with those that other ranks have written for the operation of the
 * same number. The last rank to come sees all others, so a difference is found before its kernel starts. What other
 * ranks have called since is compared at the next call, and by the liveness thread, so that ranks whose kernels wait
 * learn of it, too. A rank that is a whole ring behind finds the signatures that it would compare with overwritten, and
 * skips them.
 *
 * Captured calls have their place in the ring, too, where they are captured. A graph may run any number of times, and
 * in the place of another rank's plain call, so numbers say nothing any more where one rank has captured what the other
 * one has not: these two do not compare from there on. */

#define RING 1024 /* operations */

typedef struct entry {
    _Alignas(RD_LINE) _Atomic uint64_t number; /* of the operation: see ring_entry.h */
    bool captured;
    rd_signature_t signature;
} entry_t;

typedef struct member {
    entry_t *ring;     /* in the node's shared memory; NULL: not on this node */
    uint64_t compared; /* operations */
    bool diverged;     /* it has captured other calls than this rank */
} member_t;

struct rd_signature_ring {
    pthread_mutex_t lock; /* both the calling thread and the liveness thread compare */
    const rd_team_t *team;
    uint64_t posted; /* operations of this rank */
    member_t members[];
};

size_t rd_signature_ring_bytes(void)
{
    return RING * sizeof(entry_t);
}

rondo_result_t rd_signature_ring_create(rd_signature_ring_t **out, const rd_team_t *team)
{
    const rd_node_t *node = team->node;
    rd_signature_ring_t *ring;

    if (!team->env->check || !node->base)
        return RONDO_SUCCESS;
    if (!(ring = calloc(1, sizeof *ring + (size_t)team->nranks * sizeof ring->members[0])))
        return no_memory(team);
    pthread_mutex_init(&ring->lock, NULL);
    ring->team = team;
    for (int m = 0; m < node->nlocal; m++)
        ring->members[node->local[m]].ring =
            (entry_t *)(void *)(node->base + (size_t)(m + 1) * node->segment_bytes - rd_signature_ring_bytes());
    *out = ring;
    return RONDO_SUCCESS;
}

void rd_signature_ring_free(rd_signature_ring_t *ring)
{
    if (ring)
        pthread_mutex_destroy(&ring->lock);
    free(ring);
}

static void post(entry_t *ring, const rd_signature_t *signature, bool captured, uint64_t number)
{
    entry_t *entry = &ring[number % RING];

    rd_entry_begin(&entry->number);
    entry->captured = captured;
    entry->signature = *signature;
    rd_entry_end(&entry->number, number);
}

/* Returns 1 if `signature` and `captured` are set to those of the ring's rank for this number, 0 if the rank has not
 * come so far, -1 if it has overwritten them since. */
static int find(const entry_t *ring, uint64_t number, rd_signature_t *signature, bool *captured)
{
    const entry_t *entry = &ring[number % RING];
    int there = rd_entry_find(&entry->number, number);

    if (there != 1)
        return there;
    *captured = entry->captured;
    *signature = entry->signature;
    return rd_entry_kept(&entry->number, number) ? 1 : -1;
}

static rondo_result_t compare_peer(rd_signature_ring_t *ring, int peer)
{
    const rd_team_t *team = ring->team;
    member_t *its = &ring->members[peer];
    int rank = ring->team->rank;
    rd_signature_t own, theirs;
    bool here, captured;

    while (its->compared < ring->posted && !its->diverged) {
        uint64_t number = its->compared + 1;
        int there = find(its->ring, number, &theirs, &captured);

        if (there == 0)
            return RONDO_SUCCESS;
        its->compared = number;
        if (there < 0 || find(ring->members[rank].ring, number, &own, &here) != 1)
            continue;
        its->diverged = here != captured || (here && differs(&own, &theirs));
        if (here || captured)
            continue;
        rondo_result_t result =
            rank < peer ? compare(team, rank, &own, peer, &theirs) : compare(team, peer, &theirs, rank, &own);
        if (result != RONDO_SUCCESS)
            return result;
    }
    return RONDO_SUCCESS;
}

static rondo_result_t compare_peers(rd_signature_ring_t *ring)
{
    rondo_result_t result = RONDO_SUCCESS;

    for (int r = 0; r < ring->team->nranks && result == RONDO_SUCCESS; r++)
        if (r != ring->team->rank && ring->members[r].ring)
            result = compare_peer(ring, r);
    return result;
}

rondo_result_t rd_signature_ring_call(rd_signature_ring_t *ring, const rd_call_t *call, bool captured)
{
    rd_signature_t signature;

    fill(&signature, call, ring->team, ring->posted);
    pthread_mutex_lock(&ring->lock);
    post(ring->members[ring->team->rank].ring, &signature, captured, ++ring->posted);
    atomic_thread_fence(memory_order_seq_cst); /* of two ranks that post at once, at least one sees the other */
    rondo_result_t result = compare_peers(ring);
    pthread_mutex_unlock(&ring->lock);
    return result;
}

void rd_signature_ring_poll(rd_signature_ring_t *ring)
{
    if (!ring || pthread_mutex_trylock(&ring->lock) != 0)
        return;
    (void)compare_peers(ring);
    pthread_mutex_unlock(&ring->lock);
}

/* ---- a record ---- */

void rd_signature_fill(rd_signature_t *signature, const rd_call_t *call, const rd_team_t *team)
{
    fill(signature, call, team, 0);
}

rondo_result_t rd_signature_compare(rd_queue_t *q, const rd_signature_t *own, uint64_t *sequence,
                                    rd_completion_t *completion)
{
    rd_task_t *task;
    rondo_result_t result = make_task(q, own, &task);

    if (result != RONDO_SUCCESS)
        return result;
    rd_signature_number(task, sequence);
    return rd_queue_submit(q, task, completion);
}
