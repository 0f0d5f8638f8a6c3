/* What the liveness thread checks several times a second for a CUDA communicator, because no other thread of this
 * process can: the caller of an operation on a stream has gone on, or sleeps in CUDA.
 *
 * A kernel that has waited for a while writes into pinned memory, again and again, for which rank it waits and in which
 * call; that goes into the record, where rondo-ras and the other ranks find it. A peer that has left in order has done
 * all its part before, so a kernel that still waits for it would wait for ever: the communicator fails. Of any other
 * rank for which a kernel waits long, device_late.c says why it does not come. */
#include "exec/cuda/cuda_int.h"
#include "monitor/seat.h"

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
                   "rank %d (%s) has destroyed its communicator, and a kernel of rank %d waits for it", peer,
                   rd_boot_whois(team->boot, peer), team->rank);
}

/* A number of the record's from the lower bits that kernels know of it, which is near `about`. */
static uint64_t number_of(uint32_t call, int bits, uint64_t about)
{
    uint32_t ahead = (call - (uint32_t)about) << (32 - bits);

    if (!(call << (32 - bits)))
        return 0;
    return (about + (uint64_t)((int32_t)ahead >> (32 - bits))) | (RD_KCALL_CAPTURED(call) ? RD_MONITOR_REPLAYED : 0);
}

/* Is this word of the wait about that peer? */
static bool of(uint32_t word, int slow)
{
    return ((word >> 24) & 0x7f) == ((uint32_t)(slow - 1) & 0x7f);
}

/* `seen_ms`: when it last waited for sure; `slow`: the peer as kernels count, plus one. */
static void show(rd_cuda_t *cuda, int peer, int slow, int64_t seen_ms)
{
    const rd_seat_t *seat = cuda->team->seat;
    volatile const rd_khost_t *host = cuda->host;
    uint64_t begun = atomic_load(&seat->board->calls[RD_TRACK_COLLECTIVE].begun);
    const uint32_t of_peer = host->wait[RD_KWAIT_PEER_CALL], epochs = host->wait[RD_KWAIT_EPOCHS];
    const rd_monitor_device_t at = {
        .in = number_of(cuda->slow_call, rd_ring_order_bits(cuda), begun),
        .peer_in = of(of_peer, slow) ? number_of(of_peer, 24, begun) : 0,
        .peer_behind = of(epochs, slow) ? epochs & 0xffffffu : 0,
    };

    rd_monitor_device_wait(cuda->team->seat, peer, &at, cuda->slow_ms, seen_ms);
}

/* No kernel waits any more. Where one has left because of that wait, its error is still to be said. */
static void forget(rd_cuda_t *cuda)
{
    volatile const rd_khost_t *host = cuda->host;

    if (host->failed)
        return;
    if (cuda->slow_ms && cuda->team->seat)
        rd_monitor_device_wait(cuda->team->seat, -1, &(rd_monitor_device_t){0}, 0, 0);
    cuda->slow_ms = 0;
    cuda->left_peer = 0;
    rd_device_late_forget(cuda);
}

/* The words are of a wait that went on when the host had read them the last time; it may have ended since. Returns when
 * that was; -1: this wait is seen for the first time. */
static int64_t waited_at(rd_cuda_t *cuda, uint32_t call, int64_t now)
{
    if (cuda->slow_ms && cuda->slow_call == call)
        return cuda->read_ms;
    forget(cuda);
    cuda->slow_ms = now;
    cuda->slow_call = call;
    return -1;
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
    const uint32_t word = host->wait[RD_KWAIT_PEER];
    atomic_thread_fence(memory_order_acquire);
    const uint32_t call = host->wait[RD_KWAIT_CALL];
    const int slow_here = (int)(word >> 14);
    int slow = word == RD_KWAIT(slow_here - 1, call) ? slow_here : 0;
    if (slow >= 1)
        slow = rd_ring_order_peer(cuda, call, slow - 1) + 1;
    if (cuda->path && slow >= 1) /* by a kernel of the node's own ranks, or one that waits for a proxy */
        slow = slow <= team->node->nlocal ? team->node->local[slow - 1] + 1 : 0;
    if (slow < 1 || slow > team->nranks) { /* nobody waits, or for no rank, or the words do not fit together */
        forget(cuda);
        if (word)
            host->wait[RD_KWAIT_PEER] = 0; /* else no later wait would show */
        return;
    }
    int64_t now = rd_clock_ms(), seen_ms = waited_at(cuda, call, now);
    if (seen_ms >= 0 && team->seat)
        show(cuda, slow - 1, slow_here, seen_ms);
    check_left(cuda, slow - 1);
    if (seen_ms >= 0)
        rd_device_late_check(cuda, slow - 1, now);
    host->wait[RD_KWAIT_PEER] = 0; /* a kernel that still waits sets it again */
    cuda->read_ms = rd_clock_ms();
}
