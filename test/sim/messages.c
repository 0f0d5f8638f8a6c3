/* Messages by the CUDA kernels under the machine of test/sim: random groups of sends and receives between 2 to 8 ranks.
 * What a rank does in one launch its peer may do in several, with other warps, behind other messages; the order within
 * a pair is all they share. Also launches with more messages than fit in the arguments, by the window's list, and
 * messages into registered buffers, whose places are posted. What is long goes by slices, beside what is short: of as
 * many blocks as each rank likes, and before and behind it allgathers by simple use the same places. In the end kernels
 * that are wrong on purpose must be found, and such as are told to leave must leave.
 *
 *   messages [seed [rounds [ranks]]]   of so many ranks at most, and nothing that is wrong on purpose */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/algo/algos.h"
#include "sim/world.h"

#define MESSAGES 160 /* of a round, at most */
#define LAUNCHES 6   /* of a rank, at most */
#define LISTS (2 * MESSAGES * 16 / RD_KWRITTEN + 1)
#define WATCHED 30 /* messages of a round in which what has come is read by the next kernel */
#define DEPTH (LAUNCHES * (LISTS + 1) + WATCHED + 2)
#define LONGEST 30000

typedef struct message {
    int from, to;
    size_t bytes;
    char *data, *sent, *got, *seen; /* seen: what the kernel behind the launch has read of got */
    int send_launch, receive_launch;
    int over; /* a later message has come to the same place */
} message_t;

/* Beside each other, so that a launch's sends and receives are found by walking through them in order. */
static message_t messages[MESSAGES];
static rd_kwork_t work[RD_KRANKS * DEPTH];
static rd_sim_launch_t launches[RD_KRANKS * DEPTH];
static int launches_of[RD_KRANKS], queued[RD_KRANKS];
/* A buffer of each rank that is registered, as number 2; messages of so many bytes are posted. 0: none is. */
static char *arena[RD_KRANKS];
static size_t arena_used[RD_KRANKS];
static uint32_t posted;
#define ARENA ((size_t)LONGEST * 10)
#define ARITH 2
/* Messages of so many bytes go by slices; 0: none does. One rank cuts its slices otherwise, if that is planted. */
static size_t sliced;
static int cut_otherwise;
/* An allgather by simple before all messages, and one behind them; blocks of so many bytes, 0: none. */
static struct ring {
    size_t bytes;
    char *in[RD_KRANKS], *out[RD_KRANKS];
} rings[2];

/* A length: zero, a few bytes, around the ends of a piece, of all slots of a fifo; rarely long. */
static size_t draw_bytes(world_t *w)
{
    switch (world_draw(w, 5)) {
    case 0:
        return world_draw(w, 3);
    case 1:
        return 959 + world_draw(w, 3);
    case 2:
        return 960 * world_draw(w, 6);
    case 3:
        return world_draw(w, 200);
    default:
        return world_draw(w, world_draw(w, 4) ? 4000 : LONGEST);
    }
}

static int in_arena(const message_t *m)
{
    return m->got >= arena[m->to] && m->got < arena[m->to] + ARENA;
}

static char *get_target(world_t *w, const message_t *m)
{
    size_t at = arena_used[m->to] + world_draw(w, 17);

    if (!posted || world_draw(w, 2) || at + m->bytes + 64 > ARENA)
        return malloc(m->bytes + 64);
    arena_used[m->to] = at + m->bytes + 64;
    return arena[m->to] + at;
}

/* Instead, where an earlier launch's message has been read by the kernel behind that: what is posted again must not
 * come before that has read it. */
static void take_place(message_t *m)
{
    for (message_t *before = messages; before < m; before++) {
        if (before->to != m->to || before->receive_launch >= m->receive_launch || before->over || !in_arena(before) ||
            !before->bytes || before->bytes > m->bytes)
            continue;
        if (!in_arena(m))
            free(m->got);
        before->over = 1;
        m->got = before->got;
        m->bytes = before->bytes;
        return;
    }
}

/* Only sometimes: then every rank's table has it. */
static void draw_registered(world_t *w)
{
    posted = world_draw(w, 2) ? 1 + world_draw(w, 3000) : 0;
    for (int r = 0; r < w->n; r++) {
        rd_kregistered_t *entry = &((rd_kcontrol_t *)w->own[r])->registered[ARITH];
        arena_used[r] = 0;
        for (int p = 0; p < w->n; p++) {
            entry->base[p] = posted ? (uintptr_t)arena[p] : 0;
            entry->bytes[p] = posted ? ARENA : 0;
        }
    }
}

