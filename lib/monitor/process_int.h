/* The record of this process, for the files of this folder. */
#ifndef RD_MONITOR_PROCESS_INT_H
#define RD_MONITOR_PROCESS_INT_H

#include <stddef.h>

#include "monitor/record.h"
#include "monitor/ticks.h"

#define RD_MONITOR_EVENTS 2048 /* RONDO_MONITOR_EVENTS=0 */

typedef struct rd_record {
    rd_monitor_head_t *head; /* NULL: there is none */
    rd_monitor_comm_t *comms;
    rd_monitor_event_t *events;
    uint64_t mask;              /* their number minus one */
    rd_monitor_stack_t *stacks; /* NULL: none are kept */
    rd_monitor_module_t *modules;
    size_t bytes;
    rd_ticks_t clock;
    int fd;         /* to be passed on */
    char path[512]; /* of RONDO_MONITOR_DIR; "": it has no name */
} rd_record_t;

/* Returns the record, or NULL. It stays for whoever has joined it. */
rd_record_t *rd_record(void);

/* Guards the table of communicators, and the record's beginning and end. */
void rd_record_lock(void);
void rd_record_unlock(void);

#endif
