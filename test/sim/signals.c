/* The kernels of one-sided operations alone on the machine made of threads: puts with signals, and waits for them, are
 * right with every seed, over several rounds, of which each has memory of its own. Planted faults are found: fences
 * that do nothing, and signals that are not waited for. A wait that has to leave says why, what comes behind it leaves,
 * too, and a put behind it puts nothing.
 *
 * Each rank puts to the next one, which passes on what has come, behind the signal alone, to the one after it: so the
 * second put is right only if the first one was before its signal. What was read is said back before it is overwritten.
 *
 *   signals [SEEDS [RANKS]]   with so many: only what is right, by 2 to RANKS ranks */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/launch.h"
#include "sim/machine.h"

#define MOST 4
#define ROUNDS 3
#define STEPS 7 /* launches of a round */
#define WORDS 200

enum { DATA = 3, PASSED = 300, BACK = 511 }; /* numbers of signals */

typedef struct {
    uint32_t n, words;
    rd_kcontrol_t *window[MOST];
    uint32_t *source[MOST], *come[MOST], *passed[MOST];
    rd_khost_t host[MOST];
    rd_kwork_t work[MOST][STEPS * ROUNDS];
    rd_sim_launch_t launch[MOST * STEPS * ROUNDS];
} world_t;

static world_t w;
static char text[16384];

static void *memory(size_t bytes)
{
    void *p = aligned_alloc(128, (bytes + 127) / 128 * 128);

    if (!p)
        abort();
    return memset(p, 0, (bytes + 127) / 128 * 128);
}

static rd_sim_launch_t launch_of(rd_kernel_t kernel, const rd_kwork_t *work, uint64_t seed)
{
    const rd_klaunch_t launch = {.kernel = kernel, .blocks = 1};
    const unsigned threads = kernel == RD_KERNEL_AWAIT ? RD_KAWAITED : 32 * (1 + (unsigned)(seed % 2));

    return (rd_sim_launch_t){rd_kernel_find(&launch, 1), 1, threads, 0, work, 0};
}

static void put(uint32_t r, int step, const void *from, void *to, uint32_t peer, uint32_t signal)
{
    w.work[r][step].put = (rd_kput_t){.from = from,
                                      .to = to,
                                      .bytes = from ? w.words * sizeof(uint32_t) : 0,
                                      .peer = peer,
                                      .signal = signal,
                                      .signals = 1};
}

static void await(uint32_t r, int step, uint32_t peer, uint32_t signal)
{
    w.work[r][step].await.n = 1;
    w.work[r][step].await.of[0].peer = (uint16_t)peer;
    w.work[r][step].await.of[0].signal = (uint16_t)signal;
    w.work[r][step].await.of[0].count = 1;
}

static void program(uint32_t r, int round, uint64_t seed)
{
    static const rd_kernel_t kernels[STEPS] = {RD_KERNEL_PUT, RD_KERNEL_AWAIT, RD_KERNEL_PUT,  RD_KERNEL_AWAIT,
                                               RD_KERNEL_PUT, RD_KERNEL_PUT,   RD_KERNEL_AWAIT};
    const uint32_t right = (r + 1) % w.n, left = (r + w.n - 1) % w.n;

    const int at = round * STEPS;
    const size_t words = (size_t)round * WORDS;

    put(r, at, w.source[r] + words, w.come[right] + words, right, DATA);
    await(r, at + 1, left, DATA);
    put(r, at + 2, w.come[r] + words, w.passed[right] + words, right, PASSED);
    await(r, at + 3, left, PASSED);
    put(r, at + 4, NULL, NULL, left, BACK);
    put(r, at + 5, NULL, NULL, right, BACK - 1);
    await(r, at + 6, right, BACK);
    w.work[r][at + 6].await.n = 2;
    w.work[r][at + 6].await.of[1].peer = (uint16_t)left;
    w.work[r][at + 6].await.of[1].signal = BACK - 1;
    w.work[r][at + 6].await.of[1].count = 1;
    for (int i = at; i < at + STEPS; i++)
        w.launch[r * STEPS * ROUNDS + (uint32_t)i] = launch_of(kernels[i - at], &w.work[r][i], seed);
}

