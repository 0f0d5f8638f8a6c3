/* Is what the machine of test/sim says worth anything? Kernels that are wrong on purpose must be found: fences that do
 * nothing, lines that are not put back, lines that arrive in parts, a writer that does not wait for the peer's epoch, a
 * rank that counts banks otherwise. Each is tried with some seeds and must be found with one of them at least; without
 * the fault the same runs must be right, and a seed gives the same one whenever it runs. Then, kernels that are told to
 * leave must leave and say why, and what comes behind them must not take their place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/algo/algos.h"
#include "sim/world_int.h"

#define SEEDS 12

typedef struct plant {
    const char *what;
    rd_sim_fault_t fault;
    const rd_algo_t *algo;
    rd_proto_t proto;
    rd_coll_t coll;
    uint32_t passes;
    int wrong_bank;
    uint32_t banks;
    int fused; /* many operations, short or by chain, as many as possible in each launch */
} plant_t;

static const plant_t plants[] = {
    {"no fence, one-shot", RD_SIM_NO_FENCE, &rd_algo_oneshot, RD_PROTO_SENTINEL, RD_ALLREDUCE, 8, 0, 0, 0},
    {"no fence, two-shot", RD_SIM_NO_FENCE, &rd_algo_twoshot, RD_PROTO_LL128, RD_ALLREDUCE, 8, 0, 0, 0},
    {"no fence, two-shot reduce", RD_SIM_NO_FENCE, &rd_algo_twoshot, RD_PROTO_SENTINEL, RD_REDUCE, 8, 0, 0, 0},
    {"no fence, two-shot broadcast", RD_SIM_NO_FENCE, &rd_algo_twoshot, RD_PROTO_LL128, RD_BROADCAST, 8, 0, 0, 0},
    {"no fence, ring", RD_SIM_NO_FENCE, &rd_algo_ring, RD_PROTO_SENTINEL, RD_ALLGATHER, 10, 0, 0, 0},
    {"no fence amid a pass, ring of both banks", RD_SIM_NO_FENCE_1, &rd_algo_ring, RD_PROTO_SENTINEL, RD_ALLREDUCE, 10,
     0, 1, 0},
    {"no fence between passes, the same", RD_SIM_NO_FENCE_2, &rd_algo_ring, RD_PROTO_SENTINEL, RD_ALLREDUCE, 10, 0, 1,
     0},
    {"no clean, one-shot", RD_SIM_NO_CLEAN, &rd_algo_oneshot, RD_PROTO_LL, RD_ALLREDUCE, 4, 0, 0, 0},
    {"no clean, ring", RD_SIM_NO_CLEAN, &rd_algo_ring, RD_PROTO_LL128, RD_ALLREDUCE, 3, 0, 0, 0},
    {"torn lines, ring", RD_SIM_TORN_LINES, &rd_algo_ring, RD_PROTO_LL128, RD_ALLREDUCE, 4, 0, 0, 0},
    {"torn lines, two-shot", RD_SIM_TORN_LINES, &rd_algo_twoshot, RD_PROTO_LL128, RD_ALLREDUCE, 4, 0, 0, 0},
    {"torn lines, chain", RD_SIM_TORN_LINES, &rd_algo_chain, RD_PROTO_LL128, RD_BROADCAST, 12, 0, 0, 0},
    {"no gate, chain", RD_SIM_NO_GATE, &rd_algo_chain, RD_PROTO_LL128, RD_BROADCAST, 40, 0, 0, 0},
    {"no fence, chain by simple", RD_SIM_NO_FENCE, &rd_algo_chain, RD_PROTO_SIMPLE, RD_BROADCAST, 8, 0, 0, 0},
    {"no gate, chain by simple", RD_SIM_NO_GATE, &rd_algo_chain, RD_PROTO_SIMPLE, RD_BROADCAST, 12, 0, 0, 0},
    {"no fence, ring by simple", RD_SIM_NO_FENCE, &rd_algo_ring, RD_PROTO_SIMPLE, RD_ALLREDUCE, 4, 0, 0, 0},
    {"no gate, ring by simple", RD_SIM_NO_GATE, &rd_algo_ring, RD_PROTO_SIMPLE, RD_REDUCE_SCATTER, 12, 0, 0, 0},
    {"no gate, chain by LL", RD_SIM_NO_GATE, &rd_algo_chain, RD_PROTO_LL, RD_BROADCAST, 40, 0, 0, 0},
    {"torn lines, tree", RD_SIM_TORN_LINES, &rd_algo_tree, RD_PROTO_LL128, RD_ALLREDUCE, 12, 0, 0, 0},
    {"no gate, tree", RD_SIM_NO_GATE, &rd_algo_tree, RD_PROTO_LL128, RD_BROADCAST, 20, 0, 0, 0},
    {"torn lines, pat", RD_SIM_TORN_LINES, &rd_algo_pat, RD_PROTO_LL128, RD_REDUCE_SCATTER, 6, 0, 0, 0},
    {"no gate, binomial by LL", RD_SIM_NO_GATE, &rd_algo_binomial, RD_PROTO_LL, RD_SCATTER, 20, 0, 0, 0},
    {"no gate, one-shot", RD_SIM_NO_GATE, &rd_algo_oneshot, RD_PROTO_LL, RD_REDUCE, 2, 0, 0, 0},
    {"no gate, short ones together", RD_SIM_NO_GATE, &rd_algo_oneshot, RD_PROTO_LL, RD_REDUCE, 1, 0, 0, 1},
    {"no clean, short ones together", RD_SIM_NO_CLEAN, &rd_algo_oneshot, RD_PROTO_LL128, RD_ALLREDUCE, 1, 0, 0, 1},
    {"no gate, chains together", RD_SIM_NO_GATE, &rd_algo_chain, RD_PROTO_LL, RD_BROADCAST, 3, 0, 0, 1},
    {"torn lines, chains together", RD_SIM_TORN_LINES, &rd_algo_chain, RD_PROTO_LL128, RD_REDUCE, 1, 0, 0, 1},
    {"another cell", RD_SIM_SOUND, &rd_algo_oneshot, RD_PROTO_SENTINEL, RD_ALLREDUCE, 1, 2, 0, 1},
    {"another bank", RD_SIM_SOUND, &rd_algo_oneshot, RD_PROTO_SENTINEL, RD_ALLREDUCE, 1, 1, 0, 0},
};