/* All messages in one global order, each put into a launch of its sender and one of its receiver that is not before the
 * one that the rank was at: whoever runs launch k has only to wait for launches that come no later in the order. */
static int draw_messages(world_t *w, int count, int watched)
{
    int at[RD_KRANKS] = {0};

    for (int i = 0; i < count; i++) {
        message_t *m = &messages[i];
        m->from = (int)world_draw(w, (uint32_t)w->n);
        m->to = (int)world_draw(w, (uint32_t)w->n);
        if (m->to == m->from)
            m->to = (m->to + 1) % w->n;
        m->bytes = draw_bytes(w);
        m->data = malloc(m->bytes + 64);
        m->got = get_target(w, m);
        m->seen = NULL;
        m->over = 0;
        m->sent = m->data + world_draw(w, 17);
        memset(m->got, 0x5c, m->bytes + 64);
        for (size_t b = 0; b < m->bytes; b++)
            m->sent[b] = (char)world_draw(w, world_draw(w, 2) ? 256 : 2);
        if (world_draw(w, 12) == 0 && at[m->from] + 1 < LAUNCHES)
            at[m->from]++;
        if (world_draw(w, 12) == 0 && at[m->to] + 1 < LAUNCHES)
            at[m->to]++;
        m->send_launch = at[m->from];
        m->receive_launch = at[m->to];
        if (posted && watched && world_draw(w, 2))
            take_place(m);
    }
    for (int r = 0; r < w->n; r++)
        launches_of[r] = at[r] + 1;
    return count;
}

/* A pair's messages of a launch that go by slices, or those that do not. Nonzero: there are some. */
static int add_pair(world_t *w, rd_kpair_t *pair, rd_kmessage_t *all, uint32_t *used, int rank, int peer, int send,
                    int launch, int count, int slices)
{
    *pair = (rd_kpair_t){(uint16_t)peer, (uint16_t)send, *used, 0, 0};
    for (int i = 0; i < count; i++) {
        message_t *m = &messages[i];
        if (send ? m->from != rank || m->to != peer || m->send_launch != launch
                 : m->to != rank || m->from != peer || m->receive_launch != launch)
            continue;
        if ((sliced && m->bytes >= sliced) != slices || (slices && m->bytes == 0))
            continue;
        if (slices)
            pair->slices += rd_kslices(m->bytes, rd_kslice(m->bytes, world_comm(w, rank).slice_least));
        all[(*used)++] = (rd_kmessage_t){send ? m->sent : m->got, m->bytes};
        pair->count++;
    }
    return pair->count > 0;
}

static void add_pairs(world_t *w, rd_kmessages_t *k, rd_kmessage_t *all, uint32_t *used, int rank, int launch,
                      int count)
{
    uint32_t piece = rd_kernel_tile(&rd_algo_messages, w->fifo_proto);

    for (int q = 1; q < w->n; q++)
        for (int send = 0; send < 2; send++)
            k->npairs +=
                (uint32_t)add_pair(w, &k->pair[k->npairs], all, used, rank, (rank + q) % w->n, send, launch, count, 0);
    for (uint32_t i = 0; i < *used; i++) {
        uint32_t warps = rd_kspread(all[i].bytes, piece, w->fifos);
        k->warps = warps > k->warps ? warps : k->warps;
    }
    for (int q = 1; q < w->n; q++)
        k->sends +=
            (uint32_t)add_pair(w, &k->stream[k->sends], all, used, rank, (rank + q) % w->n, 1, launch, count, 1);
    for (int q = 1; q < w->n; q++)
        k->receives += (uint32_t)add_pair(w, &k->stream[k->sends + k->receives], all, used, rank, (rank + q) % w->n, 0,
                                          launch, count, 1);
    k->senders = 1 + world_draw(w, 4);
    k->receivers = 1u << world_draw(w, 3);
    while (k->receivers * k->receives > WORLD_RECEIVE)
        k->receivers /= 2;
}

