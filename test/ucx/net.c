/* The network between ranks, without executor or communicator: every rank sends messages of random lengths to every
 * other on several channels, with few slots in rings for three lengths, and past them by GDR from memory to memory,
 * and compares what comes, in order; eager and rendezvous mixed, and what goes past announced by itself or in lists,
 * which sender and receiver put together differently. Then one rank is killed, one gives up, and one gives up because
 * of a third: the others must hear of the right failed rank, and nothing comes into memory that was taken back. One
 * sends another length than is expected. What a peer may fetch is let go when he is told that it failed. After an
 * orderly end neither descriptors nor threads are left. A seed may be given; it is printed when something fails. */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ucx/transport_ucx.h"
#include "util/net_rank.h"
#include "util/played_get.h"

#define MOST_RANKS 4
#define CHANNELS 3
#define SLOT_BYTES 150016

typedef enum { WHOLE, KILLED, ABORTED, BLAMING, MISMATCHED } ending_t;

typedef struct {
    int nranks, rank, slots;
    int messages; /* on each connection */
    ending_t ending;
    const char *rendezvous; /* RONDO_UCX_RNDV_THRESH */
    int no_gdr;
    int offers; /* what goes by GDR is announced in lists: 1: most of it, 2: all */
} trial_t;

static uint64_t seed;

