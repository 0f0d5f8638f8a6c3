/* See schedule.h. */
#include "sim/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/work.h"

#define LANES 32

/* A message, or a place of scratch. */
typedef struct value {
    struct value *next;
    char data[];
} value_t;

typedef struct rank {
    rd_program_t *program;
    int at[LANES], turn[LANES]; /* of each lane: the step, and how often it has been repeated */
    value_t *tmp[64];
} rank_t;

typedef struct run {
    const schedule_t *s;
    size_t chunk; /* bytes, the longest */
    rank_t rank[SCHEDULE_RANKS];
    value_t *queue[SCHEDULE_RANKS][SCHEDULE_RANKS][RD_CHANNELS]; /* [from][to], the oldest first */
} run_t;

static int is_whole(rd_coll_t coll)
{
    return coll == RD_ALLREDUCE || coll == RD_REDUCE || coll == RD_BROADCAST;
}

static size_t chunk_bytes(const run_t *r, int c)
{
    size_t from = (size_t)c * r->chunk;

    if (!is_whole(r->s->coll))
        return r->chunk;
    return from >= r->s->bytes ? 0 : r->s->bytes - from < r->chunk ? r->s->bytes - from : r->chunk;
}

/* Where a chunk of a user's buffer lies; a buffer of one block holds the rank's own. */
static size_t offset(const run_t *r, int where, int c)
{
    rd_coll_t coll = r->s->coll;
    int one = where == RD_IN ? coll == RD_ALLGATHER || coll == RD_GATHER
                             : coll == RD_REDUCE_SCATTER || coll == RD_SCATTER;

    return one ? 0 : (size_t)c * r->chunk;
}

static value_t *value_make(const run_t *r, const char *data, size_t bytes)
{
    value_t *v = calloc(1, sizeof *v + r->chunk + 1);

    if (!v)
        abort();
    memcpy(v->data, data, bytes);
    return v;
}

static value_t **queue_of(run_t *r, int rank, const rd_link_t *link, int sends)
{
    return sends ? &r->queue[rank][link->peer][link->channel] : &r->queue[link->peer][rank][link->channel];
}

/* A source into `to`. */
static void source(run_t *r, int rank, rd_end_t end, char *to, size_t bytes)
{
    const rd_program_t *p = r->rank[rank].program;
    value_t **queue, *v;

    if (end.where == RD_PEER) {
        v = *(queue = queue_of(r, rank, &p->recvs[end.index], 0));
        *queue = v->next;
        memcpy(to, v->data, bytes);
        free(v);
    } else if (end.where == RD_TMP) {
        memcpy(to, r->rank[rank].tmp[end.index]->data, bytes);
    } else if (end.where == RD_OUT) {
        memcpy(to, r->s->out[rank] + offset(r, RD_OUT, end.index), bytes);
    } else {
        memcpy(to, r->s->in[rank] + offset(r, RD_IN, end.index), bytes);
    }
}

static void destination(run_t *r, int rank, rd_end_t end, const char *from, size_t bytes)
{
    const rd_program_t *p = r->rank[rank].program;

    if (end.where == RD_PEER) {
        value_t **last = queue_of(r, rank, &p->sends[end.index], 1);
        while (*last)
            last = &(*last)->next;
        *last = value_make(r, from, bytes);
    } else if (end.where == RD_TMP) {
        free(r->rank[rank].tmp[end.index]);
        r->rank[rank].tmp[end.index] = value_make(r, from, bytes);
    } else {
        memcpy(r->s->out[rank] + offset(r, RD_OUT, end.index), from, bytes);
    }
}

static int is_ready(run_t *r, int rank, const rd_step_t *step)
{
    for (int k = 0; k < step->nsrc; k++)
        if (step->src[k].where == RD_PEER && !*queue_of(r, rank, &r->rank[rank].program->recvs[step->src[k].index], 0))
            return 0;
    return 1;
}

