/* The model of all ranks' programs, built and planted with faults: see model.h. */
#include <stdlib.h>

#include "sched/model_parts.h"

uint64_t model_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

int model_rooted(rd_coll_t coll)
{
    return coll == RD_REDUCE || coll == RD_BROADCAST || coll == RD_GATHER || coll == RD_SCATTER;
}

int model_in_blocks(rd_coll_t coll)
{
    return coll == RD_ALLGATHER || coll == RD_REDUCE_SCATTER;
}

int model_can_be_in_place(rd_coll_t coll)
{
    return coll != RD_ALLTOALL && coll != RD_BARRIER;
}

static void *room(void *array, int need, int *have, size_t size)
{
    if (need <= *have)
        return array;
    *have = need + need / 2 + 64;
    array = realloc(array, (size_t)*have * size);
    if (array == NULL)
        abort();
    return array;
}

static int link_number(model_t *m, int from, int to, int channel)
{
    int *number = &m->link_of[(from * (m->n + 1) + to) * RD_CHANNELS + channel];

    if (*number == 0) {
        m->links = room(m->links, m->nlinks + 1, &m->links_room, sizeof(*m->links));
        m->links[m->nlinks++] = (link_t){from, to, channel, 0, 0, 0, 0, -1, -1};
        *number = m->nlinks;
    }
    return *number - 1;
}

static uint32_t shorten(model_t *m, int rank, rd_end_t end, const rd_link_t *links, int sending)
{
    if (end.where != RD_PEER)
        return END(end.where, end.index);
    rd_link_t link = links[end.index];

    return END(RD_PEER,
               sending ? link_number(m, rank, link.peer, link.channel) : link_number(m, link.peer, rank, link.channel));
}

static void take_step(model_t *m, int rank, const rd_program_t *p, const rd_step_t *from)
{
    m->steps[m->nsteps++] =
        (step_t){from->chunk, from->repeat, from->stride, m->nends, from->nsrc, from->ndst, from->part};
    for (int k = 0; k < from->nsrc; k++)
        m->ends[m->nends++] = shorten(m, rank, from->src[k], p->recvs, 0);
    for (int k = 0; k < from->ndst; k++)
        m->ends[m->nends++] = shorten(m, rank, from->dst[k], p->sends, 1);
}

static int out_chunks(const model_t *m, int rank)
{
    switch (m->args.coll) {
    case RD_REDUCE:
    case RD_GATHER:
        return rank == m->args.root ? m->nchunks : 0;
    case RD_REDUCE_SCATTER:
    case RD_SCATTER:
        return 1;
    case RD_BARRIER:
        return 0;
    default:
        return m->nchunks;
    }
}

static void take_program(model_t *m, int rank, const rd_program_t *p)
{
    m->nchunks = p->nchunks;
    m->ranks[rank] = (rank_t){m->ntasks, m->nsteps, p->nsteps, p->ntmp, m->ntmp, out_chunks(m, rank), m->nout};
    m->ntmp += p->ntmp;
    m->nout += m->ranks[rank].nout;
    m->tasks = room(m->tasks, m->ntasks + p->nlanes, &m->tasks_room, sizeof(*m->tasks));
    m->steps = room(m->steps, m->nsteps + p->nsteps, &m->steps_room, sizeof(*m->steps));
    m->ends = room(m->ends, m->nends + p->nsteps * 2 * RD_MAX_ENDS, &m->ends_room, sizeof(*m->ends));
    for (int l = 0; l < p->nlanes; l++) {
        rd_lane_t lane = p->lanes[l];

        m->tasks[m->ntasks++] =
            (task_t){.rank = rank, .lane = l, .first = m->nsteps, .count = lane.count, .channel = lane.channel};
        for (int i = lane.first; i < lane.first + lane.count; i++)
            take_step(m, rank, p, &p->steps[i]);
    }
}

/* Returns true if two lanes of a reduction have to do with one chunk of the output, which an executor may keep in
 * scratch, a slice at a time, while each lane is in a pass of its own. */