static uint64_t trace; /* of the last run */

/* The same operation a few times in a row by three ranks; nonzero: something was wrong. */
static int run(const plant_t *plant, int faulty, uint64_t seed)
{
    char text[16384];
    world_t w;
    int bad;

    world_begin(&w, 3, seed, 2, plant->fused ? RD_KCELLS * 3 * 1024 : 1 << 16);
    w.fused = plant->fused ? WORLD_FUSED_ALL : WORLD_ALONE;
    for (int i = 0; i < (plant->fused ? WORLD_OPS : 5); i++) {
        op_plan_t p;
        memset(&p, 0, sizeof p);
        p.launch = (rd_klaunch_t){.algo = plant->algo,
                                  .proto = plant->proto,
                                  .coll = (uint32_t)plant->coll,
                                  .type = RONDO_FLOAT32,
                                  .op = RONDO_SUM,
                                  .banks = plant->banks};
        p.tiles = 1;
        p.is_short = plant->fused && plant->algo != &rd_algo_chain;
        p.root = plant->algo == &rd_algo_oneshot; /* rank 0 is the one that is broken: it has to send */
        p.passes = plant->passes;
        p.slice = plant->proto == RD_PROTO_SIMPLE ? WORLD_SLICE : 0;
        p.count = p.passes * (p.slice ? p.slice : rd_kernel_tile(plant->algo, plant->proto)) / 4;
        if (plant->coll == RD_ALLREDUCE && plant->algo != &rd_algo_oneshot)
            p.count *= plant->algo == &rd_algo_tree ? 2 : 3;
        world_add(&w, &p);
    }
    if (faulty) {
        rd_kcontrol_t *control = (rd_kcontrol_t *)w.window[0], *own = (rd_kcontrol_t *)w.own[0];
        if (plant->proto == RD_PROTO_SIMPLE)
            rd_sim_break(plant->fault, &control->channel[0].taken, &control->channel[0].pad3);
        else if (plant->algo == &rd_algo_chain || rd_algo_is_program(plant->algo))
            rd_sim_break(plant->fault, control->taken, control->taken + RD_KRANKS * RD_KFIFOS);
        else
            rd_sim_break(plant->fault, control->begun, control->begun + RD_KRANKS);
        own->passes += (uint32_t)plant->wrong_bank;
    }
    bad = world_run(&w, text, sizeof text);
    trace = rd_sim_trace();
    rd_sim_break(RD_SIM_SOUND, NULL, NULL);
    world_end(&w);
    return bad;
}