static uint64_t mixed(uint64_t x)
{
    x += seed * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* What message `number` from `from` to `to` is made of: its seed, and of that its length. */
static uint64_t message_seed(int from, int to, int channel, uint64_t number)
{
    return mixed((uint64_t)(from * MOST_RANKS + to) * CHANNELS + (uint64_t)channel + (number << 16));
}

static size_t message_bytes(uint64_t s)
{
    switch (s & 3) {
    case 0:
        return s >> 8 & 63;
    case 1:
        return s >> 8 & 8191;
    default:
        return (s >> 8) % (SLOT_BYTES + 1);
    }
}

static void fill(char *slot, size_t bytes, uint64_t s)
{
    for (size_t i = 0; i < bytes; i++) {
        slot[i] = (char)(s >> (i & 31)) ^ (char)(i >> 5);
    }
}

static int same(const char *slot, size_t bytes, uint64_t s)
{
    for (size_t i = 0; i < bytes; i++) {
        if (slot[i] != ((char)(s >> (i & 31)) ^ (char)(i >> 5))) {
            return 0;
        }
    }
    return 1;
}

static rd_send_t sends[MOST_RANKS][CHANNELS];
static rd_recv_t recvs[MOST_RANKS][CHANNELS];

/* What goes to or comes from a peer past connections: messages `over` to `begun` are under way. */
typedef struct {
    uint64_t begun, over;
    _Atomic int pending[RD_GDR_MOST];
    char *memory; /* SLOT_BYTES for each */
} window_t;
static window_t windows[MOST_RANKS][2]; /* received, sent */
#define STRAIGHT CHANNELS               /* as a channel, for what is sent */
#define BURST 12                        /* messages that are given at once, at most: more than one list holds */
#define ODD 10                          /* the message of rank 1 that is too long, where one is */

/* Two rings of shorter slots, and messages that fit none of them. */
static size_t shorter_bytes(int slots)
{
    return (size_t)slots * (4 * 64 + 2 * 8192);
}

static void bind_shorter(rd_ring_t *rings, char *at, int slots)
{
    rings[0] = (rd_ring_t){at, 4 * (uint32_t)slots - 1, 64};
    rings[1] = (rd_ring_t){at + (size_t)slots * 4 * 64, 2 * (uint32_t)slots - 1, 8192};
}

static int bind_all(rd_transport_t *net, const trial_t *t)
{
    for (int p = 0; p < t->nranks; p++) {
        for (int c = 0; p != t->rank && c < CHANNELS; c++) {
            rd_counter_t *counters = aligned_alloc(RD_LINE, 4 * sizeof(rd_counter_t));
            size_t each = (size_t)t->slots * SLOT_BYTES + shorter_bytes(t->slots);
            char *slots = malloc(2 * each);
            memset(counters, 0, 4 * sizeof(rd_counter_t));
            sends[p][c] = (rd_send_t){.slots = slots,
                                      .tail = &counters[0],
                                      .head = &counters[1],
                                      .slots_mask = (uint32_t)t->slots - 1,
                                      .slot_bytes = SLOT_BYTES,
                                      .peer = p,
                                      .ops = net->ops};
            recvs[p][c] = (rd_recv_t){.slots = slots + each,
                                      .tail = &counters[2],
                                      .head = &counters[3],
                                      .slots_mask = (uint32_t)t->slots - 1,
                                      .slot_bytes = SLOT_BYTES,
                                      .peer = p,
                                      .ops = net->ops};
            bind_shorter(sends[p][c].shorter, slots + (size_t)t->slots * SLOT_BYTES, t->slots);
            bind_shorter(recvs[p][c].shorter, slots + each + (size_t)t->slots * SLOT_BYTES, t->slots);
            if (c == 0) {
                windows[p][0].memory = calloc(2 * RD_GDR_MOST, SLOT_BYTES);
                windows[p][1].memory = windows[p][0].memory + RD_GDR_MOST * SLOT_BYTES;
            }
            if (net->ops->bind_send(net, p, c, &sends[p][c]) || net->ops->bind_recv(net, p, c, &recvs[p][c])) {
                return -1;
            }
        }
    }
    return 0;
}

static void unbind_all(const trial_t *t)
{
    for (int p = 0; p < t->nranks; p++) {
        free(windows[p][0].memory);
        for (int c = 0; p != t->rank && c < CHANNELS; c++) {
            free(sends[p][c].tail);
            free(sends[p][c].slots);
        }
    }
}

/* One message more, if there is a slot for it. */
static rondo_result_t push(const trial_t *t, rd_send_t *s, int channel, int *moved)
{
    uint64_t key = message_seed(t->rank, s->peer, channel, s->sent);
    size_t bytes = message_bytes(key);
    rd_ring_t ring = rd_send_ring(s, bytes);
    if (s->sent == (uint64_t)t->messages || s->sent - atomic_load(&s->head->value) > ring.mask) {
        return RONDO_SUCCESS;
    }
    fill(rd_ring_slot(ring, s->slot), bytes, key);
    s->sent++;
    atomic_store(&s->tail->value, s->sent);
    *moved = 1;
    return s->ops->post(s, bytes, rand() % 3 == 0);
}

/* Reads one message, now or later: a rank that dawdles lets the slots fill. */
static rondo_result_t cma(const trial_t *t, rd_recv_t *r, int channel, int *moved, int *wrong)
{
    if (r->received == (uint64_t)t->messages || r->received == atomic_load(&r->tail->value) || rand() % 4 == 0) {
        return RONDO_SUCCESS;
    }
    uint64_t key = message_seed(r->peer, t->rank, channel, r->received);
    size_t bytes = message_bytes(key);
    if (!same(rd_recv_slot(r, bytes, r->received), bytes, key)) {
        fprintf(stderr, "rank %d: message %llu from rank %d on channel %d is wrong\n", t->rank,
                (unsigned long long)r->received, r->peer, channel);
        *wrong = 1;
    }
    r->received++;
    *moved = 1;
    return r->ops->credit(r, bytes);
}

/* Of a message that is sent: nothing is known of its memory, or that it is part of all, or nothing but the message. */
static rd_net_memory_t whole_of(const trial_t *t, const window_t *w, void *data, size_t bytes, uint64_t key)
{
    switch (t->offers == 2 ? 1 + (key >> 40 & 1) : t->offers ? key >> 40 & 3 : 0) {
    case 0:
        return (rd_net_memory_t){NULL, 0, 0};
    case 1:
        return (rd_net_memory_t){data, bytes, 0};
    default:
        return (rd_net_memory_t){w->memory, (size_t)RD_GDR_MOST * SLOT_BYTES, 1 + (key >> 42 & 31)};
    }
}

static rondo_result_t begin(const trial_t *t, rd_transport_t *net, window_t *w, int peer, int send)
{
    uint64_t key = message_seed(send ? t->rank : peer, send ? peer : t->rank, STRAIGHT, w->begun);
    uint64_t number = w->begun++, at = number % RD_GDR_MOST;
    char *data = w->memory + at * SLOT_BYTES;
    size_t bytes = message_bytes(key) % SLOT_BYTES + 1;
    bytes += t->ending == MISMATCHED && t->rank == 1 && send && number == ODD;
    rd_gdr_message_t message = {peer, send, 0, data, bytes, &w->pending[at], {NULL, 0, 0}};
    if (send) {
        fill(data, bytes, key);
        message.whole = whole_of(t, w, data, bytes, key);
    }
    atomic_store(&w->pending[at], 1);
    return net->ops->gdr(net, &message);
}

/* Ends what has come or gone past connections, and begins some more, now or later: so now the sender is first, now the
 * receiver. */
static rondo_result_t gdr_flying(const trial_t *t, rd_transport_t *net, int peer, int send, uint64_t most, int *moved,
                                 int *wrong)
{
    window_t *w = &windows[peer][send];
    int from = send ? t->rank : peer, to = send ? peer : t->rank;
    while (w->over < w->begun && atomic_load(&w->pending[w->over % RD_GDR_MOST]) == 0) {
        uint64_t key = message_seed(from, to, STRAIGHT, w->over);
        size_t bytes = message_bytes(key) % SLOT_BYTES + 1;
        if (!send && !same(w->memory + w->over % RD_GDR_MOST * SLOT_BYTES, bytes, key)) {
            fprintf(stderr, "rank %d: message %llu by GDR from rank %d is wrong\n", t->rank,
                    (unsigned long long)w->over, peer);
            *wrong = 1;
        }
        w->over++;
        *moved = 1;
    }
    for (int i = rand() % BURST; i > 0 && w->begun < most && w->begun - w->over < RD_GDR_MOST; i--) {
        *moved = 1;
        rondo_result_t result = begin(t, net, w, peer, send);
        if (result != RONDO_SUCCESS) {
            return result;
        }
    }
    return RONDO_SUCCESS;
}

/* Until all messages have been sent and read, or something stops it. */
static rondo_result_t exchange(rd_transport_t *net, rd_stop_t *stop, const trial_t *t, int *wrong)
{
    rondo_result_t result = RONDO_SUCCESS;
    rd_wait_t wait;
    int open = 1;
    rd_wait_begin(&wait, stop, 0, 20000);
    while (result == RONDO_SUCCESS && !*wrong && (open || !rd_transport_idle(net))) {
        int moved = rd_transport_progress(net);
        if (t->ending == MISMATCHED && t->rank == 1 && rd_transport_farewell(net, 0) != RONDO_IN_PROGRESS) {
            return rd_transport_farewell(net, 0);
        }
        open = 0;
        for (int p = 0; p < t->nranks; p++) {
            for (int c = 0; p != t->rank && c < CHANNELS && result == RONDO_SUCCESS; c++) {
                result = push(t, &sends[p][c], c, &moved);
                if (result == RONDO_SUCCESS) {
                    result = cma(t, &recvs[p][c], c, &moved, wrong);
                }
                open |= sends[p][c].sent != (uint64_t)t->messages || recvs[p][c].received != (uint64_t)t->messages;
            }
            for (int s = 0; p != t->rank && !t->no_gdr && s < 2 && result == RONDO_SUCCESS; s++) {
                result = gdr_flying(t, net, p, s, (uint64_t)t->messages, &moved, wrong);
                open |= windows[p][s].over != (uint64_t)t->messages;
            }
        }
        if (moved) {
            rd_wait_progress(&wait);
        } else if (result == RONDO_SUCCESS) {
            result = rd_wait_backoff(&wait);
        }
    }
    return result;
}

/* Nothing comes into memory that was taken back, be it that it was just asked for. */
static int touched(rd_transport_t *net, const trial_t *t)
{
    static char was[MOST_RANKS][RD_GDR_MOST * SLOT_BYTES];
    int64_t until = rd_clock_ms() + 100;
    int wrong = 0, moved;
    for (int i = 0; i < 40; i++) {
        int p = i % t->nranks;
        (void)(p == t->rank || gdr_flying(t, net, p, 0, UINT64_MAX, &moved, &wrong));
    }
    rd_transport_cancel(net);
    if (t->offers == 2 && rd_transport_zcopy_peer(net) >= 0) { /* UCX 1.13 keeps some of what it has announced itself */
        fprintf(stderr, "rank %d: rank %d still has what was taken back\n", t->rank, rd_transport_zcopy_peer(net));
        wrong = 1;
    }
    for (int p = 0; p < t->nranks; p++) {
        if (p != t->rank) {
            memcpy(was[p], windows[p][0].memory, sizeof was[p]);
        }
    }
    while (rd_clock_ms() < until) {
        if (rd_transport_progress(net) == 0) {
            sched_yield();
        }
    }
    for (int p = 0; p < t->nranks; p++) {
        wrong |= p != t->rank && memcmp(was[p], windows[p][0].memory, sizeof was[p]) != 0;
    }
    if (wrong) {
        fprintf(stderr, "rank %d: something came into memory that was taken back\n", t->rank);
    }
    return wrong;
}

static int entries(const char *folder)
{
    DIR *dir = opendir(folder);
    int n = 0;
    while (dir != NULL && readdir(dir) != NULL) {
        n++;
    }
    closedir(dir);
    return n;
}

/* A thread that was joined stays in /proc until the kernel has ended it. */
static int leftovers(int fds, int threads)
{
    for (int i = 0; i < 100 && (entries("/proc/self/task") > threads || entries("/proc/self/fd") > fds); i++) {
        usleep(10000);
    }
    return entries("/proc/self/task") > threads || entries("/proc/self/fd") > fds;
}

/* Judges what stopped the exchange. Rank 1 is the one that goes; in BLAMING it is rank 1 that blames rank 2. */
static int judge(const trial_t *t, rondo_result_t result, rd_stop_t *stop)
{
    int failed_rank = atomic_load(&stop->failed_rank);
    int expected = t->ending == BLAMING ? 2 : 1;
    if (t->ending == MISMATCHED && (result == RONDO_ERR_MISMATCH || (t->rank == 1 && failed_rank == 0))) {
        return 0; /* rank 0 has left, be it before all that it had sent was here */
    }
    if (t->ending == WHOLE ? result == RONDO_SUCCESS : result == RONDO_ERR_REMOTE && failed_rank == expected) {
        return 0;
    }
    fprintf(stderr, "rank %d: ended with %s, failed rank %d\n", t->rank, rondo_result_string(result), failed_rank);
    return 1;
}

typedef struct shared {
    net_id_t id;
    _Atomic int ready; /* ranks that have their network */
    _Atomic int ended; /* ranks whose exchange has ended */
} shared_t;

static int gives_up(const trial_t *t)
{
    return t->rank == 1 && (t->ending == ABORTED || t->ending == BLAMING);
}

/* A rank that closes what it has is one more that goes: none does before all others have seen rank 1 go. */
static void wait_for_survivors(const trial_t *t, shared_t *shared)
{
    int survivors = t->ending == KILLED ? t->nranks - 1 : t->nranks;
    if (t->ending == WHOLE || t->ending == MISMATCHED) {
        return;
    }
    while (atomic_load(&shared->ended) < survivors) {
        sched_yield();
    }
}

static int rank_main(const trial_t *t, shared_t *shared)
{
    static net_rank_t self = {.ctx = {.name = "net"}};
    int wrong = 0;
    alarm(60);
    srand((unsigned)seed + (unsigned)t->rank);
    setenv("RONDO_UCX_RNDV_THRESH", t->rendezvous, 1);
    self.ctx.rank = t->rank;
    self.ctx.nranks = t->nranks;
    if (net_rank_meet(&self, &shared->id)) {
        return 1;
    }
    int fds = entries("/proc/self/fd"), threads = entries("/proc/self/task");
    if (net_rank_join(&self) || bind_all(self.net, t)) {
        return 1;
    }
    atomic_fetch_add(&shared->ready, 1);
    rondo_result_t result = exchange(self.net, &self.stop, t, &wrong);
    atomic_fetch_add(&shared->ended, 1);
    if (gives_up(t)) {
        /* Its part was short: see main. Now it goes. */
        rd_stop_set(&self.stop, &self.ctx, t->ending == ABORTED ? RONDO_ERR_ABORTED : RONDO_ERR_REMOTE,
                    t->ending == ABORTED ? -1 : 2, "%s", "this rank gives up, as the test wants it");
    } else {
        wrong |= judge(t, result, &self.stop);
    }
    if (t->ending != WHOLE) {
        wrong |= touched(self.net, t);
    }
    if (!gives_up(t)) {
        wait_for_survivors(t, shared);
    }
    self.net->ops->destroy(self.net);
    unbind_all(t);
    int none = played_got() == 0 && t->ending != MISMATCHED; /* rank 0 may be gone before that */
    if (t->offers && (none || played_get_left() != 0)) {
        fprintf(stderr, "rank %d: fetched %d by keys, and has %d keys and requests left\n", t->rank, played_got(),
                played_get_left());
        wrong = 1;
    }
    if (leftovers(fds, threads)) {
        fprintf(stderr, "rank %d: descriptors or threads are left\n", t->rank);
        wrong = 1;
    }
    if (gives_up(t)) { /* only its network's farewell says why: where its bootstrap ends without one, it has died */
        wait_for_survivors(t, shared);
    }
    rd_boot_destroy(self.boot);
    return wrong;
}

static int trial(trial_t t)
{
    pid_t pids[MOST_RANKS];
    int failed = 0;
    int endless = t.messages * 1000;
    shared_t *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return 1;
    }
    fflush(NULL);
    for (int r = 0; r < t.nranks; r++) {
        pids[r] = fork();
        if (pids[r] == 0) {
            t.rank = r;
            /* Who is to survive sees a failure in the middle, never the end. */
            if (t.ending == KILLED || (t.ending > KILLED && r != 1)) {
                t.messages = endless;
            }
            exit(rank_main(&t, shared));
        }
    }
    if (t.ending == KILLED) {
        for (int i = 0; i < 20000 && atomic_load(&shared->ready) < t.nranks; i++) {
            usleep(1000);
        }
        usleep(20000 + (useconds_t)(seed % 7) * 30000);
        kill(pids[1], SIGKILL);
    }
    for (int r = 0; r < t.nranks; r++) {
        int status = -1;
        waitpid(pids[r], &status, 0);
        int killed = t.ending == KILLED && r == 1 && WIFSIGNALED(status);
        if (!killed && status != 0) {
            fprintf(stderr,
                    "trial of %d ranks, %d slots, ending %d, offers %d, seed %llu: rank %d ended with status %x\n",
                    t.nranks, t.slots, t.ending, t.offers, (unsigned long long)seed, r, status);
            failed = 1;
        }
    }
    munmap(shared, sizeof *shared);
    return failed;
}