static bool outputs_shared(const model_t *m, const rd_program_t *p)
{
    int *lane_of = calloc((size_t)p->nchunks, sizeof *lane_of);
    bool shared = false;

    if (lane_of == NULL)
        abort();
    for (int l = 0; l < p->nlanes && m->reduces; l++) {
        for (int i = p->lanes[l].first; i < p->lanes[l].first + p->lanes[l].count; i++) {
            const rd_step_t *s = &p->steps[i];
            for (int k = 0, shift = 0; k < s->repeat; k++, shift = (shift + s->stride + p->nchunks) % p->nchunks) {
                for (int e = 0; e < s->nsrc + s->ndst; e++) {
                    rd_end_t end = e < s->nsrc ? s->src[e] : s->dst[e - s->nsrc];
                    int *of = &lane_of[(end.index + shift) % p->nchunks];
                    if (end.where != RD_OUT)
                        continue;
                    shared |= *of != 0 && *of != l + 1;
                    *of = l + 1;
                }
            }
        }
    }
    free(lane_of);
    return shared;
}

/* ---- the switch, whose steps take a message of each rank of a rail and send each of them what comes of it */

/* Returns the connection between a rank and the switch, or -1: they have none. */
static int switch_link(const model_t *m, int rank, int sends)
{
    const int other = rd_switch_of(&m->shape), from = sends ? rank : other, to = sends ? other : rank;

    for (int channel = 0; channel < RD_CHANNELS; channel++)
        if (m->link_of[(from * (m->n + 1) + to) * RD_CHANNELS + channel])
            return m->link_of[(from * (m->n + 1) + to) * RD_CHANNELS + channel] - 1;
    return -1;
}

/* Returns the chunk that goes by this connection. */
static int chunk_of_link(const model_t *m, int link)
{
    for (int i = 0; i < m->nsteps; i++)
        for (int k = m->steps[i].first_end + m->steps[i].nsrc;
             k < m->steps[i].first_end + m->steps[i].nsrc + m->steps[i].ndst; k++)
            if (m->ends[k] == END(RD_PEER, link))
                return m->steps[i].chunk;
    return 0;
}

/* `heads`: the rank of each node that is on the rail. */
static void add_rail(model_t *m, int rail, const int *heads)
{
    step_t step = {.repeat = 1, .first_end = m->nends};

    m->ends = room(m->ends, m->nends + 2 * m->n, &m->ends_room, sizeof *m->ends);
    for (int sends = 1; sends >= 0; sends--)
        for (int v = 0; v < m->shape.nnodes; v++) {
            int link = switch_link(m, heads[v], sends);
            if (link < 0)
                continue;
            m->ends[m->nends++] = END(RD_PEER, link);
            if (sends && step.nsrc == 0)
                step.chunk = chunk_of_link(m, link);
            step.nsrc += sends;
            step.ndst += !sends;
        }
    m->tasks = room(m->tasks, m->ntasks + 1, &m->tasks_room, sizeof *m->tasks);
    m->steps = room(m->steps, m->nsteps + 1, &m->steps_room, sizeof *m->steps);
    m->tasks[m->ntasks++] = (task_t){.rank = rd_switch_of(&m->shape), .lane = rail, .first = m->nsteps, .count = 1};
    m->steps[m->nsteps++] = step;
}

/* The heads of a node are its first ranks. */
static void add_switch(model_t *m)
{
    int *heads = calloc((size_t)m->shape.nnodes * 2, sizeof *heads), *from = heads + m->shape.nnodes;

    if (heads == NULL)
        abort();
    for (int rail = 0, left = 1; left; rail++) {
        left = 1;
        for (int v = 0; v < m->shape.nnodes && left; v++) {
            while (from[v] < m->n && m->shape.node[from[v]] != v)
                from[v]++;
            heads[v] = from[v] < m->n ? from[v]++ : -1;
            left = heads[v] >= 0 && switch_link(m, heads[v], 1) >= 0;
        }
        if (left)
            add_rail(m, rail, heads);
    }
    free(heads);
}

rd_visits_t model_order;