/* One seed gives the same run, whatever this process has run before it, and another one another run. */
static int repeat(const plant_t *plant)
{
    uint64_t traces[3];
    int bad = 0;

    for (int i = 0; i < 3; i++) {
        bad = run(plant, 0, i < 2 ? 1 : 5) || bad;
        traces[i] = trace;
    }
    bad = bad || traces[0] != traces[1] || traces[0] == traces[2];
    printf("%-40s %s\n", "a seed twice", bad ? "was NOT THE SAME" : "the same");
    return bad;
}

static int try_plant(const plant_t *plant)
{
    int found = 0, false_alarm = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        found += found < 2 && run(plant, 1, seed) != 0;
        false_alarm += seed <= 2 && run(plant, 0, seed) != 0;
    }
    printf("%-40s %s\n", plant->what, !found ? "was NOT FOUND" : false_alarm ? "found, and FALSE ALARMS" : "found");
    return found && !false_alarm ? 0 : -1;
}

/* Rank 1 never comes; the others are told to leave, or have a time limit. */
static int leave(const char *what, uint32_t abort, uint32_t timeout, uint32_t failed, const rd_algo_t *algo,
                 rd_proto_t proto, rd_coll_t coll, uint32_t banks)
{
    op_plan_t p = {.launch = {algo, proto, (uint32_t)coll, RONDO_FLOAT32, RONDO_SUM, .banks = banks}, .tiles = 2};
    rd_klaunch_t nothing = {.kernel = RD_KERNEL_NOTHING};
    char text[16384];
    world_t w;
    int bad;

    world_begin(&w, 3, 1, 2, 1 << 16);
    w.alike = 1;
    p.passes = 3;
    p.count = 1000;
    p.slice = proto == RD_PROTO_SIMPLE ? WORLD_SLICE : 0;
    world_add(&w, &p);
    w.launch[WORLD_OPS].function = rd_kernel_find(&nothing, 1);
    for (int r = 0; r < 3; r++)
        w.host[r] = (rd_khost_t){.abort = abort, .timeout_ms = timeout};
    rd_sim_launch_t queue[3] = {w.launch[0], w.launch[WORLD_OPS], w.launch[2 * WORLD_OPS]};
    bad = rd_sim_queues(queue, 3, 1, 1, text, sizeof text);
    for (int r = 0; r < 3; r += 2)
        bad = bad || w.host[r].failed != failed || (timeout && w.host[r].late != 1) ||
              ((rd_kcontrol_t *)w.window[r])->epoch != 0;
    printf("%-40s %s\n", what, bad ? "kernels did NOT LEAVE" : "left");
    world_end(&w);
    return bad;
}

/* The same for what ranks 0 and 2 launch together: nothing has gone forward then, and the page says that a kernel of
 * this rank has had to leave. */
