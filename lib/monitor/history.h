/* What the ring of a record still says of a process's calls, oldest first.
 *
 * An entry is a run of equal calls of one track, one behind the other; only the first of them has times. How many calls
 * the last run of a track has, and how many of a run have ended, the board of the communicator says. */
#ifndef RD_MONITOR_HISTORY_H
#define RD_MONITOR_HISTORY_H

#include "monitor/view.h"

typedef struct rd_history_run {
    rd_monitor_event_t event;
    uint64_t index;              /* of the event in the ring */
    uint64_t calls, over;        /* calls of the run, and how many of them have ended */
    uint64_t begun_ns, ended_ns; /* of the first one, by CLOCK_MONOTONIC of the host; 0: unknown, or not yet */
    int comm;                    /* of `comms`; -1: its communicator's entry is another one's by now */
    rd_track_t track;
} rd_history_run_t;

typedef struct rd_history {
    rd_history_run_t *runs;
    size_t nruns;
    uint64_t lost; /* events that were overwritten, or are being written */
    rd_monitor_comm_t *comms;
    int *entries; /* of the record's table, where they were found */
    int ncomms;
} rd_history_t;

/* Reads a process of the view. Returns false if there is no memory. */
bool rd_history_read(rd_history_t *history, const rd_view_process_t *process);
void rd_history_free(rd_history_t *history);

/* Returns the communicator with that number in which the process has that rank; -1: there is none. */
int rd_history_comm(const rd_history_t *history, uint64_t id, int rank);

/* What is known of the call of a run behind `at` others: started, failed, completed; or enqueued, on a device, where a
 * call is over for the record when it is enqueued. */
typedef enum rd_history_state {
    RD_HISTORY_STARTED,
    RD_HISTORY_FAILED,
    RD_HISTORY_ENQUEUED,
    RD_HISTORY_COMPLETED
} rd_history_state_t;
rd_history_state_t rd_history_state(const rd_history_t *history, const rd_history_run_t *run, uint64_t at);
const char *rd_history_state_name(rd_history_state_t state);

/* Does a call of this kind belong to the sends, to the recvs, or to the collectives? */
rd_track_t rd_history_track(int kind);

#endif