/* Behind what the rank has queued already. */
static rd_kwork_t *queue(world_t *w, int rank, rd_kernel_t kernel, uint32_t blocks, uint32_t threads)
{
    int ring = kernel == RD_KERNEL_RING;
    rd_klaunch_t l = {.algo = ring ? &rd_algo_ring : NULL,
                      .proto = ring ? RD_PROTO_SIMPLE : w->fifo_proto,
                      .coll = RD_ALLGATHER,
                      .type = RONDO_INT8,
                      .op = RONDO_SUM,
                      .threads = threads,
                      .kernel = kernel};
    int i = rank * DEPTH + queued[rank]++;

    memset(&work[i], 0, sizeof work[i]);
    work[i].comm = world_comm(w, rank);
    work[i].comm.slice_least -= rank == 1 && cut_otherwise ? 128 : 0; /* more slices: none is missed */
    launches[i] = (rd_sim_launch_t){rd_kernel_find(&l, 1), blocks, threads, rd_kernel_shared(&l), &work[i], 0};
    return &work[i];
}

static void make_launch(world_t *w, int rank, int launch, int count)
{
    static rd_kmessage_t all[2 * MESSAGES];
    rd_kmessages_t m;
    uint32_t used = 0;

    memset(&m, 0, sizeof m);
    add_pairs(w, &m, all, &used, rank, launch, count);
    m.registered = posted ? ARITH + 1 + world_draw(w, 3) : 0;
    m.posted = posted;
    m.listed = used > RD_KMESSAGES_HERE || world_draw(w, 3) == 0;
    if (!m.listed)
        memcpy(m.here, all, used * sizeof all[0]);
    for (uint32_t at = 0, bytes = used * sizeof all[0]; at < bytes && m.listed; at += RD_KWRITTEN) {
        rd_kwrite_t *l = &queue(w, rank, RD_KERNEL_WRITE, 1 + world_draw(w, 2), 32 * (1 + world_draw(w, 3)))->write;
        l->offset = RD_KLIST_OFFSET + at;
        l->bytes = bytes - at < RD_KWRITTEN ? bytes - at : RD_KWRITTEN;
        memcpy(l->data, (char *)all + at, l->bytes);
    }
    int streams = m.sends + m.receives || world_draw(w, 4) == 0;
    uint32_t threads = 32 * ((streams ? 2 : 1) + world_draw(w, 4));
    uint32_t blocks = (m.npairs * m.warps * 32 + threads - 1) / threads + world_draw(w, 2);
    blocks += m.sends * m.senders + m.receives * m.receivers;
    queue(w, rank, streams ? RD_KERNEL_STREAMS : RD_KERNEL_MESSAGES, blocks + (blocks == 0), threads)->messages = m;
}

/* Where there is a block less than there are tiles, a block serves one channel after the other. */
static void queue_ring(world_t *w, struct ring *ring, int rank)
{
    uint32_t tiles = 1 + (uint32_t)(ring->bytes % 3), slice = 1024;

    if (!ring->bytes)
        return;
    queue(w, rank, RD_KERNEL_RING, tiles - (tiles > 1 ? world_draw(w, 2) : 0), 64)->reduce =
        (rd_kreduce_t){.in = ring->in[rank],
                       .out = ring->out[rank],
                       .count = ring->bytes,
                       .coll = RD_ALLGATHER,
                       .type = RONDO_INT8,
                       .op = RONDO_SUM,
                       .tiles = tiles,
                       .slice = slice,
                       .passes = (uint32_t)((ring->bytes + tiles * slice - 1) / (tiles * slice))};
}

static void draw_ring(world_t *w, struct ring *ring)
{
    ring->bytes = sliced && world_draw(w, 2) ? 1 + world_draw(w, 20000) : 0;
    for (int r = 0; r < w->n; r++) {
        ring->in[r] = malloc(ring->bytes + 1);
        ring->out[r] = calloc(ring->bytes + 1, (size_t)w->n);
        for (size_t b = 0; b < ring->bytes; b++)
            ring->in[r][b] = (char)world_draw(w, 256);
    }
}

/* Nonzero: what came out was wrong. */
static int drop_ring(const world_t *w, struct ring *ring)
{
    int wrong = 0;

    for (int r = 0; r < w->n; r++) {
        rd_sim_read(r, ring->out[r], (size_t)w->n * ring->bytes);
        for (int from = 0; from < w->n; from++)
            wrong |= memcmp(ring->out[r] + (size_t)from * ring->bytes, ring->in[from], ring->bytes) != 0;
    }
    for (int r = 0; r < w->n; r++) {
        free(ring->in[r]);
        free(ring->out[r]);
    }
    return wrong;
}

