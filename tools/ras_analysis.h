/* rondo-ras analyse: what its files share. It takes one stream of calls after the other (streams.h), and looks at the
 * ranks that belong to it. */
#ifndef RAS_ANALYSIS_H
#define RAS_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "monitor/streams.h"
#include "ras.h"

/* A rank, and its runs in a stream, oldest first. */
typedef struct member {
    int process, comm, rank;
    size_t *runs, nruns;
    size_t at; /* of them: the one that is looked at */
} member_t;

typedef struct analysis {
    const rd_dump_t *dump;
    const rd_streams_t *streams;
    member_t *members; /* of the stream that is looked at */
    int nmembers;
    char number[RAS_COMM_NUMBER]; /* of the communicator that is looked at */
    bool json, memory;            /* memory: there was none */
    int worst, said;
    uint64_t compared;
} analysis_t;

/* Returns the run of call `number`, which does not go down from one time to the next; NULL: the rank has not made it.
 */
const rd_history_run_t *ras_run_at(const analysis_t *a, member_t *m, uint64_t number, uint64_t *first);

/* What a sentence has room for. */
#define RAS_RUNS 12 /* of ranks that follow each other */
#define RAS_SORTS 4 /* of ranks that do the same, beside that of most */

/* Says a sentence about the communicator of that name: `status` as of a verdict. */
void ras_say(analysis_t *a, int status, const char *name, const char *sentence);
/* Append to a text that holds `bytes`. */
__attribute__((format(printf, 3, 4))) void ras_add(char *text, size_t bytes, const char *format, ...);
/* "rank 2", "ranks 0-1, 3" or "ranks 0, 2, ... and 88 more": those members that `of` marks with `mark`; and how many
 * these are. */
void ras_add_ranks(const analysis_t *a, const int *of, int mark, char *text, size_t bytes);
int ras_count_of(const analysis_t *a, const int *of, int mark);
void ras_add_call(const rd_monitor_event_t *event, char *text, size_t bytes);

/* Says after which call of the stream, which is of collectives, ranks did not get the same, though they should have
 * (RONDO_HASH). */
void ras_outputs(analysis_t *a, const rd_stream_t *stream, const char *name);

#endif
