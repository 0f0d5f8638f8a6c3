/* The calls of all processes of a dump, brought together for a format that compares them one by one: which numbers does
 * each rank write out, so that a call that one has written is there for every rank that has made it?
 *
 * A stream is the collectives of a communicator, or the messages from one rank of it to another. Each call has a number
 * in its stream that is the same on all its ranks: of a collective its own, of a message the how manieth it is from
 * this rank to that.
 *
 *   - What one ring has lost is left out for all: a stream begins where every rank still has it. Messages can only be
 *     counted from the first one on, so a stream of them is whole, or is left out.
 *   - Of a communicator that goes on, as the two looks show, no call is written out that is not over on all ranks: they
 *     were not looked at in the same moment.
 *   - Of a long run of equal calls its first and last ones are written out, and so is what lies around the ends of the
 *     other ranks' runs. */
#ifndef RD_MONITOR_STREAMS_H
#define RD_MONITOR_STREAMS_H

#include "monitor/dump.h"

#define RD_STREAM_NEAR 16    /* calls that are written out on each side of the end of a run */
#define RD_STREAM_MOST 65536 /* calls of a process that are written out; later ones are not */

typedef struct rd_stream {
    uint64_t id;        /* of the communicator */
    int from, to;       /* ranks in it; -1: its collectives */
    bool left_out;      /* not all of its ranks are here, or one of them has lost messages */
    uint64_t start;     /* the first number that is written out, */
    uint64_t last;      /* and the last one that may be */
    size_t first, ends; /* its part of `ends`, which is sorted */
} rd_stream_t;

typedef struct rd_streams {
    rd_stream_t *streams; /* sorted by id, from, to */
    size_t nstreams;
    uint64_t *ends; /* numbers at which a run of any rank begins or would go on, and those behind `last` */
    size_t nends;
    uint64_t **numbers; /* of each process and run: the number of its first call */
} rd_streams_t;

/* Returns false if there is no memory. */
bool rd_streams_find(rd_streams_t *streams, const rd_dump_t *dump);
void rd_streams_free(rd_streams_t *streams, const rd_dump_t *dump);

/* Returns the stream of a run; NULL: it is of a communicator that is gone. */
const rd_stream_t *rd_streams_of(const rd_streams_t *streams, const rd_history_run_t *run);
const rd_stream_t *rd_streams_find_one(const rd_streams_t *streams, uint64_t id, int from, int to);
/* Returns the lowest number from `from` up to `last` that is written out; 0: there is none. */
uint64_t rd_streams_next(const rd_streams_t *streams, const rd_stream_t *stream, uint64_t from, uint64_t last);

/* The members of a communicator, by their numbers in the job, in the order of ranks: of those that are here, and of all
 * if it is as large as the job and those that are here have their ranks there as numbers. Returns NULL if some are
 * unknown, if a process is there twice, or if there is no memory; *known then says whether it was memory. */
int *rd_dump_members(const rd_dump_t *dump, const rd_monitor_comm_t *comm, bool *known);

#endif
