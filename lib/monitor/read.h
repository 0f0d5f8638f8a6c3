/* Reading records, of this process or of any other: what rondo-ras stands on.
 *
 * Nothing in a record is believed: it may be forged, of another version, cut short, or be written in this moment. Every
 * offset and number is checked against the length of what was mapped, every text is ended, and what carries a version
 * is read again until it holds still, eight times at most. */
#ifndef RD_MONITOR_READ_H
#define RD_MONITOR_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "monitor/record.h"

#define RD_READ_TRIES 8
#define RD_READ_MOST ((size_t)256 << 20) /* no record is longer */

typedef struct rd_reader {
    const char *base;
    size_t bytes;
    bool mapped;            /* else `base` is a copy in memory: a file, which might be cut short while it is mapped */
    uint64_t dev, ino;      /* which file it is: two descriptors may be of one record */
    rd_monitor_head_t head; /* as it was when it was opened, and checked */
} rd_reader_t;

/* Opens a record; the descriptor stays the caller's. Returns NULL, or why it is none. */
const char *rd_reader_open(rd_reader_t *reader, int fd);
/* The same for `bytes` in memory, which the caller keeps: for tests. */
const char *rd_reader_memory(rd_reader_t *reader, const void *base, size_t bytes);
void rd_reader_close(rd_reader_t *reader);

/* Returns how many entries of the table were ever used. */
int rd_reader_comms(const rd_reader_t *reader);
/* Copies one. Returns false if it is free, or is being written. */
bool rd_reader_comm(const rd_reader_t *reader, int i, rd_monitor_comm_t *comm);
/* Copies the sentence with which a communicator has failed on a rank. Returns false if it is not known any more. */
bool rd_reader_failure(const rd_reader_t *reader, uint64_t comm, int rank, rd_monitor_failure_t *failure);
/* Returns the number of events that have begun. */
uint64_t rd_reader_events(const rd_reader_t *reader);
/* Copies the event of that index. Returns false if another one has taken its place, or it is being written. */
bool rd_reader_event(const rd_reader_t *reader, uint64_t index, rd_monitor_event_t *event);
/* Copy a stack, of the head's nstacks, or a module, of its nmodules. Return false if there is none, or it is being
 * written. */
bool rd_reader_stack(const rd_reader_t *reader, int i, rd_monitor_stack_t *stack);
bool rd_reader_module(const rd_reader_t *reader, int i, rd_monitor_module_t *module);
/* Returns how many seconds ago the ticks of an event were, on the host that wrote it; 0: that cannot be said. */
double rd_reader_ago(const rd_reader_t *reader, uint64_t ticks);
/* Copies the event of a track's last call, which may have been repeated since. Returns false if there is none any more.
 */
bool rd_reader_last(const rd_reader_t *reader, const rd_monitor_comm_t *comm, rd_track_t track,
                    rd_monitor_event_t *event);

#endif