/* Behind a launch: reads what has come into the registered buffer. */
static void watch_for(world_t *w, int rank, int launch, int count)
{
    for (int i = 0; i < count; i++) {
        message_t *m = &messages[i];
        if (m->to != rank || m->receive_launch != launch || !in_arena(m) || !m->bytes)
            continue;
        m->seen = malloc(m->bytes);
        queue(w, rank, RD_KERNEL_SINGLE, 1, 64)->reduce =
            (rd_kreduce_t){.in = m->got, .out = m->seen, .count = m->bytes, .type = RONDO_UINT8, .op = RONDO_SUM};
    }
}

static const char *what_is_wrong(int count)
{
    for (int i = 0; i < count; i++) {
        const message_t *m = &messages[i];
        rd_sim_read(m->to, m->got, m->bytes);
        if (m->seen && memcmp(m->sent, m->seen, m->bytes) != 0)
            return "a message had not arrived when its launch was over";
        if (!m->over && memcmp(m->sent, m->got, m->bytes) != 0)
            return "a message has not arrived as it was sent";
        for (size_t b = m->bytes; b < m->bytes + 64; b++)
            if (m->got[b] != 0x5c)
                return "something behind a message was written";
    }
    return NULL;
}

static void queue_all(world_t *w, int rank, int count, int watched)
{
    queued[rank] = 0;
    queue_ring(w, &rings[0], rank);
    for (int i = 0; i < launches_of[rank]; i++) {
        make_launch(w, rank, i, count);
        if (watched)
            watch_for(w, rank, i, count);
    }
    queue_ring(w, &rings[1], rank);
    while (queued[rank] < DEPTH)
        queue(w, rank, RD_KERNEL_NOTHING, 1, 32);
}

typedef enum { SOUND, NO_FENCE_BEHIND_SHARE, NO_FENCE_BEHIND_SLICE, UNASKED, CUT_OTHERWISE, PLANTS } plant_t;

/* What goes by slices, and what is posted: not both. */
static void draw_kind(world_t *w, plant_t planted)
{
    do {
        draw_registered(w);
        sliced = posted ? 0 : world_draw(w, 3) ? 1 + world_draw(w, world_draw(w, 2) ? 3000 : 1) : 0;
    } while (planted && (planted == NO_FENCE_BEHIND_SHARE ? !posted : !sliced));
    cut_otherwise = planted == CUT_OTHERWISE;
}

static int one_round(world_t *w, uint64_t seed, plant_t planted)
{
    static char text[16384];

    draw_kind(w, planted);
    int watched = planted == NO_FENCE_BEHIND_SHARE || world_draw(w, 3) == 0;
    int count = draw_messages(w, 1 + (int)world_draw(w, watched || world_draw(w, 4) ? WATCHED : MESSAGES), watched);
    const char *wrong = NULL;

    for (int i = 0; i < 2; i++)
        draw_ring(w, &rings[i]);
    for (int r = 0; r < w->n; r++)
        queue_all(w, r, count, watched);
    if (rd_sim_queues(launches, w->n, DEPTH, w->random, text, sizeof text))
        wrong = text;
    if (!wrong)
        wrong = what_is_wrong(count);
    for (int i = 0; i < 2; i++)
        if (drop_ring(w, &rings[i]) && !wrong)
            wrong = "an allgather beside the messages is wrong";
    for (int i = 0; i < count; i++) {
        free(messages[i].data);
        free(messages[i].seen);
        if (!in_arena(&messages[i]))
            free(messages[i].got);
    }
    if (wrong && !planted)
        printf("seed %llu, %d ranks, %d messages, %u fifos, slices from %zu bytes on: %s\n", (unsigned long long)seed,
               w->n, count, w->fifos, sliced, wrong);
    return wrong ? -1 : 0;
}

/* Does anybody see it when nothing orders what is stored into peers' memory, when a sender does not wait for the
 * promise of a place, when a rank cuts its messages otherwise? */
