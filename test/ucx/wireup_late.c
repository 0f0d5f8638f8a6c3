/* In a communicator of so many ranks that they do not greet each other, two that have never met: one has a message past
 * connections for the other, by a key, and nothing else ever goes between them. UCX is played (played_get.c). */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/net_rank.h"

#define RANKS 66 /* more than greet each other */
#define BYTES 70000

typedef struct {
    net_id_t id;
    _Atomic int ended;
} shared_t;

static net_rank_t self = {.ctx = {.name = "net_unmet", .nranks = RANKS}};

/* Rank 0 sends, the last one but one receives: neither is the other's neighbour. */
static int exchange(int rank)
{
    static char memory[BYTES];
    int send = rank == 0, peer = send ? RANKS - 2 : 0, wrong = 0;
    _Atomic int pending = 1;
    rd_gdr_message_t m = {peer, send, 0, memory, BYTES, &pending, {NULL, 0, 0}};
    if (send) {
        memset(memory, 7, BYTES);
        m.whole = (rd_net_memory_t){memory, BYTES, 1};
    }
    wrong = self.net->ops->gdr(self.net, &m) != RONDO_SUCCESS;
    while ((atomic_load(&pending) != 0 || !rd_transport_idle(self.net)) && !wrong) {
        (void)rd_transport_progress(self.net);
        wrong = rd_stop_get(&self.stop) != RONDO_SUCCESS;
        sched_yield();
    }
    return wrong || memory[0] != 7 || memory[BYTES - 1] != 7;
}

static int one_rank(shared_t *shared, int rank)
{
    self.ctx.rank = rank;
    if (net_rank_meet(&self, &shared->id) || net_rank_join(&self)) {
        return 1;
    }
    int wrong = rank == 0 || rank == RANKS - 2 ? exchange(rank) : 0;
    atomic_fetch_add(&shared->ended, 1);
    while (atomic_load(&shared->ended) < RANKS) {
        usleep(1000);
    }
    net_rank_leave(&self);
    return wrong;
}

int main(void)
{
    shared_t *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int wrong = 0, status;
    if (shared == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    for (int rank = 1; rank < RANKS; rank++) {
        if (fork() == 0) {
            alarm(60);
            _exit(one_rank(shared, rank));
        }
    }
    alarm(60);
    wrong = one_rank(shared, 0);
    while (wait(&status) > 0) {
        wrong |= status != 0;
    }
    return wrong;
}