static int with_deaths(void)
{
    int none = rd_transport_ucx.fragile() != NULL; /* what is sent straight is announced, too */
    const char *many = none ? "inf" : "5000", *some = none ? "inf" : "auto";
    int failed = 0;

    failed |= trial((trial_t){3, 0, 4, 50, KILLED, some, none, 0});
    failed |= trial((trial_t){3, 0, 4, 50, KILLED, many, none, 0});
    failed |= trial((trial_t){2, 0, 4, 20, ABORTED, some, none, 0});
    failed |= trial((trial_t){4, 0, 4, 20, BLAMING, many, none, 0});
    failed |= trial((trial_t){3, 0, 4, 50, KILLED, some, 0, 2});
    failed |= trial((trial_t){3, 0, 4, 20, ABORTED, some, 0, 2});
    if (!none) {
        failed |= trial((trial_t){3, 0, 4, 20, BLAMING, some, 0, 1});
        failed |= trial((trial_t){2, 0, 4, 50, MISMATCHED, some, 0, 1});
        failed |= trial((trial_t){2, 0, 4, 50, MISMATCHED, some, 0, 0});
    }
    return failed;
}

int main(int argc, char **argv)
{
    rd_env_t env;
    int failed = 0;
    seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    alarm(120);
    setenv("RONDO_DEBUG", getenv("RONDO_TEST_LOUD") ? "info" : "none", 0);
    if (rd_env_read(&env)) {
        return 1;
    }
    failed |= trial((trial_t){.nranks = 2, .slots = 1, .messages = 60, .rendezvous = "auto"});
    failed |= trial((trial_t){.nranks = 3, .slots = 2, .messages = 60, .rendezvous = "5000"});
    failed |= trial((trial_t){.nranks = 4, .slots = 8, .messages = 60, .rendezvous = "60000"});
    failed |= trial((trial_t){.nranks = 2, .slots = 64, .messages = 100, .rendezvous = "inf"});
    failed |= trial((trial_t){.nranks = 2, .slots = 64, .messages = 300, .rendezvous = "inf", .offers = 1});
    failed |= trial((trial_t){.nranks = 4, .slots = 8, .messages = 100, .rendezvous = "5000", .offers = 1});
    return failed | with_deaths();
}