/* The sum of all into the first. */
static void sum(const run_t *r, char *const *value, int count, size_t bytes)
{
    const rd_reducer_t *reducer = r->s->reducer;
    const void *src[RD_MAX_ENDS];

    for (int k = 0; k < count; k++)
        src[k] = value[k];
    if (r->s->at_once && count > 1)
        reducer->reduce(value[0], src, count, bytes / r->s->element, reducer->arg);
    for (int k = 1; k < count && !r->s->at_once; k++) {
        src[1] = value[k];
        reducer->reduce(value[0], src, 2, bytes / r->s->element, reducer->arg);
    }
}

/* The i-th time. */
static void step_run(run_t *r, int rank, const rd_step_t *step, int i)
{
    int n = r->rank[rank].program->nchunks, shift = i * step->stride;
    size_t bytes = chunk_bytes(r, (step->chunk + shift) % n);
    char *value[RD_MAX_ENDS];

    for (int k = 0; k < step->nsrc; k++) {
        rd_end_t end = step->src[k];
        if (end.where == RD_IN || end.where == RD_OUT)
            end.index = (end.index + shift) % n;
        if (!(value[k] = malloc(r->chunk + 1)))
            abort();
        source(r, rank, end, value[k], bytes);
    }
    sum(r, value, step->nsrc, bytes);
    for (int k = 0; k < step->ndst; k++) {
        rd_end_t end = step->dst[k];
        if (end.where == RD_OUT)
            end.index = (end.index + shift) % n;
        destination(r, rank, end, value[0], bytes);
    }
    for (int k = 0; k < step->nsrc; k++)
        free(value[k]);
}

/* Nonzero: it did something. */
static int lane_run(run_t *r, int rank, int lane)
{
    rank_t *me = &r->rank[rank];
    const rd_lane_t *l = &me->program->lanes[lane];
    int moved = 0;

    for (; me->at[lane] < l->count; moved = 1) {
        const rd_step_t *step = &me->program->steps[l->first + me->at[lane]];
        if (!is_ready(r, rank, step))
            break;
        step_run(r, rank, step, me->turn[lane]);
        if (++me->turn[lane] == step->repeat) {
            me->turn[lane] = 0;
            me->at[lane]++;
        }
    }
    return moved;
}

static int compile(run_t *r, const rd_shape_t *shape)
{
    const schedule_t *s = r->s;

    for (int rank = 0; rank < s->n; rank++) {
        rd_sched_args_t args = {shape, s->coll, rank, s->root, s->param, 0};
        rd_steps_t *steps = s->algo->emit(&args);
        const char *why;
        int bad = rd_compile(steps, 0, &r->rank[rank].program, &why);
        rd_steps_free(steps);
        if (bad || r->rank[rank].program->nlanes > LANES || r->rank[rank].program->ntmp > 64)
            return -1;
    }
    int n = r->rank[0].program->nchunks;
    r->chunk = is_whole(s->coll) ? rd_kchunk(s->bytes, (uint32_t)n) : s->bytes;
    return 0;
}

/* 0: every rank has come to its end. */
static int run_all(run_t *r)
{
    int moved = 1, left = 0;

    while (moved) {
        moved = left = 0;
        for (int rank = 0; rank < r->s->n; rank++)
            for (int l = 0; l < r->rank[rank].program->nlanes; l++) {
                moved |= lane_run(r, rank, l);
                left |= r->rank[rank].at[l] < r->rank[rank].program->lanes[l].count;
            }
    }
    return left ? -1 : 0;
}

/* Integers' averages are divided in the end. */
static void finish(const run_t *r)
{
    const schedule_t *s = r->s;

    for (int rank = 0; rank < s->n && s->reducer && s->reducer->finish; rank++)
        if (s->coll != RD_REDUCE || rank == s->root)
            s->reducer->finish(s->out[rank], s->bytes / s->element, s->reducer->arg);
}

int schedule_run(const schedule_t *s)
{
    const rd_shape_t shape = {s->n, 1, NULL};
    run_t *r = calloc(1, sizeof *r);
    int bad = -1;

    if (!r)
        return -1;
    r->s = s;
    if (compile(r, &shape) == 0 && (bad = run_all(r)) == 0)
        finish(r);
    for (int rank = 0; rank < s->n; rank++) {
        for (int t = 0; t < 64; t++)
            free(r->rank[rank].tmp[t]);
        rd_program_free(r->rank[rank].program);
    }
    free(r);
    return bad;
}
