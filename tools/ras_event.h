/* Events of rondo-ras monitor, each a line: for people, or an object of JSON. */
#ifndef RAS_EVENT_H
#define RAS_EVENT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ras_event {
    const char *name;
    int64_t unix_ns; /* when it happened, or was seen */
    int job;
    const char *communicator; /* its name; NULL: it is of none, and there is no id */
    uint64_t id;
    int rank; /* -1: of no particular one */
    int pid;  /* 0: of no particular one */
    const char *host;
    int status; /* as who gives it */
    const char *text;
} ras_event_t;

void ras_event_print(const ras_event_t *event, bool json);

#endif
