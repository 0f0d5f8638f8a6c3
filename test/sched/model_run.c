/* A run of the model: see model.h. It is what test/sched spends its time with, so it is optimised also where tests are
 * compiled quickly. */
#pragma GCC optimize "O3"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/model_parts.h"

value_t model_leaf(int rank, int chunk, int pass)
{
    uint64_t h = model_mix((uint64_t)rank << 40 ^ (uint64_t)chunk << 16 ^ (uint64_t)pass);

    return (value_t){h, h};
}

int model_wrong(model_t *m, const task_t *t, const char *format, ...)
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

value_t *model_out_cell(model_t *m, int rank, int chunk, int pass)
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

int model_written(const value_t *v)
{
    return v->set != 0 || v->order != 0;
}

static int length_in(const model_t *m, int rank, int chunk)
{
    return m->args.coll == RD_ALLTOALL ? m->len[rank * m->n + chunk] : m->len[chunk];
}

int model_length_out(const model_t *m, int rank, int chunk)
{
    return m->args.coll == RD_ALLTOALL ? m->len[chunk * m->n + rank] : m->len[chunk];
}

/* Whether the step has a slice in this pass. */
static int active(const model_t *m, const task_t *t, const step_t *s, int chunk)
{
    const uint32_t *ends = &m->ends[s->first_end];

    if (m->args.coll == RD_ALLTOALL && WHERE(ends[0]) == RD_PEER)
        return t->pass < model_length_out(m, t->rank, chunk);
    return t->pass < length_in(m, t->rank, chunk);
}

/* A place in a queue; `at` is below twice its length. */
static int around(const model_t *m, int at)
{
    return at < m->ntasks ? at : at - m->ntasks;
}

void model_make_ready(model_t *m, int task)
{
    task_t *t = &m->tasks[task];
    int q = t->starved;

    if (t->queued)
        return;
    t->queued = 1;
    m->queue[q][around(m, m->head[q] + m->count[q]++)] = task;
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
        m->head[q] = around(m, m->head[q] + 1);
    } else {
        last = at = around(m, m->head[q] + m->count[q] - 1);
        if (m->run->policy != MODEL_LIFO)
            at = around(m, m->head[q] + (int)(draw(m) % (uint64_t)m->count[q]));
        task = queue[at];
        queue[at] = queue[last];
    }
    m->count[q]--;
    m->tasks[task].queued = 0;
    return task;
}

