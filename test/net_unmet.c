/* In a communicator of so many ranks that they do not greet each other, two that have never met: one has a message past
 * connections for the other, by a key, and nothing else ever goes between them. UCX is played (played_get.c). */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net.h"

#define RANKS 66 /* more than greet each other */
#define BYTES 70000

typedef struct {
    _Atomic int made, ended;
    rondo_unique_id_t id;
} shared_t;

static rd_who_t who = {.name = "net_unmet", .nranks = RANKS};
static rd_stop_t stop;

/* Rank 0 sends, the last one but one receives: neither is the other's neighbour. */
static int exchange(rd_net_t *net, int rank)
{
    static char memory[BYTES];
    int send = rank == 0, peer = send ? RANKS - 2 : 0, wrong = 0;
    _Atomic int pending = 1;
    rd_net_direct_t m = {peer, send, 0, memory, BYTES, &pending, {NULL, 0, 0}};
    if (send) {
        memset(memory, 7, BYTES);
        m.whole = (rd_net_memory_t){memory, BYTES, 1};
    }
    wrong = rd_net_direct(net, &m) != RONDO_SUCCESS;
    while ((atomic_load(&pending) != 0 || !rd_net_idle(net)) && !wrong) {
        (void)rd_net_progress(net);
        wrong = rd_stop_get(&stop) != RONDO_SUCCESS;
        sched_yield();
    }
    return wrong || memory[0] != 7 || memory[BYTES - 1] != 7;
}

static int one_rank(shared_t *shared, int rank)
{
    static unsigned char remote[RANKS];
    rd_boot_t *boot;
    rd_net_t *net;
    rd_env_t env;
    who.rank = rank;
    atomic_store(&stop.culprit, -1);
    for (int r = 0; r < RANKS; r++) {
        remote[r] = r != rank;
    }
    if (rd_env_read(&env)) {
        return 1;
    }
    if (rank == 0) {
        (void)rd_boot_id_create(&shared->id, &env); /* carries the error on failure */
        atomic_store(&shared->made, 1);
    }
    while (!atomic_load(&shared->made)) {
        usleep(1000);
    }
    if (rd_boot_create(&boot, &shared->id, rank, RANKS, &env, &who, &stop) ||
        rd_net_create(&net, boot, rank, RANKS, remote, &env, &who, &stop)) {
        return 1;
    }
    int wrong = rank == 0 || rank == RANKS - 2 ? exchange(net, rank) : 0;
    atomic_fetch_add(&shared->ended, 1);
    while (atomic_load(&shared->ended) < RANKS) {
        usleep(1000);
    }
    rd_net_destroy(net);
    rd_boot_destroy(boot);
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
