/* Dumps that are read again: rondo's own, and those of flight recorders. Each becomes a record in memory, as its
 * process had one, so that all that judges and shows records does the same with dumps. */
#ifndef LOAD_H
#define LOAD_H

#include "monitor/view.h"
#include "value.h"

#define LOAD_EVENTS_MOST (UINT64_C(1) << 20)
#define LOAD_COMMS_MOST 65536
#define LOAD_STACKS_MOST 65536

/* A record that is being made. */
typedef struct load {
    char *base; /* a head, communicators, events: record.h */
    size_t bytes;
    rd_monitor_head_t *head;
    rd_monitor_comm_t *comms;
    rd_monitor_event_t *events;
    rd_monitor_comm_t
        *later; /* the communicators at the second look; `comms` has them at the first, where there was one */
    rd_view_process_t then;
} load_t;

/* Makes an empty record with room for so many. Returns false if there is no memory. */
bool load_make(load_t *load, size_t ncomms, uint64_t nevents);
void load_drop(load_t *load);
/* Adds a call, the next one that has this index or a higher one. */
void load_event(load_t *load, uint64_t index, const rd_monitor_event_t *event);

/* Make a record of what a file says, whatever its format or of the one that it has. Return NULL, or why they could not.
 * `number`: at the end of the file's name. */
const char *load_bytes(load_t *load, const unsigned char *bytes, size_t n, int number);
const char *load_json(load_t *load, const value_t *file);
const char *load_fr(load_t *load, const value_t *file, int number);

/* Reads a file, or all dumps in a folder, and looks at them. Returns false, and says why, if one cannot be read, or
 * there is none. */
bool load_dumps(rd_view_t *view, const char *path);
/* The same of files in memory, which stay the caller's; `job`: as of rd_view_look. */
typedef struct load_file {
    const char *from; /* is named where it cannot be read */
    unsigned char *bytes;
    size_t n;
} load_file_t;
bool load_files(rd_view_t *view, const load_file_t *files, int n, int job);

#endif
