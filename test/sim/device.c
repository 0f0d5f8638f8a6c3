/* rondo_device.cuh alone on the machine made of threads: barriers, signals and puts by blocks, warps and threads are
 * right with every seed, over several launches that are alike, as a graph's replays are. Planted faults are found:
 * fences that do nothing, a barrier and a signal that are not waited for. A kernel leaves where the host says so, where
 * time is up, and where it asks for what does not exist; what comes behind it leaves, too.
 *
 *   device [SEEDS [RANKS]]   with so many: only what is right, by 2 to RANKS ranks */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device_kernels.h"
#include "kernels/work.h"
#include "sim/machine.h"

#define BLOCKS 2
#define LAUNCHES 3
#define ROUNDS 3
#define BARRIERS LITMUS_UNITS_MOST
#define MOST 4

typedef struct {
    uint32_t n, words;
    uint32_t area[MOST][BARRIERS * RONDO_DEVICE_RANKS + RONDO_DEVICE_RANKS * 64];
    uint32_t own[MOST][BARRIERS + RONDO_DEVICE_RANKS * 64];
    uint32_t round[MOST][LITMUS_UNITS_MOST], wrong[MOST], left[MOST];
    rd_khost_t host[MOST];
    char *window[MOST], *source[MOST];
    litmus_work_t work[MOST];
    rd_sim_launch_t launch[MOST * LAUNCHES];
} world_t;

static world_t w;
static char text[16384];

static const char *const kinds[] = {"barrier", "read", "signal", "set", "add"};
static const char *const groups[] = {"blocks", "warps", "threads"};

static void *memory(size_t bytes)
{
    void *p = aligned_alloc(128, (bytes + 127) / 128 * 128);

    if (!p)
        abort();
    return memset(p, 0, (bytes + 127) / 128 * 128);
}

static void rank_begin(uint32_t r, litmus_kind_t kind, litmus_group_t group)
{
    litmus_t *l = &w.work[r].is.litmus;

    l->device.size = sizeof l->device;
    l->device.rank = (int32_t)r;
    l->device.nranks = (int32_t)w.n;
    l->device.barriers = BARRIERS;
    l->device.signals = litmus_signals();
    l->device.own = w.own[r];
    l->device.host = &w.host[r].abort;
    for (uint32_t p = 0; p < w.n; p++) {
        l->device.area[p] = w.area[p];
        l->window.base[p] = w.window[p];
        l->window.bytes[p] = litmus_window_bytes(w.n, w.words);
    }
    l->source = (uint32_t *)(void *)w.source[r];
    l->round = w.round[r];
    l->wrong = &w.wrong[r];
    l->left = &w.left[r];
    l->kind = (uint32_t)kind;
    l->group = (uint32_t)group;
    l->rounds = ROUNDS;
    l->words = w.words;
    l->shift = w.words % 3 * 4;
    ((rd_kwork_t *)(void *)&w.work[r])->comm.rank = (int32_t)r; /* the machine speaks of it */
    for (int i = 0; i < LAUNCHES; i++)
        w.launch[r * LAUNCHES + (uint32_t)i] =
            (rd_sim_launch_t){litmus_kernel(), BLOCKS, LITMUS_THREADS, 0, &w.work[r], 0};
}

static void begin(uint32_t n, litmus_kind_t kind, litmus_group_t group, uint64_t seed)
{
    memset(&w, 0, sizeof w);
    w.n = n;
    w.words = (uint32_t)(1 + seed * 7 % 31);
    for (uint32_t r = 0; r < n; r++) {
        w.window[r] = memory(litmus_window_bytes(n, w.words));
        w.source[r] = memory(litmus_source_bytes(w.words));
    }
    for (uint32_t r = 0; r < n; r++)
        rank_begin(r, kind, group);
}

static void end(void)
{
    for (uint32_t r = 0; r < w.n; r++) {
        free(w.window[r]);
        free(w.source[r]);
    }
}

/* Returns the number of words that are wrong and of groups that have left or have not done all rounds; -1: stuck. */
static int run(litmus_kind_t kind, litmus_group_t group, uint64_t seed)
{
    const uint32_t units = litmus_units(kind == LITMUS_ADD ? LITMUS_BY_WARP : (uint32_t)group, BLOCKS);
    int bad = 0;

    text[0] = 0;
    if (rd_sim_queues(w.launch, (int)w.n, LAUNCHES, seed, text, sizeof text) != 0)
        return -1;
    for (uint32_t r = 0; r < w.n; r++) {
        bad += (int)(w.wrong[r] + w.left[r]);
        for (uint32_t u = 0; u < units; u++)
            bad += w.round[r][u] != ROUNDS * LAUNCHES;
    }
    return bad;
}

