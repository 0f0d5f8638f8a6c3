/* Messages by the CUDA kernels under the machine of test/sim: random groups of sends and receives between 2 to 8 ranks.
 * What a rank does in one launch its peer may do in several, with other warps, behind other messages; the order within
 * a pair is all they share. Also launches with more messages than fit in the arguments, by the window's list, and messages
 * into registered buffers, whose places are posted. In the end, without the fence behind what goes there, it must be found.
 *
 *   messages [seed [rounds]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

#define MESSAGES 160 /* of a round, at most */
#define LAUNCHES 6   /* of a rank, at most */
#define LISTS (2 * MESSAGES * 16 / RD_KWRITTEN + 1)
#define WATCHED 30 /* messages of a round in which what has come is read by the next kernel */
#define DEPTH (LAUNCHES * (LISTS + 1) + WATCHED)
#define LONGEST 30000

typedef struct message {
    int from, to;
    size_t bytes;
    char *data, *sent, *got, *seen; /* seen: what the kernel behind the launch has read of got */
    int send_launch, receive_launch;
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
#define NUMBER 2

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

/* Only sometimes: then every rank's table has it. */
static void draw_registered(world_t *w)
{
    posted = world_draw(w, 2) ? 1 + world_draw(w, 3000) : 0;
    for (int r = 0; r < w->n; r++) {
        rd_kregistered_t *entry = &((rd_kcontrol_t *)w->own[r])->registered[NUMBER];
        arena_used[r] = 0;
        for (int p = 0; p < w->n; p++) {
            entry->base[p] = posted ? (uintptr_t)arena[p] : 0;
            entry->bytes[p] = posted ? ARENA : 0;
        }
    }
}

/* All messages in one global order, each put into a launch of its sender and one of its receiver that is not before the
 * one that the rank was at: whoever runs launch k has only to wait for launches that come no later in the order. */
static int draw_messages(world_t *w, int count)
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
    }
    for (int r = 0; r < w->n; r++)
        launches_of[r] = at[r] + 1;
    return count;
}

static void add_pair(rd_kmessages_t *k, rd_kmessage_t *all, uint32_t *used, int rank, int peer, int send, int launch,
                     int count, uint32_t piece, uint32_t fifos)
{
    rd_kpair_t *pair = &k->pair[k->npairs];

    *pair = (rd_kpair_t){(uint16_t)peer, (uint16_t)send, *used, 0};
    for (int i = 0; i < count; i++) {
        message_t *m = &messages[i];
        if (send ? m->from != rank || m->to != peer || m->send_launch != launch
                 : m->to != rank || m->from != peer || m->receive_launch != launch)
            continue;
        uint32_t warps = rd_kspread(m->bytes, piece, fifos);
        k->warps = warps > k->warps ? warps : k->warps;
        all[(*used)++] = (rd_kmessage_t){send ? m->sent : m->got, m->bytes};
        pair->count++;
    }
    if (pair->count > 0)
        k->npairs++;
}

/* Behind what the rank has queued already. */
static rd_kwork_t *queue(world_t *w, int rank, rd_kkind_t kind, uint32_t blocks, uint32_t threads)
{
    rd_klaunch_t l = {kind, w->fifo_codec, 0, 0, 0, 0, 0};
    int i = rank * DEPTH + queued[rank]++;

    memset(&work[i], 0, sizeof work[i]);
    work[i].comm = world_comm(w, rank);
    launches[i] = (rd_sim_launch_t){rd_kernel_find(&l), blocks, threads, 0, &work[i]};
    return &work[i];
}

static void make_launch(world_t *w, int rank, int launch, int count)
{
    static rd_kmessage_t all[2 * MESSAGES];
    rd_kmessages_t m;
    uint32_t used = 0;

    memset(&m, 0, sizeof m);
    for (int q = 1; q < w->n; q++)
        for (int send = 0; send < 2; send++)
            add_pair(&m, all, &used, rank, (rank + q) % w->n, send, launch, count,
                     rd_kernel_unit(RD_K_MESSAGES, w->fifo_codec), w->fifos);
    m.registered = posted ? NUMBER + 1 + world_draw(w, 3) : 0;
    m.posted = posted;
    m.listed = used > RD_KMESSAGES_HERE || world_draw(w, 3) == 0;
    if (!m.listed)
        memcpy(m.here, all, used * sizeof all[0]);
    for (uint32_t at = 0, bytes = used * sizeof all[0]; at < bytes && m.listed; at += RD_KWRITTEN) {
        rd_kwrite_t *l = &queue(w, rank, RD_K_WRITE, 1 + world_draw(w, 2), 32 * (1 + world_draw(w, 3)))->write;
        l->offset = RD_KLIST_OFFSET + at;
        l->bytes = bytes - at < RD_KWRITTEN ? bytes - at : RD_KWRITTEN;
        memcpy(l->data, (char *)all + at, l->bytes);
    }
    uint32_t threads = 32 * (1 + world_draw(w, 4));
    uint32_t blocks = (m.npairs * m.warps * 32 + threads - 1) / threads + world_draw(w, 2);
    queue(w, rank, RD_K_MESSAGES, blocks + (blocks == 0), threads)->messages = m;
}