static int moved(const model_t *m, const step_t *s, const task_t *t, int index)
{
    if (t->done == 0 && index < m->nchunks)
        return index;
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

static int read_in(model_t *m, task_t *t, int chunk, value_t *v)
{
    const value_t *over;

    *v = model_leaf(t->rank, chunk, t->pass);
    if (!in_exists(m, t->rank, chunk))
        return model_wrong(m, t, "reads IN %d, which this rank does not have", chunk);
    if (!m->run->in_place)
        return 0;
    over = model_out_cell(m, t->rank, chunk, t->pass);
    if (over != NULL && model_written(over) && (m->reduces || !same(*over, *v)))
        return model_wrong(m, t, "reads IN %d, which was overwritten in place", chunk);
    return 0;
}

static int read_tmp(model_t *m, task_t *t, int place, value_t *v)
{
    const tmp_t *tmp = &m->tmp[m->ranks[t->rank].first_tmp + place];

    if (place >= m->ranks[t->rank].ntmp)
        return model_wrong(m, t, "scratch %d of %d", place, m->ranks[t->rank].ntmp);
    *v = tmp->value;
    if (m->args.coll != RD_BARRIER && (&m->tasks[tmp->task] != t || tmp->pass != t->pass))
        return model_wrong(m, t, "reads scratch %d, which this lane did not write in this pass", place);
    return 0;
}

static int read_end(model_t *m, task_t *t, const step_t *s, uint32_t end, value_t *v)
{
    const value_t *cell;
    int chunk;

    switch (WHERE(end)) {
    case RD_PEER:
        return model_take(m, t, INDEX(end), s->part, v);
    case RD_TMP:
        return read_tmp(m, t, INDEX(end), v);
    case RD_IN:
        chunk = moved(m, s, t, INDEX(end));
        if (t->pass >= length_in(m, t->rank, chunk))
            return model_wrong(m, t, "reads IN %d beyond its end", chunk);
        return read_in(m, t, chunk, v);
    default:
        chunk = moved(m, s, t, INDEX(end));
        if (t->pass >= model_length_out(m, t->rank, chunk))
            return model_wrong(m, t, "reads OUT %d beyond its end", chunk);
        cell = model_out_cell(m, t->rank, chunk, t->pass);
        if (cell == NULL || !model_written(cell))
            return model_wrong(m, t, "reads OUT %d, which nobody wrote", chunk);
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
        model_put(m, t, INDEX(end), s->part, v);
        return 0;
    case RD_TMP:
        if (INDEX(end) >= m->ranks[t->rank].ntmp)
            return model_wrong(m, t, "scratch %d of %d", INDEX(end), m->ranks[t->rank].ntmp);
        m->tmp[m->ranks[t->rank].first_tmp + INDEX(end)] = (tmp_t){v, (int)(t - m->tasks), t->pass};
        return 0;
    case RD_IN:
        return model_wrong(m, t, "writes the input");
    default:
        chunk = moved(m, s, t, INDEX(end));
        cell = model_out_cell(m, t->rank, chunk, t->pass);
        if (cell == NULL || t->pass >= model_length_out(m, t->rank, chunk))
            return model_wrong(m, t, "writes OUT %d, which this rank does not have", chunk);
        *cell = v;
        return 0;
    }
}

/* ---- what a switch makes of a message of each node */

#define NODES_MOST 1024

/* Allgather: the messages are blocks, of which all go back as one. */
static int switch_gathers(model_t *m, task_t *t, const step_t *s)
{
    value_t blocks[NODES_MOST];

    for (int k = 0; k < s->nsrc; k++)
        if (read_end(m, t, s, m->ends[s->first_end + k], &blocks[k]) != 0)
            return -1;
    for (int k = s->nsrc; k < s->nsrc + s->ndst; k++) {
        const int link = INDEX(m->ends[s->first_end + k]);
        for (int i = 0; i < s->nsrc; i++)
            model_put(m, t, link, RD_PART_MORE, blocks[i]);
        model_publish(m, link);
    }
    return 0;
}

/* Reduce-scatter: each message is a block for each node, which gets its sum. */
static int switch_scatters(model_t *m, task_t *t, const step_t *s)
{
    value_t sums[NODES_MOST] = {{0, 0}}, next = {0, 0};

    for (int k = 0; k < s->nsrc; k++) {
        const int link = INDEX(m->ends[s->first_end + k]);
        for (int i = 0; i < s->ndst; i++) {
            if (model_take(m, t, link, RD_PART_MORE, &next) != 0)
                return -1;
            sums[i].set += next.set;
            sums[i].order = model_mix(sums[i].order * 3 + next.order);
        }
        if (model_taken(m, t, link) != 0)
            return -1;
    }
    for (int i = 0; i < s->ndst; i++)
        model_put(m, t, INDEX(m->ends[s->first_end + s->nsrc + i]), RD_ALONE, sums[i]);
    return 0;
}

/* Broadcast: of all messages it is that of the root's node that goes to all. */
static int switch_repeats(model_t *m, task_t *t, const step_t *s)
{
    value_t root = {0, 0}, next = {0, 0};

    for (int k = 0; k < s->nsrc; k++) {
        if (read_end(m, t, s, m->ends[s->first_end + k], &next) != 0)
            return -1;
        root = k == m->shape.node[m->args.root] ? next : root;
    }
    for (int k = s->nsrc; k < s->nsrc + s->ndst; k++)
        model_put(m, t, INDEX(m->ends[s->first_end + k]), RD_ALONE, root);
    return 0;
}

/* Returns true if the step gives a switch that repeats a message of no meaning: it may be any scratch. */
static bool gives_nothing(const model_t *m, const task_t *t, const step_t *s)
{
    const uint32_t *ends = &m->ends[s->first_end];

    return m->args.coll == RD_BROADCAST && s->nsrc == 1 && s->ndst == 1 && WHERE(ends[0]) == RD_TMP &&
           WHERE(ends[1]) == RD_PEER && m->links[INDEX(ends[1])].to == rd_switch_of(&m->shape) &&
           m->shape.node[t->rank] != m->shape.node[m->args.root];
}

static int do_step(model_t *m, task_t *t, const step_t *s)
{
    value_t v = {0, 0}, next = {0, 0};

    if (t->rank == rd_switch_of(&m->shape) && m->args.coll == RD_ALLGATHER)
        return switch_gathers(m, t, s);
    if (t->rank == rd_switch_of(&m->shape) && m->args.coll == RD_REDUCE_SCATTER)
        return switch_scatters(m, t, s);
    if (t->rank == rd_switch_of(&m->shape) && m->args.coll == RD_BROADCAST)
        return switch_repeats(m, t, s);
    if (gives_nothing(m, t, s)) {
        model_put(m, t, INDEX(m->ends[s->first_end + 1]), RD_ALONE, v);
        return 0;
    }
    for (int k = 0; k < s->nsrc; k++) {
        if (read_end(m, t, s, m->ends[s->first_end + k], &next) != 0)
            return -1;
        v.set += next.set;
        v.order = s->nsrc == 1 ? next.order : model_mix(v.order * 3 + next.order);
    }
    if (s->nsrc > 1 && !m->reduces)
        return model_wrong(m, t, "sums in an operation without sums");
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
            if (do_step(m, t, s) != 0 || (s->part == RD_PART_LAST && model_end_message(m, t, s) != 0))
                return -1;
            t->done++;
            if (!greedy) {
                model_make_ready(m, task);
                return 0;
            }
        } else {
            if (s->part == RD_PART_LAST && model_end_message(m, t, s) != 0)
                return -1;
            t->done++;
        }
    }
    m->done++;
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
        m->len[i] = m->run->len != NULL ? m->run->len[i]
                    : m->alike          ? passes
                                        : passes - (int)(model_mix(m->run->seed + i) % passes);
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
        model_make_ready(m, i);
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
        m->links[i].sent = m->links[i].taken = m->links[i].put = m->links[i].got = 0;
        m->links[i].sender = m->links[i].receiver = -1;
    }
    start_tasks(m);
    return 0;
}

static void finish(model_t *m)
{
    for (int i = 0; m->slots != NULL && i < m->nlinks * m->run->credits; i++)
        free(m->slots[i].parts);
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
        rc = model_verify(m);
    finish(m);
    return rc == 0 ? NULL : m->text;
}

int model_ahead(const model_t *m)
{
    return m->ahead;
}
