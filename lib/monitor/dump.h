/* Dumps: all that the records of a view say, written out for programs and for later. One file of rondo's own (JSON) has
 * everything, so what is judged of a job that runs can be judged of its dumps, and they become any other format.
 *
 * What is not in a record is in no dump: no field is filled with a guess. */
#ifndef RD_MONITOR_DUMP_H
#define RD_MONITOR_DUMP_H

#include "monitor/history.h"
#include "monitor/out.h"

#define RD_DUMP_VERSION 1 /* of the JSON */

typedef struct rd_dump {
    const rd_view_t *view; /* which must have been looked at; judged by its last two looks */
    int job;               /* its processes alone; 0: all */
    rd_history_t *histories;
    int *numbers; /* of each process in its job: the launcher's, else its rank in a communicator, else by pids */
} rd_dump_t;

/* Reads the rings of all processes of the job. Returns false if there is no memory. */
bool rd_dump_read(rd_dump_t *dump, const rd_view_t *view, int job);
/* Reads one of them, which gets that number: all that is then to be written. */
bool rd_dump_read_one(rd_dump_t *dump, const rd_view_t *view, int process, int number);
void rd_dump_free(rd_dump_t *dump);
bool rd_dump_has(const rd_dump_t *dump, int process); /* is it of the job? */

/* Writes one process. */
void rd_dump_json(rd_out_t *out, const rd_dump_t *dump, int process);
/* Members of JSON for the arguments of a call, each behind a comma. */
void rd_dump_arguments(rd_out_t *out, const rd_monitor_event_t *event);
/* Writes all of them, for a viewer of traces. Returns false if there is no memory. */
bool rd_dump_chrome(rd_out_t *out, const rd_dump_t *dump);

#endif
