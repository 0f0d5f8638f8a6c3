/* The text protocol of NCCL's RAS, for its client ncclras (of NCCL 2.24 and later) and for who types its commands: a
 * line is a command, in small or large letters, and the answer to STATUS ends the connection.
 *
 *     CLIENT PROTOCOL n                SERVER PROTOCOL 2
 *     TIMEOUT seconds                  OK, or ERROR: why
 *     SET FORMAT text | json           OK, or ERROR: why
 *     STATUS, VERBOSE STATUS           what the records of this host say
 *     MONITOR [group, ...]             OK, then an event after the other, until the client ends the connection;
 *                                      groups: lifecycle, which is the default, trace, all
 *
 * The protocol knows no secret, so it is for loopback alone. What is received is bounded: a line, how many of them, and
 * the time for all. JSON has the members that NCCL's has, where a record knows them, and others besides. */
#ifndef RD_MONITOR_NCCL_RAS_H
#define RD_MONITOR_NCCL_RAS_H

#include "monitor/out.h"
#include "monitor/view.h"

#define RD_NCCL_RAS_LINE 256
#define RD_NCCL_RAS_LINES 64        /* commands of a connection */
#define RD_NCCL_RAS_ASK_MS 60000    /* until STATUS: somebody may be typing it */
#define RD_NCCL_RAS_ANSWER_MS 20000 /* until all of the answer is taken */

typedef struct rd_nccl_ras {
    int fd;
    int64_t until_ms; /* of rd_clock_ms: what is not over then has failed */
    bool json, verbose;
    int groups;      /* of MONITOR, as bits */
    int have, lines; /* bytes received that are in no command yet, and commands so far */
    char bytes[RD_NCCL_RAS_LINE];
} rd_nccl_ras_t;

/* Answers commands until one asks for the status, or for events. */
typedef enum rd_nccl_ras_asked { RD_NCCL_RAS_NOTHING, RD_NCCL_RAS_STATUS, RD_NCCL_RAS_MONITOR } rd_nccl_ras_asked_t;
rd_nccl_ras_asked_t rd_nccl_ras_asked(rd_nccl_ras_t *client, int fd);
/* The reply to MONITOR: OK, or, without `room` for one more, an error. Returns true if events are to follow. */
bool rd_nccl_ras_accept(rd_nccl_ras_t *client, bool room);
/* Sends it, of a view that has looked twice, and waits until the client has taken all. `seconds`: that it took. */
void rd_nccl_ras_answer(rd_nccl_ras_t *client, const rd_view_t *view, double seconds);

/* ---- MONITOR ---- */

/* Groups of events: what communicators and processes become; and who is waited for. */
#define RD_NCCL_RAS_LIFECYCLE 1
#define RD_NCCL_RAS_TRACE 2
#define RD_NCCL_RAS_STALLS 64 /* communicators that wait at once, and are told of */

typedef struct rd_nccl_ras_stall {
    uint64_t id;
    int times; /* at how many looks it has waited; 0: the entry is free */
    int said;  /* the status that was told, plus one; 0: none was */
} rd_nccl_ras_stall_t;

typedef struct rd_nccl_ras_process {
    uint64_t started;
    int pid;
    bool gone;
} rd_nccl_ras_process_t;

/* What is remembered from one look to the next. */
typedef struct rd_nccl_ras_events {
    rd_out_t *out;
    int groups;
    bool json;
    rd_nccl_ras_process_t *processes; /* of the view; the caller frees them */
    int nprocesses;
    rd_nccl_ras_stall_t stalls[RD_NCCL_RAS_STALLS];
} rd_nccl_ras_events_t;

/* Writes what the last look differs in from the one before it. */
void rd_nccl_ras_events(rd_nccl_ras_events_t *events, rd_out_t *out, const rd_view_t *view);
/* Sends that. Returns false if the client has gone. */
bool rd_nccl_ras_tell(rd_nccl_ras_t *client, rd_nccl_ras_events_t *events, const rd_view_t *view);

/* The answer itself. */
void rd_nccl_ras_text(rd_out_t *out, const rd_view_t *view, bool verbose, double seconds);
void rd_nccl_ras_json(rd_out_t *out, const rd_view_t *view, double seconds);

#endif
