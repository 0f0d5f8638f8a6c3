/* What the liveness thread checks several times a second for a CUDA communicator, because no other thread of this
 * process can: the caller of an operation on a stream has gone on, or sleeps in CUDA.
 *
 * A kernel that has waited for a while writes into pinned memory, again and again, for which rank it waits. A peer that
 * has left in order has done all its part before, so a kernel that still waits for it would wait for ever: the
 * communicator fails. Any other rank for which a kernel waits long is reported once a minute. */
#include "exec/cuda/cuda_int.h"

/* The kernel may have written this before the last stores of the peer arrived: only a second sighting counts. */
static void check_left(rd_cuda_t *cuda, int peer)
{
    const rd_team_t *team = cuda->team;
    const rd_control_t *control = team->controls[peer];

    if (!control || !atomic_load_explicit(&control->left, memory_order_acquire)) {
        cuda->left_peer = 0;
        return;
    }
    if (cuda->left_peer != peer + 1) {
        cuda->left_peer = peer + 1;
        return;
    }
    rd_health_fail(team->health, RONDO_ERR_REMOTE, peer,
                   "rank %d (%s) has destroyed its communicator, and a kernel of this rank waits for it", peer,
                   rd_boot_whois(team->boot, peer));
}

static void check_late(rd_cuda_t *cuda, int peer)
{
    const rd_team_t *team = cuda->team;
    int64_t now = rd_clock_ms();

    if (cuda->slow_ms == 0)
        cuda->slow_ms = cuda->named_ms = now;
    if (now - cuda->named_ms < cuda->late_ms)
        return;
    cuda->named_ms = now;
    rd_log(team->ctx, RD_LOG_WARN, "a kernel has been waiting for rank %d (%s) for %lld s: it has not come or is slow",
           peer, rd_boot_whois(team->boot, peer), (long long)(now - cuda->slow_ms) / 1000);
}

void rd_cuda_health_poll(rd_cuda_t *cuda)
{
    const rd_team_t *team = cuda->team;
    volatile rd_khost_t *host = cuda->host;

    rd_stall_poll(cuda);
    if (rd_health_poll(team->health) != RONDO_SUCCESS)
        return;
    rd_signature_ring_poll(cuda->signatures);
    rd_lengths_ring_poll(cuda->lengths);
    int slow = (int)host->slow;
    if (cuda->path && slow >= 1) /* by a kernel of the node's own ranks, or one that waits for a proxy */
        slow = slow <= team->node->nlocal ? team->node->local[slow - 1] + 1 : 0;
    if (slow < 1 || slow > team->nranks) {
        cuda->slow_ms = 0;
        cuda->left_peer = 0;
        return;
    }
    host->slow = 0; /* a kernel that still waits sets it again */
    check_left(cuda, slow - 1);
    check_late(cuda, slow - 1);
}