static int find(plant_t plant)
{
    static const char *const names[PLANTS] = {"sound", "no fence behind a share", "no fence behind a slice",
                                              "a slice that was not asked for", "slices cut otherwise"};
    static const rd_sim_fault_t faults[PLANTS] = {RD_SIM_SOUND, RD_SIM_NO_FENCE, RD_SIM_NO_FENCE, RD_SIM_UNASKED,
                                                  RD_SIM_SOUND};
    int found = 0;

    for (uint64_t seed = 1; seed <= 400 && !found; seed++) {
        world_t w;
        world_begin(&w, 3, seed, 2, 1024);
        rd_kstream_t *stream = &((rd_kcontrol_t *)w.window[0])->stream[1];
        rd_sim_break(faults[plant], stream->promised, stream + 1);
        found = one_round(&w, seed, plant) != 0;
        rd_sim_break(RD_SIM_SOUND, NULL, NULL);
        world_end(&w);
    }
    printf("%-32s %s\n", names[plant], found ? "found" : "was NOT FOUND");
    return !found;
}

/* A launch of rank 0, which sends a long message to rank 1 and receives one: nobody else comes. */
static rd_kmessages_t *queue_exchange(world_t *w, char *out, char *in)
{
    const uint32_t bytes = 20 * WORLD_LEAST;
    rd_kmessages_t *m = &queue(w, 0, RD_KERNEL_STREAMS, 4, 64)->messages;

    m->sends = m->receives = 1;
    m->senders = m->receivers = 2;
    m->here[0] = (rd_kmessage_t){out, bytes};
    m->here[1] = (rd_kmessage_t){in, bytes};
    m->stream[0] = (rd_kpair_t){1, 1, 0, 1, rd_kslices(bytes, rd_kslice(bytes, WORLD_LEAST))};
    m->stream[1] = (rd_kpair_t){1, 0, 1, 1, m->stream[0].slices};
    return m;
}

/* Kernels that wait for streams leave, told to or by the time limit, and say for whom they have waited. Those behind
 * them leave at once and promise nothing more. */
static int leave(const char *what, uint32_t abort, uint32_t timeout)
{
    static char out[20 * WORLD_LEAST], in[20 * WORLD_LEAST], text[16384];
    int bad = 0;

    for (uint64_t seed = 1; seed <= 6; seed++) {
        world_t w;
        world_begin(&w, 2, seed, 1, 1024);
        sliced = 1;
        memset(queued, 0, sizeof queued);
        queue_exchange(&w, out, in);
        w.host[0] = (rd_khost_t){.abort = abort, .timeout_ms = timeout};
        const rd_kcontrol_t *there = (rd_kcontrol_t *)w.window[1], *own = (rd_kcontrol_t *)w.own[0];
        bad |= rd_sim_queues(launches, 1, 1, seed, text, sizeof text) != 0;
        bad |= w.host[0].failed != (abort ? RD_KFAILED_ABORT : RD_KFAILED_TIMEOUT) || (timeout && w.host[0].late != 1);
        const rd_kstream_t was = there->stream[0];
        bad |= rd_sim_queues(launches, 1, 1, seed, text, sizeof text) != 0;
        bad |= memcmp(&was, &there->stream[0], sizeof was) != 0 || own->stream[1].sent || own->stream[1].received;
        world_end(&w);
    }
    printf("%-32s %s\n", what, bad ? "kernels did NOT LEAVE as they should" : "left, and promised nothing more");
    return bad;
}

int main(int argc, char **argv)
{
    static const int ranks[] = {2, 3, 4, 5, 8};
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    int rounds = argc > 2 ? atoi(argv[2]) : 12, most = argc > 3 ? atoi(argv[3]) : RD_KRANKS, bad = 0;
    world_t w;

    printf("seed %llu, %d rounds\n", (unsigned long long)seed, rounds);
    for (int r = 0; r < RD_KRANKS; r++)
        arena[r] = malloc(ARENA);
    for (int round = 0; round < rounds && !bad; round++)
        for (size_t n = 0; n < sizeof ranks / sizeof *ranks && ranks[n] <= most && !bad; n++) {
            seed++;
            world_begin(&w, ranks[n], seed, 1 + (uint32_t)(seed % 5), 1024);
            for (int i = 0; i < 4 && !bad; i++)
                bad = one_round(&w, seed, SOUND);
            world_end(&w);
        }
    for (int plant = SOUND + 1; plant < PLANTS && argc <= 3 && !bad; plant++)
        bad = find((plant_t)plant);
    bad = bad || (argc <= 3 && (leave("abort, streams", 1, 0) || leave("time limit, streams", 0, 20)));
    for (int r = 0; r < RD_KRANKS; r++)
        free(arena[r]);
    return bad ? 1 : 0;
}
