/* What messages past connections cost a processor, by `gdr` of UCX's transport between two processes: host memory,
 * which the played UCX of played_get.c fetches as a device's is fetched. Not a test: for eyes, and for strace, which
 * counts what is said.
 *
 *   gdr_cost [BYTES [ROUNDS [GROUP [0: each announced by UCX]]]]
 *   strace -f -c -e trace=sendto,sendmsg,recvfrom test/ucx/gdr_cost 16384 300 64
 *
 * As a kernel does it, eight are named at once, and up to four times eight are under way.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/net_rank.h"

#define MOST 4096
#define AT_ONCE 8

static size_t bytes = 16384;
static int rounds = 1000, group = 64, known = 1, rank;
static net_rank_t self = {.ctx = {.name = "gdr_cost", .nranks = 2}};

/* One direction. */
typedef struct {
    int begun, over;
    _Atomic int pending[MOST];
} lane_t;
static lane_t lanes[2];

static int begin(char *memory, int send)
{
    lane_t *l = &lanes[send];
    int wrong = 0, until = l->begun + AT_ONCE < group ? l->begun + AT_ONCE : group;
    for (; l->begun < until && !wrong; l->begun++) {
        rd_gdr_message_t m = {!rank,       send, 0, memory + bytes * (size_t)send, bytes, &l->pending[l->begun],
                              {NULL, 0, 0}};
        if (send && known) {
            m.whole = (rd_net_memory_t){memory, 2 * bytes, 1};
        }
        atomic_store(m.pending, 1);
        wrong = self.net->ops->gdr(self.net, &m) != RONDO_SUCCESS;
    }
    return wrong;
}

static int one_round(char *memory)
{
    int wrong = 0;
    memset(lanes, 0, sizeof lanes);
    while ((lanes[0].over < group || lanes[1].over < group) && !wrong) {
        for (int w = 0; w < 2; w++) {
            lane_t *l = &lanes[w];
            while (l->over < l->begun && atomic_load(&l->pending[l->over]) == 0) {
                l->over++;
            }
            while (l->begun < group && l->begun - l->over <= RD_GDR_MOST - AT_ONCE && !wrong) {
                wrong = begin(memory, w);
            }
        }
        if (rd_transport_progress(self.net) == 0) {
            sched_yield();
        }
        wrong |= rd_stop_get(&self.stop) != RONDO_SUCCESS;
    }
    return wrong;
}

static int run(void)
{
    char *memory = calloc(2, bytes);
    int64_t began = 0;
    int wrong = 0;
    for (int r = -10; r < rounds && !wrong; r++) {
        began = r == 0 ? rd_clock_ms() : began;
        wrong = one_round(memory);
    }
    if (rank == 0 && !wrong) {
        printf("%zu bytes, groups of %d, announced %s: %.2f us a message each way\n", bytes, group,
               known ? "together" : "each by UCX", (double)(rd_clock_ms() - began) * 1000 / rounds / group);
    }
    free(memory);
    return wrong;
}

static int make_and_run(net_id_t *id)
{
    self.ctx.rank = rank;
    if (net_rank_meet(&self, id) || net_rank_join(&self)) {
        return 1;
    }
    int wrong = run();
    net_rank_leave(&self);
    return wrong;
}

int main(int argc, char **argv)
{
    net_id_t *id = mmap(NULL, sizeof *id, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bytes = argc > 1 ? strtoull(argv[1], NULL, 0) : bytes;
    rounds = argc > 2 ? atoi(argv[2]) : rounds;
    group = argc > 3 ? atoi(argv[3]) : group;
    known = argc > 4 ? atoi(argv[4]) : known;
    if (id == MAP_FAILED || bytes == 0 || rounds < 1 || group < 1 || group > MOST) {
        fprintf(stderr, "gdr_cost [BYTES [ROUNDS [GROUP, %d at most [0: each announced by UCX]]]]\n", MOST);
        return 2;
    }
    alarm(300);
    rank = fork() == 0;
    int wrong = make_and_run(id), status = 0;
    if (rank == 0) {
        wait(&status);
    }
    return wrong || status != 0;
}