static int right(uint64_t seeds, uint32_t most)
{
    for (uint64_t seed = 1; seed <= seeds; seed++)
        for (uint32_t n = 1; n <= most; n++)
            for (int kind = 0; kind < LITMUS_KINDS; kind++)
                for (int group = 0; group < (kind == LITMUS_ADD ? 1 : LITMUS_GROUPS); group++) {
                    begin(n, (litmus_kind_t)kind, (litmus_group_t)group, seed);
                    int bad = run((litmus_kind_t)kind, (litmus_group_t)group, seed);
                    end();
                    if (bad) {
                        printf("%s by %s, %u ranks, seed %llu: %d wrong\n%s", kinds[kind], groups[group], n,
                               (unsigned long long)seed, bad, text);
                        return 1;
                    }
                }
    printf("barriers, reads, signals, values and sums, 1 to %u ranks, %llu seeds: right\n", most,
           (unsigned long long)seeds);
    return 0;
}

/* The words that rank 0 waits for. */
static void plant(rd_sim_fault_t fault, litmus_kind_t kind)
{
    const uint32_t *barriers = w.area[0], *signals = barriers + (size_t)BARRIERS * RONDO_DEVICE_RANKS;

    if (kind == LITMUS_BARRIER || kind == LITMUS_READ)
        rd_sim_break(fault, barriers, signals);
    else
        rd_sim_break(fault, signals, w.area[1]);
}

static int planted(rd_sim_fault_t fault, const char *what)
{
    int missed = 0;

    for (int kind = 0; kind < LITMUS_KINDS; kind++)
        for (int group = 0; group < (kind == LITMUS_ADD ? 1 : LITMUS_GROUPS); group++) {
            int found = 0;
            if (kind == LITMUS_READ && fault == RD_SIM_NO_FENCE)
                continue; /* the machine lets plain stores out at once */
            for (uint64_t seed = 1; seed <= 40 && !found; seed++) {
                begin(3, (litmus_kind_t)kind, (litmus_group_t)group, 8 + seed % 3 * 4);
                plant(fault, (litmus_kind_t)kind);
                found = run((litmus_kind_t)kind, (litmus_group_t)group, seed) != 0;
                rd_sim_break(RD_SIM_SOUND, NULL, NULL);
                end();
            }
            printf("%s, %s by %s: %s\n", what, kinds[kind], groups[group], found ? "found" : "NOT FOUND");
            missed += !found;
        }
    return missed;
}

/* Rank 0 alone comes; every launch of it leaves, and the host's words say why. */
static int leaves(const char *what, litmus_kind_t kind, uint32_t abort, uint32_t timeout, uint32_t failed,
                  uint32_t late)
{
    int bad;

    begin(2, kind, LITMUS_BY_BLOCK, 1);
    w.host[0].abort = abort;
    w.host[0].timeout_ms = timeout;
    bad = rd_sim_queues(w.launch, kind == LITMUS_NOTHING ? 2 : 1, LAUNCHES, 5, text, sizeof text) != 0 ||
          w.left[0] < BLOCKS || w.host[0].failed != failed || (failed != RD_KFAILED_ABORT && w.host[0].late != late);
    end();
    printf("%s: %s\n%s", what, bad ? "WRONG" : "right", bad ? text : "");
    return bad;
}

int main(int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 0) : 12;
    uint32_t most = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : MOST;
    int bad = right(seeds, most < MOST ? most : MOST);

    if (argc > 1 || bad)
        return bad != 0;
    bad += planted(RD_SIM_NO_FENCE, "no fence");
    bad += planted(RD_SIM_NO_GATE, "not waited for");
    bad += leaves("aborted", LITMUS_NOTHING, 1, 0, RD_KFAILED_ABORT, 0);
    bad += leaves("time is up", LITMUS_NOTHING, 0, 30, RD_KFAILED_TIMEOUT, 1);
    bad += leaves("no such barrier", LITMUS_NOWHERE, 0, 0, RD_KFAILED_ARGUMENT, 0);
    bad += leaves("beyond a window", LITMUS_BEYOND, 0, 0, RD_KFAILED_ARGUMENT, 3);
    return bad != 0;
}