model_t *model_build(const rd_algo_t *algo, const rd_sched_args_t *args, int fuse, const char **why)
{
    model_t *m = calloc(1, sizeof(*m));

    if (m == NULL)
        abort();
    m->args = *args;
    m->shape = *args->shape;
    m->args.shape = &m->shape;
    m->n = m->shape.nranks;
    m->reduces = args->coll == RD_ALLREDUCE || args->coll == RD_REDUCE || args->coll == RD_REDUCE_SCATTER;
    m->alike = algo->relays || (algo->switched && model_in_blocks(args->coll));
    m->ranks = calloc((size_t)m->n, sizeof(*m->ranks));
    m->link_of = calloc((size_t)(m->n + 1) * (size_t)(m->n + 1) * RD_CHANNELS, sizeof(*m->link_of));
    if (m->ranks == NULL || m->link_of == NULL)
        abort();
    for (int r = 0; r < m->n; r++) {
        rd_program_t *p;
        rd_steps_t *s;
        bool shared;
        int rc;

        m->args.rank = r;
        s = rd_visits_emit(algo, &m->args, &model_order);
        rc = rd_compile(s, fuse, &p, why);
        rd_steps_free(s);
        if (rc != 0) {
            model_free(m);
            return NULL;
        }
        take_program(m, r, p);
        shared = outputs_shared(m, p);
        rd_program_free(p);
        if (shared) {
            *why = "two lanes have to do with one chunk of the output";
            model_free(m);
            return NULL;
        }
    }
    if (algo->switched)
        add_switch(m);
    return m;
}

void model_free(model_t *m)
{
    free(m->ranks);
    free(m->tasks);
    free(m->steps);
    free(m->ends);
    free(m->links);
    free(m->link_of);
    free(m);
}

/* ---- planted faults in programs ---- */

int model_steps(const model_t *m, int rank)
{
    return m->ranks[rank].nsteps;
}

int model_drop_step(model_t *m, int rank, int step)
{
    step_t *s = &m->steps[m->ranks[rank].first_step + step];

    s->repeat--; /* of a repeat the last one */
    return 0;
}

/* The first message of the step goes to, or is expected from, the rank `by` further on. */
int model_swap_peer(model_t *m, int rank, int step, int by)
{
    step_t *s = &m->steps[m->ranks[rank].first_step + step];

    for (int k = 0; k < s->nsrc + s->ndst; k++) {
        uint32_t *end = &m->ends[s->first_end + k];
        link_t link;
        int peer;

        if (WHERE(*end) != RD_PEER)
            continue;
        link = m->links[INDEX(*end)];
        peer = ((link.from == rank ? link.to : link.from) + by) % m->n;
        if (peer == rank)
            return -1;
        *end = END(RD_PEER, link.from == rank ? link_number(m, rank, peer, link.channel)
                                              : link_number(m, peer, rank, link.channel));
        return 0;
    }
    return -1;
}

/* The message ends with this step's block. */
int model_split(model_t *m, int rank, int step)
{
    step_t *s = &m->steps[m->ranks[rank].first_step + step];

    if (s->part != RD_PART_MORE)
        return -1;
    s->part = RD_PART_LAST;
    return 0;
}

/* ---- what a program has ---- */

int model_messages(const model_t *m, int rank)
{
    const rank_t *r = &m->ranks[rank];
    int messages = 0;

    for (int i = r->first_step; i < r->first_step + r->nsteps; i++) {
        const step_t *s = &m->steps[i];
        for (int k = s->nsrc; k < s->nsrc + s->ndst && s->part != RD_PART_MORE; k++)
            messages += WHERE(m->ends[s->first_end + k]) == RD_PEER ? s->repeat : 0;
    }
    return messages;
}

int model_blocks(const model_t *m, int rank)
{
    const rank_t *r = &m->ranks[rank];
    int blocks = 0, most = 0;

    for (int i = r->first_step; i < r->first_step + r->nsteps; i++) {
        const step_t *s = &m->steps[i];
        blocks += s->repeat;
        most = s->part != RD_ALONE && blocks > most ? blocks : most;
        blocks = s->part == RD_PART_MORE ? blocks : 0;
    }
    return most > 0 ? most : 1;
}

int model_scratch(const model_t *m, int rank)
{
    return m->ranks[rank].ntmp;
}
