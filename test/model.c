/* See model.h. Steps are kept short (an end is one word), so that a thousand ranks fit and run fast. */
#include "model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct value {
    uint64_t set, order;
} value_t;

typedef struct slot {
    value_t value;
    int seq;
} slot_t;

typedef struct step {
    int32_t chunk, repeat, stride, first_end;
    int16_t nsrc, ndst;
} step_t;

/* An end in one word: where in the upper bits, chunk, place or connection in the lower ones. */
#define END(where, index) ((uint32_t)(where) << 28 | (uint32_t)(index))
#define WHERE(end) ((int)((end) >> 28))
#define INDEX(end) ((int)((end)&0xfffffff))

typedef struct task { /* a lane of a rank */
    int rank, lane, first, count, channel;
    int step, done, pass, passes; /* where it stands; `done` of the repeats of its step */
    int queued, starved;
} task_t;

typedef struct rank {
    int first_task, first_step, nsteps;
    int ntmp, first_tmp;
    int nout, first_out; /* chunks of OUT that exist, and where their cells begin */
} rank_t;

typedef struct tmp {
    value_t value;
    int task, pass; /* who wrote it, and when; -1: nobody */
} tmp_t;

typedef struct link {
    int from, to, channel;
    int sent, taken;
    int sender, receiver; /* tasks that wait for it, -1: none */
} link_t;

struct model {
    rd_sched_args_t args;
    rd_shape_t shape;
    int n, nchunks, reduces;
    rank_t *ranks;
    task_t *tasks;
    step_t *steps;
    uint32_t *ends;
    link_t *links;
    int *link_of; /* [from][to][channel]: number + 1 */
    int ntasks, nsteps, nends, nlinks, ntmp, nout;
    int tasks_room, steps_room, ends_room, links_room;
    /* of one run */
    const model_run_t *run;
    int *len;
    tmp_t *tmp;
    value_t *out;
    slot_t *slots;
    uint64_t *know, *slot_know; /* barrier: the ranks known to have come, a bit each */
    int words;
    int *queue[2], head[2], count[2]; /* ready lanes; the second for those that are starved */
    uint64_t rng;
    int done, ahead;
    char text[256];
};

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

int model_can_be_in_place(rd_coll_t coll)
{
    return coll != RD_ALLTOALL && coll != RD_BARRIER;
}

static value_t leaf(int rank, int chunk, int pass)
{
    uint64_t h = model_mix((uint64_t)rank << 40 ^ (uint64_t)chunk << 16 ^ (uint64_t)pass);

    return (value_t){h, h};
}