static int leave_together(const char *what, uint32_t abort, uint32_t timeout, uint32_t failed, int cells)
{
    static const op_plan_t plans[3] = {
        {.launch = {&rd_algo_chain, RD_PROTO_LL, RD_BROADCAST, RONDO_FLOAT32, RONDO_SUM}, .tiles = 2, .passes = 3},
        {.launch = {&rd_algo_chain, RD_PROTO_LL, RD_REDUCE, RONDO_FLOAT32, RONDO_SUM}, .tiles = 1, .passes = 2},
        {.launch = {&rd_algo_oneshot, RD_PROTO_LL, RD_ALLREDUCE, RONDO_FLOAT32, RONDO_SUM},
         .tiles = 1,
         .passes = 1,
         .is_short = 1}};
    char text[16384];
    int bad = 0;

    for (uint64_t seed = 2; seed <= 8; seed += 2) { /* fifos by LL */
        rd_sim_launch_t queue[3 * WORLD_OPS];
        world_t w;
        world_begin(&w, 3, seed, 2, RD_KCELLS * 3 * 1024);
        w.fused = WORLD_FUSED_ALL;
        for (int i = 0; i < 2 + cells; i++) {
            op_plan_t p = plans[i];
            p.root = i;
            p.count = p.passes * p.tiles * rd_kernel_tile(p.launch.algo, p.launch.proto) / 4;
            world_add(&w, &p);
        }
        for (int r = 0; r < 3; r++) {
            w.host[r] = (rd_khost_t){.abort = abort, .timeout_ms = timeout};
            if (r != 1)
                world_queue(&w, r, queue + r * w.ops);
        }
        const rd_klaunch_t nothing = {.kernel = RD_KERNEL_NOTHING};
        for (int i = 0; i < w.ops; i++)
            queue[w.ops + i] = (rd_sim_launch_t){rd_kernel_find(&nothing, 1), 1, 32, 0, &w.work[WORLD_OPS + i], 0};
        bad = bad || rd_sim_queues(queue, 3, w.ops, seed, text, sizeof text);
        for (int r = 0; r < 3; r += 2) {
            const rd_kcontrol_t *page = (const rd_kcontrol_t *)w.own[r];
            bad = bad || w.host[r].failed != failed || page->epoch != 0 || page->passes != 0 ||
                  (int32_t)(page->used[0] - page->epoch) <= 0;
        }
        world_end(&w);
    }
    printf("%-40s %s\n", what, bad ? "kernels did NOT LEAVE" : "left");
    return bad;
}

static void say_all(const rd_kwork_t *work, float value)
{
    float *in = (float *)(uintptr_t)work->reduce.in;

    for (uint64_t i = 0; i < work->reduce.count; i++)
        in[i] = value;
}

/* Rank 0 leaves an operation, by its time limit or told to, and its next one is launched all the same. Rank 1 comes to
 * the first late, and must not take the second for it: it leaves, or what it has got is right. */
static int in_its_place(const char *what, uint32_t abort, const rd_algo_t *algo, rd_proto_t proto, rd_coll_t coll)
{
    rd_klaunch_t nothing = {.kernel = RD_KERNEL_NOTHING};
    int stayed = 0, wrong = 0;
    char text[16384];

    for (uint64_t seed = 1; seed <= 4; seed++) {
        op_plan_t p = {.launch = {algo, proto, (uint32_t)coll, RONDO_FLOAT32, RONDO_SUM, 0, 0, 0}, .tiles = 1};
        world_t w;
        world_begin(&w, 2, seed, 2, 1 << 16);
        p.slice = proto == RD_PROTO_SIMPLE ? WORLD_SLICE : 0;
        p.passes = p.slice ? 2 * RD_KSLICES : algo->device.kernel >= RD_KERNEL_CHAIN ? 2 * RD_KSLOTS : 1;
        p.count = p.passes * (p.slice ? p.slice : rd_kernel_tile(algo, proto)) / 4;
        for (int i = 0; i < 3; i++) /* all do the first; then it is easier to write to a peer that does not come */
            world_add(&w, &p);
        const rd_kwork_t *late = &w.work[WORLD_OPS + 1];
        rd_sim_launch_t none = {rd_kernel_find(&nothing, 1), 1, 32, 0, late, 0};
        rd_sim_launch_t queues[3][2] = {
            {w.launch[0], w.launch[WORLD_OPS]}, {w.launch[1], none}, {w.launch[2], w.launch[WORLD_OPS + 1]}};
        say_all(&w.work[1], 1);
        say_all(&w.work[2], 5);
        if (coll == RD_ALLREDUCE)
            say_all(late, 2);
        for (int i = 0; i < 3; i++) {
            for (int r = 0; r < 2 && i > 0; r++)
                w.host[r].timeout_ms = 20, w.host[r].abort = r == 0 && abort;
            stayed += rd_sim_queues(queues[i], 2, 1, seed, text, sizeof text) != 0 || (i == 1 && !w.host[0].failed);
        }
        for (uint64_t i = 0; i < p.count && !w.host[1].failed; i++)
            wrong += ((float *)late->reduce.out)[i] != (coll == RD_ALLREDUCE ? 3 : 1);
        world_end(&w);
    }
    printf("%-40s %s\n", what, stayed ? "did NOT LEAVE" : wrong ? "took the PLACE of another" : "sent nothing more");
    return stayed || wrong;
}

