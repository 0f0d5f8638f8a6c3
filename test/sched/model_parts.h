/* What model.c, which builds the model, model_run.c, model_links.c and model_verify.c share. Steps are kept short (an
 * end is one word), so that a thousand ranks fit and run fast. */
#ifndef MODEL_PARTS_H
#define MODEL_PARTS_H

#include <stdbool.h>

#include "sched/model.h"

typedef struct value {
    uint64_t set, order;
} value_t;

typedef struct slot {
    value_t value;
    int seq;
    value_t *parts; /* of a message of several blocks, with `value` unused */
    int nparts, room;
} slot_t;

typedef struct step {
    int32_t chunk, repeat, stride, first_end;
    int16_t nsrc, ndst;
    int32_t part;
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
    int put, got;         /* blocks of the message that is being made, and of the one that is being taken */
    int sender, receiver; /* tasks that wait for it, -1: none */
} link_t;

struct model {
    rd_sched_args_t args;
    rd_shape_t shape;
    int n, nchunks, reduces;
    bool alike; /* all chunks must be equally long (rd_algo_t.relays) */
    rank_t *ranks;
    task_t *tasks;
    step_t *steps;
    uint32_t *ends;
    link_t *links;
    int *link_of; /* [from][to][channel], of the ranks and the switch behind them: number + 1 */
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

/* model_run.c */
value_t model_leaf(int rank, int chunk, int pass); /* what a rank has of a chunk at the beginning */
/* The cell of OUT, or NULL where there is no such buffer. */
value_t *model_out_cell(model_t *m, int rank, int chunk, int pass);
int model_length_out(const model_t *m, int rank, int chunk);
int model_written(const value_t *v);
/* Says what is wrong, where (`t`; NULL: nowhere in particular). Returns -1. */
int model_wrong(model_t *m, const task_t *t, const char *format, ...) __attribute__((format(printf, 3, 4)));

void model_make_ready(model_t *m, int task); /* puts a lane that may go on into its queue */

/* model_links.c: `number` is the connection's. Those that return int return 0, or -1 with m->text. */
/* Takes a message, or, unless `part` is RD_ALONE, the next block of one of several. */
int model_take(model_t *m, task_t *t, int number, int part, value_t *v);
int model_taken(model_t *m, task_t *t, int number); /* all blocks of the message are taken */
void model_put(model_t *m, const task_t *t, int number, int part, value_t v);
void model_publish(model_t *m, int number); /* all blocks of the message are put */
/* The message of several blocks is over, even if the last ones were empty; if all were, there was none. */
int model_end_message(model_t *m, task_t *t, const step_t *s);

/* model_verify.c. Returns 0, or -1 with m->text. */
int model_verify(model_t *m);

#endif
