/* Steps and schedules.
 *
 * A step is the only primitive: dst... = op(src...) over a chunk. A source is the user's input, the user's output,
 * scratch, or the next message from a peer. A destination is the user's output, scratch, or a message to a peer.
 * One source: a copy, send, receive or forward; several sources: a reduction, summed from the first source to the last
 * (the order is part of the result); several destinations receive the same value.
 *
 * A schedule is a pure function of (shape, rank, root, parameters) that emits the steps of one rank, in order, lane by
 * lane, over chunk numbers: no memory, no I/O. One *pass* runs a lane's steps once, over one slice (at most one
 * message) of every chunk; a chunk larger than a slice takes several passes of the lane, so "a chunk of several
 * messages" is several passes. Messages of one (sender, receiver, channel) match in order. Lanes are independent
 * sequential pipelines, each with its own passes; two lanes of a program never use the same connection in the same
 * direction, so each lane names its channel.
 */
#ifndef RD_SCHED_STEP_H
#define RD_SCHED_STEP_H

#include <stddef.h>
#include <stdint.h>

#define RD_MAX_ENDS 8 /* most sources, and most destinations, of one step: a schedule splits wider ones */

typedef enum {
    RD_IN,  /* the user's input, chunk `index` */
    RD_OUT, /* the user's output, chunk `index` */
    RD_TMP, /* scratch, one slice; `index` is a name: the compiler maps names that live together to different places.
               Scratch does not survive the pass in which it was written. */
    RD_PEER /* schedule: a message from or to rank `index`, or the switch (program.h); program: connection number
               `index` */
} rd_where_t;

typedef struct rd_end {
    int32_t where; /* rd_where_t */
    int32_t index;
} rd_end_t;

/* Short blocks that go the same way together are one message, which is made or taken by several steps, one behind the
 * other in their lane. Each of them moves one block and has exactly one end that is a peer, the same one, on the same
 * side. The blocks lie in the message one behind the other, so they need no place where they are side by side; in a
 * pass in which all of them are empty, there is no message. */
typedef enum {
    RD_ALONE,     /* the step's messages are its own */
    RD_PART_MORE, /* its block is a part of a message that goes on in the next step */
    RD_PART_LAST  /* its block ends the message that the step before began */
} rd_message_part_t;

typedef struct rd_step {
    int32_t chunk; /* its length governs the step; IN and OUT ends of a fused step all have this chunk's length */
    int16_t nsrc, ndst;
    rd_end_t src[RD_MAX_ENDS], dst[RD_MAX_ENDS];
    /* Run-length form: the step runs `repeat` times (at least 1); after each, every chunk number in it (chunk, IN, OUT
     * and TMP indices) advances by `stride` modulo the number of chunks. */
    int32_t repeat, stride;
    int32_t part; /* rd_message_part_t */
} rd_step_t;

/* A growing list of steps in lanes. Schedules emit it; the compiler, the mirror and the join transform it. */
typedef struct rd_steps rd_steps_t;

rd_steps_t *rd_steps_create(int nchunks); /* returns NULL if there is no memory */
void rd_steps_free(rd_steps_t *s);
void rd_steps_lane(rd_steps_t *s, int channel); /* begins a lane; `channel` in 0..RD_CHANNELS-1 */
/* Adds one step to the current lane. Emit errors (no memory, no lane, too many ends) are kept and reported by
 * rd_compile, so that schedules stay free of checks. */
void rd_step(rd_steps_t *s, int chunk, int nsrc, const rd_end_t *src, int ndst, const rd_end_t *dst);
void rd_step_repeat(rd_steps_t *s, int repeat, int stride); /* makes the last step run `repeat` times */
void rd_step_part(rd_steps_t *s, rd_message_part_t part);   /* says which part of a message the last step moves */

/* The common steps. */
void rd_step_send(rd_steps_t *s, rd_end_t src, int chunk, int peer);     /* peer <- src */
void rd_step_recv(rd_steps_t *s, rd_end_t dst, int chunk, int peer);     /* dst <- peer */
void rd_step_copy(rd_steps_t *s, rd_end_t dst, rd_end_t src, int chunk); /* dst <- src */
static inline rd_end_t rd_in(int chunk)
{
    rd_end_t e = {RD_IN, chunk};
    return e;
}
static inline rd_end_t rd_out(int chunk)
{
    rd_end_t e = {RD_OUT, chunk};
    return e;
}
static inline rd_end_t rd_tmp(int name)
{
    rd_end_t e = {RD_TMP, name};
    return e;
}
static inline rd_end_t rd_peer(int rank)
{
    rd_end_t e = {RD_PEER, rank};
    return e;
}

#define RD_CHANNELS 3 /* connections each way between two ranks: 0 and 1 for collectives, 2 for send and receive */
#define RD_CHANNEL_P2P 2

#endif
