/* The kernel that stages collectives between nodes, on the machine of test/sim, with proxies played by fibers: what it
 * does is right with every seed, over several launches, and faults are found: a kernel without fences, a proxy that
 * says done before it is, or that takes half of a trigger for the whole. What is inline needs no fences; there the fault
 * is a proxy that does not look whether the lines are there, or that flags them too early.
 *
 *   stage [seeds]   with so many: only what is right */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo.h>

#include "gpu.cuh"
#include "sim/machine.h"
#include "kernels/launch.h"

namespace
{

constexpr uint32_t SLOT = 4096, LAUNCHES = 6, ROUNDS = 9, CHANNELS = 2, TASK = 7;
constexpr uint32_t STRAIGHT = RD_KGDR_RUN + 3 + 2; /* in a launch, with one by slots before the last two */
constexpr uint64_t BYTES = (ROUNDS - 1) * SLOT + 1234, INLINE = 1003; /* the last line has 3 bytes */

enum kind_t { PLAIN, PLAIN_IN, INLINE_BOTH, INLINE_IN }; /* inline: by flagged lines; in: nothing comes back */
enum fault_t { SOUND, NO_FENCE, DONE_EARLY, HALF_TRIGGER, NO_FLAGS };

struct world_t {
    rd_klane_t lanes[RD_KLANES];
    rd_klane_state_t state[RD_KLANES];
    rd_khost_t host;
    alignas(128) char area[CHANNELS * RD_KLANE_SLOTS * 2 * SLOT];
    alignas(128) char lines[RD_KLANE_SLOTS * 4 * RD_KINLINE];
    char in[LAUNCHES][BYTES], out[LAUNCHES][BYTES];
    char got[LAUNCHES][BYTES]; /* by the proxies: as the input lies in the buffer */
    fault_t fault;
    kind_t kind;
    uint32_t strange; /* triggers that make no sense */
    rd_kmessage_t named[LAUNCHES * STRAIGHT]; /* by messages that go by GDR */
    uint32_t names, runs;
};

world_t *world;
uint64_t seeds = 40;

bool inlined()
{
    return world->kind == INLINE_BOTH || world->kind == INLINE_IN;
}

bool one_way()
{
    return world->kind == PLAIN_IN || world->kind == INLINE_IN;
}

/* Byte `b` of a round, as the proxy has it. A slot holds the round's share of each of the two parts. */
void take(uint32_t launch, uint32_t round, uint64_t b, char value)
{
    const uint64_t bytes = inlined() ? INLINE : BYTES, first = bytes / 2 - 3, from = round * (uint64_t)(SLOT / 2);
    const uint64_t here = first <= from ? 0 : first - from < SLOT / 2 ? first - from : SLOT / 2;
    const uint64_t at = b < here ? from + b : first + from + (b - here);

    if (at < (b < here ? first : bytes))
        world->got[launch][at] = value;
}

/* By proxies beside each other. */
void count_strange(bool is)
{
    __atomic_fetch_add(&world->strange, (uint32_t)is, __ATOMIC_RELAXED);
}

bool come(const rd_ktrigger_t *at, uint32_t number, uint4 *t)
{
    *t = line_load(at);
    return t->y == (number | RD_KVALID) && (t->w == t->y || world->fault == HALF_TRIGGER);
}

/* Of a proxy channel, by one lane: takes every trigger, turns the input into the output, says so. */
template <uint32_t channel>
void proxy(const rd_kwork_t &)
{
    constexpr uint32_t rounds = (ROUNDS - channel + CHANNELS - 1) / CHANNELS;
    rd_klane_t *lane = &world->lanes[channel * RD_KPROXY_LANES];

    for (uint32_t i = 0; i < LAUNCHES * rounds && gpu_thread() == 0; i++) {
        char *slot = world->area + (channel * RD_KLANE_SLOTS + i % RD_KLANE_SLOTS) * 2 * SLOT;
        uint4 t;
        while (!come(&lane->trigger[i % RD_KLANE_SLOTS], i + 1, &t)) {
        }
        fence_sys();
        count_strange(t.x != TASK || t.z != channel + i % rounds * CHANNELS);
        if (world->fault == DONE_EARLY)
            word_store(&lane->done, i + 1);
        for (uint32_t b = 0; b < SLOT; b++) {
            slot[SLOT + b] = (char)(slot[b] ^ (t.z + 1));
            take(i / rounds, t.z, b, slot[b]);
            if (b % 64 == 0)
                (void)word_load(&lane->done); /* others go on meanwhile */
        }
        fence_sys();
        if (world->fault != DONE_EARLY)
            word_store(&lane->done, i + 1);
    }
}

/* The same of what is inline: line after line, as they come. */
void proxy_inline(const rd_kwork_t &)
{
    rd_klane_t *lane = &world->lanes[0];
    uint4 t, v;

    for (uint32_t i = 0; i < LAUNCHES && gpu_thread() == 0; i++) {
        char *line = world->lines + i % RD_KLANE_SLOTS * 4 * RD_KINLINE, *to = line + 2 * RD_KINLINE;
        const uint32_t flag = (i + 1) | RD_KVALID;
        while (!come(&lane->trigger[i % RD_KLANE_SLOTS], i + 1, &t)) {
        }
        count_strange(t.x != TASK || t.z != 0);
        for (uint64_t p = 0; p < INLINE; p += 8) {
            const uint64_t at = rd_kinline_line(p / 16 * 16) + p % 16 / 8 * RD_KINLINE_LEAP;
            if (world->fault == DONE_EARLY)
                line_store(to + at, make_uint4(0, flag, 0, flag));
            do
                v = line_load(line + at);
            while ((v.y != flag || v.w != flag) && world->fault != NO_FLAGS);
            const uint32_t words[2] = {v.x, v.z};
            for (uint32_t b = 0; b < 8; b++)
                take(i, 0, p + b, (char)(words[b / 4] >> b % 4 * 8));
            if (world->kind == INLINE_BOTH)
                line_store(to + at, make_uint4(v.x ^ 0x01010101, flag, v.z ^ 0x01010101, flag));
        }
        word_store(&lane->done, i + 1);
    }
}

/* Of messages to rank 0, proxy channel 0's: writes down where they lie. */
void proxy_gdr(const rd_kwork_t &)
{
    rd_klane_t *lane = &world->lanes[1];

    for (uint32_t i = 0; gpu_thread() == 0 && world->names < LAUNCHES * STRAIGHT; i++) {
        const char *slot = world->area + i % RD_KLANE_SLOTS * (SLOT / 2);
        uint4 t;
        while (!come(&lane->trigger[i % RD_KLANE_SLOTS], i + 1, &t)) {
        }
        const bool gdr = (t.z & RD_KMESSAGE_GDR) != 0;
        count_strange(gdr && t.x > RD_KGDR_RUN);
        world->runs += gdr;
        for (uint32_t k = 0; gdr && k < t.x && world->names < LAUNCHES * STRAIGHT; k++) {
            const uint4 v = line_load(slot + 16 * k);
            world->named[world->names++] = {(void *)(v.x | (uint64_t)v.y << 32), v.z | (uint64_t)v.w << 32};
        }
        word_store(&lane->done, i + 1);
    }
}

rd_kwork_t *work_of(uint32_t launch)
{
    const uint64_t bytes = inlined() ? INLINE : BYTES;
    rd_kwork_t *w = (rd_kwork_t *)calloc(1, sizeof *w);
    rd_kproxied_t *s = &w->proxied;

    w->comm.nranks = 2;
    w->comm.host = &world->host;
    s->proxy.lanes = world->lanes;
    s->proxy.state = world->state;
    s->proxy.area = world->area;
    s->proxy.slots = RD_KLANE_SLOTS;
    s->proxy.slot = SLOT;
    s->proxy.channels = CHANNELS;
    s->reduce.in = world->in[launch];
    s->reduce.out = world->out[launch];
    s->reduce.type = RONDO_UINT8;
    /* Two parts, the first of which ends within a line. */
    s->in.n = s->out.n = 2;
    s->in.tabled = s->out.tabled = 1;
    s->here[0] = {0, bytes / 2 - 3};
    s->here[1] = {bytes / 2 - 3, bytes - (bytes / 2 - 3)};
    if (one_way())
        s->out.n = 0;
    s->each = SLOT / 2;
    s->rounds = inlined() ? 1 : ROUNDS;
    s->inlined = inlined();
    s->proxy.inlined = world->lines;
    s->proxy.teams = inlined() ? 1 : CHANNELS;
    s->task = TASK;
    return w;
}

/* Is every byte what the proxy makes of it? In which round a byte goes follows from its place in its part. */
int wrong()
{
    const uint64_t bytes = inlined() ? INLINE : BYTES, first = bytes / 2 - 3;

    if (memcmp(world->got, world->in, sizeof world->in) != 0)
        return 1;
    for (uint32_t l = 0; l < LAUNCHES; l++)
        for (uint64_t b = 0; b < bytes; b++) {
            uint64_t round = (b < first ? b : b - first) / (SLOT / 2);
            if (world->out[l][b] != (one_way() ? 0 : (char)(world->in[l][b] ^ (round + 1))))
                return 1;
        }
    return 0;
}

int run(fault_t fault, kind_t kind, uint64_t seed)
{
    rd_klaunch_t proxied = {}, nothing = {};
    rd_sim_launch_t queues[(1 + CHANNELS) * LAUNCHES];
    rd_kwork_t *work[LAUNCHES];
    static char text[16384];

    memset((void *)world, 0, sizeof *world);
    world->fault = fault;
    world->kind = kind;
    const void *const proxies[CHANNELS] = {inlined() ? (const void *)proxy_inline : (const void *)proxy<0>,
                                        (const void *)proxy<1>};
    const uint32_t channels = inlined() ? 1 : CHANNELS;
    proxied.kernel = RD_KERNEL_PROXIED;
    nothing.kernel = RD_KERNEL_NOTHING;
    for (uint32_t l = 0; l < LAUNCHES; l++) {
        for (uint64_t b = 0; b < (inlined() ? INLINE : BYTES); b++)
            world->in[l][b] = (char)(b * 31 + l * 7 + seed);
        work[l] = work_of(l);
        queues[l] = {rd_kernel_find(&proxied, 1), inlined() ? 1 : CHANNELS * (1 + l % 2), 64, 0, work[l]};
        for (uint32_t c = 0; c < channels; c++)
            queues[(1 + c) * LAUNCHES + l] = {l == 0 ? proxies[c] : rd_kernel_find(&nothing, 1), 1, 32, 0, work[l]};
    }
    if (fault == NO_FENCE)
        rd_sim_break(RD_SIM_NO_FENCE, nullptr, nullptr);
    int bad = rd_sim_queues(queues, 1 + (int)channels, LAUNCHES, seed, text, sizeof text) || wrong() || world->strange;
    rd_sim_break(RD_SIM_SOUND, nullptr, nullptr);
    for (rd_kwork_t *w : work)
        free(w);
    return bad;
}

/* `finds`: it is one for what is sent so. */
int plant(const char *what, fault_t fault, kind_t kind, bool finds)
{
    uint32_t found = 0;

    for (uint64_t seed = 1; seed <= seeds; seed++)
        found += run(fault, kind, seed) != 0;
    bool right = finds ? found > 0 : found == 0;
    printf("%-24s %s\n", what, !finds ? (right ? "right" : "WRONG") : right ? "found" : "was NOT FOUND");
    return right ? 0 : 1;
}

/* Nobody answers: the kernel leaves, by its time limit or told to, and so does the next, which raises nothing. */
int leaves(const char *what, kind_t kind, uint32_t abort, uint32_t timeout_ms)
{
    rd_klaunch_t proxied = {};
    static char text[16384];

    memset((void *)world, 0, sizeof *world);
    world->kind = kind;
    world->host.abort = abort;
    world->host.timeout_ms = timeout_ms;
    proxied.kernel = RD_KERNEL_PROXIED;
    rd_kwork_t *work = work_of(0);
    const uint32_t blocks = inlined() ? 1 : CHANNELS;
    rd_sim_launch_t queue[2] = {{rd_kernel_find(&proxied, 1), blocks, 64, 0, work},
                                {rd_kernel_find(&proxied, 1), blocks, 64, 0, work}};
    int stayed = rd_sim_queues(queue, 1, 1, 1, text, sizeof text) || world->host.failed == 0;
    memset((void *)world->lanes, 0, sizeof world->lanes);
    stayed = stayed || rd_sim_queues(queue + 1, 1, 1, 1, text, sizeof text);
    for (const rd_klane_t &lane : world->lanes)
        for (const rd_ktrigger_t &t : lane.trigger)
            stayed = stayed || t.number || t.again;
    printf("%-24s %s\n", what, stayed ? "did NOT LEAVE" : "left, and sent nothing more");
    free(work);
    return stayed;
}

/* A message to rank 0, of the input of a launch. */
rd_kwork_t *sends_of(uint32_t launch)
{
    rd_kwork_t *proxied = work_of(launch), *w = (rd_kwork_t *)calloc(1, sizeof *w);
    rd_kproxied_messages_t *m = &w->proxied_messages;

    w->comm = proxied->comm;
    m->proxy = proxied->proxied.proxy;
    m->proxy.message_slot = SLOT / 2;
    m->proxy.least = SLOT / 2;
    m->npairs = 1;
    m->pair[0] = {0, 1, 0, 1};
    m->messages.here[0] = {world->in[launch], SLOT};
    free(proxied);
    return w;
}

/* Messages lie where a collective's slots do: they touch nothing while what the last one has left there may be read. */
int messages_wait()
{
    rd_klaunch_t proxied = {}, sending = {};
    static char text[16384], before[sizeof world->area];

    memset((void *)world, 0, sizeof *world);
    world->kind = PLAIN_IN;
    memset(world->in[0], 1, BYTES);
    memset(world->in[1], 2, BYTES);
    proxied.kernel = RD_KERNEL_PROXIED;
    sending.kernel = RD_KERNEL_PROXIED_MESSAGES;
    rd_kwork_t *first = work_of(0), *second = sends_of(1);
    first->proxied.rounds = CHANNELS;
    rd_sim_launch_t queue[2] = {{rd_kernel_find(&proxied, 1), CHANNELS, 64, 0, first},
                                {rd_kernel_find(&sending, 1), CHANNELS, 64, 0, second}};
    int bad = rd_sim_queues(queue, 1, 1, 1, text, sizeof text) || world->host.failed;
    memcpy(before, world->area, sizeof before);
    world->host.abort = 1; /* or it would wait for ever */
    bad = bad || rd_sim_queues(queue + 1, 1, 1, 1, text, sizeof text) || !world->host.failed;
    bad = bad || memcmp(before, world->area, sizeof before) != 0;
    printf("%-24s %s\n", "messages behind", bad ? "did NOT WAIT" : "waited for the slots");
    free(first);
    free(second);
    return bad;
}

rd_kmessage_t gdr(uint32_t launch, uint32_t i)
{
    return {world->in[launch] + 3 * i, (i + 100) | RD_KGDR};
}

rd_kwork_t *gdr_of(uint32_t launch)
{
    rd_kwork_t *w = sends_of(launch);
    rd_kmessages_t *m = &w->proxied_messages.messages;

    w->proxied_messages.pair[0].count = STRAIGHT + 1;
    for (uint32_t i = 0; i < STRAIGHT; i++)
        m->here[i + (i >= STRAIGHT - 2)] = gdr(launch, i);
    m->here[STRAIGHT - 2] = {world->in[launch], 77};
    w->proxied_messages.proxy.teams = 1;
    return w;
}

int gdr_run(fault_t fault, uint64_t seed)
{
    rd_klaunch_t sending = {}, nothing = {};
    rd_sim_launch_t queues[2 * LAUNCHES];
    rd_kwork_t *work[LAUNCHES];
    static char text[16384];

    memset((void *)world, 0, sizeof *world);
    world->fault = fault;
    sending.kernel = RD_KERNEL_PROXIED_MESSAGES;
    nothing.kernel = RD_KERNEL_NOTHING;
    for (uint32_t l = 0; l < LAUNCHES; l++) {
        work[l] = gdr_of(l);
        queues[l] = {rd_kernel_find(&sending, 1), 1, 32, 0, work[l]};
        queues[LAUNCHES + l] = {l ? rd_kernel_find(&nothing, 1) : (const void *)proxy_gdr, 1, 32, 0, work[l]};
    }
    if (fault == NO_FENCE)
        rd_sim_break(RD_SIM_NO_FENCE, nullptr, nullptr);
    int bad = rd_sim_queues(queues, 2, LAUNCHES, seed, text, sizeof text) || world->strange;
    rd_sim_break(RD_SIM_SOUND, nullptr, nullptr);
    bad = bad || world->names != LAUNCHES * STRAIGHT || world->runs != 3 * LAUNCHES;
    for (uint32_t n = 0; n < LAUNCHES * STRAIGHT; n++) {
        const rd_kmessage_t m = gdr(n / STRAIGHT, n % STRAIGHT);
        bad = bad || world->named[n].buffer != m.buffer || world->named[n].bytes != m.bytes;
    }
    for (rd_kwork_t *w : work)
        free(w);
    return bad;
}

/* What goes by GDR is named several messages at a time, in their order. */
int gdr_named(const char *what, fault_t fault, bool finds)
{
    uint32_t found = 0;

    for (uint64_t seed = 1; seed <= seeds; seed++)
        found += gdr_run(fault, seed) != 0;
    bool right = finds ? found > 0 : found == 0;
    printf("%-24s %s\n", what, !finds ? (right ? "right" : "WRONG") : right ? "found" : "was NOT FOUND");
    return right ? 0 : 1;
}

/* Behind a kernel that has left unfinished none sends anything, be no slot in its way. */
int messages_stay()
{
    rd_klaunch_t sending = {};
    static char text[16384];

    memset((void *)world, 0, sizeof *world);
    world->kind = PLAIN_IN;
    world->state[0].failed = 1;
    world->host.timeout_ms = 20; /* or it would wait for ever */
    sending.kernel = RD_KERNEL_PROXIED_MESSAGES;
    rd_kwork_t *work = sends_of(0);
    rd_sim_launch_t queue = {rd_kernel_find(&sending, 1), CHANNELS, 64, 0, work};
    int bad = rd_sim_queues(&queue, 1, 1, 1, text, sizeof text);
    for (const rd_klane_t &lane : world->lanes)
        for (const rd_ktrigger_t &t : lane.trigger)
            bad = bad || t.number || t.again;
    printf("%-24s %s\n", "messages after failure", bad ? "were SENT" : "stayed");
    free(work);
    return bad;
}

int wrong_on_purpose()
{
    int bad = 0;

    bad += plant("no fence", NO_FENCE, PLAIN, true);
    bad += plant("done too early", DONE_EARLY, PLAIN, true);
    bad += plant("half a trigger", HALF_TRIGGER, PLAIN, true);
    bad += plant("nothing back, no fence", NO_FENCE, PLAIN_IN, true);
    bad += plant("nothing back, done early", DONE_EARLY, PLAIN_IN, true);
    bad += leaves("nothing back, abort", PLAIN_IN, 1, 0);
    bad += leaves("abort", PLAIN, 1, 0);
    bad += leaves("time limit", PLAIN, 0, 20);
    bad += plant("inline, no fence", NO_FENCE, INLINE_BOTH, false);
    bad += plant("inline, flags too early", DONE_EARLY, INLINE_BOTH, true);
    bad += plant("inline, flags not read", NO_FLAGS, INLINE_BOTH, true);
    bad += leaves("inline, abort", INLINE_BOTH, 1, 0);
    bad += leaves("inline, time limit", INLINE_BOTH, 0, 20);
    bad += gdr_named("straight, no fence", NO_FENCE, true);
    return bad;
}

} // namespace

int main(int argc, char **argv)
{
    int bad = 0;

    world = (world_t *)aligned_alloc(128, (sizeof *world + 127) / 128 * 128);
    seeds = argc > 1 ? strtoull(argv[1], NULL, 0) : seeds;
    bad += plant("sound", SOUND, PLAIN, false);
    bad += plant("nothing back", SOUND, PLAIN_IN, false);
    bad += plant("inline, sound", SOUND, INLINE_BOTH, false);
    bad += plant("inline, nothing back", SOUND, INLINE_IN, false);
    bad += gdr_named("straight", SOUND, false);
    bad += messages_wait();
    bad += messages_stay();
    if (argc <= 1)
        bad += wrong_on_purpose();
    free(world);
    return bad != 0;
}