/* Behind a launch: reads what has come into the registered buffer. */
static void watch(world_t *w, int rank, int launch, int count)
{
    for (int i = 0; i < count; i++) {
        message_t *m = &messages[i];
        if (m->to != rank || m->receive_launch != launch || !in_arena(m) || !m->bytes)
            continue;
        m->seen = malloc(m->bytes);
        queue(w, rank, RD_K_ALONE, 1, 64)->reduce = (rd_kreduce_t){.in = m->got, .out = m->seen, .count = m->bytes,
                                                                    .type = RONDO_UINT8, .op = RONDO_SUM};
    }
}

static const char *what_is_wrong(int count)
{
    for (int i = 0; i < count; i++) {
        const message_t *m = &messages[i];
        if (m->seen && memcmp(m->sent, m->seen, m->bytes) != 0)
            return "a message had not arrived when its launch was over";
        if (memcmp(m->sent, m->got, m->bytes) != 0)
            return "a message has not arrived as it was sent";
        for (size_t b = m->bytes; b < m->bytes + 64; b++)
            if (m->got[b] != 0x5c)
                return "something behind a message was written";
    }
    return NULL;
}

static int one_round(world_t *w, uint64_t seed, int planted)
{
    static char text[16384];
    do
        draw_registered(w);
    while (planted && !posted);
    int watched = planted || world_draw(w, 3) == 0;
    int count = draw_messages(w, 1 + (int)world_draw(w, watched || world_draw(w, 4) ? WATCHED : MESSAGES));
    const char *wrong = NULL;

    for (int r = 0; r < w->n; r++) {
        queued[r] = 0;
        for (int i = 0; i < launches_of[r]; i++) {
            make_launch(w, r, i, count);
            if (watched)
                watch(w, r, i, count);
        }
        while (queued[r] < DEPTH)
            queue(w, r, RD_K_NOTHING, 1, 32);
    }
    if (rd_sim_queues(launches, w->n, DEPTH, w->random, text, sizeof text))
        wrong = text;
    if (!wrong)
        wrong = what_is_wrong(count);
    for (int i = 0; i < count; i++) {
        free(messages[i].data);
        free(messages[i].seen);
        if (!in_arena(&messages[i]))
            free(messages[i].got);
    }
    if (wrong && !planted)
        printf("seed %llu, %d ranks, %d messages, %u fifos: %s\n", (unsigned long long)seed, w->n, count, w->fifos,
               wrong);
    return wrong ? -1 : 0;
}

/* Does anybody see it when nothing orders what is stored into peers' buffers? */
static int without_fence(void)
{
    int found = 0;

    for (uint64_t seed = 1; seed <= 400 && !found; seed++) {
        world_t w;
        world_begin(&w, 3, seed, 2, 1024);
        rd_sim_break(RD_SIM_NO_FENCE, NULL, NULL);
        found = one_round(&w, seed, 1) != 0;
        rd_sim_break(RD_SIM_SOUND, NULL, NULL);
        world_end(&w);
    }
    printf("no fence behind a share  %s\n", found ? "found" : "was NOT FOUND");
    return !found;
}

int main(int argc, char **argv)
{
    static const int ranks[] = {2, 3, 4, 5, 8};
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    int rounds = argc > 2 ? atoi(argv[2]) : 12, bad = 0;
    world_t w;

    printf("seed %llu, %d rounds\n", (unsigned long long)seed, rounds);
    for (int r = 0; r < RD_KRANKS; r++)
        arena[r] = malloc(ARENA);
    for (int round = 0; round < rounds && !bad; round++)
        for (size_t n = 0; n < sizeof ranks / sizeof *ranks && !bad; n++) {
            seed++;
            world_begin(&w, ranks[n], seed, 1 + (uint32_t)(seed % 5), 1024);
            for (int i = 0; i < 4 && !bad; i++)
                bad = one_round(&w, seed, 0);
            world_end(&w);
        }
    bad = bad || without_fence();
    for (int r = 0; r < RD_KRANKS; r++)
        free(arena[r]);
    return bad ? 1 : 0;
}