/* ---- building ---- */

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
    int *number = &m->link_of[(from * m->n + to) * RD_CHANNELS + channel];

    if (*number == 0) {
        m->links = room(m->links, m->nlinks + 1, &m->links_room, sizeof(*m->links));
        m->links[m->nlinks++] = (link_t){from, to, channel, 0, 0, -1, -1};
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
    m->steps[m->nsteps++] = (step_t){from->chunk, from->repeat, from->stride, m->nends, from->nsrc, from->ndst};
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
    m->ranks = calloc((size_t)m->n, sizeof(*m->ranks));
    m->link_of = calloc((size_t)m->n * (size_t)m->n * RD_CHANNELS, sizeof(*m->link_of));
    if (m->ranks == NULL || m->link_of == NULL)
        abort();
    for (int r = 0; r < m->n; r++) {
        rd_program_t *p;
        rd_steps_t *s;
        int rc;

        m->args.rank = r;
        s = algo->emit(&m->args);
        rc = rd_compile(s, fuse, &p, why);
        rd_steps_free(s);
        if (rc != 0) {
            model_free(m);
            return NULL;
        }
        take_program(m, r, p);
        rd_program_free(p);
    }
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

int model_ahead(const model_t *m)
{
    return m->ahead;
}

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

/* ---- running ---- */

static int wrong(model_t *m, const task_t *t, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int wrong(model_t *m, const task_t *t, const char *format, ...)
{
    size_t at = 0;
    va_list args;

    if (t != NULL)
        at = (size_t)snprintf(m->text, sizeof(m->text), "rank %d, lane %d, step %d, pass %d: ", t->rank, t->lane,
                              t->step, t->pass);
    va_start(args, format);
    vsnprintf(m->text + at, sizeof(m->text) - at, format, args);
    va_end(args);
    return -1;
}

static int in_exists(const model_t *m, int rank, int chunk)
{
    switch (m->args.coll) {
    case RD_BROADCAST:
    case RD_SCATTER:
        return rank == m->args.root;
    case RD_ALLGATHER:
    case RD_GATHER:
        return chunk == rank;
    case RD_BARRIER:
        return 0;
    default:
        return 1;
    }
}

/* The cell of OUT, or NULL where there is no such buffer. */
static value_t *out_cell(model_t *m, int rank, int chunk, int pass)
{
    const rank_t *r = &m->ranks[rank];

    if (r->nout == 1 && m->nchunks > 1) {
        if (chunk != rank)
            return NULL;
        chunk = 0;
    }
    if (chunk >= r->nout)
        return NULL;
    return &m->out[(size_t)(r->first_out + chunk) * (size_t)m->run->passes + (size_t)pass];
}

static int same(value_t a, value_t b)
{
    return a.set == b.set && a.order == b.order;
}

static int written(const value_t *v)
{
    return v->set != 0 || v->order != 0;
}

static int length_in(const model_t *m, int rank, int chunk)
{
    return m->args.coll == RD_ALLTOALL ? m->len[rank * m->n + chunk] : m->len[chunk];
}

static int length_out(const model_t *m, int rank, int chunk)
{
    return m->args.coll == RD_ALLTOALL ? m->len[chunk * m->n + rank] : m->len[chunk];
}

/* Whether the step has a slice in this pass. */
static int active(const model_t *m, const task_t *t, const step_t *s, int chunk)
{
    const uint32_t *ends = &m->ends[s->first_end];

    if (m->args.coll == RD_ALLTOALL && WHERE(ends[0]) == RD_PEER)
        return t->pass < length_out(m, t->rank, chunk);
    return t->pass < length_in(m, t->rank, chunk);
}

static void make_ready(model_t *m, int task)
{
    task_t *t = &m->tasks[task];
    int q = t->starved;

    if (t->queued)
        return;
    t->queued = 1;
    m->queue[q][(m->head[q] + m->count[q]++) % m->ntasks] = task;
}

static uint64_t draw(model_t *m)
{
    return model_mix(m->rng++);
}

static int pick(model_t *m)
{
    int q = m->count[0] > 0 ? 0 : 1, *queue = m->queue[q], at, last, task;

    if (m->count[q] == 0)
        return -1;
    if (m->run->policy == MODEL_FIFO) {
        task = queue[m->head[q]];
        m->head[q] = (m->head[q] + 1) % m->ntasks;
    } else {
        last = at = (m->head[q] + m->count[q] - 1) % m->ntasks;
        if (m->run->policy != MODEL_LIFO)
            at = (m->head[q] + (int)(draw(m) % (uint64_t)m->count[q])) % m->ntasks;
        task = queue[at];
        queue[at] = queue[last];
    }
    m->count[q]--;
    m->tasks[task].queued = 0;
    return task;
}

static int moved(const model_t *m, const step_t *s, const task_t *t, int index)
{
    return (int)((index + (int64_t)s->stride * t->done) % m->nchunks);
}

/* Nonzero if a message or a credit is missing; then the lane waits there. */
static int blocked(model_t *m, int task, const step_t *s)
{
    const uint32_t *ends = &m->ends[s->first_end];
    int credits = m->run->credits + m->run->early_credit;

    for (int k = 0; k < s->nsrc + s->ndst; k++) {
        link_t *link;

        if (WHERE(ends[k]) != RD_PEER)
            continue;
        link = &m->links[INDEX(ends[k])];
        if (k < s->nsrc && link->sent == link->taken) {
            link->receiver = task;
            return 1;
        }
        if (k >= s->nsrc && link->sent - link->taken >= credits) {
            link->sender = task;
            return 1;
        }
    }
    return 0;
}

static slot_t *slot_of(model_t *m, int link, int seq)
{
    int credits = m->run->credits;

    return &m->slots[link * credits + (m->run->same_bank ? 0 : seq % credits)];
}

static int take_message(model_t *m, task_t *t, int number, value_t *v)
{
    link_t *link = &m->links[number];
    slot_t *slot = slot_of(m, number, link->taken);

    if (slot->seq != link->taken + 1)
        return wrong(m, t, "message %d from rank %d: its slot holds message %d (overwritten before it was read)",
                     link->taken + 1, link->from, slot->seq);
    *v = slot->value;
    if (m->know != NULL)
        for (int w = 0; w < m->words; w++)
            m->know[t->rank * m->words + w] |= m->slot_know[(slot - m->slots) * m->words + w];
    link->taken++;
    if (link->sender >= 0)
        make_ready(m, link->sender);
    link->sender = -1;
    return 0;
}

static void put_message(model_t *m, const task_t *t, int number, value_t v)
{
    link_t *link = &m->links[number];
    slot_t *slot = slot_of(m, number, link->sent);

    slot->value = v;
    slot->seq = ++link->sent;
    if (link->sent - link->taken > m->ahead)
        m->ahead = link->sent - link->taken;
    if (m->know != NULL)
        memcpy(&m->slot_know[(slot - m->slots) * m->words], &m->know[t->rank * m->words],
               (size_t)m->words * sizeof(*m->know));
    if (link->receiver >= 0)
        make_ready(m, link->receiver);
    link->receiver = -1;
}

static int read_in(model_t *m, task_t *t, int chunk, value_t *v)
{
    const value_t *over;

    *v = leaf(t->rank, chunk, t->pass);
    if (!in_exists(m, t->rank, chunk))
        return wrong(m, t, "reads IN %d, which this rank does not have", chunk);
    if (!m->run->in_place)
        return 0;
    over = out_cell(m, t->rank, chunk, t->pass);
    if (over != NULL && written(over) && (m->reduces || !same(*over, *v)))
        return wrong(m, t, "reads IN %d, which was overwritten in place", chunk);
    return 0;
}

static int read_tmp(model_t *m, task_t *t, int place, value_t *v)
{
    const tmp_t *tmp = &m->tmp[m->ranks[t->rank].first_tmp + place];

    if (place >= m->ranks[t->rank].ntmp)
        return wrong(m, t, "scratch %d of %d", place, m->ranks[t->rank].ntmp);
    *v = tmp->value;
    if (m->args.coll != RD_BARRIER && (&m->tasks[tmp->task] != t || tmp->pass != t->pass))
        return wrong(m, t, "reads scratch %d, which this lane did not write in this pass", place);
    return 0;
}

static int read_end(model_t *m, task_t *t, const step_t *s, uint32_t end, value_t *v)
{
    const value_t *cell;
    int chunk;

    switch (WHERE(end)) {
    case RD_PEER:
        return take_message(m, t, INDEX(end), v);
    case RD_TMP:
        return read_tmp(m, t, INDEX(end), v);
    case RD_IN:
        chunk = moved(m, s, t, INDEX(end));
        if (t->pass >= length_in(m, t->rank, chunk))
            return wrong(m, t, "reads IN %d beyond its end", chunk);
        return read_in(m, t, chunk, v);
    default:
        chunk = moved(m, s, t, INDEX(end));
        if (t->pass >= length_out(m, t->rank, chunk))
            return wrong(m, t, "reads OUT %d beyond its end", chunk);
        cell = out_cell(m, t->rank, chunk, t->pass);
        if (cell == NULL || !written(cell))
            return wrong(m, t, "reads OUT %d, which nobody wrote", chunk);
        *v = *cell;
        return 0;
    }
}

static int write_end(model_t *m, task_t *t, const step_t *s, uint32_t end, value_t v)
{
    value_t *cell;
    int chunk;

    switch (WHERE(end)) {
    case RD_PEER:
        put_message(m, t, INDEX(end), v);
        return 0;
    case RD_TMP:
        if (INDEX(end) >= m->ranks[t->rank].ntmp)
            return wrong(m, t, "scratch %d of %d", INDEX(end), m->ranks[t->rank].ntmp);
        m->tmp[m->ranks[t->rank].first_tmp + INDEX(end)] = (tmp_t){v, (int)(t - m->tasks), t->pass};
        return 0;
    case RD_IN:
        return wrong(m, t, "writes the input");
    default:
        chunk = moved(m, s, t, INDEX(end));
        cell = out_cell(m, t->rank, chunk, t->pass);
        if (cell == NULL || t->pass >= length_out(m, t->rank, chunk))
            return wrong(m, t, "writes OUT %d, which this rank does not have", chunk);
        *cell = v;
        return 0;
    }
}

static int do_step(model_t *m, task_t *t, const step_t *s)
{
    value_t v = {0, 0}, next = {0, 0};

    for (int k = 0; k < s->nsrc; k++) {
        if (read_end(m, t, s, m->ends[s->first_end + k], &next) != 0)
            return -1;
        v.set += next.set;
        v.order = s->nsrc == 1 ? next.order : model_mix(v.order * 3 + next.order);
    }
    if (s->nsrc > 1 && !m->reduces)
        return wrong(m, t, "sums in an operation without sums");
    for (int k = s->nsrc; k < s->nsrc + s->ndst; k++)
        if (write_end(m, t, s, m->ends[s->first_end + k], v) != 0)
            return -1;
    return 0;
}

/* Advances a lane by one step, or until it blocks. -1: something is wrong. */
static int advance(model_t *m, int task)
{
    task_t *t = &m->tasks[task];
    int greedy = m->run->policy == MODEL_FIFO || m->run->policy == MODEL_LIFO;

    while (t->pass < t->passes) {
        const step_t *s;

        if (t->step == t->count) {
            t->step = 0;
            t->pass++;
            continue;
        }
        s = &m->steps[t->first + t->step];
        if (t->done >= s->repeat) {
            t->done = 0;
            t->step++;
            continue;
        }
        if (active(m, t, s, moved(m, s, t, s->chunk))) {
            if (blocked(m, task, s))
                return 0;
            if (do_step(m, t, s) != 0)
                return -1;
            t->done++;
            if (!greedy) {
                make_ready(m, task);
                return 0;
            }
        } else {
            t->done++;
        }
    }
    m->done++;
    return 0;
}

/* ---- what must come out ---- */

static value_t expected(const model_t *m, int rank, int chunk, int pass)
{
    value_t sum = {0, 0};

    switch (m->args.coll) {
    case RD_BROADCAST:
    case RD_SCATTER:
        return leaf(m->args.root, chunk, pass);
    case RD_ALLGATHER:
    case RD_GATHER:
        return leaf(chunk, chunk, pass);
    case RD_ALLTOALL:
        return leaf(chunk, rank, pass);
    default:
        for (int r = 0; r < m->n; r++)
            sum.set += leaf(r, chunk, pass).set;
        return sum;
    }
}

/* One chunk on all ranks; for sums the order on the first rank is that of all. */
static int verify_chunk(model_t *m, int chunk)
{
    for (int p = 0; p < m->run->passes; p++) {
        value_t want = {0, 0};

        for (int r = 0; r < m->n; r++) {
            const value_t *cell = out_cell(m, r, chunk, p);

            if (cell == NULL || p >= length_out(m, r, chunk))
                continue;
            if (m->args.coll == RD_ALLTOALL || !written(&want))
                want = expected(m, r, chunk, p);
            if (m->reduces && want.order == 0)
                want.order = cell->order;
            if (cell->set != want.set)
                return wrong(m, NULL, "rank %d, chunk %d, pass %d: wrong result", r, chunk, p);
            if (cell->order != want.order)
                return wrong(m, NULL, "rank %d, chunk %d, pass %d: summed in another order", r, chunk, p);
        }
    }
    return 0;
}

static int verify(model_t *m)
{
    for (int i = 0; i < m->ntasks; i++) {
        const task_t *t = &m->tasks[i];

        if (t->pass < t->passes)
            return wrong(m, t, "deadlock: %d of %d lanes ended", m->done, m->ntasks);
    }
    for (int i = 0; i < m->nlinks; i++)
        if (m->links[i].sent != m->links[i].taken)
            return wrong(m, NULL, "from rank %d to %d: %d messages sent, %d taken", m->links[i].from, m->links[i].to,
                         m->links[i].sent, m->links[i].taken);
    for (int i = 0; m->know != NULL && i < m->n * m->n; i++)
        if (!(m->know[i / m->n * m->words + i % m->n / 64] >> (i % m->n % 64) & 1))
            return wrong(m, NULL, "rank %d left before rank %d came", i / m->n, i % m->n);
    for (int c = 0; c < m->nchunks; c++)
        if (verify_chunk(m, c) != 0)
            return -1;
    return 0;
}

/* ---- a run ---- */

static int choose_lengths(model_t *m)
{
    int count = m->args.coll == RD_ALLTOALL ? m->n * m->n : m->nchunks, passes = m->run->passes;

    m->len = malloc((size_t)count * sizeof(*m->len));
    if (m->len == NULL)
        return -1;
    for (int i = 0; i < count; i++)
        m->len[i] = m->run->len != NULL ? m->run->len[i] : passes - (int)(model_mix(m->run->seed + i) % passes);
    if (m->run->len == NULL)
        m->len[m->run->seed % (uint64_t)count] = passes;
    return 0;
}

static void start_tasks(model_t *m)
{
    for (int i = 0; i < m->ntasks; i++) {
        task_t *t = &m->tasks[i];

        t->step = t->done = t->pass = t->queued = t->starved = 0;
        t->passes = m->run->passes;
        if (m->run->policy == MODEL_STARVE)
            t->starved = draw(m) % 4 == 0;
        if (m->run->policy == MODEL_STARVE_LOW || m->run->policy == MODEL_STARVE_HIGH)
            t->starved = t->lane % 2 == (m->run->policy == MODEL_STARVE_HIGH);
        make_ready(m, i);
    }
}

static int start(model_t *m)
{
    size_t cells = (size_t)m->nout * (size_t)m->run->passes, slots = (size_t)(m->nlinks * m->run->credits);

    m->rng = model_mix(m->run->seed) ^ m->run->policy;
    m->words = (m->n + 63) / 64;
    m->done = m->ahead = m->head[0] = m->head[1] = m->count[0] = m->count[1] = 0;
    m->tmp = malloc((size_t)(m->ntmp + 1) * sizeof(*m->tmp));
    m->out = calloc(cells + 1, sizeof(*m->out));
    m->slots = calloc(slots + 1, sizeof(*m->slots));
    m->queue[0] = malloc((size_t)(2 * m->ntasks + 1) * sizeof(int));
    if (m->tmp == NULL || m->out == NULL || m->slots == NULL || m->queue[0] == NULL || choose_lengths(m) != 0)
        return -1;
    m->queue[1] = m->queue[0] + m->ntasks;
    if (m->args.coll == RD_BARRIER) {
        m->know = calloc((size_t)(m->n * m->words), sizeof(*m->know));
        m->slot_know = calloc((slots + 1) * (size_t)m->words, sizeof(*m->know));
        if (m->know == NULL || m->slot_know == NULL)
            return -1;
        for (int r = 0; r < m->n; r++)
            m->know[r * m->words + r / 64] = (uint64_t)1 << r % 64;
    }
    for (int i = 0; i < m->ntmp; i++)
        m->tmp[i] = (tmp_t){{0, 0}, 0, -1};
    for (int i = 0; i < m->nlinks; i++) {
        m->links[i].sent = m->links[i].taken = 0;
        m->links[i].sender = m->links[i].receiver = -1;
    }
    start_tasks(m);
    return 0;
}

static void finish(model_t *m)
{
    free(m->tmp);
    free(m->out);
    free(m->slots);
    free(m->queue[0]);
    free(m->len);
    free(m->know);
    free(m->slot_know);
    m->know = m->slot_know = NULL;
    m->len = NULL;
    m->queue[0] = NULL;
}

const char *model_run(model_t *m, const model_run_t *run)
{
    int rc = 0, task;

    m->run = run;
    if (start(m) != 0)
        abort();
    while (rc == 0 && (task = pick(m)) >= 0)
        rc = advance(m, task);
    if (rc == 0)
        rc = verify(m);
    finish(m);
    return rc == 0 ? NULL : m->text;
}