int main(void)
{
    int bad = repeat(&plants[4]);

    for (size_t i = 0; i < sizeof plants / sizeof *plants; i++)
        bad = try_plant(&plants[i]) || bad;
    bad = leave("abort, one-shot", 1, 0, RD_KFAILED_ABORT, &rd_algo_oneshot, RD_PROTO_LL, RD_ALLREDUCE, 0) || bad;
    bad = leave("abort, two-shot", 1, 0, RD_KFAILED_ABORT, &rd_algo_twoshot, RD_PROTO_LL128, RD_ALLREDUCE, 0) || bad;
    bad =
        leave("abort, two-shot broadcast", 1, 0, RD_KFAILED_ABORT, &rd_algo_twoshot, RD_PROTO_LL128, RD_BROADCAST, 0) ||
        bad;
    bad = leave("abort, ring", 1, 0, RD_KFAILED_ABORT, &rd_algo_ring, RD_PROTO_SENTINEL, RD_ALLREDUCE, 0) || bad;
    bad =
        leave("abort, ring of both banks", 1, 0, RD_KFAILED_ABORT, &rd_algo_ring, RD_PROTO_SENTINEL, RD_ALLREDUCE, 1) ||
        bad;
    bad = leave("abort, simple", 1, 0, RD_KFAILED_ABORT, &rd_algo_ring, RD_PROTO_SIMPLE, RD_ALLREDUCE, 0) || bad;
    bad = leave("abort, tree", 1, 0, RD_KFAILED_ABORT, &rd_algo_tree, RD_PROTO_LL128, RD_ALLREDUCE, 0) || bad;
    bad = leave("time limit, pat", 0, 20, RD_KFAILED_TIMEOUT, &rd_algo_pat, RD_PROTO_LL128, RD_ALLREDUCE, 0) || bad;
    bad = leave("time limit, one-shot", 0, 20, RD_KFAILED_TIMEOUT, &rd_algo_oneshot, RD_PROTO_SENTINEL, RD_ALLREDUCE,
                0) ||
          bad;
    bad = leave("time limit, ring", 0, 20, RD_KFAILED_TIMEOUT, &rd_algo_ring, RD_PROTO_LL128, RD_ALLREDUCE, 0) || bad;
    bad = leave_together("abort, chains together", 1, 0, RD_KFAILED_ABORT, 0) || bad;
    bad = leave_together("time limit, chains and cells together", 0, 20, RD_KFAILED_TIMEOUT, 1) || bad;
    bad = in_its_place("next one, one-shot", 0, &rd_algo_oneshot, RD_PROTO_SENTINEL, RD_ALLREDUCE) || bad;
    bad = in_its_place("next one, two-shot", 1, &rd_algo_twoshot, RD_PROTO_LL128, RD_ALLREDUCE) || bad;
    bad = in_its_place("next one, two-shot broadcast", 1, &rd_algo_twoshot, RD_PROTO_LL128, RD_BROADCAST) || bad;
    bad = in_its_place("next one, ring", 0, &rd_algo_ring, RD_PROTO_LL128, RD_ALLREDUCE) || bad;
    bad = in_its_place("next one, chain", 1, &rd_algo_chain, RD_PROTO_LL128, RD_BROADCAST) || bad;
    bad = in_its_place("next one, tree", 0, &rd_algo_tree, RD_PROTO_LL128, RD_ALLREDUCE) || bad;
    bad = in_its_place("next one, binomial", 1, &rd_algo_binomial, RD_PROTO_LL128, RD_BROADCAST) || bad;
    bad = in_its_place("next one, ring, simple", 1, &rd_algo_ring, RD_PROTO_SIMPLE, RD_ALLREDUCE) || bad;
    bad = in_its_place("next one, chain, simple", 0, &rd_algo_chain, RD_PROTO_SIMPLE, RD_BROADCAST) || bad;
    return bad ? 1 : 0;
}