static void begin(uint32_t n, uint64_t seed)
{
    memset(&w, 0, sizeof w);
    w.n = n;
    w.words = 1 + (uint32_t)(seed * 37 % WORDS);
    for (uint32_t r = 0; r < n; r++) {
        w.window[r] = memory(sizeof *w.window[r]);
        w.source[r] = memory(ROUNDS * WORDS * sizeof(uint32_t));
        w.come[r] = memory(ROUNDS * WORDS * sizeof(uint32_t));
        w.passed[r] = memory(ROUNDS * WORDS * sizeof(uint32_t));
        for (uint32_t i = 0; i < ROUNDS * WORDS; i++)
            w.source[r][i] = r * 1000 + i + 1;
    }
    for (uint32_t r = 0; r < n; r++) {
        for (int i = 0; i < STEPS * ROUNDS; i++) {
            rd_kcomm_t *k = &w.work[r][i].comm;
            for (uint32_t p = 0; p < n; p++)
                k->window[p] = (char *)w.window[p];
            k->own = (char *)w.window[r];
            k->host = &w.host[r];
            k->rank = (int32_t)r;
            k->nranks = (int32_t)n;
        }
        for (int round = 0; round < ROUNDS; round++)
            program(r, round, seed);
    }
}

static void end(void)
{
    for (uint32_t r = 0; r < w.n; r++) {
        free(w.window[r]);
        free(w.source[r]);
        free(w.come[r]);
        free(w.passed[r]);
    }
}

/* Returns how many words are wrong; -1: stuck. */
static int run(uint64_t seed)
{
    int bad = 0;

    text[0] = 0;
    if (rd_sim_queues(w.launch, (int)w.n, STEPS * ROUNDS, seed, text, sizeof text) != 0)
        return -1;
    for (uint32_t r = 0; r < w.n; r++) {
        const uint32_t left = (r + w.n - 1) % w.n, before = (r + w.n - 2) % w.n;
        bad += w.window[r]->signals.come[left][DATA] != ROUNDS;
        bad += w.window[r]->signals.awaited[left][DATA] != ROUNDS || w.host[r].failed;
        for (uint32_t i = 0; i < ROUNDS * WORDS; i++) {
            if (i % WORDS >= w.words)
                continue;
            bad += w.come[r][i] != left * 1000 + i + 1;
            bad += w.passed[r][i] != before * 1000 + i + 1;
        }
    }
    return bad;
}

static int right(uint64_t seeds, uint32_t most)
{
    for (uint64_t seed = 1; seed <= seeds; seed++)
        for (uint32_t n = 2; n <= most; n++) {
            begin(n, seed);
            const int bad = run(seed);
            end();
            if (bad) {
                printf("%u ranks, seed %llu: %d wrong\n%s", n, (unsigned long long)seed, bad, text);
                return 1;
            }
        }
    printf("puts, signals and waits, 2 to %u ranks, %llu seeds: right\n", most, (unsigned long long)seeds);
    return 0;
}

static int planted(rd_sim_fault_t fault, const char *what)
{
    int found = 0;

    for (uint64_t seed = 1; seed <= 40 && !found; seed++) {
        begin(3, seed);
        rd_sim_break(fault, &w.window[0]->signals.come, &w.window[0]->signals.awaited);
        found = run(seed) != 0;
        rd_sim_break(RD_SIM_SOUND, NULL, NULL);
        end();
    }
    printf("%s: %s\n", what, found ? "found" : "NOT FOUND");
    return !found;
}

/* Rank 0 alone comes: it waits in vain, and what it puts then is not put. */
static int leaves(const char *what, uint32_t abort, uint32_t timeout, uint32_t failed)
{
    begin(2, 1);
    w.host[0].abort = abort;
    w.host[0].timeout_ms = timeout;
    const int bad = rd_sim_queues(w.launch, 1, STEPS, 5, text, sizeof text) != 0 || w.host[0].failed != failed ||
                    w.come[1][0] != 1 || w.passed[1][0] != 0 || w.window[1]->signals.come[0][DATA] != 1 ||
                    w.window[1]->signals.come[0][PASSED] != 0 || w.window[0]->signals.awaited[1][DATA] != 0 ||
                    (timeout && w.host[0].late != 1);
    end();
    printf("%s: %s\n%s", what, bad ? "WRONG" : "right", bad ? text : "");
    return bad;
}

int main(int argc, char **argv)
{
    const uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 0) : 25;
    const uint32_t most = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : MOST;
    int bad = right(seeds, most < MOST ? most : MOST);

    if (argc > 1 || bad)
        return bad != 0;
    bad += planted(RD_SIM_NO_FENCE, "no fence");
    bad += planted(RD_SIM_NO_GATE, "not waited for");
    bad += leaves("aborted", 1, 0, RD_KFAILED_ABORT);
    bad += leaves("time is up", 0, 30, RD_KFAILED_TIMEOUT);
    return bad != 0;
}
