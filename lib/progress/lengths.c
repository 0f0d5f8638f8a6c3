/* See lengths.h. A rank that is a whole ring behind finds the lengths that it would compare with overwritten, and skips
 * them. */
#include "progress/lengths.h"

#include <pthread.h>
#include <stdlib.h>

#include "progress/ring_entry.h"
#include "progress/signature.h"

#define RING 64       /* messages of a pair and direction */
#define RANKS_MOST 16 /* of a node whose GPUs map each other's memory */

typedef struct entry {
    _Atomic uint64_t number; /* of the message: see ring_entry.h */
    _Atomic uint64_t bytes;
} entry_t;

typedef struct segment {
    /* By peer; [1]: what is sent to it, [0]: what is received from it. Where as much is sent as received, both entries
     * lie in one cache line. */
    entry_t rings[RANKS_MOST][RING][2];
} segment_t;

typedef struct direction {
    uint64_t posted, compared; /* messages */
    bool stopped;
} direction_t;

struct rd_lengths_ring {
    pthread_mutex_t lock; /* both the calling thread and the liveness thread compare */
    const rd_team_t *team;
    segment_t *segments[RANKS_MOST];
    direction_t of[RANKS_MOST][2];
};

size_t rd_lengths_ring_bytes(void)
{
    return sizeof(segment_t);
}

rondo_result_t rd_lengths_ring_create(rd_lengths_ring_t **out, const rd_team_t *team)
{
    const rd_node_t *node = team->node;
    size_t behind = rd_lengths_ring_bytes() + (team->env->check ? rd_signature_ring_bytes() : 0);
    rd_lengths_ring_t *ring;

    if (!node->base || node->nnodes > 1 || team->nranks > RANKS_MOST || team->nranks == 1)
        return RONDO_SUCCESS;
    if (!(ring = calloc(1, sizeof *ring)))
        return rd_error(team->ctx, RONDO_ERR_NO_MEMORY, "no memory for the lengths of messages");
    pthread_mutex_init(&ring->lock, NULL);
    ring->team = team;
    for (int m = 0; m < node->nlocal; m++)
        ring->segments[node->local[m]] =
            (segment_t *)(void *)(node->base + (size_t)(m + 1) * node->segment_bytes - behind);
    *out = ring;
    return RONDO_SUCCESS;
}

void rd_lengths_ring_free(rd_lengths_ring_t *ring)
{
    if (ring)
        pthread_mutex_destroy(&ring->lock);
    free(ring);
}

static void post(entry_t *entry, uint64_t number, uint64_t bytes)
{
    rd_entry_begin(&entry->number);
    atomic_store_explicit(&entry->bytes, bytes, memory_order_relaxed);
    rd_entry_end(&entry->number, number);
}

/* Returns 1 if *bytes is set to the message's length, 0 if the rank has not come so far, -1 if it has overwritten it.
 */
static int find(const entry_t *entry, uint64_t number, uint64_t *bytes)
{
    int there = rd_entry_find(&entry->number, number);

    if (there != 1)
        return there;
    *bytes = atomic_load_explicit(&entry->bytes, memory_order_relaxed);
    return rd_entry_kept(&entry->number, number) ? 1 : -1;
}

static rondo_result_t compare(rd_lengths_ring_t *ring, int peer, int send)
{
    direction_t *d = &ring->of[peer][send];
    int rank = ring->team->rank;
    uint64_t own, theirs;

    while (d->compared < d->posted) {
        uint64_t number = d->compared + 1;
        int there = find(&ring->segments[peer]->rings[rank][number % RING][!send], number, &theirs);

        if (there == 0)
            return RONDO_SUCCESS;
        d->compared = number;
        if (there < 0 || find(&ring->segments[rank]->rings[peer][number % RING][send], number, &own) != 1 ||
            own == theirs)
            continue;
        const rd_lengths_t lengths =
            send ? (rd_lengths_t){rank, peer, own, theirs} : (rd_lengths_t){peer, rank, theirs, own};
        return rd_health_lengths(ring->team->health, &lengths);
    }
    return RONDO_SUCCESS;
}

static rondo_result_t compare_all(rd_lengths_ring_t *ring)
{
    rondo_result_t result = RONDO_SUCCESS;

    for (int i = 0; i < 2 * ring->team->nranks && result == RONDO_SUCCESS; i++)
        result = compare(ring, i / 2, i % 2);
    return result;
}

void rd_lengths_ring_begin(rd_lengths_ring_t *ring)
{
    pthread_mutex_lock(&ring->lock);
}

void rd_lengths_ring_message(rd_lengths_ring_t *ring, int peer, int send, uint64_t bytes)
{
    direction_t *d = &ring->of[peer][send];

    if (d->stopped)
        return;
    d->posted++;
    post(&ring->segments[ring->team->rank]->rings[peer][d->posted % RING][send], d->posted, bytes);
}

void rd_lengths_ring_captured(rd_lengths_ring_t *ring, int peer, int send)
{
    ring->of[peer][send].stopped = true;
}

rondo_result_t rd_lengths_ring_end(rd_lengths_ring_t *ring)
{
    atomic_thread_fence(memory_order_seq_cst); /* of two ranks that post at once, at least one sees the other */
    rondo_result_t result = compare_all(ring);

    pthread_mutex_unlock(&ring->lock);
    return result;
}

void rd_lengths_ring_poll(rd_lengths_ring_t *ring)
{
    if (!ring || pthread_mutex_trylock(&ring->lock) != 0)
        return;
    (void)compare_all(ring);
    pthread_mutex_unlock(&ring->lock);
}
